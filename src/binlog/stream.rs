//! Follows the server's log as a replica does, and begins again when that fails.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::error::BinlogError;
use super::obstacles::{self, Obstacle, ServerFacts};
use super::passing::Passing;
use super::resume::{self, Start, Warm};
use super::right::Right;
use super::rows::{log_end, text};
use super::{Binlog, fence, history, lag, replica};
use crate::account::log::Request;
use crate::account::{AccountError, Conn, Purpose};
use crate::binlog::load::Load;
use crate::clock;
use crate::index::PlaceId;
use crate::log::events::{Events, Heard, Lost};
use crate::log::following::Generation;
use crate::log::routes::{Route, Routes};

/// A sign of life of the server, where nothing else is to be told.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// After so long without one the connection is given up.
const SILENCE: Duration = Duration::from_secs(5);
/// Waits between attempts double from the first to the last.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LAST_WAIT: Duration = Duration::from_secs(10);
/// A stream that has lasted so long is tried again at once.
const STEADY: Duration = Duration::from_secs(10);

/// Follows the log for good.
pub(super) async fn run(binlog: Arc<Binlog>) {
    let mut news = News::default();
    let mut wait = FIRST_WAIT;
    loop {
        let begun = clock::now();
        let Err(error) = tokio::select! {
            biased;
            () = binlog.moved.notified() => Err(BinlogError::Moved),
            error = follow(&binlog, &mut news) => error,
        };
        if matches!(error, BinlogError::Late) {
            binlog.note_end();
        }
        match error.leaves_memory() {
            true => binlog.leave(),
            false => binlog.step_aside(),
        }
        let aside = error.aside(binlog.account.user());
        binlog.aside.send_replace(Some(aside));
        if matches!(
            error,
            BinlogError::Late | BinlogError::Asked | BinlogError::Moved
        ) {
            continue;
        }
        if let BinlogError::Strayed(why) = &error {
            resume::says_anew(why);
            continue;
        }
        if let BinlogError::Lost(lost) = &error {
            if matches!(lost, Lost::Unreadable(_) | Lost::Statement(_)) {
                binlog.unreadable.fetch_add(1, Ordering::Relaxed);
            }
            if lost.may_redefine() {
                binlog.redefined();
            }
        }
        if matches!(error, BinlogError::SameNumber(_)) {
            let [old, new] = binlog.replica.give_up();
            tracing::info!(
                old,
                new,
                "another replica of the server has come with the number of Headwater's: another number is drawn"
            );
            // Whoever takes each number in turn is waited for as after any other trouble.
            if clock::since(begun) > FIRST_WAIT {
                continue;
            }
        }
        news.trouble(&error);
        wait = if clock::since(begun) > STEADY {
            FIRST_WAIT
        } else {
            (wait * 2).min(LAST_WAIT)
        };
        tokio::select! {
            biased;
            () = tokio::time::sleep(wait) => {}
            () = binlog.moved.notified() => wait = FIRST_WAIT,
        }
    }
}

/// What the log was told of the stream: each change once.
#[derive(Default)]
struct News {
    trouble: Option<String>,
    followed_before: bool,
}

impl News {
    fn trouble(&mut self, error: &BinlogError) {
        let text = error.to_string();
        if matches!(error, BinlogError::Contradiction(_)) {
            tracing::error!("nothing is answered from memory: {text}");
            self.trouble = Some(text);
        } else if self.trouble.as_ref() != Some(&text) {
            if !error.was_said() {
                tracing::warn!("nothing is answered from memory: {text}");
            }
            self.trouble = Some(text);
        }
    }

    fn followed(&mut self) {
        let before = std::mem::replace(&mut self.followed_before, true);
        match self.trouble.take() {
            Some(_) if before => tracing::info!("the server's log is followed again"),
            _ if before => {}
            _ => tracing::info!("the server's log is followed"),
        }
    }
}

