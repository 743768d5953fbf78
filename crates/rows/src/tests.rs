#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "small numbers, and packets of five bytes"
)]

use std::collections::HashMap;

use headwater_timeline::index::{RowKey, TableId, TimelineId};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::segment::{RecordHeader, RowSegment, record_bytes};

const HOME: TimelineId = TimelineId(0);
const AWAY: TableId = TableId::Joined(1);

fn home(id: u64) -> RowKey {
    RowKey::message(HOME, id)
}

fn away(id: u64) -> RowKey {
    RowKey { table: AWAY, id }
}
const FIRST: CacheKey = CacheKey(1);

/// Messages of `HOME`, whose rows depend on no other ones.
const OF: PageSource<'_> = PageSource {
    timeline_id: HOME,
    cache_key: FIRST,
    joined_tables: &[],
};

/// A cached row as an owned value.
fn row_bytes(cached: CachedRow<'_>) -> Option<Vec<u8>> {
    match cached {
        CachedRow::Row(row) => Some(row.to_vec()),
        CachedRow::Passes | CachedRow::FilteredOut => None,
    }
}

fn row(rows: &RowCache, message: RowKey, cache_key: CacheKey) -> Option<Option<Vec<u8>>> {
    rows.lookup(message, cache_key, |kept, _| row_bytes(kept))
}

#[test]
fn a_cached_row_is_returned_until_its_message_changes() {
    let rows = RowCache::new(1 << 20);
    let other = CacheKey(2);
    assert_eq!(row(&rows, home(5), FIRST), None);
    rows.insert(home(5), FIRST, CachedRow::Row(b"one"), &[]);
    rows.insert(home(5), other, CachedRow::FilteredOut, &[]);
    rows.insert(away(5), FIRST, CachedRow::Row(b"away"), &[]);
    assert_eq!(row(&rows, home(5), FIRST), Some(Some(b"one".to_vec())));
    assert_eq!(row(&rows, home(5), other), Some(None));
    rows.insert(home(5), FIRST, CachedRow::Row(b"longer than before"), &[]);
    assert_eq!(
        row(&rows, home(5), FIRST),
        Some(Some(b"longer than before".to_vec()))
    );
    rows.invalidate(home(5));
    assert_eq!(row(&rows, home(5), FIRST), None);
    assert_eq!(row(&rows, home(5), other), None);
    assert!(row(&rows, away(5), FIRST).is_some());
    rows.invalidate_table(AWAY);
    assert_eq!(row(&rows, away(5), FIRST), None);
    rows.insert(home(6), FIRST, CachedRow::Row(b"six"), &[]);
    rows.clear();
    assert_eq!(row(&rows, home(6), FIRST), None);
    rows.insert(home(6), FIRST, CachedRow::Row(b"six"), &[]);
    assert!(row(&rows, home(6), FIRST).is_some());
}

#[test]
fn many_cache_keys_of_a_message_evict_each_other() {
    let rows = RowCache::new(1 << 20);
    for number in 0..100 {
        rows.insert(home(5), CacheKey(number), CachedRow::FilteredOut, &[]);
    }
    let kept = |number: &u64| row(&rows, home(5), CacheKey(*number)).is_some();
    let cached: Vec<u64> = (0..100).filter(kept).collect();
    assert_eq!(cached, (84..100).collect::<Vec<_>>());
}

#[test]
fn what_was_used_outlives_what_was_not() {
    let rows = RowCache::new(1 << 20);
    let body = [7; 100];
    for id in 0..200 {
        rows.insert(home(id), FIRST, CachedRow::Row(&body), &[]);
    }
    for id in 1_000..100_000 {
        rows.insert(home(id), FIRST, CachedRow::Row(&body), &[]);
        if id % 500 == 0 {
            (0..50).for_each(|id| drop(row(&rows, home(id), FIRST)));
        }
    }
    assert!(rows.memory_bytes() <= 1 << 20, "{}", rows.memory_bytes());
    let used = (0..50).filter(|id| row(&rows, home(*id), FIRST).is_some());
    assert!(used.count() > 45);
    // Everything else that was cached is still there, or was counted.
    let there = (0..200).filter(|id| row(&rows, home(*id), FIRST).is_some());
    assert!(there.count() <= rows.cached_messages());
    assert_eq!(rows.evicted_rows(), 99_200 - rows.cached_messages() as u64);
    let unused = (50..200).filter(|id| row(&rows, home(*id), FIRST).is_some());
    assert_eq!(unused.count(), 0);
}

