//! The background worker that reads tables and classifies templates.

use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use headwater_rows::MAX_LINKS;

use super::feed_database::FeedAvailability;
use super::refusal::{self, FeedMatchSummary, TemplateRefusal};
use super::unmatched_text::{UnmatchedTemplate, UnmatchedTextKind};
use super::{
    DiscoveryOutcome, FeedDiscoveryMode, FeedInbox, FeedRegistry, FeedRegistryState, RelayCause,
    TemplateStatus, databases_query,
};
use crate::catalogue::{Catalogue, ServiceError};
use crate::clock;
use headwater_feed::author_lists::MOST_LISTS;
use headwater_feed::binding::FeedColumnTypes;
use headwater_feed::catalogue::{self, CatalogueRows, DatabaseCatalogue};
use headwater_feed::feed_proposal::{self, ProposalEvidence, ProposalOutcome as Proposed, propose};
use headwater_feed::parser::parse_as;
use headwater_feed::postings::PostingSelection;
use headwater_feed::row_dependencies::RowDependencies;
use headwater_feed::table_check;
use headwater_feed::template::{OutcomeCounters, TableName};
use headwater_feed::words::StatementWords;
use headwater_feed::{
    FeedDefinition, FeedId, FeedNames, NarrowingRefusal, StatementShape, Template, shape,
    shape_of_postings,
};
use headwater_log::joined_table::JoinedTable;
use headwater_timeline::index::TableId;

/// The most tables that are logged as invisible.
const MOST_UNSEEN: usize = 100;

#[derive(Debug)]
pub(super) enum FeedTask {
    Database(Vec<u8>),
    Template {
        key: Box<[u8]>,
        database: Vec<u8>,
        text: Vec<u8>,
    },
    /// Classify a text that names no feed's messages.
    Unmatched {
        key: Box<[u8]>,
        database: Vec<u8>,
        text: Vec<u8>,
    },
}

/// Processes tasks, and checks everything known at each interval, forever.
///
/// Boxed, so that no other package compiles it again.
pub fn run(
    feeds: Arc<FeedRegistry>,
    catalogue: &Catalogue,
    inbox: FeedInbox,
    every: Duration,
) -> BoxFuture<'_, ()> {
    Box::pin(process_tasks(feeds, catalogue, inbox, every))
}

async fn process_tasks(
    feeds: Arc<FeedRegistry>,
    catalogue: &Catalogue,
    inbox: FeedInbox,
    every: Duration,
) {
    let FeedInbox(mut inbox) = inbox;
    let mut worker = FeedWorker {
        feeds,
        catalogue,
        has_listed: false,
    };
    worker.refresh_all().await;
    worker.feeds.databases_checked.send_replace(true);
    let mut asides = worker.feeds.binlog.subscribe_suspension();
    let mut due = clock::now() + every;
    loop {
        let next = tokio::select! {
            biased;
            next = tokio::time::timeout_at(due.into(), inbox.recv()) => next,
            Ok(()) = asides.changed() => {
                worker.feeds.log_changes();
                continue;
            }
        };
        match next {
            Ok(None) => return,
            Ok(Some(FeedTask::Database(database))) => worker.refresh(&database, false).await,
            Ok(Some(FeedTask::Template {
                key,
                database,
                text,
            })) => worker.classify_template(key, &database, &text).await,
            Ok(Some(FeedTask::Unmatched {
                key,
                database,
                text,
            })) => worker.classify_unmatched(key, &database, &text).await,
            Err(_) => {
                due = clock::now() + every;
                if worker.feeds.has_feeds() {
                    worker.check_functions(true).await;
                }
                worker.refresh_all().await;
            }
        }
    }
}

struct FeedWorker<'a> {
    feeds: Arc<FeedRegistry>,
    catalogue: &'a Catalogue,
    /// The server has listed the databases that hold feeds' messages.
    has_listed: bool,
}

