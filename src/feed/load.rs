//! Brings rows into the indexes: whatever pages lacked, many of them in one statement, each thing once.
//!
//! A load and the stream meet without locks. The index notes every change that is applied from the moment a load is
//! begun; the rows are seen at some moment behind that one; and the position of the log is asked for behind the rows,
//! in the same round trip. Replaying what was noted over the rows makes them exact once everything up to that position
//! is applied: a row that changed meanwhile is as its last change left it, all others are as they were seen.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};
use tokio::sync::mpsc;

use super::control::Control;
use super::error::FeedError;
use super::place::Place;
use super::routes::Routes;
use super::rows::{all, log_end, texts};
use super::{Feed, Phase};
use crate::index::{AuthorAsk, Index, Position, Ticket};

/// What is to be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// The columns of a place's tables.
    Schema(usize),
    /// All that a page needs.
    Page {
        place: usize,
        reader: u64,
        bound: Option<u64>,
        n: usize,
    },
}

/// Loads that are taken in at a time.
const TAKEN: usize = 256;
/// Authors in one statement.
const AUTHORS: usize = 128;
/// Ids of an author at first, and when deeper ones are needed.
const NEWEST_IDS: usize = 128;
const DEEPER_IDS: usize = 4096;
/// Rounds of ever deeper ids for one set of pages.
const ROUNDS: usize = 64;
const RETRY: Duration = Duration::from_millis(500);

/// Loads for good.
pub(super) async fn run(feed: Arc<Feed>, mut loads: mpsc::Receiver<Load>) {
    let mut control = Control::default();
    let mut said = None;
    loop {
        let mut taken = Vec::new();
        if loads.recv_many(&mut taken, TAKEN).await == 0 {
            return;
        }
        let generation = feed.state().generation;
        let places = feed.places();
        for place in places {
            let own: Vec<Load> = taken
                .iter()
                .filter(|load| load.place() == place.number)
                .copied()
                .collect();
            if own.is_empty() {
                continue;
            }
            let done = load(&feed, generation, &place, &own, &mut control).await;
            if let Err(error) = done {
                let text = format!("{}: {error}", place.database);
                if said.as_ref() != Some(&text) {
                    tracing::warn!("memory cannot be filled for {text}");
                    said = Some(text);
                }
                if own.contains(&Load::Schema(place.number)) {
                    let feed = Arc::clone(&feed);
                    tokio::spawn(async move {
                        tokio::time::sleep(RETRY).await;
                        let _ = feed.loads.try_send(Load::Schema(place.number));
                    });
                }
            }
        }
    }
}

impl Load {
    fn place(self) -> usize {
        match self {
            Load::Schema(place) | Load::Page { place, .. } => place,
        }
    }
}

async fn load(
    feed: &Feed,
    generation: u64,
    place: &Place,
    loads: &[Load],
    control: &mut Control,
) -> Result<(), FeedError> {
    let (server, phase) = {
        let state = feed.state();
        (state.server.clone(), state.phase)
    };
    let Some(server) = server.filter(|_| phase != Phase::Aside) else {
        return Ok(());
    };
    let mut connection = control.take(feed, generation, &server).await?;
    if loads.contains(&Load::Schema(place.number)) {
        schema(feed, generation, place, &mut connection).await?;
    }
    let mut pages: Vec<(u64, Option<u64>, usize)> = Vec::new();
    for load in loads {
        if let Load::Page {
            reader, bound, n, ..
        } = *load
            && !pages.contains(&(reader, bound, n))
        {
            pages.push((reader, bound, n));
        }
    }
    for _ in 0..ROUNDS {
        if pages.is_empty() {
            break;
        }
        let source = Source {
            feed,
            generation,
            place,
            status: server.status,
        };
        let lists = follows(&source, &pages, &mut connection).await?;
        let wanted = messages(&source, &pages, &lists, &mut connection).await?;
        if lists.is_empty() && !wanted {
            break;
        }
        // What was loaded may be used once everything before is known to be readable.
        if !feed.prove().await {
            break;
        }
        pages.retain(|(reader, bound, n)| place.index().page(*reader, *bound, *n).is_err());
    }
    control.put_back(generation, connection);
    Ok(())
}

