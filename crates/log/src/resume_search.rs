//! Finds in a server's log where what memory is made of ends: memory goes on from there, with the log of another server than the one that
//! it was filled beside, or is emptied.
//!
//! The log is read from the beginning of a file that begins with nothing that memory has not. What memory has is passed over. It goes on
//! with the first transaction that it has not, if all that it has came before that one. Anything else is another history: the old server
//! had more, or the new one has transactions of its own in between, and what the rows would be then nobody has told.

use super::gtid::{CommittedGtid, Gtid, GtidSet, GtidSource};

/// Why memory is not of this server's history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryMismatch {
    /// The server has not got all.
    #[error("the server lacks transactions that memory is made of: {0}")]
    Missing(String),
    /// It has others before these.
    #[error("the server has a transaction of its own before others that memory is made of: {0}")]
    Interleaved(Gtid),
    /// A number was given again: the log was begun anew.
    #[error("the server's {0} is another transaction than the one that memory is made of")]
    Renumbered(Gtid),
    /// There is one that has no number.
    #[error("the server's log holds a transaction without a global id (GTID)")]
    Anonymous,
}

/// What a transaction is to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionMembership {
    /// It is in it.
    Applied,
    /// It is to be applied.
    New,
}

/// A search.
#[derive(Clone, Debug)]
pub struct ResumeSearch {
    applied: GtidSet,
    /// The last of it, which has to be found.
    last: CommittedGtid,
    /// What has not been seen of it.
    remaining: GtidSet,
    /// Transactions with a number of this group may stand in another order on each of its members: those that do have nothing to do with
    /// one another, or one of them would have been refused.
    group: Option<GtidSource>,
    /// Something new was seen that is not the group's.
    passed_end: bool,
}

impl ResumeSearch {
    /// In a log whose file begins behind these transactions. `None`: there are some among them that memory has not, or the last that it
    /// has, so an older file is to be looked at.
    #[must_use]
    pub fn begin(
        (held, last): (&GtidSet, &CommittedGtid),
        before: &GtidSet,
        group: Option<GtidSource>,
    ) -> Option<ResumeSearch> {
        let begins = before.is_subset(held) && !before.contains(&last.gtid);
        begins.then(|| ResumeSearch {
            remaining: held.difference(before),
            applied: held.clone(),
            last: last.clone(),
            group,
            passed_end: false,
        })
    }

    /// The next transaction of the log begins.
    ///
    /// # Errors
    /// When this is another history.
    pub fn observe(
        &mut self,
        stamp: Option<&CommittedGtid>,
    ) -> Result<TransactionMembership, HistoryMismatch> {
        let CommittedGtid {
            gtid,
            committed_at: at,
        } = stamp.ok_or(HistoryMismatch::Anonymous)?;
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

    /// What memory is made of.
    #[must_use]
    pub fn applied(&self) -> (&GtidSet, &CommittedGtid) {
        (&self.applied, &self.last)
    }

    /// True once all of it was seen.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.remaining.is_empty()
    }

    /// The log has been read to where it ended when it was asked for.
    ///
    /// # Errors
    /// When not all of it was seen.
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

    fn stamp(text: &str) -> CommittedGtid {
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
        ResumeSearch::begin((&held, &stamp(last)), &before, group)
    }

    type SearchOutcome = (Vec<Result<TransactionMembership, HistoryMismatch>>, bool);

    /// What is made of each transaction; and whether the end of the log is the end of what is held.
    fn search_outcome(
        (held, last): (&str, &str),
        before: &str,
        log: &[&str],
        group: bool,
    ) -> SearchOutcome {
        let mut seek = seek(held, last, before, group).unwrap();
        let heard = log.iter().map(|text| seek.observe(Some(&stamp(text))));
        (heard.collect(), seek.finish().is_ok())
    }

    const SEVEN: (&str, &str) = ("one:1-7", "one:7");
    const MARIADB: (&str, &str) = ("0-1-7", "0-1-7");

    use TransactionMembership::{Applied, New};

    #[test]
    fn memory_goes_on_behind_what_it_has() {
        let (told, whole) = search_outcome(
            SEVEN,
            "one:1-5",
            &["one:6", "one:7", "two:1", "two:2"],
            false,
        );
        assert_eq!(
            (told, whole),
            (vec![Ok(Applied), Ok(Applied), Ok(New), Ok(New)], true)
        );
        let (told, whole) = search_outcome(MARIADB, "0-1-5", &["0-1-6", "0-1-7", "0-2-8"], false);
        assert_eq!(
            (told, whole),
            (vec![Ok(Applied), Ok(Applied), Ok(New)], true)
        );
    }

    #[test]
    fn a_server_that_lacks_some_is_of_another_history() {
        let (told, whole) = search_outcome(SEVEN, "one:1-5", &["one:6"], false);
        assert_eq!((told, whole), (vec![Ok(Applied)], false));
        let (told, whole) = search_outcome(SEVEN, "one:1-5", &["one:6", "two:1"], false);
        assert_eq!(
            (told[1].clone(), whole),
            (Err(HistoryMismatch::Interleaved(gtid("two:1"))), false)
        );
        // MariaDB: the old primary's last one is not there, and its number was given again by another server.
        let (told, whole) = search_outcome(MARIADB, "0-1-5", &["0-1-6", "0-2-7"], false);
        assert_eq!(
            (told[1].clone(), whole),
            (Err(HistoryMismatch::Interleaved(gtid("0-2-7"))), false)
        );
    }

    #[test]
    fn a_server_with_its_own_in_between_is_of_another_history() {
        let (told, _) = search_outcome(SEVEN, "one:1-5", &["one:6", "two:1", "one:7"], false);
        assert!(told[1].is_err());
        assert!(seek(SEVEN.0, SEVEN.1, "one:1-5,two:1", false).is_none());
        assert!(
            seek(SEVEN.0, SEVEN.1, "one:1-7", false).is_none(),
            "the last one is to be seen"
        );
        let mut seek = seek(SEVEN.0, SEVEN.1, "one:1-5", false).unwrap();
        assert_eq!(seek.observe(None), Err(HistoryMismatch::Anonymous));
        // MariaDB: one that another server wrote before.
        let (told, _) = search_outcome(MARIADB, "0-1-5", &["0-2-6", "0-1-7"], false);
        assert!(told[0].is_err());
    }

    #[test]
    fn a_group_may_have_its_own_in_another_order_and_nobody_elses() {
        let log = ["one:5", "one:6", "one:7", "one:8"];
        let (told, whole) = search_outcome(("one:1-4:6", "one:6"), "one:1-4", &log, true);
        assert_eq!(
            (told, whole),
            (vec![Ok(New), Ok(Applied), Ok(New), Ok(New)], true)
        );
        let (told, _) = search_outcome(("one:1-4:6", "one:6"), "one:1-4", &log, false);
        assert!(told[0].is_err());
        let (told, _) =
            search_outcome(("one:1-4:6", "one:6"), "one:1-4", &["two:1", "one:6"], true);
        assert!(told[0].is_err());
    }

    #[test]
    fn a_number_that_was_given_again_is_of_another_history() {
        let mut seek = seek(MARIADB.0, MARIADB.1, "", false).unwrap();
        assert_eq!(seek.observe(Some(&stamp("0-1-6"))), Ok(Applied));
        let again = CommittedGtid {
            committed_at: 71,
            ..stamp("0-1-7")
        };
        assert_eq!(
            seek.observe(Some(&again)),
            Err(HistoryMismatch::Renumbered(again.gtid.clone()))
        );
    }
}
