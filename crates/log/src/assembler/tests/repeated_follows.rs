//! Rows of a follow table that may hold a pair twice: they say whose follows changed, and no more.

use super::built_events::{DELETE, INT, UPDATE, WRITE, assemble_changes, described, rows};
use super::captured_log::routes;
use crate::routes::TableRoutes;
use headwater_timeline::index::TimelineChange;

fn with_copies() -> TableRoutes {
    let mut routes = routes();
    for route in &mut routes.routes {
        route.has_copies = route.name == "follower";
    }
    routes
}

/// Reader and author, as the table has them; 0: NULL.
fn row(first: u8, second: u8) -> Vec<u8> {
    let nulls = u8::from(first == 0) | u8::from(second == 0) << 1;
    let values = [first, second].into_iter().filter(|value| *value != 0);
    let values = values.flat_map(|value| [value, 0, 0, 0]);
    std::iter::once(nulls).chain(values).collect()
}

fn changes_of(kind: u8, images: &[u8], body: &[u8]) -> Vec<TimelineChange> {
    let map = described("follower", &[INT; 2], &[]);
    assemble_changes(&[map, rows(kind, 2, images, body)], &with_copies()).unwrap()
}

fn changed(reader: u64) -> TimelineChange {
    TimelineChange::FollowsChanged { reader }
}

#[test]
fn each_row_names_its_reader() {
    assert_eq!(changes_of(WRITE, &[3], &row(2, 3)), [changed(2)]);
    assert_eq!(changes_of(DELETE, &[3], &row(2, 3)), [changed(2)]);
    let moved = [row(2, 3), row(4, 3)].concat();
    assert_eq!(
        changes_of(UPDATE, &[3, 3], &moved),
        [changed(2), changed(4)]
    );
    let same = [row(2, 3), row(2, 3)].concat();
    assert_eq!(changes_of(UPDATE, &[3, 3], &same), []);
    for nobody in [row(0, 3), row(2, 0)] {
        assert_eq!(changes_of(WRITE, &[3], &nobody), []);
    }
    // The log names no reader.
    assert_eq!(
        changes_of(DELETE, &[2], &[0, 3, 0, 0, 0]),
        [TimelineChange::FollowsLost]
    );
}
