//! Texts that name no feed's messages but resemble those of feeds: frequent ones are classified once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::feed_worker::FeedTask;
use super::{FeedDiscoveryMode, FeedRegistry, template_key};
use crate::clock;
use headwater_feed::words::StatementWords;

/// How often a template's texts come before its tables are read.
const CHECK_AFTER: u32 = 10;
/// How long a classification is valid.
const JUDGEMENT_TTL: Duration = Duration::from_secs(600);
/// How long it is valid while a privilege is missing, which may be granted any time.
const UNSEEN_TTL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) enum UnmatchedTemplate {
    /// Counts its texts.
    Counted(u32),
    /// It is being classified.
    Pending,
    /// It was classified.
    Judged { at: Instant, is: UnmatchedTextKind },
}

/// The classification of such a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnmatchedTextKind {
    /// It belongs to a suggested feed.
    Suggested,
    /// It resembles a feed's, and these of its tables are not visible.
    Unseen(Arc<[String]>),
    /// Nothing is known of it.
    Unknown,
}

impl UnmatchedTextKind {
    fn lifetime(&self) -> Duration {
        match self {
            UnmatchedTextKind::Unseen(_) => UNSEEN_TTL,
            UnmatchedTextKind::Suggested | UnmatchedTextKind::Unknown => JUDGEMENT_TTL,
        }
    }
}

impl UnmatchedTemplate {
    /// Counts another text. `None`: it is to be classified now.
    fn count(&mut self) -> Option<UnmatchedTextKind> {
        match self {
            UnmatchedTemplate::Counted(times) if *times < CHECK_AFTER => *times += 1,
            UnmatchedTemplate::Pending => {}
            UnmatchedTemplate::Judged { at, is } if clock::since(*at) < is.lifetime() => {
                return Some(is.clone());
            }
            UnmatchedTemplate::Counted(_) | UnmatchedTemplate::Judged { .. } => {
                *self = UnmatchedTemplate::Pending;
                return None;
            }
        }
        Some(UnmatchedTextKind::Unknown)
    }
}

impl FeedRegistry {
    /// Classifies a text that was sent in a database and names no feed's messages. Never waits.
    #[must_use]
    pub fn classify_unmatched(&self, database: &[u8], text: &[u8]) -> UnmatchedTextKind {
        if self.discovery_mode == FeedDiscoveryMode::Off {
            return UnmatchedTextKind::Unknown;
        }
        let Some(words) = StatementWords::read(text) else {
            return UnmatchedTextKind::Unknown;
        };
        let key = template_key(database, &words);
        let kind = {
            let mut state = self.state();
            match state.unmatched.get_mut(&*key) {
                Some(stranger) => stranger.count(),
                None => {
                    state
                        .unmatched
                        .put(key.clone(), UnmatchedTemplate::Counted(1));
                    Some(UnmatchedTextKind::Unknown)
                }
            }
        };
        kind.unwrap_or_else(|| {
            self.enqueue_unmatched(key, database, text);
            UnmatchedTextKind::Unknown
        })
    }

    /// Classifies such a text without counting it; an older classification than `since` is renewed. `None`: it is being classified.
    #[must_use]
    pub fn unmatched_kind_since(
        &self,
        database: &[u8],
        text: &[u8],
        since: Instant,
    ) -> Option<UnmatchedTextKind> {
        let words =
            StatementWords::read(text).filter(|_| self.discovery_mode != FeedDiscoveryMode::Off);
        let Some(words) = words else {
            return Some(UnmatchedTextKind::Unknown);
        };
        let key = template_key(database, &words);
        {
            let mut state = self.state();
            match state.unmatched.peek(&*key) {
                Some(UnmatchedTemplate::Judged { at, is }) if *at >= since => {
                    return Some(is.clone());
                }
                Some(UnmatchedTemplate::Pending) => return None,
                _ => drop(state.unmatched.put(key.clone(), UnmatchedTemplate::Pending)),
            }
        }
        self.enqueue_unmatched(key, database, text);
        None
    }

    fn enqueue_unmatched(&self, key: Box<[u8]>, database: &[u8], text: &[u8]) {
        let work = FeedTask::Unmatched {
            key: key.clone(),
            database: database.to_vec(),
            text: text.to_vec(),
        };
        if !self.enqueue(work) {
            self.state().unmatched.pop(&*key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_often_is_looked_at_once() {
        let mut stranger = UnmatchedTemplate::Counted(1);
        let asked = (1..100).filter(|_| stranger.count().is_none()).count();
        assert_eq!(asked, 1);
        stranger = UnmatchedTemplate::Judged {
            at: Instant::now(),
            is: UnmatchedTextKind::Suggested,
        };
        assert_eq!(stranger.count(), Some(UnmatchedTextKind::Suggested));
    }
}
