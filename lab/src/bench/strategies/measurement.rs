//! The measurements. Compared strategies alternate several times a second, so that all meet the same drift of the machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::StrategyError;
use super::figures::PostCost;
use super::page::{MessagePage, PageMessage};
use super::servers::{MessageIds, StrategyServers};
use super::strategy::{AppSession, FreshnessClaim, TimelineStrategy};
use crate::bench::StopSignal;
use crate::bench::data::shuffle;
use crate::bench::figures::LatencyFigures;
use crate::bench::measure::{ConnectionTally, SliceJob, repeat_for, run_parallel};

/// The length of one strategy's turn.
pub const TURN_TIME: Duration = Duration::from_millis(150);
/// After a longer wait a strategy warms up: for this part of the wait, at most for a turn.
const MAX_PAUSE: Duration = Duration::from_secs(1);
const WARMUP_DIVISOR: u32 = 50;
/// The offset of a deep page in the reader's timeline.
const DEEP_OFFSET: u64 = 200;
/// How long a page is polled for a message.
pub const STALENESS_TIMEOUT: Duration = Duration::from_secs(5);
/// Numbers of followers of the authors whose messages are timed.
const FOLLOWER_CLASSES: [u64; 3] = [10, 1_000, 100_000];
/// Time limit for one author's messages, and their least number.
const POST_TIME: Duration = Duration::from_secs(8);
const MIN_POSTS: usize = 3;
const BODY: &str = "A message of the length that messages have, which is what the first measurements of timelines were made with: a hundred and forty bytes.";

/// The extent of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct MeasurementEffort {
    /// Connections.
    pub connections: usize,
    /// Turns of each strategy.
    pub rounds: u32,
    /// Readers whose pages are compared.
    pub compared: usize,
    /// Readers whose pages are measured.
    pub readers: usize,
    /// Whether deep pages are measured too.
    pub deep: bool,
    /// Follows, unfollows and deletes that are timed.
    pub changes: usize,
    /// Time limit for the staleness of one strategy.
    pub staleness: Duration,
    /// Limit of pushed messages in total; strategies that would store more are left out.
    pub most_pushed: f64,
}

impl MeasurementEffort {
    /// Time for each rate of each strategy.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        TURN_TIME.as_secs_f64() * f64::from(self.rounds)
    }
}

/// A page: the reader, and the bound of the ids.
pub type ReaderPage = (u64, Option<u64>);

/// The compared pages, and the equal ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct ComparisonCount {
    /// Pages.
    pub pages: u64,
    /// The equal pages.
    pub equal: u64,
}

/// Divides a list among these connections, which work in parallel; returns the results in the order of the list.
fn distribute<C: Send, A: Sync, T: Send>(
    connections: &mut [C],
    list: &[A],
    each: &(dyn Fn(&mut C, &A) -> Result<T, StrategyError> + Sync),
) -> Result<Vec<T>, StrategyError> {
    let most = list.len().div_ceil(connections.len().max(1)).max(1);
    let shares = connections.iter_mut().zip(list.chunks(most));
    let jobs = shares.map(
        |(connection, share)| -> SliceJob<'_, Vec<T>, StrategyError> {
            Box::new(move || share.iter().map(|one| each(connection, one)).collect())
        },
    );
    let done = run_parallel(jobs.collect())?;
    Ok(done.into_iter().flatten().collect())
}

/// The newest page of each of these readers, and, if requested, a deep one of those who have one.
///
/// # Errors
/// Fails if a query fails.
pub fn reader_pages(
    servers: &StrategyServers,
    readers: &[u64],
    effort: &MeasurementEffort,
) -> Result<(Vec<ReaderPage>, Vec<ReaderPage>), StrategyError> {
    let newest = readers.iter().map(|reader| (*reader, None)).collect();
    if !effort.deep {
        return Ok((newest, Vec::new()));
    }
    let clients: Result<Vec<_>, _> = (0..effort.connections).map(|_| servers.connect()).collect();
    let deep = distribute(&mut clients?, readers, &|client, reader| {
        let bound = client.query_numbers(&format!(
            "SELECT message.id FROM message INNER JOIN follower ON message.user_id=follower.follower_id \
             WHERE follower.user_id={reader} ORDER BY message.id DESC LIMIT {DEEP_OFFSET},1"
        ))?;
        Ok(bound.first().map(|bound| (*reader, Some(*bound))))
    })?;
    Ok((newest, deep.into_iter().flatten().collect()))
}

