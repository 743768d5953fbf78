//! Memory outlives the stream it was filled from: if the log of the next server holds all transactions that memory is made of, and no
//! others among them, memory is resumed there.
//!
//! Memory is suspended when the connection to the server is lost. If the same run of the same server is there again, its log is followed
//! from the last position. Otherwise transactions are compared by GTID, and tables by their definitions; a position means nothing in
//! another server's log.
//!
//! Equal GTIDs prove that two logs are equal, never that two servers' rows are: a replica may have skipped a transaction, and a crashed
//! server may have lost what its log still has, or the settings of that time. So memory resumed beside another server, or another run, is
//! unconfirmed: no call is served from an entry until its rows were loaded again.

use std::sync::Arc;
use std::time::Instant;

use super::error::BinlogError;
use super::history::{self, FIRST_OFFSET};
use super::row_decoding::text;
use super::server_facts::ServerFacts;
use super::{Binlog, foreign_keys};
use crate::account::{AccountConnection, AccountError};
use headwater_log::applied_gtids::AppliedGtids;
use headwater_log::assembler::file_number;
use headwater_log::gtid::{CommittedGtid, GtidSet};
use headwater_log::replication_state::SuspendedMemory;
use headwater_log::resume_search::ResumeSearch;
use headwater_log::routes::TableRoute;
use headwater_log::timeline_tables::TimelineTables;
use headwater_timeline::index::{BinlogPosition, TableId};

/// The first position of any log.
const FIRST_POSITION: BinlogPosition = BinlogPosition {
    file: 0,
    offset: FIRST_OFFSET,
};
/// The most files read, from the newest on, to find memory's last transaction.
const MOST_FILES: usize = 100;

/// What remained when a stream was lost.
#[derive(Debug)]
pub(super) struct ResumeCheckpoint {
    pub(super) server: Arc<ServerFacts>,
    /// The base name of its log files, before the number.
    pub(super) base: String,
    /// Memory has a position in that server's log: no search was running.
    pub(super) has_position: bool,
    /// Since when memory has been filled.
    pub(super) since: Instant,
    pub(super) suspended: SuspendedMemory,
}

#[derive(Debug)]
pub(super) struct ResumePlan {
    /// The tables with which memory goes on.
    pub(super) tables: Vec<TableId>,
    /// The positions of their columns.
    pub(super) routes: Vec<TableRoute>,
    pub(super) applied_gtids: AppliedGtids,
    /// Transactions to skip, up to the end of the log; memory is then unconfirmed. `None`: it is the same run of the same server.
    pub(super) seek: Option<(ResumeSearch, BinlogPosition)>,
}

#[derive(Debug)]
pub(super) struct StreamStart {
    pub(super) file: String,
    pub(super) base: String,
    pub(super) position: BinlogPosition,
    /// `None`: memory is filled from nothing.
    pub(super) plan: Option<ResumePlan>,
    /// It starts where the previous stream ended.
    pub(super) continues: bool,
}

/// Where a stream ended that another one follows at once.
#[derive(Debug)]
pub(super) struct StreamEnd {
    pub(super) server: Arc<ServerFacts>,
    pub(super) base: String,
    pub(super) position: BinlogPosition,
}

impl StreamStart {
    /// True if events may be missing between the previous stream and this one.
    pub(super) fn has_gap(&self) -> bool {
        let is_same_run = |plan: &ResumePlan| plan.seek.is_none();
        !self.continues && !self.plan.as_ref().is_some_and(is_same_run)
    }
}

