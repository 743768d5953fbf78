//! Searches a server's log for the end of what memory contains. Memory then resumes from there, with the log of another server than
//! the one it was filled from, or it is emptied.
//!
//! The log is read from a file before which memory has all transactions. Those that memory has are skipped. Memory resumes at the
//! first one that it lacks, if everything that it has came before. Anything else is another history: the old server had more, or the
//! new one has transactions of its own in between, and the log does not contain what the rows would be then.

use super::gtid::{CommittedGtid, Gtid, GtidSet, GtidSource};

/// Why memory does not belong to this server's history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryMismatch {
    /// The server lacks some transactions.
    #[error("the server lacks transactions that memory is made of: {0}")]
    Missing(String),
    /// The server has other transactions before these.
    #[error("the server has a transaction of its own before others that memory is made of: {0}")]
    Interleaved(Gtid),
    /// A number was assigned again: the log was reset.
    #[error("the server's {0} is another transaction than the one that memory is made of")]
    Renumbered(Gtid),
    /// A transaction has no GTID.
    #[error("the server's log holds a transaction without a global id (GTID)")]
    Anonymous,
}

/// Whether memory contains a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionMembership {
    /// Memory contains it.
    Applied,
    /// It is to be applied.
    New,
}

/// The state of a search.
#[derive(Clone, Debug)]
pub struct ResumeSearch {
    applied: GtidSet,
    /// The last applied transaction, which must be found.
    last: CommittedGtid,
    /// Applied transactions that have not been found yet.
    remaining: GtidSet,
    /// The members of this group may order its transactions differently: those that differ in order are independent of each other, or
    /// one of them would have been rejected.
    group: Option<GtidSource>,
    /// A new transaction was seen that is not the group's.
    passed_end: bool,
}

impl ResumeSearch {
    /// Searches a log whose file begins after the transactions `before`. `None`: memory lacks some of them, or they include the last one
    /// that it has, so an older file is needed.
    #[must_use]
    pub fn begin(
        (held, last): (&GtidSet, &CommittedGtid),
        before: &GtidSet,
        group: Option<GtidSource>,
    ) -> Option<ResumeSearch> {
        let is_start = before.is_subset(held) && !before.contains(&last.gtid);
        is_start.then(|| ResumeSearch {
            remaining: held.difference(before),
            applied: held.clone(),
            last: last.clone(),
            group,
            passed_end: false,
        })
    }

    /// Processes the next transaction of the log.
    ///
    /// # Errors
    /// When this is another history.
    pub fn observe(
        &mut self,
        committed_gtid: Option<&CommittedGtid>,
    ) -> Result<TransactionMembership, HistoryMismatch> {
        let CommittedGtid {
            gtid,
            committed_at: at,
        } = committed_gtid.ok_or(HistoryMismatch::Anonymous)?;
        if self.applied.contains(gtid) {
            if self.passed_end {
                return Err(HistoryMismatch::Interleaved(gtid.clone()));
            }
            if *gtid == self.last.gtid && *at != self.last.committed_at {
                return Err(HistoryMismatch::Renumbered(gtid.clone()));
            }
            self.remaining.remove(gtid);
            return Ok(TransactionMembership::Applied);
        }
        if self.group.as_ref() != Some(&gtid.source) {
            if !self.is_complete() {
                return Err(HistoryMismatch::Interleaved(gtid.clone()));
            }
            self.passed_end = true;
        }
        Ok(TransactionMembership::New)
    }

    /// The transactions that memory contains, and the last of them.
    #[must_use]
    pub fn applied(&self) -> (&GtidSet, &CommittedGtid) {
        (&self.applied, &self.last)
    }

