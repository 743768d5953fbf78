//! Finds in a server's log where what memory is made of ends: memory goes on from there, with the log of another server than the one that
//! it was filled beside, or is emptied.
//!
//! The log is read from the beginning of a file that begins with nothing that memory has not. What memory has is passed over. It goes on
//! with the first transaction that it has not, if all that it has came before that one. Anything else is another history: the old server
//! had more, or the new one has transactions of its own in between, and what the rows would be then nobody has told.

use super::gtid::{Gtid, Gtids, Source, Stamp};

/// Why memory is not of this server's history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Strayed {
    /// The server has not got all.
    #[error("the server lacks transactions that memory is made of: {0}")]
    Lacks(String),
    /// It has others before these.
    #[error("the server has a transaction of its own before others that memory is made of: {0}")]
    Between(Gtid),
    /// A number was given again: the log was begun anew.
    #[error("the server's {0} is another transaction than the one that memory is made of")]
    Renumbered(Gtid),
    /// There is one that has no number.
    #[error("the server's log holds a transaction without a global id (GTID)")]
    Anonymous,
}

/// What a transaction is to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It is in it.
    Held,
    /// It is to be applied.
    New,
}

/// A search.
#[derive(Clone, Debug)]
pub struct Seek {
    held: Gtids,
    /// The last of it, which has to be found.
    last: Stamp,
    /// What has not been seen of it.
    left: Gtids,
    /// Transactions with a number of this group may stand in another order on each of its members: those that do have nothing to do with
    /// one another, or one of them would have been refused.
    group: Option<Source>,
    /// Something new was seen that is not the group's.
    went_on: bool,
}

impl Seek {
    /// In a log whose file begins behind these transactions. `None`: there are some among them that memory has not, or the last that it
    /// has, so an older file is to be looked at.
    #[must_use]
    pub fn begin(
        (held, last): (&Gtids, &Stamp),
        before: &Gtids,
        group: Option<Source>,
    ) -> Option<Seek> {
        let begins = before.is_within(held) && !before.has(&last.gtid);
        begins.then(|| Seek {
            left: held.without(before),
            held: held.clone(),
            last: last.clone(),
            group,
            went_on: false,
        })
    }

    /// The next transaction of the log begins.
    ///
    /// # Errors
    /// When this is another history.
    pub fn hears(&mut self, stamp: Option<&Stamp>) -> Result<Known, Strayed> {
        let Stamp { gtid, at } = stamp.ok_or(Strayed::Anonymous)?;
        if self.held.has(gtid) {
            if self.went_on {
                return Err(Strayed::Between(gtid.clone()));
            }
            if *gtid == self.last.gtid && *at != self.last.at {
                return Err(Strayed::Renumbered(gtid.clone()));
            }
            self.left.remove(gtid);
            return Ok(Known::Held);
        }
        if self.group.as_ref() != Some(&gtid.source) {
            if !self.is_complete() {
                return Err(Strayed::Between(gtid.clone()));
            }
            self.went_on = true;
        }
        Ok(Known::New)
    }

    /// What memory is made of.
    #[must_use]
    pub fn held(&self) -> (&Gtids, &Stamp) {
        (&self.held, &self.last)
    }

