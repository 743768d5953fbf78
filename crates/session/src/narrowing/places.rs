//! Whom and which messages a statement means, as memory has them.

use headwater_feed::bind::{Asked, At};
use headwater_feed::{Refused, Template};
use headwater_timeline::index::{Keyed, Range};

use super::Why;

/// Readers and authors as memory has them: it holds numbers from 0 on.
pub(super) fn numbers(places: &[u64], template: &Template) -> Result<Vec<u64>, Why> {
    let number = |place: &u64| u64::try_from(template.types.author.number(*place));
    let numbers: Result<Vec<u64>, _> = places.iter().map(number).collect();
    Ok(numbers.map_err(|_| Refused::Types)?)
}

/// The bounds as memory has them: it holds ids from 0 on.
pub(super) fn range(asked: &Asked, template: &Template, most: usize) -> Result<Range<Keyed>, Why> {
    let number = |at: At| u64::try_from(template.types.id.number(at.id));
    let upper = match asked.upper {
        Some(at) => Some(match (number(at), at.key.checked_sub(1)) {
            (Ok(id), _) => Keyed { key: at.key, id },
            // Below all ids of its key.
            (Err(_), Some(key)) => Keyed { key, id: u64::MAX },
            (Err(_), None) => return Err(Refused::Types.into()),
        }),
        None => None,
    };
    let lower = asked.lower.map_or(Keyed::default(), |at| Keyed {
        key: at.key,
        id: number(at).unwrap_or(0),
    });
    Ok(Range { upper, lower, most })
}