/// Decides where to start in the log of this server, which ends at `end`, in `file`.
pub(super) async fn start(
    binlog: &Binlog,
    conn: &mut AccountConnection,
    server: &ServerFacts,
    (file, base, end): (String, String, BinlogPosition),
) -> Result<StreamStart, BinlogError> {
    let anew = StreamStart {
        file,
        base,
        position: end,
        plan: None,
        continues: false,
    };
    let ended = binlog.state().stream_end.take();
    // The checkpoint stays until the stream has begun: this future may be dropped.
    let Some(checkpoint) = binlog.state().checkpoint.clone() else {
        return Ok(continue_after(ended, server, anew));
    };
    let (before, suspended) = (&checkpoint.server, &checkpoint.suspended);
    // A restarted server writes to another log file. Right after its start, its uptime proves nothing.
    let is_dated = suspended.floor.file == end.file || before.was_up_since(checkpoint.since);
    if checkpoint.has_position
        && before.is_same_run(server)
        && is_dated
        && checkpoint.base == anew.base
        && (FIRST_POSITION..=end).contains(&suspended.floor)
    {
        return Ok(StreamStart {
            file: suspended.floor.file_name(&checkpoint.base),
            base: checkpoint.base.clone(),
            position: suspended.floor,
            plan: Some(ResumePlan {
                routes: routes_of(suspended, &suspended.tables),
                tables: suspended.tables.clone(),
                applied_gtids: suspended.applied_gtids.clone().or_restart(),
                seek: None,
            }),
            continues: false,
        });
    }
    let sought = seek(binlog, conn, server, &checkpoint).await?;
    match sought {
        Ok((file, seek, tables)) => {
            let number = file_number(&file).map_or(0, |(_, number)| number);
            Ok(StreamStart {
                file,
                base: anew.base,
                position: BinlogPosition {
                    file: number,
                    offset: FIRST_OFFSET,
                },
                plan: Some(ResumePlan {
                    routes: routes_of(suspended, &tables),
                    tables,
                    applied_gtids: {
                        let (held, last) = seek.applied();
                        AppliedGtids::starting_after(held.clone(), last.clone())
                    },
                    seek: Some((seek, end)),
                }),
                continues: false,
            })
        }
        Err(why) => {
            log_refill(&why);
            Ok(anew)
        }
    }
}

/// Starts where a stream of this run of this server ended just now: no event is missing in between.
fn continue_after(
    ended: Option<StreamEnd>,
    server: &ServerFacts,
    anew: StreamStart,
) -> StreamStart {
    let fits = |ended: &StreamEnd| {
        ended.server.is_same_run(server)
            && ended.base == anew.base
            && (FIRST_POSITION..=anew.position).contains(&ended.position)
    };
    match ended.filter(fits) {
        Some(ended) => StreamStart {
            file: ended.position.file_name(&ended.base),
            position: ended.position,
            continues: true,
            ..anew
        },
        None => anew,
    }
}

pub(super) fn log_refill(why: &dyn std::fmt::Display) {
    tracing::info!("memory is filled anew beside this server: {why}");
}

fn routes_of(suspended: &SuspendedMemory, tables: &[TableId]) -> Vec<TableRoute> {
    let is_resumed = |route: &&TableRoute| tables.contains(&route.table_id);
    suspended
        .routes
        .routes
        .iter()
        .filter(is_resumed)
        .cloned()
        .collect()
}

/// The file to start with, and the tables that are the same; or why memory must be emptied.
async fn seek(
    binlog: &Binlog,
    conn: &mut AccountConnection,
    server: &ServerFacts,
    checkpoint: &ResumeCheckpoint,
) -> Result<Result<(String, ResumeSearch, Vec<TableId>), String>, BinlogError> {
    let (before, suspended) = (&checkpoint.server, &checkpoint.suspended);
    let failed = BinlogError::while_doing("the server's history cannot be read");
    if suspended.tables.is_empty() {
        return Ok(Err("no timeline was in it yet".to_owned()));
    }
    if !(before.gtids && server.gtids) {
        return Ok(Err(
            "the servers' transactions have no global ids (gtid_mode)".to_owned(),
        ));
    }
    let Some(held) = suspended.applied_gtids.applied() else {
        return Ok(Err(
            "it is not known which transactions memory is made of".to_owned()
        ));
    };
    let found = match find_file(conn, (&held.0, &held.1), server).await {
        Ok(found) => found,
        // Files are purged meanwhile, or may not be read.
        Err(AccountError::Server(error)) => {
            return Ok(Err(format!(
                "the server's history cannot be read: {}",
                String::from_utf8_lossy(&error.message)
            )));
        }
        Err(error) => return Err(failed(error)),
    };
    let Some((file, seek)) = found else {
        return Ok(Err(
            "the server has transactions of its own among those that memory is made of, or has deleted the log of that time"
                .to_owned(),
        ));
    };
    let mut tables = Vec::new();
    for table in &suspended.tables {
        let created =
            match foreign_keys::load_table_definitions(binlog.show_create_queries(*table), conn)
                .await
            {
                Ok(created) => created,
                // A table that may not be seen counts as changed.
                Err(AccountError::Server(_)) => continue,
                Err(error) => return Err(failed(error)),
            };
        let printed = fingerprint(&created);
        if printed.is_some() && printed == binlog.table_fingerprint(*table) {
            tables.push(*table);
        }
    }
    if tables.is_empty() {
        return Ok(Err("the tables are defined otherwise there".to_owned()));
    }
    Ok(Ok((file, seek, tables)))
}

