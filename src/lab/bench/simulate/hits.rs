//! The share of pages that memory has under a budget: the real index, with its own eviction, asked and changed as the sample's users do.

use serde::Serialize;

use super::world::{Dice, World};
use crate::index::{AuthorAsk, Change, Index, Position};

/// Messages on a page.
pub const N: usize = 20;
/// A page that needs more loads than these is given up.
const TRIES: usize = 4;

/// What users do, by chance.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Pages for each message that is written.
    pub reads: f64,
    /// Follows that come or go for each message that is written.
    pub follows: f64,
}

/// How it went under one budget.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Hits {
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

impl Hits {
    /// The share of pages that memory had.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.hits as f64 / self.pages.max(1) as f64
    }
}

/// Puts what an author wrote into the index, as far as a load asks for it.
pub fn load(index: &mut Index, ask: AuthorAsk, written: &[u64]) {
    let end = ask.below.map_or(written.len(), |below| {
        written.partition_point(|id| *id < below)
    });
    let start = end.saturating_sub(N);
    let rows = written.get(start..end).unwrap_or_default();
    let down_to = (start == 0).then_some(0);
    let at = index.position();
    index.loaded_author(ask.ticket, rows.to_vec(), down_to, at);
}

/// Who asks: each reader with a weight of its own.
#[derive(Clone, Debug)]
pub struct Askers {
    readers: Vec<u64>,
    /// Sums of weights up to each reader; none: all alike.
    sums: Vec<f64>,
}

impl Askers {
    /// Each as often as any other.
    #[must_use]
    pub fn alike(readers: Vec<u64>) -> Askers {
        Askers {
            readers,
            sums: Vec::new(),
        }
    }

    /// As unevenly as the seeds' users post: few do most of it. Who comes first asks most.
    #[must_use]
    pub fn unevenly(readers: Vec<u64>) -> Askers {
        let offset = readers.len() as f64 * OFFSET;
        let mut sum = 0.0;
        let weigh = |place: usize| {
            sum += (place as f64 + 1.0 + offset).powf(-EXPONENT);
            sum
        };
        let sums = (0..readers.len()).map(weigh).collect();
        Askers { readers, sums }
    }

    fn draw(&self, dice: &mut Dice) -> u64 {
        let Some(all) = self.sums.last() else {
            return dice.pick(&self.readers).copied().unwrap_or(0);
        };
        let drawn = dice.share() * all;
        let place = self.sums.partition_point(|sum| *sum <= drawn);
        self.readers.get(place).copied().unwrap_or(0)
    }
}

/// The skew of who posts in the classic data set.
const EXPONENT: f64 = 1.3;
const OFFSET: f64 = 0.01;

/// Lets so many things happen, and counts in the second half.
#[must_use]
pub fn simulate(
    mut world: World,
    askers: &Askers,
    mix: Mix,
    (budget, events): (usize, u64),
    dice: &mut Dice,
    mut progress: impl FnMut(u64) -> bool,
) -> Hits {
    let mut index: Index = Index::new(budget);
    let mut next_id = world.written.len() as u64;
    let mut hits = Hits {
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
            befriend(&mut world, &mut index, askers.draw(dice), dice);
        } else {
            let counts = event >= events / 2;
            read(&world, &mut index, askers.draw(dice), counts, &mut hits);
        }
    }
    hits.evicted = index.evicted();
    hits
}

fn step(index: &Index) -> Position {
    let at = index.position();
    Position {
        offset: at.offset + 1,
        ..at
    }
}

fn post(world: &mut World, index: &mut Index, id: u64, dice: &mut Dice) {
    let author = u64::from(dice.pick(&world.written).copied().unwrap_or(0));
    let place = usize::try_from(author).unwrap_or(usize::MAX);
    if let Some(own) = world.messages.get_mut(place) {
        own.push(id);
    }
    let posted = Change::Posted { author, key: 0, id };
    index.apply(&[posted], step(index));
}

/// A follow comes or goes, each as likely.
fn befriend(world: &mut World, index: &mut Index, reader: u64, dice: &mut Dice) {
    let author = u64::from(dice.pick(&world.followed).copied().unwrap_or(0));
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
            Change::Unfollowed { reader, author }
        }
        (false, Err(at)) => {
            list.insert(at, author);
            Change::Followed { reader, author }
        }
        (false, Ok(_)) => return,
    };
    index.apply(&[change], step(index));
}

fn read(world: &World, index: &mut Index, reader: u64, counts: bool, hits: &mut Hits) {
    for tries in 0..TRIES {
        let missing = match index.page(reader, None, N) {
            Ok(_) => {
                hits.pages += u64::from(counts);
                hits.hits += u64::from(counts && tries == 0);
                return;
            }
            Err(missing) => missing,
        };
        if missing.reader
            && let Some(ticket) = index.begin_reader(reader)
        {
            hits.reader_loads += u64::from(counts);
            let at = index.position();
            index.loaded_reader(ticket, world.follows_of(reader).to_vec(), at);
        }
        for author in missing.authors {
            if let Some(ask) = index.begin_author(author, None, N) {
                hits.author_loads += u64::from(counts);
                load(index, ask, world.messages_of(author));
            }
        }
    }
    hits.pages += u64::from(counts);
}
