//! The measurements themselves. Strategies take turns several times a second where rates are compared, so that the machine's drift meets all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Failure;
use super::figures::Post;
use super::page::{Page, Row};
use super::strategy::{Claim, Session, Strategy};
use super::world::{Ids, World};
use crate::lab::bench::Stop;
use crate::lab::bench::data::shuffle;
use crate::lab::bench::figures::Figures;
use crate::lab::bench::measure::{Job, Lane, repeat, together};

/// How long one strategy has its turn.
pub const SLICE: Duration = Duration::from_millis(150);
/// Who had to wait for longer warms up: for this part of the time that it waited, and for a turn at most.
const PAUSE: Duration = Duration::from_secs(1);
const WARMS: u32 = 50;
/// A deep page begins with the reader's message by this number.
const DEEP: u64 = 200;
/// Who waits for a page to get a message gives up after so long.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Followers of the authors whose messages are timed.
const CLASSES: [u64; 3] = [10, 1_000, 100_000];
/// Messages of one author are timed for so long, and so many of them at least.
const POSTING: Duration = Duration::from_secs(8);
const FEWEST_POSTS: usize = 3;
const BODY: &str = "A message of the length that messages have, which is what the first measurements of timelines were made with: a hundred and forty bytes.";

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
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

impl Effort {
    /// Time for each rate of each strategy.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        SLICE.as_secs_f64() * f64::from(self.rounds)
    }
}

/// A page to ask for.
pub type Ask = (u64, Option<u64>);

/// What was compared, and what was equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compared {
    /// Pages.
    pub pages: u64,
    /// Those that were the same.
    pub equal: u64,
}

/// Has each of these connections do its share of a list at the same time; what comes of it, in the order of the list.
fn share<C: Send, A: Sync, T: Send>(
    connections: &mut [C],
    list: &[A],
    each: &(dyn Fn(&mut C, &A) -> Result<T, Failure> + Sync),
) -> Result<Vec<T>, Failure> {
    let most = list.len().div_ceil(connections.len().max(1)).max(1);
    let shares = connections.iter_mut().zip(list.chunks(most));
    let jobs = shares.map(|(connection, share)| -> Job<'_, Vec<T>, Failure> {
        Box::new(move || share.iter().map(|one| each(connection, one)).collect())
    });
    let done = together(jobs.collect())?;
    Ok(done.into_iter().flatten().collect())
}

/// The newest page of each of these readers, and, where they are wanted, a deep one of those who have one.
///
/// # Errors
/// When the server does not tell.
pub fn asks(
    world: &World,
    readers: &[u64],
    effort: &Effort,
) -> Result<(Vec<Ask>, Vec<Ask>), Failure> {
    let newest = readers.iter().map(|reader| (*reader, None)).collect();
    if !effort.deep {
        return Ok((newest, Vec::new()));
    }
    let clients: Result<Vec<_>, _> = (0..effort.connections).map(|_| world.connect()).collect();
    let deep = share(&mut clients?, readers, &|client, reader| {
        let bound = client.numbers(&format!(
            "SELECT message.id FROM message INNER JOIN follower ON message.user_id=follower.follower_id \
             WHERE follower.user_id={reader} ORDER BY message.id DESC LIMIT {DEEP},1"
        ))?;
        Ok(bound.first().map(|bound| (*reader, Some(*bound))))
    })?;
    Ok((newest, deep.into_iter().flatten().collect()))
}

/// The pages that these connections answer.
///
/// # Errors
/// When one cannot be had.
pub fn pages(team: &mut [Box<dyn Session>], asks: &[Ask]) -> Result<Vec<Vec<Row>>, Failure> {
    share(team, asks, &|session, (reader, bound)| {
        let mut page = Page::default();
        session.page(*reader, *bound, &mut page)?;
        Ok(page.rows)
    })
}

/// Compares pages with what they have to be.
///
/// # Errors
/// When a page cannot be had.
pub fn compare(
    team: &mut [Box<dyn Session>],
    asks: &[Ask],
    truth: &[Vec<Row>],
    compared: &mut Compared,
) -> Result<(), Failure> {
    let pages = pages(team, asks)?;
    let equal = pages.iter().zip(truth).filter(|(one, other)| one == other);
    compared.pages += pages.len() as u64;
    compared.equal += equal.count() as u64;
    Ok(())
}

/// What a connection does at a place of its list.
pub type Once<'a> = dyn Fn(&mut dyn Session, usize, &mut Page) -> Result<(), Failure> + Sync + 'a;

/// One strategy's connections.
pub type Team = Vec<Box<dyn Session>>;

/// Connections that have their turn together, and what each of them does then.
pub struct Side<'a> {
    /// They.
    pub team: &'a mut Team,
    /// Is told of the place in its list.
    pub once: &'a Once<'a>,
}

