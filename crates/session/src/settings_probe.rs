//! The settings probe before a served call, and how its results are judged.

use std::time::Duration;

use super::call_relay_reason::CallRelayReason;
use headwater_sql::contains_ignoring_case;
use headwater_wire::capability::Capabilities;
use headwater_wire::resultset::{ResultSet, column};
use headwater_wire::status;

/// A variable, and whether a call may be served under its value.
type SettingVariable = (&'static str, fn(&[u8]) -> bool);

/// The first column: the current database.
const DATABASE_COLUMN: usize = 0;
/// The next column: the server's identity; NULL in a session that reads uncommitted data (`READ-UNCOMMITTED`), which memory does not have.
const SERVER_COLUMN: usize = 1;
/// The next column: after how many idle seconds the server ends the session.
const WAIT_TIMEOUT_COLUMN: usize = 2;
/// The next column: whether a read inside a transaction takes locks (`SERIALIZABLE`).
const READS_LOCK_COLUMN: usize = 3;
/// The next columns: the time zone, and the one that SYSTEM stands for.
const TIME_ZONE_COLUMN: usize = 4;
const SYSTEM_TIME_ZONE_COLUMN: usize = 5;
/// The next columns: a digest of the settings that plans and column definitions depend on, and whether those of plans equal any other
/// session's.
const PLANS_COLUMN: usize = 6;
const PLANS_DEFAULT_COLUMN: usize = 7;
/// The next column: what the session's rows depend on.
const ROWS_COLUMN: usize = 8;
/// The next column: who reads, see [`ACCOUNT`].
const ACCOUNT_COLUMN: usize = 9;
const FIRST_VARIABLE_COLUMN: usize = 10;
const VARIABLES: [SettingVariable; 10] = [
    ("sql_mode", is_no_oracle),
    // A statement-based log would lack what the call writes to it.
    ("binlog_format", |value| value != b"STATEMENT"),
    ("max_heap_table_size", |value| {
        number(value) >= Some(HEAP_BYTES)
    }),
    ("sql_select_limit", |value| number(value) == Some(u64::MAX)),
    ("sql_big_selects", |value| number(value) == Some(1)),
    ("sql_safe_updates", is_off),
    ("profiling", is_off),
    (STATE_TRACKER, is_off),
    (TRANSACTION_TRACKER, is_off),
    ("sql_buffer_result", is_off),
];
const MARIADB_VARIABLES: [SettingVariable; 4] = [
    ("tx_read_only", is_off),
    // NULL, or the engine that the procedure names.
    ("enforce_storage_engine", |value| {
        value.is_empty() || value.eq_ignore_ascii_case(b"MEMORY")
    }),
    ("max_session_mem_used", |value| {
        number(value) >= Some(SESSION_BYTES)
    }),
    // Above it an id list becomes a derived table, and the columns have other flags.
    ("in_predicate_conversion_threshold", |value| {
        number(value).is_some_and(|ids| ids == 0 || ids >= u64::from(LONG_LIST))
    }),
];
const MYSQL_VARIABLES: [SettingVariable; 8] = [
    (GROUP_CONSISTENCY, waits_for_no_group),
    // The procedure creates its tables in MEMORY.
    ("disabled_storage_engines", |value| {
        !["MEMORY", "HEAP"]
            .iter()
            .any(|name| contains_ignoring_case(value, name))
    }),
    ("transaction_read_only", is_off),
    ("sql_require_primary_key", is_off),
    ("session_track_gtids", is_off),
    // The server reports a number that it gives each statement after each.
    ("session_track_system_variables", |value| {
        !value.contains(&b'*') && !contains_ignoring_case(value, "statement_id")
    }),
    ("require_row_format", is_off),
    ("gtid_next", |value| {
        value.eq_ignore_ascii_case(b"AUTOMATIC")
    }),
];
/// Whether reads on a group member (MySQL Group Replication) wait for the others; servers outside any group have it too.
const GROUP_CONSISTENCY: &str = "group_replication_consistency";
/// Whether transactions are read-only: SELECTs work as usual then, but a procedure cannot create its tables.
const READ_ONLY_VARIABLES: [&str; 2] = ["tx_read_only", "transaction_read_only"];
/// The tracker of state that a SELECT does not change.
const STATE_TRACKER: &str = "session_track_state_change";
/// The tracker of transactions. Outside of them a SELECT reports no state; it may report that the settings for the last one have ended.
const TRANSACTION_TRACKER: &str = "session_track_transaction_info";
/// What is reported at the end of replies, to clients that negotiated it.
const TRACKERS: [&str; 4] = [
    STATE_TRACKER,
    TRANSACTION_TRACKER,
    "session_track_gtids",
    "session_track_system_variables",
];
/// Whether reads on a Galera node wait until it has applied what the others committed. Only servers built for clusters know the variable,
/// so only nodes are queried for it.
const GALERA_WAITS: &str = "@@wsrep_sync_wait&1";
/// What a plan depends on, besides the tables: under other values the server may define the columns of a feed's statement otherwise, or
/// warn of one. Every release knows all of them.
const PLAN_SETTINGS: [&str; 8] = [
    "optimizer_switch",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "eq_range_index_dive_limit",
    "max_seeks_for_key",
    "max_join_size",
    "join_buffer_size",
    "sort_buffer_size",
];
const PLAN_SETTINGS_MARIADB: [&str; 5] = [
    "optimizer_use_condition_selectivity",
    "optimizer_selectivity_sampling_limit",
    "use_stat_tables",
    "join_cache_level",
    "in_predicate_conversion_threshold",
];
const PLAN_SETTINGS_MYSQL: [&str; 2] = ["range_optimizer_max_mem_size", "tmp_table_size"];
/// What column definitions depend on besides `character_set_results`: character set and collation of literals, and whether `''` is NULL.
const METADATA_SETTINGS: [&str; 3] = [
    "@@character_set_connection",
    "@@collation_connection",
    "@@sql_mode",
];
/// What rows of plain columns and their comparisons with literals depend on: how characters are sent and compared, how a TIMESTAMP is
/// sent, whether CHAR is padded; and from when on a statement is reported as slow. The rest may matter for rows that are cached one day.
const ROW_SETTINGS: [&str; 11] = [
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
/// What the server looks a session's rights up by: the login's name and host, the account that it chose by them, and the active roles.
/// Rights to a database may be those of another account of the same name, as the host decides.
const ACCOUNT: &str = "CONCAT_WS(0x00,USER(),CURRENT_USER(),CURRENT_ROLE())";
/// With this setting on, `id IS NULL` may mean the last inserted id.
const AUTO_IS_NULL: &str = "sql_auto_is_null";
/// From this many ids on, MariaDB makes a list a derived table by default.
pub const LONG_LIST: u16 = 1_000;
/// Far more than a call needs.
const SESSION_BYTES: u64 = 16 * 1024 * 1024;
/// The procedure's table of at most n x n ids (`limits.pending_ids`, at most 30,000) must fit the session's limit for MEMORY tables.
const HEAP_BYTES: u64 = 1024 * 1024;

/// What is known of a server before the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbedServer {
    /// True for MariaDB, false for MySQL.
    pub mariadb: bool,
    /// A node of a Galera cluster (MariaDB's).
    pub galera: bool,
}

impl ProbedServer {
    /// A server that is no Galera node, as far as is known.
    #[must_use]
    pub fn of(mariadb: bool) -> ProbedServer {
        ProbedServer {
            mariadb,
            galera: false,
        }
    }
}

/// The identity of a connection's server, as one SQL expression that any account may evaluate.
///
/// A Galera node's identity comes only with the settings that matter there: a session that was probed without these has another server
/// than memory.
#[must_use]
pub fn server_identity(server: ProbedServer) -> &'static str {
    match server {
        ProbedServer { galera: true, .. } => {
            "CONCAT_WS(0x2f,@@server_id,@@hostname,@@port,@@datadir,@@wsrep_node_name)"
        }
        ProbedServer { mariadb: true, .. } => {
            "CONCAT_WS(0x2f,@@server_id,@@hostname,@@port,@@datadir)"
        }
        // A copy of a data directory has the same UUID.
        ProbedServer { .. } => "CONCAT_WS(0x2f,@@server_uuid,@@hostname,@@port,@@datadir)",
    }
}

