//! Hand-made events, where no server can be made to write them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::io::Write;

use proptest::prelude::*;

use super::*;

const STATEMENT: u8 = 2;
const MOST: usize = 1 << 20;

/// An event as it stands in a log; with its checksum, if it has one.
fn event(kind: u8, body: &[u8], checksum: bool) -> Vec<u8> {
    let length = HEADER_BYTES + body.len() + if checksum { CHECKSUM_BYTES } else { 0 };
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[4] = kind;
    bytes[9..13].copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
    bytes.extend(body);
    if checksum {
        let mut crc = Crc::new();
        crc.update(&bytes);
        bytes.extend(crc.sum().to_le_bytes());
    }
    bytes
}

/// A compressed transaction of these events.
fn payload(events: &[u8], level: i32, checksum: bool) -> Vec<u8> {
    let packed = zstd::encode_all(events, level).unwrap();
    let body = [&[2, 1, 0, 0][..], &packed].concat();
    event(TRANSACTION_PAYLOAD, &body, checksum)
}

fn all(_: u8, _: &[u8]) -> BodyRetention {
    BodyRetention::All
}

/// Parses these bytes in pieces of this size into events. No step handles more than a slice.
fn read(
    reader: &mut EventReader,
    mut bytes: &[u8],
    piece: usize,
    wants: impl RetentionPolicy,
) -> Result<Vec<LogEvent>, EventError> {
    let mut events = Vec::new();
    let mut idle = 0;
    while !bytes.is_empty() || reader.is_busy() {
        let step = reader.step(&bytes[..piece.min(bytes.len())], &wants)?;
        assert!(step.handled <= SLICE, "{}", step.handled);
        idle = if step.handled == 0 && step.event.is_none() {
            idle + 1
        } else {
            0
        };
        assert!(idle < 3, "nothing is done any more");
        bytes = &bytes[step.taken..];
        events.extend(step.event);
    }
    Ok(events)
}

#[test]
fn what_is_not_wanted_of_a_long_event_is_not_held() {
    let text = vec![b'x'; 20 << 20];
    let bytes = [event(STATEMENT, &text, true), event(16, &[7; 8], true)].concat();
    // Longer than the limit of an event that is retained whole.
    let mut reader = EventReader::with_checksums(MOST, true);
    let events = read(&mut reader, &bytes, usize::MAX, |_, first: &[u8]| {
        assert!(first.len() <= FIRST_BYTES);
        BodyRetention::First(1_000)
    });
    let events = events.unwrap();
    assert_eq!(events.len(), 2);
    assert!(events[0].truncated && events[0].body == text[..1_000]);
    assert!(events[0].body.capacity() <= 4_000);
    assert!(!events[1].truncated && events[1].body == [7; 8]);
    assert!(reader.is_at_boundary());
}

#[test]
fn what_is_not_held_is_in_the_checksum_all_the_same() {
    let mut bytes = event(STATEMENT, &vec![b'x'; 1 << 20], true);
    bytes[500_000] ^= 1;
    let read = read(
        &mut EventReader::with_checksums(MOST, true),
        &bytes,
        5_000,
        |_, _: &[u8]| BodyRetention::First(9),
    );
    assert!(matches!(read, Err(EventError::Checksum)));
}