/// Reads these pages on these connections.
///
/// # Errors
/// Fails if a page cannot be read.
pub fn read_pages(
    sessions: &mut [Box<dyn AppSession>],
    requested: &[ReaderPage],
) -> Result<Vec<Vec<PageMessage>>, StrategyError> {
    distribute(sessions, requested, &|session, (reader, bound)| {
        let mut page = MessagePage::default();
        session.page(*reader, *bound, &mut page)?;
        Ok(page.rows)
    })
}

/// Compares pages with the expected ones.
///
/// # Errors
/// Fails if a page cannot be read.
pub fn compare_pages(
    sessions: &mut [Box<dyn AppSession>],
    requested: &[ReaderPage],
    truth: &[Vec<PageMessage>],
    compared: &mut ComparisonCount,
) -> Result<(), StrategyError> {
    let pages = read_pages(sessions, requested)?;
    let equal = pages.iter().zip(truth).filter(|(one, other)| one == other);
    compared.pages += pages.len() as u64;
    compared.equal += equal.count() as u64;
    Ok(())
}

/// What a connection does at a position of its list.
pub type SessionAction<'a> =
    dyn Fn(&mut dyn AppSession, usize, &mut MessagePage) -> Result<(), StrategyError> + Sync + 'a;

/// One strategy's connections.
pub type StrategySessions = Vec<Box<dyn AppSession>>;

/// Connections with a common turn, and their action.
pub struct SessionGroup<'a> {
    /// The connections.
    pub sessions: &'a mut StrategySessions,
    /// The action; its argument is the position in the list.
    pub action: &'a SessionAction<'a>,
}

/// Lets all groups act in turn, each on all its connections. After a long wait a group first acts for a while without being counted: the
/// bench caused the wait, and processors, system and server have lost their caches meanwhile.
///
/// # Errors
/// Fails if an action fails, or the bench is stopped.
pub fn measure_rates(
    sides: &mut [SessionGroup<'_>],
    rounds: u32,
    count: usize,
    stop: &StopSignal,
) -> Result<Vec<LatencyFigures>, StrategyError> {
    let mut tallies = Vec::new();
    for side in sides.iter() {
        tallies.push(ConnectionTally::for_connections(
            side.sessions.len(),
            count,
        )?);
    }
    let mut ended: Vec<Instant> = vec![Instant::now(); tallies.len()];
    // Round 0 warms up and does not count.
    for round in 0..=rounds {
        for ((side, tallies), ended) in sides.iter_mut().zip(&mut tallies).zip(&mut ended) {
            if stop.is_requested() {
                return Err(StrategyError::Stopped);
            }
            let waited = ended.elapsed();
            let warms = (waited > MAX_PAUSE).then(|| (waited / WARMUP_DIVISOR).min(TURN_TIME));
            let once = side.action;
            let jobs = side.sessions.iter_mut().zip(tallies.iter_mut());
            let jobs = jobs.map(|(session, tally)| -> SliceJob<'_, (), StrategyError> {
                Box::new(move || {
                    let mut page = MessagePage::default();
                    let mut once = |index| {
                        page.rows.clear();
                        once(session.as_mut(), index, &mut page)
                    };
                    if let Some(length) = warms {
                        repeat_for(length, count, &mut tally.uncounted()?, stop, &mut once)?;
                    }
                    repeat_for(TURN_TIME, count, tally, stop, once)
                })
            });
            run_parallel(jobs.collect())?;
            if round == 0 {
                tallies.iter_mut().for_each(ConnectionTally::reset);
            }
            *ended = Instant::now();
        }
    }
    let rates = tallies
        .iter()
        .map(|tallies| Ok(LatencyFigures::from_lanes(tallies)?));
    rates.collect()
}

/// Writes one message by an author of this list.
///
/// # Errors
/// Fails if the write fails.
pub fn write_message(
    ids: &MessageIds,
    session: &mut dyn AppSession,
    author: u64,
) -> Result<u64, StrategyError> {
    let id = ids.next();
    session.post(id, author, BODY)?;
    Ok(id)
}

/// Authors weighted by their messages: who wrote twice as many is in the list twice as often.
///
/// # Errors
/// Fails if the query fails.
pub fn writing_authors(servers: &StrategyServers) -> Result<Vec<u64>, StrategyError> {
    let most = 2_000;
    let step = (servers.size.messages / most).max(1);
    let mut authors = servers.connect()?.query_numbers(&format!(
        "SELECT user_id FROM message WHERE id MOD {step}=0 LIMIT {most}"
    ))?;
    shuffle(&mut authors, servers.size.seed);
    Ok(authors)
}

