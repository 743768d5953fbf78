//! How lists grow and shrink, and their memory cost.

/// Approximately what the allocator adds to each block.
const ALLOCATION_OVERHEAD: usize = 16;

/// Bytes that a list holds, used or not.
pub(super) fn vec_bytes<T>(list: &Vec<T>) -> usize {
    match list.capacity() {
        0 => 0,
        capacity => capacity * size_of::<T>() + ALLOCATION_OVERHEAD,
    }
}

pub(super) fn boxed_bytes<T>() -> usize {
    size_of::<T>() + ALLOCATION_OVERHEAD
}

/// Reserves space for one more. Doubling would leave a quarter of all memory unused; an eighth is enough.
pub(super) fn reserve_one<T>(list: &mut Vec<T>) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 8).max(4));
    }
}

/// Shrinks a list after removals, once half of it is unused.
pub(super) fn release_excess<T>(list: &mut Vec<T>) {
    if list.capacity() > 16 && list.len() < list.capacity() / 2 {
        list.shrink_to(list.len() + list.len() / 8);
    }
}

/// Inserts a value into an ascending list of distinct values.
pub(super) fn insert_sorted<T: Copy + Ord>(list: &mut Vec<T>, value: T) {
    if list.last().is_none_or(|last| *last < value) {
        reserve_one(list);
        list.push(value);
    } else if let Err(index) = list.binary_search(&value) {
        reserve_one(list);
        list.insert(index, value);
    }
}

pub(super) fn remove_sorted<T: Copy + Ord>(list: &mut Vec<T>, value: T) {
    if let Ok(index) = list.binary_search(&value) {
        list.remove(index);
        release_excess(list);
    }
}
