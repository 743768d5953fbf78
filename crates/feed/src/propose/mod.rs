//! Which feed a statement would be one of: the section of the settings that would have it narrowed, found by trial.
//!
//! Names that the statement holds are put into a definition, and [`shape`] says whether it is the statement's. So what is proposed is
//! recognised by the same code that serves it, and there is no second recogniser. Where the statement came from does not matter.

mod names;
mod proposal;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use headwater_sql::NameCase;
use headwater_sql::lexer::Lexer;
use headwater_sql::words::holds_word;

use crate::check::{Obstacle, check};
use crate::definition::{FeedDefinition, Follows, Messages};
use crate::facts::Tables;
use crate::parse::parse_as;
use crate::query::{Column, Query, Source};
use crate::refused::Refused;
use crate::schema::Class;
use crate::scope::Scope;
use crate::shape::{Shape, shape};
use crate::template::Named;
use crate::words::Words;
use names::Names;
pub use proposal::{By, Proposal};

/// More definitions are not tried for one statement.
const MOST_TRIALS: usize = 500;
/// A column of so few bits is a flag: nobody is called by it.
const FLAG_BITS: u32 = 8;

/// What a statement is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing that resembles a feed.
    Nothing,
    /// One of this feed.
    Feed(Box<Proposal>),
    /// It resembles one, and is relayed for this.
    Refused(Refused),
    /// It resembles one, and these tables are not known.
    Unseen(Vec<Named>),
}

/// The tables that have to be known before a statement can be judged, where it may be one of a feed.
#[must_use]
pub fn tables(text: &[u8], case: NameCase) -> Vec<Named> {
    let words = Words::read(text).filter(|_| resembles(text));
    let query = words.and_then(|words| parse_as(text, &words, case).ok());
    query.map(|query| query.tables()).unwrap_or_default()
}

/// What a statement is that was sent with these tables' database as its own. Tables that it names and that are not among them are taken
/// for unknown.
#[must_use]
pub fn propose(text: &[u8], known: &Tables) -> Found {
    if !resembles(text) {
        return Found::Nothing;
    }
    let read = Words::read(text).ok_or(Refused::NotUnderstood);
    match read.and_then(|words| Ok((parse_as(text, &words, known.case)?, words))) {
        Ok((query, words)) => Trials::new(&query, &words, known).found(),
        Err(why) if is_of_several(text) => Found::Refused(why),
        Err(_) => Found::Nothing,
    }
}

/// A glance at a text: a SELECT, in descending order, so many.
#[must_use]
pub fn resembles(text: &[u8]) -> bool {
    let mut words = Lexer::new(text);
    words.next().is_some_and(|first| first.is_word("SELECT"))
        && ["ORDER", "DESC", "LIMIT"]
            .iter()
            .all(|word| holds_word(text, word))
}

/// A glance at a text that is not understood: of several authors, or of several tables.
#[must_use]
pub fn is_of_several(text: &[u8]) -> bool {
    ["IN", "JOIN", "EXISTS"]
        .iter()
        .any(|word| holds_word(text, word))
}

/// A definition that was tried.
struct Trial {
    proposal: Proposal,
    /// The statement is of its shape.
    fits: bool,
    /// Bits of the column of readers: what says no more than yes or no has few.
    bits: u32,
}

impl Trial {
    /// The less there is in its way, the better it is.
    fn rank(&self) -> impl Ord + use<> {
        let alone = self.proposal.definition.follow.is_none();
        (
            !self.fits,
            !self.fits && alone,
            self.proposal.obstacles.len(),
            Reverse(self.bits),
        )
    }
}

struct Trials<'a> {
    query: &'a Query,
    words: &'a Words,
    known: &'a Tables,
    named: Names,
}

impl<'a> Trials<'a> {
    fn new(query: &'a Query, words: &'a Words, known: &'a Tables) -> Self {
        Trials {
            query,
            words,
            known,
            named: Names::of(query),
        }
    }

