//! Proposes the feed of a statement: the section of the settings that would narrow it, found by trial.
//!
//! Names from the statement are put into a definition, and [`shape_of_postings`] decides whether the statement fits it. So the code that
//! serves a feed also recognises it, without a second recogniser. Where the statement came from does not matter.

mod column_mentions;
mod evidence;
mod proposal;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use headwater_sql::NameCase;
use headwater_sql::lexer::{Lexer, SqlToken};
use headwater_sql::page_words::{DESCENDING, PAGE_WORDS};
use headwater_sql::word_search::contains_whole_word;

use crate::authors::AuthorSelection;
use crate::catalogue::DatabaseCatalogue;
use crate::definition::{FeedDefinition, FollowDefinition, MessageDefinition, TieOrder};
use crate::parser::parse_as;
use crate::query::{ColumnReference, FeedSelect, Literal, LiteralList, OrderKey, TableReference};
use crate::refusal::NarrowingRefusal;
use crate::schema::ComparisonClass;
use crate::scope::NameScope;
use crate::shape::{FeedNames, StatementShape, shape_of_postings};
use crate::table_check::{FeedObstacle, check};
use crate::template::TableName;
use crate::words::StatementWords;
use column_mentions::ColumnMentions;
pub use evidence::{ProposalEvidence, TableStatistics, is_mark, mark_query, statistics_query};
pub use proposal::{AuthorClause, FeedProposal};

/// Most definitions that are tried for one statement.
const MOST_TRIALS: usize = 500;
/// Most follow tables with their columns that are tried.
const MOST_FOLLOWS: usize = 100;
/// A column of so few bits is a flag, and identifies no one.
const FLAG_BITS: u32 = 8;

/// The result for one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposalOutcome {
    /// It does not resemble a feed.
    Nothing,
    /// It belongs to this feed; of several, to all of them together.
    Feeds(Vec<FeedProposal>),
    /// It resembles a feed, and is relayed for this reason.
    Refused(NarrowingRefusal),
    /// It resembles a feed, and these tables are not known.
    UnknownTables(Vec<TableName>),
}

/// The tables that have to be known to judge a statement, where it may belong to a feed.
#[must_use]
pub fn required_tables(text: &[u8], case: NameCase) -> Vec<TableName> {
    let words = StatementWords::read(text).filter(|_| resembles(text));
    let query = words.and_then(|words| parse_as(text, &words, case).ok());
    query.map(|query| query.tables()).unwrap_or_default()
}

/// Classifies a statement that was sent with this database as its default. Tables that the catalogue lacks count as unknown.
#[must_use]
pub fn propose(
    text: &[u8],
    known: &DatabaseCatalogue,
    evidence: &ProposalEvidence,
) -> ProposalOutcome {
    if !resembles(text) {
        return ProposalOutcome::Nothing;
    }
    let read = StatementWords::read(text).ok_or(NarrowingRefusal::NotUnderstood);
    match read.and_then(|words| Ok((parse_as(text, &words, known.case)?, words))) {
        Ok((query, _)) if query.newest.is_some() || query.has_groups_only() => {
            ProposalOutcome::Nothing
        }
        Ok((query, words)) => {
            let mentions = ColumnMentions::of(&query);
            let search = ProposalSearch {
                text,
                query: &query,
                words: &words,
                known,
                evidence,
                mentions,
            };
            search.outcome()
        }
        Err(why) if is_of_several(text) => ProposalOutcome::Refused(why),
        Err(_) => ProposalOutcome::Nothing,
    }
}

/// A quick test of a text: a SELECT with a descending order and a limit.
#[must_use]
pub fn resembles(text: &[u8]) -> bool {
    let mut words = Lexer::new(text).skip_while(|word| word.is_punct(b'('));
    let is_select = |first: SqlToken<'_>| first.is_word("SELECT") || first.is_word("WITH");
    words.next().is_some_and(is_select)
        && PAGE_WORDS
            .iter()
            .chain([&DESCENDING])
            .all(|word| contains_whole_word(text, word))
}