async fn follow(binlog: &Arc<Binlog>, news: &mut News) -> Result<Infallible, BinlogError> {
    let mut conn =
        Conn::open(&binlog.account, Purpose::Log)
            .await
            .map_err(BinlogError::while_doing(
                "the service account cannot connect",
            ))?;
    let server = obstacles::server(&mut conn).await?;
    for statement in session_statements(server.mariadb) {
        conn.run(&statement)
            .await
            .map_err(BinlogError::while_doing(
                "the log's stream cannot be set up",
            ))?;
    }
    let rows = conn
        .rows(server.status)
        .await
        .map_err(BinlogError::while_doing(
            "the position of the log cannot be read",
        ))?;
    let row = rows.row(0);
    let (base, end) = log_end(row)?;
    let file = row.and_then(|row| text(row, 0)).unwrap_or_default();
    let begins = resume::start(binlog, &mut conn, &server, (file, base, end)).await?;
    let start = begins.position;
    let request = Request {
        replica: binlog.replica.on(&mut conn, &server).await,
        file: &begins.file,
        offset: start.offset,
        to_the_end: false,
        most: binlog.limits.event_bytes,
    };
    let mut log = conn.follow(&request).await.map_err(denied)?;
    let most = binlog.limits.transaction_rows;
    let mut events = Events::starting_at(start, &begins.base, most)
        .unpacking_at_most(binlog.limits.event_bytes)
        .noting_edits(binlog.rows.is_some());
    let seek = begins.warm.as_ref().and_then(|warm| warm.seek.clone());
    let mut passing = Passing::new(seek);
    let is_known = |warm: &Warm| warm.trail.is_known();
    let learns = server.gtids && !begins.warm.as_ref().is_some_and(is_known);
    let base = begins.base.clone();
    if begins.has_gap() {
        // While nobody listened one may have been made.
        binlog.function_missed();
    }
    let (generation, mut routes, mut version) = begin(binlog, server, begins);
    let fence = tokio::spawn(fence::run(Arc::clone(binlog), generation, start));
    let _stop = Stop(fence);
    let _learning = learns.then(|| {
        let learning = history::learn(Arc::clone(binlog), generation, base, start);
        Stop(tokio::spawn(learning))
    });
    let mut idle = true;
    let mut heard_something = true;
    let mut looks = tokio::time::interval(SILENCE);
    loop {
        let event = tokio::select! {
            biased;
            event = log.next(|kind, first: &[u8]| events.keeps(kind, first, passing.routes(&routes))) => event,
            () = binlog.rerouted.notified() => {
                if let Some(why) = binlog.state().anew.take() {
                    return Err(why);
                }
                if idle && !passing.goes_on() {
                    (routes, version) = adopt(binlog);
                }
                continue;
            }
            _ = looks.tick() => {
                if !std::mem::take(&mut heard_something) {
                    return Err(BinlogError::Silent(SILENCE.as_millis()));
                }
                continue;
            }
        };
        heard_something = true;
        let event = event.map_err(denied)?.ok_or(BinlogError::Ended)?;
        let heard = loop {
            match events.take(&event, passing.routes(&routes))? {
                // Sessions on this thread have their turn.
                Heard::Unfinished => tokio::task::yield_now().await,
                heard => break heard,
            }
        };
        passing.hears(&mut events)?;
        if events.has_redefined() {
            binlog.redefined();
        }
        if events.has_made_function() {
            // Before a proof may tell that this has been heard.
            binlog.function_made();
        }
        let Some(end) = heard.end() else {
            idle = false;
            continue;
        };
        idle = true;
        news.followed();
        {
            let mut state = binlog.state();
            let now = clock::now();
            state.noted.hears(now);
            if let Some(stamp) = passing.ended(&events) {
                state.following.ends(end, stamp);
            }
            match heard {
                Heard::Transaction(end, changes, edits) => {
                    if passing.is_before(end) {
                        binlog.forget(&edits);
                        state.following.catch_up(end, &edits);
                        binlog.apply_unconfirmed(&changes, end);
                    } else {
                        binlog.receive(&mut state, end, changes, &edits);
                        state.note_waiting(now);
                    }
                    if state.following.waiting() > most {
                        return Err(Lost::TooLarge(most).into());
                    }
                }
                Heard::Passed(to) => state.following.pass(to),
                Heard::Nothing | Heard::Unfinished => {}
            }
            if passing.arrives(end)? {
                state.seeking = false;
                binlog.catch_up(&mut state);
                tracing::info!(
                    "memory goes on with the log of this server: what is asked for is compared with its rows first"
                );
            }
        }
        binlog.progress.notify_waiters();
        // What is passed over is told to nobody: tables are listened to behind it.
        if !passing.goes_on() && binlog.routes_version.load(Ordering::Acquire) != version {
            if let Some(why) = binlog.state().anew.take() {
                return Err(why);
            }
            (routes, version) = adopt(binlog);
        }
    }
}

