//! Where replies end, packet by packet; the bytes are those of MySQL 9.7 and MariaDB 10.11.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::packet::{MAX_BODY, PacketHeader, encode};
use crate::status;

const NONE: Capabilities = Capabilities::NONE;
const DEPRECATE_EOF: Capabilities = Capabilities::DEPRECATE_EOF;

const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const OK_MORE: &[u8] = b"\0\0\0\x0a\0\0\0";
const EOF: &[u8] = b"\xfe\0\0\x02\0";
const END: &[u8] = b"\xfe\0\0\x02\0\0\0";
const END_MORE: &[u8] = b"\xfe\0\0\x0a\0\0\0";
const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x3f\0\x01\0\0\0\x08\x81\0\0\0\0";
const ERR: &[u8] = b"\xff\xda\x04#21000Subquery returns more than 1 row";

fn stream(packets: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packets
        .iter()
        .fold(1, |seq, packet| encode(seq, packet, &mut bytes));
    bytes
}

/// Feeds the packets whole and byte by byte; returns the events, the last of which must be after the last packet.
fn follow(
    command: Command,
    capabilities: Capabilities,
    packets: &[&[u8]],
) -> (Vec<ReplyEvent>, ReplyFollower) {
    let bytes = stream(packets);
    let mut with_trailing = bytes.clone();
    with_trailing.extend_from_slice(b"\x07\0\0\x01");
    let mut whole = ReplyFollower::new(command, capabilities);
    let mut events = Vec::new();
    let mut consumed = 0;
    loop {
        let step = whole.feed(&with_trailing[consumed..]);
        consumed += step.consumed;
        match step.event {
            Some(event) => events.push(event),
            None => break,
        }
    }
    assert_eq!(consumed, bytes.len(), "{events:?}");

    let mut pieces = ReplyFollower::new(command, capabilities);
    let mut again = Vec::new();
    for (at, byte) in bytes.chunks(1).enumerate() {
        let step = pieces.feed(byte);
        assert_eq!(step.consumed, 1, "at byte {at}");
        again.extend(step.event);
    }
    assert_eq!(again, events);
    assert_eq!(
        (pieces.rows(), pieces.results()),
        (whole.rows(), whole.results())
    );
    (events, whole)
}

/// The outcome of a reply without other events, its rows and result sets.
fn outcome(
    command: Command,
    capabilities: Capabilities,
    packets: &[&[u8]],
) -> (ReplyOutcome, u64, u32) {
    let (mut events, reply) = follow(command, capabilities, packets);
    let Some(ReplyEvent::Done(outcome)) = events.pop() else {
        unreachable!("{events:?}")
    };
    assert_eq!(events, []);
    (outcome, reply.rows(), reply.results())
}

fn ok(status: u16) -> ReplyOutcome {
    ReplyOutcome::Ok(OkPacket {
        status,
        ..OkPacket::default()
    })
}

#[test]
fn a_result_set_ends_after_its_eof_with_and_without_deprecate_eof() {
    let old = [b"\x01", COLUMN, EOF, b"\x011", b"\xfb", EOF];
    assert_eq!(outcome(Command::Query, NONE, &old), (ok(2), 2, 1));
    let new = [b"\x01", COLUMN, b"\x011", b"\xfb", END];
    assert_eq!(outcome(Command::Query, DEPRECATE_EOF, &new), (ok(2), 2, 1));
}

#[test]
fn several_results_end_after_the_last() {
    let packets = [
        b"\x01", COLUMN, b"\x011", END_MORE, OK_MORE, b"\x01", COLUMN, END_MORE, OK,
    ];
    assert_eq!(
        outcome(Command::Query, DEPRECATE_EOF, &packets),
        (ok(2), 1, 2)
    );
}

#[test]
fn a_database_named_early_in_a_chain_is_known_at_its_end() {
    let track = DEPRECATE_EOF.union(Capabilities::SESSION_TRACK);
    let changed = b"\0\0\0\x0a\x40\0\0\0\x05\x01\x03\x02tl";
    let chain = [changed, OK_MORE, b"\x01", COLUMN, b"\x011", END];
    let (outcome, ..) = outcome(Command::Query, track, &chain);
    assert!(matches!(outcome, ReplyOutcome::Ok(packet) if packet.schema.as_deref() == Some(b"tl")));
    let (_, reply) = follow(Command::Query, track, &[changed, ERR]);
    assert_eq!(reply.schema(), Some(&b"tl"[..]));
}

#[test]
fn an_error_ends_the_chain_wherever_it_comes() {
    for packets in [
        &[ERR][..],
        &[OK_MORE, ERR],
        &[b"\x01", COLUMN, b"\x011", ERR],
        &[b"\x02", COLUMN, ERR],
    ] {
        let (outcome, ..) = outcome(Command::Query, DEPRECATE_EOF, packets);
        assert!(matches!(outcome, ReplyOutcome::Err(packet) if packet.code == 1242));
    }
}

