//! One thing at a time.

use super::super::entry_load::MAX_LOGGED_CHANGES;
use super::*;

/// All messages at or above 5.
const ALL: MessageRange = MessageRange {
    upper: None,
    lower: 5,
    limit: 20,
};

fn posted(author: u64, id: u64) -> TimelineChange {
    TimelineChange::Posted { author, key: 0, id }
}

fn removed(author: Option<u64>, id: u64) -> TimelineChange {
    TimelineChange::Removed { author, key: 0, id }
}

#[test]
fn a_page_is_the_newest_of_the_authors_with_the_greatest_heads() {
    let index = filled(&[(1, &[10, 40, 70]), (2, &[20, 50]), (3, &[30]), (4, &[])]);
    let page = index.page(1, None, 2).unwrap();
    assert_eq!(page.ids, [70, 50, 40, 20]);
    assert_eq!(page.heads, [head(1, 70), head(2, 50), head(3, 30)]);
    let page = index.page(1, Some(39), 2).unwrap();
    assert_eq!(page.ids, [30, 20]);
    assert_eq!(page.heads, [head(1, 10), head(2, 20), head(3, 30)]);
    let page = index.page(1, Some(9), 2).unwrap();
    assert_eq!((page.ids, page.heads), (vec![], vec![]));
}

#[test]
fn ids_come_in_any_order_and_more_than_once() {
    let mut index = filled(&[(1, &[50])]);
    for id in [70, 60, 10, 60, 55, 50, 5] {
        index.apply(&[posted(1, id)], at(1));
    }
    index.apply(&[removed(Some(1), 55), removed(Some(1), 54)], at(2));
    assert_eq!(index.page(1, None, 20).unwrap().ids, [70, 60, 50, 10, 5]);
    index.apply(&[removed(Some(1), 70)], at(3));
    assert_eq!(index.page(1, None, 20).unwrap().heads, [head(1, 60)]);
    assert_eq!(index.message_count(), 4);
}

/// An item that comes was absent, and one that goes was present; otherwise the log lacks a change.
#[test]
fn a_change_that_cannot_have_happened_is_noticed() {
    let mut index = filled(&[(1, &[50, 60])]);
    let mut apply = |change: TimelineChange, upto| {
        index.apply(&[change], at(upto));
        index.take_contradiction()
    };
    for (upto, change) in (1..).zip([posted(1, 60), removed(Some(1), 55)]) {
        assert_eq!(apply(change, upto), Some(change));
    }
    let (reader, author) = (1, 1);
    let followed = TimelineChange::Followed { reader, author };
    assert_eq!(apply(followed, 3), Some(followed));
    let unfollowed = TimelineChange::Unfollowed { reader, author: 9 };
    assert_eq!(apply(unfollowed, 4), Some(unfollowed));
    // The author is not in memory, or the row image has no author: nothing is known.
    for (upto, change) in (5..).zip([
        posted(8, 60),
        removed(None, 50),
        posted(1, 50),
        removed(Some(1), 60),
    ]) {
        assert_eq!(apply(change, upto), None);
    }
    assert_eq!(index.contradiction_count(), 4);
}

/// Where a follow may be there twice, a row says that a list changed, not how.
#[test]
fn a_list_whose_follows_changed_is_loaded_again() {
    let mut index = filled(&[(1, &[50, 60])]);
    let reader = 1;
    assert!(index.follow_list(reader).is_some());
    index.apply(&[TimelineChange::FollowsChanged { reader: 9 }], at(1));
    assert!(index.follow_list(reader).is_some());
    index.apply(&[TimelineChange::FollowsChanged { reader }], at(2));
    assert_eq!(index.follow_list(reader), None);
    assert_eq!(index.contradiction_count(), 0);
    load_reader(&mut index, reader, vec![1]);
    assert_eq!(index.follow_list(reader), Some(vec![1]));
}

