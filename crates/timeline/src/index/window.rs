//! An author's newest messages.

use std::sync::atomic::{AtomicBool, Ordering};

use super::entry_load::{self, EntryLoad, LoadHint};
use super::shard::TableEntry;
use super::tombstones::TombstoneSet;
use super::{BinlogPosition, WindowItem, vec_capacity};

/// All messages of an author from `low` upwards. If the items are ids, the struct fills one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct AuthorWindow<I> {
    author: u64,
    /// The last of `items`, if there is one.
    newest: I,
    /// Complete from here on; the least item: nothing is missing.
    low: I,
    /// Ascending.
    items: Vec<I>,
    load: Option<Box<EntryLoad<I>>>,
    used: AtomicBool,
    /// The current server has not confirmed it, so it serves nothing.
    unconfirmed: bool,
}

/// What a page needs of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowView<'a, I> {
    /// The newest, if there is one.
    pub(super) head: Option<I>,
    /// All candidates, ascending; items under tombstones are among them.
    pub(super) items: &'a [I],
    /// The newest `n` are among them, or all that exist.
    pub(super) is_sufficient: bool,
}

/// What a window holds for certain.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownItems<'a, I> {
    pub(super) author: u64,
    /// All from `low` up to a bound, ascending; items under tombstones are among them.
    pub(super) items: &'a [I],
    /// The last of them. It is usually in the window itself, so `items` need not be read for it.
    pub(super) newest: Option<I>,
    /// The lower end; the least item: none exist below.
    pub(super) low: I,
}

impl<I: WindowItem> TableEntry for AuthorWindow<I> {
    fn key(&self) -> u64 {
        self.author
    }

    fn heap_bytes(&self) -> usize {
        vec_capacity::vec_bytes(&self.items) + self.load.as_ref().map_or(0, |load| load.bytes())
    }

    fn item_count(&self) -> usize {
        self.items.len()
    }

    fn is_loading(&self) -> bool {
        self.load.is_some()
    }

    fn take_used(&mut self) -> bool {
        std::mem::take(self.used.get_mut())
    }
}

impl<I: WindowItem> AuthorWindow<I> {
    pub(super) fn begin_load(author: u64, ticket: u64) -> Self {
        AuthorWindow {
            author,
            newest: I::LEAST,
            low: I::GREATEST,
            items: Vec::new(),
            load: Some(EntryLoad::begin(ticket, None)),
            used: AtomicBool::new(true),
            unconfirmed: false,
        }
    }

    /// The items are from another server, or from an earlier run of this one.
    pub(super) fn mark_unconfirmed(&mut self) {
        self.unconfirmed = true;
    }

    /// Begins a load of older items, unless one is pending or `n` items at or below the bound are present; if nothing is confirmed, a load
    /// of all. Returns the item from which on no rows are requested, and how many items are present from there on.
    pub(super) fn begin_extending_load(
        &mut self,
        ticket: u64,
        bound: Option<I>,
        n: usize,
        tombstones: &TombstoneSet<I>,
    ) -> Option<(Option<I>, usize)> {
        if std::mem::take(&mut self.unconfirmed) {
            let hint = LoadHint {
                items: std::mem::take(&mut self.items),
                low: std::mem::replace(&mut self.low, I::GREATEST),
            };
            self.update_newest();
            let count = hint.items.len();
            self.load = Some(EntryLoad::begin_confirming(ticket, hint));
            return Some((None, count));
        }
        let start = BinlogPosition::default();
        let view = self.view_at(bound, n, start, tombstones);
        if self.load.is_some() || view.is_some_and(|view| view.is_sufficient) {
            return None;
        }
        self.load = Some(EntryLoad::begin(ticket, Some(self.low)));
        Some((Some(self.low), self.items.len()))
    }

    pub(super) fn take_hint(&mut self) -> Option<LoadHint<I>> {
        self.load.as_mut()?.take_hint()
    }