/// The memory that a row takes beyond its own bytes (`docs/rows.md`).
#[test]
fn a_row_costs_at_most_56_bytes_beyond_its_own() {
    let rows = RowCache::new(64 << 20);
    let body = [7; 100];
    let mut count = 0_usize;
    while rows.memory_bytes() < 60 << 20 {
        rows.insert(home(count as u64), FIRST, CachedRow::Row(&body), &[]);
        count += 1;
    }
    let beyond = rows.memory_bytes() / count - body.len();
    assert!(beyond <= 56, "{beyond}");
}

/// The same for a row with a link.
#[test]
fn a_row_with_a_link_costs_no_more_than_that() {
    let rows = RowCache::new(64 << 20);
    let body = [7; 100];
    let mut count = 0_usize;
    while rows.memory_bytes() < 50 << 20 {
        let link = rows.link_to(away(count as u64 % 100));
        rows.insert(home(count as u64), FIRST, CachedRow::Row(&body), &[link]);
        count += 1;
    }
    let beyond = rows.memory_bytes() / count - body.len();
    assert!(beyond <= 56, "{beyond}");
}

#[test]
fn a_row_holds_as_long_as_those_that_it_was_made_of() {
    let rows = RowCache::new(1 << 20);
    let of = PageSource {
        joined_tables: &[AWAY, AWAY],
        ..OF
    };
    let has = |id| rows.has_page(of, &[id], true, (0, 1));
    let keep = |id, links: &[RowLink]| rows.insert(home(id), FIRST, CachedRow::Row(b"row"), links);
    let link = |key| rows.link_to(away(key));
    keep(1, &[link(7), RowLink::NONE]);
    keep(2, &[link(8), link(7)]);
    keep(3, &[link(8), RowLink::NONE]);
    rows.insert(home(4), FIRST, CachedRow::FilteredOut, &[link(7)]);
    assert_eq!(link(7), link(7));
    assert!((1..=4).all(has));
    rows.invalidate(away(7));
    assert_eq!(
        (1..=4).map(has).collect::<Vec<_>>(),
        [false, false, true, false]
    );
    // Another row exists under the same key now: older rows do not depend on it.
    keep(1, &[link(7), RowLink::NONE]);
    assert_eq!(
        (1..=4).map(has).collect::<Vec<_>>(),
        [true, false, true, false]
    );
    rows.invalidate_table(AWAY);
    assert!(!(1..=4).any(has));
    keep(1, &[RowLink::NONE, RowLink::NONE]);
    rows.invalidate_table(AWAY);
    assert!(has(1));
}

/// A version takes more than a byte or two sooner or later.
#[test]
fn the_70_000th_link_holds_as_the_first_does() {
    let rows = RowCache::new(32 << 20);
    let of = PageSource {
        joined_tables: &[AWAY],
        ..OF
    };
    let has = |id| rows.has_page(of, &[id], true, (0, 1));
    for key in 0..70_000 {
        let link = rows.link_to(away(key));
        if [0, 255, 256, 65_535, 65_536, 69_999].contains(&key) {
            rows.insert(home(key), FIRST, CachedRow::Row(b"row"), &[link]);
            assert!(has(key), "{key}");
        }
    }
    rows.invalidate(away(69_999));
    assert!(!has(69_999) && has(65_536) && has(0));
}

/// Versions are compared by all of their bytes.
#[test]
fn a_version_that_ends_in_the_same_bytes_is_another_one() {
    let of = PageSource {
        joined_tables: &[AWAY],
        ..OF
    };
    for between in [1 << 8, 1 << 16] {
        let rows = RowCache::new(32 << 20);
        let link = rows.link_to(away(7));
        rows.insert(home(1), FIRST, CachedRow::Row(b"row"), &[link]);
        assert!(rows.has_page(of, &[1], true, (0, 1)));
        rows.invalidate(away(7));
        for other in 1..between {
            rows.link_to(away(1_000_000 + other));
        }
        let again = rows.link_to(away(7));
        assert_ne!(link, again);
        assert!(!rows.has_page(of, &[1], true, (0, 1)), "{between}");
    }
}

/// A record's computed size is its real size: a segment never grows.
#[test]
fn a_segment_has_as_many_bytes_as_its_records_are_said_to_take() {
    let mut segment = RowSegment::new(1_000);
    let link = RowCache::new(1 << 20).link_to(away(7));
    let links = [link; MAX_LINKS];
    let kinds = [
        CachedRow::Row(b"a row"),
        CachedRow::Row(b""),
        CachedRow::Passes,
        CachedRow::FilteredOut,
    ];
    let mut taken = 0;
    for (number, row) in kinds.into_iter().cycle().enumerate() {
        let links = &links[..number % (MAX_LINKS + 1)];
        let record = RowRecord { row, links };
        if !segment.has_room_for(record) {
            assert!(taken + record_bytes(record) > 1_000);
            break;
        }
        let header = RecordHeader::new(home(5), FIRST, record).unwrap();
        assert_eq!(segment.append(&header, record), taken as u32);
        taken += record_bytes(record);
        let read = segment
            .row_at(taken as u32 - record_bytes(record) as u32)
            .unwrap();
        assert_eq!((read.0, read.1.iter().count()), (row, links.len()));
    }
    assert!(taken > 900, "{taken}");
}

