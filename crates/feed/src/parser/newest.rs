//! A SELECT of the newest message of each author, in its common spellings: `GROUP BY author` with `MAX(id)`, alone, in a join or in IN; or
//! `ROW_NUMBER() OVER (PARTITION BY author ORDER BY id DESC)`, of which the first are read.

use super::outer_select::page_reference;
use super::word_reader::{NewestOfFeed, PageSearch, WordReader};
use crate::equalities::conditions_of_every_row;
use crate::query::{
    ColumnReference, ConditionKind, FeedSelect, NewestForm, NewestSelect, OrderKey, SqlIdentifier,
    Subquery,
};
use crate::refusal::NarrowingRefusal;

/// True if it may leave out messages for which there is a newer one.
fn may_exclude_newer(query: &FeedSelect) -> bool {
    let filter = query.filter.as_ref().map(|(_, filter)| filter);
    let holds = conditions_of_every_row(&query.sources, filter);
    let has_outer_join = query.sources.iter().any(|source| source.outer.is_some());
    holds.iter().any(|condition| match &condition.kind {
        ConditionKind::Not(inner) => matches!(inner.kind, ConditionKind::Exists(_)),
        ConditionKind::Null(_, true) => has_outer_join,
        _ => false,
    })
}

impl WordReader<'_> {
    /// The whole statement.
    pub(super) fn newest_select(&mut self) -> Result<FeedSelect, NarrowingRefusal> {
        if self.take_keyword("WITH") {
            let name = self.name()?;
            if !name.text.is_ascii() {
                return Err(NarrowingRefusal::Structure);
            }
            self.expect_keyword("AS")?;
            self.read_newest(Some(name.text))?;
        } else {
            self.page = PageSearch::NewestWanted;
        }
        self.expect_keyword("SELECT")?;
        let items = self.separated(WordReader::item)?;
        self.expect_keyword("FROM")?;
        let query = FeedSelect {
            items,
            ..self.tables_and_filter()?
        };
        let newest = match std::mem::take(&mut self.page) {
            PageSearch::NewestRead(newest) if newest.is_read => Some(Box::new(newest.select)),
            PageSearch::NewestWanted if may_exclude_newer(&query) => None,
            _ => return Err(NarrowingRefusal::Structure),
        };
        self.ordered_part(FeedSelect { newest, ..query })
    }

    /// ORDER BY and LIMIT, if they are next.
    pub(super) fn ordered_part(
        &mut self,
        query: FeedSelect,
    ) -> Result<FeedSelect, NarrowingRefusal> {
        let mut order = Vec::new();
        if self.take_keyword("ORDER") {
            self.expect_keyword("BY")?;
            order = self.separated(|reader| match reader.is_next("MIN") {
                true => Err(NarrowingRefusal::Order),
                false => reader.order_key(),
            })?;
            let by_string = |key: &OrderKey| self.may_sort_by_string(key, &query.items);
            if order.iter().any(by_string) {
                return Err(NarrowingRefusal::Order);
            }
        }
        let order_end = self.position();
        let (limit, offset) = self.limit_if_next()?;
        Ok(FeedSelect {
            order,
            order_end,
            limit,
            offset,
            ..query
        })
    }

    /// `(SELECT ...)` in FROM or WITH.
    pub(super) fn read_newest(
        &mut self,
        with_name: Option<String>,
    ) -> Result<(), NarrowingRefusal> {
        self.expect_punct(b'(')?;
        self.page = PageSearch::Off;
        let start = self.position();
        let select = match self.nested(WordReader::grouped_select) {
            Ok(grouped) => grouped,
            Err(_) => {
                self.rewind(start);
                self.nested(WordReader::ranked_select)?
            }
        };
        self.expect_punct(b')')?;
        self.page = PageSearch::NewestRead(Box::new(NewestOfFeed {
            select,
            with_name,
            is_read: false,
        }));
        Ok(())
    }

    /// `SELECT MAX(id) ... GROUP BY author` in IN, if it is next and wanted.
    pub(super) fn newest_in_list(&mut self) -> Result<Option<Subquery>, NarrowingRefusal> {
        let at = self.position();
        let is_next = self.is_word(at, "SELECT") && self.is_word(at + 1, "MAX");
        if !matches!(self.page, PageSearch::NewestWanted) || !is_next {
            return Ok(None);
        }
        self.page = PageSearch::Off;
        let select = self.nested(WordReader::grouped_select)?;
        let column = select.id.clone();
        self.page = PageSearch::NewestRead(Box::new(NewestOfFeed {
            select,
            with_name: None,
            is_read: true,
        }));
        let page = page_reference(SqlIdentifier {
            text: String::new(),
            word: at,
        });
        Ok(Some(Subquery {
            columns: vec![column],
            sources: vec![page],
            filter: None,
        }))
    }

    /// `SELECT author, MAX(id) FROM ... WHERE ... GROUP BY author`.
    fn grouped_select(&mut self) -> Result<NewestSelect, NarrowingRefusal> {
        let start = self.position();
        self.expect_keyword("SELECT")?;
        let mut shown: Option<ColumnReference> = None;
        let mut newest: Option<ColumnReference> = None;
        let items = self.separated(|reader| {
            let is_newest = reader.is_next("MAX") && reader.is_call();
            let column = match is_newest {
                true => reader.maximum()?,
                false => reader.column()?,
            };
            let before = match is_newest {
                true => newest.replace(column),
                false => shown.replace(column),
            };
            match before {
                Some(_) => Err(NarrowingRefusal::Structure),
                None => Ok((is_newest, reader.column_alias()?)),
            }
        })?;
        let (from, rows, author) = self.grouped_rows()?;
        Ok(NewestSelect {
            rows: FeedSelect {
                // What it shows besides the id is to be what it groups by.
                group: shown.into_iter().collect(),
                ..rows
            },
            from,
            author,
            id: newest.ok_or(NarrowingRefusal::Structure)?,
            form: NewestForm::Grouped { items },
            words: start..self.position(),
        })
    }

    /// `MAX(column)`.
    pub(super) fn maximum(&mut self) -> Result<ColumnReference, NarrowingRefusal> {
        self.advance();
        self.advance();
        let column = self.column()?;
        self.expect_punct(b')')?;
        Ok(column)
    }

    /// `SELECT *, ROW_NUMBER() OVER (PARTITION BY author ORDER BY id DESC) AS n FROM ... WHERE ...`.
    fn ranked_select(&mut self) -> Result<NewestSelect, NarrowingRefusal> {
        let start = self.position();
        self.expect_keyword("SELECT")?;
        let mut ranked = None;
        let mut items = Vec::new();
        self.separated(|reader| {
            if !reader.is_next("ROW_NUMBER") {
                items.push(reader.item()?);
                return Ok(());
            }
            let (author, id) = reader.row_number()?;
            let name = reader.column_alias()?.ok_or(NarrowingRefusal::Structure)?;
            match ranked.replace((author, id, name)) {
                Some(_) => Err(NarrowingRefusal::Structure),
                None => Ok(()),
            }
        })?;
        let (author, id, rank) = ranked.ok_or(NarrowingRefusal::Structure)?;
        let from = self.position();
        self.expect_keyword("FROM")?;
        let rows = self.tables_and_filter()?;
        Ok(NewestSelect {
            rows,
            from,
            author,
            id,
            form: NewestForm::Ranked {
                items,
                rank: rank.text,
            },
            words: start..self.position(),
        })
    }

    /// `ROW_NUMBER() OVER (PARTITION BY author ORDER BY id DESC)`.
    fn row_number(&mut self) -> Result<(ColumnReference, ColumnReference), NarrowingRefusal> {
        self.expect_keyword("ROW_NUMBER")?;
        self.expect_punct(b'(')?;
        self.expect_punct(b')')?;
        self.expect_keyword("OVER")?;
        self.expect_punct(b'(')?;
        self.expect_keyword("PARTITION")?;
        self.expect_keyword("BY")?;
        let author = self.column()?;
        self.expect_keyword("ORDER")?;
        self.expect_keyword("BY")?;
        let id = self.column()?;
        self.expect_keyword("DESC")?;
        self.expect_punct(b')')?;
        Ok((author, id))
    }
}
