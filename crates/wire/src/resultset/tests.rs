#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::packet::encode;

const LIMITS: CollectLimits = CollectLimits {
    max_rows: 10,
    max_bytes: 1000,
};
const DEPRECATE_EOF: Capabilities = Capabilities::DEPRECATE_EOF;

fn stream(packets: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packets
        .iter()
        .fold(1, |seq, packet| encode(seq, packet, &mut bytes));
    bytes
}

fn collect(
    packets: &[&[u8]],
    capabilities: Capabilities,
    limits: CollectLimits,
) -> Result<QueryReply, CollectError> {
    let bytes = stream(packets);
    let mut whole = ReplyCollector::new(capabilities, limits);
    let mut with_trailing = bytes.clone();
    with_trailing.extend_from_slice(b"next");
    assert_eq!(
        whole.feed(&with_trailing)?,
        CollectorStep {
            consumed: bytes.len(),
            done: true
        }
    );
    let mut pieces = ReplyCollector::new(capabilities, limits);
    for (at, byte) in bytes.chunks(1).enumerate() {
        assert_eq!(
            pieces.feed(byte)?,
            CollectorStep {
                consumed: 1,
                done: at + 1 == bytes.len()
            }
        );
    }
    let (whole, pieces) = (whole.finish(), pieces.finish());
    assert_eq!(whole, pieces);
    whole
}

#[test]
fn rows_come_out_cell_by_cell() {
    let rows = [&b"\x0220\xfb"[..], b"\x0a4294967295\x01x", b"\xfb\x00"];
    let with_eof = [
        b"\x02",
        &b"\x03def1"[..],
        b"\x03def2",
        b"\xfe\0\0\x02\0",
        rows[0],
        rows[1],
        rows[2],
        b"\xfe\0\0\x22\0",
    ];
    let without = [
        b"\x02",
        &b"\x03def1"[..],
        b"\x03def2",
        rows[0],
        rows[1],
        rows[2],
        b"\xfe\0\0\x22\0\0\0",
    ];
    for (packets, capabilities) in [
        (&with_eof[..], Capabilities::NONE),
        (&without, DEPRECATE_EOF),
    ] {
        let Ok(QueryReply::Rows(rows)) = collect(packets, capabilities, LIMITS) else {
            unreachable!()
        };
        assert_eq!(rows.len(), 3);
        assert_eq!(rows.columns(), [b"\x03def1", b"\x03def2"]);
        assert_eq!(rows.end().status, 0x22);
        let numbers: Vec<_> = rows.iter().map(|row| row.u64(0)).collect();
        assert_eq!(numbers, [Some(20), Some(4_294_967_295), None]);
        let texts: Vec<_> = rows.iter().map(|row| row.cell(1)).collect();
        assert_eq!(texts, [None, Some(&b"x"[..]), Some(b"")]);
        assert!(rows.row(3).is_none());
        assert_eq!(rows.row(0).unwrap().cell(2), None);
    }
}

#[test]
fn rows_without_definitions_still_have_cells() {
    let capabilities = DEPRECATE_EOF.union(Capabilities::OPTIONAL_RESULTSET_METADATA);
    let answer = collect(
        &[b"\x02\x00", b"\x01a\xfb", b"\xfe\0\0\x02\0\0\0"],
        capabilities,
        LIMITS,
    );
    let Ok(QueryReply::Rows(rows)) = answer else {
        unreachable!()
    };
    assert_eq!(rows.columns().len(), 0);
    assert_eq!(rows.row(0).unwrap().cell(0), Some(&b"a"[..]));
}

#[test]
fn ok_and_err_are_answers() {
    let ok = collect(&[b"\0\x05\0\x02\0\0\0"], DEPRECATE_EOF, LIMITS);
    assert!(matches!(ok, Ok(QueryReply::Ok(packet)) if packet.affected_rows == 5));
    let err = [
        &b"\x01"[..],
        b"\x03def",
        b"\x011",
        b"\xff\xda\x04#21000more than 1 row",
    ];
    assert!(
        matches!(collect(&err, DEPRECATE_EOF, LIMITS), Ok(QueryReply::Err(packet)) if packet.code == 1242)
    );
}

