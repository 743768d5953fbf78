//! What is found out about tables and templates beside the sessions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use headwater_rows::MOST_LINKS;

use super::database::Served;
use super::refusal::{self, Judgement, Refusal};
use super::stranger::{Met, Stranger};
use super::{Auto, Cause, Feeds, Found, Inbox, Is, State, databases_query};
use crate::catalogue::{Catalogue, ServiceError};
use crate::clock;
use crate::feed::check;
use crate::feed::facts::{self, Tables, Told};
use crate::feed::keep::Keep;
use crate::feed::lists::MOST_LISTS;
use crate::feed::parse::parse_as;
use crate::feed::propose::{self, Found as Proposed, propose};
use crate::feed::template::{Named, Tallies};
use crate::feed::words::Words;
use crate::feed::{FeedDefinition, FeedId, Refused, Template, shape};
use crate::index::PlaceId;
use crate::log::referred::Referred;

/// Of more tables the log is not told that they cannot be seen.
const MOST_UNSEEN: usize = 100;

/// What has to be looked at.
#[derive(Debug)]
pub(super) enum Work {
    /// The tables of a database.
    Database(Vec<u8>),
    /// A text, as the first of its template.
    Template {
        key: Box<[u8]>,
        database: Vec<u8>,
        text: Vec<u8>,
    },
    /// A text that names no feed's messages.
    Stranger {
        key: Box<[u8]>,
        database: Vec<u8>,
        text: Vec<u8>,
    },
}

/// Looks at what comes, and at all that is known every so often, for good.
pub async fn run(feeds: Arc<Feeds>, catalogue: &Catalogue, inbox: Inbox, every: Duration) {
    let Inbox(mut inbox) = inbox;
    let mut worker = Worker { feeds, catalogue };
    worker.discover().await;
    worker.feeds.looked.send_replace(true);
    let mut asides = worker.feeds.binlog.asides();
    let mut due = clock::now() + every;
    loop {
        let next = tokio::select! {
            biased;
            next = tokio::time::timeout_at(due.into(), inbox.recv()) => next,
            Ok(()) = asides.changed() => {
                worker.feeds.announce();
                continue;
            }
        };
        match next {
            Ok(None) => return,
            Ok(Some(Work::Database(database))) => worker.refresh(&database, false).await,
            Ok(Some(Work::Template {
                key,
                database,
                text,
            })) => worker.template(key, &database, &text).await,
            Ok(Some(Work::Stranger {
                key,
                database,
                text,
            })) => worker.stranger(key, &database, &text).await,
            Err(_) => {
                due = clock::now() + every;
                if worker.feeds.are_any() {
                    worker.look_for_functions(true).await;
                }
                for database in worker.feeds.databases() {
                    worker.refresh(&database, true).await;
                }
            }
        }
    }
}

struct Worker<'a> {
    feeds: Arc<Feeds>,
    catalogue: &'a Catalogue,
}

