//! An author's newest ids.

use std::sync::atomic::{AtomicBool, Ordering};

use super::load::{self, Load};
use super::shard::Entry;
use super::tombstones::Tombstones;
use super::{Position, room};

/// All ids of an author from `low` upwards. One cache line, but for the ids.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Window {
    author: u64,
    /// The last of `ids`, if there is one.
    newest: u64,
    /// 0: it is whole.
    low: u64,
    /// Ascending.
    ids: Vec<u64>,
    load: Option<Box<Load>>,
    used: AtomicBool,
}

/// What a page needs of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    /// The newest id, if there is one.
    pub(super) head: Option<u64>,
    /// All ids that may be shown, ascending; those of tombstones among them.
    pub(super) ids: &'a [u64],
    /// The newest `n` are among them, or all there are.
    pub(super) enough: bool,
}

/// What a window holds for certain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) author: u64,
    /// All ids from `low` up to a bound, ascending; those of tombstones among them.
    pub(super) ids: &'a [u64],
    /// The last of them. It lies in the window itself as a rule, so that they need not be looked at for it.
    pub(super) newest: Option<u64>,
    /// 0: there are no others below.
    pub(super) low: u64,
}

impl Entry for Window {
    fn key(&self) -> u64 {
        self.author
    }

    fn heap(&self) -> usize {
        room::bytes(&self.ids) + self.load.as_ref().map_or(0, |load| load.bytes())
    }

    fn items(&self) -> usize {
        self.ids.len()
    }

    fn is_loading(&self) -> bool {
        self.load.is_some()
    }

    fn take_used(&mut self) -> bool {
        std::mem::take(self.used.get_mut())
    }
}

impl Window {
    /// A window that is about to be loaded for the first time.
    pub(super) fn begin(author: u64, ticket: u64) -> Self {
        Window {
            author,
            newest: 0,
            low: u64::MAX,
            ids: Vec::new(),
            load: Some(Load::begin(ticket, None)),
            used: AtomicBool::new(true),
        }
    }

    /// Begins a load of what is below, unless one is under way or `n` ids at or below the bound are
    /// there already. Returns from where on ids are not wanted.
    pub(super) fn extend(
        &mut self,
        ticket: u64,
        bound: Option<u64>,
        n: usize,
        tombstones: &Tombstones,
    ) -> Option<u64> {
        let nothing = Position::default();
        let view = self.view(bound, n, nothing, tombstones);
        if self.load.is_some() || view.is_some_and(|view| view.enough) {
            return None;
        }
        self.load = Some(Load::begin(ticket, Some(self.low)));
        Some(self.low)
    }

    /// The load with this ticket is under way.
    pub(super) fn awaits(&self, ticket: u64) -> bool {
        load::awaits(self.load.as_deref(), ticket)
    }

    /// The ticket of the load under way.
    pub(super) fn ticket(&self) -> Option<u64> {
        self.load.as_ref().map(|load| load.ticket)
    }

    /// The load failed. False if nothing was there before it, either.
    pub(super) fn give_up(&mut self) -> bool {
        self.load.take().is_none_or(|load| load.floor.is_some())
    }

    /// The rows of the load are here. False if they say nothing.
    pub(super) fn loaded(
        &mut self,
        rows: Vec<u64>,
        down_to: Option<u64>,
        valid_from: Position,
        tombstones: &Tombstones,
    ) -> bool {
        let low = down_to.or_else(|| rows.iter().copied().min());
        let (Some(load), Some(low)) = (self.load.as_mut(), low) else {
            return false;
        };
        let (floor, author) = (load.floor, self.author);
        let wanted =
            |id| id >= low && floor.is_none_or(|floor| id < floor) && tombstones.shows(id, author);
        let below = load.arrive(rows, valid_from, wanted);
        let mut ids = Vec::with_capacity(below.len() + self.ids.len());
        ids.extend_from_slice(&below);
        ids.append(&mut self.ids);
        self.ids = ids;
        self.low = floor.map_or(low, |floor| low.min(floor));
        self.note_newest();
        *self.used.get_mut() = true;
        true
    }

    /// Ends a load whose result has become valid.
    pub(super) fn settle(&mut self, position: Position) {
        load::settle(&mut self.load, position);
    }

    fn note_newest(&mut self) {
        self.newest = self.ids.last().copied().unwrap_or(0);
    }

