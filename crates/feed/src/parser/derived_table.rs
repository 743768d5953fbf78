//! A page of a SELECT in FROM, or of a UNION: `SELECT d.a FROM (SELECT m.a AS a FROM m WHERE ...) d ORDER BY d.a DESC LIMIT 20`, as ORMs request the ids
//! of a page. It is read as the inner SELECT with the outer one's columns, order and limit. The inner one has no order or limit.

use super::word_reader::WordReader;
use crate::query::{
    BranchPage, ColumnReference, DerivedNames, FeedSelect, Literal, Operand, OrderKey,
    SelectCondition, SelectItem, SqlIdentifier, TableReference,
};
use crate::refusal::NarrowingRefusal;

/// The SELECT in FROM, or the SELECTs of a UNION.
pub(super) struct DerivedTable {
    branches: Vec<Branch>,
    /// The SELECTs are joined by UNION, which makes equal rows one.
    is_distinct: bool,
    /// A UNION without a SELECT around it has none.
    alias: Option<SqlIdentifier>,
}

/// One SELECT.
struct Branch {
    columns: BranchColumns,
    sources: Vec<TableReference>,
    filter: Option<(usize, SelectCondition)>,
    /// The word after it.
    end: usize,
    page: Option<BranchPage>,
}

/// The columns of a SELECT.
enum BranchColumns {
    Named(Vec<(String, Operand)>),
    /// Those of all of its tables, or of this one.
    Whole(SelectItem),
}

impl WordReader<'_> {
    /// The SELECT in FROM, if FROM has nothing else.
    pub(super) fn derived(&mut self) -> Result<Option<DerivedTable>, NarrowingRefusal> {
        let start = self.position();
        let is_select = self.take_punct(b'(') && (self.is_next("SELECT") || self.begins_select());
        if !is_select {
            self.rewind(start);
            return Ok(None);
        }
        match self.nested(WordReader::selects_in_from) {
            // It has more than can be read through.
            Err(NarrowingRefusal::NotUnderstood) => Err(NarrowingRefusal::Structure),
            read => read.map(Some),
        }
    }

    fn selects_in_from(&mut self) -> Result<DerivedTable, NarrowingRefusal> {
        let (branches, is_distinct) = self.branches()?;
        if !self.take_punct(b')') {
            return Err(NarrowingRefusal::Structure);
        }
        let alias = self.optional_alias()?.ok_or(NarrowingRefusal::Structure)?;
        if !(self.is_next("ORDER") || self.is_next("LIMIT") || self.is_at_end()) {
            return Err(NarrowingRefusal::Structure);
        }
        Ok(DerivedTable {
            branches,
            is_distinct,
            alias: Some(alias),
        })
    }

    /// The SELECTs of a UNION without another around them, if the statement is one.
    pub(super) fn union(&mut self) -> Result<Option<DerivedTable>, NarrowingRefusal> {
        let start = self.position();
        let is_in_parentheses = self.begins_select();
        if !is_in_parentheses && !self.has_keyword("UNION") {
            return Ok(None);
        }
        match self.branches() {
            Ok((branches, is_distinct)) if branches.len() > 1 => Ok(Some(DerivedTable {
                branches,
                is_distinct,
                alias: None,
            })),
            Err(why) if is_in_parentheses => Err(why),
            _ => {
                self.rewind(start);
                Ok(None)
            }
        }
    }

    /// SELECTs joined by UNION; true if it makes equal rows one.
    fn branches(&mut self) -> Result<(Vec<Branch>, bool), NarrowingRefusal> {
        let mut branches = vec![self.branch()?];
        let mut is_distinct = None;
        while self.take_keyword("UNION") {
            let keeps_all = self.take_keyword("ALL");
            if !keeps_all {
                self.take_keyword("DISTINCT");
            }
            if *is_distinct.get_or_insert(!keeps_all) == keeps_all {
                return Err(NarrowingRefusal::Structure);
            }
            branches.push(self.branch()?);
        }
        Ok((branches, is_distinct.unwrap_or(false)))
    }

    fn branch(&mut self) -> Result<Branch, NarrowingRefusal> {
        let is_in_parentheses = self.take_punct(b'(');
        self.expect_keyword("SELECT")?;
        if self.is_next("DISTINCT") || self.is_next("DISTINCTROW") {
            return Err(NarrowingRefusal::Structure);
        }
        self.take_keyword("ALL");
        let mut items = self.separated(WordReader::item)?;
        let columns = match items.as_slice() {
            [SelectItem::All | SelectItem::AllOf(_)] => items.pop().map(BranchColumns::Whole),
            _ => {
                let columns: Option<Vec<_>> = items.into_iter().map(derived_column).collect();
                columns.map(BranchColumns::Named)
            }
        };
        let columns = columns.ok_or(NarrowingRefusal::Structure)?;
        self.expect_keyword("FROM")?;
        let sources = self.table_references()?;
        let filter = self.filter()?;
        let end = self.position();
        let mut page = None;
        if is_in_parentheses {
            if self.take_keyword("ORDER") {
                self.expect_keyword("BY")?;
                let order = self.separated(WordReader::order_key)?;
                let order_end = self.position();
                self.expect_keyword("LIMIT")?;
                page = Some(BranchPage {
                    items: columns.items(),
                    order,
                    order_end,
                    limit: self.row_count()?,
                });
            }
            self.expect_punct(b')')?;
        }
        Ok(Branch {
            columns,
            sources,
            filter,
            end,
            page,
        })
    }
}