/// The session's current database and the settings that change what the procedure would do.
#[must_use]
pub fn settings_query(probed_server: ProbedServer) -> String {
    let mariadb = probed_server.mariadb;
    let isolation = match mariadb {
        true => "tx_isolation",
        false => "transaction_isolation",
    };
    let server = server_identity(probed_server);
    let mut columns = vec![
        "DATABASE()".to_owned(),
        format!("IF(@@{isolation}=0x524541442d554e434f4d4d4954544544,NULL,{server})"),
        "@@wait_timeout".to_owned(),
        format!("@@{isolation}=0x53455249414c495a41424c45"),
        "@@time_zone".to_owned(),
        "@@system_time_zone".to_owned(),
    ];
    let [own, of_all] = ["@@", "@@global."].map(|scope| plan_settings(mariadb, scope));
    let describing = METADATA_SETTINGS.join(",");
    columns.push(format!(
        "CRC32(CONCAT_WS(0x2f,IFNULL(@@character_set_results,0x2d),{describing},{own}))"
    ));
    columns.push(format!("CONCAT_WS(0x2f,{own})=CONCAT_WS(0x2f,{of_all})"));
    let rows: Vec<String> = ROW_SETTINGS
        .iter()
        .map(|name| format!("@@{name}"))
        .collect();
    columns.push(format!(
        "IF(@@{AUTO_IS_NULL},NULL,CONCAT_WS(0x2f,IFNULL(@@character_set_results,0x2d),{}))",
        rows.join(",")
    ));
    columns.push(ACCOUNT.into());
    columns.extend(variables(mariadb).map(|(name, _)| format!("@@{name}")));
    if !mariadb {
        columns.push("@@optimizer_switch<>@@global.optimizer_switch".into());
    }
    if probed_server.galera {
        columns.push(GALERA_WAITS.into());
    }
    format!("SELECT {}", columns.join(","))
}

