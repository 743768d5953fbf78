//! A template that is served: its shape, and what was sampled from its statements.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headwater_rows::template::CacheKeyTable;
use headwater_timeline::KeyType;
use headwater_timeline::index::TableId;

use crate::binding::{FeedColumnTypes, FeedStatement, PostingRequest, index_numbers};
use crate::cost::{
    AuthorCountBucket, CACHED_PAGE_BATCH, CandidateRatio, PathCosts, PathDecision, StatementPath,
    WIDENING_FACTOR,
};
use crate::definition::FeedId;
use crate::outcome_counts::OutcomeCounts;
use crate::query::{FeedSelect, SelectCondition, SelectItem, Subquery, TableReference};
use crate::refusal::NarrowingRefusal;
use crate::result_metadata::{
    self, ColumnFingerprint, PlanKnowledge, PlanSettings, PlanStatusFlags, ServerPlan,
    TemplateMetadata,
};
use crate::shape::{FeedNames, StatementShape};

/// A template of a feed's statements, in one database.
#[derive(Debug)]
pub struct Template {
    /// The feed.
    pub feed: FeedId,
    /// The database of the feed's tables.
    pub database: String,
    /// The feed's names.
    pub feed_names: FeedNames,
    /// The types of the feed's columns.
    pub types: FeedColumnTypes,
    /// The shape of its statements.
    pub shape: StatementShape,
    /// Every table that the statement names.
    pub tables: Vec<TableName>,
    /// The rows of its statements, where they are cached.
    pub row_cache: Arc<CacheKeyTable>,
    /// The feeds of [`StatementShape::postings`], in the same order, and the types of their columns.
    pub posting_feeds: Vec<(FeedId, FeedColumnTypes)>,
    /// The tables of joined rows, as [`crate::row_dependencies::RowDependencies::joined_rows`] orders them.
    pub joined_tables: Arc<[TableId]>,
    /// The template of its authors' newest ids, if it shows these messages.
    pub newest: Option<Arc<Template>>,
    /// The tables of author lists, as [`crate::row_dependencies::RowDependencies::lists`] orders them.
    pub list_tables: Arc<[TableId]>,
    counters: OutcomeCounters,
    state: Mutex<TemplateState>,
    cached_pages: AtomicU32,
}

/// The counters of a template's outcomes.
#[derive(Clone, Debug, Default)]
pub struct OutcomeCounters {
    /// The template's.
    pub template: Arc<OutcomeCounts>,
    /// Those of all templates of its feed, if known.
    pub feed: Option<Arc<OutcomeCounts>>,
}

impl OutcomeCounters {
    /// Counts an outcome of a statement.
    pub fn add(&self, what: &'static str) {
        self.template.add(what);
        if let Some(feed) = &self.feed {
            feed.add(what);
        }
    }
}

/// A table as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// The database that qualifies it.
    pub database: Option<String>,
    /// Its name.
    pub table: String,
}

/// What was measured of a template.
#[derive(Debug, Default)]
struct TemplateState {
    costs: [PathCosts; AuthorCountBucket::COUNT],
    candidate_ratio: CandidateRatio,
    metadata: result_metadata::SettingsMetadata,
    /// Its columns match the direct ones if they go through a temporary table.
    buffered: bool,
    retired: Option<RetirementReason>,
    /// How often in a row a narrowed reply's columns differed from the sample.
    mismatches: u32,
}

impl TemplateState {
    /// True if there is a sample for so many authors under these settings.
    fn has_metadata(&self, bucket: AuthorCountBucket, settings: PlanSettings) -> bool {
        let metadata = self.metadata.for_settings(settings);
        metadata.is_some_and(|variants| variants.sample(bucket, None).is_some())
    }
}

/// Why a template is no longer narrowed, though its text could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetirementReason {
    /// A direct statement ends with a warning or an error: what a narrowed one reports of that is unknown.
    Warns,
    /// Its columns are described differently when it is narrowed.
    Columns,
    /// Its replies are longer than memory holds.
    TooLong,
}

