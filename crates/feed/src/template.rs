//! A template that is served: its shape, and what was learned from its statements.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headwater_rows::template::KeptRows;
use headwater_timeline::index::PlaceId;

use crate::bind::Types;
use crate::cost::{Costs, Course, Crowd, Need, TOLD_OF, WIDER, Way};
use crate::counted::Counted;
use crate::definition::FeedId;
use crate::query::{Condition, Query, Rows, Says, Source};
use crate::shape::{Feed, Shape};
use crate::variants::{self, Columns, Ends, Plan, Planned, Under, Variants};

/// A template of a feed's statements, in one database.
#[derive(Debug)]
pub struct Template {
    /// Whose.
    pub feed: FeedId,
    /// The database of the feed's tables.
    pub database: String,
    /// Its names.
    pub names: Feed,
    /// Types of its columns.
    pub types: Types,
    /// What stands where.
    pub shape: Shape,
    /// Every table that it names.
    pub tables: Vec<Named>,
    /// Rows of its statements, where they are kept.
    pub kept: Arc<KeptRows>,
    /// The places of those that they are made of beside the messages', as [`crate::keep::Keep::refers`] has them.
    pub referred: Arc<[PlaceId]>,
    /// The places of readers' rows in the tables of its lists of authors, as [`crate::keep::Keep::lists`] has them.
    pub lists: Arc<[PlaceId]>,
    counted: Tallies,
    learned: Mutex<Learned>,
    /// Pages of kept rows.
    pages: AtomicU32,
}

/// Where it is counted what becomes of a template's statements.
#[derive(Clone, Debug, Default)]
pub struct Tallies {
    /// Those of the template.
    pub own: Arc<Counted>,
    /// Those of all templates of its feed, where that is known.
    pub feed: Option<Arc<Counted>>,
}

impl Tallies {
    /// Counts what became of a statement.
    pub fn add(&self, what: &'static str) {
        self.own.add(what);
        if let Some(feed) = &self.feed {
            feed.add(what);
        }
    }
}

/// A table as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Named {
    /// The database in front.
    pub database: Option<String>,
    /// Its name.
    pub table: String,
}

/// What was learned of a template.
#[derive(Debug, Default)]
struct Learned {
    costs: [Costs; Crowd::COUNT],
    need: Need,
    variants: variants::Learned,
    /// Its columns are described as they are directly where they come through a temporary table.
    buffered: bool,
    retired: Option<Retired>,
    /// So often, one behind the other, a narrowed answer's columns differed from those that were learned.
    misfits: u32,
}

impl Learned {
    /// How columns are described for so many authors under these settings.
    fn knows(&self, crowd: Crowd, under: Under) -> bool {
        let variants = self.variants.under(under);
        variants.is_some_and(|variants| variants.of(crowd, None).is_some())
    }
}

/// Why a template is not narrowed any more, though its text could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retired {
    /// Asked directly, it ends with a warning or an error: what a narrowed one says of that is not known.
    Warns,
    /// Its columns are described in another way when it is narrowed.
    Columns,
    /// Its answers are longer than is held.
    Long,
}

/// How a statement is to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// As it is: the server's own answer is looked at, and learned from.
    Learn,
    /// With candidates, in this form.
    Narrowed {
        /// Through a temporary table.
        buffered: bool,
    },
    /// As it is: that costs less.
    Direct,
    /// As it is, for good.
    Retired(Retired),
}

impl Template {
    /// One of which nothing was learned yet.
    #[must_use]
    pub fn new(
        feed: FeedId,
        database: String,
        names: Feed,
        types: Types,
        shape: Shape,
        tables: Vec<Named>,
    ) -> Template {
        Template {
            feed,
            database,
            names,
            types,
            shape,
            tables,
            kept: Arc::default(),
            referred: Arc::default(),
            lists: Arc::default(),
            counted: Tallies::default(),
            learned: Mutex::default(),
            pages: AtomicU32::default(),
        }
    }

    /// The same, whose rows are made of these places' as well, and whose lists are told of in those.
    #[must_use]
    pub fn referring(self, referred: Vec<PlaceId>, lists: Vec<PlaceId>) -> Template {
        Template {
            referred: referred.into(),
            lists: lists.into(),
            ..self
        }
    }