    /// True once all of them were found.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.remaining.is_empty()
    }

    /// Ends the search, at the position where the log ended when the server was asked for it.
    ///
    /// # Errors
    /// When not all of them were found.
    pub fn finish(&self) -> Result<(), HistoryMismatch> {
        match self.is_complete() {
            true => Ok(()),
            false => Err(HistoryMismatch::Missing(self.remaining.to_string())),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    const ONE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const TWO: &str = "4e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn sets(texts: [&str; 2]) -> [GtidSet; 2] {
        texts.map(|text| {
            let text = text.replace("one", ONE).replace("two", TWO);
            GtidSet::parse(&text).unwrap()
        })
    }

    fn gtid(text: &str) -> Gtid {
        if let Some((who, number)) = text.split_once(':') {
            let uuid = if who == "one" { ONE } else { TWO };
            let source =
                GtidSource::Uuid(crate::gtid::parse_uuid_bytes(uuid).unwrap(), String::new());
            let number = number.parse().unwrap();
            return Gtid { source, number };
        }
        let numbers: Vec<u64> = text.split('-').map(|part| part.parse().unwrap()).collect();
        let [domain, server] =
            [numbers[0], numbers[1]].map(|number| u32::try_from(number).unwrap());
        let source = GtidSource::Domain { domain, server };
        let number = numbers[2];
        Gtid { source, number }
    }

    fn committed_gtid(text: &str) -> CommittedGtid {
        let gtid = gtid(text);
        let at = gtid.number * 10;
        CommittedGtid {
            gtid,
            committed_at: at,
        }
    }

    fn seek(held: &str, last: &str, before: &str, group: bool) -> Option<ResumeSearch> {
        let [held, before] = sets([held, before]);
        let group = group.then(|| gtid("one:1").source);
        ResumeSearch::begin((&held, &committed_gtid(last)), &before, group)
    }

    type SearchOutcome = (Vec<Result<TransactionMembership, HistoryMismatch>>, bool);

    /// The result of each transaction; and whether all that memory contains was found.
    fn search_outcome(
        (held, last): (&str, &str),
        before: &str,
        log: &[&str],
        group: bool,
    ) -> SearchOutcome {
        let mut seek = seek(held, last, before, group).unwrap();
        let outcomes = log
            .iter()
            .map(|text| seek.observe(Some(&committed_gtid(text))));
        (outcomes.collect(), seek.finish().is_ok())
    }

    const SEVEN: (&str, &str) = ("one:1-7", "one:7");
    const MARIADB: (&str, &str) = ("0-1-7", "0-1-7");

    use TransactionMembership::{Applied, New};

    #[test]
    fn memory_resumes_after_what_it_contains() {
        let (outcomes, whole) = search_outcome(
            SEVEN,
            "one:1-5",
            &["one:6", "one:7", "two:1", "two:2"],
            false,
        );
        assert_eq!(
            (outcomes, whole),
            (vec![Ok(Applied), Ok(Applied), Ok(New), Ok(New)], true)
        );
        let (outcomes, whole) =
            search_outcome(MARIADB, "0-1-5", &["0-1-6", "0-1-7", "0-2-8"], false);
        assert_eq!(
            (outcomes, whole),
            (vec![Ok(Applied), Ok(Applied), Ok(New)], true)
        );
    }

    #[test]
    fn a_server_that_lacks_some_is_of_another_history() {
        let (outcomes, whole) = search_outcome(SEVEN, "one:1-5", &["one:6"], false);
        assert_eq!((outcomes, whole), (vec![Ok(Applied)], false));
        let (outcomes, whole) = search_outcome(SEVEN, "one:1-5", &["one:6", "two:1"], false);
        assert_eq!(
            (outcomes[1].clone(), whole),
            (Err(HistoryMismatch::Interleaved(gtid("two:1"))), false)
        );
        // MariaDB: the old primary's last transaction is missing, and its number was assigned again by another server.
        let (outcomes, whole) = search_outcome(MARIADB, "0-1-5", &["0-1-6", "0-2-7"], false);
        assert_eq!(
            (outcomes[1].clone(), whole),
            (Err(HistoryMismatch::Interleaved(gtid("0-2-7"))), false)
        );
    }

    #[test]
    fn a_server_with_other_transactions_in_between_is_of_another_history() {
        let (outcomes, _) = search_outcome(SEVEN, "one:1-5", &["one:6", "two:1", "one:7"], false);
        assert!(outcomes[1].is_err());
        assert!(seek(SEVEN.0, SEVEN.1, "one:1-5,two:1", false).is_none());
        assert!(
            seek(SEVEN.0, SEVEN.1, "one:1-7", false).is_none(),
            "the last one is to be seen"
        );
        let mut seek = seek(SEVEN.0, SEVEN.1, "one:1-5", false).unwrap();
        assert_eq!(seek.observe(None), Err(HistoryMismatch::Anonymous));
        // MariaDB: another server wrote one before.
        let (outcomes, _) = search_outcome(MARIADB, "0-1-5", &["0-2-6", "0-1-7"], false);
        assert!(outcomes[0].is_err());
    }

    #[test]
    fn a_group_may_order_its_transactions_differently_and_no_others() {
        let log = ["one:5", "one:6", "one:7", "one:8"];
        let (outcomes, whole) = search_outcome(("one:1-4:6", "one:6"), "one:1-4", &log, true);
        assert_eq!(
            (outcomes, whole),
            (vec![Ok(New), Ok(Applied), Ok(New), Ok(New)], true)
        );
        let (outcomes, _) = search_outcome(("one:1-4:6", "one:6"), "one:1-4", &log, false);
        assert!(outcomes[0].is_err());
        let (outcomes, _) =
            search_outcome(("one:1-4:6", "one:6"), "one:1-4", &["two:1", "one:6"], true);
        assert!(outcomes[0].is_err());
    }

    #[test]
    fn a_number_that_was_given_again_is_of_another_history() {
        let mut seek = seek(MARIADB.0, MARIADB.1, "", false).unwrap();
        assert_eq!(seek.observe(Some(&committed_gtid("0-1-6"))), Ok(Applied));
        let again = CommittedGtid {
            committed_at: 71,
            ..committed_gtid("0-1-7")
        };
        assert_eq!(
            seek.observe(Some(&again)),
            Err(HistoryMismatch::Renumbered(again.gtid.clone()))
        );
    }
}
