//! A SELECT as parsed. Positions are indexes of words.

use std::ops::Range;

use crate::plain_functions::PlainFunction;

/// A SELECT with an order and a limit, or of messages that it names by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedSelect {
    /// DISTINCT.
    pub distinct: bool,
    /// The columns.
    pub items: Vec<SelectItem>,
    /// FROM, in order; the first table is joined to nothing.
    pub sources: Vec<TableReference>,
    /// WHERE: the word, and its condition.
    pub filter: Option<(usize, SelectCondition)>,
    /// The word GROUP, or else ORDER, where the part before it ends; without either, the word after WHERE's condition.
    pub filter_end: usize,
    /// GROUP BY.
    pub group: Vec<ColumnReference>,
    /// ORDER BY.
    pub order: Vec<OrderKey>,
    /// The word LIMIT, where ORDER BY ends.
    pub order_end: usize,
    /// The number of LIMIT; `None`: it has no limit.
    pub limit: Option<usize>,
    /// The number of OFFSET, if there is one.
    pub offset: Option<usize>,
    /// The columns of the SELECT in FROM, where there is one; `items` is resolved to them.
    pub derived_items: Vec<SelectItem>,
    /// The names that an outer ORDER BY has for the columns of that SELECT, or of a UNION.
    pub derived_names: Option<DerivedNames>,
    /// The other SELECTs of a UNION: with the same columns, order and limit.
    pub union: Vec<FeedSelect>,
    /// The order and limit of its own that a SELECT of a UNION has.
    pub branch_page: Option<BranchPage>,
    /// What SELECTs in its joins show.
    pub inner_columns: Vec<ColumnReference>,
    /// The SELECT around it.
    pub outer: Option<Box<OuterSelect>>,
    /// Its rows are counted: it has no limit.
    pub count: Option<MessageCount>,
    /// What selects its messages.
    pub selection: MessageSelection,
    /// It reads this SELECT, which names the newest message of each author.
    pub newest: Option<Box<NewestSelect>>,
    /// It has a row for each author.
    pub author_groups: Option<Box<AuthorGroups>>,
}

impl FeedSelect {
    /// True if it has a row for each author, and cannot be a page that groups by message.
    pub(crate) fn has_groups_only(&self) -> bool {
        self.author_groups.is_some() && self.order.is_empty()
    }
}

/// What selects the messages of a SELECT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MessageSelection {
    /// Their authors.
    #[default]
    Authors,
    /// Their ids.
    Ids(LiteralList),
    /// They are the newest of their authors, by these words, on which no row depends.
    Newest(Range<usize>),
}

/// A SELECT that names the newest message of each author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestSelect {
    /// FROM and WHERE.
    pub rows: FeedSelect,
    /// The word FROM.
    pub from: usize,
    /// The author's column.
    pub author: ColumnReference,
    /// The id's column.
    pub id: ColumnReference,
    /// What it shows of the messages.
    pub form: NewestForm,
    /// Its words.
    pub words: Range<usize>,
}

/// How a SELECT names the newest message of each author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewestForm {
    /// `SELECT author, MAX(id) ... GROUP BY author`.
    Grouped {
        /// The columns, in order: true for the id's.
        items: Vec<(bool, Option<SqlIdentifier>)>,
    },
    /// `SELECT *, ROW_NUMBER() OVER (PARTITION BY author ORDER BY id DESC) AS n`, of which the first are read.
    Ranked {
        /// The message's columns.
        items: Vec<SelectItem>,
        /// The rank's name.
        rank: String,
    },
}

/// What is shown of messages, instead of their rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateFunction {
    /// `COUNT(*)`.
    Count,
    /// `MAX(id)`: the newest message.
    Newest,
    /// `EXISTS (SELECT ...)`: whether there is any.
    Exists {
        /// The word of LIMIT's number.
        limit: Option<usize>,
    },
    /// `SELECT 1 ... LIMIT 1`: a row if there is any. The words of the two numbers.
    AnyRow {
        /// The one that is shown.
        shown: usize,
        /// LIMIT's.
        limit: usize,
    },
    /// `MAX(created_at)`, or a maximum beside the count.
    Largest(LargestValue),
}