/// How a statement is to be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionChoice {
    /// The client's text: the server's reply is sampled.
    Sample,
    /// Narrowed to candidates, in this form.
    Narrowed {
        /// Through a temporary table.
        buffered: bool,
    },
    /// The client's text, which costs less.
    Direct,
    /// The client's text, for good.
    Retired(RetirementReason),
}

impl Template {
    /// A template without samples.
    #[must_use]
    pub fn new(
        feed: FeedId,
        database: String,
        names: FeedNames,
        types: FeedColumnTypes,
        shape: StatementShape,
        tables: Vec<TableName>,
    ) -> Template {
        Template {
            feed,
            database,
            feed_names: names,
            types,
            shape,
            tables,
            row_cache: Arc::default(),
            posting_feeds: Vec::new(),
            newest: None,
            joined_tables: Arc::default(),
            list_tables: Arc::default(),
            counters: OutcomeCounters::default(),
            state: Mutex::default(),
            cached_pages: AtomicU32::default(),
        }
    }

    /// Sets the tables of joined rows and of author lists.
    #[must_use]
    pub fn with_tables(self, joined: Vec<TableId>, lists: Vec<TableId>) -> Template {
        Template {
            joined_tables: joined.into(),
            list_tables: lists.into(),
            ..self
        }
    }

    /// Sets the template of its authors' newest ids.
    #[must_use]
    pub fn with_newest(self, newest: Option<Template>) -> Template {
        Template {
            newest: newest.map(Arc::new),
            ..self
        }
    }

    /// Sets the feeds by whose columns its statements select messages, too.
    #[must_use]
    pub fn with_posting_feeds(self, feeds: Vec<(FeedId, FeedColumnTypes)>) -> Template {
        Template {
            posting_feeds: feeds,
            ..self
        }
    }

    /// True where its rows, or their order, depend on the session's time zone.
    #[must_use]
    pub fn depends_on_time_zone(&self) -> bool {
        self.shape.zoned || matches!(self.types.key, Some(KeyType::Timestamp(_)))
    }

    /// True where it compares a TIMESTAMP with a value, which the server may have read at PREPARE, in the time zone of then.
    #[must_use]
    pub fn compares_timestamps(&self) -> bool {
        let is_bounded = self.shape.bounds.iter().any(|bounds| !bounds.is_empty());
        self.shape.zoned || is_bounded && self.depends_on_time_zone()
    }

    /// Reads what a statement selects by the columns of other feeds.
    ///
    /// # Errors
    /// A value is not plain where it has to be.
    pub fn bind_postings(
        &self,
        statement: FeedStatement<'_>,
    ) -> Result<Vec<PostingRequest>, NarrowingRefusal> {
        let each = self.shape.postings.iter().zip(&self.posting_feeds);
        let requests = each.map(|(posting, (feed, types))| {
            let (readers, authors) = posting.authors.bind(statement, *types)?;
            Ok(PostingRequest {
                feed: *feed,
                readers: index_numbers(&readers, *types)?,
                authors: index_numbers(&authors, *types)?,
            })
        });
        requests.collect()
    }

    /// Sets the counters.
    #[must_use]
    pub fn with_counters(self, counted: OutcomeCounters) -> Template {
        Template {
            counters: counted,
            ..self
        }
    }

    /// Counts an outcome of one of its statements.
    pub fn count_outcome(&self, what: &'static str) {
        self.counters.add(what);
        let times = match what {
            // Nothing was sent to the server.
            "kept" => return,
            "narrowed" => self.times().map(|(_, narrowed)| narrowed),
            _ => self.times().map(|(directly, _)| directly),
        };
        self.counters.template.add_server_time(times);
    }

    /// The microseconds of direct and of narrowed statements, for the largest author count measured. `None`: unknown.
    #[must_use]
    pub fn times(&self) -> Option<(f64, f64)> {
        self.state().costs.iter().rev().find_map(PathCosts::times)
    }

    fn state(&self) -> MutexGuard<'_, TemplateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of candidates for so many rows.
    #[must_use]
    pub fn candidates(&self, rows: usize, most: usize) -> usize {
        self.state().candidate_ratio.candidates(rows, most)
    }

