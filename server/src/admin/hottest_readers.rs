//! The readers and authors that were requested most often, from a sample of the calls.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

use serde::Serialize;

use headwater_proxy::session::shared_state::SharedState;
use headwater_timeline::definition::DefinitionId;

/// Entries reported of each kind.
const MAX_ENTRIES: usize = 10;
/// Readers whose follow lists are counted for authors.
const MAX_FOLLOW_LISTS: usize = 200;

/// Readers and authors, most frequent first.
#[derive(Debug, Serialize)]
pub(super) struct HottestReport {
    /// Sampled calls.
    of: usize,
    readers: Vec<HottestEntry>,
    /// An author counts once for each sampled reader who follows it.
    authors: Vec<HottestEntry>,
}

#[derive(Debug, Serialize)]
struct HottestEntry {
    definition: String,
    id: u64,
    calls: u64,
}

pub(super) fn report(shared: &SharedState) -> HottestReport {
    let noted = shared.measurements.hot_readers.sampled_calls();
    let readers = by_frequency(noted.iter().map(|call| (*call, 1)));
    let lists = shared.binlog.as_ref().into_iter().flat_map(|binlog| {
        let definitions = shared.catalogue.definitions();
        let each = readers.iter().take(MAX_FOLLOW_LISTS);
        each.filter_map(move |((number, reader), calls)| {
            let follows = binlog.follows_of(number.resolve(definitions)?, *reader)?;
            Some(
                follows
                    .into_iter()
                    .map(|author| ((*number, author), *calls)),
            )
        })
        .flatten()
    });
    let authors = by_frequency(lists);
    let named = |each: &[((DefinitionId, u64), u64)]| {
        let hot = each
            .iter()
            .take(MAX_ENTRIES)
            .map(|((number, id), calls)| HottestEntry {
                definition: number
                    .resolve(shared.catalogue.definitions())
                    .map(|definition| definition.name.clone())
                    .unwrap_or_default(),
                id: *id,
                calls: *calls,
            });
        hot.collect()
    };
    HottestReport {
        of: noted.len(),
        readers: named(&readers),
        authors: named(&authors),
    }
}

/// Counts equal values; most frequent first.
fn by_frequency<T: Copy + Eq + Hash + Ord>(each: impl Iterator<Item = (T, u64)>) -> Vec<(T, u64)> {
    let mut counts = HashMap::new();
    for (what, count) in each {
        *counts.entry(what).or_insert(0) += count;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable_by_key(|(what, count)| (Reverse(*count), *what));
    counts
}
