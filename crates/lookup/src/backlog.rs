//! Pages that are left to be loaded in quiet moments, and all readers' pages where that is wished for.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use headwater_timeline::index::PlaceId;

/// Pages that wait; what does not fit is asked for again by the next call.
const MOST: usize = 10_000;
/// Pages in one round: calls that wait for little wait behind it.
const AT_A_TIME: usize = 16;
/// After so many rounds a page is left to the next call: memory may be too small for it.
const ROUNDS: u32 = 64;
/// Between two reports about progress.
const SAID: Duration = Duration::from_secs(5);
/// Until the log is followed again.
const PAUSE: Duration = Duration::from_millis(20);

/// A page of the `n` newest ids at or below a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Want {
    /// Whose it is.
    pub reader: u64,
    /// Its newest id is this one at most.
    pub bound: Option<u64>,
    /// How many ids it has at most.
    pub n: usize,
}

/// A page that waits, and how many rounds it has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The page.
    pub want: Want,
    rounds: u32,
}

/// What waits, a place after the other.
#[derive(Debug, Default)]
pub struct Backlog {
    waiting: VecDeque<(PlaceId, Waiting)>,
    known: HashSet<(PlaceId, Want)>,
    preloads: HashMap<PlaceId, Preload>,
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

/// How far the preload of a place has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Readers whose pages were asked for.
    pub done: u64,
    /// Readers there are.
    pub of: u64,
    /// How long it took, where this is the end of it.
    pub took: Option<Duration>,
}

