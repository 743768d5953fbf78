//! The queue of pages to load when the server is idle, and the preload of all readers' pages where that is configured.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use headwater_timeline::index::TimelineId;

/// Maximum queued pages. A page that does not fit is requested again by the next call.
const MAX_QUEUED_PAGES: usize = 10_000;
/// Pages in one round. Calls may have to wait for a round to end, so it is short.
const PAGES_PER_ROUND: usize = 16;
/// After this many rounds a page is left to the next call: memory may be too small for it.
const MAX_ROUNDS: u32 = 64;
/// Between two progress reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// Delay of the next attempt while the log is not followed.
const SUSPENDED_RETRY_DELAY: Duration = Duration::from_millis(20);

/// A page of the `n` newest ids at or below a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BacklogRequest {
    /// The reader whose page it is.
    pub reader: u64,
    /// Upper bound of its ids; `None` for the newest page.
    pub bound: Option<u64>,
    /// Maximum number of ids.
    pub n: usize,
}

/// A queued page, and how many rounds it has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedPage {
    /// The page.
    pub request: BacklogRequest,
    rounds: u32,
}

/// The pages to load, of all timelines in turn.
#[derive(Debug, Default)]
pub struct PageBacklog {
    queue: VecDeque<(TimelineId, QueuedPage)>,
    queued: HashSet<(TimelineId, BacklogRequest)>,
    preloads: HashMap<TimelineId, PreloadState>,
    /// No round starts earlier.
    due: Option<Instant>,
}

/// The preload of one timeline's readers.
#[derive(Debug)]
struct PreloadState {
    begun: Instant,
    last_reported: Instant,
    last_reader: Option<u64>,
    done: u64,
    total: u64,
}

/// The progress of a timeline's preload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreloadProgress {
    /// Readers whose pages were requested.
    pub done: u64,
    /// All readers.
    pub total: u64,
    /// How long the preload took; set when it has ended.
    pub took: Option<Duration>,
}

