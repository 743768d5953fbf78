//! Posting lists by several columns of the messages: `author IN (...) OR group_id IN (...)`. Each column is that of a feed: feeds over the
//! same messages, in the same order, answer a statement together.

use crate::authors::{AuthorSearch, AuthorSelection};
use crate::equalities::ColumnEqualities;
use crate::query::{ConditionKind, SelectCondition};
use crate::scope::NameScope;
use crate::shape::FeedNames;

/// What a statement selects by the column of another feed than its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostingSelection {
    /// The feed: its position among those that were given.
    pub feed: usize,
    /// The values of its column.
    pub authors: AuthorSelection,
}

impl FeedNames {
    /// True if the feeds hold the same messages in the same order, by whatever column.
    #[must_use]
    pub fn shares_messages(&self, other: &FeedNames) -> bool {
        let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
        let same_key = match (&self.key, &other.key) {
            (Some(key), Some(other)) => same(key, other),
            (key, other) => key == other,
        };
        self.database == other.database
            && self.message == other.message
            && same(&self.id, &other.id)
            && same_key
    }
}

/// Searches a statement for the posting lists that hold all of its messages.
pub(crate) struct PostingSearch<'a> {
    /// Of the statement's own feed.
    pub(crate) own: AuthorSearch<'a>,
    /// Of other feeds, by position.
    pub(crate) others: Vec<(usize, AuthorSearch<'a>)>,
}

/// The selection of the own feed, which may be empty, and those of others.
pub(crate) type SelectionByFeed = (AuthorSelection, Vec<PostingSelection>);

impl<'a> PostingSearch<'a> {
    /// The posting lists of rows in which these conditions and equalities hold. `None`: any message may be in one.
    pub(crate) fn of_rows(
        &self,
        holds: &[&'a SelectCondition],
        scope: &NameScope<'a>,
        equal: &ColumnEqualities,
    ) -> Option<SelectionByFeed> {
        if let Some(authors) = self.own.of_rows(holds, scope, equal) {
            return Some((authors, Vec::new()));
        }
        if self.others.is_empty() {
            return None;
        }
        if let Some(other) = self.of_another(|search| search.of_rows(holds, scope, equal)) {
            return Some(other);
        }
        let mut equal = equal.clone();
        self.own.add_subquery_literals(holds, scope, &mut equal);
        let mut each = holds.iter();
        each.find_map(|one| self.of_condition(one, scope, &equal))
    }

    /// The posting lists of a condition: each branch of an OR may have its own.
    fn of_condition(
        &self,
        condition: &'a SelectCondition,
        scope: &NameScope<'a>,
        equal: &ColumnEqualities,
    ) -> Option<SelectionByFeed> {
        match &condition.kind {
            ConditionKind::And(all) => {
                let mut each = all.iter();
                each.find_map(|one| self.of_branch(one, scope, equal))
            }
            ConditionKind::Or(all) => {
                let mut union = SelectionByFeed::default();
                for branch in all {
                    let (own, others) = self.of_branch(branch, scope, equal)?;
                    union.0 = union.0.union(own);
                    for other in others {
                        add_posting(&mut union.1, other);
                    }
                }
                Some(union)
            }
            _ => None,
        }
    }

    fn of_branch(
        &self,
        condition: &'a SelectCondition,
        scope: &NameScope<'a>,
        equal: &ColumnEqualities,
    ) -> Option<SelectionByFeed> {
        if let Some(own) = self.own.of_condition(condition, scope, equal) {
            return Some((own, Vec::new()));
        }
        self.of_another(|search| search.of_condition(condition, scope, equal))
            .or_else(|| self.of_condition(condition, scope, equal))
    }

    /// What the first of the other feeds selects that selects anything.
    fn of_another(
        &self,
        authors: impl Fn(&AuthorSearch<'a>) -> Option<AuthorSelection>,
    ) -> Option<SelectionByFeed> {
        let mut others = self.others.iter();
        let other = others.find_map(|(feed, search)| {
            Some(PostingSelection {
                feed: *feed,
                authors: authors(search)?,
            })
        });
        Some((AuthorSelection::default(), vec![other?]))
    }
}

pub(crate) fn add_posting(all: &mut Vec<PostingSelection>, one: PostingSelection) {
    match all.iter_mut().find(|known| known.feed == one.feed) {
        Some(known) => known.authors = std::mem::take(&mut known.authors).union(one.authors),
        None => all.push(one),
    }
}