/// The largest value of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargestValue {
    /// The word of the column's name.
    pub name: usize,
    /// What its values are.
    pub kind: LargestKind,
    /// What is shown.
    pub columns: LargestColumns,
}

/// What the values of a column are of which the largest is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LargestKind {
    /// Ids of messages.
    Id,
    /// Dates, with these fraction digits.
    Moment {
        /// How many.
        digits: u8,
        /// They are shown in the session's time zone.
        is_zoned: bool,
    },
}

/// The columns of a SELECT that shows the largest value of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LargestColumns {
    /// The value.
    Value,
    /// How many messages there are, and the value.
    CountAndValue,
    /// The value, and how many messages there are.
    ValueAndCount,
}

impl LargestColumns {
    /// How many they are.
    #[must_use]
    pub fn number(self) -> usize {
        match self {
            LargestColumns::Value => 1,
            LargestColumns::CountAndValue | LargestColumns::ValueAndCount => 2,
        }
    }
}

/// What a SELECT with a row for each author shows: `SELECT author, COUNT(*), MAX(id) ... GROUP BY author`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorGroups {
    /// The word FROM.
    pub from: usize,
    /// The author's column.
    pub author: ColumnReference,
    /// The columns of the reply.
    pub items: Vec<GroupItem>,
    /// ORDER BY: each key, and whether it is descending.
    pub order: Vec<(GroupOperand, bool)>,
}

/// A column of a reply with a row for each author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupItem {
    /// What it shows.
    pub operand: GroupOperand,
    /// Its alias.
    pub alias: Option<SqlIdentifier>,
}

/// A value that each group has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupOperand {
    /// A column, which is to be the author's; in ORDER BY it may be an alias.
    Column(ColumnReference),
    /// `COUNT(*)`, or `COUNT(column)`.
    Count(Option<ColumnReference>),
    /// `MAX(column)`.
    Largest(ColumnReference),
}

/// A count of a SELECT's rows, or another aggregate of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageCount {
    /// The aggregate.
    pub function: AggregateFunction,
    /// The word FROM of that SELECT.
    pub from: usize,
    /// COUNT counts its only column.
    pub of_column: bool,
    /// Each edge to an author counts the author's messages once.
    pub copies: bool,
}

impl MessageCount {
    /// An aggregate of the rows of the SELECT with this word FROM.
    pub(crate) fn new(function: AggregateFunction, from: usize) -> MessageCount {
        MessageCount {
            function,
            from,
            of_column: false,
            copies: false,
        }
    }
}

impl OrderKey {
    /// `column DESC`.
    pub(crate) fn descending(column: ColumnReference) -> OrderKey {
        OrderKey {
            column,
            descending: true,
            is_extreme: false,
            is_null: false,
        }
    }
}

/// The names of a derived table's columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedNames {
    /// The word of its alias; the SELECTs of a UNION have none.
    pub alias: Option<usize>,
    /// The names of its columns. `None`: those of the tables that it shows whole.
    pub columns: Option<Vec<String>>,
}

/// The order and limit of one SELECT of a UNION.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchPage {
    /// The columns by the names that this SELECT gives them.
    pub items: Vec<SelectItem>,
    /// ORDER BY.
    pub order: Vec<OrderKey>,
    /// The word LIMIT.
    pub order_end: usize,
    /// The number of LIMIT.
    pub limit: usize,
}

/// A SELECT that reads a page of a feed: in FROM, in IN, or by WITH. It has a row only if the page has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OuterSelect {
    /// DISTINCT.
    pub distinct: bool,
    /// GROUP BY.
    pub group: Vec<ColumnReference>,
    /// The columns.
    pub items: Vec<SelectItem>,
    /// FROM.
    pub sources: Vec<TableReference>,
    /// WHERE.
    pub filter: Option<SelectCondition>,
    /// ORDER BY.
    pub order: Vec<OrderKey>,
    /// The word after ORDER BY.
    pub order_end: usize,
    /// The page's word FROM.
    pub page_from: usize,
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

