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
use super::obstacles::ServerFacts;
use super::rows::text;
use super::{Binlog, cascades};
use crate::account::{AccountError, Conn};
use crate::index::{PlaceId, Position};
use crate::log::events::file_number;
use crate::log::following::Left;
use crate::log::gtid::{Gtids, Stamp};
use crate::log::routes::Route;
use crate::log::seek::Seek;
use crate::log::tables::Tables;
use crate::log::trail::Trail;

/// No log has anything before.
const FIRST_POSITION: Position = Position {
    file: 0,
    offset: FIRST_OFFSET,
};
/// So many files are looked at, from the newest on, for the one in which memory's last transaction stands.
const MOST_FILES: usize = 100;

/// What was left when a stream was lost.
#[derive(Debug)]
pub(super) struct Remains {
    /// Of which server it is.
    pub(super) server: Arc<ServerFacts>,
    /// Its log files' name, before the number.
    pub(super) base: String,
    /// Memory stands at its position in that server's log: nothing was being sought.
    pub(super) stands: bool,
    /// Since when memory has been filled.
    pub(super) since: Instant,
    pub(super) left: Left,
}

/// How memory goes on.
#[derive(Debug)]
pub(super) struct Warm {
    /// Places that do.
    pub(super) places: Vec<PlaceId>,
    /// Where their columns stand.
    pub(super) routes: Vec<Route>,
    pub(super) trail: Trail,
    /// What is in memory already is passed over, up to where the log ended; and nothing of it is confirmed. `None`: it is the same run of
    /// the same server.
    pub(super) seek: Option<(Seek, Position)>,
}

/// Where a stream begins.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) file: String,
    pub(super) base: String,
    pub(super) position: Position,
    /// `None`: memory begins anew.
    pub(super) warm: Option<Warm>,
    /// It begins where the stream before it ended.
    pub(super) continues: bool,
}

/// Where a stream ended that another one follows at once.
#[derive(Debug)]
pub(super) struct StreamEnd {
    pub(super) server: Arc<ServerFacts>,
    pub(super) base: String,
    pub(super) position: Position,
}

impl Start {
    /// What the log held before is not told, or is of another server.
    pub(super) fn has_gap(&self) -> bool {
        let goes_on = |warm: &Warm| warm.seek.is_none();
        !self.continues && !self.warm.as_ref().is_some_and(goes_on)
    }
}

/// Decides where to begin with the log of this server, which ends at `end`, in `file`.
pub(super) async fn start(
    binlog: &Binlog,
    conn: &mut Conn,
    server: &ServerFacts,
    (file, base, end): (String, String, Position),
) -> Result<Start, BinlogError> {
    let anew = Start {
        file,
        base,
        position: end,
        warm: None,
        continues: false,
    };
    let ended = binlog.state().ended.take();
    // It stays there until the stream has begun: this may be given up.
    let Some(remains) = binlog.state().remains.clone() else {
        return Ok(behind(ended, server, anew));
    };
    let (before, left) = (&remains.server, &remains.left);
    // A server that was started anew writes to another file of its log. Right after its start the time of that proves nothing.
    let is_dated = left.floor.file == end.file || before.was_up_since(remains.since);
    if remains.stands
        && before.is_same_run(server)
        && is_dated
        && remains.base == anew.base
        && (FIRST_POSITION..=end).contains(&left.floor)
    {
        return Ok(Start {
            file: left.floor.file_name(&remains.base),
            base: remains.base.clone(),
            position: left.floor,
            warm: Some(Warm {
                routes: routes_of(left, &left.places),
                places: left.places.clone(),
                trail: left.trail.clone().or_new(),
                seek: None,
            }),
            continues: false,
        });
    }
    let sought = seek(binlog, conn, server, &remains).await?;
    match sought {
        Ok((file, seek, places)) => {
            let number = file_number(&file).map_or(0, |(_, number)| number);
            Ok(Start {
                file,
                base: anew.base,
                position: Position {
                    file: number,
                    offset: FIRST_OFFSET,
                },
                warm: Some(Warm {
                    routes: routes_of(left, &places),
                    places,
                    trail: {
                        let (held, last) = seek.held();
                        Trail::behind(held.clone(), last.clone())
                    },
                    seek: Some((seek, end)),
                }),
                continues: false,
            })
        }
        Err(why) => {
            says_anew(&why);
            Ok(anew)
        }
    }
}

