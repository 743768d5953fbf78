//! Pages that are left to be loaded in quiet moments, and all readers' pages where that is wished for.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use headwater_timeline::index::TimelineId;

/// Pages that wait; what does not fit is asked for again by the next call.
const MAX_QUEUED_PAGES: usize = 10_000;
/// Pages in one round: calls that wait for little wait behind it.
const PAGES_PER_ROUND: usize = 16;
/// After so many rounds a page is left to the next call: memory may be too small for it.
const MAX_ROUNDS: u32 = 64;
/// Between two reports about progress.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// Until the log is followed again.
const SUSPENDED_RETRY_DELAY: Duration = Duration::from_millis(20);

/// A page of the `n` newest ids at or below a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BacklogRequest {
    /// Whose it is.
    pub reader: u64,
    /// Its newest id is this one at most.
    pub bound: Option<u64>,
    /// How many ids it has at most.
    pub n: usize,
}

/// A page that waits, and how many rounds it has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedPage {
    /// The page.
    pub request: BacklogRequest,
    rounds: u32,
}

/// What waits, a place after the other.
#[derive(Debug, Default)]
pub struct PageBacklog {
    queue: VecDeque<(TimelineId, QueuedPage)>,
    queued: HashSet<(TimelineId, BacklogRequest)>,
    preloads: HashMap<TimelineId, PreloadState>,
    /// Not before.
    due: Option<Instant>,
}

/// All readers of a place.
#[derive(Debug)]
struct PreloadState {
    begun: Instant,
    last_reported: Instant,
    last_reader: Option<u64>,
    done: u64,
    total: u64,
}

/// How far the preload of a place has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreloadProgress {
    /// Readers whose pages were asked for.
    pub done: u64,
    /// Readers there are.
    pub total: u64,
    /// How long it took, where this is the end of it.
    pub took: Option<Duration>,
}

