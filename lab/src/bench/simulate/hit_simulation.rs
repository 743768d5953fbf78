//! The hit rate of pages under a memory budget: the real index, with its own eviction, is read and changed as the sample's users do.

use serde::Serialize;

use super::user_sample::{SplitMix64, UserSample};
use headwater_timeline::index::{AuthorLoadRequest, BinlogPosition, TimelineChange, TimelineIndex};

/// Messages on a page.
pub const PAGE_ROWS: usize = 20;
/// A page that needs more load rounds than these is abandoned.
const MAX_LOAD_ROUNDS: usize = 4;

/// The users' events, drawn at random.
#[derive(Clone, Copy, Debug)]
pub struct EventMix {
    /// Pages read for each message.
    pub reads: f64,
    /// Follows and unfollows for each message.
    pub follows: f64,
}

/// The counts under one budget.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HitCounts {
    /// Pages requested after the warm-up.
    pub pages: u64,
    /// Pages that memory answered without a load.
    pub hits: u64,
    /// Follow lists that were loaded.
    pub reader_loads: u64,
    /// Author windows that were loaded.
    pub author_loads: u64,
    /// Evicted entries.
    pub evicted: u64,
}

impl HitCounts {
    /// The share of pages that memory answered.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.hits as f64 / self.pages.max(1) as f64
    }
}

/// Puts an author's messages into the index, as far as the load requests them.
pub fn load_author(index: &mut TimelineIndex, request: AuthorLoadRequest, written: &[u64]) {
    let end = request.below.map_or(written.len(), |below| {
        written.partition_point(|id| *id < below)
    });
    let start = end.saturating_sub(PAGE_ROWS);
    let rows = written.get(start..end).unwrap_or_default();
    let down_to = (start == 0).then_some(0);
    let at = index.position();
    index.accept_author_rows(request.ticket, rows.to_vec(), down_to, at);
}

/// Draws readers, each with a weight of its own.
#[derive(Clone, Debug)]
pub struct ReaderWeights {
    readers: Vec<u64>,
    /// Running sums of the weights; empty: all are equal.
    sums: Vec<f64>,
}

impl ReaderWeights {
    /// All readers with the same weight.
    #[must_use]
    pub fn uniform(readers: Vec<u64>) -> ReaderWeights {
        ReaderWeights {
            readers,
            sums: Vec::new(),
        }
    }

    /// Weights as uneven as those of the seeds' authors: few readers do most of the reading. The first reader has the greatest weight.
    #[must_use]
    pub fn skewed(readers: Vec<u64>) -> ReaderWeights {
        let offset = readers.len() as f64 * SKEW_OFFSET;
        let mut sum = 0.0;
        let weigh = |rank: usize| {
            sum += (rank as f64 + 1.0 + offset).powf(-SKEW_EXPONENT);
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
        let index = self.sums.partition_point(|sum| *sum <= drawn);
        self.readers.get(index).copied().unwrap_or(0)
    }
}

/// The skew of the posting weights in the classic data set.
const SKEW_EXPONENT: f64 = 1.3;
const SKEW_OFFSET: f64 = 0.01;

/// Runs so many events, and counts in the second half.
#[must_use]
pub fn simulate(
    mut sample: UserSample,
    weights: &ReaderWeights,
    mix: EventMix,
    (budget, events): (usize, u64),
    dice: &mut SplitMix64,
    mut progress: impl FnMut(u64) -> bool,
) -> HitCounts {
    let mut index: TimelineIndex = TimelineIndex::new(budget);
    let mut next_id = sample.message_authors.len() as u64;
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
            post(&mut sample, &mut index, next_id, dice);
        } else if happens < 1.0 + mix.follows {
            toggle_follow(&mut sample, &mut index, weights.draw(dice), dice);
        } else {
            let counts = event >= events / 2;
            read_page(&sample, &mut index, weights.draw(dice), counts, &mut hits);
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

fn post(sample: &mut UserSample, index: &mut TimelineIndex, id: u64, dice: &mut SplitMix64) {
    let author = u64::from(dice.pick(&sample.message_authors).copied().unwrap_or(0));
    let position = usize::try_from(author).unwrap_or(usize::MAX);
    if let Some(messages_of_author) = sample.messages.get_mut(position) {
        messages_of_author.push(id);
    }
    let posted = TimelineChange::Posted { author, key: 0, id };
    index.apply(&[posted], next_position(index));
}

/// Adds or removes a follow, with the same probability.
fn toggle_follow(
    sample: &mut UserSample,
    index: &mut TimelineIndex,
    reader: u64,
    dice: &mut SplitMix64,
) {
    let author = u64::from(dice.pick(&sample.follow_authors).copied().unwrap_or(0));
    let leaves = dice.below(2) == 0;
    let position = usize::try_from(reader).unwrap_or(usize::MAX);
    let Some(list) = sample.follows.get_mut(position) else {
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
    sample: &UserSample,
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
            index.accept_reader_rows(ticket, sample.follows_of(reader).to_vec(), at);
        }
        for author in missing.authors {
            if let Some(request) = index.begin_author_load(author, None, PAGE_ROWS) {
                hits.author_loads += u64::from(counts);
                load_author(index, request, sample.messages_of(author));
            }
        }
    }
    hits.pages += u64::from(counts);
}