/// Has all sides do something in turn, each on all of its connections. Where others took long, a side does it for a while in front of its turn,
/// which does not count: that it was idle is the bench's own doing, and processors, the system and the server have forgotten it meanwhile.
///
/// # Errors
/// When it fails, or the bench is asked to stop.
pub fn rates(
    sides: &mut [Side<'_>],
    rounds: u32,
    places: usize,
    stop: &Stop,
) -> Result<Vec<Figures>, Failure> {
    let mut lanes = Vec::new();
    for side in sides.iter() {
        lanes.push(Lane::several(side.team.len(), places)?);
    }
    let mut ended: Vec<Instant> = vec![Instant::now(); lanes.len()];
    // Round 0 warms up and does not count.
    for round in 0..=rounds {
        for ((side, lanes), ended) in sides.iter_mut().zip(&mut lanes).zip(&mut ended) {
            if stop.asked() {
                return Err(Failure::Stopped);
            }
            let waited = ended.elapsed();
            let warms = (waited > PAUSE).then(|| (waited / WARMS).min(SLICE));
            let once = side.once;
            let jobs = side.team.iter_mut().zip(lanes.iter_mut());
            let jobs = jobs.map(|(session, lane)| -> Job<'_, (), Failure> {
                Box::new(move || {
                    let mut page = Page::default();
                    let mut once = |place| {
                        page.rows.clear();
                        once(session.as_mut(), place, &mut page)
                    };
                    if let Some(length) = warms {
                        repeat(length, places, &mut lane.uncounted()?, stop, &mut once)?;
                    }
                    repeat(SLICE, places, lane, stop, once)
                })
            });
            together(jobs.collect())?;
            if round == 0 {
                lanes.iter_mut().for_each(Lane::forget);
            }
            *ended = Instant::now();
        }
    }
    let rates = lanes.iter().map(|lanes| Ok(Figures::of(lanes)?));
    rates.collect()
}

/// Writes one message, of an author from this list.
///
/// # Errors
/// When it fails.
pub fn post(ids: &Ids, session: &mut dyn Session, author: u64) -> Result<u64, Failure> {
    let id = ids.next();
    session.post(id, author, BODY)?;
    Ok(id)
}

/// Authors as they have written: one who wrote twice as much is there twice as often.
///
/// # Errors
/// When the server does not tell.
pub fn writers(world: &World) -> Result<Vec<u64>, Failure> {
    let most = 2_000;
    let step = (world.size.messages / most).max(1);
    let mut authors = world.connect()?.numbers(&format!(
        "SELECT user_id FROM message WHERE id MOD {step}=0 LIMIT {most}"
    ))?;
    shuffle(&mut authors, world.size.seed);
    Ok(authors)
}

/// An author with about as many followers, and how many: at most twice as many, and at least half.
fn author_of(world: &World, followers: u64) -> Result<Option<(u64, u64)>, Failure> {
    let (least, most) = (followers / 2, followers * 2);
    let found = world.connect()?.pairs(&format!(
        "SELECT follower_id,COUNT(*) FROM follower GROUP BY follower_id HAVING COUNT(*) BETWEEN {least} AND {most} \
         ORDER BY ABS(CAST(COUNT(*) AS SIGNED)-{followers}),follower_id LIMIT 1"
    ))?;
    Ok(found.first().copied())
}

/// What a message costs by how many followers its author has, where there are such authors; the most followed one in any case.
///
/// # Errors
/// When a message cannot be written.
pub fn posts(
    world: &World,
    session: &mut dyn Session,
    effort: &Effort,
    stop: &Stop,
) -> Result<Vec<Post>, Failure> {
    let mut posts = Vec::new();
    if effort.changes == 0 {
        return Ok(posts);
    }
    let most = world.connect()?.pairs(
        "SELECT follower_id,COUNT(*) FROM follower GROUP BY follower_id ORDER BY 2 DESC,1 LIMIT 1",
    )?;
    let most = most.first().copied();
    let mut authors = Vec::new();
    for about in CLASSES {
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
            if stop.asked() {
                return Err(Failure::Stopped);
            }
            // One that goes to many takes seconds.
            if place >= FEWEST_POSTS && first.elapsed() > POSTING {
                break;
            }
            let begun = Instant::now();
            post(&world.ids, session, author)?;
            times.push(ms(begun.elapsed()));
        }
        let ms = median(&mut times);
        posts.push(Post {
            about,
            followers,
            ms,
        });
    }
    Ok(posts)
}