/// Where rows are loaded from, and into what.
struct Source<'a> {
    feed: &'a Feed,
    generation: u64,
    place: &'a Place,
    status: &'static str,
}

impl Source<'_> {
    /// Begins loads, if everything that is committed from the index's position on is told by the stream. Nothing of that
    /// can change while they are begun; if it does behind that, the index is emptied and they are void.
    fn begin<T>(&self, begin: impl FnOnce(&mut Index) -> T) -> Option<T> {
        let state = self.feed.state();
        if state.generation != self.generation || state.phase != Phase::Proven {
            return None;
        }
        let base = state.bases.get(self.place.number).copied().flatten()?;
        let mut index = self.place.index_mut();
        (index.position() >= base).then(|| begin(&mut index))
    }
}

/// Learns where the columns stand. The stream listens to the tables already: a change of them begins everything anew.
async fn schema(
    feed: &Feed,
    generation: u64,
    place: &Place,
    conn: &mut Conn,
) -> Result<(), FeedError> {
    let failed = FeedError::while_doing("the tables' columns cannot be read");
    let rows: Vec<Row> = conn.query(place.columns_query()).await.map_err(&failed)?;
    let columns: Vec<(String, String)> = rows
        .iter()
        .filter_map(texts)
        .map(|[table, column]| (table, column))
        .collect();
    let rows: Vec<Row> = conn.query(place.cascades_query()).await.map_err(&failed)?;
    let keys: Vec<(String, String, String, String)> = rows
        .iter()
        .filter_map(texts)
        .map(|[name, table, update, delete]| (name, table, update, delete))
        .collect();
    if let Some(obstacle) = place.cascade(&keys) {
        return Err(obstacle.into());
    }
    let Some(own) = place.routes(&columns) else {
        // The tables are gone, or cannot be seen: nothing of them is to be kept.
        return Ok(());
    };
    let mut state = feed.state();
    if state.generation != generation {
        return Ok(());
    }
    let mut routes = Routes::clone(&state.routes);
    routes.routes.retain(|route| route.place != place.number);
    routes.routes.extend(own);
    state.routes = Arc::new(routes);
    drop(state);
    feed.routes_changed();
    Ok(())
}

/// Loads the follow lists that are not resident.
async fn follows(
    source: &Source<'_>,
    pages: &[(u64, Option<u64>, usize)],
    conn: &mut Conn,
) -> Result<HashMap<u64, Vec<u64>>, FeedError> {
    let Source { place, status, .. } = source;
    let tickets = source.begin(|index| {
        let readers = pages.iter().map(|(reader, ..)| *reader);
        let begun = readers.filter_map(|reader| Some((reader, index.begin_reader(reader)?)));
        begun.collect::<HashMap<u64, Ticket>>()
    });
    let tickets = tickets.unwrap_or_default();
    if tickets.is_empty() {
        return Ok(HashMap::new());
    }
    let readers: Vec<u64> = tickets.keys().copied().collect();
    let asked = ask(conn, &place.follows_query(&readers), status).await;
    let lists = asked.and_then(|(rows, end)| {
        let mut lists: HashMap<u64, Vec<u64>> =
            readers.iter().map(|reader| (*reader, Vec::new())).collect();
        for [reader, author] in all(&rows).ok_or_else(no_number)? {
            lists.entry(reader).or_default().push(author);
        }
        Ok((lists, end))
    });
    let mut index = place.index_mut();
    match lists {
        Ok((lists, end)) => {
            for (reader, ticket) in tickets {
                let authors = lists.get(&reader).cloned().unwrap_or_default();
                index.loaded_reader(ticket, authors, end);
            }
            Ok(lists)
        }
        Err(error) => {
            for ticket in tickets.into_values() {
                index.give_up(ticket);
            }
            Err(error)
        }
    }
}

