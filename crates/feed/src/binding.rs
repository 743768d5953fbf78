//! Binds one statement of a template: reads its literals and its parameters.

use std::ops::Range;

use headwater_timeline::datetime::MAX_FRACTION_DIGITS;
use headwater_timeline::{DatetimeValue, IntegerColumnType, KeyType};

use crate::authors::AuthorSelection;
use crate::bounds::PageBound;
use crate::definition::FeedId;
use crate::plain_check::LiteralCheck;
use crate::query::{Literal, LiteralList};
use crate::refusal::NarrowingRefusal;
use crate::schema::ComparisonClass;
use crate::shape::StatementShape;
use crate::words::{ListKind, StatementWords, WordKind};

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterValue {
    /// An integer, of an integer type.
    Integer(i128),
    /// A whole number of another numeric type, small enough that its neighbours are exact too.
    Whole(i128),
    /// A string, as sent.
    Text(Vec<u8>),
    /// A date, with or without a time.
    Moment(DatetimeValue),
    /// NULL.
    Null,
    /// Any other value.
    Other,
}

/// The type of a parameter and its sign flag, as an execution sends them. Servers compare the same text or number differently by type.
pub type ParameterType = [u8; 2];

/// Types of a feed's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedColumnTypes {
    /// The id's type.
    pub id: IntegerColumnType,
    /// The range of integers that the author column and both follow columns hold.
    pub author: IntegerColumnType,
    /// The key's type, where a column besides the id orders the feed.
    pub key: Option<KeyType>,
    /// The follow table may hold a pair twice.
    pub has_follow_copies: bool,
    /// Of the author column and the follow columns, one is signed and another is not.
    pub has_mixed_signs: bool,
}

/// A statement's text and values.
#[derive(Clone, Copy, Debug)]
pub struct FeedStatement<'a> {
    /// Its text.
    pub text: &'a [u8],
    /// Its words.
    pub words: &'a StatementWords,
    /// Values of its parameters.
    pub parameters: &'a [ParameterValue],
    /// The type of each, as the protocol sends it. Empty: there are parameters, but their types are not known.
    pub types: &'a [ParameterType],
    /// How far the session's time zone is ahead of UTC, in microseconds, if that is constant.
    pub utc_offset: Option<i64>,
}

/// A position in a feed's order. Where only the id orders, the key is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedPosition {
    /// 0 is NULL, which sorts last; every value is above.
    pub key: u64,
    /// The encoded id: its rank in its type.
    pub id: u64,
}

/// The page that a statement requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedPageRequest {
    /// Readers, whose followed authors are requested.
    pub readers: Vec<u64>,
    /// Single authors, ascending.
    pub authors: Vec<u64>,
    /// Inclusive upper bound.
    pub upper: Option<FeedPosition>,
    /// Inclusive lower bound.
    pub lower: Option<FeedPosition>,
    /// LIMIT, at least 1.
    pub limit: u64,
    /// OFFSET.
    pub offset: u64,
}

/// The values of another feed's column whose messages a statement requests, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostingRequest {
    /// The feed.
    pub feed: FeedId,
    /// Readers, whose followed authors are requested.
    pub readers: Vec<u64>,
    /// Single authors, ascending.
    pub authors: Vec<u64>,
}

impl StatementShape {
    /// True if a parameter is compared as text.
    #[must_use]
    pub fn compares_text(&self, of: FeedStatement<'_>) -> bool {
        let mut checks = self
            .literal_checks
            .iter()
            .filter(|check| check.class == ComparisonClass::Text);
        checks.any(|check| match check.literal {
            Literal::Parameter(at) => of.parameters(at).is_some_and(|values| {
                let mut values = values.iter();
                values.any(|value| matches!(value, ParameterValue::Text(_)))
            }),
            _ => false,
        })
    }

