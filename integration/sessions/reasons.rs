//! Why a call was relayed: each reason has a counter, and a call that is relayed for it counts there only.

use super::stage::{Stage, TAIL, on_each_stage, on_each_stage_with};
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::Param;

const CALL: &str = "CALL fetch_timeline_ids(1)";

/// Statements in a new session, and the reason why the call after them is relayed.
const REASONS: &[(&[&str], &str)] = &[
    (&["SET autocommit = 0"], "autocommit_off"),
    (&["BEGIN"], "in_transaction"),
    (
        &["BEGIN", "INSERT INTO note (body) VALUES ('x')"],
        "in_transaction",
    ),
    (
        &["SET TRANSACTION ISOLATION LEVEL READ COMMITTED"],
        "one_shot_transaction",
    ),
    (&["LOCK TABLES note READ"], "table_locks"),
    (&["SET sql_safe_updates = 1"], "session_settings"),
    (&["SET sql_select_limit = 5"], "session_settings"),
    (&["SET max_heap_table_size = 16384"], "session_settings"),
    (
        &["CREATE TEMPORARY TABLE message (id int)"],
        "temporary_tables",
    ),
    (
        &["CREATE TEMPORARY TABLE fetch_timeline_tt (id bigint, x int)"],
        "temporary_tables",
    ),
];

/// Runs `call` on both sides; asserts that the one call relayed meanwhile counts for that reason.
#[track_caller]
fn relayed_for(stage: &Stage, label: &str, call: impl FnOnce()) {
    assert!(is_relayed_for(stage, label, call), "{label}: owned");
}

/// False if the call is served; otherwise asserts that it is relayed for this reason.
#[track_caller]
fn is_relayed_for(stage: &Stage, label: &str, call: impl FnOnce()) -> bool {
    let before = stage.proxy.counts();
    call();
    let after = stage.proxy.counts();
    let name = format!("calls_relayed[{label}]");
    let owned = after.of("calls_owned") - before.of("calls_owned");
    let relayed = 1 - owned;
    let told = (after.of(&name), after.relayed());
    let expected = (before.of(&name) + relayed, before.relayed() + relayed);
    assert_eq!(told, expected, "{label}: {before:?}\n{after:?}");
    relayed == 1
}

#[test]
fn a_session_that_is_in_the_way_is_counted_as_what_it_is() {
    on_each_stage(|stage| {
        // From here on, the definition has a verdict.
        stage.twin().run(CALL);
        for (before, label) in REASONS {
            let mut twin = stage.twin();
            for statement in *before {
                twin.ok(statement);
            }
            relayed_for(stage, label, || drop(twin.run(CALL)));
        }
        let mut twin = stage.twin();
        twin.ok("SET @a = NULL");
        let call = "CALL fetch_timeline_ids(@a)";
        relayed_for(stage, "arguments", || drop(twin.run(call)));
        let prepared = twin.prepare("CALL fetch_timeline_ids(?)");
        relayed_for(stage, "arguments", || {
            twin.execute_with(
                prepared,
                &[Param::new(5, 0, &1.5_f64.to_le_bytes())],
                0,
                true,
            );
        });
        twin.ok("USE mysql");
        let call = "CALL {db}.fetch_timeline_ids(1)";
        relayed_for(stage, "other_database", || drop(twin.run(call)));
        stage.aside("ALTER PROCEDURE {db}.fetch_timeline_ids SQL SECURITY INVOKER");
        let mut twin = stage.twin();
        // A statement that touches procedures causes a new check of the definition.
        twin.run("DROP PROCEDURE IF EXISTS nothing_such");
        // The procedure may leave any state, which changes nothing for its next call.
        for _ in 0..4 {
            relayed_for(stage, "definition_refused", || drop(twin.run(CALL)));
        }
        let qualified = "CALL {db}.fetch_timeline_ids(1)";
        // Another procedure's call may meet that state, unless activity elsewhere on the server caused a new check of the definition
        // in between.
        let bounded = "CALL fetch_timeline_ids2(1, 300)";
        relayed_for(stage, "definition_refused", || drop(twin.run(qualified)));
        let mut tries = 0;
        while !is_relayed_for(stage, "one_shot_transaction", || drop(twin.run(bounded))) {
            tries += 1;
            assert!(tries < 50, "{:?}", stage.proxy.counts());
            relayed_for(stage, "definition_refused", || drop(twin.run(qualified)));
        }
        let owned = stage.proxy.counts().of("calls_owned");
        twin.run(bounded);
        stage.owned(owned + 1);
    });
}

#[test]
fn an_account_that_may_too_little_is_counted_as_what_it_lacks() {
    on_each_stage(|stage| {
        if !stage.service {
            // No account that sees the procedures has connected yet.
            let executes = stage.account("EXECUTE");
            let mut twin = stage.twin_of(&executes);
            relayed_for(stage, "definition_unchecked", || drop(twin.run(CALL)));
        }
        stage.twin().run(CALL);
        let reads = stage.account("SELECT");
        let mut twin = stage.twin_of(&reads);
        relayed_for(stage, "no_execute_privilege", || drop(twin.run(CALL)));
        let executes = stage.account("EXECUTE");
        if !stage.service {
            let mut twin = stage.twin_of(&executes);
            relayed_for(stage, "lookup_denied", || drop(twin.run(CALL)));
        }
        let asks = stage.account("SELECT, EXECUTE");
        let mut twin = stage.twin_of(&asks);
        twin.run(CALL);
        // The account may not create the table that this needs: the procedure creates it.
        twin.run("SELECT COUNT(*) FROM fetch_timeline_tt");
        relayed_for(stage, "write_denied", || drop(twin.run(CALL)));
        twin.run(TAIL);
    });
}

#[test]
fn without_acceleration_every_call_is_counted_as_switched_off() {
    on_each_stage_with(&["--relay-only"], |stage| {
        let mut twin = stage.twin();
        for call in [CALL, "CALL fetch_timeline_ids2(1, 300)"] {
            relayed_for(stage, "switched_off", || drop(twin.run(call)));
        }
    });
}

/// Drivers that switch autocommit off do not report it.
#[test]
fn an_account_without_autocommit_is_told_of_once_with_the_way_out() {
    on_each_server(|server| {
        let database = Database::classic(server, "no_autocommit");
        let proxy = Proxy::start(server.addr(), &[]);
        for _ in 0..3 {
            let mut client = proxy.login(&database.login());
            client.ok(CALL);
            client.ok("SET autocommit = 0");
            client.ok(CALL);
            client.ok(CALL);
        }
        proxy.wait_for_log("autocommit off");
        assert_eq!(proxy.counts().relayed(), 6);
        let log = proxy.log();
        assert_eq!(log.matches("autocommit off").count(), 1, "{log}");
        for part in [
            "of the account \"root\"",
            "autocommit=True",
            "docs/connecting.md",
        ] {
            assert!(log.contains(part), "no {part} in {log}");
        }
    });
}
