//! What a row event did to the tables.

use super::rows::{Cell, Row};
use crate::evidence::Table;
use crate::routes::Route;
use headwater_timeline::index::{Change, PlaceId};

/// Something became of the table.
pub(crate) fn lost(route: &Route) -> Change {
    match route.table {
        Table::Message => Change::MessagesLost,
        Table::Follower => Change::FollowsLost,
    }
}

/// What a row event did, from the row before (an update's, or a deleted one) and the row after.
pub(crate) fn note(
    route: &Route,
    old: Option<Row>,
    new: Option<Row>,
    changes: &mut Vec<(PlaceId, Change)>,
) {
    // In an update, what the after-image leaves out has not changed.
    let new = match (old, new) {
        (Some(old), Some(new)) => Some([merged(old[0], new[0]), merged(old[1], new[1])]),
        (_, new) => new,
    };
    if old == new {
        return;
    }
    let mut add = |change| changes.push((route.place, change));
    match route.table {
        Table::Message => {
            match old {
                Some([Cell::Number(id), author]) => match author {
                    Cell::Number(author) => add(Change::Removed {
                        author: Some(author),
                        key: 0,
                        id,
                    }),
                    Cell::Untold => add(Change::Removed {
                        author: None,
                        key: 0,
                        id,
                    }),
                    Cell::Null => {}
                },
                Some(_) => add(Change::MessagesLost),
                None => {}
            }
            match new {
                Some([Cell::Number(id), Cell::Number(author)]) => {
                    add(Change::Posted { author, key: 0, id })
                }
                // A message without an author is on nobody's page.
                Some([_, Cell::Null]) | None => {}
                Some(_) => add(Change::MessagesLost),
            }
        }
        Table::Follower => {
            match old {
                Some([Cell::Number(reader), Cell::Number(author)]) => {
                    add(Change::Unfollowed { reader, author });
                }
                Some([Cell::Null, _] | [_, Cell::Null]) | None => {}
                Some(_) => add(Change::FollowsLost),
            }
            match new {
                Some([Cell::Number(reader), Cell::Number(author)]) => {
                    add(Change::Followed { reader, author });
                }
                Some([Cell::Null, _] | [_, Cell::Null]) | None => {}
                Some(_) => add(Change::FollowsLost),
            }
        }
    }
}

fn merged(old: Cell, new: Cell) -> Cell {
    if new == Cell::Untold { old } else { new }
}
