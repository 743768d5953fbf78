//! A SELECT that was read by the grammar: what stands where. Words are told by their number.

use std::ops::Range;

/// A SELECT with an order and a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSelect {
    /// DISTINCT.
    pub distinct: bool,
    /// The columns.
    pub items: Vec<SelectItem>,
    /// FROM, in order; the first is joined to nothing.
    pub sources: Vec<TableReference>,
    /// WHERE: the word, and its condition.
    pub filter: Option<(usize, SelectCondition)>,
    /// The word GROUP, or else ORDER: what stands before it ends there.
    pub filter_end: usize,
    /// GROUP BY.
    pub group: Vec<ColumnReference>,
    /// ORDER BY.
    pub order: Vec<OrderKey>,
    /// LIMIT.
    pub limit: usize,
    /// OFFSET, where there is one.
    pub offset: Option<usize>,
    /// The columns of the SELECT in FROM, where it is read through one; `items` is told by them.
    pub derived_items: Vec<SelectItem>,
}

/// A column of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectItem {
    /// `*`.
    All,
    /// `t.*`, `db.t.*`.
    AllOf(Vec<SqlIdentifier>),
    /// An operand, and the name that it is given.
    Operand(Operand, Option<SqlIdentifier>),
}

/// A table in FROM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReference {
    /// The database in front.
    pub database: Option<SqlIdentifier>,
    /// The table.
    pub table: SqlIdentifier,
    /// The name that it is given.
    pub alias: Option<SqlIdentifier>,
    /// It is on the nullable side of a LEFT JOIN.
    pub outer: bool,
    /// ON.
    pub on: Option<SelectCondition>,
}

/// A name: how it is read, and which word it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlIdentifier {
    /// Without quotes.
    pub text: String,
    /// The word.
    pub word: usize,
}

/// A column by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnReference {
    /// Database and table, or the table alone, or nothing.
    pub qualifier: Vec<SqlIdentifier>,
    /// Its own name.
    pub name: SqlIdentifier,
}

/// One of ORDER BY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderKey {
    /// By what.
    pub column: ColumnReference,
    /// DESC.
    pub descending: bool,
}

/// What a comparison compares, and what a column of the answer is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A column.
    Column(ColumnReference),
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
    pub fn columns(&self) -> Vec<&ColumnReference> {
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
pub enum ComparisonOperator {
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
pub struct SelectCondition {
    /// What it says.
    pub kind: ConditionKind,
    /// From which word to which.
    pub words: Range<usize>,
}

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionKind {
    /// All of them.
    And(Vec<SelectCondition>),
    /// One of them.
    Or(Vec<SelectCondition>),
    /// Not this.
    Not(Box<SelectCondition>),
    /// Two operands compared.
    Compare(Operand, ComparisonOperator, Operand),
    /// `(a, b) < (c, d)`.
    ComparePairs([Operand; 2], ComparisonOperator, [Operand; 2]),
    /// IS NULL; false: IS NOT NULL.
    Null(Operand, bool),
    /// BETWEEN; false: NOT BETWEEN.
    Between(Operand, Operand, Operand, bool),
    /// LIKE a literal; false: NOT LIKE.
    Like(Operand, Literal, bool),
    /// IN a list of literals; false: NOT IN.
    In(Operand, LiteralList, bool),
    /// IN the rows of a SELECT; false: NOT IN.
    InSubquery(Operand, Box<Subquery>, bool),
    /// EXISTS.
    Exists(Box<Subquery>),
    /// A column that is not 0.
    Truth(ColumnReference),
}

/// A list of literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiteralList {
    /// One word: see [`crate::words::WordKind::List`].
    Whole(usize),
    /// Each by itself.
    Each(Vec<Literal>),
}

/// A SELECT within a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subquery {
    /// Its columns: one, or any where it is asked only whether there is a row; literals and `*` are none then.
    pub columns: Vec<ColumnReference>,
    /// FROM.
    pub sources: Vec<TableReference>,
    /// WHERE.
    pub filter: Option<SelectCondition>,
}