#[test]
fn a_window_that_is_not_whole_needs_n_ids_and_is_extended_downwards() {
    let mut index = TimelineIndex::new(1 << 20);
    load_reader(&mut index, 1, vec![7]);
    load_author(&mut index, 7, vec![50, 60, 70], false);
    assert!(index.page(1, None, 3).is_ok());
    assert!(index.page(1, Some(69), 2).is_ok());
    let missing = index.page(1, Some(69), 3).unwrap_err();
    assert_eq!((missing.reader, missing.authors), (false, vec![7]));
    // What is below is not known: ids that come there change nothing.
    index.apply(&[posted(7, 40)], at(1));
    assert!(index.page(1, None, 4).is_err());
    assert_eq!(index.begin_author_load(7, Some(69), 2), None);
    let ask = index.begin_author_load(7, Some(69), 3).unwrap();
    assert_eq!(ask.below, Some(50));
    assert_eq!(index.begin_author_load(7, Some(69), 3), None);
    assert!(index.page(1, Some(69), 2).is_ok());
    index.accept_author_rows(ask.ticket, vec![40, 30], Some(0), at(1));
    assert_eq!(index.page(1, Some(69), 9).unwrap().ids, [60, 50, 40, 30]);
    assert_eq!(index.begin_author_load(7, Some(1), 9), None);
}

#[test]
fn what_was_loaded_is_used_from_its_position_on() {
    let mut index = filled(&[(7, &[10])]);
    let reader = index.begin_reader_load(2).unwrap();
    let ask = index.begin_author_load(8, None, 3).unwrap();
    index.apply(&[posted(8, 30)], at(1));
    index.apply(
        &[TimelineChange::Followed {
            reader: 2,
            author: 8,
        }],
        at(2),
    );
    // The rows are of position 3, where 20 is gone again and the reader has left 7.
    index.accept_author_rows(ask.ticket, vec![30, 10], Some(0), at(3));
    index.accept_reader_rows(reader, vec![8], at(3));
    assert!(index.page(2, None, 3).unwrap_err().reader);
    assert_eq!(index.begin_reader_load(2), None);
    index.apply(&[posted(8, 20)], at(2));
    let last = [
        removed(Some(8), 20),
        TimelineChange::Unfollowed {
            reader: 2,
            author: 7,
        },
    ];
    index.apply(&last, at(3));
    assert_eq!(index.page(2, None, 3).unwrap().ids, [30, 10]);
}

#[test]
fn a_removal_without_an_author_counts_for_all_but_the_new_owner() {
    let mut index = filled(&[(1, &[10, 20]), (2, &[15])]);
    index.apply(&[removed(None, 20)], at(1));
    assert_eq!(
        index.page(1, None, 5).unwrap().heads,
        [head(1, 10), head(2, 15)]
    );
    index.apply(&[posted(2, 20)], at(2));
    assert_eq!(
        index.page(1, None, 5).unwrap().heads,
        [head(1, 10), head(2, 20)]
    );
    index.apply(&[removed(Some(2), 20)], at(3));
    assert_eq!(index.page(1, None, 5).unwrap().ids, [15, 10]);
}

#[test]
fn tombstones_are_swept_away() {
    let windows: Vec<(u64, Vec<u64>)> = (0..300)
        .map(|author| (author, (0..100).map(|id| id * 300 + author).collect()))
        .collect();
    let windows: Vec<(u64, &[u64])> = windows.iter().map(|(a, ids)| (*a, &ids[..])).collect();
    let mut index = filled(&windows);
    for id in 0..1_025 {
        index.apply(&[removed(None, id * 3)], at(1));
    }
    assert!(index.sweep.is_some());
    let ask = index.begin_author_load(1_000, None, 5).unwrap();
    for step in 0..20 {
        index.apply(&[], at(2_000 + step));
    }
    // A load that began after the sweep does not prolong it.
    assert!(index.sweep.is_none());
    assert_eq!(index.tombstones.len(), 0);
    assert_eq!(index.message_count(), 30_000 - 1_025);
    index.accept_author_rows(ask.ticket, vec![0], Some(0), at(2_019));
    assert_eq!(index.message_count(), 30_000 - 1_024);
}