impl SelectItem {
    /// True for COUNT, which makes rows one.
    #[must_use]
    pub fn is_count(&self) -> bool {
        matches!(self, SelectItem::Operand(Operand::Count(_), _))
    }

    /// True if it is computed: neither a column nor a literal.
    #[must_use]
    pub fn is_computed(&self) -> bool {
        matches!(self, SelectItem::Operand(operand, _)
            if !matches!(operand, Operand::Column(_) | Operand::Literal(_)))
    }
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
    /// It is the page of a feed, a SELECT of its own.
    pub is_page: bool,
    /// It is joined by USING, which is read as ON.
    pub is_using: bool,
    /// It stands in a SELECT in FROM, which is read as a join.
    pub is_flattened: bool,
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
    /// MIN or MAX of the column, in the group of a row.
    pub is_extreme: bool,
    /// Whether the column is NULL.
    pub is_null: bool,
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
    /// A function of [`crate::plain_functions`].
    Function(&'static PlainFunction, Vec<Operand>),
    /// CASE WHEN: its branches, and ELSE.
    Case(Vec<(SelectCondition, Operand)>, Option<Box<Operand>>),
    /// A SELECT of one value.
    Subquery(Box<ScalarSubquery>),
    /// A condition as a value: 1, 0 or NULL.
    Condition(Box<SelectCondition>),
}

/// A SELECT of one value in parentheses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalarSubquery {
    /// What it makes of its rows.
    pub value: ScalarValue,
    /// Its rows. The first column, if there is one, is what the value is made of.
    pub rows: Subquery,
}

/// What a SELECT of one value makes of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarValue {
    /// Their number.
    Count,
    /// MIN or MAX of the column.
    Extreme,
    /// SUM of the column.
    Sum,
    /// The column of the only row.
    Row,
    /// The column of the first row: LIMIT 1.
    FirstRow,
}

impl Operand {
    /// Every column that the operand names.
    #[must_use]
    pub fn columns(&self) -> Vec<&ColumnReference> {
        match self {
            Operand::Column(column) => vec![column],
            Operand::Coalesce(all) => all.iter().flat_map(Operand::columns).collect(),
            Operand::Function(_, arguments) => {
                arguments.iter().flat_map(Operand::columns).collect()
            }
            Operand::Case(branches, otherwise) => {
                let mut columns = Vec::new();
                for (condition, value) in branches {
                    visit_columns(condition, &mut |column| columns.push(column));
                    columns.extend(value.columns());
                }
                columns.extend(otherwise.iter().flat_map(|value| value.columns()));
                columns
            }
            Operand::Condition(condition) => {
                let mut columns = Vec::new();
                visit_columns(condition, &mut |column| columns.push(column));
                columns
            }
            // What a count or a subquery reads is in no row of the reply.
            Operand::Literal(_) | Operand::Now | Operand::Count(_) | Operand::Subquery(_) => {
                Vec::new()
            }
        }
    }

    /// Visits every subquery that the operand has, without those within them.
    pub fn visit_subqueries<'q>(&'q self, each: &mut dyn FnMut(&'q Subquery)) {
        match self {
            Operand::Coalesce(all) | Operand::Function(_, all) => {
                all.iter().for_each(|one| one.visit_subqueries(each))
            }
            Operand::Case(branches, otherwise) => {
                for (condition, value) in branches {
                    condition.visit_subqueries(each);
                    value.visit_subqueries(each);
                }
                otherwise.iter().for_each(|one| one.visit_subqueries(each));
            }
            Operand::Condition(condition) => condition.visit_subqueries(each),
            Operand::Subquery(select) => each(&select.rows),
            Operand::Column(_) | Operand::Literal(_) | Operand::Now | Operand::Count(_) => {}
        }
    }

