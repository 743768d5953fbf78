//! Derives changes of timelines from row images.

use super::row_event::{ImageCell, RowImage};
use crate::edits::RowEdits;
use crate::evidence::TableRole;
use crate::routes::TableRoute;
use headwater_timeline::index::{RowKey, TableId, TimelineChange, TimelineId};

/// The change if a whole table is lost; `None` for a joined table, which is in no index.
pub(crate) fn table_lost(route: &TableRoute) -> Option<TimelineChange> {
    match route.table {
        TableRole::Message => Some(TimelineChange::MessagesLost),
        TableRole::Follower => Some(TimelineChange::FollowsLost),
        TableRole::Referred => None,
    }
}

pub(crate) fn is_cached(route: &TableRoute) -> bool {
    matches!(route.table, TableRole::Message | TableRole::Referred)
}

/// Any row of the table may have changed.
pub(crate) fn add_whole_table(route: &TableRoute, edits: &mut RowEdits) {
    edits.add_all(route.table_id);
    if let (TableRole::Message, Some(timeline_id)) = (route.table, route.table_id.timeline()) {
        edits.add_all(TableId::Authors(timeline_id));
    }
}

/// Records the change from the old row (updated or deleted) to the new one; and which messages' rows it edited, if `edits` is given.
pub(crate) fn record_row_change(
    route: &TableRoute,
    old: Option<RowImage>,
    new: Option<RowImage>,
    changes: &mut Vec<(TimelineId, TimelineChange)>,
    mut edits: Option<&mut RowEdits>,
) {
    // In an update, columns that the after-image omits have not changed.
    let new = match (old, new) {
        (Some([old_id, old_author, old_key]), Some([id, author, key])) => Some([
            merge_images(old_id, id),
            merge_images(old_author, author),
            merge_images(old_key, key),
        ]),
        (_, new) => new,
    };
    // A message without an author has no timeline change, but its row is edited.
    if let Some(edits) = edits.as_mut().filter(|_| is_cached(route)) {
        for [id, author, _] in old.iter().chain(&new) {
            match id {
                ImageCell::Number(id) => edits.add(RowKey {
                    table: route.table_id,
                    id: *id,
                }),
                ImageCell::Negative => {}
                // No message refers to it.
                ImageCell::Null if route.table == TableRole::Referred => {}
                _ => edits.add_all(route.table_id),
            }
            if let Some(timeline_id) = route.table_id.timeline() {
                match author {
                    ImageCell::Number(author) => edits.add(RowKey::author(timeline_id, *author)),
                    ImageCell::Null | ImageCell::Negative => {}
                    ImageCell::Omitted | ImageCell::Unrepresentable => {
                        edits.add_all(TableId::Authors(timeline_id));
                    }
                }
            }
        }
    }
    if old == new {
        return;
    }
    let Some(timeline_id) = route.table_id.timeline() else {
        return;
    };
    let mut add = |change| {
        changes.push((timeline_id, change));
        if let (Some(edits), TimelineChange::MessagesLost) = (&mut edits, change) {
            add_whole_table(route, edits);
        }
    };
    match route.table {
        TableRole::Referred => {}
        TableRole::Message => {
            old.and_then(|old| removed(route, old)).map(&mut add);
            new.and_then(|new| posted(route, new)).map(&mut add);
        }
        TableRole::Follower => {
            let unfollowed = |reader, author| TimelineChange::Unfollowed { reader, author };
            let followed = |reader, author| TimelineChange::Followed { reader, author };
            old.and_then(|old| follow_changed(route, old, unfollowed))
                .map(&mut add);
            new.and_then(|new| follow_changed(route, new, followed))
                .map(&mut add);
        }
    }
}

/// The change of the reader's list by a follow that came or went. One without a reader or an author is in no list.
fn follow_changed(
    route: &TableRoute,
    [reader, author, _]: RowImage,
    change: impl Fn(u64, u64) -> TimelineChange,
) -> Option<TimelineChange> {
    match (reader, author) {
        (ImageCell::Null | ImageCell::Negative, _) | (_, ImageCell::Null) => None,
        (ImageCell::Number(reader), ImageCell::Number(author)) if !route.has_copies => {
            Some(change(reader, author))
        }
        // A list that holds an author below 0 is not cached.
        (ImageCell::Number(reader), ImageCell::Number(_) | ImageCell::Negative) => {
            Some(TimelineChange::FollowsChanged { reader })
        }
        _ => Some(TimelineChange::FollowsLost),
    }
}

/// The removal of a message's old state. One without an author was on no page.
fn removed(route: &TableRoute, [id, author, key]: RowImage) -> Option<TimelineChange> {
    let id = match (id, author) {
        // Memory did not hold it.
        (ImageCell::Negative, _) | (_, ImageCell::Negative) => return None,
        (ImageCell::Number(id), _) => id,
        _ => return Some(TimelineChange::MessagesLost),
    };
    let without_author = TimelineChange::Removed {
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
        _ => Some(without_author),
    }
}

/// The post of a message's new state.
fn posted(route: &TableRoute, [id, author, key]: RowImage) -> Option<TimelineChange> {
    match (id, author, message_key(route, key)) {
        (_, ImageCell::Null | ImageCell::Negative, _) => None,
        // Its author's messages are no longer known to their end.
        (ImageCell::Negative, ImageCell::Number(author), _) => {
            Some(TimelineChange::MessagesOfAuthorLost { author })
        }
        (ImageCell::Number(id), ImageCell::Number(author), Some(key)) => {
            Some(TimelineChange::Posted { author, key, id })
        }
        _ => Some(TimelineChange::MessagesLost),
    }
}

/// A message's sort key; `None` if it is omitted or has no number.
fn message_key(route: &TableRoute, key: ImageCell) -> Option<u64> {
    match (route.key, key) {
        (None, _) => Some(0),
        (Some(_), ImageCell::Number(key)) => Some(key),
        (
            Some(_),
            ImageCell::Omitted | ImageCell::Null | ImageCell::Negative | ImageCell::Unrepresentable,
        ) => None,
    }
}

fn merge_images(old: ImageCell, new: ImageCell) -> ImageCell {
    if new == ImageCell::Omitted { old } else { new }
}
