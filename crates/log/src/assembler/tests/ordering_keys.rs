//! Rows that are ordered by a sort key: what the log contains of it, and what it omits.

use super::built_events::{DELETE, INT, UPDATE, WRITE, assemble_changes, described, rows};
use super::captured_log::routes;
use crate::routes::{KeyColumnPosition, TableRoutes};
use headwater_timeline::KeyType;
use headwater_timeline::index::TimelineChange;

const DATETIME: u8 = 18;
/// The format without fractions.
const OLD_DATETIME: u8 = 12;

/// The third column is a DATETIME(2) that pages are ordered by.
fn keyed() -> TableRoutes {
    let mut routes = routes();
    for route in &mut routes.routes {
        route.key = (route.name == "message").then_some(KeyColumnPosition {
            at: 2,
            kind: KeyType::Datetime(2),
        });
    }
    routes
}

fn number(text: &str) -> u64 {
    KeyType::Datetime(2).encode_text(text.as_bytes()).unwrap()
}

const TEN: [u8; 6] = [0x99, 0xbb, 0x6e, 0xa0, 0, 50];
const ELEVEN: [u8; 6] = [0x99, 0xbb, 0x6e, 0xb0, 0, 0];

/// Id 10 of author 2.
fn row(key: Option<[u8; 6]>) -> Vec<u8> {
    let nulls = if key.is_none() { 0b100 } else { 0 };
    let image = [nulls, 10, 0, 0, 0, 2, 0, 0, 0];
    [&image[..], key.as_ref().map_or(&[], |key| &key[..])].concat()
}

fn changes_of(kind: u8, images: &[u8], body: &[u8]) -> Vec<TimelineChange> {
    let map = described("message", &[INT, INT, DATETIME], &[2]);
    assemble_changes(&[map, rows(kind, 3, images, body)], &keyed()).unwrap()
}

fn posted(key: u64) -> TimelineChange {
    let (author, id) = (2, 10);
    TimelineChange::Posted { author, key, id }
}

fn removed(key: u64) -> TimelineChange {
    let (author, id) = (Some(2), 10);
    TimelineChange::Removed { author, key, id }
}

const UNTOLD: TimelineChange = TimelineChange::Removed {
    author: None,
    key: 0,
    id: 10,
};

#[test]
fn a_key_is_reported_with_its_message() {
    let ten = number("2026-11-23 10:00:00.50");
    assert_eq!(changes_of(WRITE, &[7], &row(Some(TEN))), [posted(ten)]);
    assert_eq!(changes_of(DELETE, &[7], &row(Some(TEN))), [removed(ten)]);
    // NULL sorts below all.
    assert_eq!(changes_of(WRITE, &[7], &row(None)), [posted(0)]);
}

#[test]
fn a_key_that_changes_alone_is_reported() {
    let (ten, eleven) = (
        number("2026-11-23 10:00:00.50"),
        number("2026-11-23 11:00:00"),
    );
    let both = |a, b| [row(a), row(b)].concat();
    assert_eq!(
        changes_of(UPDATE, &[7, 7], &both(Some(TEN), Some(ELEVEN))),
        [removed(ten), posted(eleven)]
    );
    assert_eq!(
        changes_of(UPDATE, &[7, 7], &both(Some(TEN), None)),
        [removed(ten), posted(0)]
    );
    assert_eq!(changes_of(UPDATE, &[7, 7], &both(Some(TEN), Some(TEN))), []);
}

/// `binlog_row_image=MINIMAL`: the primary key before, and the changed columns after.
#[test]
fn what_the_log_leaves_out_of_a_key_or_an_author_loses_the_messages() {
    let id = [0, 10, 0, 0, 0];
    let changed = |cell: &[u8]| [&id[..], &[0], cell].concat();
    let lost = [UNTOLD, TimelineChange::MessagesLost];
    assert_eq!(changes_of(UPDATE, &[1, 4], &changed(&TEN)), lost);
    assert_eq!(changes_of(UPDATE, &[1, 2], &changed(&[3, 0, 0, 0])), lost);
    assert_eq!(changes_of(DELETE, &[1], &id), [UNTOLD]);
    // The key of a new message is a default that the log omits.
    let new = [0, 10, 0, 0, 0, 2, 0, 0, 0];
    assert_eq!(
        changes_of(WRITE, &[3], &new),
        [TimelineChange::MessagesLost]
    );
    let both = [&id[..], &[0, 3, 0, 0, 0], &TEN].concat();
    let (author, key) = (3, number("2026-11-23 10:00:00.50"));
    let moved = TimelineChange::Posted {
        author,
        key,
        id: 10,
    };
    assert_eq!(changes_of(UPDATE, &[1, 6], &both), [UNTOLD, moved]);
}

/// The log is followed further, for other timelines.
#[test]
fn a_key_that_has_no_number_loses_the_messages() {
    // Below 0.
    const NONE: [u8; 6] = [0x7f, 0xff, 0xff, 0xff, 0xff, 0];
    let ten = number("2026-11-23 10:00:00.50");
    let both = |a, b| [row(Some(a)), row(Some(b))].concat();
    assert_eq!(
        changes_of(WRITE, &[7], &row(Some(NONE))),
        [TimelineChange::MessagesLost]
    );
    assert_eq!(
        changes_of(UPDATE, &[7, 7], &both(TEN, NONE)),
        [removed(ten), TimelineChange::MessagesLost]
    );
    assert_eq!(
        changes_of(UPDATE, &[7, 7], &both(NONE, TEN)),
        [UNTOLD, posted(ten)]
    );
    assert_eq!(changes_of(DELETE, &[7], &row(Some(NONE))), [UNTOLD]);
    // A format that is not read.
    let map = described("message", &[INT, INT, OLD_DATETIME], &[]);
    let old = [&row(None)[1..], &[0; 8]].concat();
    let write = rows(WRITE, 3, &[7], &[&[0], &old[..]].concat());
    let changes = assemble_changes(&[map, write], &keyed());
    assert_eq!(changes.unwrap(), [TimelineChange::MessagesLost]);
}
