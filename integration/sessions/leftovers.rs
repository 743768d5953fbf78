//! What a statement leaves behind besides its answer: counts, warnings, ids.

use super::stage::{TAIL, on_each_stage};
use crate::kit::wire_client::COM_PING;

const QUESTIONS: &[&str] = &[
    "SHOW WARNINGS",
    "SHOW COUNT(*) WARNINGS",
    "SHOW ERRORS",
    "SELECT ROW_COUNT()",
    "SELECT FOUND_ROWS()",
    "SELECT LAST_INSERT_ID()",
    "SELECT @@warning_count, @@error_count",
    "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID(), @@identity",
    "INSERT INTO note (body) VALUES (ROW_COUNT())",
    "SET @a = ROW_COUNT()",
];

#[test]
fn after_a_call_the_counts_are_the_procedures() {
    on_each_stage(|stage| {
        for question in QUESTIONS {
            // Whether the body is parsed at this call is the server's affair: see Twin.
            if stage.timeline.parse_warns() && question.to_lowercase().contains("warning") {
                continue;
            }
            let mut twin = stage.twin();
            for call in [
                "CALL fetch_timeline_ids(1)",
                "CALL fetch_timeline_ids2(1, 300)",
                "CALL build_max_ids_of_followers(1, 300)",
            ] {
                for _ in 0..3 {
                    twin.run(call);
                    twin.run(question);
                    twin.run(call);
                    twin.run("CALL fetch_timeline_ids(2)");
                    twin.run(question);
                    twin.run(question);
                    twin.run(call);
                    twin.command(&[COM_PING]);
                    twin.run(question);
                }
            }
        }
    });
}

#[test]
fn after_a_tail_the_counts_are_the_tails() {
    on_each_stage(|stage| {
        for question in QUESTIONS {
            let mut twin = stage.twin();
            for tail in [TAIL, &TAIL.replace("20", "7"), &TAIL.replace("20", "1000")] {
                for call in [
                    "CALL fetch_timeline_ids(1)",
                    "CALL fetch_timeline_ids2(1, 300)",
                    "CALL build_max_ids_of_followers(1, 300)",
                ] {
                    twin.run(call);
                    twin.run(tail);
                    twin.run(question);
                    twin.run(call);
                    twin.run(tail);
                    twin.run(tail);
                    twin.run(question);
                    twin.run(tail);
                    twin.run(call);
                    twin.run(tail);
                    twin.command(&[COM_PING]);
                    twin.run(question);
                }
            }
        }
    });
}

#[test]
fn an_insert_id_outlives_a_call() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("INSERT INTO note (body) VALUES ('a'), ('b')");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        twin.run("SELECT LAST_INSERT_ID()");
        twin.run("INSERT INTO note (body) VALUES ('c')");
        twin.run("SELECT LAST_INSERT_ID(77)");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run("INSERT INTO note (body) VALUES (LAST_INSERT_ID())");
        twin.run("SELECT * FROM note");
    });
}

#[test]
fn warnings_of_the_statement_before_end_with_the_call() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run("SELECT 1/0, CAST('x' AS signed)");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run("SHOW WARNINGS");
        twin.run("SELECT nothing");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run("SHOW ERRORS");
        twin.run("SELECT 1/0");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        twin.run("SHOW WARNINGS");
    });
}

#[test]
fn user_variables_and_prepared_statements_outlive_a_call() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("SET @reader = 1, @n = 5");
        twin.run("PREPARE page FROM 'CALL fetch_timeline_ids(?)'");
        twin.run("CALL fetch_timeline_ids(2)");
        twin.run("SELECT @reader, @n, @author, @head");
        twin.run("EXECUTE page USING @reader");
        twin.run(TAIL);
        twin.run("CALL fetch_timeline_ids(@reader)");
        twin.run(TAIL);
    });
}
