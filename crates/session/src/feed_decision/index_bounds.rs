//! Whom and which messages a statement means, as memory has them.

use headwater_feed::binding::{FeedPageRequest, FeedPosition};
use headwater_feed::{NarrowingRefusal, Template};
use headwater_timeline::index::{KeyedMessage, MessageRange};

use super::FeedRelayReason;

/// Readers and authors as memory has them: it holds numbers from 0 on.
pub(super) fn index_numbers(
    places: &[u64],
    template: &Template,
) -> Result<Vec<u64>, FeedRelayReason> {
    let number = |place: &u64| u64::try_from(template.types.author.decode(*place));
    let numbers: Result<Vec<u64>, _> = places.iter().map(number).collect();
    Ok(numbers.map_err(|_| NarrowingRefusal::Types)?)
}

/// The bounds as memory has them: it holds ids from 0 on.
pub(super) fn index_range(
    asked: &FeedPageRequest,
    template: &Template,
    most: usize,
) -> Result<MessageRange<KeyedMessage>, FeedRelayReason> {
    let number = |at: FeedPosition| u64::try_from(template.types.id.decode(at.id));
    let upper = match asked.upper {
        Some(at) => Some(match (number(at), at.key.checked_sub(1)) {
            (Ok(id), _) => KeyedMessage { key: at.key, id },
            // Below all ids of its key.
            (Err(_), Some(key)) => KeyedMessage { key, id: u64::MAX },
            (Err(_), None) => return Err(NarrowingRefusal::Types.into()),
        }),
        None => None,
    };
    let lower = asked
        .lower
        .map_or(KeyedMessage::default(), |at| KeyedMessage {
            key: at.key,
            id: number(at).unwrap_or(0),
        });
    Ok(MessageRange {
        upper,
        lower,
        limit: most,
    })
}