    /// The number of candidates after so many did not suffice. `None`: there are no more.
    #[must_use]
    pub fn widen(candidates: usize, most: usize) -> Option<usize> {
        (candidates < most).then(|| candidates.saturating_mul(WIDENING_FACTOR).min(most))
    }

    /// Chooses how the next statement of so many authors is executed under these settings. `always`: narrowed at any cost.
    #[must_use]
    pub fn choose(
        &self,
        bucket: AuthorCountBucket,
        settings: PlanSettings,
        always: bool,
    ) -> ExecutionChoice {
        let state = &mut *self.state();
        if let Some(retired) = state.retired {
            return ExecutionChoice::Retired(retired);
        }
        let known = state.has_metadata(bucket, settings);
        let Some(costs) = state.costs.get_mut(bucket.number()) else {
            return ExecutionChoice::Direct;
        };
        let narrowed = ExecutionChoice::Narrowed {
            buffered: state.buffered,
        };
        match costs.choose() {
            _ if !known => ExecutionChoice::Sample,
            _ if always => narrowed,
            PathDecision::Narrowed => narrowed,
            PathDecision::Measured => ExecutionChoice::Sample,
            PathDecision::Direct => ExecutionChoice::Direct,
        }
    }

    /// True if there is a sample for so many authors, or none is needed any more.
    #[must_use]
    pub fn has_sampled(&self, bucket: AuthorCountBucket, settings: PlanSettings) -> bool {
        let state = self.state();
        state.retired.is_some() || state.has_metadata(bucket, settings)
    }

    /// What is known of the columns under a plan of the server.
    #[must_use]
    pub fn plan_knowledge(&self, settings: PlanSettings, plan: &ServerPlan) -> PlanKnowledge {
        let state = self.state();
        let metadata = state.metadata.for_settings(settings);
        metadata.map_or(PlanKnowledge::Unknown, |variants| {
            variants.plan_knowledge(plan)
        })
    }

    /// True if a narrowed reply has to go through a temporary table to match this plan's sample.
    #[must_use]
    pub fn is_buffered(&self, settings: PlanSettings, plan: &ServerPlan) -> bool {
        let state = self.state();
        let metadata = state.metadata.for_settings(settings);
        metadata.is_some_and(|variants| variants.is_buffered(plan))
    }

    /// True if these columns match the sample for so many authors.
    #[must_use]
    pub fn matches_metadata(
        &self,
        bucket: AuthorCountBucket,
        settings: PlanSettings,
        columns: &ColumnFingerprint,
    ) -> bool {
        let state = self.state();
        let metadata = state.metadata.for_settings(settings);
        let restored =
            metadata.and_then(|variants| variants.restored_columns(bucket, None, columns));
        restored.as_ref() == Some(columns)
    }

    /// Records a direct reply, its microseconds, and its plan where that was requested.
    pub fn record_sample(
        &self,
        (bucket, settings): (AuthorCountBucket, PlanSettings),
        plan: Option<ServerPlan>,
        microseconds: f64,
        columns: ColumnFingerprint,
        ends: PlanStatusFlags,
    ) {
        let mut state = self.state();
        let record =
            |metadata: &mut TemplateMetadata| metadata.record_sample(bucket, plan, columns, ends);
        state.metadata.update(settings, record);
        if let Some(costs) = state.costs.get_mut(bucket.number()) {
            costs.record_time(StatementPath::Direct, microseconds);
        }
    }

    /// Records a narrowed statement that failed after so many microseconds. The direct one follows it.
    pub fn record_failed_narrowing(&self, bucket: AuthorCountBucket, microseconds: f64) {
        if let Some(costs) = self.state().costs.get_mut(bucket.number()) {
            costs.record_failed_narrowing(microseconds);
        }
    }

    /// Records a narrowed statement and its microseconds. `keeps`: its rows may be cached.
    pub fn record_narrowed(&self, bucket: AuthorCountBucket, microseconds: f64, caches: bool) {
        if let Some(costs) = self.state().costs.get_mut(bucket.number()) {
            if caches {
                costs.record_cache_miss();
            }
            costs.record_time(StatementPath::Narrowed, microseconds);
        }
    }

