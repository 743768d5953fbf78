//! Capability bits by the protocol's names. The upper 32 bits are MariaDB's extended ones.

pub(crate) const LONG_PASSWORD: u64 = 1;
pub(crate) const CONNECT_WITH_DB: u64 = 1 << 3;
pub(crate) const COMPRESS: u64 = 1 << 5;
pub(crate) const LOCAL_FILES: u64 = 1 << 7;
pub(crate) const PROTOCOL_41: u64 = 1 << 9;
pub(crate) const SSL: u64 = 1 << 11;
pub(crate) const TRANSACTIONS: u64 = 1 << 13;
pub(crate) const SECURE_CONNECTION: u64 = 1 << 15;
pub(crate) const MULTI_STATEMENTS: u64 = 1 << 16;
pub(crate) const MULTI_RESULTS: u64 = 1 << 17;
pub(crate) const PS_MULTI_RESULTS: u64 = 1 << 18;
pub(crate) const PLUGIN_AUTH: u64 = 1 << 19;
pub(crate) const CONNECT_ATTRS: u64 = 1 << 20;
pub(crate) const PLUGIN_AUTH_LENENC_DATA: u64 = 1 << 21;
pub(crate) const SESSION_TRACK: u64 = 1 << 23;
pub(crate) const DEPRECATE_EOF: u64 = 1 << 24;
pub(crate) const OPTIONAL_RESULTSET_METADATA: u64 = 1 << 25;
pub(crate) const ZSTD_COMPRESSION: u64 = 1 << 26;
pub(crate) const QUERY_ATTRIBUTES: u64 = 1 << 27;

pub(crate) const MARIADB_PROGRESS: u64 = 1 << 32;
pub(crate) const MARIADB_BULK: u64 = 1 << 34;
pub(crate) const MARIADB_EXTENDED_METADATA: u64 = 1 << 35;
pub(crate) const MARIADB_CACHE_METADATA: u64 = 1 << 36;
pub(crate) const MARIADB_BULK_UNIT_RESULTS: u64 = 1 << 37;

/// What a present-day client requests, without the capabilities that change the form of replies. Tests add those.
pub(crate) const USUAL: u64 = LONG_PASSWORD
    | LOCAL_FILES
    | PROTOCOL_41
    | TRANSACTIONS
    | SECURE_CONNECTION
    | MULTI_STATEMENTS
    | MULTI_RESULTS
    | PS_MULTI_RESULTS
    | PLUGIN_AUTH
    | PLUGIN_AUTH_LENENC_DATA
    | DEPRECATE_EOF;