/// What plans depend on, as a list of SQL expressions.
fn plan_settings(mariadb: bool, scope: &str) -> String {
    let product_settings: &[&str] = match mariadb {
        true => &PLAN_SETTINGS_MARIADB,
        false => &PLAN_SETTINGS_MYSQL,
    };
    let names = PLAN_SETTINGS.iter().chain(product_settings);
    let names: Vec<String> = names.map(|name| format!("{scope}{name}")).collect();
    names.join(",")
}

/// The variables of [`settings_query`], in the order of its columns from `FIRST_VARIABLE_COLUMN` on.
fn variables(mariadb: bool) -> impl Iterator<Item = SettingVariable> {
    let product_variables: &[SettingVariable] = if mariadb {
        &MARIADB_VARIABLES
    } else {
        &MYSQL_VARIABLES
    };
    VARIABLES
        .into_iter()
        .chain(product_variables.iter().copied())
}

/// The variables under which no call may be served, with their values, from the one row that [`settings_query`] returns.
#[must_use]
pub fn unsuitable_settings(mariadb: bool, row: &[Option<Vec<u8>>]) -> Vec<(&'static str, String)> {
    let cells = row.iter().map(|cell| cell.as_deref().unwrap_or_default());
    variables(mariadb)
        .zip(cells.skip(FIRST_VARIABLE_COLUMN))
        .filter(|((_, fits), value)| !fits(value))
        .map(|((name, _), value)| (name, String::from_utf8_lossy(value).into_owned()))
        .collect()
}

/// A session's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSettings {
    /// The current database, if one is chosen.
    pub database: Option<Vec<u8>>,
    /// The server's identity, in the form that the feed uses.
    pub server: Vec<u8>,
    /// How long the server waits for an idle session before it ends it.
    pub wait_timeout: Duration,
    /// A read inside a transaction takes locks, and sees what is committed when it runs (`SERIALIZABLE`).
    pub reads_lock: bool,
    /// How far its time zone is ahead of UTC, in microseconds, if that is constant.
    pub utc_offset: Option<i64>,
    /// A text in double quotes is a name (`ANSI_QUOTES`).
    pub quotes_names: bool,
    /// A digest of the settings that plans and column definitions depend on.
    pub plan_settings: u64,
    /// The settings that plans depend on differ from other sessions'.
    pub has_own_plan_settings: bool,
    /// No call may be served, while SELECTs work as usual: its transactions are read-only, or a tracker reports what a procedure does.
    pub bars_calls: bool,
    /// The end of replies reports changes of the session's state to the client.
    pub tracks_state: bool,
    /// The end of replies reports the transaction's state to the client.
    pub tracks_transactions: bool,
    /// All settings that rows depend on; `None`: rows may depend on more.
    pub row_settings: Option<Vec<u8>>,
    /// What the server looks the session's rights up by: user, host and roles.
    pub account: Vec<u8>,
}

/// Judges the flags after the row that [`settings_query`] returns.
///
/// # Errors
/// The reason why no call may be served there.
pub fn judge_flags(rows: &ResultSet) -> Result<(), CallRelayReason> {
    let flags = rows.end().status;
    if flags & status::IN_TRANS != 0 {
        return Err(CallRelayReason::InTransaction);
    }
    match flags & status::AUTOCOMMIT {
        0 => Err(CallRelayReason::AutocommitOff),
        _ => Ok(()),
    }
}