/// Where a stream ended just now in this run of this server, the next one begins there: nothing is unheard in between.
fn behind(ended: Option<StreamEnd>, server: &ServerFacts, anew: Start) -> Start {
    let fits = |ended: &StreamEnd| {
        ended.server.is_same_run(server)
            && ended.base == anew.base
            && (FIRST_POSITION..=anew.position).contains(&ended.position)
    };
    match ended.filter(fits) {
        Some(ended) => Start {
            file: ended.position.file_name(&ended.base),
            position: ended.position,
            continues: true,
            ..anew
        },
        None => anew,
    }
}

/// Memory is emptied: says why.
pub(super) fn says_anew(why: &dyn std::fmt::Display) {
    tracing::info!("memory is filled anew beside this server: {why}");
}

fn routes_of(left: &Left, places: &[PlaceId]) -> Vec<Route> {
    let own = |route: &&Route| places.contains(&route.place);
    left.routes.routes.iter().filter(own).cloned().collect()
}

/// The file to begin with, and the places whose tables are the same; or why memory has to be emptied.
async fn seek(
    binlog: &Binlog,
    conn: &mut Conn,
    server: &ServerFacts,
    remains: &Remains,
) -> Result<Result<(String, Seek, Vec<PlaceId>), String>, BinlogError> {
    let (before, left) = (&remains.server, &remains.left);
    let failed = BinlogError::while_doing("the server's history cannot be read");
    if left.places.is_empty() {
        return Ok(Err("no timeline was in it yet".to_owned()));
    }
    if !(before.gtids && server.gtids) {
        return Ok(Err(
            "the servers' transactions have no global ids (gtid_mode)".to_owned(),
        ));
    }
    let Some(held) = left.trail.held() else {
        return Ok(Err(
            "it is not known which transactions memory is made of".to_owned()
        ));
    };
    let found = match find(conn, (&held.0, &held.1), server).await {
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
    for place in &left.places {
        let created = match cascades::created(binlog.show_create_queries(*place), conn).await {
            Ok(created) => created,
            // What may not be seen is not the same.
            Err(AccountError::Server(_)) => continue,
            Err(error) => return Err(failed(error)),
        };
        let printed = print(&created);
        if printed.is_some() && printed == binlog.print_of(*place) {
            places.push(*place);
        }
    }
    if places.is_empty() {
        return Ok(Err("the tables are defined otherwise there".to_owned()));
    }
    Ok(Ok((file, seek, places)))
}

async fn find(
    conn: &mut Conn,
    held: (&Gtids, &Stamp),
    server: &ServerFacts,
) -> Result<Option<(String, Seek)>, AccountError> {
    let rows = conn.rows("SHOW BINARY LOGS").await?;
    let mut files: Vec<String> = rows.iter().filter_map(|row| text(row, 0)).collect();
    files.reverse();
    for file in files.into_iter().take(MOST_FILES) {
        let Some(list) = history::before(conn, &file).await? else {
            return Ok(None);
        };
        if let Some(seek) = Seek::begin(held, &list, server.group.clone()) {
            return Ok(Some((file, seek)));
        }
    }
    Ok(None)
}

/// The tables' definitions as one, but for what a table counts by; `None` where one is not there.
pub(super) fn print(created: &[(String, Option<String>)]) -> Option<String> {
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
    pub(super) fn note_end(&self) {
        let mut state = self.state();
        let server = state.server.clone();
        let server = server.filter(|_| !state.following.is_aside());
        state.ended = server.map(|server| StreamEnd {
            server,
            base: state.base.clone(),
            position: state.following.received(),
        });
    }

    /// A place's tables, each with what asks for its definition.
    pub(super) fn show_create_queries(&self, place: PlaceId) -> Vec<(String, String)> {
        if let Some(table) = self.referred_at(place) {
            return vec![(table.table.clone(), table.show_create_query())];
        }
        let places = self.places();
        let tables = places.get(place.0).map(|place| &place.tables);
        tables.map_or_else(Vec::new, Tables::show_create_queries)
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
