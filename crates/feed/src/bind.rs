//! What one statement of a template asks for: its literals read, its parameters put in.

use std::ops::Range;

use headwater_timeline::moment::DIGITS;
use headwater_timeline::{Integer, KeyType, Moment};

use crate::bounds::Bound;
use crate::plain::Look;
use crate::query::{List, Literal};
use crate::refused::Refused;
use crate::schema::Class;
use crate::shape::Shape;
use crate::words::{Is, Members, Words};

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A whole number, of a type of whole numbers.
    Integer(i128),
    /// A whole number of another type of numbers, no greater than one that has another one beside it.
    Whole(i128),
    /// A string, as it is.
    Text(Vec<u8>),
    /// A date, with a time or not.
    Moment(Moment),
    /// NULL.
    Null,
    /// Anything else.
    Other,
}

/// The type of a parameter, and whether it has a sign, as an execution gives them: servers compare values of one text or number in other ways
/// where their types are others.
pub type ParameterType = [u8; 2];

/// Types of a feed's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types {
    /// Of the id.
    pub id: Integer,
    /// Of the author, and of readers and authors of the table of who follows whom: what all of them hold.
    pub author: Integer,
    /// Of the key, where there is one beside the id.
    pub key: Option<KeyType>,
}

/// Where a statement's values come from.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// Its text.
    pub text: &'a [u8],
    /// Its words.
    pub words: &'a Words,
    /// Values of its parameters.
    pub parameters: &'a [Parameter],
    /// The type that each was given, as the protocol has it: none, where there are parameters and that is not known.
    pub types: &'a [ParameterType],
    /// How far the session's time zone is ahead of UTC, in microseconds, if that is always the same.
    pub ahead: Option<i64>,
}

/// A place in a feed's order. Where the id alone orders, the key is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// 0 stands for NULL, which is last; all values are above.
    pub key: u64,
    /// By its place in its type.
    pub id: u64,
}

/// What a statement asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Whom these follow.
    pub readers: Vec<u64>,
    /// These, ascending.
    pub authors: Vec<u64>,
    /// At most here.
    pub upper: Option<At>,
    /// At least here.
    pub lower: Option<At>,
    /// LIMIT, at least 1.
    pub limit: u64,
    /// OFFSET.
    pub offset: u64,
}

impl Shape {
    /// True where a parameter is text that is compared as such.
    #[must_use]
    pub fn compares_text(&self, of: Statement<'_>) -> bool {
        let mut looks = self.looks.iter().filter(|look| look.with == Class::Text);
        looks.any(|look| match look.literal {
            Literal::Parameter(at) => of.parameters(at).is_some_and(|values| {
                let mut values = values.iter();
                values.any(|value| matches!(value, Parameter::Text(_)))
            }),
            _ => false,
        })
    }

    /// Reads a statement's values.
    ///
    /// # Errors
    /// One that is not plain where that matters.
    pub fn bind(&self, of: Statement<'_>, types: Types) -> Result<Asked, Refused> {
        if !self.looks.iter().all(|look| of.is_plain(*look)) {
            return Err(Refused::Types);
        }
        let number = |literal: &Literal| of.integer(*literal, types.author).ok_or(Refused::Types);
        let lists = |lists: &[List], found: &mut Vec<u64>| {
            let mut each = lists.iter();
            each.try_for_each(|list| of.list(list, types.author, found))
                .ok_or(Refused::Types)
        };
        let mut readers = Vec::new();
        lists(&self.authors.readers, &mut readers)?;
        let single = self.authors.single.iter().map(number);
        let mut authors: Vec<u64> = single.collect::<Result<_, _>>()?;
        lists(&self.authors.lists, &mut authors)?;
        readers.sort_unstable();
        readers.dedup();
        authors.sort_unstable();
        authors.dedup();
        let limit = of
            .count(self.limit)
            .filter(|limit| *limit > 0)
            .ok_or(Refused::Limit)?;
        let offset = match self.offset {
            Some(at) => of.count(at).ok_or(Refused::Limit)?,
            None => 0,
        };
        // What is not read may be another value each time, wherever it stands.
        if of.parameters.contains(&Parameter::Other) {
            return Err(Refused::Types);
        }
        let ends = |upper| {
            let own = self.bounds.iter().filter(move |bound| bound.upper == upper);
            own.filter_map(|bound| of.end(bound, types))
        };
        Ok(Asked {
            readers,
            authors,
            upper: ends(true).min(),
            lower: ends(false).max(),
            limit,
            offset,
        })
    }
}

