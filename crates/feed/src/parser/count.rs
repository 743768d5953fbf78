//! A count of messages: `SELECT COUNT(*) FROM m WHERE ...`, or of the rows of a SELECT in FROM, as paginators write it. It is read as the
//! SELECT whose rows are counted, without an order or a limit.

use super::word_reader::WordReader;
use crate::query::{ColumnReference, FeedSelect, MessageCount, Operand, SelectItem};
use crate::refusal::NarrowingRefusal;
use crate::words::WordKind;

/// What COUNT counts.
enum CountArgument {
    /// `*`, or a number.
    Rows,
    /// A column, and whether equal values count once.
    Column(ColumnReference, bool),
}

impl WordReader<'_> {
    /// True for a text that begins as a count does.
    pub(super) fn begins_count(&self) -> bool {
        let at = self.position();
        self.is_word(at, "SELECT") && self.is_word(at + 1, "COUNT")
    }

    pub(super) fn count_select(&mut self) -> Result<FeedSelect, NarrowingRefusal> {
        self.expect_keyword("SELECT")?;
        let argument = self.count_argument()?;
        self.column_alias()?;
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
        let sources = self.table_references()?;
        let filter = self.filter()?;
        Ok(FeedSelect {
            distinct,
            items,
            sources,
            filter,
            filter_end: self.position(),
            count: Some(MessageCount {
                from,
                of_column,
                copies: false,
            }),
            ..FeedSelect::default()
        })
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

    /// The SELECT in FROM whose rows are counted.
    fn counted_select(&mut self) -> Result<FeedSelect, NarrowingRefusal> {
        self.expect_punct(b'(')?;
        self.expect_keyword("SELECT")?;
        let distinct = self.distinct();
        let items = self.separated(WordReader::item)?;
        let from = self.position();
        self.expect_keyword("FROM")?;
        let sources = self.table_references()?;
        let filter = self.filter()?;
        let filter_end = self.position();
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
            sources,
            filter,
            filter_end,
            group,
            order,
            count: Some(MessageCount {
                from,
                of_column: false,
                copies: false,
            }),
            ..FeedSelect::default()
        })
    }
}
