//! Memory outlives the stream that it was filled beside: where the log of the server that is there now holds all that memory is made of,
//! and nothing of its own in between, memory goes on from there.
//!
//! It is left as it stands when the connection to the server is lost. If the same server is there again, and was not started anew, its log
//! is followed from the position where it was left. Else its transactions are compared by their numbers (GTIDs), and the tables by their
//! definitions; a position means nothing in another server's log.
//!
//! Equal numbers prove that two logs are equal, never that the rows of two servers are: a replica may have skipped a transaction, and a
//! server that crashed may have lost what its log still has, or the settings of that time. So what goes on beside another server, or another
//! run of the same one, is not confirmed: nothing is answered by it until the rows that are there now were loaded in its place.

use std::sync::Arc;
use std::time::Instant;

use super::error::BinlogError;
use super::history::{self, FIRST_OFFSET};
use super::row_decoding::text;
use super::server_facts::ServerFacts;
use super::{Binlog, foreign_keys};
use crate::account::{AccountConnection, AccountError};
use crate::index::{BinlogPosition, TimelineId};
use crate::log::applied_gtids::AppliedGtids;
use crate::log::assembler::file_number;
use crate::log::gtid::{CommittedGtid, GtidSet};
use crate::log::replication_state::SuspendedMemory;
use crate::log::resume_search::ResumeSearch;
use crate::log::routes::TableRoute;
use crate::log::timeline_tables::TimelineTables;

/// No log has anything before.
const FIRST_POSITION: BinlogPosition = BinlogPosition {
    file: 0,
    offset: FIRST_OFFSET,
};
/// So many files are looked at, from the newest on, for the one in which memory's last transaction stands.
const MOST_FILES: usize = 100;

/// What was left when a stream was lost.
#[derive(Debug)]
pub(super) struct ResumeCheckpoint {
    /// Of which server it is.
    pub(super) server: Arc<ServerFacts>,
    /// Its log files' name, before the number.
    pub(super) base: String,
    /// Memory stands at its position in that server's log: nothing was being sought.
    pub(super) has_position: bool,
    /// Since when memory has been filled.
    pub(super) since: Instant,
    pub(super) suspended: SuspendedMemory,
}

/// How memory goes on.
#[derive(Debug)]
pub(super) struct ResumePlan {
    /// Places that do.
    pub(super) timelines: Vec<TimelineId>,
    /// Where their columns stand.
    pub(super) routes: Vec<TableRoute>,
    pub(super) applied_gtids: AppliedGtids,
    /// What is in memory already is passed over, up to where the log ended; and nothing of it is confirmed. `None`: it is the same run of
    /// the same server.
    pub(super) seek: Option<(ResumeSearch, BinlogPosition)>,
}

/// Where a stream begins.
#[derive(Debug)]
pub(super) struct StreamStart {
    pub(super) file: String,
    pub(super) base: String,
    pub(super) position: BinlogPosition,
    /// `None`: memory begins anew.
    pub(super) plan: Option<ResumePlan>,
    /// It begins where the stream before it ended.
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
    /// What the log held before is not told, or is of another server.
    pub(super) fn has_gap(&self) -> bool {
        let goes_on = |warm: &ResumePlan| warm.seek.is_none();
        !self.continues && !self.plan.as_ref().is_some_and(goes_on)
    }
}

