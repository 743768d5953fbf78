//! Follows the server's log as a replica does, and begins again when that fails.

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::error::FeedError;
use super::events::{Events, Heard, Lost};
use super::obstacles::{self, Obstacle, ServerFacts};
use super::queue::Queue;
use super::right::Right;
use super::routes::Routes;
use super::rows::{log_end, text};
use super::{Feed, Phase, fence};
use crate::account::log::Request;
use crate::account::{AccountError, Conn, Purpose};
use crate::feed::load::Load;
use crate::index::Position;

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
pub(super) async fn run(feed: Arc<Feed>) {
    let mut news = News::default();
    let mut wait = FIRST_WAIT;
    loop {
        let begun = Instant::now();
        let Err(error) = follow(&feed, &mut news).await;
        feed.step_aside();
        if matches!(error, FeedError::Late | FeedError::Asked) {
            continue;
        }
        if let FeedError::Lost(lost) = &error {
            if matches!(lost, Lost::Unreadable(_) | Lost::Statement(_)) {
                feed.unreadable.fetch_add(1, Ordering::Relaxed);
            }
            if lost.may_redefine() {
                feed.changed.notify_one();
            }
        }
        news.trouble(&error);
        wait = if begun.elapsed() > STEADY {
            FIRST_WAIT
        } else {
            (wait * 2).min(LAST_WAIT)
        };
        tokio::time::sleep(wait).await;
    }
}

/// What the log was told of the stream: each change once.
#[derive(Default)]
struct News {
    trouble: Option<String>,
    followed_before: bool,
}

impl News {
    fn trouble(&mut self, error: &FeedError) {
        let text = error.to_string();
        if matches!(error, FeedError::Contradiction(_)) {
            tracing::error!("calls are not answered from memory: {text}");
            self.trouble = Some(text);
        } else if self.trouble.as_ref() != Some(&text) {
            if !error.was_said() {
                tracing::warn!("calls are not answered from memory: {text}");
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

async fn follow(feed: &Arc<Feed>, news: &mut News) -> Result<Infallible, FeedError> {
    let mut conn = Conn::open(&feed.account, Purpose::Log)
        .await
        .map_err(FeedError::while_doing("the service account cannot connect"))?;
    let server = obstacles::server(&mut conn).await?;
    for statement in session_statements(server.mariadb) {
        conn.run(&statement)
            .await
            .map_err(FeedError::while_doing("the log's stream cannot be set up"))?;
    }
    let rows = conn
        .rows(server.status)
        .await
        .map_err(FeedError::while_doing(
            "the position of the log cannot be read",
        ))?;
    let row = rows.row(0);
    let (base, start) = log_end(row)?;
    let file = row.and_then(|row| text(row, 0)).unwrap_or_default();
    let request = Request {
        replica: feed.replica,
        file: &file,
        offset: start.offset,
        to_the_end: false,
        most: feed.limits.event_bytes,
    };
    let mut log = conn.follow(&request).await.map_err(denied)?;
    let most = feed.limits.transaction_rows;
    let mut events =
        Events::starting_at(start, &base, most).unpacking_at_most(feed.limits.event_bytes);
    let (generation, mut routes, mut version) = begin(feed, server, start);
    let fence = tokio::spawn(fence::run(Arc::clone(feed), generation, start));
    let _stop = Stop(fence);
    let mut idle = true;
    let mut heard_something = true;
    let mut looks = tokio::time::interval(SILENCE);
    loop {
        let event = tokio::select! {
            biased;
            event = log.next(|kind, first: &[u8]| events.keeps(kind, first, &routes)) => event,
            () = feed.rerouted.notified() => {
                if let Some(why) = feed.state().anew.take() {
                    return Err(why);
                }
                if idle {
                    (routes, version) = adopt(feed);
                }
                continue;
            }
            _ = looks.tick() => {
                if !std::mem::take(&mut heard_something) {
                    return Err(FeedError::Silent(SILENCE.as_millis()));
                }
                continue;
            }
        };
        heard_something = true;
        let event = event.map_err(denied)?.ok_or(FeedError::Ended)?;
        let heard = loop {
            match events.take(&event, &routes)? {
                // Sessions on this thread have their turn.
                Heard::Unfinished => tokio::task::yield_now().await,
                heard => break heard,
            }
        };
        if events.has_redefined() {
            feed.changed.notify_one();
        }
        if heard == Heard::Nothing {
            idle = false;
            continue;
        }
        idle = true;
        news.followed();
        {
            let mut state = feed.state();
            match heard {
                Heard::Transaction(end, changes) => {
                    state.queue.push(end, changes);
                    if state.queue.changes() > most {
                        return Err(Lost::TooLarge(most).into());
                    }
                }
                Heard::Passed(to) => state.queue.pass(to),
                Heard::Nothing | Heard::Unfinished => {}
            }
        }
        feed.progress.notify_waiters();
        if feed.routes_version.load(Ordering::Acquire) != version {
            if let Some(why) = feed.state().anew.take() {
                return Err(why);
            }
            (routes, version) = adopt(feed);
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
fn session_statements(mariadb: bool) -> Vec<String> {
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

/// Replicas of one server must have numbers of their own: a random one of the upper half.
pub(super) fn replica_id() -> u32 {
    random() >> 1 | 1 << 31
}

/// Another number each time.
pub(super) fn random() -> u32 {
    let random = RandomState::new().build_hasher().finish();
    u32::try_from(random >> 32).unwrap_or_default()
}

fn denied(error: AccountError) -> FeedError {
    if obstacles::is_denial(&error) {
        return Obstacle::Right(Right::FollowLog).into();
    }
    FeedError::Server {
        doing: "the stream of the server's log failed",
        source: error,
    }
}

/// Starts from nothing at this position.
fn begin(feed: &Feed, server: ServerFacts, start: Position) -> (u64, Arc<Routes>, u64) {
    let mut state = feed.state();
    state.generation += 1;
    state.phase = Phase::Unproven;
    state.queue = Queue::starting_at(start);
    state.suspect = false;
    state.fresh = None;
    state.anew = None;
    state.released = false;
    let places = feed.places();
    let routes = Arc::new(Routes {
        routes: places
            .iter()
            .flat_map(|place| place.blind_routes())
            .collect(),
        caseless: server.caseless,
    });
    state.routes = Arc::clone(&routes);
    state.bases = vec![None; places.len()];
    state.server = Some(Arc::new(server));
    for place in &places {
        place.index_mut().begin_anew();
        feed.load(Load::Schema(place.number));
    }
    let version = feed.routes_version.load(Ordering::Acquire);
    // What became of the tables while nobody listened is not told.
    feed.changed.notify_one();
    (state.generation, routes, version)
}

/// Between two transactions: from here on, the rows of tables with known columns are told.
fn adopt(feed: &Feed) -> (Arc<Routes>, u64) {
    let mut state = feed.state();
    let version = feed.routes_version.load(Ordering::Acquire);
    let routes = Arc::clone(&state.routes);
    let received = state.queue.received();
    for route in &routes.routes {
        if let (Some(_), Some(base)) = (route.columns, state.bases.get_mut(route.place)) {
            base.get_or_insert(received);
        }
    }
    feed.apply(&state, &[]);
    (routes, version)
}
