//! The measurements themselves. Strategies take turns several times a second where rates are compared, so that the machine's drift meets all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::StrategyError;
use super::figures::PostCost;
use super::page::{MessagePage, PageMessage};
use super::servers::{MessageIds, StrategyServers};
use super::strategy::{AppSession, FreshnessClaim, TimelineStrategy};
use crate::lab::bench::StopSignal;
use crate::lab::bench::data::shuffle;
use crate::lab::bench::figures::LatencyFigures;
use crate::lab::bench::measure::{ConnectionTally, SliceJob, repeat_for, run_parallel};

/// How long one strategy has its turn.
pub const TURN_TIME: Duration = Duration::from_millis(150);
/// Who had to wait for longer warms up: for this part of the time that it waited, and for a turn at most.
const MAX_PAUSE: Duration = Duration::from_secs(1);
const WARMUP_DIVISOR: u32 = 50;
/// A deep page begins with the reader's message by this number.
const DEEP_OFFSET: u64 = 200;
/// Who waits for a page to get a message gives up after so long.
pub const STALENESS_TIMEOUT: Duration = Duration::from_secs(5);
/// Followers of the authors whose messages are timed.
const FOLLOWER_CLASSES: [u64; 3] = [10, 1_000, 100_000];
/// Messages of one author are timed for so long, and so many of them at least.
const POST_TIME: Duration = Duration::from_secs(8);
const MIN_POSTS: usize = 3;
const BODY: &str = "A message of the length that messages have, which is what the first measurements of timelines were made with: a hundred and forty bytes.";

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct MeasurementEffort {
    /// Connections.
    pub connections: usize,
    /// Turns that each strategy has.
    pub rounds: u32,
    /// Readers whose pages are compared.
    pub compared: usize,
    /// Readers whose pages are measured.
    pub readers: usize,
    /// Whether deep pages are asked for too.
    pub deep: bool,
    /// Follows, deletes and the like that are timed.
    pub changes: usize,
    /// Longest time for the staleness of one strategy.
    pub staleness: Duration,
    /// Messages at followers, all together: where there would be more, strategies that keep them are left out.
    pub most_pushed: f64,
}

impl MeasurementEffort {
    /// Time for each rate of each strategy.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        TURN_TIME.as_secs_f64() * f64::from(self.rounds)
    }
}

/// A page to ask for.
pub type ReaderPage = (u64, Option<u64>);

/// What was compared, and what was equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct ComparisonCount {
    /// Pages.
    pub pages: u64,
    /// Those that were the same.
    pub equal: u64,
}

/// Has each of these connections do its share of a list at the same time; what comes of it, in the order of the list.
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

/// The newest page of each of these readers, and, where they are wanted, a deep one of those who have one.
///
/// # Errors
/// When the server does not tell.
pub fn reader_pages(
    world: &StrategyServers,
    readers: &[u64],
    effort: &MeasurementEffort,
) -> Result<(Vec<ReaderPage>, Vec<ReaderPage>), StrategyError> {
    let newest = readers.iter().map(|reader| (*reader, None)).collect();
    if !effort.deep {
        return Ok((newest, Vec::new()));
    }
    let clients: Result<Vec<_>, _> = (0..effort.connections).map(|_| world.connect()).collect();
    let deep = distribute(&mut clients?, readers, &|client, reader| {
        let bound = client.query_numbers(&format!(
            "SELECT message.id FROM message INNER JOIN follower ON message.user_id=follower.follower_id \
             WHERE follower.user_id={reader} ORDER BY message.id DESC LIMIT {DEEP_OFFSET},1"
        ))?;
        Ok(bound.first().map(|bound| (*reader, Some(*bound))))
    })?;
    Ok((newest, deep.into_iter().flatten().collect()))
}

/// The pages that these connections answer.
///
/// # Errors
/// When one cannot be had.
pub fn read_pages(
    team: &mut [Box<dyn AppSession>],
    asks: &[ReaderPage],
) -> Result<Vec<Vec<PageMessage>>, StrategyError> {
    distribute(team, asks, &|session, (reader, bound)| {
        let mut page = MessagePage::default();
        session.page(*reader, *bound, &mut page)?;
        Ok(page.rows)
    })
}

/// Compares pages with what they have to be.
///
/// # Errors
/// When a page cannot be had.
pub fn compare_pages(
    team: &mut [Box<dyn AppSession>],
    asks: &[ReaderPage],
    truth: &[Vec<PageMessage>],
    compared: &mut ComparisonCount,
) -> Result<(), StrategyError> {
    let pages = read_pages(team, asks)?;
    let equal = pages.iter().zip(truth).filter(|(one, other)| one == other);
    compared.pages += pages.len() as u64;
    compared.equal += equal.count() as u64;
    Ok(())
}

/// What a connection does at a place of its list.
pub type SessionAction<'a> =
    dyn Fn(&mut dyn AppSession, usize, &mut MessagePage) -> Result<(), StrategyError> + Sync + 'a;

/// One strategy's connections.
pub type StrategySessions = Vec<Box<dyn AppSession>>;

