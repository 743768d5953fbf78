//! Session settings, and statements for before and after a page.

use crate::kit::random::Random;
use crate::kit::wire_client::capability;

/// Statements for after a page that report on the statement before.
pub(super) const PROBES: [&str; 14] = [
    "SELECT FOUND_ROWS()",
    "SELECT ROW_COUNT()",
    "SELECT @@warning_count, @@error_count",
    "SHOW WARNINGS",
    "SHOW COUNT(*) WARNINGS",
    "SHOW ERRORS",
    "SELECT LAST_INSERT_ID()",
    "SELECT FOUND_ROWS(), ROW_COUNT()",
    "select /* it */ found_rows ( ) AS n",
    "SELECT @@identity, @@autocommit",
    "SHOW WARNINGS LIMIT 1",
    "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT",
    "SELECT ROW_COUNT() FROM DUAL",
    "SELECT @n, @r",
];

/// Statements of other kinds.
pub(super) const OTHERS: [&str; 17] = [
    "SELECT 1 + 'x'",
    "SELECT 1 / 0",
    "DO 1",
    "SELECT nothing",
    "SET @a = 5",
    "SELECT COUNT(*) FROM users",
    "SELECT uid FROM users ORDER BY uid LIMIT 3",
    "INSERT INTO nowhere VALUES (1)",
    "UPDATE users SET closed = 0 WHERE uid = 77777",
    "SELECT SQL_CALC_FOUND_ROWS uid FROM users ORDER BY uid LIMIT 2",
    "SHOW TABLES LIKE 'zz%'",
    "SELECT LAST_INSERT_ID(7)",
    "SELECT 1",
    "SELECT @a, CONCAT('x', @a)",
    "SELECT 'a' FROM DUAL",
    "SELECT 1 UNION SELECT 2",
    "SELECT title + 1 FROM topics ORDER BY tid",
];

/// Settings under which Headwater relays most statements.
pub(super) const HEAVY: [(&str, &str); 10] = [
    ("sql_select_limit", "4"),
    ("max_length_for_sort_data", "8"),
    ("max_sort_length", "8"),
    ("sort_buffer_size", "65536"),
    ("join_buffer_size", "4096"),
    ("sql_auto_is_null", "1"),
    ("sql_safe_updates", "1"),
    ("sql_big_selects", "0"),
    ("big_tables", "1"),
    ("max_join_size", "5000"),
];

/// The capabilities that a client requests at login.
pub(super) fn capabilities(random: &mut Random) -> u64 {
    let mut wanted = capability::USUAL;
    for (bit, often) in [
        (capability::SESSION_TRACK, 3),
        (capability::QUERY_ATTRIBUTES, 4),
        (capability::MARIADB_EXTENDED_METADATA, 4),
        // CLIENT_FOUND_ROWS, CLIENT_LONG_FLAG
        (1 << 1, 4),
        (1 << 2, 3),
        // CLIENT_IGNORE_SPACE
        (1 << 8, 12),
    ] {
        if random.one_in(often) {
            wanted |= bit;
        }
    }
    if random.one_in(3) {
        wanted &= !capability::DEPRECATE_EOF;
    }
    wanted
}

/// A statement that changes a session setting.
pub(super) fn setting(is_mariadb: bool, random: &mut Random) -> String {
    match random.below(12) {
        0..=2 => {
            let names = [
                "utf8mb4",
                "latin1",
                "utf8mb3",
                "utf8mb4 COLLATE utf8mb4_bin",
                "utf8mb4 COLLATE utf8mb4_unicode_ci",
                "cp1250",
                "binary",
                "gbk",
            ];
            format!("SET NAMES {}", random.pick(&names))
        }
        3 | 4 => format!(
            "SET time_zone = '{}'",
            random.pick(&["+00:00", "+05:30", "-03:00", "SYSTEM"])
        ),
        5..=7 => sql_mode(is_mariadb, random),
        8 => format!(
            "SET SESSION TRANSACTION ISOLATION LEVEL {}",
            random.pick(&[
                "READ COMMITTED",
                "REPEATABLE READ",
                "READ UNCOMMITTED",
                "SERIALIZABLE",
                "REPEATABLE READ"
            ])
        ),
        _ => {
            let mut others = vec![
                "character_set_results = NULL",
                "character_set_results = latin1",
                "character_set_results = utf8mb4",
                "collation_connection = utf8mb4_bin",
                "collation_connection = latin1_swedish_ci",
                "lc_time_names = 'de_DE'",
                "div_precision_increment = 7",
                "group_concat_max_len = 4",
                "sql_notes = 0",
                "max_error_count = 0",
                "max_error_count = 64",
                "lc_messages = 'fr_FR'",
                "sql_quote_show_create = 0",
                "last_insert_id = 9",
                "insert_id = 5",
                "transaction_prealloc_size = 8192",
                "wait_timeout = 5000",
                "net_write_timeout = 90",
                "character_set_client = latin1",
                "session_track_schema = 0",
            ];
            match is_mariadb {
                true => others.extend([
                    "old_mode = 'NO_DUP_KEY_WARNINGS_WITH_IGNORE'",
                    "old_mode = 'UTF8_IS_UTF8MB3'",
                    "column_compression_threshold = 10",
                    "standard_compliant_cte = 0",
                ]),
                false => others.extend([
                    "windowing_use_high_precision = 0",
                    "show_create_table_verbosity = 1",
                    "internal_tmp_mem_storage_engine = MEMORY",
                    "default_collation_for_utf8mb4 = utf8mb4_general_ci",
                    "cte_max_recursion_depth = 7",
                    "resultset_metadata = FULL",
                ]),
            }
            format!("SET SESSION {}", random.pick(&others))
        }
    }
}

fn sql_mode(is_mariadb: bool, random: &mut Random) -> String {
    let mut modes = vec![
        "",
        "",
        "ANSI_QUOTES",
        "PIPES_AS_CONCAT",
        "NO_BACKSLASH_ESCAPES",
        "PAD_CHAR_TO_FULL_LENGTH",
        "HIGH_NOT_PRECEDENCE",
        "IGNORE_SPACE",
        "NO_UNSIGNED_SUBTRACTION",
        "REAL_AS_FLOAT",
        "ALLOW_INVALID_DATES",
        "TRADITIONAL",
        "ANSI",
        "STRICT_TRANS_TABLES",
        "ONLY_FULL_GROUP_BY",
        "ERROR_FOR_DIVISION_BY_ZERO",
        "NO_ZERO_DATE,NO_ZERO_IN_DATE",
    ];
    match is_mariadb {
        true => modes.extend([
            "EMPTY_STRING_IS_NULL",
            "TIME_ROUND_FRACTIONAL",
            "NO_FIELD_OPTIONS",
            "MSSQL",
            "SIMULTANEOUS_ASSIGNMENT",
        ]),
        false => modes.extend(["TIME_TRUNCATE_FRACTIONAL"]),
    }
    match random.below(3) {
        0 => "SET sql_mode = DEFAULT".to_owned(),
        1 => format!("SET sql_mode = '{}'", random.pick(&modes)),
        _ => format!(
            "SET SESSION sql_mode = CONCAT(@@sql_mode, ',{}')",
            random.pick(&modes)
        ),
    }
}