#[test]
fn a_load_from_before_keeps_tombstones_until_there_are_too_many() {
    let mut index = filled(&[(1, &[10])]);
    let ask = index.begin_author_load(2, None, 5).unwrap();
    for id in 0..65_537 {
        index.apply(&[removed(None, id)], at(1));
    }
    for step in 0..9 {
        index.apply(&[], at(2 + step));
    }
    assert_eq!(index.tombstones.len(), 0);
    // Too late: the load was abandoned.
    index.accept_author_rows(ask.ticket, vec![10], Some(0), at(1));
    assert_eq!(index.author_count(), 1);
    assert!(index.begin_author_load(2, None, 5).is_some());
}

#[test]
fn a_load_is_void_after_too_many_changes() {
    let mut index = filled(&[(7, &[200_000])]);
    load_author(&mut index, 8, vec![100_000], false);
    let extension = index.begin_author_load(8, Some(5), 5).unwrap();
    let author = index.begin_author_load(9, None, 5).unwrap();
    let reader = index.begin_reader_load(2).unwrap();
    for step in 0..=MAX_LOGGED_CHANGES as u64 {
        let followed = TimelineChange::Followed {
            reader: 2,
            author: step,
        };
        index.apply(&[posted(8, step % 1_000), posted(9, step), followed], at(1));
    }
    assert_eq!((index.author_count(), index.reader_count()), (2, 1));
    assert!(index.pending_authors.is_empty());
    index.accept_author_rows(author.ticket, vec![1], Some(0), at(1));
    index.accept_author_rows(extension.ticket, vec![1], Some(0), at(1));
    index.accept_reader_rows(reader, vec![1], at(1));
    assert_eq!(
        (
            index.author_count(),
            index.reader_count(),
            index.message_count()
        ),
        (2, 1, 2)
    );
    assert!(index.begin_author_load(8, Some(5), 5).is_some());
}

/// In another log a position may be less than any before, and the position that a load waits for may have passed.
#[test]
fn behind_a_resumption_what_was_valid_is_and_what_was_not_is_gone() {
    let mut index = TimelineIndex::<u64>::new(1 << 20);
    index.apply(&[], at(100));
    let reader = index.begin_reader_load(1).unwrap();
    index.accept_reader_rows(reader, vec![2], at(100));
    let early = index.begin_author_load(2, None, 5).unwrap();
    index.accept_author_rows(early.ticket, vec![7, 9], Some(0), at(100));
    assert_eq!(index.page(1, None, 5).unwrap().ids, [9, 7]);
    let late = index.begin_reader_load(3).unwrap();
    index.accept_reader_rows(late, vec![2], at(150));
    let request = index.begin_author_load(4, None, 5).unwrap();
    index.suspend();
    index.resume(at(10));
    assert_eq!(index.page(1, None, 5).unwrap().ids, [9, 7]);
    index.accept_author_rows(request.ticket, vec![1], Some(0), at(5));
    index.apply(&[], at(200));
    assert!(
        !index.has_reader(3),
        "it was to be valid from 150 on, in the other log"
    );
    assert_eq!((index.reader_count(), index.author_count()), (1, 1));
}

