//! A call in other words, other arguments, other commands.

use super::stage::{TAIL, on_each_stage};
use crate::kit::wire_client::{Login, capability};

#[test]
fn a_call_in_any_dress_is_the_same_call() {
    on_each_stage(|stage| {
        let dresses = [
            "call FETCH_TIMELINE_IDS(1)",
            "  CALL\tfetch_timeline_ids (\n1 ) ; ",
            "/* page */ CALL `fetch_timeline_ids`(1) -- done",
            "# first\nCALL {db}.fetch_timeline_ids(1)",
            "CALL `{db}` . `fetch_timeline_ids2`(1, 00300)",
            "CALL/**/fetch_timeline_ids2/**/(1/**/,/**/300)",
            "call `BUILD_max_ids_of_followers` (1, 300) -- the helper",
        ];
        let mut twin = stage.twin();
        for dress in dresses {
            twin.run(dress);
            twin.run(TAIL);
        }
        stage.owned(dresses.len() as u64);
        // Dresses that are left to the server.
        for dress in [
            "/*! CALL fetch_timeline_ids(1) */",
            "/*!50000 CALL */ fetch_timeline_ids(1)",
            "CALL fetch_timeline_ids /*! (1) */",
            "CALL fetch_timeline_ids(/*! 2 + */ 1)",
            "CALL \"fetch_timeline_ids\"(1)",
            "CALL fetch_timeline_ids(1);;",
            "CALL fetch_timeline_ids(1); -- more",
            "CALL fetch_timeline_ids(1) /* open",
            "CALL fetch_timeline_ids(1) INTO",
            "CALL nowhere.fetch_timeline_ids(1)",
            "CALL fetch_timeline_ids.fetch_timeline_ids(1)",
            "{ CALL fetch_timeline_ids(1) }",
            "(CALL fetch_timeline_ids(1))",
            "CALL fetch_timeline_ids(1), 2",
            "EXPLAIN CALL fetch_timeline_ids(1)",
        ] {
            twin.run(dress);
            twin.run(TAIL);
        }
    });
}

#[test]
fn arguments_that_are_wrong_or_no_plain_numbers_are_the_servers() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("SET @r = 1");
        for arguments in [
            "",
            "1,2",
            "-1",
            "4294967295",
            "4294967296",
            "99999999999999999999999",
            "NULL",
            "'x'",
            "'1'",
            "1.0",
            "1.5",
            "1e0",
            "0x1",
            "b'1'",
            "+1",
            "1+0",
            "@r",
            "(1)",
            "TRUE",
            "DEFAULT",
            "(SELECT 1)",
            "01",
            "1 1",
            "00000000000000000000000001",
            "?",
            "1.",
            "-0",
            "1=1",
            "LAST_INSERT_ID()",
            "id",
            "0",
        ] {
            twin.run("CALL fetch_timeline_ids(2)");
            twin.run(&format!("CALL fetch_timeline_ids({arguments})"));
            twin.run("SHOW WARNINGS");
            twin.run(TAIL);
            twin.run(&format!("CALL fetch_timeline_ids2(1, {arguments})"));
            twin.run("SELECT COUNT(*) FROM fetch_timeline_tt");
            twin.run(&format!("CALL fetch_timeline_ids2({arguments}, 300)"));
            twin.run(TAIL);
        }
    });
}

#[test]
fn several_statements_at_once_are_the_servers_but_for_a_call_in_front() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("CALL fetch_timeline_ids(2)");
        twin.run(&format!("CALL fetch_timeline_ids(1); {TAIL}"));
        twin.run(TAIL);
        twin.run(&format!(
            "SELECT 1; CALL fetch_timeline_ids(2); {TAIL}; SELECT nothing; SELECT 2"
        ));
        twin.run(
            "SELECT COUNT(*) FROM fetch_timeline_tt; SELECT COUNT(*) FROM max_ids_of_followers",
        );
        twin.run("CALL fetch_timeline_ids(1)");
        // The several may have held a one-shot SET TRANSACTION, so that one was relayed too.
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(&format!("{TAIL}; {TAIL}"));
        stage.owned(3);
    });
}

#[test]
fn query_attributes_stand_in_front_of_a_call_and_a_tail() {
    on_each_stage(|stage| {
        let login = Login::default().with(capability::QUERY_ATTRIBUTES | capability::SESSION_TRACK);
        let mut twin = stage.twin_of(&login);
        twin.attributed("CALL fetch_timeline_ids(1)", &[("trace", "a-1"), ("", "x")]);
        twin.attributed(TAIL, &[("trace", "a-2")]);
        twin.attributed("CALL fetch_timeline_ids2(1, 300)", &[]);
        twin.attributed(TAIL, &[("n", "20")]);
        twin.attributed("SELECT COUNT(*) FROM fetch_timeline_tt", &[("n", "20")]);
        stage.owned(2);
    });
}

#[test]
fn prepared_calls_and_tails_mix_with_plain_ones() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let call = twin.prepare("CALL fetch_timeline_ids(?)");
        let bounded = twin.prepare("CALL fetch_timeline_ids2(?, ?)");
        twin.execute(call, &[Some("1")]);
        let tail = twin.prepare(TAIL);
        twin.execute(tail, &[]);
        twin.run("CALL fetch_timeline_ids(2)");
        twin.execute(tail, &[]);
        twin.run("CALL fetch_timeline_ids2(1, 250)");
        twin.execute(bounded, &[Some("2"), Some("300")]);
        twin.run(TAIL);
        twin.run("CALL fetch_timeline_ids(1)");
        twin.execute(call, &[None]);
        twin.execute(tail, &[]);
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run("EXECUTE nothing");
        twin.run(TAIL);
        twin.execute(call, &[Some("-1")]);
        twin.execute(call, &[Some("1")]);
        twin.run(TAIL);
        twin.run("CALL fetch_timeline_ids(2)");
        twin.run("CALL fetch_timeline_ids(2)");
        twin.run(TAIL);
        stage.owned(8);
    });
}
