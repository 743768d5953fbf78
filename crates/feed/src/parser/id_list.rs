//! A SELECT of messages by their ids (`WHERE id IN (1, 2, 3)`), as ORMs load what a page refers to: an order and a limit are optional.

use super::word_reader::WordReader;
use crate::query::{ConditionKind, FeedSelect, SelectCondition};
use crate::refusal::NarrowingRefusal;

impl WordReader<'_> {
    pub(super) fn id_list_select(&mut self) -> Result<FeedSelect, NarrowingRefusal> {
        self.expect_keyword("SELECT")?;
        let items = self.separated(WordReader::item)?;
        self.expect_keyword("FROM")?;
        let query = self.tables_and_filter()?;
        let filter = query.filter.as_ref();
        if !filter.is_some_and(|(_, filter)| has_list(filter)) {
            return Err(NarrowingRefusal::Order);
        }
        self.ordered_part(FeedSelect { items, ..query })
    }
}

/// True if all rows have a value of a list of literals.
fn has_list(condition: &SelectCondition) -> bool {
    match &condition.kind {
        ConditionKind::And(all) => all.iter().any(has_list),
        ConditionKind::In(_, _, true) => true,
        _ => false,
    }
}