/// An author with about so many followers (from half to twice as many), and the exact number.
fn author_of(
    servers: &StrategyServers,
    followers: u64,
) -> Result<Option<(u64, u64)>, StrategyError> {
    let (least, most) = (followers / 2, followers * 2);
    let candidates = servers.connect()?.query_pairs(&format!(
        "SELECT follower_id,COUNT(*) FROM follower GROUP BY follower_id HAVING COUNT(*) BETWEEN {least} AND {most} \
         ORDER BY ABS(CAST(COUNT(*) AS SIGNED)-{followers}),follower_id LIMIT 1"
    ))?;
    Ok(candidates.first().copied())
}

/// The cost of a message by the author's number of followers, for classes with such an author, and for the most followed author.
///
/// # Errors
/// Fails if a message cannot be written.
pub fn measure_posts(
    servers: &StrategyServers,
    session: &mut dyn AppSession,
    effort: &MeasurementEffort,
    stop: &StopSignal,
) -> Result<Vec<PostCost>, StrategyError> {
    let mut posts = Vec::new();
    if effort.changes == 0 {
        return Ok(posts);
    }
    let most = servers.connect()?.query_pairs(
        "SELECT follower_id,COUNT(*) FROM follower GROUP BY follower_id ORDER BY 2 DESC,1 LIMIT 1",
    )?;
    let most = most.first().copied();
    let mut authors = Vec::new();
    for about in FOLLOWER_CLASSES {
        authors.push((about, author_of(servers, about)?));
    }
    if !authors.iter().any(|(_, author)| *author == most) {
        authors.push((most.map_or(0, |(_, followers)| followers), most));
    }
    for (about, author) in authors {
        let Some((author, followers)) = author else {
            continue;
        };
        let mut times = Vec::new();
        let first = Instant::now();
        for index in 0..effort.changes {
            if stop.is_requested() {
                return Err(StrategyError::Stopped);
            }
            // A message with many followers takes seconds.
            if index >= MIN_POSTS && first.elapsed() > POST_TIME {
                break;
            }
            let begun = Instant::now();
            write_message(&servers.ids, session, author)?;
            times.push(milliseconds(begun.elapsed()));
        }
        let ms = median(&mut times);
        posts.push(PostCost {
            about,
            followers,
            ms,
        });
    }
    Ok(posts)
}

/// The cost of changes to a reader's timeline: medians in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangeCosts {
    /// A follow.
    pub follow: f64,
    /// An unfollow.
    pub unfollow: f64,
    /// The first page after an unfollow.
    pub refill: f64,
    /// A delete.
    pub delete: f64,
}

/// Some of the follows, to be undone and redone.
///
/// # Errors
/// Fails if the query fails.
pub fn some_follows(
    servers: &StrategyServers,
    most: usize,
) -> Result<Vec<(u64, u64)>, StrategyError> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let mut follows = servers.connect()?.query_pairs(&format!(
        "SELECT user_id,follower_id FROM follower WHERE user_id<={} ORDER BY follower_id,user_id",
        servers.size.users
    ))?;
    shuffle(&mut follows, servers.size.seed);
    follows.truncate(most);
    Ok(follows)
}

/// Unfollows, reads, follows again, writes, deletes; restores the initial state. Compares the pages in between.
///
/// # Errors
/// Fails if a step fails.
pub fn measure_changes(
    servers: &StrategyServers,
    strategy: &dyn TimelineStrategy,
    follows: &[(u64, u64)],
    compared: &mut ComparisonCount,
) -> Result<ChangeCosts, StrategyError> {
    let mut session = strategy.session(servers)?;
    let mut procedure = [super::pull::PROCEDURE.session(servers)?];
    let mut times: [Vec<f64>; 4] = Default::default();
    for (reader, author) in follows {
        let (reader, author) = (*reader, *author);
        let requested = [(reader, None)];
        let timed = |does: &mut dyn FnMut() -> Result<(), StrategyError>| {
            let begun = Instant::now();
            does()?;
            Ok::<_, StrategyError>(milliseconds(begun.elapsed()))
        };
        let mut page = MessagePage::default();
        session.page(reader, None, &mut page)?;
        let unfollow = timed(&mut || session.unfollow(reader, author))?;
        page.rows.clear();
        let refill = timed(&mut || session.page(reader, None, &mut page))?;
        let mut check = |session: &mut Box<dyn AppSession>| {
            // A strategy that promises no freshness is not checked.
            if strategy.claim() == FreshnessClaim::Stale {
                return Ok(());
            }
            let truth = read_pages(&mut procedure, &requested)?;
            compare_pages(std::slice::from_mut(session), &requested, &truth, compared)
        };
        check(&mut session)?;
        let follow = timed(&mut || session.follow(reader, author))?;
        check(&mut session)?;
        let id = write_message(&servers.ids, session.as_mut(), author)?;
        check(&mut session)?;
        let delete = timed(&mut || session.delete(id, author))?;
        check(&mut session)?;
        for (all, time) in times.iter_mut().zip([follow, unfollow, refill, delete]) {
            all.push(time);
        }
    }
    let [follow, unfollow, refill, delete] = times.map(|mut times| median(&mut times));
    Ok(ChangeCosts {
        follow,
        unfollow,
        refill,
        delete,
    })
}