impl Parameter {
    /// A whole number that a type holds.
    fn integer(&self, of: Integer) -> Option<u64> {
        match self {
            Parameter::Integer(value) | Parameter::Whole(value) => of.of(*value),
            Parameter::Text(text) => exact(text, of),
            _ => None,
        }
    }
}

/// So many digits a double tells apart.
const EXACT_DIGITS: usize = 15;
/// So many fit an integer of either sign.
const INTEGER_DIGITS: usize = 18;

/// A string that is a whole number: servers may compare it as a double, in which longer ones fall together.
fn exact(text: &[u8], of: Integer) -> Option<u64> {
    of.read(digits(text, EXACT_DIGITS)?, false)
}

/// A string that is a number as servers write it: at most so many digits, without a zero in front.
fn digits(text: &[u8], most: usize) -> Option<&[u8]> {
    let plain = (1..=most).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    (plain && (text.len() == 1 || text.first() != Some(&b'0'))).then_some(text)
}

/// What stands between a string's quotes.
fn unquoted(text: &[u8]) -> Option<&[u8]> {
    text.get(1..text.len().checked_sub(1)?)
}

impl Statement<'_> {
    /// The values of a parameter, or of a list of them.
    pub(crate) fn parameters(&self, at: usize) -> Option<&[Parameter]> {
        self.parameters.get(self.numbers(at)?)
    }

    /// The types of these.
    pub(crate) fn types(&self, at: usize) -> Option<&[ParameterType]> {
        self.types.get(self.numbers(at)?)
    }

    fn numbers(&self, at: usize) -> Option<Range<usize>> {
        let first = self.words.words.get(at)?.parameters;
        let count = self.words.literals(at, self.text).count();
        Some(first..first.checked_add(count)?)
    }

    fn parameter(&self, at: usize) -> Option<&Parameter> {
        self.parameters(at)?.first()
    }

    /// What stands in a string's quotes.
    fn string(&self, at: usize) -> Option<&[u8]> {
        unquoted(self.words.text(at, self.text))
    }

    /// A plain integer that its type holds.
    fn integer(&self, literal: Literal, of: Integer) -> Option<u64> {
        match literal {
            Literal::Number(at) => of.read(self.words.text(at, self.text), false),
            Literal::Negative(at) => of.read(self.words.text(at, self.text), true),
            Literal::Text(at) => exact(self.string(at)?, of),
            Literal::Parameter(at) => self.parameter(at)?.integer(of),
            _ => None,
        }
    }

    /// A whole number from 0 on.
    pub(crate) fn number(&self, literal: Literal) -> Option<u64> {
        let from_zero = Integer {
            bits: 64,
            signed: false,
        };
        self.integer(literal, from_zero)
    }

    fn count(&self, at: usize) -> Option<u64> {
        match self.words.words.get(at)?.is {
            Is::Number => std::str::from_utf8(self.words.text(at, self.text))
                .ok()?
                .parse()
                .ok(),
            Is::Parameter => match self.parameter(at)? {
                Parameter::Integer(value) => u64::try_from(*value).ok(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Adds the members of a list, if each is a plain integer of this type.
    fn list(&self, list: &List, of: Integer, found: &mut Vec<u64>) -> Option<()> {
        let at = match list {
            List::Each(all) => {
                for literal in all {
                    found.push(self.integer(*literal, of)?);
                }
                return Some(());
            }
            List::Whole(at) => *at,
        };
        let word = self.words.words.get(at)?;
        match word.is {
            Is::List(Members::Numbers) => {
                for number in self.words.literals(at, self.text) {
                    found.push(of.read(number.text, false)?);
                }
            }
            Is::List(Members::Texts) => {
                for text in self.words.literals(at, self.text) {
                    found.push(exact(unquoted(text.text)?, of)?);
                }
            }
            Is::List(Members::Parameters) => {
                for value in self.parameters(at)? {
                    found.push(value.integer(of)?);
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Whether a value may be compared with its class: no error and no warning comes of it.
    fn is_plain(&self, look: Look) -> bool {
        let text =
            |text: &[u8]| Moment::read(text, DIGITS).is_some_and(|read| read.days().is_some());
        match look.literal {
            Literal::Text(at) => self.words.literals(at, self.text).all(|one| {
                unquoted(one.text).is_some_and(|value| match look.with {
                    Class::Integer => digits(value, EXACT_DIGITS).is_some(),
                    _ => text(value),
                })
            }),
            Literal::Parameter(at) => self.parameters(at).is_some_and(|values| {
                values.iter().all(|value| match (value, look.with) {
                    (Parameter::Null, _)
                    | (Parameter::Integer(_), Class::Integer | Class::Number)
                    | (Parameter::Whole(_), Class::Integer)
                    | (Parameter::Text(_), Class::Text)
                    | (Parameter::Moment(_), Class::Moment(_)) => true,
                    (Parameter::Text(value), Class::Moment(_)) => text(value),
                    (Parameter::Text(value), Class::Integer) => {
                        digits(value, INTEGER_DIGITS).is_some()
                    }
                    _ => false,
                })
            }),
            _ => true,
        }
    }

    /// Where a bound lies: the last place that is within. `None`: it is not read for certain, and the server alone heeds it.
    pub(crate) fn end(&self, bound: &Bound, types: Types) -> Option<At> {
        let Some(of) = types.key else {
            let id = self.integer(bound.key, types.id)?;
            return bound.last_within(At { key: 0, id });
        };
        let key = self.key(bound.key, of)?;
        if let Some(same) = bound.same
            && self.key(same, of) != Some(key)
        {
            return None;
        }
        let id = match bound.id {
            Some(id) => self.integer(id, types.id)?,
            // All ids of this key, or none.
            None if bound.upper && bound.closed => u64::MAX,
            None => 0,
        };
        bound.last_within(At { key, id })
    }

    /// A key's number: above that of NULL.
    fn key(&self, literal: Literal, of: KeyType) -> Option<u64> {
        let digits = match of {
            KeyType::Integer(kind) => {
                return of.of_integer(kind.number(self.integer(literal, kind)?));
            }
            KeyType::Datetime(digits) | KeyType::Timestamp(digits) => digits,
        };
        let moment = match literal {
            Literal::Text(at) => Moment::read(self.string(at)?, digits)?,
            Literal::Parameter(at) => match self.parameter(at)? {
                Parameter::Text(text) => Moment::read(text, digits)?,
                Parameter::Moment(moment) if moment.has_at_most(digits) => *moment,
                _ => return None,
            },
            _ => return None,
        };
        of.of_moment(moment, self.ahead)
    }
}

impl Bound {
    /// The place itself, or the next one inside.
    fn last_within(&self, at: At) -> Option<At> {
        match (self.closed, self.upper) {
            // A lower bound that lets one too many pass costs nothing.
            (true, _) | (false, false) => Some(at),
            (false, true) => match at.id.checked_sub(1) {
                Some(id) => Some(At { id, ..at }),
                None => Some(At {
                    key: at.key.checked_sub(1)?,
                    id: u64::MAX,
                }),
            },
        }
    }
}