    fn found(&self) -> Found {
        let unseen: Vec<Named> = self
            .query
            .tables()
            .into_iter()
            .filter(|named| !self.knows(named))
            .collect();
        if !unseen.is_empty() {
            return Found::Unseen(unseen);
        }
        let Some(message) = self.messages() else {
            return Found::Nothing;
        };
        let authors = self.authors(&message);
        let follows = self.follows(&message);
        let mut tried: Vec<Trial> = Vec::new();
        let mut refused: Option<Refused> = None;
        let pairs = authors.iter().flat_map(|author| {
            let alone = std::iter::once((author, None));
            alone.chain(follows.iter().map(move |follow| (author, Some(follow))))
        });
        for (author, follow) in pairs.take(MOST_TRIALS) {
            match self.trial(&message, author, follow.cloned()) {
                Ok(Some(trial)) => tried.push(trial),
                Ok(None) => {}
                // That nobody is named says least: another definition may have the names.
                Err(why) if refused.is_none_or(|before| before == Refused::Authors) => {
                    refused = Some(why)
                }
                Err(_) => {}
            }
        }
        let best = tried.into_iter().min_by_key(Trial::rank);
        match (best, refused) {
            (Some(trial), _) => Found::Feed(Box::new(trial.proposal)),
            (None, Some(Refused::Authors)) if !self.names_authors(&message) => Found::Nothing,
            (None, Some(why)) => Found::Refused(why),
            (None, None) => Found::Nothing,
        }
    }

    fn knows(&self, named: &Named) -> bool {
        let own = named
            .database
            .as_ref()
            .is_none_or(|database| *database == self.known.database);
        own && self.known.facts(&named.table).is_some()
    }

    /// The messages are what is ordered, newest first: their table, their id, and what they are ordered by.
    fn messages(&self) -> Option<Messages> {
        let first = self.query.order.first().filter(|key| key.descending)?;
        let scope = Scope::default()
            .within(&self.query.sources, self.known)
            .ok();
        let table = match scope.and_then(|scope| Some((scope.resolve(&first.column).ok()?, scope)))
        {
            Some((of, scope)) => scope.seen(of.table)?.source.table.text.clone(),
            // A view, or a name that is not certain: the check says more.
            None => self.query.sources.first()?.table.text.clone(),
        };
        let facts = self.known.facts(&table)?;
        let columns = &facts.table.columns;
        let own = |column: &Column| {
            let place = facts.table.place(&column.name.text)?;
            columns.get(place).map(|column| column.name.clone())
        };
        let mut order: Vec<String> = self
            .query
            .order
            .iter()
            .filter_map(|key| own(&key.column))
            .collect();
        let primary =
            facts
                .indexes
                .get("PRIMARY")
                .and_then(|index| match index.columns.as_slice() {
                    [Some(only)] => columns.get(*only),
                    _ => None,
                });
        // Without one the check says that it is missing.
        let id =
            primary.map_or_else(|| order.last().cloned(), |column| Some(column.name.clone()))?;
        order.truncate(1);
        if order.first().is_some_and(|key| *key != id) {
            order.push(id.clone());
        }
        Some(Messages {
            table,
            id,
            author: String::new(),
            order,
        })
    }

    /// Columns of the messages that may be the author's.
    fn authors(&self, message: &Messages) -> Vec<String> {
        let listed = self.listed(message);
        let compared = self.columns(&message.table, &self.named.compared, false);
        let all = listed.into_iter().chain(compared);
        let mut authors: Vec<String> = Vec::new();
        for name in all {
            if !message.order.contains(&name) && name != message.id && !authors.contains(&name) {
                authors.push(name);
            }
        }
        authors
    }

    /// Those that stand before IN: of integers, and each is called an id or begins an index. Else it is a state or a kind.
    fn listed(&self, message: &Messages) -> Vec<String> {
        let Some(facts) = self.known.facts(&message.table) else {
            return Vec::new();
        };
        let begins_index = |name: &str| {
            let place = facts.table.place(name);
            let mut indexes = facts.indexes.values();
            indexes.any(|index| index.columns.first().is_some_and(|first| *first == place))
        };
        let is_id = |name: &String| name.to_ascii_lowercase().ends_with("id") || begins_index(name);
        let named = self.columns(&message.table, &self.named.listed, true);
        named.into_iter().filter(is_id).collect()
    }

    /// Tables that may say who follows whom, each with each pair of columns.
    fn follows(&self, message: &Messages) -> Vec<Follows> {
        let mut follows = Vec::new();
        for named in self.query.tables() {
            if named.table == message.table {
                continue;
            }
            let unique = |reader: &String| {
                let facts = self.known.facts(&named.table);
                facts.is_some_and(|facts| {
                    let place = facts.table.place(reader);
                    let mut keys = facts.table.unique.iter();
                    keys.any(|key| key.len() == 1 && key.first().copied() == place)
                })
            };
            let readers = self.columns(&named.table, &self.named.equal, false);
            // Who is there once follows one author at most.
            for reader in readers.into_iter().filter(|reader| !unique(reader)) {
                for author in self.columns(&named.table, &self.named.compared, false) {
                    if author != reader {
                        follows.push(Follows {
                            table: named.table.clone(),
                            reader: reader.clone(),
                            author,
                        });
                    }
                }
            }
        }
        follows
    }

