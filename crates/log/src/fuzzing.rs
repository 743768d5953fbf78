//! Body of the fuzz target `events`: accepts any bytes and fails by an assertion.

use super::assembler::{EventOutcome, TransactionAssembler};
use super::routes::TableRoutes;
use super::timeline_tables::{KeyColumnDefinition, TimelineTables};
use crate::event_reader::{BodyRetention, LogEvent};
use headwater_timeline::index::{BinlogPosition, TimelineId};
use headwater_timeline::{KeyType, TimelineDefinition};

const MOST: usize = 1_000;

/// Reads events, each preceded by its type and body length (2 bytes). They are parsed or refused: positions never decrease, and no
/// transaction exceeds its limit.
pub fn events(data: &[u8]) {
    let mut tables = TimelineTables::of(TimelineId(0), &TimelineDefinition::classic(), "tl");
    // Half of the inputs order pages by a sort key.
    tables.schema.key = data.len().is_multiple_of(2).then(|| KeyColumnDefinition {
        column: "body".to_owned(),
        kind: KeyType::Datetime(6),
    });
    let columns = [
        ("message", "id"),
        ("message", "user_id"),
        ("message", "body"),
        ("follower", "user_id"),
        ("follower", "follower_id"),
    ];
    let columns = columns.map(|(table, column)| (table.to_owned(), column.to_owned()));
    let routes = TableRoutes {
        routes: tables.routes(&columns).into_iter().flatten().collect(),
        caseless: false,
    };
    assert_eq!(routes.routes.len(), 2);
    let mut at = BinlogPosition { file: 1, offset: 4 };
    let mut events = TransactionAssembler::starting_at(at, "binlog", MOST).with_edits(true);
    let mut rest = data;
    while let Some(([kind, low, high], after_header)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after_header.len());
        let (body, after_body) = after_header.split_at(length);
        rest = after_body;
        let mut event = event(*kind, body);
        if let BodyRetention::First(bytes) = events.retention(*kind, body, &routes) {
            event.truncated = bytes < body.len();
            event.body.truncate(bytes);
        }
        let outcome = loop {
            match events.process(&event, &routes) {
                Ok(EventOutcome::Unfinished) => {}
                finished => break finished,
            }
        };
        match outcome {
            Ok(EventOutcome::Passed(to)) => {
                assert!(to >= at);
                at = to;
            }
            Ok(EventOutcome::Transaction(to, changes, _)) => {
                assert!(to >= at && !changes.is_empty() && changes.len() <= MOST);
                at = to;
            }
            Ok(EventOutcome::Nothing | EventOutcome::Unfinished) => {}
            Err(_) => return,
        }
    }
}

/// Builds an event as the stream's client does from a packet.
fn event(kind: u8, body: &[u8]) -> LogEvent {
    LogEvent {
        event_type: kind,
        body: body.to_vec(),
        ..LogEvent::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data: Vec<u8>) {
            events(&data);
        }

        #[test]
        fn any_bodies_are_read_or_refused(
            all in proptest::collection::vec((0u8..180, proptest::collection::vec(0u8..40, 0..60)), 0..20),
        ) {
            let data = all.iter().flat_map(|(kind, body)| {
                let length = u16::try_from(body.len()).unwrap_or_default().to_le_bytes();
                [&[*kind], &length[..], body].concat()
            });
            events(&data.collect::<Vec<_>>());
        }
    }
}
