//! A template that is served: its shape, and what was learned from its statements.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headwater_rows::template::TemplateCache;
use headwater_timeline::index::TimelineId;

use crate::binding::FeedColumnTypes;
use crate::cost::{
    AuthorCountBucket, CACHED_PAGE_BATCH, CandidateRatio, PathCosts, PathDecision, StatementPath,
    WIDENING_FACTOR,
};
use crate::definition::FeedId;
use crate::outcome_counts::OutcomeCounts;
use crate::query::{ConditionKind, FeedSelect, SelectCondition, Subquery, TableReference};
use crate::result_metadata::{
    self, ColumnFingerprint, PlanKnowledge, PlanSettings, PlanStatusFlags, ServerPlan,
    TemplateMetadata,
};
use crate::shape::{FeedNames, StatementShape};

/// A template of a feed's statements, in one database.
#[derive(Debug)]
pub struct Template {
    /// Whose.
    pub feed: FeedId,
    /// The database of the feed's tables.
    pub database: String,
    /// Its names.
    pub feed_names: FeedNames,
    /// Types of its columns.
    pub types: FeedColumnTypes,
    /// What stands where.
    pub shape: StatementShape,
    /// Every table that it names.
    pub tables: Vec<TableName>,
    /// Rows of its statements, where they are kept.
    pub row_cache: Arc<TemplateCache>,
    /// The places of those that they are made of beside the messages', as [`crate::row_dependencies::RowDependencies::joined_rows`] has them.
    pub joined_timelines: Arc<[TimelineId]>,
    /// The places of readers' rows in the tables of its lists of authors, as [`crate::row_dependencies::RowDependencies::lists`] has them.
    pub list_timelines: Arc<[TimelineId]>,
    counters: OutcomeCounters,
    state: Mutex<TemplateState>,
    /// Pages of kept rows.
    cached_pages: AtomicU32,
}

/// Where it is counted what becomes of a template's statements.
#[derive(Clone, Debug, Default)]
pub struct OutcomeCounters {
    /// Those of the template.
    pub template: Arc<OutcomeCounts>,
    /// Those of all templates of its feed, where that is known.
    pub feed: Option<Arc<OutcomeCounts>>,
}

impl OutcomeCounters {
    /// Counts what became of a statement.
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
    /// The database in front.
    pub database: Option<String>,
    /// Its name.
    pub table: String,
}

/// What was learned of a template.
#[derive(Debug, Default)]
struct TemplateState {
    costs: [PathCosts; AuthorCountBucket::COUNT],
    candidate_ratio: CandidateRatio,
    metadata: result_metadata::SettingsMetadata,
    /// Its columns are described as they are directly where they come through a temporary table.
    buffered: bool,
    retired: Option<RetirementReason>,
    /// So often, one behind the other, a narrowed answer's columns differed from those that were learned.
    mismatches: u32,
}

impl TemplateState {
    /// How columns are described for so many authors under these settings.
    fn has_metadata(&self, crowd: AuthorCountBucket, under: PlanSettings) -> bool {
        let variants = self.metadata.for_settings(under);
        variants.is_some_and(|variants| variants.sample(crowd, None).is_some())
    }
}

/// Why a template is not narrowed any more, though its text could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetirementReason {
    /// Asked directly, it ends with a warning or an error: what a narrowed one says of that is not known.
    Warns,
    /// Its columns are described in another way when it is narrowed.
    Columns,
    /// Its answers are longer than is held.
    TooLong,
}

/// How a statement is to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionChoice {
    /// As it is: the server's own answer is looked at, and learned from.
    Sample,
    /// With candidates, in this form.
    Narrowed {
        /// Through a temporary table.
        buffered: bool,
    },
    /// As it is: that costs less.
    Direct,
    /// As it is, for good.
    Retired(RetirementReason),
}