    /// Columns of a table with these names by which somebody may be called: in their order there. `integers`: no others.
    fn columns(&self, table: &str, names: &BTreeSet<String>, integers: bool) -> Vec<String> {
        let Some(facts) = self.known.facts(table) else {
            return Vec::new();
        };
        let is = |at: usize, class: Class| match facts.integer(at) {
            Some(integer) => integer.bits > FLAG_BITS,
            // UUIDs: the check says that they are none.
            None => {
                !integers && (class == Class::Text || facts.sql_type(at).starts_with("binary(16"))
            }
        };
        let all = facts.table.columns.iter().enumerate();
        let own = all.filter(|(at, column)| {
            names.contains(&column.name.to_ascii_lowercase()) && is(*at, column.class)
        });
        own.map(|(_, column)| column.name.clone()).collect()
    }

    /// Whether the statement is one of this feed. `None`: it is, but does not need all of it, or is about one author only.
    fn trial(
        &self,
        message: &Messages,
        author: &str,
        follow: Option<Follows>,
    ) -> Result<Option<Trial>, Refused> {
        let definition = FeedDefinition {
            name: message.table.clone(),
            database: Some(self.known.database.clone()),
            message: Messages {
                author: author.to_owned(),
                ..message.clone()
            },
            follow,
        };
        if definition.validate().is_err() {
            return Ok(None);
        }
        let feed = definition.feed(&self.known.database);
        let obstacles = check(&definition, self.known).err().unwrap_or_default();
        let (fits, or_one) = match shape(self.query, self.words, &feed, self.known) {
            Ok(shape) if !is_of(&shape, &definition) => return Ok(None),
            Ok(shape) => (true, !shape.authors.single.is_empty()),
            Err(why) if self.names(&definition) && obstacles.iter().any(|one| mends(one, why)) => {
                (false, false)
            }
            Err(why) => return Err(why),
        };
        let bits = definition.follow.as_ref().and_then(|follow| {
            let facts = self.known.facts(&follow.table)?;
            facts.integer(facts.table.place(&follow.reader)?)
        });
        let proposal = Proposal {
            by: self.by(&definition),
            or_one,
            obstacles,
            definition,
        };
        Ok(Some(Trial {
            proposal,
            fits,
            bits: bits.map_or(0, |integer| integer.bits),
        }))
    }

    /// The statement names all that a definition is made of, in places that suit.
    fn names(&self, definition: &FeedDefinition) -> bool {
        let author = definition.message.author.to_ascii_lowercase();
        definition.follow.is_some() || self.named.listed.contains(&author)
    }

    fn by(&self, definition: &FeedDefinition) -> By {
        let Some(follow) = &definition.follow else {
            return By::List;
        };
        let is = |source: &&Source| source.table.text == follow.table;
        match self.query.sources.iter().find(is) {
            Some(source) if source.outer => By::OuterJoin,
            Some(_) => By::Join,
            None if self.named.exists.contains(&follow.table) => By::Exists,
            None => By::Subquery,
        }
    }

    /// It says whose messages it wants, in a way that is not understood: by IN, of a column that may be the author's.
    fn names_authors(&self, message: &Messages) -> bool {
        let listed = self.columns(&message.table, &self.named.listed, true);
        listed
            .iter()
            .any(|name| *name != message.id && !message.order.contains(name))
    }
}

/// The statement needs all of the definition, and is about several authors.
fn is_of(shape: &Shape, definition: &FeedDefinition) -> bool {
    match definition.follow {
        Some(_) => !shape.authors.readers.is_empty(),
        None => !shape.authors.lists.is_empty(),
    }
}

/// Once this obstacle is gone, the statement may not be refused for that reason any more.
fn mends(obstacle: &Obstacle, why: Refused) -> bool {
    matches!(
        (why, obstacle),
        (
            Refused::Types | Refused::Names,
            Obstacle::Type { .. } | Obstacle::Kind { .. }
        ) | (Refused::Joins, Obstacle::NotUnique { .. })
    )
}