impl PageBacklog {
    /// When to go on; `None` when there is nothing to do.
    #[must_use]
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let nothing = self.queue.is_empty() && self.preloads.is_empty();
        (!nothing).then(|| self.due.unwrap_or(now))
    }

    /// The server was kept busy for so long, and is left alone for as long.
    pub fn back_off(&mut self, busy: Duration, now: Instant) {
        self.due = Some(now + busy);
    }

    /// Nothing can be loaded now.
    pub fn postpone(&mut self, now: Instant) {
        self.back_off(SUSPENDED_RETRY_DELAY, now);
    }

    /// A page for later, if it is not there already.
    pub fn push(&mut self, place: TimelineId, want: BacklogRequest) {
        if self.queue.len() < MAX_QUEUED_PAGES && self.queued.insert((place, want)) {
            self.queue.push_back((
                place,
                QueuedPage {
                    request: want,
                    rounds: 0,
                },
            ));
        }
    }

    /// Whose turn it is.
    #[must_use]
    pub fn next_timeline(&self) -> Option<TimelineId> {
        let front = self.queue.front().map(|(place, _)| *place);
        front.or_else(|| self.preloads.keys().next().copied())
    }

    /// Pages of a place, the oldest ones.
    pub fn next_pages(&mut self, place: TimelineId) -> Vec<QueuedPage> {
        let mut taken = Vec::new();
        while taken.len() < PAGES_PER_ROUND
            && self.queue.front().is_some_and(|(own, _)| *own == place)
            && let Some((_, waiting)) = self.queue.pop_front()
        {
            self.queued.remove(&(place, waiting.request));
            taken.push(waiting);
        }
        taken
    }

    /// A page that still lacks something.
    pub fn requeue(
        &mut self,
        place: TimelineId,
        QueuedPage {
            request: want,
            rounds,
        }: QueuedPage,
    ) {
        if rounds < MAX_ROUNDS && self.queued.insert((place, want)) {
            let rounds = rounds + 1;
            self.queue.push_front((
                place,
                QueuedPage {
                    request: want,
                    rounds,
                },
            ));
        }
    }

    /// Something fails: calls will ask again.
    pub fn drop_timeline(&mut self, place: TimelineId) {
        self.queue.retain(|(own, _)| *own != place);
        self.queued.retain(|(own, _)| *own != place);
    }

    /// Has the pages of so many readers loaded: all of them.
    pub fn preload(&mut self, place: TimelineId, readers: u64, now: Instant) {
        self.preloads.insert(
            place,
            PreloadState {
                begun: now,
                last_reported: now,
                last_reader: None,
                done: 0,
                total: readers,
            },
        );
    }

    /// When it is time for more readers of a place: those behind this one, or from the first on.
    #[must_use]
    pub fn next_readers_after(&self, place: TimelineId) -> Option<Option<u64>> {
        let preload = self.preloads.get(&place)?;
        let none = !self.queue.iter().any(|(own, _)| *own == place);
        none.then_some(preload.last_reader)
    }

    /// More readers, and how long their pages are; none: that was all. Ends when memory is full. Says now and then how far it has come.
    pub fn add_readers(
        &mut self,
        place: TimelineId,
        (readers, n): (&[u64], usize),
        full: bool,
        now: Instant,
    ) -> Option<PreloadProgress> {
        let preload = self.preloads.get_mut(&place)?;
        let since = |then| now.saturating_duration_since(then);
        let mut progress = PreloadProgress {
            done: preload.done,
            total: preload.total,
            took: None,
        };
        if readers.is_empty() || full {
            progress.took = Some(since(preload.begun));
            self.preloads.remove(&place);
            return Some(progress);
        }
        let said = since(preload.last_reported) >= REPORT_INTERVAL;
        if said {
            preload.last_reported = now;
        }
        preload.last_reader = readers.last().copied();
        preload.done += readers.len() as u64;
        for reader in readers {
            let want = BacklogRequest {
                reader: *reader,
                bound: None,
                n,
            };
            if self.queued.insert((place, want)) {
                self.queue.push_back((
                    place,
                    QueuedPage {
                        request: want,
                        rounds: 0,
                    },
                ));
            }
        }
        said.then_some(progress)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    const ONE: TimelineId = TimelineId(0);
    const OTHER: TimelineId = TimelineId(1);

    fn page(reader: u64) -> BacklogRequest {
        BacklogRequest {
            reader,
            bound: None,
            n: 20,
        }
    }

    fn readers(waiting: &[QueuedPage]) -> Vec<u64> {
        waiting
            .iter()
            .map(|waiting| waiting.request.reader)
            .collect()
    }

    /// The script's clock counts from here.
    #[allow(clippy::disallowed_methods)]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn a_page_waits_once_and_places_take_turns() {
        let mut backlog = PageBacklog::default();
        assert_eq!(backlog.due(start()), None);
        for (place, reader) in [(ONE, 1), (ONE, 1), (OTHER, 1), (ONE, 2)] {
            backlog.push(place, page(reader));
        }
        let mut turns = Vec::new();
        while let Some(place) = backlog.next_timeline() {
            turns.push((place, readers(&backlog.next_pages(place))));
        }
        assert_eq!(turns, [(ONE, vec![1]), (OTHER, vec![1]), (ONE, vec![2])]);
        // It was taken, so it may be asked for again.
        backlog.push(ONE, page(1));
        assert_eq!(readers(&backlog.next_pages(ONE)), [1]);
    }

    #[test]
    fn a_round_is_a_few_pages_and_the_rest_keeps_its_order() {
        let mut backlog = PageBacklog::default();
        (0..40).for_each(|reader| backlog.push(ONE, page(reader)));
        let rounds: Vec<_> = (0..4).map(|_| readers(&backlog.next_pages(ONE))).collect();
        assert_eq!(
            rounds.iter().map(Vec::len).collect::<Vec<_>>(),
            [16, 16, 8, 0]
        );
        assert_eq!(rounds.concat(), (0..40).collect::<Vec<u64>>());
    }

    #[test]
    fn more_than_fits_is_left_to_the_calls() {
        let mut backlog = PageBacklog::default();
        (0..MAX_QUEUED_PAGES as u64 + 5).for_each(|reader| backlog.push(ONE, page(reader)));
        let mut taken = 0;
        while backlog.next_timeline().is_some() {
            taken += backlog.next_pages(ONE).len();
        }
        assert_eq!(taken, MAX_QUEUED_PAGES);
    }

    #[test]
    fn a_page_that_never_comes_is_tried_first_and_given_up_in_the_end() {
        let mut backlog = PageBacklog::default();
        backlog.push(ONE, page(1));
        let mut rounds = 0;
        loop {
            let taken = backlog.next_pages(ONE);
            let Some(first) = taken.first() else { break };
            assert_eq!(first.request, page(1), "it goes on before others");
            rounds += 1;
            backlog.push(ONE, page(2));
            backlog.requeue(ONE, *first);
            let others = taken.iter().skip(1);
            others.for_each(|other| backlog.requeue(ONE, *other));
            if rounds > MAX_ROUNDS {
                break;
            }
        }
        assert_eq!(rounds, MAX_ROUNDS + 1);
        assert_eq!(readers(&backlog.next_pages(ONE)), [2]);
    }

    #[test]
    fn what_fails_is_given_up_for_its_place_alone() {
        let mut backlog = PageBacklog::default();
        backlog.push(ONE, page(1));
        backlog.push(OTHER, page(2));
        backlog.drop_timeline(ONE);
        assert_eq!(backlog.next_timeline(), Some(OTHER));
        // A call asks again.
        backlog.push(ONE, page(1));
        assert_eq!(
            (
                backlog.next_pages(OTHER).len(),
                backlog.next_pages(ONE).len()
            ),
            (1, 1)
        );
    }

    #[test]
    fn the_server_rests_as_long_as_it_was_busy() {
        let (mut backlog, now) = (PageBacklog::default(), start());
        backlog.push(ONE, page(1));
        assert_eq!(backlog.due(now), Some(now));
        backlog.back_off(Duration::from_millis(300), now);
        assert_eq!(backlog.due(now), Some(now + Duration::from_millis(300)));
        backlog.postpone(now);
        assert_eq!(backlog.due(now), Some(now + SUSPENDED_RETRY_DELAY));
    }

    #[test]
    fn a_preload_asks_for_readers_behind_the_last_when_nothing_waits_and_says_how_far_it_is() {
        let (mut backlog, now) = (PageBacklog::default(), start());
        assert_eq!(backlog.next_readers_after(ONE), None);
        backlog.preload(ONE, 5, now);
        assert_eq!(backlog.next_timeline(), Some(ONE));
        assert_eq!(backlog.next_readers_after(ONE), Some(None));
        assert_eq!(backlog.add_readers(ONE, (&[1, 2, 3], 20), false, now), None);
        assert_eq!(backlog.next_readers_after(ONE), None, "their pages wait");
        assert_eq!(readers(&backlog.next_pages(ONE)), [1, 2, 3]);
        assert_eq!(backlog.next_readers_after(ONE), Some(Some(3)));
        let later = now + REPORT_INTERVAL;
        let said = backlog
            .add_readers(ONE, (&[7, 9], 20), false, later)
            .unwrap();
        assert_eq!((said.done, said.total, said.took), (3, 5, None));
        assert_eq!(backlog.next_pages(ONE).len(), 2);
        assert_eq!(backlog.next_readers_after(ONE), Some(Some(9)));
        let end = backlog.add_readers(ONE, (&[], 20), false, later).unwrap();
        assert_eq!(
            (end.done, end.total, end.took),
            (5, 5, Some(REPORT_INTERVAL))
        );
        assert_eq!((backlog.next_timeline(), backlog.due(later)), (None, None));
    }

    #[test]
    fn a_preload_ends_where_memory_is_full() {
        let (mut backlog, now) = (PageBacklog::default(), start());
        backlog.preload(ONE, 5, now);
        let end = backlog.add_readers(ONE, (&[1], 20), true, now).unwrap();
        assert_eq!((end.done, end.took), (0, Some(Duration::ZERO)));
        assert_eq!(backlog.next_timeline(), None);
    }
}