/// What changes of what a reader sees cost: medians in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes {
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
pub fn some_follows(world: &World, most: usize) -> Result<Vec<(u64, u64)>, Failure> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let mut follows = world.connect()?.pairs(&format!(
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
pub fn changes(
    world: &World,
    strategy: &dyn Strategy,
    follows: &[(u64, u64)],
    compared: &mut Compared,
) -> Result<Changes, Failure> {
    let mut session = strategy.session(world)?;
    let mut procedure = [super::pull::PROCEDURE.session(world)?];
    let mut times: [Vec<f64>; 4] = Default::default();
    for (reader, author) in follows {
        let (reader, author) = (*reader, *author);
        let asks = [(reader, None)];
        let timed = |does: &mut dyn FnMut() -> Result<(), Failure>| {
            let begun = Instant::now();
            does()?;
            Ok::<_, Failure>(ms(begun.elapsed()))
        };
        let mut page = Page::default();
        session.page(reader, None, &mut page)?;
        let unfollow = timed(&mut || session.unfollow(reader, author))?;
        page.rows.clear();
        let refill = timed(&mut || session.page(reader, None, &mut page))?;
        let mut check = |session: &mut Box<dyn Session>| {
            // Who promises nothing is not held to it.
            if strategy.claim() == Claim::Stale {
                return Ok(());
            }
            let truth = pages(&mut procedure, &asks)?;
            compare(std::slice::from_mut(session), &asks, &truth, compared)
        };
        check(&mut session)?;
        let follow = timed(&mut || session.follow(reader, author))?;
        check(&mut session)?;
        let id = post(&world.ids, session.as_mut(), author)?;
        check(&mut session)?;
        let delete = timed(&mut || session.delete(id, author))?;
        check(&mut session)?;
        for (all, time) in times.iter_mut().zip([follow, unfollow, refill, delete]) {
            all.push(time);
        }
    }
    let [follow, unfollow, refill, delete] = times.map(|mut times| median(&mut times));
    Ok(Changes {
        follow,
        unfollow,
        refill,
        delete,
    })
}

/// How often a page lacked what had been acknowledged, and for how long, in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Staleness {
    /// Pages that were looked at.
    pub looked: u64,
    /// How long each of those that were stale was.
    pub stale: Vec<f64>,
}

/// The users with the most followers, each behind one who follows it; none where nobody asks how stale pages are.
///
/// # Errors
/// When the server does not tell.
pub fn followed(world: &World, effort: &Effort) -> Result<Vec<(u64, u64)>, Failure> {
    if effort.staleness.is_zero() {
        return Ok(Vec::new());
    }
    Ok(world.connect()?.pairs(&format!(
        "SELECT MIN(user_id),follower_id FROM follower WHERE follower_id<={} \
         GROUP BY follower_id ORDER BY COUNT(*) DESC LIMIT 500",
        world.size.users
    ))?)
}

/// Writes messages of `followed`, and looks at a follower's page on another connection right behind each, while somebody else writes as well, of
/// these authors.
///
/// # Errors
/// When a page or a message fails.
pub fn staleness(
    world: &World,
    strategy: &dyn Strategy,
    effort: &Effort,
    (followed, authors): (&[(u64, u64)], &[u64]),
) -> Result<Staleness, Failure> {
    if effort.staleness.is_zero() {
        return Ok(Staleness::default());
    }
    let (mut writer, mut other) = (strategy.session(world)?, strategy.session(world)?);
    let mut reader = strategy.session(world)?;
    let (ended, ids) = (AtomicBool::new(false), &world.ids);
    let mut found = Staleness::default();
    thread::scope(|scope| {
        let ended = &ended;
        let beside = scope.spawn(move || {
            for author in authors.iter().cycle() {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                post(ids, other.as_mut(), *author)?;
                thread::sleep(Duration::from_millis(4));
            }
            Ok::<_, Failure>(())
        });
        let looked = (|| {
            let begun = Instant::now();
            for (follower, author) in followed.iter().cycle() {
                if begun.elapsed() > effort.staleness {
                    break;
                }
                // A page that a cache may have from now on.
                let mut page = Page::default();
                reader.page(*follower, None, &mut page)?;
                let id = post(&world.ids, writer.as_mut(), *author)?;
                let acknowledged = Instant::now();
                found.looked += 1;
                let mut lacked = false;
                loop {
                    page.rows.clear();
                    reader.page(*follower, None, &mut page)?;
                    let has = page.rows.iter().any(|row| row.id == id);
                    // Others may have filled the page since.
                    let past = page.rows.last().is_some_and(|row| row.id > id);
                    if has || past || acknowledged.elapsed() > PATIENCE {
                        break;
                    }
                    lacked = true;
                    thread::sleep(Duration::from_micros(200));
                }
                if lacked {
                    found.stale.push(ms(acknowledged.elapsed()));
                }
            }
            Ok::<_, Failure>(())
        })();
        ended.store(true, Ordering::Relaxed);
        let beside = beside.join().unwrap_or(Err(Failure::Thread));
        looked.and(beside)
    })?;
    Ok(found)
}

fn ms(time: Duration) -> f64 {
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
