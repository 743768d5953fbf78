//! A SELECT as parsed. Positions are indexes of words.

use std::ops::Range;

/// A SELECT with an order and a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSelect {
    /// DISTINCT.
    pub distinct: bool,
    /// The columns.
    pub items: Vec<SelectItem>,
    /// FROM, in order; the first table is joined to nothing.
    pub sources: Vec<TableReference>,
    /// WHERE: the word, and its condition.
    pub filter: Option<(usize, SelectCondition)>,
    /// The word GROUP, or else ORDER, where the part before it ends.
    pub filter_end: usize,
    /// GROUP BY.
    pub group: Vec<ColumnReference>,
    /// ORDER BY.
    pub order: Vec<OrderKey>,
    /// The word LIMIT, where ORDER BY ends.
    pub order_end: usize,
    /// The number of LIMIT.
    pub limit: usize,
    /// The number of OFFSET, if there is one.
    pub offset: Option<usize>,
    /// The columns of the SELECT in FROM, where there is one; `items` is resolved to them.
    pub derived_items: Vec<SelectItem>,
}

/// A column of the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectItem {
    /// `*`.
    All,
    /// `t.*`, `db.t.*`.
    AllOf(Vec<SqlIdentifier>),
    /// An operand, and its alias.
    Operand(Operand, Option<SqlIdentifier>),
}

/// A table in FROM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReference {
    /// The database that qualifies it.
    pub database: Option<SqlIdentifier>,
    /// The table.
    pub table: SqlIdentifier,
    /// The alias.
    pub alias: Option<SqlIdentifier>,
    /// The LEFT JOIN on whose nullable side it is: the position in FROM of the first table there.
    pub outer: Option<usize>,
    /// ON. The one of a LEFT JOIN stands at the first table of its nullable side.
    pub on: Option<SelectCondition>,
}

/// A name, and the word that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlIdentifier {
    /// Without quotes.
    pub text: String,
    /// The index of the word.
    pub word: usize,
}

/// A reference to a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnReference {
    /// Database and table, or the table alone, or nothing.
    pub qualifier: Vec<SqlIdentifier>,
    /// The column's name.
    pub name: SqlIdentifier,
}

/// One key of ORDER BY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderKey {
    /// The column.
    pub column: ColumnReference,
    /// DESC.
    pub descending: bool,
}

/// An operand of a comparison, or a column of the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A column.
    Column(ColumnReference),
    /// A literal or a parameter.
    Literal(Literal),
    /// COALESCE or IFNULL of several.
    Coalesce(Vec<Operand>),
    /// NOW(), with or without an INTERVAL.
    Now,
    /// COUNT of the rows of a group, or of those with a value in this column.
    Count(Option<ColumnReference>),
}

impl Operand {
    /// Every column that the operand names.
    #[must_use]
    pub fn columns(&self) -> Vec<&ColumnReference> {
        match self {
            Operand::Column(column) => vec![column],
            Operand::Coalesce(all) => all.iter().flat_map(Operand::columns).collect(),
            // What a count reads is in no row of the reply.
            Operand::Literal(_) | Operand::Now | Operand::Count(_) => Vec::new(),
        }
    }
}

/// A literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Literal {
    /// Digits alone.
    Number(usize),
    /// Digits after a minus.
    Negative(usize),
    /// Digits with a decimal point.
    Decimal,
    /// A string.
    Text(usize),
    /// The string in `TIMESTAMP('...')`.
    Moment(usize),
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

/// A condition and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectCondition {
    /// What it states.
    pub kind: ConditionKind,
    /// The range of its words.
    pub words: Range<usize>,
}

/// What a condition states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionKind {
    /// All of them.
    And(Vec<SelectCondition>),
    /// Any of them.
    Or(Vec<SelectCondition>),
    /// The negation.
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
    /// Several literals.
    Each(Vec<Literal>),
}

/// A SELECT within a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subquery {
    /// Its columns: one for IN, any number for EXISTS, where literals and `*` are left out.
    pub columns: Vec<ColumnReference>,
    /// FROM.
    pub sources: Vec<TableReference>,
    /// WHERE.
    pub filter: Option<SelectCondition>,
}
