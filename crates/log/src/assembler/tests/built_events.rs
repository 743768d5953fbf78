//! What no captured log contains: other types, other files, misplaced events.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::captured_log::{event, routes, routes_with_types};
use super::captured_logs::describe_changes;
use crate::assembler::{EventOutcome, LogStreamError, TransactionAssembler};
use crate::event_reader::LogEvent;
use crate::routes::TableRoutes;
use headwater_timeline::definition::IdType;
use headwater_timeline::index::{BinlogPosition, RowKey, TableId, TimelineChange, TimelineId};

const QUERY: u8 = 2;
const ROTATE: u8 = 4;
const FORMAT: u8 = 15;
const XID: u8 = 16;
const TABLE_MAP: u8 = 19;
pub(super) const WRITE: u8 = 30;
pub(super) const UPDATE: u8 = 31;
pub(super) const DELETE: u8 = 32;
const GTID: u8 = 33;
const PARTIAL_UPDATE: u8 = 39;
const PAYLOAD: u8 = 40;
const MARIADB_GTID: u8 = 162;

pub(super) const INT: u8 = 3;
const BIGINT: u8 = 8;
const JSON: u8 = 245;

fn at(file: u64, offset: u64) -> BinlogPosition {
    BinlogPosition { file, offset }
}

fn following() -> TransactionAssembler {
    TransactionAssembler::starting_at(at(7, 1_000), "binlog", 100)
}

fn take(
    events: &mut TransactionAssembler,
    event: &LogEvent,
) -> Result<EventOutcome, LogStreamError> {
    events.process(event, &routes())
}

fn query(text: &str, log_pos: u32) -> LogEvent {
    let body = [&[0; 8][..], &[2, 0, 0, 0, 0], b"tl\0", text.as_bytes()].concat();
    event(QUERY, log_pos, 0, &body)
}

fn rotate(name: &[u8]) -> LogEvent {
    let body = [&4_u64.to_le_bytes(), name].concat();
    event(ROTATE, 0, 0x20, &body)
}

/// A table map of `tl.<name>` as number 9.
pub(super) fn described(name: &str, types: &[u8], details: &[u8]) -> LogEvent {
    let length = |bytes: &[u8]| vec![u8::try_from(bytes.len()).unwrap()];
    let body = [
        &[9, 0, 0, 0, 0, 0, 1, 0, 2][..],
        b"tl\0",
        &length(name.as_bytes()),
        name.as_bytes(),
        &[0],
        &length(types),
        types,
        &length(details),
        details,
        &[0],
    ];
    event(TABLE_MAP, 0, 0, &body.concat())
}

/// A row event of that table.
pub(super) fn rows(kind: u8, columns: u8, images: &[u8], rows: &[u8]) -> LogEvent {
    let head = [9, 0, 0, 0, 0, 0, 1, 0, 2, 0, columns];
    event(kind, 0, 0, &[&head[..], images, rows].concat())
}

/// The result of a transaction of these events, as text.
fn assemble(all: &[LogEvent], routes: &TableRoutes) -> Result<Vec<String>, LogStreamError> {
    transaction(all, routes).map(|changes| describe_changes(&changes))
}

/// The same as changes.
pub(super) fn assemble_changes(
    all: &[LogEvent],
    routes: &TableRoutes,
) -> Result<Vec<TimelineChange>, LogStreamError> {
    let changes = transaction(all, routes)?;
    Ok(changes.into_iter().map(|(_, change)| change).collect())
}

fn transaction(
    all: &[LogEvent],
    routes: &TableRoutes,
) -> Result<Vec<(TimelineId, TimelineChange)>, LogStreamError> {
    let mut events = following();
    for event in all {
        events.process(event, routes)?;
    }
    match events.process(&event(XID, 2_000, 0, &[0; 8]), routes)? {
        EventOutcome::Transaction(_, changes, _) => Ok(changes),
        _ => Ok(Vec::new()),
    }
}