impl PageBacklog {
    /// When the next round is due; `None` when there is nothing to load.
    #[must_use]
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let nothing = self.queue.is_empty() && self.preloads.is_empty();
        (!nothing).then(|| self.due.unwrap_or(now))
    }

    /// Leaves the server idle for as long as the last round kept it busy.
    pub fn back_off(&mut self, busy: Duration, now: Instant) {
        self.due = Some(now + busy);
    }

    /// Postpones the next round, as nothing can be loaded now.
    pub fn postpone(&mut self, now: Instant) {
        self.back_off(SUSPENDED_RETRY_DELAY, now);
    }

    /// Queues a page, unless it is queued already or the queue is full.
    pub fn push(&mut self, timeline: TimelineId, request: BacklogRequest) {
        if self.queue.len() < MAX_QUEUED_PAGES && self.queued.insert((timeline, request)) {
            self.queue
                .push_back((timeline, QueuedPage { request, rounds: 0 }));
        }
    }

    /// The timeline whose pages are loaded next.
    #[must_use]
    pub fn next_timeline(&self) -> Option<TimelineId> {
        let front = self.queue.front().map(|(timeline, _)| *timeline);
        front.or_else(|| self.preloads.keys().next().copied())
    }

    /// Takes the oldest queued pages of a timeline: one round.
    pub fn next_pages(&mut self, timeline: TimelineId) -> Vec<QueuedPage> {
        let mut taken = Vec::new();
        while taken.len() < PAGES_PER_ROUND
            && self
                .queue
                .front()
                .is_some_and(|(queued_timeline, _)| *queued_timeline == timeline)
            && let Some((_, queued_page)) = self.queue.pop_front()
        {
            self.queued.remove(&(timeline, queued_page.request));
            taken.push(queued_page);
        }
        taken
    }

    /// Puts a page whose load is incomplete back at the front.
    pub fn requeue(&mut self, timeline: TimelineId, QueuedPage { request, rounds }: QueuedPage) {
        if rounds < MAX_ROUNDS && self.queued.insert((timeline, request)) {
            let rounds = rounds + 1;
            self.queue
                .push_front((timeline, QueuedPage { request, rounds }));
        }
    }

    /// Drops a timeline's pages after a failure. Calls will request them again.
    pub fn drop_timeline(&mut self, timeline: TimelineId) {
        self.queue
            .retain(|(queued_timeline, _)| *queued_timeline != timeline);
        self.queued
            .retain(|(queued_timeline, _)| *queued_timeline != timeline);
    }

    /// Starts the preload of all of a timeline's `readers`, which is their number.
    pub fn preload(&mut self, timeline: TimelineId, readers: u64, now: Instant) {
        self.preloads.insert(
            timeline,
            PreloadState {
                begun: now,
                last_reported: now,
                last_reader: None,
                done: 0,
                total: readers,
            },
        );
    }

    /// The reader after whom to fetch more readers (inner `None`: from the first one). `None` while pages of this timeline are queued.
    #[must_use]
    pub fn next_readers_after(&self, timeline: TimelineId) -> Option<Option<u64>> {
        let preload = self.preloads.get(&timeline)?;
        let none = !self
            .queue
            .iter()
            .any(|(queued_timeline, _)| *queued_timeline == timeline);
        none.then_some(preload.last_reader)
    }

    /// Queues the next readers' pages of `n` ids. Without readers, or when memory is full, the preload ends. Returns progress now and then.
    pub fn add_readers(
        &mut self,
        timeline: TimelineId,
        (readers, n): (&[u64], usize),
        full: bool,
        now: Instant,
    ) -> Option<PreloadProgress> {
        let preload = self.preloads.get_mut(&timeline)?;
        let since = |then| now.saturating_duration_since(then);
        let mut progress = PreloadProgress {
            done: preload.done,
            total: preload.total,
            took: None,
        };
        if readers.is_empty() || full {
            progress.took = Some(since(preload.begun));
            self.preloads.remove(&timeline);
            return Some(progress);
        }
        let report_due = since(preload.last_reported) >= REPORT_INTERVAL;
        if report_due {
            preload.last_reported = now;
        }
        preload.last_reader = readers.last().copied();
        preload.done += readers.len() as u64;
        for reader in readers {
            let request = BacklogRequest {
                reader: *reader,
                bound: None,
                n,
            };
            if self.queued.insert((timeline, request)) {
                self.queue
                    .push_back((timeline, QueuedPage { request, rounds: 0 }));
            }
        }
        report_due.then_some(progress)
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
    fn a_page_is_queued_once_and_timelines_take_turns() {
        let mut backlog = PageBacklog::default();
        assert_eq!(backlog.due(start()), None);
        for (timeline, reader) in [(ONE, 1), (ONE, 1), (OTHER, 1), (ONE, 2)] {
            backlog.push(timeline, page(reader));
        }
        let mut turns = Vec::new();
        while let Some(timeline) = backlog.next_timeline() {
            turns.push((timeline, readers(&backlog.next_pages(timeline))));
        }
        assert_eq!(turns, [(ONE, vec![1]), (OTHER, vec![1]), (ONE, vec![2])]);
        // It was taken, so it may be queued again.
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
    fn a_failure_drops_the_pages_of_its_timeline_alone() {
        let mut backlog = PageBacklog::default();
        backlog.push(ONE, page(1));
        backlog.push(OTHER, page(2));
        backlog.drop_timeline(ONE);
        assert_eq!(backlog.next_timeline(), Some(OTHER));
        // A call requests it again.
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
    fn a_preload_requests_readers_after_the_last_when_the_queue_is_empty_and_reports_progress() {
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
        let reported = backlog
            .add_readers(ONE, (&[7, 9], 20), false, later)
            .unwrap();
        assert_eq!((reported.done, reported.total, reported.took), (3, 5, None));
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