async fn find_file(
    conn: &mut AccountConnection,
    held: (&GtidSet, &CommittedGtid),
    server: &ServerFacts,
) -> Result<Option<(String, ResumeSearch)>, AccountError> {
    let rows = conn.rows("SHOW BINARY LOGS").await?;
    let mut files: Vec<String> = rows.iter().filter_map(|row| text(row, 0)).collect();
    files.reverse();
    for file in files.into_iter().take(MOST_FILES) {
        let Some(list) = history::previous_gtids(conn, &file).await? else {
            return Ok(None);
        };
        if let Some(seek) = ResumeSearch::begin(held, &list, server.group.clone()) {
            return Ok(Some((file, seek)));
        }
    }
    Ok(None)
}

/// The tables' definitions joined, without the AUTO_INCREMENT counters; `None` if a table is missing.
pub(super) fn fingerprint(created: &[(String, Option<String>)]) -> Option<String> {
    let mut print = String::new();
    for (_, created) in created {
        print.push_str(&without_counter(created.as_ref()?));
        print.push('\n');
    }
    Some(print)
}

/// SHOW CREATE TABLE without ` AUTO_INCREMENT=…` in its last line.
fn without_counter(created: &str) -> String {
    const COUNTER: &str = " AUTO_INCREMENT=";
    let last = created.rfind('\n').unwrap_or(0);
    let (columns, options) = created.split_at(last);
    let Some((before, behind)) = options.split_once(COUNTER) else {
        return created.to_owned();
    };
    let behind = behind.trim_start_matches(|digit: char| digit.is_ascii_digit());
    format!("{columns}{before}{behind}")
}

impl Binlog {
    /// Records where the stream ends, for one that follows at once.
    pub(super) fn record_stream_end(&self) {
        let mut state = self.state();
        let server = state.server.clone();
        let server = server.filter(|_| !state.replication.is_suspended());
        state.stream_end = server.map(|server| StreamEnd {
            server,
            base: state.log_base_name.clone(),
            position: state.replication.received(),
        });
    }

    /// A joined table, or a timeline's tables, each with its SHOW CREATE TABLE query.
    pub(super) fn show_create_queries(&self, table: TableId) -> Vec<(String, String)> {
        let Some(timeline) = table.timeline() else {
            let joined = self.joined_table(table).into_iter();
            let queries = joined.map(|it| (it.table.clone(), it.show_create_query()));
            return queries.collect();
        };
        let timelines = self.cached_timelines();
        let tables = timelines.get(timeline.0).map(|it| &it.tables);
        tables.map_or_else(Vec::new, TimelineTables::show_create_queries)
    }
}

#[cfg(test)]
mod tests {
    use super::without_counter;

    #[test]
    fn what_a_table_counts_by_is_left_out_of_its_definition() {
        let create = "CREATE TABLE `t` (\n  `a` int COMMENT ' AUTO_INCREMENT=5'\n) ENGINE=InnoDB AUTO_INCREMENT=17 DEFAULT CHARSET=utf8mb4";
        assert_eq!(
            without_counter(create),
            "CREATE TABLE `t` (\n  `a` int COMMENT ' AUTO_INCREMENT=5'\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
        );
        let plain = "CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB";
        assert_eq!(without_counter(plain), plain);
    }
}