    pub(super) fn matches_hint(&self, hint: &LoadHint<I>, tombstones: &TombstoneSet<I>) -> bool {
        let is_visible = |item| tombstones.is_visible(item, self.author);
        hint.matches_items(&self.items, self.low, is_visible)
    }

    pub(super) fn is_awaiting(&self, ticket: u64) -> bool {
        entry_load::is_awaiting(self.load.as_deref(), ticket)
    }

    pub(super) fn ticket(&self) -> Option<u64> {
        self.load.as_ref().map(|load| load.ticket)
    }

    /// Drops a failed load. False: the window held nothing before it.
    pub(super) fn abandon_load(&mut self) -> bool {
        self.load.take().is_none_or(|load| load.floor.is_some())
    }

    /// Merges the rows of the load. False: they show nothing.
    pub(super) fn accept_rows(
        &mut self,
        rows: Vec<I>,
        down_to: Option<I>,
        valid_from: BinlogPosition,
        tombstones: &TombstoneSet<I>,
    ) -> bool {
        let low = down_to.or_else(|| rows.iter().copied().min());
        let (Some(load), Some(low)) = (self.load.as_mut(), low) else {
            return false;
        };
        let (floor, author) = (load.floor, self.author);
        let wanted = |item| {
            item >= low
                && floor.is_none_or(|floor| item < floor)
                && tombstones.is_visible(item, author)
        };
        let older = load.merge_rows(rows, valid_from, wanted);
        let mut items = Vec::with_capacity(older.len() + self.items.len());
        items.extend_from_slice(&older);
        items.append(&mut self.items);
        self.items = items;
        self.low = floor.map_or(low, |floor| low.min(floor));
        self.update_newest();
        *self.used.get_mut() = true;
        true
    }

    pub(super) fn complete_load(&mut self, position: BinlogPosition) {
        entry_load::complete(&mut self.load, position);
    }

    fn update_newest(&mut self) {
        self.newest = self.items.last().copied().unwrap_or(I::LEAST);
    }

    /// True if a change surely cannot have happened: the item would come but exists, or would go but does not.
    pub(super) fn contradicts(&self, item: I, present: bool) -> bool {
        self.load.is_none()
            && !self.unconfirmed
            && item >= self.low
            && self.items.binary_search(&item).is_ok() == present
    }

    /// Adds or removes an item. False: the pending load has too many changes.
    #[must_use]
    pub(super) fn apply_change(&mut self, item: I, present: bool) -> bool {
        if let Some(load) = self.load.as_mut().filter(|load| load.is_pending())
            && load.floor.is_none_or(|floor| item < floor)
        {
            return load.record_change(item, present);
        }
        if item >= self.low {
            if present {
                vec_capacity::insert_sorted(&mut self.items, item);
            } else {
                vec_capacity::remove_sorted(&mut self.items, item);
            }
            self.update_newest();
        }
        true
    }

    /// Removes items that are no longer this author's. Returns how many it checked.
    pub(super) fn purge(&mut self, tombstones: &TombstoneSet<I>) -> usize {
        let (before, author) = (self.items.len(), self.author);
        self.items
            .retain(|item| tombstones.is_visible(*item, author));
        if let Some(load) = &mut self.load {
            load.purge(|item| tombstones.is_visible(item, author));
        }
        if self.items.len() < before {
            vec_capacity::release_excess(&mut self.items);
            self.update_newest();
        }
        before
    }

    pub(super) fn mark_used(&self) {
        // Read first: usually it is set, and the cache line stays shared.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// The items at or below the bound that are certain at a position; `None`: none is certain.
    pub(super) fn known_items(
        &self,
        bound: Option<I>,
        position: BinlogPosition,
    ) -> Option<KnownItems<'_, I>> {
        if self.unconfirmed {
            return None;
        }
        let mut low = self.low;
        let mut start = 0;
        if let Some(load) = &self.load
            && !load.is_valid(position)
        {
            let floor = load.floor?;
            if floor > low {
                low = floor;
                start = self.items.partition_point(|item| *item < floor);
            }
        }
        let end = match bound {
            Some(bound) if self.newest > bound => count_up_to(&self.items, bound),
            _ => self.items.len(),
        };
        let items = self.items.get(start..end).unwrap_or(&[]);
        let newest = match end == self.items.len() && !items.is_empty() {
            true => Some(self.newest),
            false => items.last().copied(),
        };
        Some(KnownItems {
            author: self.author,
            items,
            newest,
            low,
        })
    }