#[test]
fn binary_rows_that_look_like_ok_packets_are_rows() {
    let packets = [b"\x01", COLUMN, b"\0\0\x05\0\0\0\0", END];
    assert_eq!(
        outcome(Command::StmtExecute, DEPRECATE_EOF, &packets),
        (ok(2), 1, 1)
    );
}

#[test]
fn an_open_cursor_ends_the_reply_in_place_of_rows() {
    let cursor = status::AUTOCOMMIT | status::CURSOR_EXISTS;
    let old = [b"\x01", COLUMN, b"\xfe\0\0\x42\0"];
    assert_eq!(
        outcome(Command::StmtExecute, NONE, &old),
        (ok(cursor), 0, 1)
    );
    let new = [b"\x01", COLUMN, b"\xfe\0\0\x42\0\0\0"];
    assert_eq!(
        outcome(Command::StmtExecute, DEPRECATE_EOF, &new),
        (ok(cursor), 0, 1)
    );
}

#[test]
fn a_cursor_inside_a_procedure_does_not_hide_the_rows_of_its_select() {
    // CALL of a procedure that selects while a cursor of its own is open; both servers leak CURSOR_EXISTS.
    let eof = b"\xfe\0\0\x6a\0";
    let packets = [
        b"\x01",
        COLUMN,
        eof,
        b"\0\0\x05\0\0\0\0\0\0\0",
        eof,
        b"\0\0\0\x62\0\0\0",
    ];
    for command in [Command::Query, Command::StmtExecute] {
        assert_eq!(outcome(command, NONE, &packets), (ok(0x62), 1, 1));
    }
}

#[test]
fn a_text_query_never_opens_a_cursor() {
    let packets = [b"\x01", COLUMN, b"\xfe\0\0\x42\0", b"\x011", EOF];
    assert_eq!(outcome(Command::Query, NONE, &packets), (ok(2), 1, 1));
}

#[test]
fn a_call_that_leaks_cursor_flags_into_its_ok_ends_there() {
    let (outcome, ..) = outcome(Command::Query, NONE, &[b"\0\0\0\xe2\0\x01\0"]);
    assert!(
        matches!(outcome, ReplyOutcome::Ok(packet) if packet.status == 0xE2 && packet.warnings == 1)
    );
}

#[test]
fn definitions_are_omitted_where_the_metadata_byte_is_0() {
    for optional in [
        Capabilities::OPTIONAL_RESULTSET_METADATA,
        Capabilities::MARIADB_CACHE_METADATA,
    ] {
        let without = [b"\x02\0", EOF, b"\x011\x01a", EOF];
        assert_eq!(outcome(Command::Query, optional, &without), (ok(2), 1, 1));
        let without = [&b"\x02\0"[..], b"\x011\x01a", END];
        assert_eq!(
            outcome(Command::Query, optional.union(DEPRECATE_EOF), &without),
            (ok(2), 1, 1)
        );
        let with = [b"\x01\x01", COLUMN, b"\x011", END];
        assert_eq!(
            outcome(Command::Query, optional.union(DEPRECATE_EOF), &with),
            (ok(2), 1, 1)
        );
    }
}

#[test]
fn columns_of_prepared_statements_are_captured_for_clients_that_cache_them() {
    let sent_columns = |command, capabilities: Capabilities, packets: &[&[u8]]| {
        let bytes = stream(packets);
        let mut whole = ReplyFollower::new(command, capabilities);
        assert!(matches!(
            whole.feed(&bytes).event,
            Some(ReplyEvent::Done(_))
        ));
        let mut cut = ReplyFollower::new(command, capabilities);
        for byte in &bytes {
            cut.feed(&[*byte]);
        }
        let captured = whole.take_columns();
        assert_eq!(cut.take_columns(), captured);
        captured
    };
    let keeps = Capabilities::MARIADB_CACHE_METADATA;
    let (one, two) = (&b"one"[..], &b"two"[..]);
    let each = |definitions: &[&[u8]]| {
        SentColumnDefinitions::Each(definitions.iter().map(|it| it.to_vec()).collect())
    };
    let head = b"\0\x07\0\0\0\x02\0\x01\0\0\0\0";
    let old = [head, COLUMN, EOF, one, two, EOF];
    let new = [head, COLUMN, one, two];
    let prepare = Command::StmtPrepare;
    assert_eq!(sent_columns(prepare, keeps, &old), each(&[one, two]));
    let ends = keeps.union(DEPRECATE_EOF);
    assert_eq!(sent_columns(prepare, ends, &new), each(&[one, two]));
    assert_eq!(
        sent_columns(prepare, DEPRECATE_EOF, &new),
        SentColumnDefinitions::Nothing
    );
    let execute = Command::StmtExecute;
    let with = [b"\x01\x01", one, b"\0\x001", END];
    assert_eq!(sent_columns(execute, ends, &with), each(&[one]));
    assert_eq!(
        sent_columns(Command::Query, ends, &with),
        SentColumnDefinitions::Nothing
    );
    let without = [&b"\x01\0"[..], b"\0\x001", END];
    assert_eq!(
        sent_columns(execute, ends, &without),
        SentColumnDefinitions::Nothing
    );
    let long = vec![b'a'; 70_000];
    let with = [b"\x01\x01", &long[..], b"\0\x001", END];
    assert_eq!(
        sent_columns(execute, ends, &with),
        SentColumnDefinitions::TooLong
    );
}

