//! Ids from memory or by lookups, and the client's reply with them.

use headwater_timeline::check::ServerProduct;
use headwater_timeline::index::TimelinePage;
use headwater_timeline::{AuthorHead, DefinitionId};

use super::scenario::{CallScenario, error, nothing, ok, rows};
use super::{CALL, PAGED, answers};
use crate::call_decision::{CallInput, INTERRUPTED, ServedCallSource};
use crate::result_table::TableRowCount;

const LIKELY: CallInput = CallInput::Probed {
    likely: true,
    compared: true,
};
const NO_PAGE: CallInput = CallInput::Probed {
    likely: false,
    compared: false,
};

pub(super) fn page() -> TimelinePage {
    TimelinePage {
        ids: vec![30, 20, 10],
        heads: vec![
            AuthorHead { author: 4, id: 30 },
            AuthorHead { author: 2, id: 20 },
        ],
    }
}

#[test]
fn a_page_in_memory_costs_the_server_nothing() {
    let mut scene = CallScenario::proven(ServerProduct::Mariadb);
    let told = scene.play(CALL, vec![LIKELY, CallInput::Page(Some(page()))]);
    assert_eq!(told, ["memory 7", "page", "answer memory"]);
    let answered = scene.answer();
    assert_eq!(answered.source, ServedCallSource::Memory);
    assert_eq!(
        answered.served.pending.ids.as_deref(),
        Some(&[30, 20, 10][..])
    );
    assert_eq!(answered.served.pending.heads, None);
    // Three inserted; none was there to be deleted.
    assert_eq!(answered.served.affected_rows, 3);
    assert_eq!(answered.served.status, 0x22);
    assert_eq!(answered.compared_result.as_ref().unwrap().ids, [30, 20, 10]);
}

#[test]
fn mariadb_counts_what_the_procedure_would_delete() {
    let mut scene = CallScenario::proven(ServerProduct::Mariadb);
    scene.session.tables.result = TableRowCount::Counted(5);
    scene.play(CALL, vec![LIKELY, CallInput::Page(Some(page()))]);
    assert_eq!(scene.answer().served.affected_rows, 8);
    scene.pending(DefinitionId(0), vec![1, 2]);
    scene.play(CALL, vec![LIKELY, CallInput::Page(Some(page()))]);
    assert_eq!(scene.answer().served.affected_rows, 5);
}

#[test]
fn mysql_counts_nothing_and_leaks_the_cursor_flags() {
    let mut scene = CallScenario::proven(ServerProduct::Mysql);
    scene.play(CALL, vec![LIKELY, CallInput::Page(Some(page()))]);
    let owned = &scene.answer().served;
    assert_eq!((owned.affected_rows, owned.status), (0, 0xe2));
}

#[test]
fn a_bounded_call_leaves_heads_in_the_order_of_authors() {
    let mut scene = CallScenario::proven(ServerProduct::Mysql);
    let proved = answers(vec![error(1318), ok(0)]);
    scene.play(PAGED, vec![LIKELY, proved, CallInput::Page(Some(page()))]);
    let heads = scene.answer().served.pending.heads.clone().unwrap();
    assert_eq!(
        heads,
        [
            AuthorHead { author: 2, id: 20 },
            AuthorHead { author: 4, id: 30 }
        ]
    );
}

#[test]
fn what_memory_has_not_got_is_looked_up() {
    for input in [vec![NO_PAGE], vec![LIKELY, CallInput::Page(None)]] {
        let mut scene = CallScenario::proven(ServerProduct::Mariadb);
        let mut inputs = input;
        inputs.extend([
            answers(vec![rows(&[&[Some("4"), Some("30")]])]),
            answers(vec![rows(&[
                &[Some("4"), Some("30")],
                &[Some("4"), Some("10")],
            ])]),
        ]);
        let told = scene.play(CALL, inputs);
        assert_eq!(told.last().unwrap(), "answer lookups", "{told:?}");
        assert_eq!(
            scene.answer().served.pending.ids.as_deref(),
            Some(&[30, 10][..])
        );
    }
}

#[test]
fn a_reader_without_follows_has_an_empty_page() {
    let mut scene = CallScenario::proven(ServerProduct::Mariadb);
    let told = scene.play(CALL, vec![NO_PAGE, answers(vec![nothing()])]);
    assert_eq!(told.last().unwrap(), "answer lookups");
    assert_eq!(scene.answer().served.pending.ids.as_deref(), Some(&[][..]));
}

#[test]
fn a_lookup_that_fails_is_a_reason_and_stays_one_where_it_fails_again() {
    for (answer, expected, next) in [
        (error(1142), "relay lookup_denied", "relay lookup_denied"),
        (error(1054), "relay lookup_failed", "relay lookup_failed"),
        // Transient errors: the next call may be served.
        (error(1205), "relay lookup_failed", "memory 7"),
        (error(1100), "relay lookup_failed", "memory 7"),
        (error(INTERRUPTED), "interrupted 1317", "memory 7"),
        (error(1927), "interrupted 1927", "memory 7"),
        (ok(0), "relay lookup_failed", "memory 7"),
        (
            rows(&[&[Some("x"), Some("y")]]),
            "relay lookup_failed",
            "memory 7",
        ),
    ] {
        let mut scene = CallScenario::proven(ServerProduct::Mariadb);
        let told = scene.play(CALL, vec![NO_PAGE, answers(vec![answer])]);
        assert_eq!(told.last().unwrap(), expected);
        assert_eq!(scene.play(CALL, vec![])[0], next, "behind {expected}");
    }
}

#[test]
fn more_ids_than_may_be_pending_are_left_to_the_procedure() {
    let mut scene = CallScenario::proven(ServerProduct::Mysql);
    scene.policy.pending_ids = 4;
    let told = scene.play(CALL, vec![LIKELY, CallInput::Page(Some(page()))]);
    assert_eq!(told.last().unwrap(), "relay too_many_ids");
}
