//! What is asked of the server before a call is owned, and how the answers are judged.

use super::reason::Reason;
use crate::wire::resultset::Rows;
use crate::wire::status;

/// The variables of the first columns; an empty name: that column is none.
const VARIABLES: [&str; 7] = [
    "",
    "sql_mode",
    "binlog_format",
    "max_heap_table_size",
    "sql_select_limit",
    "sql_big_selects",
    "",
];
/// The column that tells which server it is; NULL in a session that reads what is not committed (`READ-UNCOMMITTED`): no
/// memory has that.
const SERVER: usize = 6;
/// The variables behind them, which must be off.
const SWITCHES: [&str; 5] = [
    "sql_safe_updates",
    "profiling",
    "session_track_state_change",
    "session_track_transaction_info",
    "sql_buffer_result",
];
const MARIADB_SWITCHES: [&str; 1] = ["tx_read_only"];
const MYSQL_SWITCHES: [&str; 3] = [
    "transaction_read_only",
    "sql_require_primary_key",
    "session_track_gtids",
];
/// The procedure's table of at most n x n ids (`limits.pending_ids`, at most 30,000) must fit the session's limit for MEMORY tables.
const HEAP_BYTES: u64 = 1024 * 1024;

/// Which server a connection leads to, as one value of an SQL expression that any account may ask for.
#[must_use]
pub fn server_identity(mariadb: bool) -> &'static str {
    if mariadb {
        "CONCAT_WS(0x2f,@@server_id,@@hostname,@@port,@@datadir)"
    } else {
        "@@server_uuid"
    }
}

/// The session's current database and the settings that change what the procedure would do.
#[must_use]
pub fn settings_query(mariadb: bool) -> String {
    let mut columns = Vec::new();
    for (at, name) in variables(mariadb).enumerate() {
        columns.push(match at {
            0 => "DATABASE()".into(),
            SERVER => format!(
                "IF(@@{}=0x524541442d554e434f4d4d4954544544,NULL,{})",
                if mariadb {
                    "tx_isolation"
                } else {
                    "transaction_isolation"
                },
                server_identity(mariadb)
            ),
            _ => format!("@@{name}"),
        });
    }
    if !mariadb {
        columns.push("@@optimizer_switch<>@@global.optimizer_switch".into());
    }
    format!("SELECT {}", columns.join(","))
}

/// The names of the columns of [`settings_query`] that hold a variable each, from the first on.
fn variables(mariadb: bool) -> impl Iterator<Item = &'static str> {
    let own: &[&str] = if mariadb {
        &MARIADB_SWITCHES
    } else {
        &MYSQL_SWITCHES
    };
    VARIABLES
        .into_iter()
        .chain(SWITCHES)
        .chain(own.iter().copied())
}

/// The variables under which no call may be owned, with their values, from the one row that [`settings_query`] returns.
#[must_use]
pub fn unfit(mariadb: bool, row: &[Option<Vec<u8>>]) -> Vec<(&'static str, String)> {
    let cells = row.iter().map(|cell| cell.as_deref().unwrap_or_default());
    variables(mariadb)
        .zip(cells)
        .enumerate()
        .filter(|(column, (_, value))| !fits(*column, value))
        .map(|(_, (name, value))| (name, String::from_utf8_lossy(value).into_owned()))
        .collect()
}

/// What a session's settings say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The current database, if one is chosen.
    pub database: Option<Vec<u8>>,
    /// Which server it is: as the feed asks for it.
    pub server: Vec<u8>,
}

/// Judges the one row that [`settings_query`] returns.
///
/// # Errors
/// The reason why no call may be owned under these settings.
pub fn judge_settings(rows: &Rows) -> Result<Settings, Reason> {
    let flags = rows.end().status;
    if flags & status::IN_TRANS != 0 {
        return Err(Reason::InTransaction);
    }
    if flags & status::AUTOCOMMIT == 0 {
        return Err(Reason::AutocommitOff);
    }
    let row = rows.iter().next().ok_or(Reason::Settings)?;
    // A session can have the column definitions left out (`resultset_metadata`): then what there is is not known.
    if rows.columns().len() <= VARIABLES.len() {
        return Err(Reason::Settings);
    }
    let text = |column| row.cell(column).unwrap_or_default();
    if !(0..rows.columns().len()).all(|column| fits(column, text(column))) {
        return Err(Reason::Settings);
    }
    Ok(Settings {
        database: row.cell(0).map(<[u8]>::to_vec),
        server: text(SERVER).to_vec(),
    })
}

/// Whether a call may be owned under a column's value.
fn fits(column: usize, value: &[u8]) -> bool {
    let number = || std::str::from_utf8(value).ok()?.parse::<u64>().ok();
    match column {
        0 | SERVER => true,
        // Oracle mode changes the grammar.
        1 => !value
            .split(|byte| *byte == b',')
            .any(|mode| mode.eq_ignore_ascii_case(b"ORACLE")),
        // A statement-based log would miss what the call writes to it.
        2 => value != b"STATEMENT",
        3 => number().is_some_and(|bytes| bytes >= HEAP_BYTES),
        4 => number() == Some(u64::MAX),
        5 => number() == Some(1),
        _ => is_off(value),
    }
}

fn is_off(value: &[u8]) -> bool {
    value == b"0" || value.eq_ignore_ascii_case(b"OFF")
}
