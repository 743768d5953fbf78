//! What is left to be loaded in quiet moments.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use crate::binlog::place::{Place, Want};

/// Pages that wait; what does not fit is asked for again by the next call.
const MOST: usize = 10_000;
/// Pages in one round: calls that wait for little wait behind it.
const AT_A_TIME: usize = 16;
/// After so many rounds a page is left to the next call: memory may be too small for it.
const ROUNDS: u32 = 64;
/// Readers that are asked for at a time.
const READERS: usize = 64;
/// Between two lines about progress.
const SAID: Duration = Duration::from_secs(5);
/// Until the log is followed again.
const PAUSE: Duration = Duration::from_millis(20);

/// A page that waits, and how many rounds it has had.
pub(super) type Waiting = (Want, u32);

/// What waits, a place after the other.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    waiting: VecDeque<(usize, Waiting)>,
    known: HashSet<(usize, Want)>,
    preloads: HashMap<usize, Preload>,
    /// Not before.
    due: Option<Instant>,
}

/// All readers of a place.
#[derive(Debug)]
struct Preload {
    begun: Instant,
    said: Instant,
    behind: Option<u64>,
    done: u64,
    of: u64,
}

impl Backlog {
    /// When to go on; `None` when there is nothing to do.
    pub(super) fn due(&self) -> Option<Instant> {
        let nothing = self.waiting.is_empty() && self.preloads.is_empty();
        (!nothing).then(|| self.due.unwrap_or_else(Instant::now))
    }

    /// The server is left alone for as long as it was kept busy.
    pub(super) fn rest(&mut self, busy: Duration) {
        self.due = Some(Instant::now() + busy);
    }

    /// Nothing can be loaded now.
    pub(super) fn wait(&mut self) {
        self.rest(PAUSE);
    }

    /// A page for later, if it is not there already.
    pub(super) fn push(&mut self, place: usize, want: Want) {
        if self.waiting.len() < MOST && self.known.insert((place, want)) {
            self.waiting.push_back((place, (want, 0)));
        }
    }

    /// Whose turn it is.
    pub(super) fn place(&self) -> Option<usize> {
        let front = self.waiting.front().map(|(place, _)| *place);
        front.or_else(|| self.preloads.keys().next().copied())
    }

    /// Pages of a place, the oldest ones.
    pub(super) fn next(&mut self, place: usize) -> Vec<Waiting> {
        let mut taken = Vec::new();
        while taken.len() < AT_A_TIME
            && self.waiting.front().is_some_and(|(own, _)| *own == place)
            && let Some((_, waiting)) = self.waiting.pop_front()
        {
            self.known.remove(&(place, waiting.0));
            taken.push(waiting);
        }
        taken
    }

    /// Pages that still lack something.
    pub(super) fn again(&mut self, place: usize, (want, rounds): Waiting) {
        if rounds < ROUNDS && self.known.insert((place, want)) {
            self.waiting.push_front((place, (want, rounds + 1)));
        }
    }

    /// Something fails: calls will ask again.
    pub(super) fn give_up(&mut self, place: usize) {
        self.waiting.retain(|(own, _)| *own != place);
        self.known.retain(|(own, _)| *own != place);
    }

    /// Has the pages of so many readers loaded: all of them.
    pub(super) fn preload(&mut self, place: usize, readers: u64) {
        let now = Instant::now();
        self.preloads.insert(
            place,
            Preload {
                begun: now,
                said: now,
                behind: None,
                done: 0,
                of: readers,
            },
        );
    }

    /// How to ask for more readers, when it is time to.
    pub(super) fn more_readers(&self, place: &Place) -> Option<String> {
        let preload = self.preloads.get(&place.number())?;
        let none = !self.waiting.iter().any(|(own, _)| *own == place.number());
        none.then(|| place.tables.readers_query(preload.behind, READERS))
    }

    /// More readers; none: that was all. Ends when memory is full.
    pub(super) fn add_readers(&mut self, place: &Place, readers: &[u64], memory_bytes: usize) {
        let number = place.number();
        let Some(preload) = self.preloads.get_mut(&number) else {
            return;
        };
        let (full, [bytes, follows, authors, ids]) = {
            let index = place.index();
            let sizes = [index.bytes(), index.edges(), index.authors(), index.ids()];
            (index.is_nearly_full(), sizes)
        };
        if readers.is_empty() || full {
            tracing::info!(
                "preload of {}: {} readers, {follows} follows, {authors} authors, {ids} ids, {:.0} MiB in {:.1} s{}",
                place.database(),
                preload.done,
                bytes as f64 / 1_048_576.0,
                preload.begun.elapsed().as_secs_f64(),
                if full && !readers.is_empty() {
                    format!(
                        "; then memory was full (index.memory_bytes = {memory_bytes}), of {} readers",
                        preload.of
                    )
                } else {
                    String::new()
                }
            );
            self.preloads.remove(&number);
            return;
        }
        if preload.said.elapsed() >= SAID {
            preload.said = Instant::now();
            tracing::info!(
                "preload of {}: {} of {} readers",
                place.database(),
                preload.done,
                preload.of
            );
        }
        preload.behind = readers.last().copied();
        preload.done += readers.len() as u64;
        for reader in readers {
            let want = Want {
                reader: *reader,
                bound: None,
                n: place.tables.n(),
            };
            if self.known.insert((number, want)) {
                self.waiting.push_back((number, (want, 0)));
            }
        }
    }
}