    /// The same, counted there.
    #[must_use]
    pub fn counted(self, counted: Tallies) -> Template {
        Template { counted, ..self }
    }

    /// This has become of one of its statements.
    pub fn count(&self, what: &'static str) {
        self.counted.add(what);
        let times = match what {
            // The server was not asked.
            "kept" => return,
            "narrowed" => self.times().map(|(_, narrowed)| narrowed),
            _ => self.times().map(|(directly, _)| directly),
        };
        self.counted.own.weigh(times);
    }

    /// How long statements take directly and narrowed, in microseconds, where most authors were named of late. `None`: not known.
    #[must_use]
    pub fn times(&self) -> Option<(f64, f64)> {
        self.learned().costs.iter().rev().find_map(Costs::times)
    }

    fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many candidates to take for so many rows.
    #[must_use]
    pub fn candidates(&self, rows: usize, most: usize) -> usize {
        self.learned().need.candidates(rows, most)
    }

    /// How many to take where so many did not suffice; `None`: there are to be no more.
    #[must_use]
    pub fn wider(candidates: usize, most: usize) -> Option<usize> {
        (candidates < most).then(|| candidates.saturating_mul(WIDER).min(most))
    }

    /// How the next statement of so many authors is to be asked, under these settings; `always`: narrowed, whatever that costs.
    #[must_use]
    pub fn choose(&self, crowd: Crowd, under: Under, always: bool) -> Choice {
        let learned = &mut *self.learned();
        if let Some(retired) = learned.retired {
            return Choice::Retired(retired);
        }
        let known = learned.knows(crowd, under);
        let Some(costs) = learned.costs.get_mut(crowd.number()) else {
            return Choice::Direct;
        };
        let narrowed = Choice::Narrowed {
            buffered: learned.buffered,
        };
        match costs.choose() {
            _ if !known => Choice::Learn,
            _ if always => narrowed,
            Course::Narrowed => narrowed,
            Course::Measured => Choice::Learn,
            Course::Direct => Choice::Direct,
        }
    }

    /// True where it was learned of so many authors what a narrowed statement needs, and where there is nothing to be learned any more.
    #[must_use]
    pub fn has_learned(&self, crowd: Crowd, under: Under) -> bool {
        let learned = self.learned();
        learned.retired.is_some() || learned.knows(crowd, under)
    }

    /// What is known of columns under a plan of the server's.
    #[must_use]
    pub fn planned(&self, under: Under, plan: &Plan) -> Planned {
        let learned = self.learned();
        let variants = learned.variants.under(under);
        variants.map_or(Planned::Unknown, |variants| variants.planned(plan))
    }

    /// True where a narrowed answer is described as under this plan if it comes through a temporary table.
    #[must_use]
    pub fn is_buffered(&self, under: Under, plan: &Plan) -> bool {
        let learned = self.learned();
        let variants = learned.variants.under(under);
        variants.is_some_and(|variants| variants.is_buffered(plan))
    }

    /// True where the server describes columns so for so many authors, as far as is known.
    #[must_use]
    pub fn tells(&self, crowd: Crowd, under: Under, columns: &Columns) -> bool {
        let learned = self.learned();
        let variants = learned.variants.under(under);
        let told = variants.and_then(|variants| variants.told(crowd, None, columns));
        told.as_ref() == Some(columns)
    }

    /// A direct one was answered well, in so many microseconds; the server went about it by that plan, where that was asked.
    pub fn learn(
        &self,
        (crowd, under): (Crowd, Under),
        plan: Option<Plan>,
        microseconds: f64,
        columns: Columns,
        ends: Ends,
    ) {
        let mut learned = self.learned();
        let learn = |variants: &mut Variants| variants.learn(crowd, plan, columns, ends);
        learned.variants.change(under, learn);
        if let Some(costs) = learned.costs.get_mut(crowd.number()) {
            costs.took(Way::Direct, microseconds);
        }
    }

