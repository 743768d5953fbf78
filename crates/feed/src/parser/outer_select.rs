//! A SELECT around the page of a feed: `SELECT ... FROM (SELECT ... ORDER BY ... LIMIT 20) p LEFT JOIN ...`, `id IN (SELECT id FROM (page) p)`,
//! `WITH p AS (page) SELECT ... FROM p`.
//!
//! What it makes of the page's rows is left to the server: they are the same rows. It has to have no row where the page has none, which
//! tells a page without enough candidates from others.

use super::word_reader::{PageOfFeed, PageSearch, WordReader};
use crate::equalities::conjuncts;
use crate::query::{
    ConditionKind, FeedSelect, OuterSelect, SelectCondition, SelectItem, SqlIdentifier,
    TableReference,
};
use crate::refusal::NarrowingRefusal;

impl WordReader<'_> {
    /// A SELECT with one page of a feed in it.
    pub(super) fn outer_select(&mut self) -> Result<FeedSelect, NarrowingRefusal> {
        if self.take_keyword("WITH") {
            let name = self.name()?;
            if !name.text.is_ascii() {
                return Err(NarrowingRefusal::Structure);
            }
            self.expect_keyword("AS")?;
            self.read_page(Some(name.text))?;
        } else {
            self.page = PageSearch::Wanted;
        }
        self.expect_keyword("SELECT")?;
        let distinct = self.take_keyword("DISTINCT");
        let items = self.separated(WordReader::item)?;
        self.expect_keyword("FROM")?;
        let sources = self.table_references()?;
        let filter = self.filter()?.map(|(_, filter)| filter);
        let group = self.group()?;
        // Without groups it has a row of a page without any.
        if group.is_empty() && items.iter().any(SelectItem::is_count) {
            return Err(NarrowingRefusal::Grouped);
        }
        let mut order = Vec::new();
        if self.take_keyword("ORDER") {
            self.expect_keyword("BY")?;
            order = self.separated(WordReader::order_key)?;
            if order.iter().any(|key| self.may_sort_by_string(key, &items)) {
                return Err(NarrowingRefusal::Order);
            }
        }
        let order_end = self.position();
        let PageSearch::Read(page) = std::mem::take(&mut self.page) else {
            return Err(NarrowingRefusal::Structure);
        };
        if !page.is_named || !is_read_by_every_row(&sources, filter.as_ref()) {
            return Err(NarrowingRefusal::Structure);
        }
        let outer = OuterSelect {
            distinct,
            group,
            items,
            sources,
            filter,
            order,
            order_end,
            page_from: page.from,
        };
        Ok(FeedSelect {
            outer: Some(Box::new(outer)),
            ..page.select
        })
    }

    /// True where the next SELECT in FROM is taken for a page.
    pub(super) fn wants_page(&self) -> bool {
        matches!(self.page, PageSearch::Wanted | PageSearch::NewestWanted)
    }

    /// `(page) name` in FROM.
    pub(super) fn page_in_from(&mut self) -> Result<TableReference, NarrowingRefusal> {
        match self.page {
            PageSearch::Wanted => self.read_page(None)?,
            PageSearch::NewestWanted => self.read_newest(None)?,
            _ => return Err(NarrowingRefusal::Structure),
        }
        let table = self.optional_alias()?.ok_or(NarrowingRefusal::Structure)?;
        match &mut self.page {
            PageSearch::Read(page) => page.is_named = true,
            PageSearch::NewestRead(newest) => newest.is_read = true,
            _ => {}
        }
        Ok(page_reference(table))
    }

    /// A page in parentheses.
    fn read_page(&mut self, with_name: Option<String>) -> Result<(), NarrowingRefusal> {
        self.expect_punct(b'(')?;
        self.page = PageSearch::Off;
        let start = self.position();
        let from = self
            .position_of_from(start)
            .ok_or(NarrowingRefusal::Structure)?;
        let select = self.nested(WordReader::select)?;
        self.expect_punct(b')')?;
        // Of a SELECT in FROM, the columns are elsewhere.
        if select.derived_names.is_some() {
            return Err(NarrowingRefusal::Structure);
        }
        self.page = PageSearch::Read(Box::new(PageOfFeed {
            select,
            from,
            with_name,
            is_named: false,
        }));
        Ok(())
    }

    /// True if a table's name is the one that WITH gave the page. It may be read once.
    pub(super) fn note_page_name(
        &mut self,
        table: &SqlIdentifier,
    ) -> Result<bool, NarrowingRefusal> {
        let (name, is_named) = match &mut self.page {
            PageSearch::Read(page) => (&page.with_name, &mut page.is_named),
            PageSearch::NewestRead(newest) => (&newest.with_name, &mut newest.is_read),
            _ => return Ok(false),
        };
        let Some(name) = name else {
            return Ok(false);
        };
        if *name != table.text {
            // MariaDB takes names that differ in case for one.
            return match name.eq_ignore_ascii_case(&table.text) || !table.text.is_ascii() {
                true => Err(NarrowingRefusal::Structure),
                false => Ok(false),
            };
        }
        match std::mem::replace(is_named, true) {
            false => Ok(true),
            true => Err(NarrowingRefusal::Structure),
        }
    }
}

/// The reference to a page in FROM.
pub(super) fn page_reference(table: SqlIdentifier) -> TableReference {
    TableReference {
        database: None,
        table,
        alias: None,
        is_page: true,
        is_using: false,
        is_flattened: false,
        outer: None,
        on: None,
    }
}

/// True if the SELECT has no row where the page has none: it joins the page, or requires a value of it.
fn is_read_by_every_row(sources: &[TableReference], filter: Option<&SelectCondition>) -> bool {
    let has_page =
        |sources: &[TableReference]| sources.iter().any(|one| one.is_page && one.outer.is_none());
    let mut conditions = Vec::new();
    filter
        .into_iter()
        .for_each(|filter| conjuncts(filter, &mut conditions));
    let requires = |condition: &&SelectCondition| matches!(&condition.kind, ConditionKind::InSubquery(_, rows, true) if has_page(&rows.sources));
    has_page(sources) || conditions.iter().any(requires)
}
