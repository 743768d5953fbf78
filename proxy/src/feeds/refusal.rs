//! Why a template is not served, by its text and the tables.

use std::collections::BTreeSet;
use std::sync::Arc;

use headwater_feed::catalogue::DatabaseCatalogue;
use headwater_feed::template::TableName;
use headwater_feed::{FeedDefinition, NarrowingRefusal};
use headwater_session::feed_decision::FeedRelayReason;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplateRefusal {
    Text(NarrowingRefusal),
    /// It belongs to this feed, by index, which is obstructed.
    Feed(usize),
    /// It names tables that are not visible; also the index of the feed whose messages it names, if any.
    Unseen(Option<usize>, Arc<[String]>),
}

impl From<NarrowingRefusal> for TemplateRefusal {
    fn from(refused: NarrowingRefusal) -> TemplateRefusal {
        TemplateRefusal::Text(refused)
    }
}

impl TemplateRefusal {
    /// The counter's reason.
    pub(super) fn why(&self) -> FeedRelayReason {
        match self {
            TemplateRefusal::Text(refused) => (*refused).into(),
            TemplateRefusal::Feed(_) => FeedRelayReason::Refused,
            TemplateRefusal::Unseen(..) => FeedRelayReason::Unseen,
        }
    }

    /// The index of the template's feed, if known.
    pub(super) fn feed(&self) -> Option<usize> {
        match self {
            TemplateRefusal::Text(_) => None,
            TemplateRefusal::Feed(at) => Some(*at),
            TemplateRefusal::Unseen(at, _) => *at,
        }
    }
}

/// What the feeds say of a statement that none of them serves.
#[derive(Debug, Default)]
pub(super) struct FeedMatchSummary {
    /// An obstructed feed whose shape it has.
    matching: Option<usize>,
    /// An obstructed feed whose messages it names.
    blocked: Option<usize>,
    /// A served feed whose messages it names.
    served: Option<usize>,
    /// The first served feed's refusal of the text.
    text: Option<NarrowingRefusal>,
}

impl FeedMatchSummary {
    pub(super) fn add_blocked(&mut self, at: usize, fits: bool, names: bool) {
        if fits {
            self.matching.get_or_insert(at);
        }
        if names {
            self.blocked.get_or_insert(at);
        }
    }

    pub(super) fn add_served(&mut self, at: usize, why: NarrowingRefusal, names: bool) {
        if names {
            self.served.get_or_insert(at);
        }
        // Refused names say nothing about the text itself.
        if why != NarrowingRefusal::Names {
            self.text.get_or_insert(why);
        }
    }

    /// The refusal of a statement; `unseen`: tables that it names and that are not visible.
    pub(super) fn refusal(&self, unseen: &[String]) -> TemplateRefusal {
        let blocked = self.blocked.filter(|_| self.served.is_none());
        match self.matching.or(blocked) {
            Some(at) if self.matching.is_some() || unseen.is_empty() => TemplateRefusal::Feed(at),
            _ if !unseen.is_empty() => {
                TemplateRefusal::Unseen(self.served.or(self.blocked), unseen.into())
            }
            _ => self.text.unwrap_or(NarrowingRefusal::Names).into(),
        }
    }
}

/// Tables of this database that a statement names and that are not visible.
pub(super) fn unseen_tables(named: &[TableName], tables: &DatabaseCatalogue) -> Arc<[String]> {
    let is_unseen_here = |named: &&TableName| {
        let database = named.database.as_ref();
        database.is_none_or(|own| *own == tables.database)
            && tables.catalogue_table(&named.table).is_none()
    };
    let unseen: BTreeSet<String> = named
        .iter()
        .filter(is_unseen_here)
        .map(|it| it.table.clone())
        .collect();
    unseen.into_iter().collect()
}

/// True if a statement that names these tables names a feed's messages, in a database that may be the feed's.
pub(super) fn names_messages(
    tables_named: &[TableName],
    definition: &FeedDefinition,
    database: &str,
) -> bool {
    let may = |own: Option<&str>| own.is_none_or(|own| own == database);
    let is = |named: &TableName| {
        named.table == definition.message.table && may(named.database.as_deref())
    };
    may(definition.database.as_deref()) && tables_named.iter().any(is)
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