    /// It is known for certain that an id cannot come, since it is there, or cannot go.
    pub(super) fn contradicts(&self, id: u64, present: bool) -> bool {
        self.load.is_none() && id >= self.low && self.ids.binary_search(&id).is_ok() == present
    }

    /// An id is there now, or is not. False if that was one change too many for the load under way.
    #[must_use]
    pub(super) fn change(&mut self, id: u64, present: bool) -> bool {
        if let Some(load) = self.load.as_mut().filter(|load| load.is_asked())
            && load.floor.is_none_or(|floor| id < floor)
        {
            return load.note(id, present);
        }
        if id >= self.low {
            if present {
                room::insert(&mut self.ids, id);
            } else {
                room::remove(&mut self.ids, id);
            }
            self.note_newest();
        }
        true
    }

    /// Takes out what is not this author's any more. Returns how many ids were looked at.
    pub(super) fn purge(&mut self, tombstones: &Tombstones) -> usize {
        let (before, author) = (self.ids.len(), self.author);
        self.ids.retain(|id| tombstones.shows(*id, author));
        if self.ids.len() < before {
            room::give_back(&mut self.ids);
            self.note_newest();
        }
        before
    }

    pub(super) fn mark_used(&self) {
        // Looked at first: most often it is set, and then the cache line stays shared.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// The ids at or below the bound that are certain at a position; `None`: nothing is.
    pub(super) fn known(&self, bound: Option<u64>, position: Position) -> Option<Known<'_>> {
        let mut low = self.low;
        let mut start = 0;
        if let Some(load) = &self.load
            && !load.is_settled(position)
        {
            let floor = load.floor?;
            if floor > low {
                low = floor;
                start = self.ids.partition_point(|id| *id < floor);
            }
        }
        let end = match bound {
            Some(bound) if self.newest > bound => count_up_to(&self.ids, bound),
            _ => self.ids.len(),
        };
        let ids = self.ids.get(start..end).unwrap_or(&[]);
        let newest = match end == self.ids.len() && !ids.is_empty() {
            true => Some(self.newest),
            false => ids.last().copied(),
        };
        Some(Known {
            author: self.author,
            ids,
            newest,
            low,
        })
    }

    /// The ids at or below the bound, if what is here at a position holds the newest of them.
    pub(super) fn view(
        &self,
        bound: Option<u64>,
        n: usize,
        position: Position,
        tombstones: &Tombstones,
    ) -> Option<View<'_>> {
        let known = self.known(bound, position)?;
        let Known { ids, low, .. } = known;
        let (head, enough) = if tombstones.is_empty() {
            (known.newest, ids.len() >= n.max(1))
        } else {
            let mut shown = tombstones.shown(ids, self.author);
            let head = shown.next();
            let rest = n.saturating_sub(1);
            (head, head.is_some() && shown.take(rest).count() == rest)
        };
        let enough = enough || low == 0;
        (enough || head.is_some()).then_some(View { head, ids, enough })
    }
}

/// How many of ascending numbers are at or below a bound. The search begins where the bound would lie if they lay evenly, as an
/// author's ids nearly do: it reads one or two cache lines where halving reads four or five.
fn count_up_to(ids: &[u64], bound: u64) -> usize {
    let (Some(&first), Some(&last)) = (ids.first(), ids.last()) else {
        return 0;
    };
    if bound < first {
        return 0;
    }
    if bound >= last {
        return ids.len();
    }
    let share = u128::from(bound - first) * (ids.len() - 1) as u128 / u128::from(last - first);
    let guess = usize::try_from(share).unwrap_or(0);
    let is_in = |at: usize| ids.get(at).is_some_and(|id| *id <= bound);
    // What lies before `from` is at or below the bound; what lies at `to` or behind is not.
    let (mut from, mut to) = (0, ids.len());
    let mut step = 1;
    if is_in(guess) {
        from = guess + 1;
        while from < to {
            let at = from + step - 1;
            if !is_in(at) {
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
            if is_in(at) {
                from = at + 1;
                break;
            }
            to = at;
            step *= 2;
        }
    }
    from + ids
        .get(from..to)
        .map_or(0, |rest| rest.partition_point(|id| *id <= bound))
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_set;
    use proptest::prelude::*;

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
    }
}