/// A quick test of a text that is not understood: several authors, or several tables.
#[must_use]
pub fn is_of_several(text: &[u8]) -> bool {
    ["IN", "JOIN", "EXISTS"]
        .iter()
        .any(|word| contains_whole_word(text, word))
}

/// A definition that was tried.
struct DefinitionTrial {
    proposal: FeedProposal,
    /// The statement has its shape.
    matches_shape: bool,
    /// Its reader never varies, or its reader or its author is a column of few values.
    is_of_mark: bool,
    /// Bits of the reader column; a flag has few.
    reader_bits: u32,
}

impl DefinitionTrial {
    /// Trials with fewer obstacles rank first.
    fn rank(&self) -> impl Ord + use<> {
        let alone = self.proposal.definition.follow.is_none();
        (
            self.is_of_mark,
            !self.matches_shape,
            !self.matches_shape && alone,
            self.proposal.obstacles.len(),
            Reverse(self.reader_bits),
        )
    }
}

struct ProposalSearch<'a> {
    text: &'a [u8],
    query: &'a FeedSelect,
    words: &'a StatementWords,
    known: &'a DatabaseCatalogue,
    evidence: &'a ProposalEvidence,
    mentions: ColumnMentions,
}

impl ProposalSearch<'_> {
    fn outcome(&self) -> ProposalOutcome {
        let unknown: Vec<TableName> = self
            .query
            .tables()
            .into_iter()
            .filter(|named| !self.is_known(named))
            .collect();
        if !unknown.is_empty() {
            return ProposalOutcome::UnknownTables(unknown);
        }
        let Some(message) = self.message_definition() else {
            return ProposalOutcome::Nothing;
        };
        if self.is_flag(&message.table, message.order.first()) {
            return ProposalOutcome::Refused(NarrowingRefusal::Order);
        }
        let authors = self.author_columns(&message);
        let follows = self.follow_definitions(&message);
        let mut tried: Vec<DefinitionTrial> = Vec::new();
        let mut refused: Option<NarrowingRefusal> = None;
        let pairs = authors.iter().flat_map(|author| {
            let alone = std::iter::once((author, None));
            alone.chain(follows.iter().map(move |follow| (author, Some(follow))))
        });
        for (author, follow) in pairs.take(MOST_TRIALS) {
            match self.trial(&message, author, follow.cloned()) {
                Ok(Some(trial)) => tried.push(trial),
                Ok(None) => {}
                // `Authors` says least: another definition may have the names.
                Err(why) if refused.is_none_or(|before| before == NarrowingRefusal::Authors) => {
                    refused = Some(why)
                }
                Err(_) => {}
            }
        }
        let best = tried.into_iter().min_by_key(DefinitionTrial::rank);
        let needs_several = best.as_ref().is_none_or(|trial| !trial.matches_shape);
        if needs_several && let Some(pair) = self.pair(&message, &authors, &follows) {
            return ProposalOutcome::Feeds(pair);
        }
        match (best, refused) {
            (Some(trial), _) => ProposalOutcome::Feeds(vec![trial.proposal]),
            (None, Some(NarrowingRefusal::Authors)) if !self.names_authors(&message) => {
                ProposalOutcome::Nothing
            }
            (None, Some(why)) => ProposalOutcome::Refused(why),
            (None, None) => ProposalOutcome::Nothing,
        }
    }

    /// True for a column that orders by a flag first, such as pinned messages.
    fn is_flag(&self, table: &str, column: Option<&String>) -> bool {
        let facts = self.known.catalogue_table(table);
        let integer = facts
            .zip(column)
            .and_then(|(facts, column)| facts.integer_type(facts.table.column_position(column)?));
        integer.is_some_and(|integer| integer.bits <= FLAG_BITS)
    }

    fn is_known(&self, named: &TableName) -> bool {
        let in_database = named
            .database
            .as_ref()
            .is_none_or(|database| *database == self.known.database);
        in_database && self.known.catalogue_table(&named.table).is_some()
    }

    /// The messages are what is ordered, newest first: their table, their id and their order.
    fn message_definition(&self) -> Option<MessageDefinition> {
        let first = self.query.order.first().filter(|key| key.descending)?;
        let scope = NameScope::default()
            .within(&self.query.sources, self.known)
            .ok();
        let table = match scope.and_then(|scope| Some((scope.resolve(&first.column).ok()?, scope)))
        {
            Some((of, scope)) => scope.table(of.table)?.source.table.text.clone(),
            // A view, or an ambiguous name: the table check says more.
            None => self.query.sources.first()?.table.text.clone(),
        };
        let facts = self.known.catalogue_table(&table)?;
        let columns = &facts.table.columns;
        let column_name = |column: &ColumnReference| {
            let position = facts.table.column_position(&column.name.text)?;
            columns.get(position).map(|column| column.name.clone())
        };
        let mut order: Vec<String> = self
            .query
            .order
            .iter()
            .filter_map(|key| column_name(&key.column))
            .collect();
        let primary =
            facts
                .indexes
                .get("PRIMARY")
                .and_then(|index| match index.columns.as_slice() {
                    [Some(only)] => columns.get(*only),
                    _ => None,
                });
        // Without a primary key, the table check reports that.
        let id =
            primary.map_or_else(|| order.last().cloned(), |column| Some(column.name.clone()))?;
        order.truncate(1);
        if order.first().is_some_and(|key| *key != id) {
            order.push(id.clone());
        }
        Some(MessageDefinition {
            table,
            id,
            author: String::new(),
            order,
        })
    }

    /// Columns of the messages that may hold the author.
    fn author_columns(&self, message: &MessageDefinition) -> Vec<String> {
        let listed = self.listed_columns(message);
        let compared = self.columns(&message.table, &self.mentions.equal_to_column, false);
        let all = listed.into_iter().chain(compared);
        let mut authors: Vec<String> = Vec::new();
        for name in all {
            let is_taken = message.order.contains(&name) || name == message.id;
            if !is_taken && !authors.contains(&name) {
                authors.push(name);
            }
        }
        // Messages themselves may be followed, where a key orders them that changes.
        if message.order.len() > 1 {
            authors.push(message.id.clone());
        }
        authors
    }

    /// Integer columns before IN that are called an id or begin an index. Any other is a state or a kind.
    fn listed_columns(&self, message: &MessageDefinition) -> Vec<String> {
        let Some(facts) = self.known.catalogue_table(&message.table) else {
            return Vec::new();
        };
        let begins_index = |name: &str| {
            let position = facts.table.column_position(name);
            let mut indexes = facts.indexes.values();
            indexes.any(|index| {
                index
                    .columns
                    .first()
                    .is_some_and(|first| *first == position)
            })
        };
        let is_id = |name: &String| name.to_ascii_lowercase().ends_with("id") || begins_index(name);
        let named = self.columns(&message.table, &self.mentions.listed, true);
        named.into_iter().filter(is_id).collect()
    }

    /// Tables that may be the follow table, each with each pair of columns: the first of these.
    fn follow_definitions(&self, message: &MessageDefinition) -> Vec<FollowDefinition> {
        let mut follows = Vec::new();
        for named in self.query.tables() {
            if follows.len() >= MOST_FOLLOWS {
                break;
            }
            if named.table == message.table {
                continue;
            }
            let unique = |reader: &String| {
                let facts = self.known.catalogue_table(&named.table);
                facts.is_some_and(|facts| {
                    let position = facts.table.column_position(reader);
                    let mut keys = facts.table.unique_keys.iter();
                    keys.any(|key| key.len() == 1 && key.first().copied() == position)
                })
            };
            let mentions = &self.mentions;
            let mut readers = self.columns(&named.table, &mentions.equal_to_literal, false);
            // A list of one, or equal to a column that equals a literal.
            for others in [&mentions.listed, &mentions.equal_to_column] {
                for name in self.columns(&named.table, others, false) {
                    if !readers.contains(&name) {
                        readers.push(name);
                    }
                }
            }
            // A reader who occurs only once follows one author at most.
            for reader in readers.into_iter().filter(|reader| !unique(reader)) {
                for author in self.columns(&named.table, &self.mentions.equal_to_column, false) {
                    if author != reader && follows.len() < MOST_FOLLOWS {
                        follows.push(FollowDefinition {
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

    /// Columns of a table with these names that may identify people, in the table's order. `integers`: integer columns only.
    fn columns(&self, table: &str, names: &BTreeSet<String>, integers: bool) -> Vec<String> {
        let Some(facts) = self.known.catalogue_table(table) else {
            return Vec::new();
        };
        let is = |at: usize, class: ComparisonClass| match facts.integer_type(at) {
            Some(integer) => integer.bits > FLAG_BITS,
            // UUIDs: the table check reports that they are no integers.
            None => {
                !integers
                    && (class == ComparisonClass::Text
                        || facts.sql_type(at).starts_with("binary(16"))
            }
        };
        let all = facts.table.columns.iter().enumerate();
        let matching = all.filter(|(at, column)| {
            names.contains(&column.name.to_ascii_lowercase()) && is(*at, column.class)
        });
        matching.map(|(_, column)| column.name.clone()).collect()
    }

    /// A definition without its name.
    fn definition(
        &self,
        message: &MessageDefinition,
        author: &str,
        follow: Option<FollowDefinition>,
    ) -> Option<FeedDefinition> {
        let is_followed = author == message.id;
        if is_followed && follow.is_none() {
            return None;
        }
        let definition = FeedDefinition {
            name: message.table.clone(),
            database: Some(self.known.database.clone()),
            ties: self.ties(message),
            message: MessageDefinition {
                author: author.to_owned(),
                ..message.clone()
            },
            follow,
        };
        definition.validate().is_ok().then_some(definition)
    }

    /// The statement's shape by these definitions together. Sets what they have to say of ties.
    fn shape_by(
        &self,
        definitions: &mut [FeedDefinition],
    ) -> Result<StatementShape, NarrowingRefusal> {
        let shape = |definitions: &[FeedDefinition]| {
            let names = definitions
                .iter()
                .map(|definition| definition.feed_names(&self.known.database));
            let names: Vec<FeedNames> = names.collect();
            let (first, others) = names.split_first().ok_or(NarrowingRefusal::Names)?;
            shape_of_postings(self.query, self.words, first, others, self.known)
        };
        let shaped = shape(definitions);
        if shaped.as_ref().err() != Some(&NarrowingRefusal::Joins) {
            return shaped;
        }
        let mut ordered = definitions.to_vec();
        ordered.iter_mut().for_each(|one| one.ties = TieOrder::Id);
        match shape(&ordered) {
            Ok(shape) => {
                definitions.clone_from_slice(&ordered);
                Ok(shape)
            }
            Err(_) => shaped,
        }
    }

    /// Tries one definition. `None`: the statement fits it, but does not need all of it, or is about one author only.
    fn trial(
        &self,
        message: &MessageDefinition,
        author: &str,
        follow: Option<FollowDefinition>,
    ) -> Result<Option<DefinitionTrial>, NarrowingRefusal> {
        let Some(mut definition) = self.definition(message, author, follow) else {
            return Ok(None);
        };
        let ties = definition.ties;
        let shaped = self.shape_by(std::slice::from_mut(&mut definition));
        let obstacles = check(&definition, self.known).err().unwrap_or_default();
        let has_several_rows = definition.ties != ties;
        let readers = shaped
            .as_ref()
            .map_or(&[][..], |shape| &shape.authors.readers);
        let is_constant = self.evidence.are_constant(readers);
        let has_few_values = self.is_of_mark(&definition);
        // A mark, such as a kind, or a date of deletion that is 0.
        let is_mark = is_constant
            && (has_few_values
                || self.are_marks(readers)
                || obstacles
                    .iter()
                    .any(|one| matches!(one, FeedObstacle::NoIndex { .. })));
        if is_mark {
            return Ok(None);
        }
        let (fits, or_one) = match shaped {
            Ok(shape) if !is_of(&shape.authors, &definition) => return Ok(None),
            Ok(shape) => (true, !shape.authors.single.is_empty()),
            Err(why)
                if self.names_definition(&definition)
                    && obstacles.iter().any(|one| resolves_refusal(one, why)) =>
            {
                (false, false)
            }
            Err(why) => return Err(why),
        };
        let bits = definition.follow.as_ref().and_then(|follow| {
            let facts = self.known.catalogue_table(&follow.table)?;
            facts.integer_type(facts.table.column_position(&follow.reader)?)
        });
        let proposal = FeedProposal {
            author_clause: self.author_clause(&definition),
            or_single_author: or_one,
            has_several_rows,
            together_with: None,
            obstacles,
            definition,
        };
        Ok(Some(DefinitionTrial {
            is_of_mark: is_constant || has_few_values,
            proposal,
            matches_shape: fits,
            reader_bits: bits.map_or(0, |integer| integer.bits),
        }))
    }

    /// Two feeds that only together have all messages of the statement: posts of whom I follow OR of my groups.
    fn pair(
        &self,
        message: &MessageDefinition,
        authors: &[String],
        follows: &[FollowDefinition],
    ) -> Option<Vec<FeedProposal>> {
        // One of them may select a single author: posts of my groups OR my own.
        let own = self.columns(&message.table, &self.mentions.equal_to_literal, true);
        let is_new = |name: &&String| {
            !authors.contains(name) && !message.order.contains(name) && **name != message.id
        };
        let each = authors
            .iter()
            .chain(own.iter().filter(is_new))
            .flat_map(|author| {
                let follows = follows
                    .iter()
                    .map(move |follow| (author, Some(follow.clone())));
                [(author, None)].into_iter().chain(follows)
            });
        let each = each.filter_map(|(author, follow)| self.definition(message, author, follow));
        let mut each: Vec<FeedDefinition> = each.take(MOST_TRIALS).collect();
        // Those first whose reader is named by a literal.
        each.sort_by_key(|one| {
            let reader = one
                .follow
                .as_ref()
                .map(|follow| follow.reader.to_ascii_lowercase());
            let is_literal = |reader: &String| self.mentions.equal_to_literal.contains(reader);
            (!reader.as_ref().is_some_and(is_literal), reader.is_none())
        });
        // Of all pairs the earlier ones, by the sum of both places.
        let pairs = (1..2 * each.len()).flat_map(|sum| {
            let firsts = 0..sum.div_ceil(2);
            firsts
                .filter_map(|first| Some([each.get(first)?, each.get(sum - first)?]))
                .collect::<Vec<_>>()
        });
        let differ =
            |[first, second]: &[&FeedDefinition; 2]| first.message.author != second.message.author;
        let pairs = pairs
            .filter(differ)
            .take(MOST_TRIALS)
            .map(|pair| pair.map(Clone::clone));
        let fitting = pairs.filter_map(|mut pair| {
            let shape = self.shape_by(&mut pair).ok()?;
            let [first, second] = &pair;
            let [posting] = shape.postings.as_slice() else {
                return None;
            };
            let selections = [(&shape.authors, first), (&posting.authors, second)];
            let is_single = |(authors, definition): (&AuthorSelection, &FeedDefinition)| {
                let mut single = authors.single.iter();
                definition.follow.is_none()
                    && single.any(|one| !self.evidence.is_constant_literal(one))
            };
            let is_needed = selections
                .iter()
                .all(|one| is_of(one.0, one.1) || is_single(*one))
                && selections.iter().any(|one| is_of(one.0, one.1));
            is_needed.then_some(())?;
            let single = shape.authors.single.len() + posting.authors.single.len();
            let proposal = |definition: &FeedDefinition, other: &FeedDefinition| FeedProposal {
                author_clause: self.author_clause(definition),
                or_single_author: single > 0,
                has_several_rows: definition.ties != self.ties(message),
                together_with: Some(other.message.author.clone()),
                obstacles: check(definition, self.known).err().unwrap_or_default(),
                definition: definition.clone(),
            };
            Some(vec![proposal(first, second), proposal(second, first)])
        });
        fitting.min_by_key(|pair| {
            let marks = pair.iter().filter(|one| self.is_of_mark(&one.definition));
            let obstacles = pair.iter().map(|one| one.obstacles.len());
            let alone = pair.iter().filter(|one| one.definition.follow.is_none());
            (marks.count(), alone.count(), obstacles.sum::<usize>())
        })
    }

    /// True if the reader or the author is a column of few values.
    fn is_of_mark(&self, definition: &FeedDefinition) -> bool {
        let is_mark = |table: &str, column: &str| {
            let of = (table.to_owned(), column.to_owned());
            self.evidence.marks.contains(&of)
        };
        let message = &definition.message;
        let follow = definition.follow.as_ref();
        is_mark(&message.table, &message.author)
            || follow.is_some_and(|follow| is_mark(&follow.table, &follow.reader))
    }

    /// True if each of these readers is TRUE, FALSE, 0 or a string.
    fn are_marks(&self, readers: &[LiteralList]) -> bool {
        let is_mark = |literal: &Literal| match literal {
            Literal::Truth(_) | Literal::Text(_) => true,
            Literal::Number(at) => self.words.text(*at, self.text) == b"0",
            _ => false,
        };
        readers.iter().all(|list| match list {
            LiteralList::Each(literals) => literals.iter().all(is_mark),
            LiteralList::Whole(_) => false,
        })
    }

    /// True if the statement names all parts of a definition, in suitable positions.
    fn names_definition(&self, definition: &FeedDefinition) -> bool {
        let message = &definition.message;
        let author = message.author.to_ascii_lowercase();
        message.author != message.id
            && (definition.follow.is_some() || self.mentions.listed.contains(&author))
    }

    /// Who orders messages with equal keys: a statement that orders by the key alone is served in full only with the id.
    fn ties(&self, message: &MessageDefinition) -> TieOrder {
        let is_id = |key: &OrderKey| key.column.name.text.eq_ignore_ascii_case(&message.id);
        match message.order.len() > 1 && !self.query.order.iter().any(is_id) {
            true => TieOrder::Id,
            false => TieOrder::Server,
        }
    }

    fn author_clause(&self, definition: &FeedDefinition) -> AuthorClause {
        let Some(follow) = &definition.follow else {
            return AuthorClause::List;
        };
        let is = |source: &&TableReference| source.table.text == follow.table;
        match self.query.sources.iter().find(is) {
            Some(source) if source.outer.is_some() => AuthorClause::OuterJoin,
            Some(_) => AuthorClause::Join,
            None if self.mentions.exists_tables.contains(&follow.table) => AuthorClause::Exists,
            None => AuthorClause::Subquery,
        }
    }

    /// True if it selects authors in a way that is not understood: by IN, on a column that may be the author's.
    fn names_authors(&self, message: &MessageDefinition) -> bool {
        let listed = self.columns(&message.table, &self.mentions.listed, true);
        listed
            .iter()
            .any(|name| *name != message.id && !message.order.contains(name))
    }
}

/// True if the statement needs all of the definition, and is about several authors.
fn is_of(authors: &AuthorSelection, definition: &FeedDefinition) -> bool {
    match definition.follow {
        Some(_) => !authors.readers.is_empty(),
        None => !authors.lists.is_empty(),
    }
}

/// True if the reason may be gone once this obstacle is removed.
fn resolves_refusal(obstacle: &FeedObstacle, why: NarrowingRefusal) -> bool {
    matches!(
        (why, obstacle),
        (
            NarrowingRefusal::Types | NarrowingRefusal::Names,
            FeedObstacle::Type { .. } | FeedObstacle::Kind { .. }
        )
    )
}
