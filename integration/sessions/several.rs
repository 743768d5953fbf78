//! A call and more statements in one command, as PHP programs send them.

use super::stage::{TAIL, look, on_each_stage};
use crate::kit::wire_client::{COM_SET_OPTION, Login, capability};

#[test]
fn a_call_and_its_tail_are_answered_as_one_command() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        for _ in 0..2 {
            twin.run(&format!("CALL fetch_timeline_ids(1); {TAIL}"));
            twin.run(&format!("CALL fetch_timeline_ids2(2, 300);\n{TAIL};"));
            twin.run("SET @reader = '1'");
            twin.run(&format!(
                "CALL fetch_timeline_ids(@reader);{TAIL}; -- all\n"
            ));
            look(&mut twin);
        }
        stage.owned(6);
    });
}

#[test]
fn whatever_stands_behind_a_call_is_told_in_one_chain() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let mut calls = 0;
        for rest in [
            "SELECT COUNT(*) FROM fetch_timeline_tt",
            "SELECT 1; SELECT 2; SELECT 3",
            "SELECT nothing; SELECT 2",
            "SELECT 1; SELECT nothing; SELECT 2",
            "no statement at all",
            "DO 1; DO 2",
            "SHOW WARNINGS",
            "SELECT ROW_COUNT(), FOUND_ROWS(), @@warning_count",
            "INSERT INTO note (body) VALUES ('x'),('y'); SELECT ROW_COUNT()",
            "BEGIN; SELECT COUNT(*) FROM fetch_timeline_tt; ROLLBACK",
            "SELECT REPEAT('x', 70000), REPEAT('y', 300) FROM message LIMIT 30",
            "SET @x = 1; SELECT @x",
            "USE information_schema; SELECT DATABASE(); USE {db}",
            "SELECT ';', \"';\" -- ;\n; SELECT 2",
            "SELECT 'a\\'; b'; SELECT 3",
            "SET @@sql_safe_updates = 1; SET @@sql_safe_updates = 0",
        ] {
            twin.run(&format!("CALL fetch_timeline_ids(1); {rest}"));
            look(&mut twin);
            twin.run(&format!("CALL fetch_timeline_ids2(2, 300);{rest}"));
            look(&mut twin);
            calls += 2;
        }
        // What nobody understands may have set a one-shot transaction.
        stage.owned(calls - 2);
    });
}

#[test]
fn calls_in_a_row_are_one_chain() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run(&format!(
            "CALL fetch_timeline_ids(1); CALL fetch_timeline_ids2(2, 300); {TAIL}"
        ));
        look(&mut twin);
        twin.run(&format!(
            "CALL fetch_timeline_ids(1); CALL fetch_timeline_ids2(1, 200); {TAIL}; CALL fetch_timeline_ids(2); {TAIL}"
        ));
        look(&mut twin);
        twin.run(
            "CALL build_max_ids_of_followers(1, 250); SELECT * FROM max_ids_of_followers ORDER BY user_id; CALL build_max_ids_of_followers(2, 90)",
        );
        twin.run_unordered("SELECT * FROM max_ids_of_followers");
        look(&mut twin);
        twin.run("CALL fetch_timeline_ids(1); CALL fetch_timeline_ids(-1); SELECT 1");
        look(&mut twin);
        twin.run("CALL fetch_timeline_ids(1); CALL nothing(); SELECT 1");
        look(&mut twin);
        twin.run("CALL fetch_timeline_ids(1); SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
        twin.run("CALL fetch_timeline_ids(1)");
        look(&mut twin);
        // A call that is not the first but for calls may be of anything: the next is relayed, and what is behind it too.
        stage.owned(4);
    });
}

#[test]
fn what_is_answered_differently_alone_is_left_to_the_server() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        for rest in [
            "",
            " ",
            "; SELECT 1",
            "/* c */",
            "-- c\n",
            "/*! SELECT 1 */",
            "(SELECT 1)",
            "?",
        ] {
            twin.run(&format!("CALL fetch_timeline_ids(1); {rest}"));
            look(&mut twin);
        }
        twin.run("BEGIN");
        twin.run(&format!("CALL fetch_timeline_ids(1); {TAIL}"));
        twin.run("ROLLBACK");
        look(&mut twin);
    });
}

#[test]
fn several_statements_are_one_error_where_they_are_not_taken() {
    on_each_stage(|stage| {
        let login = Login::default().without(capability::MULTI_STATEMENTS);
        let mut twin = stage.twin_of(&login);
        let both = format!("CALL fetch_timeline_ids(1); {TAIL}");
        twin.run("CALL fetch_timeline_ids(2)");
        twin.run(&both);
        look(&mut twin);
        twin.command(&[COM_SET_OPTION, 0, 0]);
        // The several may have held a one-shot SET TRANSACTION.
        twin.run(&both);
        twin.run(&both);
        twin.command(&[COM_SET_OPTION, 1, 0]);
        twin.run(&both);
        twin.command(&[COM_SET_OPTION, 2, 0]);
        twin.run(&both);
        look(&mut twin);
        stage.owned(2);
    });
}

#[test]
fn clients_of_every_kind_are_told_the_same_chain() {
    on_each_stage(|stage| {
        for login in [
            Login::default().without(capability::DEPRECATE_EOF),
            Login::default().without(capability::SESSION_TRACK),
            Login::default().with(capability::QUERY_ATTRIBUTES),
        ] {
            let mut twin = stage.twin_of(&login);
            twin.run(&format!("CALL fetch_timeline_ids(1); {TAIL}; DO 1"));
            twin.run(&format!("CALL fetch_timeline_ids2(1, 200); {TAIL}"));
            look(&mut twin);
        }
        stage.owned(6);
        let login = Login::default().with(capability::QUERY_ATTRIBUTES);
        let mut twin = stage.twin_of(&login);
        let both = format!("CALL fetch_timeline_ids(1); {TAIL}");
        twin.attributed(&both, &[("trace", "a-1")]);
        twin.attributed(&both, &[]);
        look(&mut twin);
    });
}
