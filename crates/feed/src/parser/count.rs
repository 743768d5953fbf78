//! A count of messages: `SELECT COUNT(*) FROM m WHERE ...`, or of the rows of a SELECT in FROM, as paginators write it; or whether there is
//! any (`SELECT EXISTS (...)`, `SELECT 1 ... LIMIT 1`), or the largest value of a column (`SELECT MAX(id) ...`), with or without their count. It
//! is read as the SELECT whose rows are counted, without an order or a limit.

use super::word_reader::WordReader;
use crate::query::{
    AggregateFunction, ColumnReference, FeedSelect, LargestColumns, LargestKind, LargestValue,
    MessageCount, Operand, SelectItem,
};
use crate::refusal::NarrowingRefusal;
use crate::words::WordKind;
use headwater_sql::page_words::AGGREGATES;

/// What COUNT counts.
enum CountArgument {
    /// `*`, or a number.
    Rows,
    /// A column, and whether equal values count once.
    Column(ColumnReference, bool),
}

impl WordReader<'_> {
    /// True for a text that begins as a count does, or as another aggregate.
    pub(super) fn begins_count(&self) -> bool {
        let at = self.position();
        let mut functions = AGGREGATES.iter();
        self.is_word(at, "SELECT")
            && (functions.any(|name| self.is_word(at + 1, name)) || self.is_one(at + 1))
    }

    pub(super) fn count_select(&mut self) -> Result<FeedSelect, NarrowingRefusal> {
        self.expect_keyword("SELECT")?;
        if self.is_next("EXISTS") {
            return self.exists_select();
        }
        if self.peek() == Some(WordKind::Number) {
            return self.any_row_select();
        }
        if self.is_next("MAX") {
            return self.largest_select_as(LargestColumns::Value);
        }
        let argument = self.count_argument()?;
        self.column_alias()?;
        if matches!(argument, CountArgument::Rows) && self.take_punct(b',') {
            return self.largest_select_as(LargestColumns::CountAndValue);
        }
        let from = self.position();
        self.expect_keyword("FROM")?;
        if self.begins_select() {
            return match argument {
                CountArgument::Rows => self.counted_select(),
                CountArgument::Column(..) => Err(NarrowingRefusal::Count),
            };
        }
        let of_column = matches!(argument, CountArgument::Column(..));
        let (items, distinct) = match argument {
            CountArgument::Rows => (Vec::new(), false),
            CountArgument::Column(column, distinct) => {
                let item = SelectItem::Operand(Operand::Column(column), None);
                (vec![item], distinct)
            }
        };
        Ok(FeedSelect {
            distinct,
            items,
            count: Some(MessageCount {
                of_column,
                ..MessageCount::new(AggregateFunction::Count, from)
            }),
            ..self.tables_and_filter()?
        })
    }

    /// What stands behind the word FROM.
    pub(super) fn tables_and_filter(&mut self) -> Result<FeedSelect, NarrowingRefusal> {
        Ok(FeedSelect {
            sources: self.table_references()?,
            filter: self.filter()?,
            filter_end: self.position(),
            ..FeedSelect::default()
        })
    }

    /// `EXISTS (SELECT 1 FROM ... LIMIT 1)`.
    fn exists_select(&mut self) -> Result<FeedSelect, NarrowingRefusal> {
        self.advance();
        self.expect_punct(b'(')?;
        self.expect_keyword("SELECT")?;
        // They are not read.
        if self.peek() == Some(WordKind::Number) {
            self.advance();
        } else if !self.take_punct(b'*') {
            self.separated(WordReader::column)?;
        }
        let from = self.position();
        self.expect_keyword("FROM")?;
        let counted = self.tables_and_filter()?;
        let limit = match self.take_keyword("LIMIT") {
            true => Some(self.number()?),
            false => None,
        };
        self.expect_punct(b')')?;
        self.column_alias()?;
        let function = AggregateFunction::Exists { limit };
        Ok(FeedSelect {
            count: Some(MessageCount::new(function, from)),
            ..counted
        })
    }

    /// `1 FROM ... LIMIT 1`.
    fn any_row_select(&mut self) -> Result<FeedSelect, NarrowingRefusal> {
        let shown = self.advance();
        self.column_alias()?;
        let from = self.position();
        self.expect_keyword("FROM")?;
        let counted = self.tables_and_filter()?;
        self.expect_keyword("LIMIT")?;
        let limit = self.number()?;
        let function = AggregateFunction::AnyRow { shown, limit };
        Ok(FeedSelect {
            count: Some(MessageCount::new(function, from)),
            ..counted
        })
    }

    /// `MAX(id) FROM ...`.
    fn largest_select_as(
        &mut self,
        mut columns: LargestColumns,
    ) -> Result<FeedSelect, NarrowingRefusal> {
        if !(self.is_next("MAX") && self.is_call()) {
            return Err(self.refusal());
        }
        let column = self.maximum()?;
        self.column_alias()?;
        if columns == LargestColumns::Value && self.take_punct(b',') {
            let CountArgument::Rows = self.count_argument()? else {
                return Err(NarrowingRefusal::Count);
            };
            self.column_alias()?;
            columns = LargestColumns::ValueAndCount;
        }
        let from = self.position();
        self.expect_keyword("FROM")?;
        let function = AggregateFunction::Largest(LargestValue {
            name: column.name.word,
            kind: LargestKind::Id,
            columns,
        });
        Ok(FeedSelect {
            items: vec![SelectItem::Operand(Operand::Column(column), None)],
            count: Some(MessageCount {
                of_column: true,
                ..MessageCount::new(function, from)
            }),
            ..self.tables_and_filter()?
        })
    }

    /// A number's word.
    fn number(&mut self) -> Result<usize, NarrowingRefusal> {
        match self.peek() {
            Some(WordKind::Number) => Ok(self.advance()),
            _ => Err(self.refusal()),
        }
    }

    /// The argument of COUNT, with its parentheses.
    fn count_argument(&mut self) -> Result<CountArgument, NarrowingRefusal> {
        if !(self.is_next("COUNT") && self.is_call()) {
            return Err(self.refusal());
        }
        self.advance();
        self.advance();
        let argument = if self.take_punct(b'*') {
            CountArgument::Rows
        } else if self.peek() == Some(WordKind::Number) {
            self.advance();
            CountArgument::Rows
        } else {
            let distinct = self.take_keyword("DISTINCT");
            CountArgument::Column(self.column()?, distinct)
        };
        self.expect_punct(b')')?;
        Ok(argument)
    }

    /// The column that COUNT counts, if it is not `*`; each value counts.
    pub(super) fn counted_column(&mut self) -> Result<Option<ColumnReference>, NarrowingRefusal> {
        match self.count_argument()? {
            CountArgument::Rows => Ok(None),
            CountArgument::Column(column, false) => Ok(Some(column)),
            CountArgument::Column(_, true) => Err(NarrowingRefusal::Count),
        }
    }

    /// The SELECT in FROM whose rows are counted.
    fn counted_select(&mut self) -> Result<FeedSelect, NarrowingRefusal> {
        self.expect_punct(b'(')?;
        self.expect_keyword("SELECT")?;
        let distinct = self.distinct();
        let items = self.separated(WordReader::item)?;
        let from = self.position();
        self.expect_keyword("FROM")?;
        let counted = self.tables_and_filter()?;
        let group = self.group()?;
        let mut order = Vec::new();
        if self.take_keyword("ORDER") {
            self.expect_keyword("BY")?;
            order = self.separated(WordReader::order_key)?;
        }
        self.expect_punct(b')')?;
        self.optional_alias()?.ok_or(NarrowingRefusal::Structure)?;
        Ok(FeedSelect {
            distinct,
            items,
            group,
            order,
            count: Some(MessageCount::new(AggregateFunction::Count, from)),
            ..counted
        })
    }
}