#[test]
fn an_event_that_is_wanted_whole_and_too_long_is_not_waited_for() {
    let bytes = event(STATEMENT, &vec![0; 2_000], false);
    let refused = read(
        &mut EventReader::new(1_000),
        &bytes[..HEADER_BYTES + FIRST_BYTES],
        100,
        all,
    );
    assert!(matches!(refused, Err(EventError::TooLong(1_000))));
    assert_eq!(
        read(&mut EventReader::new(2_000), &bytes, 100, all)
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a_long_transaction_is_unpacked_a_slice_at_a_time() {
    // 64 MiB that are compressed to some kilobytes.
    let long = event(STATEMENT, &vec![b'x'; 32 << 20], false);
    let short = event(16, &[7; 8], false);
    let bytes = payload(&[&long[..], &short, &long, &short].concat(), 3, true);
    assert!(bytes.len() < 100_000);
    let mut reader = EventReader::with_checksums(MOST, true);
    let events = read(&mut reader, &bytes, 16_384, |_, _: &[u8]| {
        BodyRetention::First(10)
    })
    .unwrap();
    let kinds: Vec<u8> = events.iter().map(|event| event.event_type).collect();
    assert_eq!(kinds, [TRANSACTION_PAYLOAD, STATEMENT, 16, STATEMENT, 16]);
    assert!(reader.is_at_boundary());
    // The limit also holds inside a compressed transaction.
    let refused = read(
        &mut EventReader::with_checksums(MOST, true),
        &bytes,
        16_384,
        all,
    );
    assert!(matches!(refused, Err(EventError::TooLong(MOST))));
}

/// How much of row events is retained depends on their table.
#[test]
fn a_table_map_is_returned_before_the_retention_of_its_rows_is_decided() {
    let kinds = [2, TABLE_MAP, 30, TABLE_MAP, 31, 31, 16];
    let within: Vec<u8> = kinds
        .iter()
        .flat_map(|kind| event(*kind, &[0; 8], false))
        .collect();
    let bytes = payload(&within, 3, true);
    let told = std::sync::Mutex::new(Vec::new());
    let wants = |kind, _: &[u8]| {
        let tables = told
            .lock()
            .unwrap()
            .iter()
            .filter(|kind| **kind == TABLE_MAP)
            .count();
        match kind {
            30 => assert_eq!(tables, 1),
            31 => assert_eq!(tables, 2),
            _ => {}
        }
        BodyRetention::All
    };
    let mut reader = EventReader::with_checksums(MOST, true);
    let mut rest = &bytes[..];
    while !rest.is_empty() || reader.is_busy() {
        let step = reader.step(rest, &wants).unwrap();
        rest = &rest[step.taken..];
        told.lock()
            .unwrap()
            .extend(step.event.map(|event| event.event_type));
    }
    assert_eq!(
        told.into_inner().unwrap(),
        [&[TRANSACTION_PAYLOAD][..], &kinds].concat()
    );
}

/// The last event of a transaction commits it.
#[test]
fn the_last_event_of_a_compressed_transaction_is_returned_once_its_checksum_matches() {
    let within = [event(2, b"BEGIN", false), event(16, &[7; 8], false)].concat();
    let mut bytes = payload(&within, 3, true);
    *bytes.last_mut().unwrap() ^= 1;
    let mut reader = EventReader::with_checksums(MOST, true);
    let mut kinds = Vec::new();
    let mut rest = &bytes[..];
    let failed = loop {
        match reader.step(rest, &all) {
            Ok(step) => {
                rest = &rest[step.taken..];
                kinds.extend(step.event.map(|event| event.event_type));
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(failed, EventError::Checksum));
    assert_eq!(kinds, [TRANSACTION_PAYLOAD, 2]);
}

#[test]
fn a_transaction_that_looks_back_too_far_is_refused() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(25).unwrap();
    encoder
        .write_all(&event(STATEMENT, &[7; 1_000], false))
        .unwrap();
    let body = [&[2, 1, 0, 0][..], &encoder.finish().unwrap()].concat();
    let bytes = event(TRANSACTION_PAYLOAD, &body, false);
    let wants = |_, _: &[u8]| BodyRetention::First(0);
    let read = |most| {
        read(
            &mut EventReader::with_checksums(most, false),
            &bytes,
            SLICE,
            wants,
        )
    };
    assert!(read(32 << 20).is_ok());
    assert!(matches!(read(31 << 20), Err(EventError::Decompression(_))));
}

#[test]
fn a_transaction_within_another_one_and_one_that_is_cut_off_are_refused() {
    let short = event(16, &[7; 8], false);
    let nested = payload(&payload(&short, 3, false), 3, false);
    assert!(
        read(
            &mut EventReader::with_checksums(MOST, false),
            &nested,
            100,
            all
        )
        .is_err()
    );
    let cut_off = payload(&short[..20], 3, false);
    assert!(
        read(
            &mut EventReader::with_checksums(MOST, false),
            &cut_off,
            100,
            all
        )
        .is_err()
    );
    // Numbers are encoded as lengths are (255 in three bytes): none, an unknown one, an invalid one.
    for (algorithm, fits) in [
        (&[3, 0xfc, 255, 0][..], true),
        (&[1, 7], false),
        (&[1, 255], false),
    ] {
        let body = [&[2][..], algorithm, &[0], &short].concat();
        let read = read(
            &mut EventReader::with_checksums(MOST, false),
            &event(40, &body, false),
            100,
            all,
        );
        assert_eq!(read.is_ok(), fits, "{read:?}");
    }
}

proptest! {
    #[test]
    fn however_the_bytes_come_the_events_are_the_same(
        bodies in proptest::collection::vec((0u8..15, proptest::collection::vec(any::<u8>(), 0..900)), 0..6),
        packed: bool,
        checksum: bool,
        piece in 1usize..700,
        keep in 0usize..900,
    ) {
        let bytes = |checksum| {
            let events = bodies.iter().map(|(kind, body)| event(*kind, body, checksum));
            events.collect::<Vec<_>>().concat()
        };
        let bytes = if packed { payload(&bytes(false), 3, checksum) } else { bytes(checksum) };
        let wants = |_, _: &[u8]| BodyRetention::First(keep);
        let mut reader = EventReader::with_checksums(MOST, checksum);
        let events = read(&mut reader, &bytes, piece, wants).unwrap();
        prop_assert!(reader.is_at_boundary());
        let events = events.iter().filter(|event| event.event_type != TRANSACTION_PAYLOAD);
        let expected = bodies.iter().map(|(kind, body)| LogEvent {
            event_type: *kind,
            body: body[..keep.min(body.len())].to_vec(),
            truncated: keep < body.len(),
            ..LogEvent::default()
        });
        prop_assert!(events.cloned().eq(expected));
    }

    #[test]
    fn any_bytes_are_events_or_refused(bytes: Vec<u8>, kind in 0u8..42, checksum: bool, piece in 1usize..100) {
        let _ = read(&mut EventReader::new(1_000), &bytes, piece, all);
        let fitting = event(kind, &bytes, checksum);
        let _ = read(&mut EventReader::with_checksums(1_000, checksum), &fitting, piece, all);
        let _ = read(&mut EventReader::for_payload(1_000), &fitting, piece, all);
        let fields = event(TRANSACTION_PAYLOAD, &[&[2, 3, 0xfc, 255, 0, 0][..], &fitting].concat(), false);
        let _ = read(&mut EventReader::with_checksums(1_000, false), &fields, piece, all);
    }
}
