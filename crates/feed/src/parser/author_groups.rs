//! A SELECT with a row for each author: `SELECT author, COUNT(*), MAX(id) ... GROUP BY author`, with or without an order and a limit.

use super::word_reader::WordReader;
use crate::query::{AuthorGroups, ColumnReference, FeedSelect, GroupItem, GroupOperand};
use crate::refusal::NarrowingRefusal;

impl WordReader<'_> {
    /// The whole statement.
    pub(super) fn author_groups(&mut self) -> Result<FeedSelect, NarrowingRefusal> {
        self.expect_keyword("SELECT")?;
        let items = self.separated(|reader| {
            Ok(GroupItem {
                operand: reader.group_operand()?,
                alias: reader.column_alias()?,
            })
        })?;
        let is_column = |item: &GroupItem| matches!(item.operand, GroupOperand::Column(_));
        if items.iter().all(is_column) {
            return Err(NarrowingRefusal::Structure);
        }
        let (from, rows, author) = self.grouped_rows()?;
        let mut order = Vec::new();
        if self.take_keyword("ORDER") {
            self.expect_keyword("BY")?;
            // Without an order of its own.
            if !self.take_keyword("NULL") {
                order = self.separated(|reader| {
                    let operand = reader.group_operand()?;
                    Ok((operand, reader.is_descending()))
                })?;
            }
        }
        let (limit, offset) = self.limit_if_next()?;
        Ok(FeedSelect {
            limit,
            offset,
            author_groups: Some(Box::new(AuthorGroups {
                from,
                author,
                items,
                order,
            })),
            ..rows
        })
    }

    /// `FROM ... WHERE ... GROUP BY author`: the word FROM, what follows it, and the author.
    pub(super) fn grouped_rows(
        &mut self,
    ) -> Result<(usize, FeedSelect, ColumnReference), NarrowingRefusal> {
        let from = self.position();
        self.expect_keyword("FROM")?;
        let rows = self.tables_and_filter()?;
        match self.group()?.as_slice() {
            [author] => Ok((from, rows, author.clone())),
            _ => Err(NarrowingRefusal::Grouped),
        }
    }

    /// A column, `COUNT(*)`, `COUNT(column)` or `MAX(column)`.
    fn group_operand(&mut self) -> Result<GroupOperand, NarrowingRefusal> {
        if self.is_next("MAX") && self.is_call() {
            return Ok(GroupOperand::Largest(self.maximum()?));
        }
        if self.is_next("COUNT") && self.is_call() {
            return Ok(GroupOperand::Count(self.counted_column()?));
        }
        Ok(GroupOperand::Column(self.column()?))
    }
}