    /// True once all of it was seen.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.left.is_empty()
    }

    /// The log has been read to where it ended when it was asked for.
    ///
    /// # Errors
    /// When not all of it was seen.
    pub fn ends(&self) -> Result<(), Strayed> {
        match self.is_complete() {
            true => Ok(()),
            false => Err(Strayed::Lacks(self.left.to_string())),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    const ONE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const TWO: &str = "4e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn sets(texts: [&str; 2]) -> [Gtids; 2] {
        texts.map(|text| {
            let text = text.replace("one", ONE).replace("two", TWO);
            Gtids::parse(&text).unwrap()
        })
    }

    fn gtid(text: &str) -> Gtid {
        if let Some((who, number)) = text.split_once(':') {
            let uuid = if who == "one" { ONE } else { TWO };
            let source = Source::Uuid(crate::gtid::uuid(uuid).unwrap(), String::new());
            let number = number.parse().unwrap();
            return Gtid { source, number };
        }
        let numbers: Vec<u64> = text.split('-').map(|part| part.parse().unwrap()).collect();
        let [domain, server] =
            [numbers[0], numbers[1]].map(|number| u32::try_from(number).unwrap());
        let source = Source::Domain { domain, server };
        let number = numbers[2];
        Gtid { source, number }
    }

    fn stamp(text: &str) -> Stamp {
        let gtid = gtid(text);
        let at = gtid.number * 10;
        Stamp { gtid, at }
    }

    fn seek(held: &str, last: &str, before: &str, group: bool) -> Option<Seek> {
        let [held, before] = sets([held, before]);
        let group = group.then(|| gtid("one:1").source);
        Seek::begin((&held, &stamp(last)), &before, group)
    }

    type Heard = (Vec<Result<Known, Strayed>>, bool);

    /// What is made of each transaction; and whether the end of the log is the end of what is held.
    fn heard((held, last): (&str, &str), before: &str, log: &[&str], group: bool) -> Heard {
        let mut seek = seek(held, last, before, group).unwrap();
        let heard = log.iter().map(|text| seek.hears(Some(&stamp(text))));
        (heard.collect(), seek.ends().is_ok())
    }

    const SEVEN: (&str, &str) = ("one:1-7", "one:7");
    const MARIADB: (&str, &str) = ("0-1-7", "0-1-7");

    use Known::{Held, New};

    #[test]
    fn memory_goes_on_behind_what_it_has() {
        let (told, whole) = heard(
            SEVEN,
            "one:1-5",
            &["one:6", "one:7", "two:1", "two:2"],
            false,
        );
        assert_eq!(
            (told, whole),
            (vec![Ok(Held), Ok(Held), Ok(New), Ok(New)], true)
        );
        let (told, whole) = heard(MARIADB, "0-1-5", &["0-1-6", "0-1-7", "0-2-8"], false);
        assert_eq!((told, whole), (vec![Ok(Held), Ok(Held), Ok(New)], true));
    }

    #[test]
    fn a_server_that_lacks_some_is_of_another_history() {
        let (told, whole) = heard(SEVEN, "one:1-5", &["one:6"], false);
        assert_eq!((told, whole), (vec![Ok(Held)], false));
        let (told, whole) = heard(SEVEN, "one:1-5", &["one:6", "two:1"], false);
        assert_eq!(
            (told[1].clone(), whole),
            (Err(Strayed::Between(gtid("two:1"))), false)
        );
        // MariaDB: the old primary's last one is not there, and its number was given again by another server.
        let (told, whole) = heard(MARIADB, "0-1-5", &["0-1-6", "0-2-7"], false);
        assert_eq!(
            (told[1].clone(), whole),
            (Err(Strayed::Between(gtid("0-2-7"))), false)
        );
    }

    #[test]
    fn a_server_with_its_own_in_between_is_of_another_history() {
        let (told, _) = heard(SEVEN, "one:1-5", &["one:6", "two:1", "one:7"], false);
        assert!(told[1].is_err());
        assert!(seek(SEVEN.0, SEVEN.1, "one:1-5,two:1", false).is_none());
        assert!(
            seek(SEVEN.0, SEVEN.1, "one:1-7", false).is_none(),
            "the last one is to be seen"
        );
        let mut seek = seek(SEVEN.0, SEVEN.1, "one:1-5", false).unwrap();
        assert_eq!(seek.hears(None), Err(Strayed::Anonymous));
        // MariaDB: one that another server wrote before.
        let (told, _) = heard(MARIADB, "0-1-5", &["0-2-6", "0-1-7"], false);
        assert!(told[0].is_err());
    }

    #[test]
    fn a_group_may_have_its_own_in_another_order_and_nobody_elses() {
        let log = ["one:5", "one:6", "one:7", "one:8"];
        let (told, whole) = heard(("one:1-4:6", "one:6"), "one:1-4", &log, true);
        assert_eq!(
            (told, whole),
            (vec![Ok(New), Ok(Held), Ok(New), Ok(New)], true)
        );
        let (told, _) = heard(("one:1-4:6", "one:6"), "one:1-4", &log, false);
        assert!(told[0].is_err());
        let (told, _) = heard(("one:1-4:6", "one:6"), "one:1-4", &["two:1", "one:6"], true);
        assert!(told[0].is_err());
    }

    #[test]
    fn a_number_that_was_given_again_is_of_another_history() {
        let mut seek = seek(MARIADB.0, MARIADB.1, "", false).unwrap();
        assert_eq!(seek.hears(Some(&stamp("0-1-6"))), Ok(Held));
        let again = Stamp {
            at: 71,
            ..stamp("0-1-7")
        };
        assert_eq!(
            seek.hears(Some(&again)),
            Err(Strayed::Renumbered(again.gtid.clone()))
        );
    }
}