#[test]
fn numbers_are_read_as_their_columns_have_them() {
    let small = [INT, 4, 0xff_u8, 0xff, 0xff];
    for (id, user, body, expected) in [
        (
            IdType::IntUnsigned,
            IdType::IntUnsigned,
            &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x80][..],
            "posted 2147483648 4294967295",
        ),
        (
            IdType::BigIntUnsigned,
            IdType::Int,
            &[[0xff; 8].as_slice(), &[1, 0, 0, 0]].concat(),
            "posted 1 18446744073709551615",
        ),
        (
            IdType::BigInt,
            IdType::BigInt,
            &[&[0, 0, 0, 0, 0, 0, 0, 0x40], &[1, 0, 0, 0, 0, 0, 0, 0][..]].concat(),
            "posted 1 4611686018427387904",
        ),
        // What memory cannot represent.
        (
            IdType::Int,
            IdType::Int,
            &[small[2], small[3], small[4], 0xff, 1, 0, 0, 0],
            "messages of 1 lost",
        ),
        (
            IdType::BigInt,
            IdType::Int,
            &[&[0, 0, 0, 0, 0, 0, 0, 0x80], &[1, 0, 0, 0][..]].concat(),
            "messages of 1 lost",
        ),
    ] {
        let kind = |kind: IdType| match kind {
            IdType::Int | IdType::IntUnsigned => INT,
            IdType::BigInt | IdType::BigIntUnsigned => BIGINT,
        };
        let map = described("message", &[kind(id), kind(user), INT], &[]);
        let row = [&[0b100], body].concat();
        let heard = assemble(
            &[map, rows(WRITE, 3, &[7], &row)],
            &routes_with_types(id, user),
        );
        assert_eq!(heard.unwrap(), [expected]);
    }
}

/// Until the schema has been read, ids and authors could be anywhere in a row.
#[test]
fn rows_of_columns_that_are_not_known_yet_lose_the_table() {
    let mut routes = routes();
    for route in &mut routes.routes {
        route.columns = None;
        route.second.at = 0;
    }
    let row = [0, 10, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0];
    let map = described("message", &[INT; 3], &[]);
    let write = || rows(WRITE, 3, &[7], &row);
    let outcome = assemble(&[map, write(), write()], &routes);
    assert_eq!(outcome.unwrap(), ["messages lost"]);
}

/// Also if the event does not contain their number.
#[test]
fn rows_without_columns_lose_the_table() {
    for (table, columns, types, expected) in [
        ("message", 3, &[INT; 3][..], "messages lost"),
        ("follower", 2, &[INT; 2], "follows lost"),
    ] {
        for (kind, images) in [(WRITE, &[0][..]), (UPDATE, &[0, 0]), (DELETE, &[0])] {
            for body in [&[][..], &[0; 5]] {
                let map = described(table, types, &[]);
                let outcome = assemble(&[map, rows(kind, columns, images, body)], &routes());
                assert_eq!(outcome.unwrap(), [expected], "{table} {kind}");
            }
        }
    }
}

/// With `binlog_row_value_options=PARTIAL_JSON` on MySQL.
#[test]
fn parts_of_documents_are_read_over() {
    let map = || described("message", &[INT, INT, JSON], &[4]);
    let before = [0, 10, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, b'{', b'}'];
    let after = [0, 10, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3];
    for shared in [&[0][..], &[1, 1]] {
        let row = [&before[..], shared, &after].concat();
        let twice = [&row[..], &row].concat();
        let outcome = assemble(
            &[map(), rows(PARTIAL_UPDATE, 3, &[7, 7], &twice)],
            &routes(),
        );
        let expected = ["removed 2 10", "posted 3 10"];
        assert_eq!(outcome.unwrap(), [expected, expected].concat());
    }
}

#[test]
fn rows_of_a_table_that_is_not_as_it_was_described_are_refused() {
    let row = [0, 10, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0];
    let event = || rows(WRITE, 3, &[7], &row);
    let heard = assemble(&[event()], &routes());
    assert!(
        matches!(heard, Err(LogStreamError::Malformed(_))),
        "{heard:?}"
    );
    let map = described("message", &[INT, INT], &[]);
    let heard = assemble(&[map, event()], &routes());
    assert!(
        matches!(heard, Err(LogStreamError::Malformed(_))),
        "{heard:?}"
    );
    // One column more than read from the schema.
    let map = described("message", &[INT; 4], &[]);
    let four = rows(WRITE, 4, &[15], &[&row[..], &[0; 4]].concat());
    let heard = assemble(&[map, four], &routes());
    assert!(
        matches!(heard, Err(LogStreamError::Columns { .. })),
        "{heard:?}"
    );
    // Of another table only the number is read.
    let map = described("other", &[200], &[]);
    assert!(assemble(&[map, event()], &routes()).unwrap().is_empty());
    // A table map of one transaction is not valid in the next.
    let map = described("message", &[INT; 3], &[]);
    let commit = self::event(XID, 1_500, 0, &[0; 8]);
    let heard = assemble(&[map, commit, event()], &routes());
    assert!(
        matches!(heard, Err(LogStreamError::Malformed(_))),
        "{heard:?}"
    );
}

