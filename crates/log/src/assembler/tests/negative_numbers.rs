//! Rows with an id, a reader or an author below 0, of which memory holds none.

use super::built_events::{DELETE, INT, UPDATE, WRITE, assemble_changes, described, rows};
use super::captured_log::routes_with_types;
use crate::routes::TableRoutes;
use headwater_timeline::definition::IdType;
use headwater_timeline::index::TimelineChange;

fn signed(has_copies: bool) -> TableRoutes {
    let mut routes = routes_with_types(IdType::Int, IdType::Int);
    for route in &mut routes.routes {
        route.has_copies = has_copies && route.name == "follower";
    }
    routes
}

/// A message has a third column, which the images omit.
fn width(table: &str) -> u8 {
    if table == "message" { 3 } else { 2 }
}

fn row(first: i32, second: i32) -> Vec<u8> {
    [&[0][..], &first.to_le_bytes(), &second.to_le_bytes()].concat()
}

fn changes_of(table: &str, kind: u8, body: &[Vec<u8>]) -> Vec<TimelineChange> {
    let map = described(table, &vec![INT; usize::from(width(table))], &[]);
    let images: &[u8] = if kind == UPDATE { &[3, 3] } else { &[3] };
    let events = [map, rows(kind, width(table), images, &body.concat())];
    assemble_changes(&events, &signed(false)).unwrap()
}

const TEN: TimelineChange = TimelineChange::Posted {
    author: 2,
    key: 0,
    id: 10,
};
const TEN_GONE: TimelineChange = TimelineChange::Removed {
    author: Some(2),
    key: 0,
    id: 10,
};
const LOST: TimelineChange = TimelineChange::MessagesOfAuthorLost { author: 2 };

#[test]
fn a_message_below_zero_voids_what_is_known_of_its_author() {
    let message = |kind, body: &[Vec<u8>]| changes_of("message", kind, body);
    assert_eq!(message(WRITE, &[row(-10, 2)]), [LOST]);
    // What is known of an author does not contain it.
    assert_eq!(message(DELETE, &[row(-10, 2)]), []);
    assert_eq!(message(UPDATE, &[row(-10, 2), row(10, 2)]), [TEN]);
    assert_eq!(
        message(UPDATE, &[row(10, 2), row(-10, 2)]),
        [TEN_GONE, LOST]
    );
    assert_eq!(message(UPDATE, &[row(-10, 2), row(-10, 2)]), []);
}

#[test]
fn nobody_of_whom_memory_knows_follows_an_author_below_zero() {
    let message = |kind, body: &[Vec<u8>]| changes_of("message", kind, body);
    for id in [10, -10] {
        assert_eq!(message(WRITE, &[row(id, -2)]), []);
        assert_eq!(message(DELETE, &[row(id, -2)]), []);
    }
    assert_eq!(message(UPDATE, &[row(10, 2), row(10, -2)]), [TEN_GONE]);
    assert_eq!(message(UPDATE, &[row(10, -2), row(10, 2)]), [TEN]);
    // Where the image omits the author, the message may be of any.
    let map = described("message", &[INT; 3], &[]);
    let without = rows(WRITE, 3, &[1], &row(-10, 0)[..5]);
    assert_eq!(
        assemble_changes(&[map, without], &signed(false)).unwrap(),
        [TimelineChange::MessagesLost]
    );
}

#[test]
fn a_follow_below_zero_concerns_its_reader() {
    let follower = |kind, body: &[Vec<u8>]| changes_of("follower", kind, body);
    let (reader, author) = (3, 2);
    let changed = TimelineChange::FollowsChanged { reader };
    for kind in [WRITE, DELETE] {
        assert_eq!(follower(kind, &[row(3, -2)]), [changed]);
        for nobody in [row(-3, 2), row(-3, -2)] {
            assert_eq!(follower(kind, &[nobody]), []);
        }
    }
    assert_eq!(
        follower(UPDATE, &[row(3, -2), row(3, 2)]),
        [changed, TimelineChange::Followed { reader, author }]
    );
    let map = described("follower", &[INT; 2], &[]);
    let events = [map, rows(DELETE, 2, &[3], &row(3, -2))];
    assert_eq!(assemble_changes(&events, &signed(true)).unwrap(), [changed]);
}

/// Where one column of users is signed and another is not, the same bytes are a user above 2^31 or none.
#[test]
fn where_signs_are_mixed_nothing_is_certain() {
    let mut routes = signed(false);
    for route in &mut routes.routes {
        route.has_mixed_signs = true;
    }
    let changes = |table: &str, kind: u8, body: Vec<u8>| {
        let columns = vec![INT; usize::from(width(table))];
        let events = [
            described(table, &columns, &[]),
            rows(kind, width(table), &[3], &body),
        ];
        assemble_changes(&events, &routes).unwrap()
    };
    let lost = [TimelineChange::MessagesLost];
    assert_eq!(changes("message", WRITE, row(10, -2)), lost);
    assert_eq!(changes("message", WRITE, row(-10, 2)), [LOST]);
    let lost = [TimelineChange::FollowsLost];
    assert_eq!(changes("follower", WRITE, row(3, -2)), lost);
    assert_eq!(changes("follower", DELETE, row(-3, 2)), lost);
}