impl Worker<'_> {
    /// Looks for every database that holds a feed's messages.
    async fn discover(&mut self) {
        let mut databases = BTreeSet::new();
        for definition in self.definitions() {
            match &definition.database {
                Some(database) => drop(databases.insert(database.clone().into_bytes())),
                None => {
                    let query = databases_query(&definition, self.feeds.most_databases);
                    let told = self.ask(&[query]).await;
                    let rows = told.into_iter().flatten().flatten();
                    let names = rows.filter_map(|row| row.into_iter().next().flatten());
                    databases.extend(names);
                }
            }
        }
        for database in databases {
            self.refresh(&database, true).await;
        }
    }

    fn definitions(&self) -> Vec<Arc<FeedDefinition>> {
        self.feeds.state().definitions()
    }

    /// A SELECT may do more than read where there are stored functions: transactions are judged by that.
    async fn look_for_functions(&mut self, anew: bool) {
        if !anew && self.catalogue.no_functions().is_some() {
            return;
        }
        let epoch = self.catalogue.epoch();
        if let Some(service) = &self.catalogue.service
            && let Ok(none) = service.has_no_functions().await
        {
            self.catalogue.functions_seen(none, epoch);
        }
    }

    async fn ask(&mut self, queries: &[String]) -> Option<Vec<Told>> {
        let service = self.catalogue.service.as_ref()?;
        match service.told(queries).await {
            Ok(told) => {
                self.feeds.state().failing = None;
                Some(told)
            }
            // It says why it failed before.
            Err(ServiceError::Lately) => None,
            Err(error) => {
                let (said, error) = (error.was_said(), error.to_string());
                let before = self.feeds.state().failing.replace(error.clone());
                if !said && before.is_none() {
                    tracing::warn!("the tables of feeds cannot be looked at: {error}");
                }
                None
            }
        }
    }

    /// Looks at the tables of a database again, if that is due or they are to be seen `anew`.
    async fn refresh(&mut self, database: &[u8], anew: bool) {
        let Ok(name) = std::str::from_utf8(database) else {
            return;
        };
        let epoch = self.catalogue.epoch();
        self.look_for_functions(false).await;
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
            known.want(definitions.iter().flat_map(|own| check::tables(own)));
            known.wanted()
        };
        let at = clock::now();
        let told = self.ask(&facts::queries(name, &wanted)).await;
        let Some(told) = told.and_then(|told| <[Told; 3]>::try_from(told).ok()) else {
            return;
        };
        let tables = Tables::read(name, &told).with_case(self.feeds.case);
        let feeds = &self.feeds;
        let mut state = feeds.state();
        let definitions = state.definitions();
        if let Some(known) = state.databases.get_mut(database) {
            known.saw(tables, &definitions, &feeds.binlog, (at, epoch));
        }
        drop(state);
        feeds.announce();
    }

    /// Finds out about a template by its first text.
    async fn template(&mut self, key: Box<[u8]>, database: &[u8], text: &[u8]) {
        let mut found = self.find(&key, database, text).await;
        if let Some((_, Err(_))) = found
            && self.is_another(database, text)
        {
            self.refresh(database, true).await;
            found = self.find(&key, database, text).await;
        }
        let mut state = self.feeds.state();
        let version = state.databases.get(database).map(|known| known.version());
        match (found, version) {
            (Some((version, is)), Some(current)) if version == current => {
                if let Some(entry) = state.templates.peek_mut(&key) {
                    entry.is = Is::Known { version, is };
                }
            }
            // It comes again.
            _ => drop(state.templates.pop(&key)),
        }
    }

    async fn find(
        &mut self,
        key: &[u8],
        database: &[u8],
        text: &[u8],
    ) -> Option<(u64, Result<Arc<Template>, Refusal>)> {
        let read = Words::read(text).ok_or(Refused::NotUnderstood);
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
            known.want(named.iter().map(|named| named.table.clone()))
        };
        if is_new {
            self.refresh(database, true).await;
        }
        let mut state = self.feeds.state();
        let known = state.databases.get(database)?;
        let (version, tables) = (known.version(), known.tables());
        let own = &state.templates.peek(key)?.counted;
        let mut found = Judgement::default();
        for (at, feed) in state.feeds.iter().enumerate() {
            let names = refusal::names(&named, &feed.definition, &tables.database);
            let shape = || {
                let names = feed.definition.feed(&tables.database);
                let shape = shape(&query, &words, &names, &*tables);
                shape.map(|shape| (shape, names))
            };
            let types = match known.served(at) {
                Some(Served::Yes {
                    types,
                    place: Some(_),
                }) => *types,
                Some(Served::Elsewhere) | None => {
                    found.barred(at, false, names);
                    continue;
                }
                Some(served) => {
                    let fits = shape().is_ok() || names && served.lacks_tables();
                    found.barred(at, fits, names);
                    continue;
                }
            };
            match shape() {
                Ok((mut shape, names)) => {
                    let keeps = self.feeds.rows.keeps(&tables.database, &names.message);
                    let keep = shape.keep.as_ref().filter(|_| keeps);
                    let others = keep.and_then(|keep| self.others(keep, &tables));
                    if others.is_none() {
                        shape.keep = None;
                    }
                    let (referred, lists) = others.unwrap_or_default();
                    let number = FeedId(self.feeds.first + at);
                    let template =
                        Template::new(number, tables.database.clone(), names, types, shape, named);
                    let template = template.referring(referred, lists);
                    let template = template.counted(Tallies {
                        own: Arc::clone(own),
                        feed: Some(Arc::clone(&feed.counted)),
                    });
                    return Some((version, Ok(Arc::new(template))));
                }
                Err(why) => found.served(at, why, names),
            }
        }
        let unseen = refusal::unseen(&named, &tables);
        let refusal = found.refusal(&unseen);
        if let Refusal::Unseen(Some(_), unseen) = &refusal {
            state.tell_unseen(&tables.database, unseen, self.feeds.binlog.user());
        }
        Some((version, Err(refusal)))
    }

    /// The places of rows that a template's are made of, and of those that its lists of authors are made of. `None`: not all of them can
    /// be followed.
    fn others(&self, keep: &Keep, tables: &Tables) -> Option<(Vec<PlaceId>, Vec<PlaceId>)> {
        if keep.refers.len() > MOST_LINKS || keep.lists.len() > MOST_LISTS {
            return None;
        }
        let place = |table: &str, id: &str| {
            let facts = tables.facts(table)?;
            let binlog = &self.feeds.binlog;
            let follows = binlog.rows().is_some() && facts.engine.eq_ignore_ascii_case("InnoDB");
            let table = Referred {
                place: PlaceId(0),
                database: tables.database.clone(),
                table: table.to_owned(),
                id: id.to_owned(),
            };
            follows.then(|| binlog.refer(table))?
        };
        let refers = keep.refers.iter().map(|it| place(&it.table, &it.id));
        let lists = keep.lists.iter().map(|it| place(&it.table, &it.whose));
        Some((
            refers.collect::<Option<_>>()?,
            lists.collect::<Option<_>>()?,
        ))
    }

    /// True where a text that no feed serves is one of a feed that was not known, and is one now.
    fn is_another(&self, database: &[u8], text: &[u8]) -> bool {
        if self.feeds.auto == Auto::Off {
            return false;
        }
        let state = self.feeds.state();
        let Some(tables) = state.databases.get(database).map(|known| known.tables()) else {
            return false;
        };
        drop(state);
        self.propose(text, &tables) == Found::Taken
    }

    fn propose(&self, text: &[u8], tables: &Tables) -> Found {
        match propose(text, tables) {
            Proposed::Feed(proposal) => self.feeds.found(&proposal, &tables.database),
            Proposed::Unseen(named) if propose::is_of_several(text) => {
                Found::Unseen(refusal::unseen(&named, tables))
            }
            Proposed::Nothing | Proposed::Refused(_) | Proposed::Unseen(_) => Found::Nothing,
        }
    }

    /// Finds out whether a text is one of a feed that nobody named.
    async fn stranger(&mut self, key: Box<[u8]>, database: &[u8], text: &[u8]) {
        let found = match self.tables_of(database, text).await {
            Some(tables) => self.propose(text, &tables),
            None => Found::Nothing,
        };
        if found == Found::Taken {
            self.refresh(database, true).await;
        }
        let is = match found {
            Found::Suggested => Met::Suggested,
            Found::Unseen(unseen) => {
                let database = String::from_utf8_lossy(database);
                let user = self.feeds.binlog.user();
                self.feeds.state().tell_unseen(&database, &unseen, user);
                Met::Unseen(unseen)
            }
            Found::Nothing | Found::Taken => Met::Unknown,
        };
        let at = clock::now();
        let judged = Stranger::Judged { at, is };
        self.feeds.state().strangers.put(key, judged);
    }

    /// The tables that a text names, where it may be one of a feed and they are of this database.
    async fn tables_of(&mut self, database: &[u8], text: &[u8]) -> Option<Tables> {
        let name = std::str::from_utf8(database).ok()?;
        let named = propose::tables(text, self.feeds.case);
        let own = |named: &Named| named.database.as_deref().is_none_or(|own| own == name);
        if named.is_empty() || !named.iter().all(own) {
            return None;
        }
        let named: Vec<String> = named.into_iter().map(|named| named.table).collect();
        let told = self.ask(&facts::queries(name, &named)).await?;
        let told = <[Told; 3]>::try_from(told).ok()?;
        Some(Tables::read(name, &told).with_case(self.feeds.case))
    }
}

impl State {
    /// Says once which tables the service account may not see.
    fn tell_unseen(&mut self, database: &str, tables: &[String], user: &str) {
        let (mut unseen, most) = (Vec::new(), MOST_UNSEEN);
        for table in tables {
            let named = (database.to_owned(), table.clone());
            if self.unseen.len() < most && self.unseen.insert(named) {
                unseen.push(table.clone());
            }
        }
        if !unseen.is_empty() {
            let Cause { text, cure, .. } = Cause::unseen(database, &unseen, user);
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