    /// Records a statement that a cached page answered, and its microseconds.
    pub fn record_cached_page(&self, bucket: AuthorCountBucket, microseconds: f64) {
        // One in so many reports for all: sessions of all cores come here.
        if !self
            .cached_pages
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(CACHED_PAGE_BATCH)
        {
            return;
        }
        if let Some(costs) = self.state().costs.get_mut(bucket.number()) {
            costs.record_cached_pages(CACHED_PAGE_BATCH, microseconds);
        }
    }

    /// The candidates sufficed, and more messages follow them.
    pub fn record_sufficient(&self) {
        self.state().candidate_ratio.record_sufficient();
    }

    /// Too few of the candidates passed.
    pub fn record_shortfall(&self, candidates: usize, passed: usize) {
        self.state()
            .candidate_ratio
            .record_shortfall(candidates, passed);
    }

    /// The columns of a narrowed reply as in a direct one, and the flags after the columns and at the end. `None`: they are unknown or
    /// differ in more than key flags; then another form is tried, or the template is retired.
    #[must_use]
    pub fn restore_columns(
        &self,
        bucket: AuthorCountBucket,
        settings: PlanSettings,
        plan: Option<&ServerPlan>,
        narrowed: &ColumnFingerprint,
    ) -> Option<(ColumnFingerprint, PlanStatusFlags)> {
        let state = &mut *self.state();
        let metadata = state.metadata.for_settings(settings)?;
        let ends = metadata.sample(bucket, plan)?.status_flags;
        if let Some(columns) = metadata.restored_columns(bucket, plan, narrowed) {
            state.mismatches = 0;
            return Some((columns, ends));
        }
        if let Some(plan) = plan {
            let differs = |template: &mut TemplateMetadata| template.record_difference(plan);
            state.metadata.update(settings, differs);
            return None;
        }
        state.mismatches += 1;
        match state.mismatches {
            // The tables may have changed since.
            1 => state.metadata.update(settings, TemplateMetadata::forget),
            _ if state.buffered => state.retired = Some(RetirementReason::Columns),
            _ => state.buffered = true,
        }
        None
    }

    /// True if its statements are relayed for good.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        self.state().retired.is_some()
    }

    /// Relays its statements from now on.
    pub fn retire(&self, why: RetirementReason) {
        self.state().retired = Some(why);
    }
}

impl FeedSelect {
    /// Every table that the statement names, once.
    #[must_use]
    pub fn tables(&self) -> Vec<TableName> {
        let mut named = Vec::new();
        collect_sources(&self.sources, &mut named);
        collect_items(&self.items, &mut named);
        collect_items(&self.derived_items, &mut named);
        if let Some((_, filter)) = &self.filter {
            collect_condition(filter, &mut named);
        }
        if let Some(outer) = &self.outer {
            collect_sources(&outer.sources, &mut named);
            collect_items(&outer.items, &mut named);
            let filter = outer.filter.iter();
            filter.for_each(|filter| collect_condition(filter, &mut named));
        }
        let newest = self.newest.iter().map(|newest| &newest.rows);
        let others = self.union.iter().chain(newest);
        named.extend(others.flat_map(FeedSelect::tables));
        named.sort();
        named.dedup();
        named
    }
}

fn collect_items(items: &[SelectItem], named: &mut Vec<TableName>) {
    for item in items {
        if let SelectItem::Operand(operand, _) = item {
            operand.visit_subqueries(&mut |rows| collect_subquery(rows, named));
        }
    }
}

fn collect_sources(sources: &[TableReference], named: &mut Vec<TableName>) {
    for source in sources {
        // Its own tables are named where it is read.
        if !source.is_page {
            named.push(TableName {
                database: source.database.as_ref().map(|name| name.text.clone()),
                table: source.table.text.clone(),
            });
        }
        if let Some(on) = &source.on {
            collect_condition(on, named);
        }
    }
}

fn collect_condition(condition: &SelectCondition, named: &mut Vec<TableName>) {
    condition.visit_subqueries(&mut |rows| collect_subquery(rows, named));
}

fn collect_subquery(rows: &Subquery, named: &mut Vec<TableName>) {
    collect_sources(&rows.sources, named);
    if let Some(filter) = &rows.filter {
        collect_condition(filter, named);
    }
}