    /// Reads a statement's values.
    ///
    /// # Errors
    /// A value is not plain where it has to be.
    pub fn bind(
        &self,
        of: FeedStatement<'_>,
        types: FeedColumnTypes,
    ) -> Result<FeedPageRequest, NarrowingRefusal> {
        if !self
            .literal_checks
            .iter()
            .all(|check| of.passes_check(*check))
        {
            return Err(NarrowingRefusal::Types);
        }
        let (readers, authors) = self.authors.bind(of, types)?;
        let limit = match self.limit {
            Some(at) => of.row_count(at).filter(|limit| *limit > 0),
            None => Some(u64::MAX),
        };
        let limit = limit.ok_or(NarrowingRefusal::Limit)?;
        let offset = match self.offset {
            Some(at) => of.row_count(at).ok_or(NarrowingRefusal::Limit)?,
            None => 0,
        };
        // A value that is not read may differ in each execution, wherever it stands.
        if of.parameters.contains(&ParameterValue::Other) {
            return Err(NarrowingRefusal::Types);
        }
        let is_whole = |at: &usize| {
            let own = of.row_count(*at);
            own.is_some_and(|own| own >= limit.saturating_add(offset))
        };
        if !self.branch_limits.iter().all(is_whole) {
            return Err(NarrowingRefusal::Limit);
        }
        let ends = |bounds: &[PageBound], upper| -> Vec<FeedPosition> {
            let matching = bounds.iter().filter(|bound| bound.upper == upper);
            matching
                .filter_map(|bound| of.bound_position(bound, types))
                .collect()
        };
        // The widest bounds of several SELECTs.
        let each = self.bounds.iter();
        let uppers: Option<Vec<FeedPosition>> = each
            .clone()
            .map(|bounds| ends(bounds, true).into_iter().min())
            .collect();
        let lowers: Option<Vec<FeedPosition>> = each
            .map(|bounds| ends(bounds, false).into_iter().max())
            .collect();
        Ok(FeedPageRequest {
            readers,
            authors,
            upper: uppers.and_then(|all| all.into_iter().max()),
            lower: lowers.and_then(|all| all.into_iter().min()),
            limit,
            offset,
        })
    }
}

impl AuthorSelection {
    /// Reads the readers and the authors, each ascending.
    ///
    /// # Errors
    /// A value is not plain where it has to be.
    pub fn bind(
        &self,
        of: FeedStatement<'_>,
        types: FeedColumnTypes,
    ) -> Result<(Vec<u64>, Vec<u64>), NarrowingRefusal> {
        let number = |literal: &Literal| {
            of.integer(*literal, types.author)
                .ok_or(NarrowingRefusal::Types)
        };
        let lists = |lists: &[LiteralList], numbers: &mut Vec<u64>| {
            let mut each = lists.iter();
            each.try_for_each(|list| of.push_list_members(list, types.author, numbers))
                .ok_or(NarrowingRefusal::Types)
        };
        let mut readers = Vec::new();
        lists(&self.readers, &mut readers)?;
        let single = self.single.iter().map(number);
        let mut authors: Vec<u64> = single.collect::<Result<_, _>>()?;
        lists(&self.lists, &mut authors)?;
        readers.sort_unstable();
        readers.dedup();
        authors.sort_unstable();
        authors.dedup();
        Ok((readers, authors))
    }
}

impl ParameterValue {
    /// The encoded integer, if the type holds it.
    fn integer(&self, of: IntegerColumnType) -> Option<u64> {
        match self {
            ParameterValue::Integer(value) | ParameterValue::Whole(value) => of.encode(*value),
            ParameterValue::Text(text) => exact_integer(text, of),
            _ => None,
        }
    }
}

/// Readers or authors in the index's numbers, which start at 0.
///
/// # Errors
/// One is negative.
pub fn index_numbers(
    encoded: &[u64],
    types: FeedColumnTypes,
) -> Result<Vec<u64>, NarrowingRefusal> {
    let number = |stored: &u64| u64::try_from(types.author.decode(*stored));
    let numbers: Result<Vec<u64>, _> = encoded.iter().map(number).collect();
    numbers.map_err(|_| NarrowingRefusal::Types)
}

/// Integers of so many digits are exact as doubles.
const EXACT_DIGITS: usize = 15;
/// Numbers of so many digits fit a 64-bit integer of either sign.
const INTEGER_DIGITS: usize = 18;

/// A string that is an integer. Servers may compare it as a double, in which longer ones collide.
fn exact_integer(text: &[u8], of: IntegerColumnType) -> Option<u64> {
    of.parse(plain_digits(text, EXACT_DIGITS)?, false)
}

/// A string that is a number as servers write it: at most so many digits, no leading zero.
fn plain_digits(text: &[u8], most: usize) -> Option<&[u8]> {
    let plain = (1..=most).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    (plain && (text.len() == 1 || text.first() != Some(&b'0'))).then_some(text)
}