/// Rows of one message may be stored far from each other.
#[test]
fn each_cache_key_is_found_wherever_it_is_stored() {
    let rows = RowCache::new(64 << 20);
    let variants: Vec<CacheKey> = (1..6).map(CacheKey).collect();
    let body = |variant: CacheKey| variant.0.to_le_bytes();
    for (at, variant) in (0..).zip(&variants) {
        rows.insert(home(5), *variant, CachedRow::Row(&body(*variant)), &[]);
        for id in 0..20_000 {
            rows.insert(
                away(at * 20_000 + id),
                FIRST,
                CachedRow::Row(&[7; 300]),
                &[],
            );
        }
    }
    for variant in variants {
        let cached = row(&rows, home(5), variant);
        assert_eq!(cached, Some(Some(body(variant).to_vec())), "{variant:?}");
    }
}

#[test]
fn a_row_that_is_too_long_is_not_cached_and_removes_the_former_one() {
    let rows = RowCache::new(1 << 20);
    rows.insert(home(5), FIRST, CachedRow::Row(b"short"), &[]);
    rows.insert(home(5), FIRST, CachedRow::Row(&vec![1; 1 << 20]), &[]);
    assert_eq!(row(&rows, home(5), FIRST), None);
    let none = RowCache::new(0);
    none.insert(home(5), FIRST, CachedRow::Row(&[1; 1_000]), &[]);
    assert_eq!(row(&none, home(5), FIRST), None);
}

proptest! {
    /// A page contains what OFFSET and LIMIT select of the messages that pass, and reports how many of these were scanned.
    #[test]
    fn a_page_is_a_part_of_what_passes(
        passing in vec(any::<bool>(), 0..12), all: bool, offset in 0_u64..14, limit in 1_u64..14,
    ) {
        let rows = RowCache::new(1 << 20);
        let messages: Vec<u64> = (0..passing.len() as u64).rev().collect();
        let mut texts = Vec::new();
        for (id, passes) in messages.iter().zip(&passing) {
            let text = [b'a' + *id as u8];
            match passes {
                true => {
                    rows.insert(home(*id), FIRST, CachedRow::Row(&text), &[]);
                    texts.push(text);
                }
                false => rows.insert(home(*id), FIRST, CachedRow::FilteredOut, &[]),
            }
        }
        let selected = texts.iter().skip(offset as usize).take(limit as usize);
        let expected: Vec<u8> = selected.flat_map(|text| [&[1, 0, 0, 0], &text[..]].concat()).collect();
        let page = rows.page(OF, &messages, all, (offset, limit), (Vec::new(), 0));
        let passed = (texts.len() as u64).min(offset + limit);
        match page {
            Some(page) => {
                prop_assert_eq!(page.rows, expected.len() as u64 / 5);
                prop_assert_eq!(page.passed_messages, passed);
                let numbered = page.packets.chunks(5).map(|row| [&row[..3], &[0], &row[4..]].concat());
                prop_assert_eq!(numbered.collect::<Vec<_>>().concat(), expected);
            }
            None => prop_assert!(!all && passed < offset + limit),
        }
    }
}

#[test]
fn a_page_is_made_of_rows_that_pass() {
    let rows = RowCache::new(1 << 20);
    for (id, kept) in [
        (9, CachedRow::Row(&b"nine"[..])),
        (8, CachedRow::FilteredOut),
        (7, CachedRow::Row(b"seven")),
        (6, CachedRow::Row(b"six")),
    ] {
        rows.insert(home(id), FIRST, kept, &[]);
    }
    let page = |messages: &[u64], all, part| {
        let page = rows.page(OF, messages, all, part, (b"..".to_vec(), 254));
        let has = rows.has_page(OF, messages, all, part);
        assert_eq!(has, page.is_some(), "{messages:?} {all} {part:?}");
        let page = page?;
        Some((page.packets, page.rows))
    };
    let ids = [9, 8, 7, 6];
    assert_eq!(
        page(&ids, false, (0, 2)),
        Some((b"..\x04\0\0\xfenine\x05\0\0\xffseven".to_vec(), 2))
    );
    assert_eq!(
        page(&ids, false, (1, 2)),
        Some((b"..\x05\0\0\xfeseven\x03\0\0\xffsix".to_vec(), 2))
    );
    // There may be more messages.
    assert_eq!(page(&ids, false, (0, 4)), None);
    assert_eq!(page(&ids, true, (2, 4)).map(|(_, rows)| rows), Some(1));
    assert_eq!(page(&[], true, (0, 4)), Some((b"..".to_vec(), 0)));
    // Nothing is cached for one.
    assert_eq!(page(&[9, 5, 7], false, (0, 2)), None);
    assert!(page(&[9, 7, 5], false, (0, 2)).is_some());
}

