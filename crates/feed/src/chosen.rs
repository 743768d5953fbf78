//! Which of a reader's edges count: `AND followers.accepted = 1`. Memory knows all edges and nothing else of them, so the server is asked
//! which authors are left, by a statement of its own with the conditions as they stand.

use std::ops::Range;

use headwater_sql::quoted;

use crate::authors::Follow;
use crate::bind::{Parameter, Statement};
use crate::query::Source;
use crate::words::{Is, Members};

/// What is said of edges beside whose they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The word by which the conditions call their table.
    called: usize,
    /// The conditions, by their words; none: all edges count.
    pub(crate) conditions: Vec<Range<usize>>,
}

impl Chosen {
    /// Those of which this holds. `None`: the table is named by its database, and conditions may be as well.
    pub(crate) fn new(source: &Source, conditions: Vec<Range<usize>>) -> Option<Chosen> {
        let plain = source.database.is_none();
        plain.then(|| Chosen {
            conditions,
            ..Chosen::all(source)
        })
    }

    /// All of them.
    pub(crate) fn all(source: &Source) -> Chosen {
        Chosen {
            called: source.alias.as_ref().unwrap_or(&source.table).word,
            conditions: Vec::new(),
        }
    }

    /// The statement that asks for a reader's authors, up to the reader's number. `None`: a parameter in a condition is no number.
    #[must_use]
    pub fn query(&self, statement: Statement<'_>, follow: &Follow) -> Option<String> {
        let Statement { text, words, .. } = statement;
        let called = std::str::from_utf8(words.text(self.called, text)).ok()?;
        let (table, author) = (quoted(&follow.table), quoted(&follow.author));
        let column = quoted(&follow.reader);
        let mut query = format!("SELECT DISTINCT {called}.{author} FROM {table} {called} WHERE ");
        for range in &self.conditions {
            query.push('(');
            query.push_str(&filled(statement, range)?);
            query.push_str(") AND ");
        }
        Some(format!("{query}{called}.{column} = "))
    }
}

/// A condition's text, with numbers in the places of its parameters. `None`: one of them is none.
fn filled(statement: Statement<'_>, range: &Range<usize>) -> Option<String> {
    let Statement { text, words, .. } = statement;
    let own = words.words.get(range.clone())?;
    let mut condition = Vec::new();
    let mut from = own.first()?.start;
    for (at, word) in range.clone().zip(own) {
        match word.is {
            Is::List(Members::Parameters) => return None,
            Is::Parameter => {
                condition.extend_from_slice(text.get(from..word.start)?);
                match statement.parameters(at)? {
                    [Parameter::Integer(value)] => {
                        condition.extend_from_slice(value.to_string().as_bytes());
                    }
                    [Parameter::Text(value)] if is_number(value) => {
                        condition.extend_from_slice(&[b"'", &value[..], b"'"].concat());
                    }
                    _ => return None,
                }
                from = word.end;
            }
            _ => {}
        }
    }
    condition.extend_from_slice(text.get(from..own.last()?.end)?);
    String::from_utf8(condition).ok()
}

/// True for so many digits that every way of comparing them tells them apart.
fn is_number(value: &[u8]) -> bool {
    (1..=15).contains(&value.len()) && value.iter().all(u8::is_ascii_digit)
}