/// Connections that have their turn together, and what each of them does then.
pub struct SessionGroup<'a> {
    /// They.
    pub sessions: &'a mut StrategySessions,
    /// Is told of the place in its list.
    pub action: &'a SessionAction<'a>,
}

/// Has all sides do something in turn, each on all of its connections. Where others took long, a side does it for a while in front of its turn,
/// which does not count: that it was idle is the bench's own doing, and processors, the system and the server have forgotten it meanwhile.
///
/// # Errors
/// When it fails, or the bench is asked to stop.
pub fn measure_rates(
    sides: &mut [SessionGroup<'_>],
    rounds: u32,
    places: usize,
    stop: &StopSignal,
) -> Result<Vec<LatencyFigures>, StrategyError> {
    let mut lanes = Vec::new();
    for side in sides.iter() {
        lanes.push(ConnectionTally::for_connections(
            side.sessions.len(),
            places,
        )?);
    }
    let mut ended: Vec<Instant> = vec![Instant::now(); lanes.len()];
    // Round 0 warms up and does not count.
    for round in 0..=rounds {
        for ((side, lanes), ended) in sides.iter_mut().zip(&mut lanes).zip(&mut ended) {
            if stop.is_requested() {
                return Err(StrategyError::Stopped);
            }
            let waited = ended.elapsed();
            let warms = (waited > MAX_PAUSE).then(|| (waited / WARMUP_DIVISOR).min(TURN_TIME));
            let once = side.action;
            let jobs = side.sessions.iter_mut().zip(lanes.iter_mut());
            let jobs = jobs.map(|(session, lane)| -> SliceJob<'_, (), StrategyError> {
                Box::new(move || {
                    let mut page = MessagePage::default();
                    let mut once = |place| {
                        page.rows.clear();
                        once(session.as_mut(), place, &mut page)
                    };
                    if let Some(length) = warms {
                        repeat_for(length, places, &mut lane.uncounted()?, stop, &mut once)?;
                    }
                    repeat_for(TURN_TIME, places, lane, stop, once)
                })
            });
            run_parallel(jobs.collect())?;
            if round == 0 {
                lanes.iter_mut().for_each(ConnectionTally::reset);
            }
            *ended = Instant::now();
        }
    }
    let rates = lanes
        .iter()
        .map(|lanes| Ok(LatencyFigures::from_lanes(lanes)?));
    rates.collect()
}

/// Writes one message, of an author from this list.
///
/// # Errors
/// When it fails.
pub fn write_message(
    ids: &MessageIds,
    session: &mut dyn AppSession,
    author: u64,
) -> Result<u64, StrategyError> {
    let id = ids.next();
    session.post(id, author, BODY)?;
    Ok(id)
}

/// Authors as they have written: one who wrote twice as much is there twice as often.
///
/// # Errors
/// When the server does not tell.
pub fn writing_authors(world: &StrategyServers) -> Result<Vec<u64>, StrategyError> {
    let most = 2_000;
    let step = (world.size.messages / most).max(1);
    let mut authors = world.connect()?.query_numbers(&format!(
        "SELECT user_id FROM message WHERE id MOD {step}=0 LIMIT {most}"
    ))?;
    shuffle(&mut authors, world.size.seed);
    Ok(authors)
}

/// An author with about as many followers, and how many: at most twice as many, and at least half.
fn author_of(world: &StrategyServers, followers: u64) -> Result<Option<(u64, u64)>, StrategyError> {
    let (least, most) = (followers / 2, followers * 2);
    let found = world.connect()?.query_pairs(&format!(
        "SELECT follower_id,COUNT(*) FROM follower GROUP BY follower_id HAVING COUNT(*) BETWEEN {least} AND {most} \
         ORDER BY ABS(CAST(COUNT(*) AS SIGNED)-{followers}),follower_id LIMIT 1"
    ))?;
    Ok(found.first().copied())
}