#[test]
fn rows_in_front_of_a_page_need_not_be_known() {
    let rows = RowCache::new(1 << 20);
    rows.insert(home(9), FIRST, CachedRow::Passes, &[]);
    rows.insert(home(8), FIRST, CachedRow::Row(b"eight"), &[]);
    rows.insert(home(8), FIRST, CachedRow::Passes, &[]);
    let page = |part| {
        let has = rows.has_page(OF, &[9, 8], false, part);
        let page = rows.page(OF, &[9, 8], false, part, (Vec::new(), 1));
        assert_eq!(has, page.is_some());
        page.map(|page| page.packets)
    };
    assert_eq!(page((1, 1)), Some(b"\x05\0\0\x01eight".to_vec()));
    assert_eq!(page((0, 1)), None);
    rows.insert(home(9), FIRST, CachedRow::Row(b"nine"), &[]);
    assert!(page((0, 1)).is_some());
}

#[derive(Clone, Debug)]
enum CacheAction {
    /// A message, a cache key, the length of its row, and its link.
    Keep(u64, u64, Option<usize>, Option<u64>),
    Look(u64, u64),
    Forget(u64),
    /// A row that others depend on has changed.
    Touch(u64),
    ForgetAll,
    Clear,
}

fn act() -> impl Strategy<Value = CacheAction> {
    let id = 0..60_u64;
    let variant = 0..4_u64;
    prop_oneof![
        60 => (id.clone(), variant.clone(), proptest::option::of(0..400_usize), proptest::option::of(0..9_u64))
            .prop_map(|(id, variant, len, of)| CacheAction::Keep(id, variant, len, of)),
        60 => (id.clone(), variant).prop_map(|(id, variant)| CacheAction::Look(id, variant)),
        10 => id.prop_map(CacheAction::Forget),
        5 => (0..9_u64).prop_map(CacheAction::Touch),
        1 => Just(CacheAction::ForgetAll),
        1 => Just(CacheAction::Clear),
    ]
}

proptest! {
    /// Whatever is evicted: a lookup returns what was last cached and not invalidated.
    #[test]
    fn what_is_told_is_what_was_kept_last(acts in proptest::collection::vec(act(), 1..1_500)) {
        let rows = RowCache::new(64 << 10);
        type ModelRow = (Option<Vec<u8>>, Option<u64>);
        let mut model: HashMap<(u64, u64), ModelRow> = HashMap::new();
        for (number, act) in acts.into_iter().enumerate() {
            match act {
                CacheAction::Keep(id, variant, len, of) => {
                    let body = len.map(|len| vec![number.to_le_bytes()[0]; len]);
                    let kept = body.as_deref().map_or(CachedRow::FilteredOut, CachedRow::Row);
                    let link = of.map_or(RowLink::NONE, |key| rows.link_to(away(key)));
                    rows.insert(home(id), CacheKey(variant), kept, &[link]);
                    model.insert((id, variant), (body, of));
                }
                CacheAction::Look(id, variant) => {
                    let of = PageSource { cache_key: CacheKey(variant), joined_tables: &[AWAY], ..OF };
                    if let Some(page) = rows.page(of, &[id], true, (0, 1), (Vec::new(), 0)) {
                        let served = page.packets.get(4..).filter(|_| page.rows > 0).map(<[u8]>::to_vec);
                        let expected = model.get(&(id, variant)).map(|(body, _)| body);
                        prop_assert_eq!(Some(&served), expected);
                    }
                }
                CacheAction::Forget(id) => {
                    rows.invalidate(home(id));
                    model.retain(|(own, _), _| *own != id);
                }
                CacheAction::Touch(key) => {
                    rows.invalidate(away(key));
                    model.retain(|_, (_, of)| *of != Some(key));
                }
                CacheAction::ForgetAll => {
                    rows.invalidate_table(HOME.into());
                    model.clear();
                }
                CacheAction::Clear => {
                    rows.clear();
                    model.clear();
                }
            }
        }
        prop_assert!(rows.memory_bytes() <= 80 << 10, "{}", rows.memory_bytes());
    }
}