#[test]
fn the_log_continues_in_the_next_file_of_the_same_name() {
    for (name, expected) in [
        ("binlog.000007", Ok(EventOutcome::Passed(at(7, 1_000)))),
        ("binlog.000008", Ok(EventOutcome::Passed(at(8, 4)))),
        ("binlog.000007x", Err(())),
        ("binlog.00000812345", Err(())),
        ("binlog.99999999999999999999", Err(())),
        ("binlog.000006", Err(())),
        ("binlog.000009", Err(())),
        ("binlog.1000000", Err(())),
        ("other.000008", Err(())),
        ("binlog", Err(())),
        ("", Err(())),
    ] {
        let outcome = take(&mut following(), &rotate(name.as_bytes()));
        assert_eq!(outcome.map_err(|_| ()), expected, "{name:?}");
    }
    let mut events = TransactionAssembler::starting_at(at(999_999, 1_000), "binlog", 100);
    let outcome = take(&mut events, &rotate(b"binlog.1000000"));
    assert_eq!(outcome, Ok(EventOutcome::Passed(at(1_000_000, 4))));
    let mut events = following();
    take(&mut events, &event(GTID, 1_100, 0, &[])).unwrap();
    assert!(take(&mut events, &rotate(b"binlog.000008")).is_err());
}

proptest! {
    /// Before its format description, MariaDB leaves a checksum after the file name: perhaps of digits.
    #[test]
    fn a_checksum_behind_the_name_of_the_first_file_is_no_part_of_it(checksum: [u8; 4], digits in 0u32..10_000) {
        for checksum in [checksum, *format!("{digits:04}").as_bytes().first_chunk().unwrap()] {
            let first = rotate(&[&b"binlog.000007"[..], &checksum].concat());
            let mut events = following();
            prop_assert_eq!(take(&mut events, &first), Ok(EventOutcome::Passed(at(7, 1_000))));
            take(&mut events, &event(FORMAT, 0, 0, &[])).unwrap();
            prop_assert!(take(&mut events, &first).is_err());
        }
    }
}

/// An event contains only the lower half of its end position.
#[test]
fn positions_go_beyond_4_gib() {
    let mut events = TransactionAssembler::starting_at(at(7, 0xffff_fff0), "binlog", 100);
    let mut after = |log_pos, flags| take(&mut events, &event(XID, log_pos, flags, &[0; 8]));
    assert_eq!(
        after(0xffff_ffff, 0),
        Ok(EventOutcome::Passed(at(7, 0xffff_ffff)))
    );
    assert_eq!(
        after(0x10, 0),
        Ok(EventOutcome::Passed(at(7, 0x1_0000_0010)))
    );
    assert_eq!(
        after(0x20, 0),
        Ok(EventOutcome::Passed(at(7, 0x1_0000_0020)))
    );
    assert_eq!(after(0, 0), Ok(EventOutcome::Passed(at(7, 0x1_0000_0020))));
    // Generated for this stream: it has no position.
    assert_eq!(
        after(0x99, 0x20),
        Ok(EventOutcome::Passed(at(7, 0x1_0000_0020)))
    );
    assert_eq!(
        after(0xc000_0000, 0),
        Ok(EventOutcome::Passed(at(7, 0x1_c000_0000)))
    );
    assert_eq!(
        after(0x10, 0),
        Ok(EventOutcome::Passed(at(7, 0x2_0000_0010)))
    );
    // A slightly earlier position is ignored, and not taken for one 4 GiB later.
    assert_eq!(
        after(0x8, 0),
        Ok(EventOutcome::Passed(at(7, 0x2_0000_0010)))
    );
    let outcome = take(&mut events, &rotate(b"binlog.000008"));
    assert_eq!(outcome, Ok(EventOutcome::Passed(at(8, 4))));
}

#[test]
fn a_standalone_statement_of_mariadb_ends_by_itself_and_others_with_their_commit() {
    let gtid = |flags| {
        event(
            MARIADB_GTID,
            1_100,
            0,
            &[&[0; 12][..], &[flags, 0, 0, 0, 0, 0, 0]].concat(),
        )
    };
    let create = query("CREATE TABLE other (id int)", 1_200);
    let mut events = following();
    assert_eq!(take(&mut events, &gtid(1)), Ok(EventOutcome::Nothing));
    assert_eq!(
        take(&mut events, &create),
        Ok(EventOutcome::Passed(at(7, 1_200)))
    );
    let mut events = following();
    assert_eq!(take(&mut events, &gtid(0)), Ok(EventOutcome::Nothing));
    assert_eq!(take(&mut events, &create), Ok(EventOutcome::Nothing));
    assert_eq!(
        take(&mut events, &query("COMMIT", 1_300)),
        Ok(EventOutcome::Passed(at(7, 1_300)))
    );
    let cut_off = event(MARIADB_GTID, 1_100, 0, &[0; 12]);
    assert!(take(&mut following(), &cut_off).is_err());
}