/// What a message costs by how many followers its author has, where there are such authors; the most followed one in any case.
///
/// # Errors
/// When a message cannot be written.
pub fn measure_posts(
    world: &StrategyServers,
    session: &mut dyn AppSession,
    effort: &MeasurementEffort,
    stop: &StopSignal,
) -> Result<Vec<PostCost>, StrategyError> {
    let mut posts = Vec::new();
    if effort.changes == 0 {
        return Ok(posts);
    }
    let most = world.connect()?.query_pairs(
        "SELECT follower_id,COUNT(*) FROM follower GROUP BY follower_id ORDER BY 2 DESC,1 LIMIT 1",
    )?;
    let most = most.first().copied();
    let mut authors = Vec::new();
    for about in FOLLOWER_CLASSES {
        authors.push((about, author_of(world, about)?));
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
        for place in 0..effort.changes {
            if stop.is_requested() {
                return Err(StrategyError::Stopped);
            }
            // One that goes to many takes seconds.
            if place >= MIN_POSTS && first.elapsed() > POST_TIME {
                break;
            }
            let begun = Instant::now();
            write_message(&world.ids, session, author)?;
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

/// What changes of what a reader sees cost: medians in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangeCosts {
    /// A follow.
    pub follow: f64,
    /// An unfollow.
    pub unfollow: f64,
    /// The first page behind it.
    pub refill: f64,
    /// A delete.
    pub delete: f64,
}

/// Some of the follows: those that are undone and done again.
///
/// # Errors
/// When the server does not tell.
pub fn some_follows(
    world: &StrategyServers,
    most: usize,
) -> Result<Vec<(u64, u64)>, StrategyError> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let mut follows = world.connect()?.query_pairs(&format!(
        "SELECT user_id,follower_id FROM follower WHERE user_id<={} ORDER BY follower_id,user_id",
        world.size.users
    ))?;
    shuffle(&mut follows, world.size.seed);
    follows.truncate(most);
    Ok(follows)
}

/// Unfollows, reads, follows again, writes, deletes: at the end everything is as it was. Pages in between are compared.
///
/// # Errors
/// When one of it fails.
pub fn measure_changes(
    world: &StrategyServers,
    strategy: &dyn TimelineStrategy,
    follows: &[(u64, u64)],
    compared: &mut ComparisonCount,
) -> Result<ChangeCosts, StrategyError> {
    let mut session = strategy.session(world)?;
    let mut procedure = [super::pull::PROCEDURE.session(world)?];
    let mut times: [Vec<f64>; 4] = Default::default();
    for (reader, author) in follows {
        let (reader, author) = (*reader, *author);
        let asks = [(reader, None)];
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
            // Who promises nothing is not held to it.
            if strategy.claim() == FreshnessClaim::Stale {
                return Ok(());
            }
            let truth = read_pages(&mut procedure, &asks)?;
            compare_pages(std::slice::from_mut(session), &asks, &truth, compared)
        };
        check(&mut session)?;
        let follow = timed(&mut || session.follow(reader, author))?;
        check(&mut session)?;
        let id = write_message(&world.ids, session.as_mut(), author)?;
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

/// How often a page lacked what had been acknowledged, and for how long, in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct StalenessSample {
    /// Pages that were looked at.
    pub probed: u64,
    /// How long each of those that were stale was.
    pub stale_ms: Vec<f64>,
}

/// The users with the most followers, each behind one who follows it; none where nobody asks how stale pages are.
///
/// # Errors
/// When the server does not tell.
pub fn most_followed(
    world: &StrategyServers,
    effort: &MeasurementEffort,
) -> Result<Vec<(u64, u64)>, StrategyError> {
    if effort.staleness.is_zero() {
        return Ok(Vec::new());
    }
    Ok(world.connect()?.query_pairs(&format!(
        "SELECT MIN(user_id),follower_id FROM follower WHERE follower_id<={} \
         GROUP BY follower_id ORDER BY COUNT(*) DESC LIMIT 500",
        world.size.users
    ))?)
}

/// Writes messages of `most_followed`, and looks at a follower's page on another connection right behind each, while somebody else writes as well, of
/// these authors.
///
/// # Errors
/// When a page or a message fails.
pub fn measure_staleness(
    world: &StrategyServers,
    strategy: &dyn TimelineStrategy,
    effort: &MeasurementEffort,
    (followed, authors): (&[(u64, u64)], &[u64]),
) -> Result<StalenessSample, StrategyError> {
    if effort.staleness.is_zero() {
        return Ok(StalenessSample::default());
    }
    let (mut writer, mut other) = (strategy.session(world)?, strategy.session(world)?);
    let mut reader = strategy.session(world)?;
    let (ended, ids) = (AtomicBool::new(false), &world.ids);
    let mut found = StalenessSample::default();
    thread::scope(|scope| {
        let ended = &ended;
        let beside = scope.spawn(move || {
            for author in authors.iter().cycle() {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                write_message(ids, other.as_mut(), *author)?;
                thread::sleep(Duration::from_millis(4));
            }
            Ok::<_, StrategyError>(())
        });
        let looked = (|| {
            let begun = Instant::now();
            for (follower, author) in followed.iter().cycle() {
                if begun.elapsed() > effort.staleness {
                    break;
                }
                // A page that a cache may have from now on.
                let mut page = MessagePage::default();
                reader.page(*follower, None, &mut page)?;
                let id = write_message(&world.ids, writer.as_mut(), *author)?;
                let acknowledged = Instant::now();
                found.probed += 1;
                let mut lacked = false;
                loop {
                    page.rows.clear();
                    reader.page(*follower, None, &mut page)?;
                    let has = page.rows.iter().any(|row| row.id == id);
                    // Others may have filled the page since.
                    let past = page.rows.last().is_some_and(|row| row.id > id);
                    if has || past || acknowledged.elapsed() > STALENESS_TIMEOUT {
                        break;
                    }
                    lacked = true;
                    thread::sleep(Duration::from_micros(200));
                }
                if lacked {
                    found.stale_ms.push(milliseconds(acknowledged.elapsed()));
                }
            }
            Ok::<_, StrategyError>(())
        })();
        ended.store(true, Ordering::Relaxed);
        let beside = beside.join().unwrap_or(Err(StrategyError::ThreadEnded));
        looked.and(beside)
    })?;
    Ok(found)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// The one in the middle; 0 of none.
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