fn unquoted(text: &[u8]) -> Option<&[u8]> {
    text.get(1..text.len().checked_sub(1)?)
}

impl FeedStatement<'_> {
    /// The values of a parameter, or of a list of them.
    pub(crate) fn parameters(&self, at: usize) -> Option<&[ParameterValue]> {
        self.parameters.get(self.parameter_range(at)?)
    }

    /// The types of a parameter, or of a list of them.
    pub(crate) fn types(&self, at: usize) -> Option<&[ParameterType]> {
        self.types.get(self.parameter_range(at)?)
    }

    fn parameter_range(&self, at: usize) -> Option<Range<usize>> {
        let first = self.words.words.get(at)?.parameters_before;
        let count = self.words.literals(at, self.text).count();
        Some(first..first.checked_add(count)?)
    }

    fn parameter(&self, at: usize) -> Option<&ParameterValue> {
        self.parameters(at)?.first()
    }

    fn string(&self, at: usize) -> Option<&[u8]> {
        unquoted(self.words.text(at, self.text))
    }

    /// A plain integer that the type holds.
    fn integer(&self, literal: Literal, of: IntegerColumnType) -> Option<u64> {
        match literal {
            Literal::Number(at) => of.parse(self.words.text(at, self.text), false),
            Literal::Negative(at) => of.parse(self.words.text(at, self.text), true),
            Literal::Text(at) => exact_integer(self.string(at)?, of),
            Literal::Parameter(at) => self.parameter(at)?.integer(of),
            _ => None,
        }
    }

    /// An integer from 0 on.
    pub(crate) fn number(&self, literal: Literal) -> Option<u64> {
        let from_zero = IntegerColumnType {
            bits: 64,
            signed: false,
        };
        self.integer(literal, from_zero)
    }

    pub(crate) fn row_count(&self, at: usize) -> Option<u64> {
        match self.words.words.get(at)?.kind {
            WordKind::Number => std::str::from_utf8(self.words.text(at, self.text))
                .ok()?
                .parse()
                .ok(),
            WordKind::Parameter => match self.parameter(at)? {
                ParameterValue::Integer(value) => u64::try_from(*value).ok(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Appends the members of a list. `None`: one is no plain integer of this type.
    pub(crate) fn push_list_members(
        &self,
        list: &LiteralList,
        of: IntegerColumnType,
        numbers: &mut Vec<u64>,
    ) -> Option<()> {
        let at = match list {
            LiteralList::Each(all) => {
                for literal in all {
                    numbers.push(self.integer(*literal, of)?);
                }
                return Some(());
            }
            LiteralList::Whole(at) => *at,
        };
        let word = self.words.words.get(at)?;
        match word.kind {
            WordKind::List(ListKind::Numbers) => {
                for number in self.words.literals(at, self.text) {
                    numbers.push(of.parse(number.text, false)?);
                }
            }
            WordKind::List(ListKind::Texts) => {
                for text in self.words.literals(at, self.text) {
                    numbers.push(exact_integer(unquoted(text.text)?, of)?);
                }
            }
            WordKind::List(ListKind::Parameters) => {
                for value in self.parameters(at)? {
                    numbers.push(value.integer(of)?);
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// True if comparing the value with its class causes no error and no warning.
    pub(crate) fn passes_check(&self, check: LiteralCheck) -> bool {
        let text = |text: &[u8]| {
            DatetimeValue::parse(text, MAX_FRACTION_DIGITS)
                .is_some_and(|read| read.day_number().is_some())
        };
        match check.literal {
            Literal::Text(at) | Literal::Moment(at) => {
                self.words.literals(at, self.text).all(|one| {
                    unquoted(one.text).is_some_and(|value| match check.class {
                        ComparisonClass::Integer => plain_digits(value, EXACT_DIGITS).is_some(),
                        _ => text(value),
                    })
                })
            }
            Literal::Parameter(at) => self.parameters(at).is_some_and(|values| {
                values.iter().all(|value| match (value, check.class) {
                    (ParameterValue::Null, _)
                    | (
                        ParameterValue::Integer(_),
                        ComparisonClass::Integer | ComparisonClass::Number,
                    )
                    | (ParameterValue::Whole(_), ComparisonClass::Integer)
                    | (ParameterValue::Text(_), ComparisonClass::Text)
                    | (ParameterValue::Moment(_), ComparisonClass::Moment(_)) => true,
                    (ParameterValue::Text(value), ComparisonClass::Moment(_)) => text(value),
                    (ParameterValue::Text(value), ComparisonClass::Integer) => {
                        plain_digits(value, INTEGER_DIGITS).is_some()
                    }
                    _ => false,
                })
            }),
            _ => true,
        }
    }

    /// The last position within a bound. `None`: the bound is not read for certain, and only the server applies it.
    pub(crate) fn bound_position(
        &self,
        bound: &PageBound,
        types: FeedColumnTypes,
    ) -> Option<FeedPosition> {
        if bound
            .unless_null
            .is_some_and(|literal| self.may_be_null(literal))
        {
            return None;
        }
        let Some(of) = types.key else {
            let id = self.integer(bound.key, types.id)?;
            return bound.last_within(FeedPosition { key: 0, id });
        };
        let key = self.key_number(bound.key, of)?;
        if let Some(same) = bound.equal_key
            && self.key_number(same, of) != Some(key)
        {
            return None;
        }
        let id = match bound.id {
            Some(id) => self.integer(id, types.id)?,
            // All ids of this key, or none.
            None if bound.upper && bound.inclusive => u64::MAX,
            None => 0,
        };
        bound.last_within(FeedPosition { key, id })
    }

    /// The first position within a lower bound, or the last one within an upper bound. `None`: the bound is not read for certain.
    pub(crate) fn exact_position(
        &self,
        bound: &PageBound,
        types: FeedColumnTypes,
    ) -> Option<FeedPosition> {
        let at = self.bound_position(bound, types)?;
        if bound.upper || bound.inclusive {
            return Some(at);
        }
        // Behind the bound's own id, or behind all ids of its key.
        match (types.key, bound.id) {
            (Some(_), None) => Some(FeedPosition {
                key: at.key.checked_add(1)?,
                id: 0,
            }),
            _ => Some(FeedPosition {
                id: at.id.checked_add(1)?,
                ..at
            }),
        }
    }

    fn may_be_null(&self, literal: Literal) -> bool {
        match literal {
            Literal::Null => true,
            Literal::Parameter(at) => match self.parameter(at) {
                // In a mode of MariaDB an empty string is NULL.
                Some(ParameterValue::Text(text)) => text.is_empty(),
                value => value.is_none_or(|value| *value == ParameterValue::Null),
            },
            Literal::Text(at) => self.string(at).is_none_or(<[u8]>::is_empty),
            Literal::Number(_)
            | Literal::Negative(_)
            | Literal::Decimal
            | Literal::Moment(_)
            | Literal::Truth(_) => false,
        }
    }

    /// The key's encoded value, above that of NULL.
    fn key_number(&self, literal: Literal, of: KeyType) -> Option<u64> {
        let digits = match of {
            KeyType::Integer(kind) => {
                return of.encode_integer(kind.decode(self.integer(literal, kind)?));
            }
            KeyType::Datetime(digits) | KeyType::Timestamp(digits) => digits,
        };
        let moment = match literal {
            Literal::Text(at) | Literal::Moment(at) => {
                DatetimeValue::parse(self.string(at)?, MAX_FRACTION_DIGITS)?
            }
            Literal::Parameter(at) => match self.parameter(at)? {
                ParameterValue::Text(text) => DatetimeValue::parse(text, MAX_FRACTION_DIGITS)?,
                ParameterValue::Moment(moment) => *moment,
                _ => return None,
            },
            _ => return None,
        };
        let moment = Some(moment).filter(|moment| moment.has_at_most_digits(digits))?;
        of.encode_datetime(moment, self.utc_offset)
    }
}

impl PageBound {
    /// The position itself, or the next one inside.
    fn last_within(&self, at: FeedPosition) -> Option<FeedPosition> {
        match (self.inclusive, self.upper) {
            // A lower bound that admits one row too many costs nothing.
            (true, _) | (false, false) => Some(at),
            (false, true) => match at.id.checked_sub(1) {
                Some(id) => Some(FeedPosition { id, ..at }),
                None => Some(FeedPosition {
                    key: at.key.checked_sub(1)?,
                    id: u64::MAX,
                }),
            },
        }
    }
}
