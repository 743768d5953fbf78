//! What is asked of the server before a call is owned, and how the answers are judged.

use std::time::Duration;

use super::reason::Reason;
use headwater_sql::holds;
use headwater_wire::capability::Capabilities;
use headwater_wire::resultset::{Rows, column};
use headwater_wire::status;

/// A variable, and whether a call may be owned under its value.
type Variable = (&'static str, fn(&[u8]) -> bool);

/// The first column, which holds the current database.
const DATABASE: usize = 0;
/// The column behind it, which tells which server it is; NULL in a session that reads what is not committed (`READ-UNCOMMITTED`): no
/// memory has that.
const SERVER: usize = 1;
/// The column behind that: after how many idle seconds the server ends the session.
const WAIT_TIMEOUT: usize = 2;
/// The column behind that: whether a read inside a transaction takes locks (`SERIALIZABLE`).
const READS_LOCK: usize = 3;
/// The columns behind that: its time zone, and the one that SYSTEM stands for.
const TIME_ZONE: usize = 4;
const SYSTEM_TIME_ZONE: usize = 5;
/// The columns behind these: a number that stands for all settings which plans and descriptions of columns follow, and whether those
/// of plans are as in any other session.
const PLANS: usize = 6;
const PLANS_AS_ALL: usize = 7;
/// The column behind these: what the rows of the session's answers depend on.
const ROWS: usize = 8;
/// Where the variables begin.
const FIRST: usize = 9;
/// The variables.
const VARIABLES: [Variable; 10] = [
    ("sql_mode", is_no_oracle),
    // A statement-based log would miss what the call writes to it.
    ("binlog_format", |value| value != b"STATEMENT"),
    ("max_heap_table_size", |value| {
        number(value) >= Some(HEAP_BYTES)
    }),
    ("sql_select_limit", |value| number(value) == Some(u64::MAX)),
    ("sql_big_selects", |value| number(value) == Some(1)),
    ("sql_safe_updates", is_off),
    ("profiling", is_off),
    (TELLS_STATE, is_off),
    (TELLS_TRANSACTIONS, is_off),
    ("sql_buffer_result", is_off),
];
const MARIADB: [Variable; 4] = [
    ("tx_read_only", is_off),
    // NULL, or what the procedure names.
    ("enforce_storage_engine", |value| {
        value.is_empty() || value.eq_ignore_ascii_case(b"MEMORY")
    }),
    ("max_session_mem_used", |value| {
        number(value) >= Some(SESSION_BYTES)
    }),
    // Above it a list of ids becomes a table of its own, and the columns have other flags.
    ("in_predicate_conversion_threshold", |value| {
        number(value).is_some_and(|ids| ids == 0 || ids >= u64::from(LONG_LIST))
    }),
];
const MYSQL: [Variable; 8] = [
    (GROUP_CONSISTENCY, waits_for_no_group),
    // The procedure creates its tables in it.
    ("disabled_storage_engines", |value| {
        !["MEMORY", "HEAP"].iter().any(|name| holds(value, name))
    }),
    ("transaction_read_only", is_off),
    ("sql_require_primary_key", is_off),
    ("session_track_gtids", is_off),
    // A number that the server gives each statement is told behind each.
    ("session_track_system_variables", |value| {
        !value.contains(&b'*') && !holds(value, "statement_id")
    }),
    ("require_row_format", is_off),
    ("gtid_next", |value| {
        value.eq_ignore_ascii_case(b"AUTOMATIC")
    }),
];
/// How far reads of a member of a group (MySQL Group Replication) wait for the others; servers outside any group have it too.
const GROUP_CONSISTENCY: &str = "group_replication_consistency";
/// Whether transactions only read: SELECTs go on as ever then, and a procedure cannot make its tables.
const ACCESS: [&str; 2] = ["tx_read_only", "transaction_read_only"];
/// The tracker of what a SELECT leaves as it is.
const TELLS_STATE: &str = "session_track_state_change";
/// The tracker of transactions. Outside of them a SELECT tells nothing of their state; it may tell that what was set for the last one has ended.
const TELLS_TRANSACTIONS: &str = "session_track_transaction_info";
/// What is told at the end of replies, to clients that have agreed to it.
const TRACKERS: [&str; 4] = [
    TELLS_STATE,
    TELLS_TRANSACTIONS,
    "session_track_gtids",
    "session_track_system_variables",
];
/// Whether reads of a node of a Galera cluster wait until it has applied what the others have committed. Only servers that were built for
/// clusters know the variable, so it is asked of nodes alone.
const GALERA_WAITS: &str = "@@wsrep_sync_wait&1";
/// What a plan follows, beside the tables: under other values the server may describe the columns of a feed's statement otherwise, or
/// warn of one. All of them are known to every release.
const STEERING: [&str; 8] = [
    "optimizer_switch",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "eq_range_index_dive_limit",
    "max_seeks_for_key",
    "max_join_size",
    "join_buffer_size",
    "sort_buffer_size",
];
const STEERING_MARIADB: [&str; 5] = [
    "optimizer_use_condition_selectivity",
    "optimizer_selectivity_sampling_limit",
    "use_stat_tables",
    "join_cache_level",
    "in_predicate_conversion_threshold",
];
const STEERING_MYSQL: [&str; 2] = ["range_optimizer_max_mem_size", "tmp_table_size"];
/// What else descriptions of columns follow beside `character_set_results`: the character set and collation of literals, and whether `''` is NULL.
const DESCRIBING: [&str; 3] = [
    "@@character_set_connection",
    "@@collation_connection",
    "@@sql_mode",
];
/// What rows of plain columns and comparisons of them with literals depend on: how characters are told and compared, how a TIMESTAMP is
/// told, whether CHAR is filled up; and from when on a statement is told to have been slow. The rest of what rows may depend on, for what
/// may be kept one day.
const ROWS_FOLLOW: [&str; 11] = [
    "long_query_time",
    "character_set_client",
    "character_set_connection",
    "collation_connection",
    "time_zone",
    "system_time_zone",
    "sql_mode",
    "lc_time_names",
    "div_precision_increment",
    "default_week_format",
    "group_concat_max_len",
];
/// With this one on, `id IS NULL` may mean the last id that was inserted.
const AUTO_IS_NULL: &str = "sql_auto_is_null";
/// So many ids in a list are a table of its own to MariaDB, unless it is told otherwise.
pub const LONG_LIST: u16 = 1_000;
/// By far more than a call needs.
const SESSION_BYTES: u64 = 16 * 1024 * 1024;
/// The procedure's table of at most n x n ids (`limits.pending_ids`, at most 30,000) must fit the session's limit for MEMORY tables.
const HEAP_BYTES: u64 = 1024 * 1024;

/// What is known of a server before it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// MariaDB and not MySQL.
    pub mariadb: bool,
    /// A node of a Galera cluster (MariaDB's).
    pub galera: bool,
}

