//! Sorts a page's few hundred ids, which are nearly evenly spaced; a standard sort would take most of a page's time.

/// Buckets of equal width, by value.
const BUCKETS: usize = 1_024;
/// Other lengths, and lists with more ids than this in one bucket, use the standard sort.
const MIN_BUCKETED: usize = 64;
const MAX_BUCKETED: usize = 1_024;
const MAX_BUCKET_LEN: u16 = 16;

/// The distinct ids, descending.
pub(super) fn sort_descending(mut ids: Vec<u64>) -> Vec<u64> {
    if !(MIN_BUCKETED..=MAX_BUCKETED).contains(&ids.len()) {
        ids.sort_unstable_by(|a, b| b.cmp(a));
    } else if let Some(sorted) = bucket_sort(&ids) {
        ids = sorted;
    } else {
        ids.sort_unstable_by(|a, b| b.cmp(a));
    }
    ids.dedup();
    ids
}

/// Distributes the ids over buckets, and finishes with an insertion sort.
fn bucket_sort(ids: &[u64]) -> Option<Vec<u64>> {
    let (least, greatest) = ids.iter().fold((u64::MAX, 0), |(least, greatest), id| {
        (least.min(*id), greatest.max(*id))
    });
    let span = u128::from(greatest - least) + 1;
    // Rounded down, so that the greatest is still in the last bucket.
    let scale = (BUCKETS as u128) << 64;
    let factor = u64::try_from(scale / (span + 1)).unwrap_or(u64::MAX);
    let bucket_of = |id: u64| {
        let product = u128::from(id - least) * u128::from(factor);
        usize::try_from(product >> 64).unwrap_or(0) % BUCKETS
    };
    let mut starts = [0u16; BUCKETS];
    for id in ids {
        *starts.get_mut(bucket_of(*id))? += 1;
    }
    let mut start = 0;
    let mut largest_bucket = 0;
    for count in starts.iter_mut().rev() {
        largest_bucket = largest_bucket.max(*count);
        start += std::mem::replace(count, start);
    }
    if largest_bucket > MAX_BUCKET_LEN {
        return None;
    }
    let mut sorted = vec![0; ids.len()];
    // The input is ascending runs: read from the back, the ids of one bucket are in order.
    for id in ids.iter().rev() {
        let next = starts.get_mut(bucket_of(*id))?;
        *sorted.get_mut(usize::from(*next))? = *id;
        *next += 1;
    }
    insertion_sort(&mut sorted);
    Some(sorted)
}

/// Insertion sort, for nearly sorted ids.
fn insertion_sort(ids: &mut [u64]) {
    for end in 1..ids.len() {
        let Some((id, before)) = ids.get_mut(..=end).and_then(<[u64]>::split_last_mut) else {
            return;
        };
        if before.last().is_some_and(|last| *last >= *id) {
            continue;
        }
        let value = *id;
        let mut hole = id;
        for greater in before.iter_mut().rev() {
            if *greater >= value {
                break;
            }
            *hole = *greater;
            hole = greater;
        }
        *hole = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expected(mut ids: Vec<u64>) -> Vec<u64> {
        ids.sort_unstable();
        ids.dedup();
        ids.reverse();
        ids
    }

    proptest! {
        #[test]
        fn ids_are_sorted_however_they_are_spread(
            ids in proptest::collection::vec(any::<u64>(), 0..500),
            shift in 0u32..64,
            offset in any::<u64>(),
        ) {
            let ids: Vec<u64> = ids.iter().map(|id| (id >> shift).saturating_add(offset)).collect();
            prop_assert_eq!(sort_descending(ids.clone()), expected(ids));
        }
    }

    #[test]
    fn extremes_and_heaps_are_sorted() {
        for ids in [
            (0..400).chain([u64::MAX]).collect(),
            (0..400).map(|id| id * (u64::MAX / 400)).collect(),
            [0, u64::MAX].repeat(50),
            vec![5; 300],
            (0..1_024).collect::<Vec<u64>>(),
        ] {
            assert_eq!(sort_descending(ids.clone()), expected(ids));
        }
    }
}
