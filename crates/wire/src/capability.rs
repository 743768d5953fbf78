//! The capability flags both sides agree on when a connection opens.

use std::fmt;

/// A set of capability flags.
///
/// The low 32 bits are `CLIENT_*` of both servers, the high 32 bits `MARIADB_CLIENT_*`, which MariaDB puts in four
/// reserved bytes of the greeting and of the login, and only when [`Capabilities::LONG_PASSWORD`] is off.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Capabilities(pub u64);

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Capabilities {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*
            const NAMES: &[(&str, Self)] = &[$((stringify!($name), Self::$name)),*];
        }
    };
}

flags! {
    /// Set by MySQL and its clients always; MariaDB calls it `CLIENT_MYSQL` and leaves it off to say that the high 32
    /// bits count.
    LONG_PASSWORD = 0;
    /// Affected rows are found rows.
    FOUND_ROWS = 1;
    /// All column flags.
    LONG_FLAG = 2;
    /// The login names a database.
    CONNECT_WITH_DB = 3;
    /// No `db.table.column`.
    NO_SCHEMA = 4;
    /// zlib.
    COMPRESS = 5;
    /// The client is ODBC.
    ODBC = 6;
    /// `LOAD DATA LOCAL`.
    LOCAL_FILES = 7;
    /// Spaces before `(`.
    IGNORE_SPACE = 8;
    /// The protocol since 4.1.
    PROTOCOL_41 = 9;
    /// `interactive_timeout` instead of `wait_timeout`.
    INTERACTIVE = 10;
    /// TLS after the greeting.
    SSL = 11;
    /// No effect on the wire.
    IGNORE_SIGPIPE = 12;
    /// Status flags in OK and EOF.
    TRANSACTIONS = 13;
    /// No effect on the wire.
    RESERVED = 14;
    /// Authentication since 4.1.
    SECURE_CONNECTION = 15;
    /// Several statements in one COM_QUERY.
    MULTI_STATEMENTS = 16;
    /// Several results for one COM_QUERY.
    MULTI_RESULTS = 17;
    /// Several results for one COM_STMT_EXECUTE.
    PS_MULTI_RESULTS = 18;
    /// Authentication plugins.
    PLUGIN_AUTH = 19;
    /// The login carries attributes of the client.
    CONNECT_ATTRS = 20;
    /// The login's authentication data is length-encoded.
    PLUGIN_AUTH_LENENC_DATA = 21;
    /// Logging in with an expired password.
    CAN_HANDLE_EXPIRED_PASSWORDS = 22;
    /// OK packets carry session state trackers.
    SESSION_TRACK = 23;
    /// Result sets end with an OK packet (header 0xFE), and there is no EOF between columns and rows.
    DEPRECATE_EOF = 24;
    /// Result sets may come without column definitions (MySQL).
    OPTIONAL_RESULTSET_METADATA = 25;
    /// zstd (MySQL).
    ZSTD_COMPRESSION = 26;
    /// COM_QUERY and COM_STMT_EXECUTE carry query attributes (MySQL).
    QUERY_ATTRIBUTES = 27;
    /// Several authentication factors (MySQL).
    MULTI_FACTOR_AUTHENTICATION = 28;
    /// Reserved for more capabilities (MySQL); progress reports in MariaDB before 10.2.
    CAPABILITY_EXTENSION = 29;
    /// Only inside clients.
    SSL_VERIFY_SERVER_CERT = 30;
    /// Only inside clients.
    REMEMBER_OPTIONS = 31;
    /// Progress reports, which look like ERR packets with code 0xFFFF.
    MARIADB_PROGRESS = 32;
    /// COM_MULTI, given up by MariaDB.
    MARIADB_COM_MULTI = 33;
    /// COM_STMT_BULK_EXECUTE.
    MARIADB_BULK = 34;
    /// Column definitions carry extended metadata.
    MARIADB_EXTENDED_METADATA = 35;
    /// Executed statements may come without column definitions that the client has already.
    MARIADB_CACHE_METADATA = 36;
    /// A result set with the outcome of each bulk row.
    MARIADB_BULK_UNIT_RESULTS = 37;
}

impl Capabilities {
    /// No flag.
    pub const NONE: Self = Self(0);

    /// Joins the 32 bits of the protocol with MariaDB's 32.
    #[must_use]
    pub fn from_parts(client: u32, mariadb: u32) -> Self {
        Self(u64::from(client) | u64::from(mariadb) << 32)
    }

    /// True when every flag of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True when a flag of `other` is set.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The flags of either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The flags of both sets: what two sides use when each sends what it supports.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// These flags without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES
            .iter()
            .filter(|(_, flag)| self.contains(*flag))
            .map(|(name, _)| name);
        f.debug_set().entries(names).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};

    #[test]
    fn values_are_those_of_mysql_common() {
        for (ours, theirs) in [
            (
                Capabilities::CONNECT_WITH_DB,
                CapabilityFlags::CLIENT_CONNECT_WITH_DB,
            ),
            (Capabilities::SSL, CapabilityFlags::CLIENT_SSL),
            (Capabilities::COMPRESS, CapabilityFlags::CLIENT_COMPRESS),
            (
                Capabilities::ZSTD_COMPRESSION,
                CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM,
            ),
            (
                Capabilities::SESSION_TRACK,
                CapabilityFlags::CLIENT_SESSION_TRACK,
            ),
            (
                Capabilities::DEPRECATE_EOF,
                CapabilityFlags::CLIENT_DEPRECATE_EOF,
            ),
            (
                Capabilities::OPTIONAL_RESULTSET_METADATA,
                CapabilityFlags::CLIENT_OPTIONAL_RESULTSET_METADATA,
            ),
            (
                Capabilities::QUERY_ATTRIBUTES,
                CapabilityFlags::CLIENT_QUERY_ATTRIBUTES,
            ),
            (
                Capabilities::PLUGIN_AUTH_LENENC_DATA,
                CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA,
            ),
        ] {
            assert_eq!(ours.0, u64::from(theirs.bits()), "{ours:?}");
        }
        for (ours, theirs) in [
            (
                Capabilities::MARIADB_PROGRESS,
                MariadbCapabilities::MARIADB_CLIENT_PROGRESS,
            ),
            (
                Capabilities::MARIADB_BULK,
                MariadbCapabilities::MARIADB_CLIENT_STMT_BULK_OPERATIONS,
            ),
            (
                Capabilities::MARIADB_CACHE_METADATA,
                MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA,
            ),
            (
                Capabilities::MARIADB_BULK_UNIT_RESULTS,
                MariadbCapabilities::MARIADB_CLIENT_BULK_UNIT_RESULTS,
            ),
        ] {
            assert_eq!(ours.0, u64::from(theirs.bits()) << 32, "{ours:?}");
        }
    }
}
