//! What a row event did to the tables.

use super::rows::{Cell, Row};
use crate::edits::Edits;
use crate::evidence::Table;
use crate::routes::Route;
use headwater_timeline::index::{Change, PlaceId};

/// Something became of the table; `None`: of one whose rows are in no index.
pub(crate) fn lost(route: &Route) -> Option<Change> {
    match route.table {
        Table::Message => Some(Change::MessagesLost),
        Table::Follower => Some(Change::FollowsLost),
        Table::Referred => None,
    }
}

/// True for a table of which rows are kept.
pub(crate) fn is_kept(route: &Route) -> bool {
    matches!(route.table, Table::Message | Table::Referred)
}

/// What a row event did, from the row before (an update's, or a deleted one) and the row after; and which messages' rows it edited, where
/// that is wanted.
pub(crate) fn note(
    route: &Route,
    old: Option<Row>,
    new: Option<Row>,
    changes: &mut Vec<(PlaceId, Change)>,
    mut edits: Option<&mut Edits>,
) {
    // In an update, what the after-image leaves out has not changed.
    let new = match (old, new) {
        (Some([own, whose, behind]), Some([id, author, key])) => {
            Some([merged(own, id), merged(whose, author), merged(behind, key)])
        }
        (_, new) => new,
    };
    // Of a message without an author there is no change, and yet its row is another one.
    if let Some(edits) = edits.as_mut().filter(|_| is_kept(route)) {
        for [id, ..] in old.iter().chain(&new) {
            match id {
                Cell::Number(id) => edits.add((route.place, *id)),
                _ => edits.add_all(route.place),
            }
        }
    }
    if old == new {
        return;
    }
    let mut add = |change| {
        changes.push((route.place, change));
        if let (Some(edits), Change::MessagesLost) = (&mut edits, change) {
            edits.add_all(route.place);
        }
    };
    match route.table {
        Table::Referred => {}
        Table::Message => {
            old.and_then(|old| removed(route, old)).map(&mut add);
            new.and_then(|new| posted(route, new)).map(&mut add);
        }
        Table::Follower => {
            match old {
                Some([Cell::Number(reader), Cell::Number(author), _]) => {
                    add(Change::Unfollowed { reader, author });
                }
                Some([Cell::Null, _, _] | [_, Cell::Null, _]) | None => {}
                Some(_) => add(Change::FollowsLost),
            }
            match new {
                Some([Cell::Number(reader), Cell::Number(author), _]) => {
                    add(Change::Followed { reader, author });
                }
                Some([Cell::Null, _, _] | [_, Cell::Null, _]) | None => {}
                Some(_) => add(Change::FollowsLost),
            }
        }
    }
}

/// A message is not what it was any more. One without an author was on nobody's page.
fn removed(route: &Route, [id, author, key]: Row) -> Option<Change> {
    let Cell::Number(id) = id else {
        return Some(Change::MessagesLost);
    };
    let untold = Change::Removed {
        author: None,
        key: 0,
        id,
    };
    match (author, number(route, key)) {
        (Cell::Null, _) => None,
        (Cell::Number(author), Some(key)) => Some(Change::Removed {
            author: Some(author),
            key,
            id,
        }),
        _ => Some(untold),
    }
}

/// What a message is now.
fn posted(route: &Route, [id, author, key]: Row) -> Option<Change> {
    match (id, author, number(route, key)) {
        (_, Cell::Null, _) => None,
        (Cell::Number(id), Cell::Number(author), Some(key)) => {
            Some(Change::Posted { author, key, id })
        }
        _ => Some(Change::MessagesLost),
    }
}

/// A message's key; `None`: it is not told, or has no number.
fn number(route: &Route, key: Cell) -> Option<u64> {
    match (route.key, key) {
        (None, _) => Some(0),
        (Some(_), Cell::Number(key)) => Some(key),
        (Some(_), Cell::Untold | Cell::Null | Cell::Unfit) => None,
    }
}

fn merged(old: Cell, new: Cell) -> Cell {
    if new == Cell::Untold { old } else { new }
}
