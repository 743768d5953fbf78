//! Functions that neither fail, nor warn, nor act, whatever the values of their arguments, on both servers: a row that is not read is not
//! missed. `integration/feeds/functions.rs` shows it for each.
//!
//! All are built in on both servers, so that no stored function has such a name: MariaDB 10.11 and MySQL 9.7, `item_create.cc`,
//! `sql_yacc.yy`.

use crate::schema::ComparisonClass;

/// What an argument has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A text, or a literal text.
    Text,
    /// A literal number or TRUE.
    Number,
    /// A literal text.
    Pattern,
    /// A DATE, DATETIME or TIMESTAMP.
    Moment,
    /// Of the class of the first argument.
    Same,
    /// Anything with a class.
    Any,
    /// A text or a number. Where dates are compared, both servers warn of zero ones.
    Undated,
}

/// The class of a function's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionResult {
    /// An integer.
    Integer,
    /// A text.
    Text,
    /// A date.
    Date,
    /// The class of the first argument.
    First,
}

/// A function.
#[derive(Debug, PartialEq, Eq)]
pub struct PlainFunction {
    /// Its name, in upper case.
    pub name: &'static str,
    /// Its arguments.
    pub arguments: &'static [ArgumentKind],
    /// How many of them are required.
    pub required: usize,
    /// The last may be repeated.
    pub repeats: bool,
    /// Its result.
    pub result: FunctionResult,
}

use ArgumentKind::{Any, Moment, Number, Pattern, Same, Text, Undated};

const fn function(
    name: &'static str,
    arguments: &'static [ArgumentKind],
    result: FunctionResult,
) -> PlainFunction {
    PlainFunction {
        name,
        arguments,
        required: arguments.len(),
        repeats: false,
        result,
    }
}

const fn repeating(
    name: &'static str,
    arguments: &'static [ArgumentKind],
    result: FunctionResult,
) -> PlainFunction {
    PlainFunction {
        repeats: true,
        ..function(name, arguments, result)
    }
}

/// All of them.
pub static PLAIN_FUNCTIONS: [PlainFunction; 35] = [
    function("LENGTH", &[Text], FunctionResult::Integer),
    function("OCTET_LENGTH", &[Text], FunctionResult::Integer),
    function("CHAR_LENGTH", &[Text], FunctionResult::Integer),
    function("CHARACTER_LENGTH", &[Text], FunctionResult::Integer),
    function("LOWER", &[Text], FunctionResult::Text),
    function("LCASE", &[Text], FunctionResult::Text),
    function("UPPER", &[Text], FunctionResult::Text),
    function("UCASE", &[Text], FunctionResult::Text),
    function("TRIM", &[Text], FunctionResult::Text),
    function("LTRIM", &[Text], FunctionResult::Text),
    function("RTRIM", &[Text], FunctionResult::Text),
    function("REVERSE", &[Text], FunctionResult::Text),
    function("LEFT", &[Text, Number], FunctionResult::Text),
    function("RIGHT", &[Text, Number], FunctionResult::Text),
    PlainFunction {
        required: 2,
        ..function("SUBSTRING", &[Text, Number, Number], FunctionResult::Text)
    },
    PlainFunction {
        required: 2,
        ..function("SUBSTR", &[Text, Number, Number], FunctionResult::Text)
    },
    function(
        "SUBSTRING_INDEX",
        &[Text, Pattern, Number],
        FunctionResult::Text,
    ),
    function("INSTR", &[Text, Pattern], FunctionResult::Integer),
    function("LOCATE", &[Pattern, Text], FunctionResult::Integer),
    function("FIND_IN_SET", &[Pattern, Text], FunctionResult::Integer),
    repeating("CONCAT", &[Any], FunctionResult::Text),
    repeating("CONCAT_WS", &[Pattern, Any], FunctionResult::Text),
    function("ISNULL", &[Any], FunctionResult::Integer),
    function("NULLIF", &[Any, Same], FunctionResult::First),
    repeating("GREATEST", &[Undated, Same], FunctionResult::First),
    repeating("LEAST", &[Undated, Same], FunctionResult::First),
    function("YEAR", &[Moment], FunctionResult::Integer),
    function("MONTH", &[Moment], FunctionResult::Integer),
    function("DAY", &[Moment], FunctionResult::Integer),
    function("HOUR", &[Moment], FunctionResult::Integer),
    function("MINUTE", &[Moment], FunctionResult::Integer),
    function("SECOND", &[Moment], FunctionResult::Integer),
    function("DATE", &[Moment], FunctionResult::Date),
    function("DATE_FORMAT", &[Moment, Pattern], FunctionResult::Text),
    function("UNIX_TIMESTAMP", &[Moment], FunctionResult::Integer),
];

/// A function by its name.
#[must_use]
pub fn plain_function(name: &[u8]) -> Option<&'static PlainFunction> {
    let mut all = PLAIN_FUNCTIONS.iter();
    all.find(|function| name.eq_ignore_ascii_case(function.name.as_bytes()))
}

impl PlainFunction {
    /// What the argument at this position has to be. `None`: it has no such argument.
    #[must_use]
    pub fn argument(&self, at: usize) -> Option<ArgumentKind> {
        let last = self.arguments.last().filter(|_| self.repeats);
        self.arguments.get(at).or(last).copied()
    }

    /// True if it takes so many arguments.
    #[must_use]
    pub fn takes(&self, count: usize) -> bool {
        count >= self.required && (self.repeats || count <= self.arguments.len())
    }

    /// The class of its result; `first`: that of its first argument.
    #[must_use]
    pub fn result_class(&self, first: ComparisonClass) -> ComparisonClass {
        match self.result {
            FunctionResult::Integer => ComparisonClass::Integer,
            FunctionResult::Text => ComparisonClass::Text,
            FunctionResult::Date => ComparisonClass::Moment(0),
            FunctionResult::First => first,
        }
    }
}
