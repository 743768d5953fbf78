//! Why a SELECT is not narrowed.

use std::fmt;

/// Why a SELECT of a feed's messages is relayed. Each reason has a name for counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NarrowingRefusal {
    /// A part of it is not understood for certain.
    NotUnderstood,
    /// Something in it may fail, warn or act: arithmetic, variables, functions that are not on the list.
    NotPlain,
    /// FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE, INTO.
    Locks,
    /// SQL_CALC_FOUND_ROWS and other words after SELECT, index hints, PARTITION.
    Hints,
    /// UNION, WITH, HAVING, a window, a table that is a SELECT.
    Structure,
    /// GROUP BY something other than the message's id.
    Grouped,
    /// The order is not the feed's, descending.
    Order,
    /// No LIMIT, or one that is no plain number.
    Limit,
    /// It does not select authors in a way that memory can answer.
    Authors,
    /// A join may give several rows per message.
    Joins,
    /// Operands of different classes are compared, or a literal is not plain.
    Types,
    /// A name in it cannot be resolved for certain.
    Names,
    /// It counts something else than the messages of some authors.
    Count,
}

impl NarrowingRefusal {
    /// All reasons.
    pub const ALL: [NarrowingRefusal; 13] = [
        NarrowingRefusal::NotUnderstood,
        NarrowingRefusal::NotPlain,
        NarrowingRefusal::Locks,
        NarrowingRefusal::Hints,
        NarrowingRefusal::Structure,
        NarrowingRefusal::Grouped,
        NarrowingRefusal::Order,
        NarrowingRefusal::Limit,
        NarrowingRefusal::Authors,
        NarrowingRefusal::Joins,
        NarrowingRefusal::Types,
        NarrowingRefusal::Names,
        NarrowingRefusal::Count,
    ];

    /// Its name in counters.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            NarrowingRefusal::NotUnderstood => "not_understood",
            NarrowingRefusal::NotPlain => "not_plain",
            NarrowingRefusal::Locks => "locks",
            NarrowingRefusal::Hints => "hints",
            NarrowingRefusal::Structure => "structure",
            NarrowingRefusal::Grouped => "grouped",
            NarrowingRefusal::Order => "order",
            NarrowingRefusal::Limit => "limit",
            NarrowingRefusal::Authors => "authors",
            NarrowingRefusal::Joins => "joins",
            NarrowingRefusal::Types => "types",
            NarrowingRefusal::Names => "names",
            NarrowingRefusal::Count => "count",
        }
    }
}

impl fmt::Display for NarrowingRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NarrowingRefusal::NotUnderstood => "a part of it is not understood for certain",
            NarrowingRefusal::NotPlain => {
                "it has arithmetic, variables or functions, which may fail or warn on rows that are not read then"
            }
            NarrowingRefusal::Locks => "it locks rows, or writes them elsewhere",
            NarrowingRefusal::Hints => "it has hints, or asks for more than rows",
            NarrowingRefusal::Structure => "it is made of several SELECTs, or has HAVING or a window",
            NarrowingRefusal::Grouped => "it groups by something else than the message's id",
            NarrowingRefusal::Order => "it is not ordered as the feed is, newest first",
            NarrowingRefusal::Limit => "it has no LIMIT that is a plain number",
            NarrowingRefusal::Authors => "nothing in it says whose messages are wanted",
            NarrowingRefusal::Joins => "a join in it may give several rows for a message",
            NarrowingRefusal::Types => "it compares values of different kinds",
            NarrowingRefusal::Names => "a name in it cannot be resolved for certain",
            NarrowingRefusal::Count => "it counts something else than the messages of some authors",
        })
    }
}