/// How often a page lacked an acknowledged write, and for how long, in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct StalenessSample {
    /// Pages read.
    pub probed: u64,
    /// How long each stale page stayed stale.
    pub stale_ms: Vec<f64>,
}

/// The users with the most followers, each after one follower; empty if staleness is not measured.
///
/// # Errors
/// Fails if the query fails.
pub fn most_followed(
    servers: &StrategyServers,
    effort: &MeasurementEffort,
) -> Result<Vec<(u64, u64)>, StrategyError> {
    if effort.staleness.is_zero() {
        return Ok(Vec::new());
    }
    Ok(servers.connect()?.query_pairs(&format!(
        "SELECT MIN(user_id),follower_id FROM follower WHERE follower_id<={} \
         GROUP BY follower_id ORDER BY COUNT(*) DESC LIMIT 500",
        servers.size.users
    ))?)
}

/// Writes messages by `most_followed`, and reads a follower's page on another connection immediately after each, while another connection
/// writes messages by the same authors.
///
/// # Errors
/// Fails if a page or a message fails.
pub fn measure_staleness(
    servers: &StrategyServers,
    strategy: &dyn TimelineStrategy,
    effort: &MeasurementEffort,
    (followed, authors): (&[(u64, u64)], &[u64]),
) -> Result<StalenessSample, StrategyError> {
    if effort.staleness.is_zero() {
        return Ok(StalenessSample::default());
    }
    let (mut writer, mut other) = (strategy.session(servers)?, strategy.session(servers)?);
    let mut reader = strategy.session(servers)?;
    let (ended, ids) = (AtomicBool::new(false), &servers.ids);
    let mut sample = StalenessSample::default();
    thread::scope(|scope| {
        let ended = &ended;
        let background_writer = scope.spawn(move || {
            for author in authors.iter().cycle() {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                write_message(ids, other.as_mut(), *author)?;
                thread::sleep(Duration::from_millis(4));
            }
            Ok::<_, StrategyError>(())
        });
        let probed_pages = (|| {
            let begun = Instant::now();
            for (follower, author) in followed.iter().cycle() {
                if begun.elapsed() > effort.staleness {
                    break;
                }
                // A cache may contain this page from now on.
                let mut page = MessagePage::default();
                reader.page(*follower, None, &mut page)?;
                let id = write_message(&servers.ids, writer.as_mut(), *author)?;
                let acknowledged = Instant::now();
                sample.probed += 1;
                let mut lacked = false;
                loop {
                    page.rows.clear();
                    reader.page(*follower, None, &mut page)?;
                    let has = page.rows.iter().any(|row| row.id == id);
                    // Other writes may have filled the page since.
                    let past = page.rows.last().is_some_and(|row| row.id > id);
                    if has || past || acknowledged.elapsed() > STALENESS_TIMEOUT {
                        break;
                    }
                    lacked = true;
                    thread::sleep(Duration::from_micros(200));
                }
                if lacked {
                    sample.stale_ms.push(milliseconds(acknowledged.elapsed()));
                }
            }
            Ok::<_, StrategyError>(())
        })();
        ended.store(true, Ordering::Relaxed);
        let background_writer = background_writer
            .join()
            .unwrap_or(Err(StrategyError::ThreadEnded));
        probed_pages.and(background_writer)
    })?;
    Ok(sample)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// The median; 0 if empty.
pub fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(
            median(&mut [3.0, 1.0, 2.0]).total_cmp(&2.0),
            std::cmp::Ordering::Equal
        );
        assert_eq!(median(&mut []).total_cmp(&0.0), std::cmp::Ordering::Equal);
    }
}