#[test]
fn a_transaction_without_an_end_is_lost() {
    let row = [0, 10, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0];
    for gtid in [event(GTID, 0, 0, &[]), event(MARIADB_GTID, 0, 0, &[0; 19])] {
        let mut events = following();
        take(&mut events, &described("message", &[INT; 3], &[])).unwrap();
        take(&mut events, &rows(WRITE, 3, &[7], &row)).unwrap();
        assert!(take(&mut events, &gtid).is_err());
    }
    // A compressed one without decompressed events.
    let mut events = following();
    take(&mut events, &event(GTID, 1_100, 0, &[])).unwrap();
    take(&mut events, &event(PAYLOAD, 1_200, 0, &[])).unwrap();
    assert!(take(&mut events, &event(GTID, 1_300, 0, &[])).is_err());
}

#[test]
fn rolled_back_changes_are_not_reported() {
    let row = [0, 10, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0];
    let mut events = following();
    take(&mut events, &query("BEGIN", 1_100)).unwrap();
    take(&mut events, &described("message", &[INT; 3], &[])).unwrap();
    take(&mut events, &rows(WRITE, 3, &[7], &row)).unwrap();
    let outcome = take(&mut events, &query("ROLLBACK", 1_200));
    assert_eq!(outcome, Ok(EventOutcome::Passed(at(7, 1_200))));
}

/// It rolls back to a savepoint: no relevant change, if there was none.
#[test]
fn what_is_taken_back_in_part_is_lost_if_it_changed_the_tables() {
    let row = [0, 10, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0];
    for (name, lost) in [("message", true), ("other", false)] {
        let mut events = following();
        for event in [
            query("BEGIN", 1_100),
            query("SAVEPOINT `a`", 1_200),
            described(name, &[INT; 3], &[]),
            rows(WRITE, 3, &[7], &row),
        ] {
            take(&mut events, &event).unwrap();
        }
        let heard = take(&mut events, &query("ROLLBACK TO `a`", 1_300));
        assert_eq!(heard.is_err(), lost, "{name}: {heard:?}");
    }
}

/// The check of definitions is notified, and memory stays valid.
#[test]
fn statements_about_privileges_and_programs_are_reported_once() {
    let mut events = following();
    for text in ["GRANT SELECT ON tl.message TO a", "DROP PROCEDURE p"] {
        let outcome = take(&mut events, &query(text, 1_100));
        assert_eq!(outcome, Ok(EventOutcome::Passed(at(7, 1_100))), "{text}");
        assert!(
            events.take_redefined() && !events.take_redefined(),
            "{text}"
        );
    }
    take(&mut events, &query("ANALYZE TABLE message", 1_200)).unwrap();
    assert!(!events.take_redefined());
}

/// A function can do anything in the SELECT that calls it.
#[test]
fn statements_that_may_create_a_function_are_reported_once() {
    let mut events = following();
    for (text, made) in [
        (
            "CREATE DEFINER=`a`@`%` function f() RETURNS INT RETURN 1",
            true,
        ),
        ("CREATE OR REPLACE PACKAGE BODY p AS END", true),
        ("CREATE PROCEDURE p() SELECT 1", false),
        ("GRANT SELECT ON tl.message TO a", false),
        ("CREATE TABLE functions (id INT)", false),
    ] {
        take(&mut events, &query(text, 1_100)).unwrap();
        assert_eq!(events.take_made_function(), made, "{text}");
        assert!(!events.take_made_function());
    }
}

/// A text may hold a password.
#[test]
fn no_statement_text_is_in_the_error() {
    for text in [
        "SET GLOBAL x = 'secret'",
        "secret",
        "DROP TABLE message /* secret */",
        "INSERT INTO a VALUES ('secret')",
        "ALTER TABLE message COMMENT $a$ secret",
    ] {
        let told = take(&mut following(), &query(text, 1_100)).unwrap_err();
        let told = told.to_string();
        assert!(!told.contains("secret"), "{told}");
        assert!(
            told.ends_with("which ends at 1100 in binlog.000007"),
            "{told}"
        );
    }
}