#[test]
fn beyond_a_limit_the_reply_is_followed_to_its_end_and_refused() {
    let packets = [
        &b"\x01"[..],
        b"\x03def",
        b"\x011",
        b"\x012",
        b"\xfe\0\0\x02\0\0\0",
    ];
    let rows = CollectLimits {
        max_rows: 1,
        ..LIMITS
    };
    assert_eq!(
        collect(&packets, DEPRECATE_EOF, rows),
        Err(CollectError::TooManyRows { max: 1 })
    );
    for max_bytes in 0..20 {
        let bytes = CollectLimits {
            max_bytes,
            ..LIMITS
        };
        let expected = Err(CollectError::TooManyBytes { max: max_bytes });
        assert_eq!(
            collect(&packets, DEPRECATE_EOF, bytes),
            expected,
            "{max_bytes}"
        );
    }
    assert!(
        collect(
            &packets,
            DEPRECATE_EOF,
            CollectLimits {
                max_bytes: 20,
                ..LIMITS
            }
        )
        .is_ok()
    );
}

#[test]
fn columns_are_no_more_than_servers_have() {
    let wide = CollectLimits {
        max_bytes: 1_000_000,
        ..LIMITS
    };
    for (columns, refused) in [(4_096_u16, false), (4_097, true)] {
        let count = [&b"\xfc"[..], &columns.to_le_bytes()].concat();
        let definitions = vec![&b"\x03def"[..]; usize::from(columns)];
        let packets = [&[&count[..]], &definitions[..], &[b"\xfe\0\0\x02\0\0\0"]].concat();
        let collected = collect(&packets, DEPRECATE_EOF, wide);
        let too_many = collected == Err(CollectError::TooManyColumns);
        assert_eq!(too_many, refused, "{columns}: {collected:?}");
        assert_eq!(collected.is_ok(), !refused);
    }
}

#[test]
fn several_results_and_wrong_rows_are_refused_in_step() {
    let several = [
        &b"\x01"[..],
        b"\x03def",
        b"\xfe\0\0\x0a\0\0\0",
        b"\0\0\0\x02\0\0\0",
    ];
    assert_eq!(
        collect(&several, DEPRECATE_EOF, LIMITS),
        Err(CollectError::SeveralResults)
    );
    for row in [&b"\x01"[..], b"\x011\x01", b"\xfb\xfb"] {
        let packets = [&b"\x01"[..], b"\x03def", row, b"\xfe\0\0\x02\0\0\0"];
        assert_eq!(
            collect(&packets, DEPRECATE_EOF, LIMITS),
            Err(CollectError::BadRow { row: 0 })
        );
    }
}

#[test]
fn what_cannot_be_followed_is_an_error_at_once_and_stays_one() {
    for (packet, error) in [
        (&b"\xfbfile"[..], CollectError::LocalInfile),
        (b"\xfc\x01", CollectError::Malformed),
    ] {
        let mut collector = ReplyCollector::new(DEPRECATE_EOF, LIMITS);
        assert_eq!(collector.feed(&stream(&[packet])), Err(error));
        assert_eq!(collector.feed(b""), Err(error));
        assert_eq!(collector.finish(), Err(error));
    }
    assert_eq!(
        ReplyCollector::new(DEPRECATE_EOF, LIMITS).finish(),
        Err(CollectError::Unfinished)
    );
}

#[test]
fn progress_reports_are_not_part_of_the_answer() {
    let capabilities = DEPRECATE_EOF.union(Capabilities::MARIADB_PROGRESS);
    let report = &b"\xff\xff\xff\x01\x01\x02\0\0\0\x04copy"[..];
    let packets = [
        report,
        b"\x01",
        b"\x03def",
        report,
        b"\x011",
        b"\xfe\0\0\x02\0\0\0",
    ];
    assert!(
        matches!(collect(&packets, capabilities, LIMITS), Ok(QueryReply::Rows(rows)) if rows.len() == 1)
    );
}
