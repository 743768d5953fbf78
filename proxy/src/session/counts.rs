//! A session's access to counts: sums of the numbers that are cached for single authors.

use std::sync::Arc;

use super::memory_access::CandidateScope;
use super::state::Session;
use crate::binlog::{Binlog, CachedTimeline, CandidateMessages, CandidateRequest, ReplicationMark};
use crate::feeds::FeedRegistry;
use headwater_rows::RowCache;
use headwater_session::author_lists::ListedAuthors;
use headwater_session::feed_decision::count::{
    CountedWindow, MAX_COUNTED_AUTHORS, cached_count, cached_outcome,
};
use headwater_session::feed_decision::{
    AuthorListQuery, AuthorValue, CandidateSet, CountAnswer, CountFill, CountGaps, CountTotal,
    CountUnit, FeedCountRequest, FeedRelayReason, NewestRequest,
};
use headwater_timeline::index::RowKey;

/// Where the numbers of a count are, and the moment before they were looked for.
#[derive(Debug)]
pub(super) struct CountScope {
    pub(super) timeline: Arc<CachedTimeline>,
    pub(super) mark: ReplicationMark,
}

/// The newest messages of single authors as cached numbers have them. `None`: something is not known.
pub(super) fn cached_newest(
    binlog: &Binlog,
    timeline: &CachedTimeline,
    rows: &RowCache,
    (request, generation): (&NewestRequest, u64),
) -> Option<(Vec<u64>, bool)> {
    let source = CountSource {
        binlog,
        timeline,
        rows,
        request: &request.numbers,
        window: None,
        generation,
    };
    let reading = source.newest(request)?;
    let is_known = reading.gaps.is_none();
    let ids = reading.messages?.into_iter().map(|(id, _)| id).collect();
    is_known.then_some((ids, reading.is_complete))
}

/// What is cached of a count at one moment.
enum CountReading {
    /// All.
    Total(CountTotal),
    Gaps(CountGaps),
    /// There are too many authors, or a list of them is too long.
    TooMany,
}

/// The authors of a count, and the numbers that are cached of them.
struct AuthorNumbers {
    /// All, whatever lists exclude.
    authors: Vec<u64>,
    /// The number of each.
    numbers: Vec<(u64, AuthorValue)>,
    gaps: CountGaps,
}

/// The newest messages of single authors, at one moment.
struct NewestReading {
    /// Their ids and authors, in the statement's order. `None`: the server chooses it.
    messages: Option<Vec<(u64, u64)>>,
    /// There are no others.
    is_complete: bool,
    authors: Vec<u64>,
    gaps: Option<Box<CountGaps>>,
}

/// What the newest messages of single authors depend on besides their follows: the changed rows that would make others of them.
#[derive(Debug)]
pub(super) struct NewestScope {
    rows: Vec<RowKey>,
}

impl NewestScope {
    pub(super) fn of(
        timeline: &CachedTimeline,
        request: &FeedCountRequest,
        authors: &[u64],
    ) -> NewestScope {
        let mut rows: Vec<RowKey> = request.lists().iter().map(|list| list.whose).collect();
        for author in authors {
            rows.push(RowKey::author(timeline.id(), *author));
            let joined = request.template.joined_tables.iter();
            rows.extend(joined.map(|table| RowKey {
                table: *table,
                id: *author,
            }));
        }
        NewestScope { rows }
    }

    /// True if nothing has changed since the mark.
    pub(super) fn is_unchanged(&self, binlog: &Binlog, mark: ReplicationMark) -> bool {
        binlog.are_rows_unchanged(mark, self.rows.iter().copied())
    }
}

/// What a count is read from.
struct CountSource<'a> {
    binlog: &'a Binlog,
    timeline: &'a CachedTimeline,
    rows: &'a RowCache,
    request: &'a FeedCountRequest,
    /// The messages of its window.
    window: Option<&'a CandidateRequest>,
    generation: u64,
}

/// The authors of each list: see [`CountGaps::lists`].
type KnownLists = Vec<Option<Option<ListedAuthors>>>;