impl Backlog {
    /// When to go on; `None` when there is nothing to do.
    #[must_use]
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let nothing = self.waiting.is_empty() && self.preloads.is_empty();
        (!nothing).then(|| self.due.unwrap_or(now))
    }

    /// The server was kept busy for so long, and is left alone for as long.
    pub fn rest(&mut self, busy: Duration, now: Instant) {
        self.due = Some(now + busy);
    }

    /// Nothing can be loaded now.
    pub fn wait(&mut self, now: Instant) {
        self.rest(PAUSE, now);
    }

    /// A page for later, if it is not there already.
    pub fn push(&mut self, place: PlaceId, want: Want) {
        if self.waiting.len() < MOST && self.known.insert((place, want)) {
            self.waiting.push_back((place, Waiting { want, rounds: 0 }));
        }
    }

    /// Whose turn it is.
    #[must_use]
    pub fn place(&self) -> Option<PlaceId> {
        let front = self.waiting.front().map(|(place, _)| *place);
        front.or_else(|| self.preloads.keys().next().copied())
    }

    /// Pages of a place, the oldest ones.
    pub fn next(&mut self, place: PlaceId) -> Vec<Waiting> {
        let mut taken = Vec::new();
        while taken.len() < AT_A_TIME
            && self.waiting.front().is_some_and(|(own, _)| *own == place)
            && let Some((_, waiting)) = self.waiting.pop_front()
        {
            self.known.remove(&(place, waiting.want));
            taken.push(waiting);
        }
        taken
    }

    /// A page that still lacks something.
    pub fn again(&mut self, place: PlaceId, Waiting { want, rounds }: Waiting) {
        if rounds < ROUNDS && self.known.insert((place, want)) {
            let rounds = rounds + 1;
            self.waiting.push_front((place, Waiting { want, rounds }));
        }
    }

    /// Something fails: calls will ask again.
    pub fn give_up(&mut self, place: PlaceId) {
        self.waiting.retain(|(own, _)| *own != place);
        self.known.retain(|(own, _)| *own != place);
    }

    /// Has the pages of so many readers loaded: all of them.
    pub fn preload(&mut self, place: PlaceId, readers: u64, now: Instant) {
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

    /// When it is time for more readers of a place: those behind this one, or from the first on.
    #[must_use]
    pub fn readers_behind(&self, place: PlaceId) -> Option<Option<u64>> {
        let preload = self.preloads.get(&place)?;
        let none = !self.waiting.iter().any(|(own, _)| *own == place);
        none.then_some(preload.behind)
    }

    /// More readers, and how long their pages are; none: that was all. Ends when memory is full. Says now and then how far it has come.
    pub fn add_readers(
        &mut self,
        place: PlaceId,
        (readers, n): (&[u64], usize),
        full: bool,
        now: Instant,
    ) -> Option<Progress> {
        let preload = self.preloads.get_mut(&place)?;
        let since = |then| now.saturating_duration_since(then);
        let mut progress = Progress {
            done: preload.done,
            of: preload.of,
            took: None,
        };
        if readers.is_empty() || full {
            progress.took = Some(since(preload.begun));
            self.preloads.remove(&place);
            return Some(progress);
        }
        let said = since(preload.said) >= SAID;
        if said {
            preload.said = now;
        }
        preload.behind = readers.last().copied();
        preload.done += readers.len() as u64;
        for reader in readers {
            let want = Want {
                reader: *reader,
                bound: None,
                n,
            };
            if self.known.insert((place, want)) {
                self.waiting.push_back((place, Waiting { want, rounds: 0 }));
            }
        }
        said.then_some(progress)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    const ONE: PlaceId = PlaceId(0);
    const OTHER: PlaceId = PlaceId(1);

    fn page(reader: u64) -> Want {
        Want {
            reader,
            bound: None,
            n: 20,
        }
    }

    fn readers(waiting: &[Waiting]) -> Vec<u64> {
        waiting.iter().map(|waiting| waiting.want.reader).collect()
    }

    /// The script's clock counts from here.
    #[allow(clippy::disallowed_methods)]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn a_page_waits_once_and_places_take_turns() {
        let mut backlog = Backlog::default();
        assert_eq!(backlog.due(start()), None);
        for (place, reader) in [(ONE, 1), (ONE, 1), (OTHER, 1), (ONE, 2)] {
            backlog.push(place, page(reader));
        }
        let mut turns = Vec::new();
        while let Some(place) = backlog.place() {
            turns.push((place, readers(&backlog.next(place))));
        }
        assert_eq!(turns, [(ONE, vec![1]), (OTHER, vec![1]), (ONE, vec![2])]);
        // It was taken, so it may be asked for again.
        backlog.push(ONE, page(1));
        assert_eq!(readers(&backlog.next(ONE)), [1]);
    }

    #[test]
    fn a_round_is_a_few_pages_and_the_rest_keeps_its_order() {
        let mut backlog = Backlog::default();
        (0..40).for_each(|reader| backlog.push(ONE, page(reader)));
        let rounds: Vec<_> = (0..4).map(|_| readers(&backlog.next(ONE))).collect();
        assert_eq!(
            rounds.iter().map(Vec::len).collect::<Vec<_>>(),
            [16, 16, 8, 0]
        );
        assert_eq!(rounds.concat(), (0..40).collect::<Vec<u64>>());
    }

    #[test]
    fn more_than_fits_is_left_to_the_calls() {
        let mut backlog = Backlog::default();
        (0..MOST as u64 + 5).for_each(|reader| backlog.push(ONE, page(reader)));
        let mut taken = 0;
        while backlog.place().is_some() {
            taken += backlog.next(ONE).len();
        }
        assert_eq!(taken, MOST);
    }

    #[test]
    fn a_page_that_never_comes_is_tried_first_and_given_up_in_the_end() {
        let mut backlog = Backlog::default();
        backlog.push(ONE, page(1));
        let mut rounds = 0;
        loop {
            let taken = backlog.next(ONE);
            let Some(first) = taken.first() else { break };
            assert_eq!(first.want, page(1), "it goes on before others");
            rounds += 1;
            backlog.push(ONE, page(2));
            backlog.again(ONE, *first);
            let others = taken.iter().skip(1);
            others.for_each(|other| backlog.again(ONE, *other));
            if rounds > ROUNDS {
                break;
            }
        }
        assert_eq!(rounds, ROUNDS + 1);
        assert_eq!(readers(&backlog.next(ONE)), [2]);
    }

    #[test]
    fn what_fails_is_given_up_for_its_place_alone() {
        let mut backlog = Backlog::default();
        backlog.push(ONE, page(1));
        backlog.push(OTHER, page(2));
        backlog.give_up(ONE);
        assert_eq!(backlog.place(), Some(OTHER));
        // A call asks again.
        backlog.push(ONE, page(1));
        assert_eq!((backlog.next(OTHER).len(), backlog.next(ONE).len()), (1, 1));
    }

    #[test]
    fn the_server_rests_as_long_as_it_was_busy() {
        let (mut backlog, now) = (Backlog::default(), start());
        backlog.push(ONE, page(1));
        assert_eq!(backlog.due(now), Some(now));
        backlog.rest(Duration::from_millis(300), now);
        assert_eq!(backlog.due(now), Some(now + Duration::from_millis(300)));
        backlog.wait(now);
        assert_eq!(backlog.due(now), Some(now + PAUSE));
    }

    #[test]
    fn a_preload_asks_for_readers_behind_the_last_when_nothing_waits_and_says_how_far_it_is() {
        let (mut backlog, now) = (Backlog::default(), start());
        assert_eq!(backlog.readers_behind(ONE), None);
        backlog.preload(ONE, 5, now);
        assert_eq!(backlog.place(), Some(ONE));
        assert_eq!(backlog.readers_behind(ONE), Some(None));
        assert_eq!(backlog.add_readers(ONE, (&[1, 2, 3], 20), false, now), None);
        assert_eq!(backlog.readers_behind(ONE), None, "their pages wait");
        assert_eq!(readers(&backlog.next(ONE)), [1, 2, 3]);
        assert_eq!(backlog.readers_behind(ONE), Some(Some(3)));
        let later = now + SAID;
        let said = backlog
            .add_readers(ONE, (&[7, 9], 20), false, later)
            .unwrap();
        assert_eq!((said.done, said.of, said.took), (3, 5, None));
        assert_eq!(backlog.next(ONE).len(), 2);
        assert_eq!(backlog.readers_behind(ONE), Some(Some(9)));
        let end = backlog.add_readers(ONE, (&[], 20), false, later).unwrap();
        assert_eq!((end.done, end.of, end.took), (5, 5, Some(SAID)));
        assert_eq!((backlog.place(), backlog.due(later)), (None, None));
    }

    #[test]
    fn a_preload_ends_where_memory_is_full() {
        let (mut backlog, now) = (Backlog::default(), start());
        backlog.preload(ONE, 5, now);
        let end = backlog.add_readers(ONE, (&[1], 20), true, now).unwrap();
        assert_eq!((end.done, end.took), (0, Some(Duration::ZERO)));
        assert_eq!(backlog.place(), None);
    }
}
