//! Texts that name no feed's messages and look like those of feeds: those that come often are looked at once.

use std::time::{Duration, Instant};

use super::work::Work;
use super::{Auto, Feeds, key};
use crate::feed::words::Words;

/// So often a text of one template has come before its tables are looked at.
const OFTEN: u32 = 10;
/// What was found is taken to be so for so long.
const JUDGED_FOR: Duration = Duration::from_secs(600);

/// What is known of such a template.
#[derive(Debug)]
pub(super) enum Stranger {
    /// It came so often.
    Came(u32),
    /// It is being looked at.
    Asked,
    /// It is one of a feed that nobody named, or of none.
    Judged { at: Instant, is_feed: bool },
}

/// What such a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// One of a feed that the log has named.
    Suggested,
    /// Nothing that is known.
    Unknown,
}

impl Stranger {
    /// Another text has come: what it is, or that this is to be found out now.
    fn comes(&mut self) -> Option<Met> {
        match self {
            Stranger::Came(times) if *times < OFTEN => *times += 1,
            Stranger::Asked => {}
            Stranger::Judged { at, is_feed } if at.elapsed() < JUDGED_FOR => {
                return Some(match is_feed {
                    true => Met::Suggested,
                    false => Met::Unknown,
                });
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
            let work = Work::Stranger {
                key: key.clone(),
                database: database.to_vec(),
                text: text.to_vec(),
            };
            if !self.look(work) {
                self.state().strangers.pop(&*key);
            }
            Met::Unknown
        })
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
            is_feed: true,
        };
        assert_eq!(stranger.comes(), Some(Met::Suggested));
    }
}