    /// The items at or below the bound, if the newest of them are certain at a position.
    pub(super) fn view_at(
        &self,
        bound: Option<I>,
        n: usize,
        position: BinlogPosition,
        tombstones: &TombstoneSet<I>,
    ) -> Option<WindowView<'_, I>> {
        let known = self.known_items(bound, position)?;
        let KnownItems { items, low, .. } = known;
        let (head, enough) = if tombstones.is_empty() {
            (known.newest, items.len() >= n.max(1))
        } else {
            let mut visible = tombstones.visible_items(items, self.author);
            let head = visible.next();
            let others = n.saturating_sub(1);
            (
                head,
                head.is_some() && visible.take(others).count() == others,
            )
        };
        let enough = enough || low == I::LEAST;
        (enough || head.is_some()).then_some(WindowView {
            head,
            items,
            is_sufficient: enough,
        })
    }
}

/// How many of ascending items are at or below a bound. The search starts at an interpolated index, because an author's messages are
/// nearly evenly spaced: it reads one or two cache lines, where a binary search reads four or five.
fn count_up_to<I: WindowItem>(items: &[I], bound: I) -> usize {
    let (Some(&first), Some(&last)) = (items.first(), items.last()) else {
        return 0;
    };
    if bound < first {
        return 0;
    }
    if bound >= last {
        return items.len();
    }
    let guess = bound.interpolate(first, last, items.len() - 1);
    let is_within_bound = |at: usize| items.get(at).is_some_and(|item| *item <= bound);
    // Items before `from` are at or below the bound; items from `to` on are above it.
    let (mut from, mut to) = (0, items.len());
    let mut step = 1;
    if is_within_bound(guess) {
        from = guess + 1;
        while from < to {
            let at = from + step - 1;
            if !is_within_bound(at) {
                to = at.min(to);
                break;
            }
            from = at + 1;
            step *= 2;
        }
    } else {
        to = guess;
        while from < to {
            let at = to.saturating_sub(step);
            if is_within_bound(at) {
                from = at + 1;
                break;
            }
            to = at;
            step *= 2;
        }
    }
    from + items
        .get(from..to)
        .map_or(0, |rest| rest.partition_point(|item| *item <= bound))
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::super::KeyedMessage;
    use super::count_up_to;

    proptest! {
        #[test]
        fn as_many_are_up_to_a_bound_as_halving_finds(
            close in btree_set(0u64..200, 0..80),
            far in btree_set(any::<u64>(), 0..20),
            bounds in proptest::collection::vec(prop_oneof![0u64..210, any::<u64>()], 1..20),
        ) {
            for ids in [close.iter().copied().collect(), far.iter().copied().collect(), &close | &far] {
                let ids: Vec<u64> = std::collections::BTreeSet::into_iter(ids).collect();
                for bound in bounds.iter().chain(&ids) {
                    let expected = ids.partition_point(|id| id <= bound);
                    prop_assert_eq!(count_up_to(&ids, *bound), expected);
                }
            }
        }

        #[test]
        fn the_same_of_keys_with_ties(
            items in btree_set((0u64..20, 0u64..30), 0..80),
            bounds in proptest::collection::vec((0u64..22, 0u64..32), 1..20),
        ) {
            let keyed = |(key, id): (u64, u64)| KeyedMessage { key, id };
            let items: Vec<KeyedMessage> = items.into_iter().map(keyed).collect();
            for bound in bounds.into_iter().map(keyed).chain(items.clone()) {
                let expected = items.partition_point(|item| *item <= bound);
                prop_assert_eq!(count_up_to(&items, bound), expected);
            }
        }
    }
}
