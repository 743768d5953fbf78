//! Whose timelines are asked for: a share of the calls, noted without a lock, for those who watch.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::timeline::definition::DefinitionId;

/// One call of so many is noted.
const EACH: u64 = 16;
/// So many of them are remembered.
const NOTED: usize = 4096;
/// Bits of a reader; the definition's number stands above them.
const READER_BITS: u32 = 52;

/// The last calls that were noted.
#[derive(Debug)]
pub struct Hot {
    calls: AtomicU64,
    /// Each one word, so that none is read half written; 0 is none.
    noted: Box<[AtomicU64]>,
}

impl Default for Hot {
    fn default() -> Self {
        Hot {
            calls: AtomicU64::new(0),
            noted: (0..NOTED).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Hot {
    /// A call for this reader's timeline was answered.
    pub fn add(&self, definition: DefinitionId, reader: u64) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if !call.is_multiple_of(EACH) {
            return;
        }
        let Some(word) = packed(definition, reader) else {
            return;
        };
        let place = usize::try_from(call / EACH).unwrap_or_default() % NOTED;
        if let Some(noted) = self.noted.get(place) {
            noted.store(word, Ordering::Relaxed);
        }
    }

    /// Those that are remembered, in no order.
    #[must_use]
    pub fn noted(&self) -> Vec<(DefinitionId, u64)> {
        let words = self.noted.iter().map(|it| it.load(Ordering::Relaxed));
        words.filter_map(unpacked).collect()
    }
}

/// `None`: such ids are not noted.
fn packed(definition: DefinitionId, reader: u64) -> Option<u64> {
    let number = u64::try_from(definition.0).ok()? + 1;
    let fits = reader >> READER_BITS == 0 && number >> (u64::BITS - READER_BITS) == 0;
    fits.then_some(number << READER_BITS | reader)
}

fn unpacked(word: u64) -> Option<(DefinitionId, u64)> {
    let number = usize::try_from(word >> READER_BITS).ok()?;
    let reader = word & ((1 << READER_BITS) - 1);
    Some((DefinitionId(number.checked_sub(1)?), reader))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_calls_is_noted_and_the_oldest_are_forgotten() {
        let hot = Hot::default();
        assert_eq!(hot.noted(), []);
        for _ in 0..EACH {
            hot.add(DefinitionId(0), 0);
        }
        assert_eq!(hot.noted(), [(DefinitionId(0), 0)]);
        for _ in 0..EACH * NOTED as u64 {
            hot.add(DefinitionId(3), 7);
        }
        let noted = hot.noted();
        assert_eq!(noted.len(), NOTED);
        assert!(noted.iter().all(|it| *it == (DefinitionId(3), 7)));
        assert_eq!(packed(DefinitionId(0), u64::MAX), None);
        assert_eq!(packed(DefinitionId(4095), 1), None);
    }
}