/// Loads ids of the authors that the pages need and that are not resident. True when there were any.
async fn messages(
    source: &Source<'_>,
    pages: &[(u64, Option<u64>, usize)],
    lists: &HashMap<u64, Vec<u64>>,
    conn: &mut Conn,
) -> Result<bool, FeedError> {
    let Source { place, status, .. } = source;
    let asks = source.begin(|index| {
        let mut asks: Vec<AuthorAsk> = Vec::new();
        for (reader, bound, n) in pages {
            let authors = match (lists.get(reader), index.page(*reader, *bound, *n)) {
                (Some(authors), _) => authors.clone(),
                (None, Err(missing)) => missing.authors,
                (None, Ok(_)) => continue,
            };
            let begun = authors
                .into_iter()
                .filter_map(|author| index.begin_author(author, *bound, *n));
            asks.extend(begun);
        }
        asks
    });
    let asks = asks.unwrap_or_default();
    let any = !asks.is_empty();
    let mut asks = asks.into_iter();
    loop {
        let chunk: Vec<AuthorAsk> = asks.by_ref().take(AUTHORS).collect();
        if chunk.is_empty() {
            return Ok(any);
        }
        if let Err(error) = some_messages(status, place, chunk, conn).await {
            let mut index = place.index_mut();
            asks.for_each(|ask| index.give_up(ask.ticket));
            return Err(error);
        }
    }
}

async fn some_messages(
    status: &str,
    place: &Place,
    asks: Vec<AuthorAsk>,
    conn: &mut Conn,
) -> Result<(), FeedError> {
    let deeper = asks.iter().any(|ask| ask.below.is_some());
    let limit = if deeper { DEEPER_IDS } else { NEWEST_IDS };
    let wanted: Vec<(u64, Option<u64>)> = asks.iter().map(|ask| (ask.author, ask.below)).collect();
    let asked = ask(conn, &place.messages_query(&wanted, limit), status).await;
    let lists = asked.and_then(|(rows, end)| {
        let mut lists: Vec<Vec<u64>> = vec![Vec::new(); asks.len()];
        for [number, id] in all(&rows).ok_or_else(no_number)? {
            let list = usize::try_from(number)
                .ok()
                .and_then(|at| lists.get_mut(at));
            list.ok_or_else(no_number)?.push(id);
        }
        Ok((lists, end))
    });
    let mut index = place.index_mut();
    match lists {
        Ok((lists, end)) => {
            for (ask, mut ids) in asks.into_iter().zip(lists) {
                ids.sort_unstable_by(|one, other| other.cmp(one));
                let complete = ids.len() < limit;
                index.loaded_author(ask.ticket, ids, complete, end);
            }
            Ok(())
        }
        Err(error) => {
            for ask in asks {
                index.give_up(ask.ticket);
            }
            Err(error)
        }
    }
}

/// Rows, and behind them the end of the log.
async fn ask(
    conn: &mut Conn,
    query: &str,
    status: &str,
) -> Result<(Vec<Row>, Position), FeedError> {
    let failed = FeedError::while_doing("rows cannot be loaded");
    let mut result = conn
        .query_iter(format!("{query};{status}"))
        .await
        .map_err(&failed)?;
    let rows: Vec<Row> = result.collect().await.map_err(&failed)?;
    let end: Vec<Row> = result.collect().await.map_err(&failed)?;
    result.drop_result().await.map_err(&failed)?;
    let (_, end) = log_end(end.first())?;
    Ok((rows, end))
}

fn no_number() -> FeedError {
    super::events::Lost::Malformed("a row that should hold numbers from 0 on".into()).into()
}
