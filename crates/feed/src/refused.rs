//! Why a SELECT is not narrowed.

use std::fmt;

/// Why a SELECT of a feed's messages is relayed as it is. Each has a name for counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refused {
    /// A part of it is not understood for certain.
    NotUnderstood,
    /// Something in it may fail, warn or act: arithmetic, variables, functions that are not on the list.
    NotPlain,
    /// FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE, INTO.
    Locks,
    /// SQL_CALC_FOUND_ROWS and other words behind SELECT, hints for indexes, PARTITION.
    Hints,
    /// UNION, WITH, HAVING, a window, a table that is a SELECT.
    Structure,
    /// GROUP BY something else than the message's id.
    Grouped,
    /// Not by the feed's order, descending.
    Order,
    /// No LIMIT, or one that is no plain number.
    Limit,
    /// Nothing in it says whose messages are wanted, as far as memory knows.
    Authors,
    /// A join may give several rows a message.
    Joins,
    /// Types that are compared are not of one class, or a literal is not plain.
    Types,
    /// A name in it cannot be resolved for certain.
    Names,
}

impl Refused {
    /// All of them.
    pub const ALL: [Refused; 12] = [
        Refused::NotUnderstood,
        Refused::NotPlain,
        Refused::Locks,
        Refused::Hints,
        Refused::Structure,
        Refused::Grouped,
        Refused::Order,
        Refused::Limit,
        Refused::Authors,
        Refused::Joins,
        Refused::Types,
        Refused::Names,
    ];

    /// Its name in counters.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Refused::NotUnderstood => "not_understood",
            Refused::NotPlain => "not_plain",
            Refused::Locks => "locks",
            Refused::Hints => "hints",
            Refused::Structure => "structure",
            Refused::Grouped => "grouped",
            Refused::Order => "order",
            Refused::Limit => "limit",
            Refused::Authors => "authors",
            Refused::Joins => "joins",
            Refused::Types => "types",
            Refused::Names => "names",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::NotUnderstood => "a part of it is not understood for certain",
            Refused::NotPlain => {
                "it has arithmetic, variables or functions, which may fail or warn on rows that are not read then"
            }
            Refused::Locks => "it locks rows, or writes them elsewhere",
            Refused::Hints => "it has hints, or asks for more than rows",
            Refused::Structure => "it is made of several SELECTs, or has HAVING or a window",
            Refused::Grouped => "it groups by something else than the message's id",
            Refused::Order => "it is not ordered as the feed is, newest first",
            Refused::Limit => "it has no LIMIT that is a plain number",
            Refused::Authors => "nothing in it says whose messages are wanted",
            Refused::Joins => "a join in it may give several rows for a message",
            Refused::Types => "it compares values of different kinds",
            Refused::Names => "a name in it cannot be resolved for certain",
        })
    }
}