impl CountSource<'_> {
    /// All authors, each once. `None`: a reader's follows are not in memory.
    fn authors(&self) -> Option<Vec<u64>> {
        let mut authors = self.request.authors.clone();
        for reader in &self.request.readers {
            authors.append(&mut self.binlog.follow_list(self.timeline, *reader)?);
        }
        authors.sort_unstable();
        authors.dedup();
        Some(authors)
    }

    /// True if all changes of the missing messages, or of the missing authors' ones, could be read at the mark.
    fn is_readable(&self, mark: ReplicationMark, gaps: &CountGaps) -> bool {
        let timeline = self.timeline.id();
        let authors = gaps.authors.iter();
        let rows = authors.map(|author| RowKey::author(timeline, *author));
        let messages = gaps.messages.iter();
        let rows = rows.chain(messages.map(|(id, _)| RowKey::message(timeline, *id)));
        self.binlog.are_rows_unchanged(mark, rows)
    }

    /// True if nothing that the count depends on has changed since the mark, and its numbers are still cached.
    fn is_unchanged(&self, mark: ReplicationMark) -> bool {
        let Some(authors) = self.authors() else {
            return false;
        };
        let readers = &self.request.readers;
        let scope = NewestScope::of(self.timeline, self.request, &authors);
        self.binlog
            .is_unchanged_since(self.timeline, mark, readers, &authors)
            && scope.is_unchanged(self.binlog, mark)
    }

    /// `None`: a reader's follows or messages are not in memory.
    fn read(&self) -> Option<CountReading> {
        let request = self.request;
        let lists = self.lists();
        if lists.iter().any(|list| matches!(list, Some(None))) {
            return Some(CountReading::TooMany);
        }
        if let Some((wanted, window)) = self.window.zip(request.window.as_ref()) {
            let (messages, authors) = self.binlog.newest_messages(self.timeline, wanted)?;
            if messages.is_complete {
                return self.read_messages(window, &messages, authors.len(), lists);
            }
        }
        self.read_numbers(lists)
    }

    /// The sum over the authors. `None`: a reader's follows are not in memory.
    fn read_numbers(&self, lists: KnownLists) -> Option<CountReading> {
        let mut total = AuthorValue::default();
        let AuthorNumbers { gaps, numbers, .. } = match self.numbers(lists)? {
            Ok(numbers) => numbers,
            Err(reading) => return Some(reading),
        };
        let shows_each = self.request.groups().is_some();
        let mut each = Vec::new();
        for (author, value) in &numbers {
            let copies = self.copies(&gaps.lists, *author);
            let value = AuthorValue {
                number: value.number.checked_mul(copies)?,
                ..*value
            };
            total = self.request.add(total, value)?;
            if shows_each {
                each.push((*author, value));
            }
        }
        Some(gaps_or_total(gaps, (total, each)))
    }

    /// The cached number of each author who passes the lists. `None`: a reader's follows are not in memory.
    fn numbers(&self, lists: KnownLists) -> Option<Result<AuthorNumbers, CountReading>> {
        let request = self.request;
        let authors = self.authors()?;
        if authors.len() > MAX_COUNTED_AUTHORS {
            return Some(Err(CountReading::TooMany));
        }
        let key = request.cache_key(CountUnit::Authors, self.generation);
        let of = (self.timeline.id(), key);
        let joined = &request.template.joined_tables;
        let (mut numbers, mut missing) = (Vec::new(), Vec::new());
        for author in authors.iter().filter(|author| passes(&lists, **author)) {
            match cached_count(self.rows, of, *author, joined) {
                Some(number) => numbers.push((*author, number)),
                None => missing.push(*author),
            }
        }
        let gaps = CountGaps {
            unit: CountUnit::Authors,
            authors: missing,
            messages: Vec::new(),
            all_authors: authors.len(),
            lists,
            generation: self.generation,
        };
        Some(Ok(AuthorNumbers {
            authors,
            numbers,
            gaps,
        }))
    }

    /// The newest messages of single authors, or what is not known of them. `None`: memory cannot tell.
    fn newest(&self, request: &NewestRequest) -> Option<NewestReading> {
        let lists = self.lists();
        if lists.iter().any(|list| matches!(list, Some(None))) {
            return None;
        }
        let AuthorNumbers {
            authors,
            numbers,
            gaps,
        } = self.numbers(lists)?.ok()?;
        let passing = numbers.iter().filter(|(_, value)| value.number > 0).count();
        Some(NewestReading {
            messages: request.messages(&numbers),
            is_complete: request.limit.is_none_or(|limit| passing <= limit),
            authors,
            gaps: (!gaps.is_complete()).then(|| Box::new(gaps)),
        })
    }

    /// The authors of each list, as far as they are cached.
    fn lists(&self) -> KnownLists {
        let request = self.request;
        let list = |list: &AuthorListQuery| {
            list.cache_key(&request.template, self.generation)
                .lookup(self.rows)
        };
        request.lists().iter().map(list).collect()
    }

    /// The sum over all messages of the window.
    fn read_messages(
        &self,
        window: &CountedWindow,
        messages: &CandidateMessages,
        all_authors: usize,
        lists: KnownLists,
    ) -> Option<CountReading> {
        let request = self.request;
        let key = request.cache_key(CountUnit::Messages, self.generation);
        let of = (self.timeline.id(), key);
        let joined = &request.template.joined_tables;
        let (mut total, mut missing) = (AuthorValue::default(), Vec::new());
        let each = messages.ids.iter().zip(&messages.authors);
        for (id, author) in each.filter(|(_, author)| passes(&lists, **author)) {
            let outcome = match window.is_unfiltered {
                true => Some(true),
                false => cached_outcome(self.rows, of, *id, joined),
            };
            match outcome {
                Some(true) => {
                    let value = AuthorValue {
                        number: request.number_of(*id, self.copies(&lists, *author)),
                        largest: 0,
                    };
                    total = request.add(total, value)?;
                }
                Some(false) => {}
                None => missing.push((*id, *author)),
            }
        }
        let gaps = CountGaps {
            unit: CountUnit::Messages,
            authors: Vec::new(),
            messages: missing,
            all_authors,
            lists,
            generation: self.generation,
        };
        Some(gaps_or_total(gaps, (total, Vec::new())))
    }

    /// How many edges lead to the author, each of which counts.
    fn copies(&self, lists: &KnownLists, author: u64) -> u64 {
        let list = self
            .request
            .copies
            .and_then(|at| lists.get(at)?.as_ref()?.as_ref());
        list.map_or(1, |list| list.copies(author))
    }
}

