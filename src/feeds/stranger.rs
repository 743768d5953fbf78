//! Texts that name no feed's messages and look like those of feeds: those that come often are looked at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::work::Work;
use super::{Auto, Feeds, key};
use crate::clock;
use crate::feed::words::Words;

/// So often a text of one template has come before its tables are looked at.
const OFTEN: u32 = 10;
/// What was found is taken to be so for so long.
const JUDGED_FOR: Duration = Duration::from_secs(600);
/// The same where a right was missing, which may be given any time.
const UNSEEN_FOR: Duration = Duration::from_secs(10);

/// What is known of such a template.
#[derive(Debug)]
pub(super) enum Stranger {
    /// It came so often.
    Came(u32),
    /// It is being looked at.
    Asked,
    /// It was found to be this.
    Judged { at: Instant, is: Met },
}

/// What such a text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// One of a feed that the log has named.
    Suggested,
    /// It looks like one, and these of its tables cannot be seen.
    Unseen(Arc<[String]>),
    /// Nothing that is known.
    Unknown,
}

impl Met {
    fn lasts(&self) -> Duration {
        match self {
            Met::Unseen(_) => UNSEEN_FOR,
            Met::Suggested | Met::Unknown => JUDGED_FOR,
        }
    }
}

impl Stranger {
    /// Another text has come: what it is, or that this is to be found out now.
    fn comes(&mut self) -> Option<Met> {
        match self {
            Stranger::Came(times) if *times < OFTEN => *times += 1,
            Stranger::Asked => {}
            Stranger::Judged { at, is } if clock::since(*at) < is.lasts() => {
                return Some(is.clone());
            }
            Stranger::Came(_) | Stranger::Judged { .. } => {
                *self = Stranger::Asked;
                return None;
            }
        }
        Some(Met::Unknown)
    }
}

impl Feeds {
    /// Meets a text that is sent in a database, and names no feed's messages.
    #[must_use]
    pub fn meet(&self, database: &[u8], text: &[u8]) -> Met {
        if self.auto == Auto::Off {
            return Met::Unknown;
        }
        let Some(words) = Words::read(text) else {
            return Met::Unknown;
        };
        let key = key(database, &words);
        let met = {
            let mut state = self.state();
            match state.strangers.get_mut(&*key) {
                Some(stranger) => stranger.comes(),
                None => {
                    state.strangers.put(key.clone(), Stranger::Came(1));
                    Some(Met::Unknown)
                }
            }
        };
        met.unwrap_or_else(|| {
            self.look_at(key, database, text);
            Met::Unknown
        })
    }

    /// What a text is that names no feed's messages, and is only asked about: found out since a moment. `None`: it is being looked at.
    #[must_use]
    pub fn judged(&self, database: &[u8], text: &[u8], since: Instant) -> Option<Met> {
        let words = Words::read(text).filter(|_| self.auto != Auto::Off);
        let Some(words) = words else {
            return Some(Met::Unknown);
        };
        let key = key(database, &words);
        {
            let mut state = self.state();
            match state.strangers.peek(&*key) {
                Some(Stranger::Judged { at, is }) if *at >= since => return Some(is.clone()),
                Some(Stranger::Asked) => return None,
                _ => drop(state.strangers.put(key.clone(), Stranger::Asked)),
            }
        }
        self.look_at(key, database, text);
        None
    }

    fn look_at(&self, key: Box<[u8]>, database: &[u8], text: &[u8]) {
        let work = Work::Stranger {
            key: key.clone(),
            database: database.to_vec(),
            text: text.to_vec(),
        };
        if !self.look(work) {
            self.state().strangers.pop(&*key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_often_is_looked_at_once() {
        let mut stranger = Stranger::Came(1);
        let asked = (1..100).filter(|_| stranger.comes().is_none()).count();
        assert_eq!(asked, 1);
        stranger = Stranger::Judged {
            at: Instant::now(),
            is: Met::Suggested,
        };
        assert_eq!(stranger.comes(), Some(Met::Suggested));
    }
}
