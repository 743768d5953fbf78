//! A SELECT that was read by the grammar: what stands where. Words are told by their number.

use std::ops::Range;

/// A SELECT with an order and a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// DISTINCT.
    pub distinct: bool,
    /// The columns.
    pub items: Vec<Item>,
    /// FROM, in order; the first is joined to nothing.
    pub sources: Vec<Source>,
    /// WHERE: the word, and its condition.
    pub filter: Option<(usize, Condition)>,
    /// The word GROUP, or else ORDER: what stands before it ends there.
    pub filter_end: usize,
    /// GROUP BY.
    pub group: Vec<Column>,
    /// ORDER BY.
    pub order: Vec<Key>,
    /// LIMIT.
    pub limit: usize,
    /// OFFSET, where there is one.
    pub offset: Option<usize>,
    /// The columns of the SELECT in FROM, where it is read through one; `items` is told by them.
    pub inner: Vec<Item>,
}

/// A column of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// `*`.
    All,
    /// `t.*`, `db.t.*`.
    AllOf(Vec<Name>),
    /// An operand, and the name that it is given.
    Operand(Operand, Option<Name>),
}

/// A table in FROM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The database in front.
    pub database: Option<Name>,
    /// The table.
    pub table: Name,
    /// The name that it is given.
    pub alias: Option<Name>,
    /// It is on the nullable side of a LEFT JOIN.
    pub outer: bool,
    /// ON.
    pub on: Option<Condition>,
}

/// A name: how it is read, and which word it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Without quotes.
    pub text: String,
    /// The word.
    pub word: usize,
}

/// A column by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Database and table, or the table alone, or nothing.
    pub qualifier: Vec<Name>,
    /// Its own name.
    pub name: Name,
}

/// One of ORDER BY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// By what.
    pub column: Column,
    /// DESC.
    pub descending: bool,
}

/// What a comparison compares, and what a column of the answer is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A column.
    Column(Column),
    /// A literal or a parameter.
    Literal(Literal),
    /// COALESCE or IFNULL of several.
    Coalesce(Vec<Operand>),
    /// NOW(), and how far from it.
    Now,
}

impl Operand {
    /// Every column in it.
    #[must_use]
    pub fn columns(&self) -> Vec<&Column> {
        match self {
            Operand::Column(column) => vec![column],
            Operand::Coalesce(all) => all.iter().flat_map(Operand::columns).collect(),
            Operand::Literal(_) | Operand::Now => Vec::new(),
        }
    }
}

/// A literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Literal {
    /// Digits alone.
    Number(usize),
    /// Digits behind a minus.
    Negative(usize),
    /// Digits with a point between them.
    Decimal,
    /// A string.
    Text(usize),
    /// A parameter.
    Parameter(usize),
    /// TRUE or FALSE.
    Truth(bool),
    /// NULL.
    Null,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`, `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// A condition, and the words that it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What it says.
    pub is: Says,
    /// From which word to which.
    pub words: Range<usize>,
}

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// All of them.
    And(Vec<Condition>),
    /// One of them.
    Or(Vec<Condition>),
    /// Not this.
    Not(Box<Condition>),
    /// Two operands compared.
    Compare(Operand, Comparison, Operand),
    /// `(a, b) < (c, d)`.
    Pairs([Operand; 2], Comparison, [Operand; 2]),
    /// IS NULL; false: IS NOT NULL.
    Null(Operand, bool),
    /// BETWEEN; false: NOT BETWEEN.
    Between(Operand, Operand, Operand, bool),
    /// LIKE a literal; false: NOT LIKE.
    Like(Operand, Literal, bool),
    /// IN a list of literals; false: NOT IN.
    In(Operand, List, bool),
    /// IN the rows of a SELECT; false: NOT IN.
    InRows(Operand, Box<Rows>, bool),
    /// EXISTS.
    Exists(Box<Rows>),
    /// A column that is not 0.
    Truth(Column),
}

/// A list of literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum List {
    /// One word: see [`crate::words::Is::List`].
    Whole(usize),
    /// Each by itself.
    Each(Vec<Literal>),
}

/// A SELECT within a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Its columns: one, or any where it is asked only whether there is a row; literals and `*` are none then.
    pub columns: Vec<Column>,
    /// FROM.
    pub sources: Vec<Source>,
    /// WHERE.
    pub filter: Option<Condition>,
}
