//! Texts that name no feed's messages and look like those of feeds: those that come often are looked at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::feed_worker::FeedTask;
use super::{FeedDiscoveryMode, FeedRegistry, template_key};
use crate::clock;
use crate::feed::words::StatementWords;

/// So often a text of one template has come before its tables are looked at.
const CHECK_AFTER: u32 = 10;
/// What was found is taken to be so for so long.
const JUDGEMENT_TTL: Duration = Duration::from_secs(600);
/// The same where a right was missing, which may be given any time.
const UNSEEN_TTL: Duration = Duration::from_secs(10);

/// What is known of such a template.
#[derive(Debug)]
pub(super) enum UnmatchedTemplate {
    /// It came so often.
    Counted(u32),
    /// It is being looked at.
    Pending,
    /// It was found to be this.
    Judged { at: Instant, is: UnmatchedTextKind },
}

/// What such a text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnmatchedTextKind {
    /// One of a feed that the log has named.
    Suggested,
    /// It looks like one, and these of its tables cannot be seen.
    Unseen(Arc<[String]>),
    /// Nothing that is known.
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
    /// Another text has come: what it is, or that this is to be found out now.
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
    /// Meets a text that is sent in a database, and names no feed's messages.
    #[must_use]
    pub fn classify_unmatched(&self, database: &[u8], text: &[u8]) -> UnmatchedTextKind {
        if self.discovery_mode == FeedDiscoveryMode::Off {
            return UnmatchedTextKind::Unknown;
        }
        let Some(words) = StatementWords::read(text) else {
            return UnmatchedTextKind::Unknown;
        };
        let key = template_key(database, &words);
        let met = {
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
        met.unwrap_or_else(|| {
            self.enqueue_unmatched(key, database, text);
            UnmatchedTextKind::Unknown
        })
    }

    /// What a text is that names no feed's messages, and is only asked about: found out since a moment. `None`: it is being looked at.
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
