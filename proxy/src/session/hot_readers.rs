//! A sample of the readers whose timelines are requested, without locks.

use std::sync::atomic::{AtomicU64, Ordering};

use headwater_timeline::definition::DefinitionId;

/// One call in so many is sampled.
const SAMPLE_EVERY: u64 = 16;
/// Samples that are kept.
const SLOT_COUNT: usize = 4096;
/// Bits of a reader's id; the definition's number is above them.
const READER_BITS: u32 = 52;

/// The last sampled calls.
#[derive(Debug)]
pub struct HotReaderSample {
    calls: AtomicU64,
    /// One word for each sample, so that none is read half written; 0: empty.
    slots: Box<[AtomicU64]>,
}

impl Default for HotReaderSample {
    fn default() -> Self {
        HotReaderSample {
            calls: AtomicU64::new(0),
            slots: (0..SLOT_COUNT).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl HotReaderSample {
    /// Counts an answered call for this reader's timeline; samples some.
    pub fn add(&self, definition: DefinitionId, reader: u64) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if !call.is_multiple_of(SAMPLE_EVERY) {
            return;
        }
        let Some(word) = packed(definition, reader) else {
            return;
        };
        let slot = usize::try_from(call / SAMPLE_EVERY).unwrap_or_default() % SLOT_COUNT;
        if let Some(noted) = self.slots.get(slot) {
            noted.store(word, Ordering::Relaxed);
        }
    }

    /// The sampled calls, in no order.
    #[must_use]
    pub fn sampled_calls(&self) -> Vec<(DefinitionId, u64)> {
        let words = self.slots.iter().map(|it| it.load(Ordering::Relaxed));
        words.filter_map(unpacked).collect()
    }
}

/// `None`: the ids are too large to be sampled.
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
        let hot = HotReaderSample::default();
        assert_eq!(hot.sampled_calls(), []);
        for _ in 0..SAMPLE_EVERY {
            hot.add(DefinitionId(0), 0);
        }
        assert_eq!(hot.sampled_calls(), [(DefinitionId(0), 0)]);
        for _ in 0..SAMPLE_EVERY * SLOT_COUNT as u64 {
            hot.add(DefinitionId(3), 7);
        }
        let noted = hot.sampled_calls();
        assert_eq!(noted.len(), SLOT_COUNT);
        assert!(noted.iter().all(|it| *it == (DefinitionId(3), 7)));
        assert_eq!(packed(DefinitionId(0), u64::MAX), None);
        assert_eq!(packed(DefinitionId(4095), 1), None);
    }
}