/// A column of the inner SELECT: its name and operand. `None`: `*`, a parameter, or a column without a name.
fn derived_column(item: SelectItem) -> Option<(String, Operand)> {
    match item {
        SelectItem::Operand(Operand::Literal(Literal::Parameter(_)) | Operand::Count(_), _) => None,
        SelectItem::Operand(operand, _) if operand.has_subquery() => None,
        SelectItem::Operand(operand, Some(name)) => Some((name.text, operand)),
        SelectItem::Operand(Operand::Column(column), None) => {
            Some((column.name.text.clone(), Operand::Column(column)))
        }
        _ => None,
    }
}

impl DerivedTable {
    /// The outer SELECT, in the columns and tables of each inner one.
    pub(super) fn read_through(self, outer: FeedSelect) -> Result<FeedSelect, NarrowingRefusal> {
        let first = self.branches.first().ok_or(NarrowingRefusal::Structure)?;
        let names: Option<Vec<String>> = match &first.columns {
            BranchColumns::Named(columns) => {
                Some(columns.iter().map(|(name, _)| name.clone()).collect())
            }
            BranchColumns::Whole(_) => None,
        };
        let is_union = self.branches.len() > 1;
        let mut selects = Vec::with_capacity(self.branches.len());
        for branch in self.branches {
            let columns = branch.columns.renamed(names.as_deref())?;
            let derived = DerivedColumns {
                columns: &columns,
                alias: self.alias.as_ref(),
            };
            let items = derived.items(outer.items.clone())?;
            let order = derived.order(outer.order.clone(), &items)?;
            selects.push(FeedSelect {
                distinct: outer.distinct || self.is_distinct,
                order,
                derived_items: columns.items(),
                derived_names: Some(DerivedNames {
                    alias: self.alias.as_ref().map(|alias| alias.word),
                    columns: names.clone(),
                }),
                // What is not shown still tells rows apart.
                items: match self.is_distinct {
                    true => columns.items(),
                    false => items,
                },
                sources: branch.sources,
                filter: branch.filter,
                filter_end: branch.end,
                branch_page: branch.page,
                ..outer.clone()
            });
        }
        // Equal rows of two SELECTs come in any order.
        if is_union && outer.distinct {
            return Err(NarrowingRefusal::Structure);
        }
        let mut first = selects.remove(0);
        first.union = selects;
        Ok(first)
    }
}

impl BranchColumns {
    /// The columns by the names that the first SELECT of a UNION gives them.
    fn renamed(self, names: Option<&[String]>) -> Result<BranchColumns, NarrowingRefusal> {
        match (self, names) {
            (BranchColumns::Named(columns), Some(names)) if columns.len() == names.len() => {
                let operands = columns.into_iter().map(|(_, operand)| operand);
                Ok(BranchColumns::Named(
                    names.iter().cloned().zip(operands).collect(),
                ))
            }
            (whole @ BranchColumns::Whole(_), None) => Ok(whole),
            _ => Err(NarrowingRefusal::Structure),
        }
    }