/// Decides where to begin with the log of this server, which ends at `end`, in `file`.
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
    // It stays there until the stream has begun: this may be given up.
    let Some(remains) = binlog.state().checkpoint.clone() else {
        return Ok(continue_after(ended, server, anew));
    };
    let (before, left) = (&remains.server, &remains.suspended);
    // A server that was started anew writes to another file of its log. Right after its start the time of that proves nothing.
    let is_dated = left.floor.file == end.file || before.was_up_since(remains.since);
    if remains.has_position
        && before.is_same_run(server)
        && is_dated
        && remains.base == anew.base
        && (FIRST_POSITION..=end).contains(&left.floor)
    {
        return Ok(StreamStart {
            file: left.floor.file_name(&remains.base),
            base: remains.base.clone(),
            position: left.floor,
            plan: Some(ResumePlan {
                routes: routes_of(left, &left.timeline_ids),
                timelines: left.timeline_ids.clone(),
                applied_gtids: left.applied_gtids.clone().or_restart(),
                seek: None,
            }),
            continues: false,
        });
    }
    let sought = seek(binlog, conn, server, &remains).await?;
    match sought {
        Ok((file, seek, places)) => {
            let number = file_number(&file).map_or(0, |(_, number)| number);
            Ok(StreamStart {
                file,
                base: anew.base,
                position: BinlogPosition {
                    file: number,
                    offset: FIRST_OFFSET,
                },
                plan: Some(ResumePlan {
                    routes: routes_of(left, &places),
                    timelines: places,
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

/// Where a stream ended just now in this run of this server, the next one begins there: nothing is unheard in between.
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

/// Memory is emptied: says why.
pub(super) fn log_refill(why: &dyn std::fmt::Display) {
    tracing::info!("memory is filled anew beside this server: {why}");
}

fn routes_of(left: &SuspendedMemory, places: &[TimelineId]) -> Vec<TableRoute> {
    let own = |route: &&TableRoute| places.contains(&route.timeline_id);
    left.routes.routes.iter().filter(own).cloned().collect()
}

/// The file to begin with, and the places whose tables are the same; or why memory has to be emptied.
async fn seek(
    binlog: &Binlog,
    conn: &mut AccountConnection,
    server: &ServerFacts,
    remains: &ResumeCheckpoint,
) -> Result<Result<(String, ResumeSearch, Vec<TimelineId>), String>, BinlogError> {
    let (before, left) = (&remains.server, &remains.suspended);
    let failed = BinlogError::while_doing("the server's history cannot be read");
    if left.timeline_ids.is_empty() {
        return Ok(Err("no timeline was in it yet".to_owned()));
    }
    if !(before.gtids && server.gtids) {
        return Ok(Err(
            "the servers' transactions have no global ids (gtid_mode)".to_owned(),
        ));
    }
    let Some(held) = left.applied_gtids.applied() else {
        return Ok(Err(
            "it is not known which transactions memory is made of".to_owned()
        ));
    };
    let found = match find_file(conn, (&held.0, &held.1), server).await {
        Ok(found) => found,
        // Files come and go, or may not be looked at.
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
    let mut places = Vec::new();
    for place in &left.timeline_ids {
        let created =
            match foreign_keys::load_table_definitions(binlog.show_create_queries(*place), conn)
                .await
            {
                Ok(created) => created,
                // What may not be seen is not the same.
                Err(AccountError::Server(_)) => continue,
                Err(error) => return Err(failed(error)),
            };
        let printed = fingerprint(&created);
        if printed.is_some() && printed == binlog.table_fingerprint(*place) {
            places.push(*place);
        }
    }
    if places.is_empty() {
        return Ok(Err("the tables are defined otherwise there".to_owned()));
    }
    Ok(Ok((file, seek, places)))
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

/// The tables' definitions as one, but for what a table counts by; `None` where one is not there.
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
    /// The stream ends, and another one follows at once.
    pub(super) fn record_stream_end(&self) {
        let mut state = self.state();
        let server = state.server.clone();
        let server = server.filter(|_| !state.following.is_suspended());
        state.stream_end = server.map(|server| StreamEnd {
            server,
            base: state.log_base_name.clone(),
            position: state.following.received(),
        });
    }

    /// A place's tables, each with what asks for its definition.
    pub(super) fn show_create_queries(&self, place: TimelineId) -> Vec<(String, String)> {
        if let Some(table) = self.joined_table(place) {
            return vec![(table.table.clone(), table.show_create_query())];
        }
        let places = self.cached_timelines();
        let tables = places.get(place.0).map(|place| &place.tables);
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