#[test]
fn local_infile_waits_for_the_client_and_continues() {
    let (events, _) = follow(
        Command::Query,
        DEPRECATE_EOF,
        &[b"\xfb/tmp/x", OK_MORE, b"\xfby", OK],
    );
    assert_eq!(
        events,
        [
            ReplyEvent::ClientData,
            ReplyEvent::ClientData,
            ReplyEvent::Done(ok(2))
        ]
    );
}

#[test]
fn progress_reports_belong_to_the_reply_where_they_were_agreed_on() {
    let report = &b"\xff\xff\xff\x01\x01\x02\0\0\0\x0ecopy to tmp tab"[..];
    let progress = Capabilities::MARIADB_PROGRESS.union(DEPRECATE_EOF);
    assert_eq!(
        outcome(Command::Query, progress, &[report, report, OK]),
        (ok(2), 0, 0)
    );
    let admin = [b"\x01", COLUMN, report, b"\x011", report, END];
    assert_eq!(outcome(Command::Query, progress, &admin), (ok(2), 1, 1));
    let (outcome, ..) = outcome(Command::Query, DEPRECATE_EOF, &[report]);
    assert!(matches!(outcome, ReplyOutcome::Err(packet) if packet.code == 0xFFFF));
}

#[test]
fn prepare_ends_after_its_definitions_and_eofs() {
    let prepared = |columns, parameters| {
        ReplyOutcome::Prepared(PrepareOkPacket {
            statement_id: 7,
            columns,
            parameters,
            warnings: 3,
        })
    };
    let head = b"\0\x07\0\0\0\x02\0\x01\0\0\x03\0";
    let old = [head, COLUMN, EOF, COLUMN, COLUMN, EOF];
    assert_eq!(outcome(Command::StmtPrepare, NONE, &old).0, prepared(2, 1));
    assert_eq!(
        outcome(
            Command::StmtPrepare,
            DEPRECATE_EOF,
            &[head, COLUMN, COLUMN, COLUMN]
        )
        .0,
        prepared(2, 1)
    );
    let nothing = b"\0\x07\0\0\0\0\0\0\0\0\x03\0";
    assert_eq!(
        outcome(Command::StmtPrepare, NONE, &[nothing]).0,
        prepared(0, 0)
    );
    let bare = b"\0\x07\0\0\0\x02\0\x01\0\0\x03\0\0";
    let optional = Capabilities::OPTIONAL_RESULTSET_METADATA;
    assert_eq!(
        outcome(Command::StmtPrepare, optional, &[bare, EOF, EOF]).0,
        prepared(2, 1)
    );
    assert_eq!(
        outcome(Command::StmtPrepare, optional.union(DEPRECATE_EOF), &[bare]).0,
        prepared(2, 1)
    );
}

#[test]
fn a_fetch_has_rows_without_definitions() {
    let (outcome, rows, results) = outcome(
        Command::StmtFetch,
        NONE,
        &[b"\0\0\x01", b"\0\0\x02", b"\xfe\0\0\x82\0"],
    );
    assert_eq!((outcome, rows, results), (ok(0x82), 2, 0));
}

#[test]
fn fields_have_definitions_without_a_count() {
    assert_eq!(
        outcome(Command::FieldList, NONE, &[COLUMN, COLUMN, EOF]).0,
        ok(2)
    );
    assert_eq!(outcome(Command::FieldList, DEPRECATE_EOF, &[END]).0, ok(2));
}

#[test]
fn one_packet_is_one_packet_whatever_it_holds() {
    for packet in [OK, EOF, END] {
        assert_eq!(
            outcome(Command::SetOption, DEPRECATE_EOF, &[packet]).0,
            ok(2)
        );
    }
    // MORE_RESULTS means nothing here.
    assert_eq!(outcome(Command::Ping, NONE, &[OK_MORE]).0, ok(0x0A));
    for packet in [&b""[..], b"\0", b"\xff", b"hello"] {
        assert_eq!(
            outcome(Command::Other(0x99), NONE, &[packet]).0,
            ReplyOutcome::Text
        );
    }
    assert!(matches!(
        outcome(Command::Other(0x99), NONE, &[ERR]).0,
        ReplyOutcome::Err(_)
    ));
    for packet in [OK, ERR, b"Uptime: 5  Threads: 1", b""] {
        assert_eq!(
            outcome(Command::Statistics, NONE, &[packet]).0,
            ReplyOutcome::Text
        );
    }
}

