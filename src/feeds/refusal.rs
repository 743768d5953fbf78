//! Why a template is not served, as its text and the tables are.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::feed::facts::Tables;
use crate::feed::template::Named;
use crate::feed::{FeedDefinition, Refused};
use crate::session::narrowing::Why;

/// Why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// What its text says.
    Text(Refused),
    /// It is one of this feed, by its place among all, in whose way the check found something.
    Feed(usize),
    /// It names tables that cannot be seen, beside those of a feed where one is told.
    Unseen(Option<usize>, Arc<[String]>),
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Refusal {
        Refusal::Text(refused)
    }
}

impl Refusal {
    /// The name that counters have for it.
    pub(super) fn why(&self) -> Why {
        match self {
            Refusal::Text(refused) => (*refused).into(),
            Refusal::Feed(_) => Why::Refused,
            Refusal::Unseen(..) => Why::Unseen,
        }
    }

    /// Whose the template is, where that is known.
    pub(super) fn feed(&self) -> Option<usize> {
        match self {
            Refusal::Text(_) => None,
            Refusal::Feed(at) => Some(*at),
            Refusal::Unseen(at, _) => *at,
        }
    }
}

/// What was found of a statement that no feed serves.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    /// A feed that is not served, and of whose shape it is.
    fits: Option<usize>,
    /// A feed that is not served, and whose messages it names.
    barred: Option<usize>,
    /// The same of one that is served.
    named: Option<usize>,
    /// What the first of those that are served says of the text.
    text: Option<Refused>,
}

impl Judgement {
    /// A feed that is not served was looked at.
    pub(super) fn barred(&mut self, at: usize, fits: bool, names: bool) {
        if fits {
            self.fits.get_or_insert(at);
        }
        if names {
            self.barred.get_or_insert(at);
        }
    }

    /// One that is served was.
    pub(super) fn served(&mut self, at: usize, why: Refused, names: bool) {
        if names {
            self.named.get_or_insert(at);
        }
        // Another feed's names say nothing of the text.
        if why != Refused::Names {
            self.text.get_or_insert(why);
        }
    }

    /// Of a statement that names tables of which these are not to be seen.
    pub(super) fn refusal(&self, unseen: &[String]) -> Refusal {
        let barred = self.barred.filter(|_| self.named.is_none());
        match self.fits.or(barred) {
            Some(at) if self.fits.is_some() || unseen.is_empty() => Refusal::Feed(at),
            _ if !unseen.is_empty() => Refusal::Unseen(self.named.or(self.barred), unseen.into()),
            _ => self.text.unwrap_or(Refused::Names).into(),
        }
    }
}

/// Tables of this database that a statement names and that are not to be seen.
pub(super) fn unseen(named: &[Named], tables: &Tables) -> Arc<[String]> {
    let own = |named: &&Named| {
        let database = named.database.as_ref();
        database.is_none_or(|own| *own == tables.database) && tables.facts(&named.table).is_none()
    };
    let unseen: BTreeSet<String> = named
        .iter()
        .filter(own)
        .map(|it| it.table.clone())
        .collect();
    unseen.into_iter().collect()
}

/// True where a statement that names these tables names the messages of a feed, in a database that may be the feed's.
pub(super) fn names(named: &[Named], definition: &FeedDefinition, database: &str) -> bool {
    let may = |own: Option<&str>| own.is_none_or(|own| own == database);
    let is =
        |named: &Named| named.table == definition.message.table && may(named.database.as_deref());
    may(definition.database.as_deref()) && named.iter().any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_feeds_the_one_whose_statement_it_would_be_is_told() {
        let unseen = ["profiles".to_owned()];
        let mut found = Judgement::default();
        assert_eq!(found.refusal(&[]).why().label(), "names");
        // A feed without the statement's shape stands in the way where no other one could serve it.
        found.barred(3, false, true);
        assert_eq!(found.refusal(&[]), Refusal::Feed(3));
        assert_eq!(found.refusal(&unseen).why(), Why::Unseen);
        assert_eq!(found.refusal(&unseen).feed(), Some(3));
        found.served(4, Refused::Names, true);
        found.served(5, Refused::Order, true);
        found.served(6, Refused::Limit, true);
        assert_eq!(found.refusal(&[]), Refused::Order.into());
        assert_eq!(found.refusal(&unseen).feed(), Some(4));
        found.barred(7, true, true);
        assert_eq!(found.refusal(&unseen), Refusal::Feed(7));
    }
}
