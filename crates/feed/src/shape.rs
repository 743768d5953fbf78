//! What makes a SELECT one of a feed: whose messages, in which order, from where on, and how it may be narrowed.

use std::ops::Range;

use crate::authors::{Authors, Follow, Search};
use crate::bounds::{self, Bound, Ordered};
use crate::described::{self, Described};
use crate::equal::{Equal, certain};
use crate::joins;
use crate::keep::{self, Keep};
use crate::plain::{Look, Plain};
use crate::query::{Column, Condition, Item, Key, List, Operand, Query, Says};
use crate::refused::Refused;
use crate::schema::{Class, Schema};
use crate::scope::{Of, Scope, Seen};
use crate::words::Words;

/// A feed as the settings have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// The database of its tables, where a statement names one.
    pub database: Option<String>,
    /// The table of messages.
    pub message: String,
    /// Its primary key.
    pub id: String,
    /// Who wrote a message.
    pub author: String,
    /// What a page is ordered by, newest first; `None`: the id alone.
    pub key: Option<String>,
    /// Who follows whom.
    pub follow: Option<Follow>,
}

/// A statement of a feed, by its template: places are numbers of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What the statement calls the table of messages: one word.
    pub qualifier: usize,
    /// Whose messages.
    pub authors: Authors,
    /// The list of authors that the ids may replace: it is a condition of its own, and says alone whose messages are wanted.
    pub list: Option<Range<usize>>,
    /// From where on.
    pub bounds: Vec<Bound>,
    /// Where LIMIT's number stands.
    pub limit: usize,
    /// Where OFFSET's stands.
    pub offset: Option<usize>,
    /// Where the word WHERE stands, if there is one.
    pub filter: Option<usize>,
    /// Where the clause behind it begins.
    pub filter_end: usize,
    /// The key alone orders, so messages of one key are in an order that only the server knows.
    pub ties: bool,
    /// Values that have to be looked at.
    pub looks: Vec<Look>,
    /// A TIMESTAMP is compared.
    pub zoned: bool,
    /// It is read through a SELECT in FROM.
    pub derived: bool,
    /// What plans change of how its columns are described.
    pub described: Described,
    /// A condition has a SELECT that names nothing but constants: EXPLAIN on MariaDB does not tell what that says.
    pub constant_select: bool,
    /// What rows depend on, if it is little enough for them to be kept.
    pub keep: Option<Keep>,
}

/// Finds the shape of a SELECT that reads a feed.
///
/// # Errors
/// Why it is none.
pub fn shape(
    query: &Query,
    words: &Words,
    feed: &Feed,
    schema: &dyn Schema,
) -> Result<Shape, Refused> {
    let scope = Scope::default().within(&query.sources, schema)?;
    let message = messages(feed, &scope)?;
    let column = |name: &str| {
        let place = message.table.place(name).ok_or(Refused::Names)?;
        Ok::<_, Refused>(Of {
            table: message.number,
            column: place,
        })
    };
    let (id, author) = (column(&feed.id)?, column(&feed.author)?);
    let key = feed.key.as_deref().map(column).transpose()?;
    if scope.class(author) != Class::Integer || scope.class(id) != Class::Integer {
        return Err(Refused::Types);
    }
    let ties = ordered(query, &scope, key, id)?;

    let mut plain = Plain {
        words,
        schema,
        looks: Vec::new(),
        zoned: false,
    };
    for item in query.items.iter().chain(&query.inner) {
        plain.item(item, &scope)?;
    }
    let filter = query.filter.as_ref().map(|(_, filter)| filter);
    let conditions = query.sources.iter().filter_map(|source| source.on.as_ref());
    for condition in conditions.chain(filter) {
        plain.condition(condition, &scope)?;
    }
    let holds = certain(&query.sources, filter);
    let mut equal = Equal::default();
    equal.learn(&holds, &scope);
    one_row_a_message(query, &scope, &equal, id)?;

    let search = Search {
        schema,
        author,
        follow: feed.follow.as_ref(),
        database: feed.database.as_deref(),
    };
    let authors = search.of_rows(&holds, &scope, &equal);
    let authors = authors.ok_or(Refused::Authors)?;
    let order = match key {
        Some(key) => Ordered { key, id: Some(id) },
        None => Ordered { key: id, id: None },
    };
    let look = keep::Look {
        scope: &scope,
        search: &search,
        authors: &authors,
        order,
    };
    let keep = look.keep(query, &holds).filter(|_| !ties);
    let statement = described::Statement {
        query,
        scope: &scope,
        schema,
        equal: &equal,
        holds: &holds,
    };
    Ok(Shape {
        described: statement.described(),
        constant_select: statement.has_constant_select(),
        keep,
        qualifier: match &message.source.alias {
            Some(alias) => alias.word,
            None => message.source.table.word,
        },
        list: replaceable(&authors, filter, author, &scope),
        authors,
        bounds: holds
            .iter()
            .flat_map(|condition| bounds::of(condition, order, &scope))
            .collect(),
        limit: query.limit,
        offset: query.offset,
        filter: query.filter.as_ref().map(|(at, _)| *at),
        filter_end: query.filter_end,
        ties,
        looks: plain.looks,
        zoned: plain.zoned,
        derived: !query.inner.is_empty(),
    })
}