impl Template {
    /// One of which nothing was learned yet.
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
            joined_timelines: Arc::default(),
            list_timelines: Arc::default(),
            counters: OutcomeCounters::default(),
            state: Mutex::default(),
            cached_pages: AtomicU32::default(),
        }
    }

    /// The same, whose rows are made of these places' as well, and whose lists are told of in those.
    #[must_use]
    pub fn with_timelines(self, referred: Vec<TimelineId>, lists: Vec<TimelineId>) -> Template {
        Template {
            joined_timelines: referred.into(),
            list_timelines: lists.into(),
            ..self
        }
    }

    /// The same, counted there.
    #[must_use]
    pub fn with_counters(self, counted: OutcomeCounters) -> Template {
        Template {
            counters: counted,
            ..self
        }
    }

    /// This has become of one of its statements.
    pub fn count_outcome(&self, what: &'static str) {
        self.counters.add(what);
        let times = match what {
            // The server was not asked.
            "kept" => return,
            "narrowed" => self.times().map(|(_, narrowed)| narrowed),
            _ => self.times().map(|(directly, _)| directly),
        };
        self.counters.template.add_server_time(times);
    }

    /// How long statements take directly and narrowed, in microseconds, where most authors were named of late. `None`: not known.
    #[must_use]
    pub fn times(&self) -> Option<(f64, f64)> {
        self.state().costs.iter().rev().find_map(PathCosts::times)
    }

    fn state(&self) -> MutexGuard<'_, TemplateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many candidates to take for so many rows.
    #[must_use]
    pub fn candidates(&self, rows: usize, most: usize) -> usize {
        self.state().candidate_ratio.candidates(rows, most)
    }

    /// How many to take where so many did not suffice; `None`: there are to be no more.
    #[must_use]
    pub fn widen(candidates: usize, most: usize) -> Option<usize> {
        (candidates < most).then(|| candidates.saturating_mul(WIDENING_FACTOR).min(most))
    }

    /// How the next statement of so many authors is to be asked, under these settings; `always`: narrowed, whatever that costs.
    #[must_use]
    pub fn choose(
        &self,
        crowd: AuthorCountBucket,
        under: PlanSettings,
        always: bool,
    ) -> ExecutionChoice {
        let learned = &mut *self.state();
        if let Some(retired) = learned.retired {
            return ExecutionChoice::Retired(retired);
        }
        let known = learned.has_metadata(crowd, under);
        let Some(costs) = learned.costs.get_mut(crowd.number()) else {
            return ExecutionChoice::Direct;
        };
        let narrowed = ExecutionChoice::Narrowed {
            buffered: learned.buffered,
        };
        match costs.choose() {
            _ if !known => ExecutionChoice::Sample,
            _ if always => narrowed,
            PathDecision::Narrowed => narrowed,
            PathDecision::Measured => ExecutionChoice::Sample,
            PathDecision::Direct => ExecutionChoice::Direct,
        }
    }

    /// True where it was learned of so many authors what a narrowed statement needs, and where there is nothing to be learned any more.
    #[must_use]
    pub fn has_sampled(&self, crowd: AuthorCountBucket, under: PlanSettings) -> bool {
        let learned = self.state();
        learned.retired.is_some() || learned.has_metadata(crowd, under)
    }

    /// What is known of columns under a plan of the server's.
    #[must_use]
    pub fn plan_knowledge(&self, under: PlanSettings, plan: &ServerPlan) -> PlanKnowledge {
        let learned = self.state();
        let variants = learned.metadata.for_settings(under);
        variants.map_or(PlanKnowledge::Unknown, |variants| {
            variants.plan_knowledge(plan)
        })
    }

    /// True where a narrowed answer is described as under this plan if it comes through a temporary table.
    #[must_use]
    pub fn is_buffered(&self, under: PlanSettings, plan: &ServerPlan) -> bool {
        let learned = self.state();
        let variants = learned.metadata.for_settings(under);
        variants.is_some_and(|variants| variants.is_buffered(plan))
    }

    /// True where the server describes columns so for so many authors, as far as is known.
    #[must_use]
    pub fn matches_metadata(
        &self,
        crowd: AuthorCountBucket,
        under: PlanSettings,
        columns: &ColumnFingerprint,
    ) -> bool {
        let learned = self.state();
        let variants = learned.metadata.for_settings(under);
        let told = variants.and_then(|variants| variants.restored_columns(crowd, None, columns));
        told.as_ref() == Some(columns)
    }

    /// A direct one was answered well, in so many microseconds; the server went about it by that plan, where that was asked.
    pub fn record_sample(
        &self,
        (crowd, under): (AuthorCountBucket, PlanSettings),
        plan: Option<ServerPlan>,
        microseconds: f64,
        columns: ColumnFingerprint,
        ends: PlanStatusFlags,
    ) {
        let mut learned = self.state();
        let learn =
            |variants: &mut TemplateMetadata| variants.record_sample(crowd, plan, columns, ends);
        learned.metadata.update(under, learn);
        if let Some(costs) = learned.costs.get_mut(crowd.number()) {
            costs.record_time(StatementPath::Direct, microseconds);
        }
    }

    /// A narrowed one took so many microseconds and came to nothing: the direct one comes behind it.
    pub fn record_failed_narrowing(&self, crowd: AuthorCountBucket, microseconds: f64) {
        if let Some(costs) = self.state().costs.get_mut(crowd.number()) {
            costs.record_failed_narrowing(microseconds);
        }
    }

    /// A narrowed one was answered in so many microseconds. `keeps`: its rows may be kept.
    pub fn record_narrowed(&self, crowd: AuthorCountBucket, microseconds: f64, keeps: bool) {
        if let Some(costs) = self.state().costs.get_mut(crowd.number()) {
            if keeps {
                costs.record_cache_miss();
            }
            costs.record_time(StatementPath::Narrowed, microseconds);
        }
    }

    /// One was answered by a page of kept rows, in so many microseconds.
    pub fn record_cached_page(&self, crowd: AuthorCountBucket, microseconds: f64) {
        // One in so many tells of all: sessions of all cores come here.
        if !self
            .cached_pages
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(CACHED_PAGE_BATCH)
        {
            return;
        }
        if let Some(costs) = self.state().costs.get_mut(crowd.number()) {
            costs.record_cached_pages(CACHED_PAGE_BATCH, microseconds);
        }
    }

    /// Candidates sufficed, and there were more messages behind them.
    pub fn record_sufficient(&self) {
        self.state().candidate_ratio.record_sufficient();
    }

    /// Of so many candidates so many passed, which did not suffice.
    pub fn record_shortfall(&self, candidates: usize, passed: usize) {
        self.state()
            .candidate_ratio
            .record_shortfall(candidates, passed);
    }

    /// Tells the columns of a narrowed answer as they are directly, and the flags behind the columns and at the end. `None`: that is
    /// not known, or they differ in more than key flags, for which another form is tried, or the template is given up.
    #[must_use]
    pub fn restore_columns(
        &self,
        crowd: AuthorCountBucket,
        under: PlanSettings,
        plan: Option<&ServerPlan>,
        own: &ColumnFingerprint,
    ) -> Option<(ColumnFingerprint, PlanStatusFlags)> {
        let learned = &mut *self.state();
        let variants = learned.metadata.for_settings(under)?;
        let ends = variants.sample(crowd, plan)?.status_flags;
        if let Some(columns) = variants.restored_columns(crowd, plan, own) {
            learned.mismatches = 0;
            return Some((columns, ends));
        }
        if let Some(plan) = plan {
            let differs = |variants: &mut TemplateMetadata| variants.record_difference(plan);
            learned.metadata.update(under, differs);
            return None;
        }
        learned.mismatches += 1;
        match learned.mismatches {
            // The tables may have changed since.
            1 => learned.metadata.update(under, TemplateMetadata::forget),
            _ if learned.buffered => learned.retired = Some(RetirementReason::Columns),
            _ => learned.buffered = true,
        }
        None
    }

    /// True where it is asked directly for good.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        self.state().retired.is_some()
    }

    /// It is asked directly from now on.
    pub fn retire(&self, why: RetirementReason) {
        self.state().retired = Some(why);
    }
}

