//! Why a template is not served, as its text and the tables are.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::feed::catalogue::DatabaseCatalogue;
use crate::feed::template::TableName;
use crate::feed::{FeedDefinition, NarrowingRefusal};
use crate::session::feed_decision::FeedRelayReason;

/// Why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplateRefusal {
    /// What its text says.
    Text(NarrowingRefusal),
    /// It is one of this feed, by its place among all, in whose way the check found something.
    Feed(usize),
    /// It names tables that cannot be seen, beside those of a feed where one is told.
    Unseen(Option<usize>, Arc<[String]>),
}

impl From<NarrowingRefusal> for TemplateRefusal {
    fn from(refused: NarrowingRefusal) -> TemplateRefusal {
        TemplateRefusal::Text(refused)
    }
}

impl TemplateRefusal {
    /// The name that counters have for it.
    pub(super) fn why(&self) -> FeedRelayReason {
        match self {
            TemplateRefusal::Text(refused) => (*refused).into(),
            TemplateRefusal::Feed(_) => FeedRelayReason::Refused,
            TemplateRefusal::Unseen(..) => FeedRelayReason::Unseen,
        }
    }

    /// Whose the template is, where that is known.
    pub(super) fn feed(&self) -> Option<usize> {
        match self {
            TemplateRefusal::Text(_) => None,
            TemplateRefusal::Feed(at) => Some(*at),
            TemplateRefusal::Unseen(at, _) => *at,
        }
    }
}

/// What was found of a statement that no feed serves.
#[derive(Debug, Default)]
pub(super) struct FeedMatchSummary {
    /// A feed that is not served, and of whose shape it is.
    matching: Option<usize>,
    /// A feed that is not served, and whose messages it names.
    blocked: Option<usize>,
    /// The same of one that is served.
    served: Option<usize>,
    /// What the first of those that are served says of the text.
    text: Option<NarrowingRefusal>,
}

impl FeedMatchSummary {
    /// A feed that is not served was looked at.
    pub(super) fn add_blocked(&mut self, at: usize, fits: bool, names: bool) {
        if fits {
            self.matching.get_or_insert(at);
        }
        if names {
            self.blocked.get_or_insert(at);
        }
    }

    /// One that is served was.
    pub(super) fn add_served(&mut self, at: usize, why: NarrowingRefusal, names: bool) {
        if names {
            self.served.get_or_insert(at);
        }
        // Another feed's names say nothing of the text.
        if why != NarrowingRefusal::Names {
            self.text.get_or_insert(why);
        }
    }

    /// Of a statement that names tables of which these are not to be seen.
    pub(super) fn refusal(&self, unseen: &[String]) -> TemplateRefusal {
        let barred = self.blocked.filter(|_| self.served.is_none());
        match self.matching.or(barred) {
            Some(at) if self.matching.is_some() || unseen.is_empty() => TemplateRefusal::Feed(at),
            _ if !unseen.is_empty() => {
                TemplateRefusal::Unseen(self.served.or(self.blocked), unseen.into())
            }
            _ => self.text.unwrap_or(NarrowingRefusal::Names).into(),
        }
    }
}

/// Tables of this database that a statement names and that are not to be seen.
pub(super) fn unseen_tables(named: &[TableName], tables: &DatabaseCatalogue) -> Arc<[String]> {
    let own = |named: &&TableName| {
        let database = named.database.as_ref();
        database.is_none_or(|own| *own == tables.database)
            && tables.catalogue_table(&named.table).is_none()
    };
    let unseen: BTreeSet<String> = named
        .iter()
        .filter(own)
        .map(|it| it.table.clone())
        .collect();
    unseen.into_iter().collect()
}

/// True where a statement that names these tables names the messages of a feed, in a database that may be the feed's.
pub(super) fn names_messages(
    named: &[TableName],
    definition: &FeedDefinition,
    database: &str,
) -> bool {
    let may = |own: Option<&str>| own.is_none_or(|own| own == database);
    let is = |named: &TableName| {
        named.table == definition.message.table && may(named.database.as_deref())
    };
    may(definition.database.as_deref()) && named.iter().any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_feeds_the_one_whose_statement_it_would_be_is_told() {
        let unseen = ["profiles".to_owned()];
        let mut found = FeedMatchSummary::default();
        assert_eq!(found.refusal(&[]).why().label(), "names");
        // A feed without the statement's shape stands in the way where no other one could serve it.
        found.add_blocked(3, false, true);
        assert_eq!(found.refusal(&[]), TemplateRefusal::Feed(3));
        assert_eq!(found.refusal(&unseen).why(), FeedRelayReason::Unseen);
        assert_eq!(found.refusal(&unseen).feed(), Some(3));
        found.add_served(4, NarrowingRefusal::Names, true);
        found.add_served(5, NarrowingRefusal::Order, true);
        found.add_served(6, NarrowingRefusal::Limit, true);
        assert_eq!(found.refusal(&[]), NarrowingRefusal::Order.into());
        assert_eq!(found.refusal(&unseen).feed(), Some(4));
        found.add_blocked(7, true, true);
        assert_eq!(found.refusal(&unseen), TemplateRefusal::Feed(7));
    }
}
