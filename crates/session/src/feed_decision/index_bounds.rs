//! A statement's readers, authors and message range in the index's numbers.

use headwater_feed::binding::FeedPosition;
use headwater_feed::{NarrowingRefusal, Template};
use headwater_timeline::index::{KeyedMessage, MessageRange};

use super::FeedRelayReason;

/// The bounds in the index's ids, which start at 0.
pub(super) fn index_range(
    (lower, upper): (Option<FeedPosition>, Option<FeedPosition>),
    template: &Template,
    limit: usize,
) -> Result<MessageRange<KeyedMessage>, FeedRelayReason> {
    let number = |at: FeedPosition| u64::try_from(template.types.id.decode(at.id));
    let upper = match upper {
        Some(at) => Some(match (number(at), at.key.checked_sub(1)) {
            (Ok(id), _) => KeyedMessage { key: at.key, id },
            // Below all ids of its key.
            (Err(_), Some(key)) => KeyedMessage { key, id: u64::MAX },
            (Err(_), None) => return Err(NarrowingRefusal::Types.into()),
        }),
        None => None,
    };
    let lower = lower.map_or(KeyedMessage::default(), |at| KeyedMessage {
        key: at.key,
        id: number(at).unwrap_or(0),
    });
    Ok(MessageRange {
        upper,
        lower,
        limit,
    })
}