impl Asked {
    /// A server that is no node of a Galera cluster, as far as is known.
    #[must_use]
    pub fn of(mariadb: bool) -> Asked {
        Asked {
            mariadb,
            galera: false,
        }
    }
}

/// Which server a connection leads to, as one value of an SQL expression that any account may ask for.
///
/// That of a Galera node is told only with the settings that matter there: a session that was not asked for these has another server
/// than memory.
#[must_use]
pub fn server_identity(asked: Asked) -> &'static str {
    match asked {
        Asked { galera: true, .. } => {
            "CONCAT_WS(0x2f,@@server_id,@@hostname,@@port,@@datadir,@@wsrep_node_name)"
        }
        Asked { mariadb: true, .. } => "CONCAT_WS(0x2f,@@server_id,@@hostname,@@port,@@datadir)",
        // A copy of a data directory has the same UUID.
        Asked { .. } => "CONCAT_WS(0x2f,@@server_uuid,@@hostname,@@port,@@datadir)",
    }
}

/// The session's current database and the settings that change what the procedure would do.
#[must_use]
pub fn settings_query(asked: Asked) -> String {
    let mariadb = asked.mariadb;
    let isolation = match mariadb {
        true => "tx_isolation",
        false => "transaction_isolation",
    };
    let server = server_identity(asked);
    let mut columns = vec![
        "DATABASE()".to_owned(),
        format!("IF(@@{isolation}=0x524541442d554e434f4d4d4954544544,NULL,{server})"),
        "@@wait_timeout".to_owned(),
        format!("@@{isolation}=0x53455249414c495a41424c45"),
        "@@time_zone".to_owned(),
        "@@system_time_zone".to_owned(),
    ];
    let [own, of_all] = ["@@", "@@global."].map(|scope| steering(mariadb, scope));
    let describing = DESCRIBING.join(",");
    columns.push(format!(
        "CRC32(CONCAT_WS(0x2f,IFNULL(@@character_set_results,0x2d),{describing},{own}))"
    ));
    columns.push(format!("CONCAT_WS(0x2f,{own})=CONCAT_WS(0x2f,{of_all})"));
    let rows: Vec<String> = ROWS_FOLLOW.iter().map(|name| format!("@@{name}")).collect();
    columns.push(format!(
        "IF(@@{AUTO_IS_NULL},NULL,CONCAT_WS(0x2f,IFNULL(@@character_set_results,0x2d),{}))",
        rows.join(",")
    ));
    columns.extend(variables(mariadb).map(|(name, _)| format!("@@{name}")));
    if !mariadb {
        columns.push("@@optimizer_switch<>@@global.optimizer_switch".into());
    }
    if asked.galera {
        columns.push(GALERA_WAITS.into());
    }
    format!("SELECT {}", columns.join(","))
}

