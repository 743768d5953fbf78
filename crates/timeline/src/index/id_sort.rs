//! Sorting a page's few hundred ids, which are spread about evenly: most of a page's time would go into that.

/// So many classes of equal width, by size.
const BUCKETS: usize = 1_024;
/// Lists of other lengths, and with more ids than this in one class, are sorted the common way.
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

/// Each id to its class, the classes one behind the other, and then the last few steps by insertion.
fn bucket_sort(ids: &[u64]) -> Option<Vec<u64>> {
    let (least, greatest) = ids.iter().fold((u64::MAX, 0), |(least, greatest), id| {
        (least.min(*id), greatest.max(*id))
    });
    let span = u128::from(greatest - least) + 1;
    // Rounded down, so that the greatest is still in the last class.
    let scale = (BUCKETS as u128) << 64;
    let factor = u64::try_from(scale / (span + 1)).unwrap_or(u64::MAX);
    let class = |id: u64| {
        let product = u128::from(id - least) * u128::from(factor);
        usize::try_from(product >> 64).unwrap_or(0) % BUCKETS
    };
    let mut starts = [0u16; BUCKETS];
    for id in ids {
        *starts.get_mut(class(*id))? += 1;
    }
    let mut start = 0;
    let mut most = 0;
    for count in starts.iter_mut().rev() {
        most = most.max(*count);
        start += std::mem::replace(count, start);
    }
    if most > MAX_BUCKET_LEN {
        return None;
    }
    let mut sorted = vec![0; ids.len()];
    // Runs ascend: from the back, those of one class lie in order.
    for id in ids.iter().rev() {
        let next = starts.get_mut(class(*id))?;
        *sorted.get_mut(usize::from(*next))? = *id;
        *next += 1;
    }
    insertion_sort(&mut sorted);
    Some(sorted)
}

/// Sorts by insertion what is nearly sorted.
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