/// Judges the one row that [`settings_query`] returns. Trackers matter to a client that negotiated their reports.
///
/// # Errors
/// The reason why no call may be served under these settings.
pub fn judge_settings(
    mariadb: bool,
    capabilities: Capabilities,
    rows: &ResultSet,
) -> Result<SessionSettings, CallRelayReason> {
    let row = rows.iter().next().ok_or(CallRelayReason::Settings)?;
    let text = |column| row.cell(column).unwrap_or_default();
    let tracks = capabilities.contains(Capabilities::SESSION_TRACK);
    // An EOF has no room for the changes: a later statement's reply reports them.
    let at_once = capabilities.contains(Capabilities::DEPRECATE_EOF);
    let (mut no_calls, mut tells_state, mut tells_transactions) = (false, false, false);
    let unfit = (FIRST_VARIABLE_COLUMN..)
        .zip(variables(mariadb))
        .map(|(column, (name, fits))| (name, fits, text(column)))
        .filter(|(_, fits, value)| !fits(value))
        .filter(|(name, ..)| tracks || !TRACKERS.contains(name));
    let mut unfit = unfit.filter_map(|(name, _, value)| {
        let transactions =
            name == TRANSACTION_TRACKER && at_once && value.eq_ignore_ascii_case(b"STATE");
        tells_state |= name == STATE_TRACKER;
        tells_transactions |= transactions;
        let of_calls = transactions || name == STATE_TRACKER || READ_ONLY_VARIABLES.contains(&name);
        no_calls |= of_calls;
        (!of_calls).then_some(name)
    });
    match unfit.next() {
        None => {}
        Some(GROUP_CONSISTENCY) if unfit.next().is_none() => {
            return Err(CallRelayReason::WaitsForCluster);
        }
        Some(_) => return Err(CallRelayReason::Settings),
    }
    // A session can omit the column definitions (`resultset_metadata`): then the columns are unknown.
    let variables_end = FIRST_VARIABLE_COLUMN + variables(mariadb).count();
    match (mariadb, rows.columns().len().checked_sub(variables_end)) {
        (true, Some(0)) => {}
        (true, Some(1)) if is_off(text(variables_end)) => {}
        (true, Some(1)) => return Err(CallRelayReason::WaitsForCluster),
        (false, Some(1)) if is_off(text(variables_end)) => {}
        _ => return Err(CallRelayReason::Settings),
    }
    Ok(SessionSettings {
        database: row.cell(DATABASE_COLUMN).map(<[u8]>::to_vec),
        server: text(SERVER_COLUMN).to_vec(),
        wait_timeout: Duration::from_secs(number(text(WAIT_TIMEOUT_COLUMN)).unwrap_or_default()),
        reads_lock: text(READS_LOCK_COLUMN) != b"0",
        utc_offset: utc_offset(match text(TIME_ZONE_COLUMN) {
            b"SYSTEM" => text(SYSTEM_TIME_ZONE_COLUMN),
            zone => zone,
        }),
        quotes_names: has_mode(text(FIRST_VARIABLE_COLUMN), "ANSI_QUOTES"),
        plan_settings: string_collation(rows) << 32
            | number(text(PLANS_COLUMN)).unwrap_or_default(),
        has_own_plan_settings: text(PLANS_DEFAULT_COLUMN) != b"1",
        bars_calls: no_calls,
        tracks_state: tells_state,
        tracks_transactions: tells_transactions,
        row_settings: row.cell(ROWS_COLUMN).map(<[u8]>::to_vec),
        account: text(ACCOUNT_COLUMN).to_vec(),
    })
}

/// The number of the character set and collation of strings sent to the session: no variable has the collation, which comes from a login
/// or a SET NAMES.
fn string_collation(rows: &ResultSet) -> u64 {
    let column = rows.columns().get(DATABASE_COLUMN);
    let number = column.and_then(|definition| column::character_set(definition));
    number.unwrap_or_default().into()
}

/// The offset of a time zone such as `+05:30` or `UTC`; other zones have hours that occur twice.
fn utc_offset(zone: &[u8]) -> Option<i64> {
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

/// True without Oracle mode, which changes the grammar.
fn is_no_oracle(modes: &[u8]) -> bool {
    !has_mode(modes, "ORACLE")
}

/// True if `sql_mode` has this mode. A mode that stands for several is listed with all of them.
fn has_mode(modes: &[u8], mode: &str) -> bool {
    let mut modes = modes.split(|byte| *byte == b',');
    modes.any(|own| own.eq_ignore_ascii_case(mode.as_bytes()))
}

/// Under the other two values a read waits until the member has applied all that others committed before.
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
        let minutes = |zone: &str| utc_offset(zone.as_bytes()).map(|ahead| ahead / 60_000_000);
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
    fn cluster_settings_are_queried_from_nodes_alone() {
        let [node, other] = [true, false].map(|galera| {
            settings_query(ProbedServer {
                mariadb: true,
                galera,
            })
        });
        assert!(node.ends_with(GALERA_WAITS) && !other.contains("wsrep"));
        // A session that was probed without it has another server's identity.
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
