//! The share of pages that memory has under a budget: the real index, with its own eviction, asked and changed as the sample's users do.

use serde::Serialize;

use super::user_sample::{SplitMix64, UserSample};
use crate::index::{AuthorLoadRequest, BinlogPosition, TimelineChange, TimelineIndex};

/// Messages on a page.
pub const PAGE_ROWS: usize = 20;
/// A page that needs more loads than these is given up.
const MAX_LOAD_ROUNDS: usize = 4;

/// What users do, by chance.
#[derive(Clone, Copy, Debug)]
pub struct EventMix {
    /// Pages for each message that is written.
    pub reads: f64,
    /// Follows that come or go for each message that is written.
    pub follows: f64,
}

/// How it went under one budget.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HitCounts {
    /// Pages that were asked for once the index was warm.
    pub pages: u64,
    /// Those of them that were there without a load.
    pub hits: u64,
    /// Follow lists that had to be loaded.
    pub reader_loads: u64,
    /// Windows that had to be.
    pub author_loads: u64,
    /// Entries that made room for others.
    pub evicted: u64,
}

impl HitCounts {
    /// The share of pages that memory had.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.hits as f64 / self.pages.max(1) as f64
    }
}

/// Puts what an author wrote into the index, as far as a load asks for it.
pub fn load_author(index: &mut TimelineIndex, ask: AuthorLoadRequest, written: &[u64]) {
    let end = ask.below.map_or(written.len(), |below| {
        written.partition_point(|id| *id < below)
    });
    let start = end.saturating_sub(PAGE_ROWS);
    let rows = written.get(start..end).unwrap_or_default();
    let down_to = (start == 0).then_some(0);
    let at = index.position();
    index.accept_author_rows(ask.ticket, rows.to_vec(), down_to, at);
}

/// Who asks: each reader with a weight of its own.
#[derive(Clone, Debug)]
pub struct ReaderWeights {
    readers: Vec<u64>,
    /// Sums of weights up to each reader; none: all alike.
    sums: Vec<f64>,
}

impl ReaderWeights {
    /// Each as often as any other.
    #[must_use]
    pub fn uniform(readers: Vec<u64>) -> ReaderWeights {
        ReaderWeights {
            readers,
            sums: Vec::new(),
        }
    }

    /// As unevenly as the seeds' users post: few do most of it. Who comes first asks most.
    #[must_use]
    pub fn skewed(readers: Vec<u64>) -> ReaderWeights {
        let offset = readers.len() as f64 * SKEW_OFFSET;
        let mut sum = 0.0;
        let weigh = |place: usize| {
            sum += (place as f64 + 1.0 + offset).powf(-SKEW_EXPONENT);
            sum
        };
        let sums = (0..readers.len()).map(weigh).collect();
        ReaderWeights { readers, sums }
    }

    fn draw(&self, dice: &mut SplitMix64) -> u64 {
        let Some(all) = self.sums.last() else {
            return dice.pick(&self.readers).copied().unwrap_or(0);
        };
        let drawn = dice.share() * all;
        let place = self.sums.partition_point(|sum| *sum <= drawn);
        self.readers.get(place).copied().unwrap_or(0)
    }
}

/// The skew of who posts in the classic data set.
const SKEW_EXPONENT: f64 = 1.3;
const SKEW_OFFSET: f64 = 0.01;

/// Lets so many things happen, and counts in the second half.
#[must_use]
pub fn simulate(
    mut world: UserSample,
    askers: &ReaderWeights,
    mix: EventMix,
    (budget, events): (usize, u64),
    dice: &mut SplitMix64,
    mut progress: impl FnMut(u64) -> bool,
) -> HitCounts {
    let mut index: TimelineIndex = TimelineIndex::new(budget);
    let mut next_id = world.message_authors.len() as u64;
    let mut hits = HitCounts {
        pages: 0,
        hits: 0,
        reader_loads: 0,
        author_loads: 0,
        evicted: 0,
    };
    let all = 1.0 + mix.reads + mix.follows;
    for event in 0..events {
        if event % 4_096 == 0 && !progress(event) {
            break;
        }
        let happens = dice.share() * all;
        if happens < 1.0 {
            next_id += 1;
            post(&mut world, &mut index, next_id, dice);
        } else if happens < 1.0 + mix.follows {
            toggle_follow(&mut world, &mut index, askers.draw(dice), dice);
        } else {
            let counts = event >= events / 2;
            read_page(&world, &mut index, askers.draw(dice), counts, &mut hits);
        }
    }
    hits.evicted = index.evicted_count();
    hits
}

fn next_position(index: &TimelineIndex) -> BinlogPosition {
    let at = index.position();
    BinlogPosition {
        offset: at.offset + 1,
        ..at
    }
}

fn post(world: &mut UserSample, index: &mut TimelineIndex, id: u64, dice: &mut SplitMix64) {
    let author = u64::from(dice.pick(&world.message_authors).copied().unwrap_or(0));
    let place = usize::try_from(author).unwrap_or(usize::MAX);
    if let Some(own) = world.messages.get_mut(place) {
        own.push(id);
    }
    let posted = TimelineChange::Posted { author, key: 0, id };
    index.apply(&[posted], next_position(index));
}

/// A follow comes or goes, each as likely.
fn toggle_follow(
    world: &mut UserSample,
    index: &mut TimelineIndex,
    reader: u64,
    dice: &mut SplitMix64,
) {
    let author = u64::from(dice.pick(&world.follow_authors).copied().unwrap_or(0));
    let leaves = dice.below(2) == 0;
    let place = usize::try_from(reader).unwrap_or(usize::MAX);
    let Some(list) = world.follows.get_mut(place) else {
        return;
    };
    let change = match (leaves, list.binary_search(&author)) {
        (true, _) => {
            let which = usize::try_from(dice.below(list.len() as u64)).unwrap_or(0);
            if list.is_empty() {
                return;
            }
            let author = list.remove(which);
            TimelineChange::Unfollowed { reader, author }
        }
        (false, Err(at)) => {
            list.insert(at, author);
            TimelineChange::Followed { reader, author }
        }
        (false, Ok(_)) => return,
    };
    index.apply(&[change], next_position(index));
}

fn read_page(
    world: &UserSample,
    index: &mut TimelineIndex,
    reader: u64,
    counts: bool,
    hits: &mut HitCounts,
) {
    for tries in 0..MAX_LOAD_ROUNDS {
        let missing = match index.page(reader, None, PAGE_ROWS) {
            Ok(_) => {
                hits.pages += u64::from(counts);
                hits.hits += u64::from(counts && tries == 0);
                return;
            }
            Err(missing) => missing,
        };
        if missing.reader
            && let Some(ticket) = index.begin_reader_load(reader)
        {
            hits.reader_loads += u64::from(counts);
            let at = index.position();
            index.accept_reader_rows(ticket, world.follows_of(reader).to_vec(), at);
        }
        for author in missing.authors {
            if let Some(ask) = index.begin_author_load(author, None, PAGE_ROWS) {
                hits.author_loads += u64::from(counts);
                load_author(index, ask, world.messages_of(author));
            }
        }
    }
    hits.pages += u64::from(counts);
}