fn passes(lists: &KnownLists, author: u64) -> bool {
    let mut known = lists.iter().flatten().flatten();
    known.all(|list| list.passes(author))
}

fn gaps_or_total(
    gaps: CountGaps,
    (total, each): (AuthorValue, Vec<(u64, AuthorValue)>),
) -> CountReading {
    match gaps.is_complete() {
        true => CountReading::Total(CountTotal {
            total,
            each,
            authors: gaps.all_authors,
            unit: gaps.unit,
            generation: gaps.generation,
        }),
        false => CountReading::Gaps(gaps),
    }
}

/// Where the numbers of a request are: its timeline, in memory with the readers' follows. `None`: it is not.
async fn locate_numbers(
    binlog: &Binlog,
    feeds: &FeedRegistry,
    request: &FeedCountRequest,
) -> Option<Arc<CachedTimeline>> {
    let timeline = feeds.cached_timeline(request.template.feed, &request.template.database)?;
    for reader in &request.readers {
        let is_there = binlog.follow_list(&timeline, *reader).is_some();
        if !is_there && !binlog.load_list(&timeline, *reader).await {
            return None;
        }
    }
    // What the log does not tell of yet cannot be cached.
    let lists = request.lists().iter().map(|list| list.whose.table);
    let joined = request.template.joined_tables.iter().copied();
    binlog.are_streamed(lists.chain(joined)).then_some(timeline)
}

impl Session {
    /// The newest messages of single authors as memory has them, as candidates, or what is not known of them.
    pub(super) async fn newest_candidates(
        &mut self,
        request: &NewestRequest,
    ) -> Option<Result<(CandidateSet, CandidateScope), FeedRelayReason>> {
        let feeds = Arc::clone(self.shared.feeds.as_ref()?);
        let binlog: Arc<Binlog> = Arc::clone(self.shared.binlog.as_ref()?);
        let rows = Arc::clone(binlog.row_cache()?);
        let identity = self.machine.commands()?.state.server()?.to_vec();
        let numbers = &request.numbers;
        let timeline = locate_numbers(&binlog, &feeds, numbers).await?;
        for may_wait in [true, false] {
            // Before the read: a change between the two counts as a change since the mark.
            let mark = binlog.mark_of(&timeline, &identity)?;
            let source = CountSource {
                binlog: &binlog,
                timeline: &timeline,
                rows: &rows,
                request: numbers,
                window: None,
                generation: mark.generation(),
            };
            let Some(NewestReading {
                messages,
                is_complete,
                authors,
                gaps,
            }) = source.newest(request)
            else {
                return Some(Err(FeedRelayReason::TooMany));
            };
            // What is missing may tell them apart.
            let Some(messages) = messages.or_else(|| gaps.as_ref().map(|_| Vec::new())) else {
                return Some(Err(FeedRelayReason::Ties));
            };
            let most = self.shared.limits.candidates;
            if messages.len() > most {
                return Some(Err(FeedRelayReason::TooMany));
            }
            // What the server would tell of messages whose change may not be readable yet cannot be cached.
            if gaps
                .as_ref()
                .is_some_and(|gaps| !source.is_readable(mark, gaps))
            {
                if may_wait && binlog.prove().await {
                    continue;
                }
                return Some(Err(FeedRelayReason::Changed));
            }
            let (ids, written_by) = messages.into_iter().unzip();
            let candidates = CandidateSet {
                ids,
                exhaustive: is_complete,
                tied: false,
                authors: authors.len(),
                written_by,
                author_lists: Vec::new(),
                generation: source.generation,
                gaps,
            };
            let scope = CandidateScope::of_newest(
                timeline.clone(),
                mark,
                (numbers.readers.clone(), authors),
                numbers,
            );
            return Some(Ok((candidates, scope)));
        }
        None
    }

