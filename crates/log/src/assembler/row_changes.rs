//! What a row event did to the tables.

use super::row_event::{ImageCell, RowImage};
use crate::edits::RowEdits;
use crate::evidence::TableRole;
use crate::routes::TableRoute;
use headwater_timeline::index::{TimelineChange, TimelineId};

/// Something became of the table; `None`: of one whose rows are in no index.
pub(crate) fn table_lost(route: &TableRoute) -> Option<TimelineChange> {
    match route.table {
        TableRole::Message => Some(TimelineChange::MessagesLost),
        TableRole::Follower => Some(TimelineChange::FollowsLost),
        TableRole::Referred => None,
    }
}

/// True for a table of which rows are kept.
pub(crate) fn is_cached(route: &TableRoute) -> bool {
    matches!(route.table, TableRole::Message | TableRole::Referred)
}

/// What a row event did, from the row before (an update's, or a deleted one) and the row after; and which messages' rows it edited, where
/// that is wanted.
pub(crate) fn record_row_change(
    route: &TableRoute,
    old: Option<RowImage>,
    new: Option<RowImage>,
    changes: &mut Vec<(TimelineId, TimelineChange)>,
    mut edits: Option<&mut RowEdits>,
) {
    // In an update, what the after-image leaves out has not changed.
    let new = match (old, new) {
        (Some([own, whose, behind]), Some([id, author, key])) => Some([
            merge_images(own, id),
            merge_images(whose, author),
            merge_images(behind, key),
        ]),
        (_, new) => new,
    };
    // Of a message without an author there is no change, and yet its row is another one.
    if let Some(edits) = edits.as_mut().filter(|_| is_cached(route)) {
        for [id, ..] in old.iter().chain(&new) {
            match id {
                ImageCell::Number(id) => edits.add((route.timeline_id, *id)),
                _ => edits.add_all(route.timeline_id),
            }
        }
    }
    if old == new {
        return;
    }
    let mut add = |change| {
        changes.push((route.timeline_id, change));
        if let (Some(edits), TimelineChange::MessagesLost) = (&mut edits, change) {
            edits.add_all(route.timeline_id);
        }
    };
    match route.table {
        TableRole::Referred => {}
        TableRole::Message => {
            old.and_then(|old| removed(route, old)).map(&mut add);
            new.and_then(|new| posted(route, new)).map(&mut add);
        }
        TableRole::Follower => {
            match old {
                Some([ImageCell::Number(reader), ImageCell::Number(author), _]) => {
                    add(TimelineChange::Unfollowed { reader, author });
                }
                Some([ImageCell::Null, _, _] | [_, ImageCell::Null, _]) | None => {}
                Some(_) => add(TimelineChange::FollowsLost),
            }
            match new {
                Some([ImageCell::Number(reader), ImageCell::Number(author), _]) => {
                    add(TimelineChange::Followed { reader, author });
                }
                Some([ImageCell::Null, _, _] | [_, ImageCell::Null, _]) | None => {}
                Some(_) => add(TimelineChange::FollowsLost),
            }
        }
    }
}

/// A message is not what it was any more. One without an author was on nobody's page.
fn removed(route: &TableRoute, [id, author, key]: RowImage) -> Option<TimelineChange> {
    let ImageCell::Number(id) = id else {
        return Some(TimelineChange::MessagesLost);
    };
    let untold = TimelineChange::Removed {
        author: None,
        key: 0,
        id,
    };
    match (author, message_key(route, key)) {
        (ImageCell::Null, _) => None,
        (ImageCell::Number(author), Some(key)) => Some(TimelineChange::Removed {
            author: Some(author),
            key,
            id,
        }),
        _ => Some(untold),
    }
}

/// What a message is now.
fn posted(route: &TableRoute, [id, author, key]: RowImage) -> Option<TimelineChange> {
    match (id, author, message_key(route, key)) {
        (_, ImageCell::Null, _) => None,
        (ImageCell::Number(id), ImageCell::Number(author), Some(key)) => {
            Some(TimelineChange::Posted { author, key, id })
        }
        _ => Some(TimelineChange::MessagesLost),
    }
}

/// A message's key; `None`: it is not told, or has no number.
fn message_key(route: &TableRoute, key: ImageCell) -> Option<u64> {
    match (route.key, key) {
        (None, _) => Some(0),
        (Some(_), ImageCell::Number(key)) => Some(key),
        (Some(_), ImageCell::Omitted | ImageCell::Null | ImageCell::Unrepresentable) => None,
    }
}

fn merge_images(old: ImageCell, new: ImageCell) -> ImageCell {
    if new == ImageCell::Omitted { old } else { new }
}