/// Entries from another server serve nothing until the current one confirms or contradicts them.
#[test]
fn beside_another_server_each_entry_is_confirmed_by_its_rows() {
    let mut index = filled(&[(1, &[10, 40]), (2, &[20]), (3, &[30])]);
    index.apply(&[removed(None, 40)], at(1));
    index.resume_unconfirmed(at(3));
    assert!(!index.has_reader(1) && index.page_of(&[1], None, 2).is_err());
    assert_eq!(index.newest_messages(&[2, 3], ALL), Err(vec![2, 3]));
    assert_eq!((index.reader_count(), index.author_count()), (1, 3));
    // The log continues meanwhile, and its changes are no contradiction.
    index.apply(&[posted(1, 10), posted(3, 35)], at(4));
    assert_eq!(index.take_contradiction(), None);

    let ticket = index.begin_reader_load(1).unwrap();
    assert_eq!(index.begin_reader_load(1), None);
    let follow = TimelineChange::Followed {
        reader: 1,
        author: 4,
    };
    index.apply(&[follow], at(5));
    let compared = index.accept_reader_rows(ticket, vec![1, 2, 3], at(5));
    assert_eq!(compared, LoadComparison::Equal);
    assert_eq!(index.follow_list(1), Some(vec![1, 2, 3, 4]));

    let mut confirm = |author, ids: &[u64], valid_from| {
        let ask = index.begin_author_load(author, None, 20).unwrap();
        assert_eq!(ask.below, None);
        index.accept_author_rows(ask.ticket, ids.to_vec(), Some(5), valid_from)
    };
    // The other server still has what was removed here.
    assert_eq!(confirm(1, &[40, 10], at(5)), LoadComparison::Different);
    assert_eq!(confirm(2, &[], at(5)), LoadComparison::Different);
    // These rows are of a later moment than the index.
    assert_eq!(confirm(3, &[36, 35, 30], at(6)), LoadComparison::None);
    index.apply(&[posted(3, 36)], at(6));
    assert_eq!(
        index.newest_messages(&[1, 2, 3], ALL).unwrap().items,
        [40, 36, 35, 30, 10]
    );
    // A load that fails leaves nothing.
    index.resume_unconfirmed(at(7));
    let ask = index.begin_author_load(3, None, 20).unwrap();
    assert_eq!(ask.above, 3);
    index.abandon_load(ask.ticket);
    assert_eq!(index.author_count(), 2);
}

#[test]
fn lost_and_cleared_make_tickets_stale() {
    let mut index = filled(&[(7, &[10])]);
    let reader = index.begin_reader_load(2).unwrap();
    let author = index.begin_author_load(8, None, 5).unwrap();
    index.apply(&[TimelineChange::MessagesLost], at(1));
    index.accept_author_rows(author.ticket, vec![1], Some(0), at(1));
    assert_eq!(
        (
            index.author_count(),
            index.message_count(),
            index.follow_count()
        ),
        (0, 0, 1)
    );
    assert_eq!(index.page(1, None, 5).unwrap_err().authors, [7]);
    index.clear();
    let again = index.begin_reader_load(2).unwrap();
    index.accept_reader_rows(reader, vec![1, 2, 3], at(1));
    assert_eq!(index.follow_count(), 0);
    index.abandon_load(again);
    assert_eq!(index.reader_count(), 0);
}

#[test]
fn what_is_void_is_freed_little_by_little() {
    let empty = TimelineIndex::<u64>::new(1 << 24).bytes();
    let mut index = filled(&[(7, &[10]), (8, &[11])]);
    index.clear();
    assert!(index.bytes() > empty);
    for step in 0..99 {
        index.apply(&[], at(2 + step));
    }
    assert_eq!(index.bytes(), empty + index.maintenance_bytes());
}

#[test]
fn rows_that_say_nothing_are_no_load() {
    let mut index = filled(&[(7, &[])]);
    let ask = index.begin_author_load(8, None, 5).unwrap();
    index.accept_author_rows(ask.ticket, vec![], None, at(0));
    assert_eq!(index.author_count(), 1);
    assert!(index.begin_author_load(8, None, 5).is_some());
}

#[test]
fn missing_authors_are_named_up_to_a_number() {
    let mut index = TimelineIndex::new(1 << 20);
    load_reader(&mut index, 1, (0..5_000).collect());
    let missing = index.page(1, None, 20).unwrap_err();
    assert_eq!(missing.authors, (0..1_000).collect::<Vec<u64>>());
}

#[test]
fn many_threads_may_read_an_index() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&TimelineIndex::<u64>::new(0));
    shared(&TimelineIndex::<KeyedMessage>::new(0));
}