    /// The count as memory has it: proved to be fresh, or what is missing of it.
    pub(super) async fn count(
        &mut self,
        request: &FeedCountRequest,
    ) -> (CountAnswer, Option<CountScope>) {
        let answer = self.find_count(request).await;
        answer.unwrap_or((CountAnswer::Unavailable(FeedRelayReason::NotInMemory), None))
    }

    async fn find_count(
        &mut self,
        request: &FeedCountRequest,
    ) -> Option<(CountAnswer, Option<CountScope>)> {
        let feeds = Arc::clone(self.shared.feeds.as_ref()?);
        let binlog: Arc<Binlog> = Arc::clone(self.shared.binlog.as_ref()?);
        let rows = Arc::clone(binlog.row_cache()?);
        let state = &self.machine.commands()?.state;
        let identity = state.server()?.to_vec();
        // Within a transaction, what has changed since before its snapshot is not shown.
        let opened = match state.reads_a_snapshot() {
            true => Some(self.transaction_mark?),
            false => None,
        };
        let timeline = locate_numbers(&binlog, &feeds, request).await?;
        let window = request.window.as_ref().map(|window| CandidateRequest {
            readers: request.readers.clone(),
            authors: request.authors.clone(),
            range: window.range,
            untied: false,
            whole_keys: false,
        });
        for may_wait in [true, false] {
            // Before the read: a change between the two counts as a change since the mark.
            let now = binlog.mark_of(&timeline, &identity)?;
            let mark = opened.unwrap_or(now);
            let source = CountSource {
                binlog: &binlog,
                timeline: &timeline,
                rows: &rows,
                request,
                window: window.as_ref(),
                generation: mark.generation(),
            };
            let mut reading = source.read();
            if let (None, Some(window)) = (&reading, &window) {
                // Loads what is missing.
                binlog.candidates(&timeline, &identity, window).await?;
                reading = source.read();
            }
            let answer = match reading? {
                CountReading::Total(counted) if opened.is_some() => {
                    let is_unchanged = binlog.prove().await && source.is_unchanged(mark);
                    let is_same = is_unchanged && self.confirm_no_functions(true);
                    if !is_same {
                        let answer = CountAnswer::Unavailable(FeedRelayReason::Changed);
                        return Some((answer, None));
                    }
                    CountReading::Total(counted)
                }
                CountReading::Total(..) => {
                    let need = self.take_proof_need(&binlog);
                    let read = || source.read();
                    let reading =
                        binlog.read_consistently(&timeline, &identity, need.is_open, read);
                    let reading = reading.await?;
                    self.confirm_no_functions(need.is_needed)
                        .then_some(reading)?
                }
                reading => reading,
            };
            let answer = match answer {
                CountReading::Total(counted) => CountAnswer::Total(counted),
                // What the server would tell of messages whose change may not be readable yet cannot be cached.
                CountReading::Gaps(gaps) if !source.is_readable(mark, &gaps) => {
                    if may_wait && binlog.prove().await {
                        continue;
                    }
                    CountAnswer::Unavailable(FeedRelayReason::Changed)
                }
                CountReading::Gaps(gaps) => CountAnswer::Missing(gaps),
                CountReading::TooMany => CountAnswer::Unavailable(FeedRelayReason::TooMany),
            };
            return Some((answer, Some(CountScope { timeline, mark })));
        }
        None
    }

    /// Caches the server's numbers, if they are as of a moment behind which nothing has changed.
    pub(super) async fn cache_counts(&mut self, fill: &CountFill, scope: Option<CountScope>) {
        let Some((binlog, scope)) = self.shared.binlog.clone().zip(scope) else {
            return;
        };
        if !binlog.prove().await || !self.confirm_no_functions(true) {
            return;
        }
        let state = self.machine.commands().map(|it| &it.state);
        if let Some(identity) = state.and_then(|state| state.server()) {
            binlog.cache_counts(&scope.timeline, identity, scope.mark, fill);
        }
    }
}