/// Ends a task with the stream that it belongs to.
struct Stop(tokio::task::JoinHandle<()>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The session of the stream: signs of life, checksums, and on MariaDB its own events as they are.
pub(super) fn session_statements(mariadb: bool) -> Vec<String> {
    let heartbeat = HEARTBEAT.as_nanos();
    if mariadb {
        vec![
            format!("SET @master_heartbeat_period={heartbeat}"),
            "SET @mariadb_slave_capability=4".into(),
        ]
    } else {
        vec![format!(
            "SET @source_heartbeat_period={heartbeat},@master_heartbeat_period={heartbeat}"
        )]
    }
}

fn denied(error: AccountError) -> BinlogError {
    if replica::is_taken(&error) {
        return BinlogError::SameNumber(error);
    }
    if obstacles::is_denial(&error) {
        return Obstacle::Right(Right::FollowLog).into();
    }
    if error.is_unreadable() {
        return BinlogError::Unread(error);
    }
    BinlogError::Server {
        doing: "the stream of the server's log failed",
        source: error,
    }
}

/// Starts at this position: from nothing, or from what is in memory.
fn begin(binlog: &Binlog, server: ServerFacts, begins: Start) -> (Generation, Arc<Routes>, u64) {
    let mut state = binlog.state();
    let places = binlog.places();
    let referred = binlog.referred();
    binlog
        .case
        .send_if_modified(|case| std::mem::replace(case, server.case) != server.case);
    let start = begins.position;
    let warm = begins.warm.as_ref();
    let goes_on: Vec<PlaceId> = warm.map_or_else(Vec::new, |warm| warm.places.clone());
    let blind = places.iter().flat_map(|place| place.tables.blind_routes());
    let blind = blind.chain(referred.iter().map(|table| table.blind_route()));
    let mut routes: Vec<Route> = blind
        .filter(|route| !goes_on.contains(&route.place))
        .collect();
    routes.extend(warm.iter().flat_map(|warm| warm.routes.iter().cloned()));
    let routes = Routes {
        routes,
        caseless: server.caseless,
    };
    // Where the log of another run ended.
    let unconfirmed = warm.and_then(|warm| Some(warm.seek.as_ref()?.1));
    state.seeking = unconfirmed.is_some();
    let generation = match begins.warm {
        Some(Warm { places, trail, .. }) => {
            binlog.resumed.fetch_add(1, Ordering::Relaxed);
            let told_from = unconfirmed.unwrap_or(start);
            let places = (&*places, told_from);
            state.following.resume(start, routes, places, trail)
        }
        None => {
            state.since = clock::now();
            state.following.begin(start, routes)
        }
    };
    state.base = begins.base;
    state.remains = None;
    state.anew = None;
    binlog.aside.send_replace(None);
    state.noted = lag::Noted::default();
    state.noted.hears(clock::now());
    state.server = Some(Arc::new(server));
    // Of another stream none is told.
    binlog.rows.iter().for_each(|rows| rows.clear());
    for place in &places {
        let number = place.number();
        let mut index = place.index_mut();
        match (goes_on.contains(&number), unconfirmed) {
            (true, None) => index.resume(start),
            (true, Some(_)) => index.resume_unconfirmed(start),
            (false, _) => index.begin_anew(),
        }
        drop(index);
        let is_known = goes_on.contains(&number) && place.preloaded.load(Ordering::Relaxed);
        // The loader that would look again whether something is in the way still was the stream's before.
        if !is_known || place.bar().is_some() {
            binlog.load(Load::Schema(number));
        }
    }
    for table in &referred {
        if !goes_on.contains(&table.place) {
            binlog.load(Load::Referred(table.place));
        }
    }
    let version = binlog.routes_version.load(Ordering::Acquire);
    // What became of the tables while nobody listened is not told.
    binlog.changed.notify_one();
    (generation, state.following.routes(), version)
}

/// Between two transactions: from here on, the rows of tables with known columns are told.
fn adopt(binlog: &Binlog) -> (Arc<Routes>, u64) {
    let mut state = binlog.state();
    let version = binlog.routes_version.load(Ordering::Acquire);
    let routes = state.following.adopt_routes();
    binlog.catch_up(&mut state);
    (routes, version)
}