#[test]
fn statements_in_place_of_rows_are_lost() {
    for text in [
        "INSERT INTO message VALUES (1, 2, 'x')",
        "XA COMMIT X'61',X'',1",
        "XA RECOVER",
    ] {
        let heard = take(&mut following(), &query(text, 1_100));
        assert!(
            matches!(
                heard,
                Err(LogStreamError::Statement(_) | LogStreamError::Xa)
            ),
            "{text}: {heard:?}"
        );
    }
    let rolled_back = query("XA ROLLBACK X'61',X'',1", 1_100);
    let heard = take(&mut following(), &rolled_back);
    assert_eq!(heard, Ok(EventOutcome::Passed(at(7, 1_100))));
}

/// Unknown statements are not ignored.
#[test]
fn events_that_are_not_known_are_lost() {
    let known = |kind: u8| matches!(kind, 2..=5 | 13..=19 | 23..=42 | 160..=171);
    for kind in 0..=u8::MAX {
        let heard = take(&mut following(), &event(kind, 1_100, 0, &[0; 40]));
        let unknown = matches!(heard, Err(LogStreamError::UnknownEvent(_)));
        assert_eq!(unknown, !known(kind), "{kind}: {heard:?}");
    }
}

/// If edits are not recorded, the outcome has none.
#[test]
fn a_change_of_another_column_is_an_edit() {
    let row = |body: u8| [0, 10, 0, 0, 0, 2, 0, 0, 0, body, 0, 0, 0];
    let whole = [row(1), row(2)].concat();
    // Of a short image: the id before, the third column after.
    let short = [0, 10, 0, 0, 0, 0, 2, 0, 0, 0];
    let authors = TableId::Authors(TimelineId(0));
    let (own, of_author) = (
        RowKey::message(TimelineId(0), 10),
        RowKey::author(TimelineId(0), 2),
    );
    // A row image without the author leaves no number of any author.
    for (images, images_of, edited, lost) in [
        (&[7, 7], &whole[..], &[own, of_author][..], &[][..]),
        (&[1, 4], &short, &[own], &[authors]),
    ] {
        let heard = |noted| {
            let mut events = following().with_edits(noted);
            take(&mut events, &described("message", &[INT; 3], &[])).unwrap();
            take(&mut events, &rows(UPDATE, 3, images, images_of)).unwrap();
            take(&mut events, &event(XID, 2_000, 0, &[0; 8])).unwrap()
        };
        assert!(matches!(heard(false), EventOutcome::Passed(_)));
        let transaction = match heard(true) {
            EventOutcome::Transaction(_, changes, edits) => Some((changes, edits)),
            _ => None,
        };
        let (changes, edits) = transaction.unwrap();
        assert!(changes.is_empty());
        assert_eq!(
            edits.rows().collect::<BTreeSet<_>>(),
            edited.iter().copied().collect()
        );
        assert_eq!(edits.whole_tables().collect::<Vec<_>>(), lost);
    }
}

/// If the columns are not known, all rows may have changed.
#[test]
fn changes_of_memory_are_changes_of_rows() {
    let message = [0, 5, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];
    let follow = [0, 1, 0, 0, 0, 2, 0, 0, 0];
    let blind = || {
        let mut blind = routes();
        blind.routes.iter_mut().for_each(|it| it.columns = None);
        blind
    };
    let heard = |table: &str, columns: u8, row: &[u8], routes: &TableRoutes| {
        let mut events = following().with_edits(true);
        let images = [(1_u8 << columns) - 1];
        for event in [
            described(table, &vec![INT; columns.into()], &[]),
            rows(WRITE, columns, &images, row),
        ] {
            events.process(&event, routes).unwrap();
        }
        match events
            .process(&event(XID, 2_000, 0, &[0; 8]), routes)
            .unwrap()
        {
            EventOutcome::Transaction(_, changes, edits) => {
                assert_eq!(changes.len(), 1);
                Some(edits)
            }
            _ => None,
        }
    };
    let edits = heard("message", 3, &message, &routes()).unwrap();
    let timeline = TimelineId(0);
    let own = [RowKey::message(timeline, 5), RowKey::author(timeline, 1)];
    assert_eq!(edits.rows().collect::<BTreeSet<_>>(), BTreeSet::from(own));
    assert!(heard("follower", 2, &follow, &routes()).unwrap().is_empty());
    let edits = heard("message", 3, &message, &blind()).unwrap();
    assert_eq!(
        edits.whole_tables().collect::<BTreeSet<_>>(),
        BTreeSet::from([timeline.into(), TableId::Authors(timeline)])
    );
    assert!(heard("follower", 2, &follow, &blind()).unwrap().is_empty());
}
