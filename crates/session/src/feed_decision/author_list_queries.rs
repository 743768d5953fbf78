//! A statement's author lists besides the reader's follows: when the server is queried for them, and its replies.

use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::binding::{FeedStatement, index_numbers};
use headwater_timeline::index::RowKey;
use headwater_wire::resultset::QueryReply;

use super::cached_page::FeedCacheScope;
use super::{CandidateQuery, CandidateSet};
use crate::author_lists::{AuthorListKey, AuthorListRule, ListedAuthors, MAX_LISTED_AUTHORS};
use crate::cached_rows::{AuthorListReply, QueriedAuthorList};

/// A query for an author list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorListQuery {
    /// The reader's rows in the list's table.
    pub whose: RowKey,
    /// The query's text, up to the reader's id.
    pub query: Arc<str>,
    /// What the result depends on besides the text.
    pub key: Arc<[u8]>,
    /// What the list is for.
    pub rule: AuthorListRule,
}

impl AuthorListQuery {
    /// The cache key in one generation of the log.
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

    /// The whole query.
    pub(super) fn text(&self) -> String {
        let (reader, limit) = (self.whose.id, MAX_LISTED_AUTHORS + 1);
        format!("{}{reader} LIMIT {limit}", self.query)
    }

    /// Reads a reply; `None`: it is not a valid one.
    pub(super) fn read_reply(&self, answer: QueryReply) -> Option<AuthorListReply> {
        let QueryReply::Rows(rows) = answer else {
            return None;
        };
        // NULL names no author; but in a list of blocked authors it lets nothing pass.
        let names = |null: bool| !null || self.rule == AuthorListRule::Blocked;
        let author_rows = rows.iter().filter(|row| names(row.cell(0).is_none()));
        let numbers: Option<Vec<u64>> = author_rows.map(|row| row.u64(0)).collect();
        Some(numbers.filter(|it| it.len() <= MAX_LISTED_AUTHORS))
    }
}

impl FeedCacheScope {
    /// The scope with the statement's author lists. `None`: one of them cannot be queried, so no rows are cached.
    pub(super) fn with_author_lists(
        mut self,
        template: &Template,
        statement: FeedStatement<'_>,
        authors: &[u64],
    ) -> Option<FeedCacheScope> {
        let lists = &template.shape.row_dependencies.as_ref()?.lists;
        if lists.is_empty() {
            return Some(self);
        }
        if lists.len() != template.list_tables.len() {
            return None;
        }
        let also = index_numbers(authors, template.types).ok()?;
        let each = lists
            .iter()
            .zip(&*template.list_tables)
            .map(|(list, table)| {
                Some(AuthorListQuery {
                    whose: RowKey {
                        table: *table,
                        id: list.reader(statement)?,
                    },
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

    pub(super) fn author_list_keys(
        &self,
        template: &Template,
        candidates: &CandidateSet,
    ) -> Vec<AuthorListKey> {
        let lists = self.lists.iter();
        lists
            .map(|it| it.cache_key(template, candidates.generation))
            .collect()
    }
}

impl CandidateQuery {
    fn author_lists(&self) -> &[AuthorListQuery] {
        self.cache_scope
            .as_ref()
            .map_or(&[], |keeping| &keeping.lists)
    }

    fn list_reply(&self, at: usize) -> Option<&AuthorListReply> {
        self.list_replies.get(at)?.as_ref()
    }

    /// True for a list whose authors are unknown.
    fn is_unknown_list(&self, at: usize, candidates: &CandidateSet) -> bool {
        let is_cached = candidates.author_lists.get(at).is_some_and(Option::is_some);
        !is_cached && self.list_reply(at).is_none()
    }

    /// The queries for unknown lists.
    pub(super) fn list_queries(
        &self,
        template: &Template,
        candidates: &CandidateSet,
    ) -> Vec<String> {
        if !template.row_cache.should_query() {
            return Vec::new();
        }
        let lists = self.author_lists().iter().enumerate();
        let open = lists.filter(|(at, _)| self.is_unknown_list(*at, candidates));
        open.map(|(_, list)| list.text()).collect()
    }

    /// Takes the replies. Without one of them, no rows of this statement are cached.
    pub(super) fn take_list_replies(
        &mut self,
        candidates: &CandidateSet,
        answers: Vec<QueryReply>,
    ) {
        match self.merged_replies(candidates, answers) {
            Some(replies) => self.list_replies = replies,
            None => self.cache_scope = None,
        }
    }

    /// The reply for each list, with these replies filled in for the unknown ones.
    fn merged_replies(
        &self,
        candidates: &CandidateSet,
        answers: Vec<QueryReply>,
    ) -> Option<Vec<Option<AuthorListReply>>> {
        let mut answers = answers.into_iter();
        let each = self.author_lists().iter().enumerate().map(|(at, list)| {
            match self.is_unknown_list(at, candidates) {
                true => Some(Some(list.read_reply(answers.next()?)?)),
                false => Some(self.list_reply(at).cloned()),
            }
        });
        each.collect()
    }

    /// The authors of each list. `None`: not all are known. `Some(None)`: one has too many authors.
    pub(super) fn authors(&self, candidates: &CandidateSet) -> Option<Option<Vec<ListedAuthors>>> {
        let each = self.author_lists().iter().enumerate().map(|(at, list)| {
            let from_reply = self.list_reply(at).map(|told| {
                let told = told.as_deref();
                told.map(|told| list.rule.list_of(told))
            });
            from_reply.or_else(|| candidates.author_lists.get(at)?.clone())
        });
        let authors: Vec<Option<ListedAuthors>> = each.collect::<Option<_>>()?;
        Some(authors.into_iter().collect())
    }

    pub(super) fn queried_lists(&self, keys: Vec<AuthorListKey>) -> Vec<QueriedAuthorList> {
        let each = keys.into_iter().enumerate();
        each.map(|(at, list)| QueriedAuthorList {
            list,
            reply: self.list_reply(at).cloned(),
        })
        .collect()
    }
}