impl FeedSelect {
    /// Every table that it names, once.
    #[must_use]
    pub fn tables(&self) -> Vec<TableName> {
        let mut named = Vec::new();
        collect_sources(&self.sources, &mut named);
        if let Some((_, filter)) = &self.filter {
            collect_condition(filter, &mut named);
        }
        named.sort();
        named.dedup();
        named
    }
}

fn collect_sources(sources: &[TableReference], named: &mut Vec<TableName>) {
    for source in sources {
        named.push(TableName {
            database: source.database.as_ref().map(|name| name.text.clone()),
            table: source.table.text.clone(),
        });
        if let Some(on) = &source.on {
            collect_condition(on, named);
        }
    }
}

fn collect_condition(condition: &SelectCondition, named: &mut Vec<TableName>) {
    match &condition.kind {
        ConditionKind::And(all) | ConditionKind::Or(all) => {
            all.iter().for_each(|one| collect_condition(one, named))
        }
        ConditionKind::Not(one) => collect_condition(one, named),
        ConditionKind::InSubquery(_, rows, _) | ConditionKind::Exists(rows) => {
            collect_subquery(rows, named)
        }
        ConditionKind::Compare(..)
        | ConditionKind::ComparePairs(..)
        | ConditionKind::Null(..)
        | ConditionKind::Between(..)
        | ConditionKind::Like(..)
        | ConditionKind::In(..)
        | ConditionKind::Truth(_) => {}
    }
}

fn collect_subquery(rows: &Subquery, named: &mut Vec<TableName>) {
    collect_sources(&rows.sources, named);
    if let Some(filter) = &rows.filter {
        collect_condition(filter, named);
    }
}
