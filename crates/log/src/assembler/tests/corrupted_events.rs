//! No bytes make the feed panic or loop forever, with checksums or without.

use super::captured_log::{CapturedLog, routes, sized, unchecked};
use crate::assembler::TransactionAssembler;
use crate::event_reader::HEADER_BYTES;
use crate::fuzzing;

/// The offset of the type in an event's header.
const KIND: usize = 4;
const KINDS: [u8; 14] = [2, 4, 16, 19, 23, 24, 25, 30, 31, 32, 38, 39, 40, 162];

/// Corrupts each event of each log in every way of `spoil`, and processes the events after it, as far as that works.
fn spoil(spoil: impl Fn(&[u8], &mut dyn FnMut(&[u8]))) {
    let mut count = 0;
    for log in CapturedLog::all() {
        let mut events = log.assembler();
        for scenario in &log.scenarios {
            for (number, bytes) in scenario.events.iter().enumerate() {
                spoil(log.without_checksum(bytes), &mut |spoilt| {
                    count += 1;
                    let mut events = events.clone();
                    let mut outcome = events.process(&unchecked(spoilt), &routes());
                    for bytes in &scenario.events[number + 1..] {
                        if outcome.is_err() {
                            break;
                        }
                        outcome =
                            events.process(&unchecked(log.without_checksum(bytes)), &routes());
                    }
                });
                for event in log.read_events(bytes).unwrap() {
                    if events.process(&event, &routes()).is_err() {
                        events = TransactionAssembler::starting_at(scenario.end, "binlog", 1_000);
                    }
                }
            }
        }
    }
    assert!(count > 1_000);
}

#[test]
fn an_event_that_ends_too_early_is_read_or_refused() {
    spoil(|bytes, take| {
        for len in HEADER_BYTES..bytes.len() {
            take(&bytes[..len]);
        }
    });
}

#[test]
fn an_event_with_a_changed_byte_is_read_or_refused() {
    spoil(|bytes, take| {
        for at in KIND..bytes.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = bytes.to_vec();
                bytes[at] ^= change;
                take(&bytes);
            }
        }
    });
}

#[test]
fn an_event_with_bytes_too_many_is_read_or_refused() {
    spoil(|bytes, take| {
        for at in HEADER_BYTES..=bytes.len() {
            for byte in [0x00, 0x01, 0xff] {
                let mut bytes = bytes.to_vec();
                bytes.insert(at, byte);
                take(&bytes);
            }
        }
    });
}

#[test]
fn an_event_with_another_type_is_read_or_refused() {
    spoil(|bytes, take| {
        for kind in KINDS.into_iter().chain(160..=172) {
            let mut bytes = bytes.to_vec();
            bytes[KIND] = kind;
            take(&bytes);
        }
    });
}

#[test]
fn the_fuzz_target_does_not_fail_on_captured_bytes() {
    for log in CapturedLog::all() {
        let events = log.scenarios.iter().flat_map(|story| &story.events);
        let data: Vec<u8> = events
            .flat_map(|bytes| {
                let body = &log.without_checksum(bytes)[HEADER_BYTES..];
                let length = u16::try_from(body.len()).unwrap().to_le_bytes();
                [&[bytes[KIND]], &length[..], body].concat()
            })
            .collect();
        fuzzing::events(&data);
    }
}

/// After the body, if it has a checksum; only the checksum itself may detect it.
#[test]
fn a_changed_byte_does_not_pass_where_there_are_checksums() {
    for log in CapturedLog::all()
        .into_iter()
        .filter(CapturedLog::is_checked)
    {
        for scenario in &log.scenarios {
            for bytes in &scenario.events {
                let whole = log.read_events(bytes).unwrap();
                for at in 0..bytes.len() {
                    let mut spoilt = bytes.clone();
                    spoilt[at] ^= 0x40;
                    // For one that is longer than its bytes, the reader still waits.
                    let read = log.read_events(&sized(&spoilt));
                    let passes = read.is_ok_and(|read| !read.is_empty() && read != whole);
                    assert!(
                        !passes || spoilt[4] == 15,
                        "{}: {}",
                        log.name,
                        scenario.name
                    );
                }
            }
        }
    }
}
