//! Body of the fuzz target `events`: takes any bytes and fails by an assertion.

use mysql_common::binlog::consts::BinlogChecksumAlg::BINLOG_CHECKSUM_ALG_OFF;
use mysql_common::binlog::consts::BinlogVersion::Version4;
use mysql_common::binlog::events::{BinlogEventFooter, Event, FormatDescriptionEvent};

use super::events::{Events, Heard};
use super::place::Place;
use super::routes::Routes;
use crate::index::Position;
use crate::timeline::Definition;

/// Row changes of a transaction, at most.
const MOST: usize = 1_000;
const TYPE: usize = 4;
const SIZE: std::ops::Range<usize> = 9..13;
const HEADER: usize = 19;

/// Events, each behind its type and the length of its body (2 bytes), are read or refused: positions never go back, and no
/// transaction grows beyond its limit.
pub fn events(data: &[u8]) {
    let place = Place::new(0, 0, &Definition::classic(), "tl", 0);
    let columns = [
        ("message", "id"),
        ("message", "user_id"),
        ("message", "body"),
        ("follower", "user_id"),
        ("follower", "follower_id"),
    ];
    let columns = columns.map(|(table, column)| (table.to_owned(), column.to_owned()));
    let routes = Routes {
        routes: place.routes(&columns).into_iter().flatten().collect(),
        caseless: false,
    };
    assert_eq!(routes.routes.len(), 2);
    let mut at = Position { file: 1, offset: 4 };
    let mut events = Events::starting_at(at, "binlog", MOST);
    let mut rest = data;
    while let Some(([kind, low, high], behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(behind.len());
        let (body, behind) = behind.split_at(length);
        rest = behind;
        match event(*kind, body).map(|event| events.take(&event, &routes)) {
            Some(Ok(Heard::Passed(to))) => {
                assert!(to >= at);
                at = to;
            }
            Some(Ok(Heard::Transaction(to, changes))) => {
                assert!(to >= at && !changes.is_empty() && changes.len() <= MOST);
                at = to;
            }
            Some(Ok(Heard::Nothing)) => {}
            Some(Err(_)) | None => return,
        }
    }
}

/// As the stream's client makes it of a packet, without a checksum.
fn event(kind: u8, body: &[u8]) -> Option<Event> {
    let mut bytes = vec![0; HEADER];
    *bytes.get_mut(TYPE)? = kind;
    bytes.extend(body);
    let size = u32::try_from(bytes.len()).ok()?;
    bytes.get_mut(SIZE)?.copy_from_slice(&size.to_le_bytes());
    let footer = BinlogEventFooter::new(BINLOG_CHECKSUM_ALG_OFF);
    let format = FormatDescriptionEvent::new(Version4).with_footer(footer);
    Event::read(&format, &*bytes).ok()
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