    fn items(&self) -> Vec<SelectItem> {
        match self {
            BranchColumns::Whole(item) => vec![item.clone()],
            BranchColumns::Named(columns) => {
                let named = |(name, operand): &(String, Operand)| {
                    let text = name.clone();
                    SelectItem::Operand(operand.clone(), Some(SqlIdentifier { text, word: 0 }))
                };
                columns.iter().map(named).collect()
            }
        }
    }
}

/// The columns of one inner SELECT, as the outer one names them.
struct DerivedColumns<'a> {
    columns: &'a BranchColumns,
    alias: Option<&'a SqlIdentifier>,
}

impl DerivedColumns<'_> {
    /// The outer SELECT's columns, in the inner one's.
    fn items(&self, outer: Vec<SelectItem>) -> Result<Vec<SelectItem>, NarrowingRefusal> {
        let each = outer.into_iter().map(|item| match item {
            SelectItem::All => Ok(self.columns.items()),
            SelectItem::Operand(Operand::Column(column), alias) => {
                let inner = self.resolve(&column)?;
                let name = alias.unwrap_or(column.name);
                Ok(vec![SelectItem::Operand(inner, Some(name))])
            }
            _ => Err(NarrowingRefusal::Structure),
        });
        let items: Vec<Vec<SelectItem>> = each.collect::<Result<_, _>>()?;
        Ok(items.into_iter().flatten().collect())
    }

    /// ORDER BY. `items`: the result of [`DerivedTable::items`].
    fn order(
        &self,
        outer: Vec<OrderKey>,
        items: &[SelectItem],
    ) -> Result<Vec<OrderKey>, NarrowingRefusal> {
        let each = outer.into_iter().map(|key| {
            // A name without a table may be an alias of the reply: then both have to be the same column.
            let aliased = items.iter().filter_map(|item| match item {
                SelectItem::Operand(operand, Some(name))
                    if key.column.qualifier.is_empty()
                        && name.text.eq_ignore_ascii_case(&key.column.name.text) =>
                {
                    Some(operand)
                }
                _ => None,
            });
            let mut operands: Vec<Operand> = aliased.cloned().collect();
            if self.has_column(&key.column.name.text) || operands.is_empty() {
                operands.push(self.resolve(&key.column)?);
            }
            match operands.split_first() {
                Some((Operand::Column(first), others))
                    if others.iter().all(|other| is_same_column(other, first)) =>
                {
                    Ok(OrderKey {
                        column: first.clone(),
                        descending: key.descending,
                        is_extreme: key.is_extreme,
                        is_null: key.is_null,
                    })
                }
                _ => Err(NarrowingRefusal::Order),
            }
        });
        each.collect()
    }

    fn has_column(&self, name: &str) -> bool {
        match self.columns {
            BranchColumns::Named(columns) => columns
                .iter()
                .any(|(own, _)| own.eq_ignore_ascii_case(name)),
            BranchColumns::Whole(_) => true,
        }
    }

    fn resolve(&self, column: &ColumnReference) -> Result<Operand, NarrowingRefusal> {
        let matches_alias = match column.qualifier.as_slice() {
            [] => true,
            [table] => self.alias.is_some_and(|alias| table.text == alias.text),
            _ => false,
        };
        if !matches_alias {
            return Err(NarrowingRefusal::Names);
        }
        let columns = match self.columns {
            BranchColumns::Named(columns) => columns,
            BranchColumns::Whole(item) => {
                let qualifier = match item {
                    SelectItem::AllOf(qualifier) => qualifier.clone(),
                    _ => Vec::new(),
                };
                let name = column.name.clone();
                return Ok(Operand::Column(ColumnReference { qualifier, name }));
            }
        };
        let named = |(name, _): &&(String, Operand)| name.eq_ignore_ascii_case(&column.name.text);
        let mut matching = columns.iter().filter(named);
        match (matching.next(), matching.next()) {
            (Some((_, operand)), None) => Ok(operand.clone()),
            _ => Err(NarrowingRefusal::Names),
        }
    }
}

/// True if an operand is this column, written alike.
fn is_same_column(operand: &Operand, column: &ColumnReference) -> bool {
    let texts = |column: &ColumnReference| -> Vec<String> {
        let names = column.qualifier.iter().chain([&column.name]);
        names.map(|name| name.text.clone()).collect()
    };
    matches!(operand, Operand::Column(other) if texts(other) == texts(column))
}