    /// True if it has a subquery.
    #[must_use]
    pub fn has_subquery(&self) -> bool {
        let mut has = false;
        self.visit_subqueries(&mut |_| has = true);
        has
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
    /// `<=>`
    NullSafeEqual,
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
    /// IS TRUE, IS FALSE; the last: IS, or IS NOT.
    IsTruth(Operand, bool, bool),
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

impl SelectCondition {
    /// Both conditions.
    #[must_use]
    pub fn and(self, other: SelectCondition) -> SelectCondition {
        let words = self.words.clone();
        SelectCondition {
            kind: ConditionKind::And(vec![self, other]),
            words,
        }
    }

    /// The operands that it compares, without those of its parts.
    #[must_use]
    pub fn operands(&self) -> Vec<&Operand> {
        match &self.kind {
            ConditionKind::Compare(left, _, right) => vec![left, right],
            ConditionKind::ComparePairs([a, b], _, [c, d]) => vec![a, b, c, d],
            ConditionKind::Between(operand, from, to, _) => vec![operand, from, to],
            ConditionKind::Null(operand, _)
            | ConditionKind::IsTruth(operand, ..)
            | ConditionKind::Like(operand, ..)
            | ConditionKind::InSubquery(operand, ..)
            | ConditionKind::In(operand, ..) => vec![operand],
            ConditionKind::And(_)
            | ConditionKind::Or(_)
            | ConditionKind::Not(_)
            | ConditionKind::Truth(_)
            | ConditionKind::Exists(_) => Vec::new(),
        }
    }

    /// The conditions that it is made of.
    #[must_use]
    pub fn parts(&self) -> &[SelectCondition] {
        match &self.kind {
            ConditionKind::And(parts) | ConditionKind::Or(parts) => parts,
            ConditionKind::Not(part) => std::slice::from_ref(part),
            _ => &[],
        }
    }

    /// Visits every column of the condition and of all subqueries in it.
    pub fn visit_all_columns<'q>(&'q self, each: &mut dyn FnMut(&'q ColumnReference)) {
        let mut own = |column: &'q ColumnReference| each(column);
        visit_columns(self, &mut own);
        self.visit_in_operands(each);
        self.visit_subqueries(&mut |rows| {
            rows.columns.iter().for_each(&mut *each);
            let on = rows.sources.iter().filter_map(|source| source.on.as_ref());
            for condition in on.chain(&rows.filter) {
                condition.visit_all_columns(each);
            }
        });
    }

    /// The columns before IN and a SELECT.
    fn visit_in_operands<'q>(&'q self, each: &mut dyn FnMut(&'q ColumnReference)) {
        self.parts()
            .iter()
            .for_each(|part| part.visit_in_operands(each));
        if let ConditionKind::InSubquery(operand, ..) = &self.kind {
            operand.columns().into_iter().for_each(each);
        }
    }

    /// Visits every subquery of the condition, without those within them.
    pub fn visit_subqueries<'q>(&'q self, each: &mut dyn FnMut(&'q Subquery)) {
        self.parts()
            .iter()
            .for_each(|part| part.visit_subqueries(each));
        self.operands()
            .into_iter()
            .for_each(|operand| operand.visit_subqueries(each));
        if let ConditionKind::InSubquery(_, rows, _) | ConditionKind::Exists(rows) = &self.kind {
            each(rows);
        }
    }
}

/// Visits every column of a condition, without its subqueries.
pub(crate) fn visit_columns<'q>(
    condition: &'q SelectCondition,
    each: &mut impl FnMut(&'q ColumnReference),
) {
    for part in condition.parts() {
        visit_columns(part, each);
    }
    match &condition.kind {
        ConditionKind::Truth(column) => each(column),
        // Its operand belongs to the subquery's test.
        ConditionKind::InSubquery(..) => {}
        _ => {
            let operands = condition.operands().into_iter();
            operands.flat_map(Operand::columns).for_each(each);
        }
    }
}