/// What plans follow, as a list of SQL expressions.
fn steering(mariadb: bool, scope: &str) -> String {
    let own: &[&str] = match mariadb {
        true => &STEERING_MARIADB,
        false => &STEERING_MYSQL,
    };
    let names = STEERING.iter().chain(own);
    let names: Vec<String> = names.map(|name| format!("{scope}{name}")).collect();
    names.join(",")
}

/// The variables of [`settings_query`], in the order of its columns from `FIRST` on.
fn variables(mariadb: bool) -> impl Iterator<Item = Variable> {
    let own: &[Variable] = if mariadb { &MARIADB } else { &MYSQL };
    VARIABLES.into_iter().chain(own.iter().copied())
}

/// The variables under which no call may be owned, with their values, from the one row that [`settings_query`] returns.
#[must_use]
pub fn unfit(mariadb: bool, row: &[Option<Vec<u8>>]) -> Vec<(&'static str, String)> {
    let cells = row.iter().map(|cell| cell.as_deref().unwrap_or_default());
    variables(mariadb)
        .zip(cells.skip(FIRST))
        .filter(|((_, fits), value)| !fits(value))
        .map(|((name, _), value)| (name, String::from_utf8_lossy(value).into_owned()))
        .collect()
}

/// What a session's settings say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The current database, if one is chosen.
    pub database: Option<Vec<u8>>,
    /// Which server it is: as the feed asks for it.
    pub server: Vec<u8>,
    /// The server ends the session when it has heard nothing for so long.
    pub wait_timeout: Duration,
    /// A read inside a transaction takes locks, and sees what is committed when it runs (`SERIALIZABLE`).
    pub reads_lock: bool,
    /// How far its time zone is ahead of UTC, in microseconds, if that is always the same.
    pub ahead: Option<i64>,
    /// Plans, and what is said of columns, follow settings: this is another number where one of them is another.
    pub plans: u64,
    /// Settings that plans follow are not as in any other session.
    pub steers: bool,
    /// No call may be owned, while SELECTs go on as ever: its transactions only read, or a tracker tells what a procedure does.
    pub no_calls: bool,
    /// The client is told at the end of replies that its session's state has changed.
    pub tells_state: bool,
    /// The same of its transaction.
    pub tells_transactions: bool,
    /// All settings that rows depend on; `None`: rows may depend on more.
    pub rows: Option<Vec<u8>>,
}

/// Judges the flags behind the row that [`settings_query`] returns.
///
/// # Errors
/// The reason why no call may be owned there.
pub fn judge_flags(rows: &Rows) -> Result<(), Reason> {
    let flags = rows.end().status;
    if flags & status::IN_TRANS != 0 {
        return Err(Reason::InTransaction);
    }
    match flags & status::AUTOCOMMIT {
        0 => Err(Reason::AutocommitOff),
        _ => Ok(()),
    }
}

/// Judges the one row that [`settings_query`] returns. Trackers matter to a client that has agreed to be told by them.
///
/// # Errors
/// The reason why no call may be owned under these settings.
pub fn judge_settings(
    mariadb: bool,
    capabilities: Capabilities,
    rows: &Rows,
) -> Result<Settings, Reason> {
    let row = rows.iter().next().ok_or(Reason::Settings)?;
    let text = |column| row.cell(column).unwrap_or_default();
    let tracks = capabilities.contains(Capabilities::SESSION_TRACK);
    // An EOF has no room for what has changed: that is told behind another statement.
    let at_once = capabilities.contains(Capabilities::DEPRECATE_EOF);
    let (mut no_calls, mut tells_state, mut tells_transactions) = (false, false, false);
    let unfit = (FIRST..)
        .zip(variables(mariadb))
        .map(|(column, (name, fits))| (name, fits, text(column)))
        .filter(|(_, fits, value)| !fits(value))
        .filter(|(name, ..)| tracks || !TRACKERS.contains(name));
    let mut unfit = unfit.filter_map(|(name, _, value)| {
        let transactions =
            name == TELLS_TRANSACTIONS && at_once && value.eq_ignore_ascii_case(b"STATE");
        tells_state |= name == TELLS_STATE;
        tells_transactions |= transactions;
        let of_calls = transactions || name == TELLS_STATE || ACCESS.contains(&name);
        no_calls |= of_calls;
        (!of_calls).then_some(name)
    });
    match unfit.next() {
        None => {}
        Some(GROUP_CONSISTENCY) if unfit.next().is_none() => return Err(Reason::WaitsForCluster),
        Some(_) => return Err(Reason::Settings),
    }
    // A session can have the column definitions left out (`resultset_metadata`): then what there is is not known.
    let own = FIRST + variables(mariadb).count();
    match (mariadb, rows.columns().len().checked_sub(own)) {
        (true, Some(0)) => {}
        (true, Some(1)) if is_off(text(own)) => {}
        (true, Some(1)) => return Err(Reason::WaitsForCluster),
        (false, Some(1)) if is_off(text(own)) => {}
        _ => return Err(Reason::Settings),
    }
    Ok(Settings {
        database: row.cell(DATABASE).map(<[u8]>::to_vec),
        server: text(SERVER).to_vec(),
        wait_timeout: Duration::from_secs(number(text(WAIT_TIMEOUT)).unwrap_or_default()),
        reads_lock: text(READS_LOCK) != b"0",
        ahead: offset(match text(TIME_ZONE) {
            b"SYSTEM" => text(SYSTEM_TIME_ZONE),
            zone => zone,
        }),
        plans: told_in(rows) << 32 | number(text(PLANS)).unwrap_or_default(),
        steers: text(PLANS_AS_ALL) != b"1",
        no_calls,
        tells_state,
        tells_transactions,
        rows: row.cell(ROWS).map(<[u8]>::to_vec),
    })
}

