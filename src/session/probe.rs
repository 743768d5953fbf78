//! What is asked of the server before a call is owned, and how the answers are judged.

use super::reason::Reason;
use crate::wire::resultset::Rows;
use crate::wire::status;

/// The first of the columns that must be off.
const SWITCHES: usize = 7;
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
    let server = server_identity(mariadb);
    let own = if mariadb {
        "@@tx_read_only"
    } else {
        "@@transaction_read_only,@@sql_require_primary_key,@@session_track_gtids,\
         @@optimizer_switch<>@@global.optimizer_switch"
    };
    format!(
        "SELECT DATABASE(),@@sql_mode,@@binlog_format,@@max_heap_table_size,\
         @@sql_select_limit,@@sql_big_selects,{server},@@sql_safe_updates,@@profiling,\
         @@session_track_state_change,@@session_track_transaction_info,@@sql_buffer_result,{own}"
    )
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
    if rows.columns().len() <= SWITCHES {
        return Err(Reason::Settings);
    }
    let text = |column| row.cell(column).unwrap_or_default();
    // Oracle mode changes the grammar; a statement-based log would miss what the call writes to it.
    let oracle = text(1)
        .split(|byte| *byte == b',')
        .any(|mode| mode.eq_ignore_ascii_case(b"ORACLE"));
    let numbers_ok = row.u64(3).is_some_and(|bytes| bytes >= HEAP_BYTES)
        && row.u64(4) == Some(u64::MAX)
        && row.u64(5) == Some(1);
    let switches_ok = (SWITCHES..rows.columns().len()).all(|column| is_off(text(column)));
    if oracle || text(2) == b"STATEMENT" || !numbers_ok || !switches_ok {
        return Err(Reason::Settings);
    }
    Ok(Settings {
        database: row.cell(0).map(<[u8]>::to_vec),
        server: text(6).to_vec(),
    })
}

fn is_off(value: &[u8]) -> bool {
    value == b"0" || value.eq_ignore_ascii_case(b"OFF")
}