impl FeedWorker<'_> {
    /// Checks every known database, and until the server has listed them also those that hold a feed's messages.
    async fn refresh_all(&mut self) {
        let mut databases: BTreeSet<Vec<u8>> = self.feeds.databases().into_iter().collect();
        if !self.has_listed {
            databases.extend(self.list_databases().await);
        }
        for database in databases {
            self.refresh(&database, true).await;
        }
    }

    /// The databases that hold a feed's messages, as far as the server lists them.
    async fn list_databases(&mut self) -> BTreeSet<Vec<u8>> {
        self.has_listed = true;
        let mut databases = BTreeSet::new();
        for definition in self.definitions() {
            match &definition.database {
                Some(database) => drop(databases.insert(database.clone().into_bytes())),
                None => {
                    let query = databases_query(&definition, self.feeds.most_databases);
                    let replies = self.query_rows(&[query]).await;
                    self.has_listed &= replies.is_some();
                    let rows = replies.into_iter().flatten().flatten();
                    let names = rows.filter_map(|row| row.into_iter().next().flatten());
                    databases.extend(names);
                }
            }
        }
        databases
    }

    fn definitions(&self) -> Vec<Arc<FeedDefinition>> {
        self.feeds.state().definitions()
    }

    /// A SELECT may do more than read if there are stored functions: transactions are judged by that.
    async fn check_functions(&mut self, anew: bool) {
        if !anew && self.catalogue.no_functions().is_some() {
            return;
        }
        let epoch = self.catalogue.epoch();
        if let Some(service) = &self.catalogue.service
            && let Ok(none) = service.has_no_functions().await
        {
            self.catalogue.record_no_functions(none, epoch);
        }
    }

    async fn query_rows(&mut self, queries: &[String]) -> Option<Vec<CatalogueRows>> {
        let service = self.catalogue.service.as_ref()?;
        match service.query_rows(queries).await {
            Ok(replies) => {
                self.feeds.state().last_failure = None;
                Some(replies)
            }
            // The first failure was reported with its reason.
            Err(ServiceError::FailedRecently) => None,
            Err(error) => {
                let (was_logged, error) = (error.was_logged(), error.to_string());
                let before = self.feeds.state().last_failure.replace(error.clone());
                if !was_logged && before.is_none() {
                    tracing::warn!("the tables of feeds cannot be looked at: {error}");
                }
                None
            }
        }
    }

    /// Reads the tables of a database again, if that is due or `anew` is set.
    async fn refresh(&mut self, database: &[u8], anew: bool) {
        let Ok(name) = std::str::from_utf8(database) else {
            return;
        };
        let epoch = self.catalogue.epoch();
        self.check_functions(false).await;
        let wanted = {
            let mut state = self.feeds.state();
            let definitions = state.definitions();
            let full = state.databases.len() >= self.feeds.most_databases;
            if full && !state.databases.contains_key(database) {
                return;
            }
            let known = state.databases.entry(database.to_vec()).or_default();
            if !anew && known.is_fresh(epoch, self.feeds.lifetime) {
                return;
            }
            known.add_wanted(
                definitions
                    .iter()
                    .flat_map(|definition| table_check::tables(definition)),
            );
            known.wanted()
        };
        let at = clock::now();
        let replies = self
            .query_rows(&catalogue::catalogue_queries(name, &wanted))
            .await;
        let Some(replies) = replies.and_then(|told| <[CatalogueRows; 3]>::try_from(told).ok())
        else {
            return;
        };
        let tables = DatabaseCatalogue::read(name, &replies).with_case(self.feeds.case);
        let feeds = &self.feeds;
        let mut state = feeds.state();
        let definitions = state.definitions();
        if let Some(known) = state.databases.get_mut(database) {
            known.record_tables(tables, &definitions, &feeds.binlog, (at, epoch));
        }
        drop(state);
        feeds.log_changes();
    }

    async fn classify_template(&mut self, key: Box<[u8]>, database: &[u8], text: &[u8]) {
        let mut outcome = self.match_template(&key, database, text).await;
        if let Some((_, Err(_))) = outcome
            && self.is_new_feed(database, text)
        {
            self.refresh(database, true).await;
            outcome = self.match_template(&key, database, text).await;
        }
        let mut state = self.feeds.state();
        let version = state.databases.get(database).map(|known| known.version());
        match (outcome, version) {
            (Some((version, is)), Some(current)) if version == current => {
                if let Some(entry) = state.templates.peek_mut(&key) {
                    entry.status = TemplateStatus::Known {
                        version,
                        outcome: is,
                    };
                }
            }
            // The text will come again.
            _ => drop(state.templates.pop(&key)),
        }
    }

    async fn match_template(
        &mut self,
        key: &[u8],
        database: &[u8],
        text: &[u8],
    ) -> Option<(u64, Result<Arc<Template>, TemplateRefusal>)> {
        let read = StatementWords::read(text).ok_or(NarrowingRefusal::NotUnderstood);
        let query = read.and_then(|words| Ok((parse_as(text, &words, self.feeds.case)?, words)));
        let (query, words) = match query {
            Ok(read) => read,
            Err(refused) => {
                let state = self.feeds.state();
                let version = state.databases.get(database)?.version();
                return Some((version, Err(refused.into())));
            }
        };
        let named = query.tables();
        let is_new = {
            let mut state = self.feeds.state();
            let known = state.databases.get_mut(database)?;
            known.add_wanted(named.iter().map(|named| named.table.clone()))
        };
        if is_new {
            self.refresh(database, true).await;
        }
        let mut state = self.feeds.state();
        let known = state.databases.get(database)?;
        let (version, tables) = (known.version(), known.tables());
        let counted = &state.templates.peek(key)?.counted;
        let template_of = |at: usize, names: &FeedNames, types, mut shape: StatementShape| {
            let keeps = self
                .feeds
                .rows_section
                .caches(&tables.database, &names.message);
            let keep = shape.row_dependencies.as_ref().filter(|_| keeps);
            let joined = keep.and_then(|keep| self.joined_tables(keep, &tables));
            if joined.is_none() {
                shape.row_dependencies = None;
            }
            let (joined, lists) = joined.unwrap_or_default();
            let (number, named) = (FeedId(self.feeds.first_number + at), named.clone());
            let database = tables.database.clone();
            let template = Template::new(number, database, names.clone(), types, shape, named);
            template.with_tables(joined, lists)
        };
        let template = |at: usize, names: FeedNames, types, shape: StatementShape, others| {
            let counted = OutcomeCounters {
                template: Arc::clone(counted),
                feed: state.feeds.get(at).map(|feed| Arc::clone(&feed.counted)),
            };
            let numbers = shape
                .newest
                .as_ref()
                .map(|newest| (*newest.numbers).clone());
            let newest = numbers.map(|numbers| template_of(at, &names, types, numbers));
            let template = template_of(at, &names, types, shape);
            let template = template.with_posting_feeds(others).with_newest(newest);
            Arc::new(template.with_counters(counted))
        };
        let mut summary = FeedMatchSummary::default();
        // Feeds that hold a part of the messages at most.
        let mut partial: Vec<(usize, FeedNames, FeedColumnTypes)> = Vec::new();
        for (at, feed) in state.feeds.iter().enumerate() {
            let names = refusal::names_messages(&named, &feed.definition, &tables.database);
            let shape = || {
                let feed = feed.definition.feed_names(&tables.database);
                shape(&query, &words, &feed, &*tables)
            };
            let types = match known.availability(at) {
                Some(FeedAvailability::Available {
                    types,
                    timeline: Some(_),
                }) => *types,
                Some(FeedAvailability::Elsewhere) | None => {
                    summary.add_blocked(at, false, names);
                    continue;
                }
                Some(served) => {
                    let fits = shape().is_ok() || names && served.has_missing_tables();
                    summary.add_blocked(at, fits, names);
                    continue;
                }
            };
            match shape() {
                Ok(shape) => {
                    let names = feed.definition.feed_names(&tables.database);
                    let template = template(at, names, types, shape, Vec::new());
                    return Some((version, Ok(template)));
                }
                Err(why) => {
                    if why == NarrowingRefusal::Authors {
                        partial.push((at, feed.definition.feed_names(&tables.database), types));
                    }
                    summary.add_served(at, why, names);
                }
            }
        }
        for (at, own, types) in &partial {
            let shares = |(other, names, _): &&(usize, FeedNames, _)| {
                other != at && own.shares_messages(names)
            };
            let others: Vec<_> = partial.iter().filter(shares).collect();
            let names: Vec<FeedNames> = others.iter().map(|(_, names, _)| names.clone()).collect();
            let Ok(shape) = shape_of_postings(&query, &words, own, &names, &*tables) else {
                continue;
            };
            let feed = |posting: &PostingSelection| {
                let (at, _, types) = others.get(posting.feed)?;
                Some((FeedId(self.feeds.first_number + at), *types))
            };
            let feeds = shape.postings.iter().filter_map(feed).collect();
            let template = template(*at, own.clone(), *types, shape, feeds);
            return Some((version, Ok(template)));
        }
        let unseen = refusal::unseen_tables(&named, &tables);
        let refusal = summary.refusal(&unseen);
        if let TemplateRefusal::Unseen(Some(_), unseen) = &refusal {
            state.log_unseen_tables(&tables.database, unseen, self.feeds.binlog.user());
        }
        Some((version, Err(refusal)))
    }

    /// The tables of the rows that a template's rows are made of, and of those that its author lists are made of. `None`: not all of
    /// them can be followed.
    fn joined_tables(
        &self,
        keep: &RowDependencies,
        tables: &DatabaseCatalogue,
    ) -> Option<(Vec<TableId>, Vec<TableId>)> {
        if keep.joined_rows.len() > MAX_LINKS || keep.lists.len() > MOST_LISTS {
            return None;
        }
        let register = |table: &str, id: &str| {
            let facts = tables.catalogue_table(table)?;
            let binlog = &self.feeds.binlog;
            let follows =
                binlog.row_cache().is_some() && facts.engine.eq_ignore_ascii_case("InnoDB");
            let table = JoinedTable {
                // Its number is given when it is registered.
                table_id: TableId::Joined(0),
                database: tables.database.clone(),
                table: table.to_owned(),
                id: id.to_owned(),
            };
            follows.then(|| binlog.register_joined_table(table))?
        };
        let refers = keep
            .joined_rows
            .iter()
            .map(|it| register(&it.table, &it.id));
        let lists = keep
            .lists
            .iter()
            .map(|it| register(&it.table, &it.reader_column));
        Some((
            refers.collect::<Option<_>>()?,
            lists.collect::<Option<_>>()?,
        ))
    }

    /// True if a text that no feed serves has just led to a new feed.
    fn is_new_feed(&self, database: &[u8], text: &[u8]) -> bool {
        if self.feeds.discovery_mode == FeedDiscoveryMode::Off {
            return false;
        }
        let state = self.feeds.state();
        let Some(tables) = state.databases.get(database).map(|known| known.tables()) else {
            return false;
        };
        drop(state);
        self.propose(text, &tables) == DiscoveryOutcome::Adopted
    }

    fn propose(&self, text: &[u8], tables: &DatabaseCatalogue) -> DiscoveryOutcome {
        match propose(text, tables, &ProposalEvidence::default()) {
            Proposed::Feeds(proposals) => {
                let mut outcomes = Vec::with_capacity(proposals.len());
                for proposal in &proposals {
                    outcomes.push(self.feeds.record_discovery(proposal, &tables.database));
                }
                let known = [DiscoveryOutcome::Adopted, DiscoveryOutcome::Suggested];
                let best = known.into_iter().find(|one| outcomes.contains(one));
                best.unwrap_or(DiscoveryOutcome::Ignored)
            }
            Proposed::UnknownTables(named) if feed_proposal::is_of_several(text) => {
                DiscoveryOutcome::UnseenTables(refusal::unseen_tables(&named, tables))
            }
            Proposed::Nothing | Proposed::Refused(_) | Proposed::UnknownTables(_) => {
                DiscoveryOutcome::Ignored
            }
        }
    }

    /// Finds out whether a text belongs to a feed that the settings do not name.
    async fn classify_unmatched(&mut self, key: Box<[u8]>, database: &[u8], text: &[u8]) {
        let outcome = match self.tables_of(database, text).await {
            Some(tables) => self.propose(text, &tables),
            None => DiscoveryOutcome::Ignored,
        };
        if outcome == DiscoveryOutcome::Adopted {
            self.refresh(database, true).await;
        }
        let is = match outcome {
            DiscoveryOutcome::Suggested => UnmatchedTextKind::Suggested,
            DiscoveryOutcome::UnseenTables(unseen) => {
                let database = String::from_utf8_lossy(database);
                let user = self.feeds.binlog.user();
                self.feeds
                    .state()
                    .log_unseen_tables(&database, &unseen, user);
                UnmatchedTextKind::Unseen(unseen)
            }
            DiscoveryOutcome::Ignored | DiscoveryOutcome::Adopted => UnmatchedTextKind::Unknown,
        };
        let at = clock::now();
        let judged = UnmatchedTemplate::Judged { at, is };
        self.feeds.state().unmatched.put(key, judged);
    }

    /// The tables that a text names, if it may belong to a feed and they are all in this database.
    async fn tables_of(&mut self, database: &[u8], text: &[u8]) -> Option<DatabaseCatalogue> {
        let name = std::str::from_utf8(database).ok()?;
        let named = feed_proposal::required_tables(text, self.feeds.case);
        let is_here = |table_database: &TableName| {
            table_database
                .database
                .as_deref()
                .is_none_or(|own| own == name)
        };
        if named.is_empty() || !named.iter().all(is_here) {
            return None;
        }
        let named: Vec<String> = named.into_iter().map(|named| named.table).collect();
        let replies = self
            .query_rows(&catalogue::catalogue_queries(name, &named))
            .await?;
        let replies = <[CatalogueRows; 3]>::try_from(replies).ok()?;
        Some(DatabaseCatalogue::read(name, &replies).with_case(self.feeds.case))
    }
}

impl FeedRegistryState {
    /// Logs once which tables the service account may not see.
    fn log_unseen_tables(&mut self, database: &str, tables: &[String], user: &str) {
        let (mut unseen, most) = (Vec::new(), MOST_UNSEEN);
        for table in tables {
            let named = (database.to_owned(), table.clone());
            if self.logged_unseen.len() < most && self.logged_unseen.insert(named) {
                unseen.push(table.clone());
            }
        }
        if !unseen.is_empty() {
            let RelayCause { text, cure, .. } = RelayCause::unseen_tables(database, &unseen, user);
            tracing::warn!(
                "statements of database {database} look like a feed's and are relayed, {text}: {cure}"
            );
        }
    }

    fn definitions(&self) -> Vec<Arc<FeedDefinition>> {
        let each = self.feeds.iter();
        each.map(|feed| Arc::clone(&feed.definition)).collect()
    }
}