/// The table of messages: it is in FROM once, and on no nullable side.
fn messages<'s, 'a>(feed: &Feed, scope: &'s Scope<'a>) -> Result<&'s Seen<'a>, Refused> {
    let is = |seen: &&Seen<'_>| {
        let database = seen.source.database.as_ref().map(|name| &name.text);
        seen.source.table.text == feed.message
            && (database.is_none() || database == feed.database.as_ref())
    };
    let mut all = scope.own().iter().filter(is);
    match (all.next(), all.next()) {
        (Some(message), None) if !message.source.outer => Ok(message),
        (None, _) => Err(Refused::Names),
        _ => Err(Refused::Joins),
    }
}

/// Checks that the order is the feed's, newest first. True: messages of one key are in no order among themselves.
fn ordered(query: &Query, scope: &Scope<'_>, key: Option<Of>, id: Of) -> Result<bool, Refused> {
    let mut order = Vec::with_capacity(query.order.len());
    for one in &query.order {
        let of = sorted_by(one, query, scope)?;
        // What was sorted by before sorts nothing any more.
        if order.contains(&of) {
            continue;
        }
        if !one.descending {
            return Err(Refused::Order);
        }
        order.push(of);
    }
    match (order.as_slice(), key) {
        ([only], None) if *only == id => Ok(false),
        ([first, second], Some(key)) if *first == key && *second == id => Ok(false),
        ([only], Some(key)) if *only == key => Ok(true),
        _ => Err(Refused::Order),
    }
}

/// What ORDER BY sorts by: a name without a table may be one that a column of the answer is given.
fn sorted_by(key: &Key, query: &Query, scope: &Scope<'_>) -> Result<Of, Refused> {
    let name = &key.column.name.text;
    if !key.column.qualifier.is_empty() {
        return scope.resolve(&key.column);
    }
    let called = query.items.iter().filter_map(|item| match item {
        Item::Operand(operand, Some(alias)) if alias.text.eq_ignore_ascii_case(name) => {
            Some(operand)
        }
        _ => None,
    });
    // A column of a table that has the name has to be the one that is given it.
    let is_column = scope
        .own()
        .iter()
        .any(|seen| seen.table.place(name).is_some());
    let mut found = is_column.then(|| scope.resolve(&key.column)).transpose()?;
    for operand in called {
        let Operand::Column(column) = operand else {
            return Err(Refused::Order);
        };
        let of = scope.resolve(column)?;
        if found.is_some_and(|found| found != of) {
            return Err(Refused::Order);
        }
        found = Some(of);
    }
    found.ok_or(Refused::Names)
}

/// A message has one row at most: by the keys of what is joined, or by DISTINCT or GROUP BY over columns of such tables.
fn one_row_a_message(
    query: &Query,
    scope: &Scope<'_>,
    equal: &Equal,
    id: Of,
) -> Result<(), Refused> {
    let single = joins::single(scope, equal, id.table);
    let only = |column: &Column| {
        scope
            .resolve(column)
            .is_ok_and(|of| single.contains(&of.table))
    };
    let of_single = |item: &Item| match item {
        Item::Operand(operand, _) => operand.columns().into_iter().all(only),
        Item::All | Item::AllOf(_) => scope.shown(item).all(|seen| single.contains(&seen.number)),
    };
    if !query.group.is_empty() {
        let by_id = query
            .group
            .iter()
            .all(|column| scope.resolve(column) == Ok(id));
        if !by_id {
            return Err(Refused::Grouped);
        }
        return match query.items.iter().all(of_single) {
            true => Ok(()),
            false => Err(Refused::Grouped),
        };
    }
    if query.distinct {
        let is_id = |item: &Item| match item {
            Item::Operand(Operand::Column(column), _) => scope.resolve(column) == Ok(id),
            _ => {
                let hidden = scope.facts(id).is_none_or(|facts| facts.is_hidden);
                !hidden && scope.shown(item).any(|seen| seen.number == id.table)
            }
        };
        let distinct = query.items.iter().any(is_id) && query.items.iter().all(of_single);
        return match distinct {
            true => Ok(()),
            false => Err(Refused::Joins),
        };
    }
    match single.len() == scope.own().len() {
        true => Ok(()),
        false => Err(Refused::Joins),
    }
}

/// The list that says alone whose messages are wanted, where it is one of the conditions of WHERE.
fn replaceable(
    authors: &Authors,
    filter: Option<&Condition>,
    author: Of,
    scope: &Scope<'_>,
) -> Option<Range<usize>> {
    if !authors.readers.is_empty() || !authors.single.is_empty() {
        return None;
    }
    let [own] = authors.lists.as_slice() else {
        return None;
    };
    let filter = filter?;
    let all = match &filter.is {
        Says::And(all) => all.as_slice(),
        _ => std::slice::from_ref(filter),
    };
    let found = all
        .iter()
        .find(|condition| is_list(condition, own, author, scope));
    found.map(|condition| condition.words.clone())
}

fn is_list(condition: &Condition, own: &List, author: Of, scope: &Scope<'_>) -> bool {
    let Says::In(Operand::Column(column), list, true) = &condition.is else {
        return false;
    };
    list == own && scope.resolve(column) == Ok(author)
}