#[test]
fn change_user_is_a_dialogue() {
    let (events, _) = follow(
        Command::ChangeUser,
        NONE,
        &[b"\xfeplugin\0salt\0", b"\x01\x03", OK],
    );
    assert_eq!(events, [ReplyEvent::ClientAuth, ReplyEvent::Done(ok(2))]);
}

#[test]
fn commands_without_reply_are_done_at_once() {
    for command in [Command::Quit, Command::StmtClose, Command::StmtSendLongData] {
        assert!(!ReplyFollower::expects_reply(command));
        let step = ReplyFollower::new(command, NONE).feed(b"\x07\0\0\x01");
        assert_eq!(
            step,
            FollowerStep {
                consumed: 0,
                event: Some(ReplyEvent::Done(ReplyOutcome::Silent))
            }
        );
    }
}

#[test]
fn what_cannot_be_followed_is_pumped_for_good() {
    for (command, packet) in [
        (Command::BinlogDump, &b"\0event"[..]),
        (Command::Query, b""),
        (Command::Query, b"\0\0\0\x02"),
        (Command::Query, b"\xfc\x01"),
        (Command::StmtPrepare, b"\0\x01\0"),
        (Command::StmtPrepare, b"what"),
        (Command::StmtFetch, b"\xfe"),
    ] {
        let mut reply = ReplyFollower::new(command, NONE);
        let bytes = stream(&[packet]);
        let step = reply.feed(&bytes);
        assert_eq!(step.event, Some(ReplyEvent::Unfollowable), "{command:?}");
        assert_eq!(
            reply.feed(b"anything"),
            FollowerStep {
                consumed: 8,
                event: None
            }
        );
    }
}

#[test]
fn a_row_of_16_mib_that_starts_like_an_eof_is_a_row() {
    let mut row = vec![0xFE];
    row.extend(u64::to_le_bytes(0xFF_FFFF + 6));
    row.resize(MAX_BODY + 15, b'a');
    let exact = vec![0xFE; MAX_BODY];
    let plain = vec![b'a'; MAX_BODY + 15];
    let bytes = stream(&[b"\x01", COLUMN, &row, &exact, &plain, b"\x011", END]);
    let mut reply = ReplyFollower::new(Command::Query, DEPRECATE_EOF);
    let step = reply.feed(&bytes);
    let done = Some(ReplyEvent::Done(ok(2)));
    assert_eq!((step.consumed, step.event), (bytes.len(), done));
    assert_eq!(reply.rows(), 4);
    // Nothing of the rows is kept.
    assert!(std::mem::size_of::<ReplyFollower>() < 256);
}

#[test]
fn of_a_long_packet_in_pieces_a_bounded_part_is_kept() {
    let info = vec![b'i'; 2 * MAX_HELD_BYTES];
    let long = OkPacket {
        info,
        schema: Some(b"tl".to_vec()),
        status: 0x4002,
        ..OkPacket::default()
    };
    let mut payload = Vec::new();
    long.write(Capabilities::SESSION_TRACK, &mut payload);
    let bytes = stream(&[&payload]);
    let follow = |cut| {
        let mut reply = ReplyFollower::new(Command::Query, Capabilities::SESSION_TRACK);
        let (front, back) = bytes.split_at(cut);
        reply.feed(front);
        match reply.feed(back).event {
            Some(ReplyEvent::Done(ReplyOutcome::Ok(packet))) => packet,
            event => unreachable!("{event:?}"),
        }
    };
    assert_eq!(follow(0), long);
    let kept = OkPacket {
        status: 0x4002,
        truncated: true,
        ..OkPacket::default()
    };
    assert_eq!(follow(100), kept);
}

#[test]
fn the_header_of_a_packet_may_come_in_pieces_too() {
    let mut reply = ReplyFollower::new(Command::Ping, NONE);
    let header = PacketHeader { len: 7, seq: 1 }.to_bytes();
    for byte in header.chunks(1) {
        assert_eq!(
            reply.feed(byte),
            FollowerStep {
                consumed: 1,
                event: None
            }
        );
    }
    assert_eq!(
        reply.feed(b""),
        FollowerStep {
            consumed: 0,
            event: None
        }
    );
    assert_eq!(reply.feed(OK).event, Some(ReplyEvent::Done(ok(2))));
}