/// The number of the character set and collation in which the session is told strings: no variable has the collation, which is that of a login or a
/// SET NAMES.
fn told_in(rows: &Rows) -> u64 {
    let column = rows.columns().get(DATABASE);
    let number = column.and_then(|definition| column::character_set(definition));
    number.unwrap_or_default().into()
}

/// A time zone that is an offset: `+05:30`, or `UTC`. Others have hours that come twice.
fn offset(zone: &[u8]) -> Option<i64> {
    if zone == b"UTC" {
        return Some(0);
    }
    let [sign, h, hh, b':', m, mm] = *zone else {
        return None;
    };
    let two = |tens: u8, ones: u8| {
        let digits = tens.is_ascii_digit() && ones.is_ascii_digit();
        digits.then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
    };
    let minutes = two(h, hh)? * 60 + two(m, mm)?;
    match sign {
        b'+' => Some(minutes * 60_000_000),
        b'-' => Some(-minutes * 60_000_000),
        _ => None,
    }
}

fn number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Oracle mode changes the grammar.
fn is_no_oracle(modes: &[u8]) -> bool {
    let mut modes = modes.split(|byte| *byte == b',');
    !modes.any(|mode| mode.eq_ignore_ascii_case(b"ORACLE"))
}

/// Under the other two values a read waits until all has been applied that others have committed before it.
fn waits_for_no_group(level: &[u8]) -> bool {
    ["EVENTUAL", "BEFORE_ON_PRIMARY_FAILOVER", "AFTER"]
        .iter()
        .any(|free| level.eq_ignore_ascii_case(free.as_bytes()))
}

fn is_off(value: &[u8]) -> bool {
    value == b"0" || value.eq_ignore_ascii_case(b"OFF")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_zone_is_an_offset_or_not_known() {
        let minutes = |zone: &str| offset(zone.as_bytes()).map(|ahead| ahead / 60_000_000);
        for (zone, expected) in [
            ("+00:00", Some(0)),
            ("+05:30", Some(330)),
            ("-11:00", Some(-660)),
            ("SYSTEM", None),
            ("Europe/Berlin", None),
            ("UTC", Some(0)),
            ("CET", None),
            ("05:30", None),
            ("+5:30", None),
            ("+05:30 ", None),
            ("+-5:30", None),
            ("++5:30", None),
            ("", None),
        ] {
            assert_eq!(minutes(zone), expected, "{zone}");
        }
    }

    #[test]
    fn what_a_node_of_a_cluster_is_asked_for_is_not_asked_of_others() {
        let [node, other] = [true, false].map(|galera| {
            settings_query(Asked {
                mariadb: true,
                galera,
            })
        });
        assert!(node.ends_with(GALERA_WAITS) && !other.contains("wsrep"));
        // A session that was asked without it has the identity of another server.
        assert!(node.contains("@@wsrep_node_name"));
    }

    #[test]
    fn two_levels_of_a_group_hold_reads_up() {
        for (level, free) in [
            ("EVENTUAL", true),
            ("BEFORE_ON_PRIMARY_FAILOVER", true),
            ("BEFORE", false),
            ("AFTER", true),
            ("BEFORE_AND_AFTER", false),
            ("", false),
        ] {
            assert_eq!(waits_for_no_group(level.as_bytes()), free, "{level}");
        }
    }
}
