//! What it costs, and what goes when that is too much.

use super::*;

/// Authors with 100 ids each that came one after the other, and readers with 43 authors each.
fn grown(ids: u64, edges: u64, memory_bytes: usize) -> TimelineIndex {
    let mut index = TimelineIndex::new(memory_bytes);
    let authors = ids / 100;
    for author in 0..authors {
        let half = (0..50).map(|id| id * authors + author).collect();
        load_author(&mut index, author, half, true);
    }
    for id in authors * 50..ids {
        let author = id % authors;
        index.apply(
            &[TimelineChange::Posted { author, key: 0, id }],
            BinlogPosition {
                file: 1,
                offset: id,
            },
        );
    }
    for reader in 0..edges / 43 {
        let follows = (0..43).map(|follow| (reader * 43 + follow * 31) % authors);
        load_reader(&mut index, reader, follows.collect());
    }
    index
}

#[test]
fn an_id_and_an_edge_cost_less_than_16_bytes() {
    let index = grown(200_000, 0, 1 << 30);
    assert_eq!(index.message_count(), 200_000);
    assert!(
        index.bytes() < 16 * index.message_count(),
        "{}",
        index.bytes()
    );
    let before = index.bytes();
    let index = grown(200_000, 200_000, 1 << 30);
    assert_eq!(
        (index.message_count(), index.follow_count()),
        (200_000, 199_993)
    );
    assert!(
        index.bytes() - before < 16 * index.follow_count(),
        "{}",
        index.bytes() - before
    );
}

#[test]
fn a_hundredth_of_the_memory_is_kept() {
    let budget = 30_000;
    let mut index = grown(100_000, 100_000, budget);
    assert!(index.bytes() <= budget);
    for number in 10_000..20_000 {
        load_author(&mut index, number, (0..100).collect(), true);
        load_reader(&mut index, number, (0..43).collect());
        assert!(index.bytes() <= budget);
    }
    assert!(index.author_count() > 5 && index.reader_count() > 5);
    assert!(index.page(0, None, 20).is_err());
}

#[test]
fn what_is_used_stays() {
    let mut index = TimelineIndex::new(100_000);
    load_reader(&mut index, 0, vec![0]);
    load_author(&mut index, 0, (0..100).collect(), true);
    for author in 1..10_000 {
        assert!(index.page(0, None, 20).is_ok(), "{author}");
        load_author(
            &mut index,
            author,
            (0..100).map(|id| author * 100 + id).collect(),
            true,
        );
    }
    assert!(index.author_count() > 50 && index.author_count() < 200);
    assert_eq!(index.evicted_count(), 10_000 - index.author_count() as u64);
}

#[test]
fn without_any_memory_nothing_stays() {
    let index = grown(10_000, 10_000, 0);
    assert_eq!((index.author_count(), index.reader_count()), (0, 0));
}

#[test]
fn loads_under_way_are_not_evicted() {
    let mut index = TimelineIndex::new(0);
    let ask = index.begin_author_load(1, None, 5).unwrap();
    let reader = index.begin_reader_load(1).unwrap();
    index.apply(
        &[TimelineChange::Posted {
            author: 1,
            key: 0,
            id: 9,
        }],
        at(1),
    );
    assert_eq!((index.author_count(), index.reader_count()), (1, 1));
    index.accept_author_rows(ask.ticket, vec![], Some(0), at(2));
    assert_eq!((index.author_count(), index.message_count()), (1, 1));
    index.abandon_load(reader);
    index.apply(&[], at(2));
    assert_eq!((index.author_count(), index.reader_count()), (0, 0));
}