    /// A narrowed one took so many microseconds and came to nothing: the direct one comes behind it.
    pub fn took_in_vain(&self, crowd: Crowd, microseconds: f64) {
        if let Some(costs) = self.learned().costs.get_mut(crowd.number()) {
            costs.took_in_vain(microseconds);
        }
    }

    /// A narrowed one was answered in so many microseconds. `keeps`: its rows may be kept.
    pub fn took(&self, crowd: Crowd, microseconds: f64, keeps: bool) {
        if let Some(costs) = self.learned().costs.get_mut(crowd.number()) {
            if keeps {
                costs.missed_kept();
            }
            costs.took(Way::Narrowed, microseconds);
        }
    }

    /// One was answered by a page of kept rows, in so many microseconds.
    pub fn made_of_kept(&self, crowd: Crowd, microseconds: f64) {
        // One in so many tells of all: sessions of all cores come here.
        if !self
            .pages
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(TOLD_OF)
        {
            return;
        }
        if let Some(costs) = self.learned().costs.get_mut(crowd.number()) {
            costs.made_of_kept(TOLD_OF, microseconds);
        }
    }

    /// Candidates sufficed, and there were more messages behind them.
    pub fn sufficed(&self) {
        self.learned().need.sufficed();
    }

    /// Of so many candidates so many passed, which did not suffice.
    pub fn fell_short(&self, candidates: usize, passed: usize) {
        self.learned().need.fell_short(candidates, passed);
    }

    /// Tells the columns of a narrowed answer as they are directly, and the flags behind the columns and at the end. `None`: that is
    /// not known, or they differ in more than key flags, for which another form is tried, or the template is given up.
    #[must_use]
    pub fn told(
        &self,
        crowd: Crowd,
        under: Under,
        plan: Option<&Plan>,
        own: &Columns,
    ) -> Option<(Columns, Ends)> {
        let learned = &mut *self.learned();
        let variants = learned.variants.under(under)?;
        let ends = variants.of(crowd, plan)?.ends;
        if let Some(columns) = variants.told(crowd, plan, own) {
            learned.misfits = 0;
            return Some((columns, ends));
        }
        if let Some(plan) = plan {
            let differs = |variants: &mut Variants| variants.differs(plan);
            learned.variants.change(under, differs);
            return None;
        }
        learned.misfits += 1;
        match learned.misfits {
            // The tables may have changed since.
            1 => learned.variants.change(under, Variants::forget),
            _ if learned.buffered => learned.retired = Some(Retired::Columns),
            _ => learned.buffered = true,
        }
        None
    }

    /// True where it is asked directly for good.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        self.learned().retired.is_some()
    }

    /// It is asked directly from now on.
    pub fn retire(&self, why: Retired) {
        self.learned().retired = Some(why);
    }
}

impl Query {
    /// Every table that it names, once.
    #[must_use]
    pub fn tables(&self) -> Vec<Named> {
        let mut named = Vec::new();
        sources(&self.sources, &mut named);
        if let Some((_, filter)) = &self.filter {
            of_condition(filter, &mut named);
        }
        named.sort();
        named.dedup();
        named
    }
}

fn sources(sources: &[Source], named: &mut Vec<Named>) {
    for source in sources {
        named.push(Named {
            database: source.database.as_ref().map(|name| name.text.clone()),
            table: source.table.text.clone(),
        });
        if let Some(on) = &source.on {
            of_condition(on, named);
        }
    }
}

fn of_condition(condition: &Condition, named: &mut Vec<Named>) {
    match &condition.is {
        Says::And(all) | Says::Or(all) => all.iter().for_each(|one| of_condition(one, named)),
        Says::Not(one) => of_condition(one, named),
        Says::InRows(_, rows, _) | Says::Exists(rows) => of_rows(rows, named),
        Says::Compare(..)
        | Says::Pairs(..)
        | Says::Null(..)
        | Says::Between(..)
        | Says::Like(..)
        | Says::In(..)
        | Says::Truth(_) => {}
    }
}

fn of_rows(rows: &Rows, named: &mut Vec<Named>) {
    sources(&rows.sources, named);
    if let Some(filter) = &rows.filter {
        of_condition(filter, named);
    }
}
