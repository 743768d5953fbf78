//! Merges authors' id lists into the page and the procedure's result set.

/// The newest `n` distinct ids, descending.
#[must_use]
pub fn newest(mut ids: Vec<u64>, n: usize) -> Vec<u64> {
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.dedup();
    ids.truncate(n);
    ids
}

/// The union of lists, descending: the procedure's result set if each list holds an author's newest n.
#[must_use]
pub fn result_set(lists: Vec<Vec<u64>>) -> Vec<u64> {
    newest(lists.concat(), usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn newest_is_sort_and_take(ids in proptest::collection::vec(0u64..200, 0..80), n in 0usize..40) {
            let sorted: std::collections::BTreeSet<u64> = ids.iter().copied().collect();
            let expected: Vec<u64> = sorted.into_iter().rev().take(n).collect();
            prop_assert_eq!(newest(ids, n), expected);
        }
    }
}
