//! Lists of authors that a statement has beside those whom a reader follows: when the server is asked for them, and what it says.

use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::binding::{FeedPageRequest, FeedStatement};
use headwater_rows::MessageKey;
use headwater_wire::resultset::QueryReply;

use super::cached_page::FeedCacheScope;
use super::{CandidateQuery, CandidateSet, index_numbers};
use crate::author_lists::{AuthorListKey, AuthorListRule, ListedAuthors, MAX_LISTED_AUTHORS};
use crate::cached_rows::{AuthorListReply, QueriedAuthorList};

/// A list of authors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorListQuery {
    /// The reader's rows of its table.
    pub whose: MessageKey,
    /// The statement that asks for it, up to the reader's number.
    pub query: Arc<str>,
    /// What the answer depends on beside that.
    pub key: Arc<[u8]>,
    /// What it is for.
    pub rule: AuthorListRule,
}

impl AuthorListQuery {
    /// Under what it is kept in a stream of the log.
    #[must_use]
    pub fn cache_key(&self, template: &Template, generation: u64) -> AuthorListKey {
        let key = [
            &generation.to_le_bytes()[..],
            &self.key,
            b"\0list\0",
            self.query.as_bytes(),
        ];
        AuthorListKey {
            whose: self.whose,
            cache_key: template.row_cache.cache_key(&key.concat()),
            rule: self.rule.clone(),
        }
    }

    /// What an answer says. `None`: it is none.
    fn read_reply(&self, answer: QueryReply) -> Option<AuthorListReply> {
        let QueryReply::Rows(rows) = answer else {
            return None;
        };
        // Nobody is named by NULL; but where it is among those who are blocked, nothing passes.
        let names = |null: bool| !null || self.rule == AuthorListRule::Blocked;
        let named = rows.iter().filter(|row| names(row.cell(0).is_none()));
        let numbers: Option<Vec<u64>> = named.map(|row| row.u64(0)).collect();
        Some(numbers.filter(|it| it.len() <= MAX_LISTED_AUTHORS))
    }
}

impl FeedCacheScope {
    /// The same with the lists of a statement. `None`: one of them cannot be asked for, so no rows are kept.
    pub(super) fn with_author_lists(
        mut self,
        template: &Template,
        statement: FeedStatement<'_>,
        asked: &FeedPageRequest,
    ) -> Option<FeedCacheScope> {
        let lists = &template.shape.row_dependencies.as_ref()?.lists;
        if lists.is_empty() {
            return Some(self);
        }
        if lists.len() != template.list_timelines.len() {
            return None;
        }
        let also = index_numbers(&asked.authors, template).ok()?;
        let each = lists
            .iter()
            .zip(&*template.list_timelines)
            .map(|(list, place)| {
                Some(AuthorListQuery {
                    whose: (*place, list.reader(statement)?),
                    query: list.author_query(statement)?.into(),
                    key: self.settings.clone().into(),
                    rule: match list.admits {
                        true => AuthorListRule::Pass(also.clone()),
                        false => AuthorListRule::Blocked,
                    },
                })
            });
        self.lists = each.collect::<Option<_>>()?;
        Some(self)
    }

    /// Under what its lists are kept.
    pub(super) fn author_list_keys(
        &self,
        template: &Template,
        found: &CandidateSet,
    ) -> Vec<AuthorListKey> {
        let lists = self.lists.iter();
        lists
            .map(|it| it.cache_key(template, found.generation))
            .collect()
    }
}

impl CandidateQuery {
    fn author_lists(&self) -> &[AuthorListQuery] {
        self.cache_scope
            .as_ref()
            .map_or(&[], |keeping| &keeping.lists)
    }

    /// What the server said of a list.
    fn list_reply(&self, at: usize) -> Option<&AuthorListReply> {
        self.list_replies.get(at)?.as_ref()
    }

    /// True for a list of which it is not known what is on it.
    fn is_unknown_list(&self, at: usize, found: &CandidateSet) -> bool {
        let kept = found.author_lists.get(at).is_some_and(Option::is_some);
        !kept && self.list_reply(at).is_none()
    }

    /// The questions for lists of which it is not known what is on them.
    pub(super) fn list_queries(&self, template: &Template, found: &CandidateSet) -> Vec<String> {
        if !template.row_cache.should_query() {
            return Vec::new();
        }
        let lists = self.author_lists().iter().enumerate();
        let open = lists.filter(|(at, _)| self.is_unknown_list(*at, found));
        let ask = |list: &AuthorListQuery| {
            format!(
                "{}{} LIMIT {}",
                list.query,
                list.whose.1,
                MAX_LISTED_AUTHORS + 1
            )
        };
        open.map(|(_, list)| ask(list)).collect()
    }

    /// Takes in the answers. Without one no rows are kept of this statement.
    pub(super) fn take_list_replies(&mut self, found: &CandidateSet, answers: Vec<QueryReply>) {
        match self.merged_replies(found, answers) {
            Some(told) => self.list_replies = told,
            None => self.cache_scope = None,
        }
    }

    /// What was said of each list, with these answers about those that were open.
    fn merged_replies(
        &self,
        found: &CandidateSet,
        answers: Vec<QueryReply>,
    ) -> Option<Vec<Option<AuthorListReply>>> {
        let mut answers = answers.into_iter();
        let each = self.author_lists().iter().enumerate().map(|(at, list)| {
            match self.is_unknown_list(at, found) {
                true => Some(Some(list.read_reply(answers.next()?)?)),
                false => Some(self.list_reply(at).cloned()),
            }
        });
        each.collect()
    }

    /// The authors of each list. `None`: not all are known. `Some(None)`: there are too many on one.
    pub(super) fn authors(&self, found: &CandidateSet) -> Option<Option<Vec<ListedAuthors>>> {
        let each = self.author_lists().iter().enumerate().map(|(at, list)| {
            let told = self.list_reply(at).map(|told| {
                let told = told.as_deref();
                told.map(|told| list.rule.list_of(told))
            });
            told.or_else(|| found.author_lists.get(at)?.clone())
        });
        let known: Vec<Option<ListedAuthors>> = each.collect::<Option<_>>()?;
        Some(known.into_iter().collect())
    }

    /// What is kept of its lists.
    pub(super) fn queried_lists(&self, keys: Vec<AuthorListKey>) -> Vec<QueriedAuthorList> {
        let each = keys.into_iter().enumerate();
        each.map(|(at, list)| QueriedAuthorList {
            list,
            reply: self.list_reply(at).cloned(),
        })
        .collect()
    }
}
