//! Calls whose values are in user variables, and calls that are prepared by name.

use super::stage::{TAIL, look, on_each_stage};
use crate::kit::wire_client::COM_PING;

#[test]
fn a_call_with_variables_is_owned_where_they_hold_numbers() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("SET @reader = 1, @Bound = 300");
        twin.run("CALL fetch_timeline_ids(@reader)");
        look(&mut twin);
        twin.run("CALL fetch_timeline_ids2(@READER, @bound)");
        look(&mut twin);
        twin.run("CALL fetch_timeline_ids2(2, @bound)");
        look(&mut twin);
        twin.run("CALL build_max_ids_of_followers(@reader, @bound)");
        twin.run_unordered("SELECT * FROM max_ids_of_followers");
        twin.run("PREPARE h FROM 'CALL build_max_ids_of_followers(?, 77)'");
        twin.run("EXECUTE h USING @reader");
        twin.run_unordered("SELECT * FROM max_ids_of_followers");
        look(&mut twin);
        let mut calls = 5;
        for value in [
            "'1'",
            "'002'",
            "1e0",
            "CAST(1 AS DECIMAL)",
            "TRUE",
            "x'31'",
            "0x31",
            "b'110001'",
        ] {
            twin.run(&format!("SET @reader = {value}"));
            twin.run("CALL fetch_timeline_ids(@reader)");
            twin.run("SHOW WARNINGS");
            look(&mut twin);
            calls += 1;
        }
        stage.owned(calls);
    });
}

#[test]
fn a_call_with_variables_that_hold_something_else_is_the_servers() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("CALL fetch_timeline_ids(2)");
        for value in [
            "NULL",
            "-1",
            "1.0",
            "1.5",
            "'x'",
            "''",
            "' 1'",
            "'1.0'",
            "4294967296",
            "1e20",
            "x'00'",
            "DATE'2026-01-01'",
        ] {
            twin.run(&format!("SET @reader = {value}"));
            twin.run("CALL fetch_timeline_ids(@reader)");
            twin.run("SHOW COUNT(*) WARNINGS");
            look(&mut twin);
            twin.run("CALL fetch_timeline_ids2(1, @reader)");
            twin.run("SELECT ROW_COUNT(), @@warning_count");
            look(&mut twin);
        }
        twin.run("CALL fetch_timeline_ids(@never)");
        look(&mut twin);
        stage.owned(1);
    });
}

/// As Python's drivers do it for `callproc`: the values in variables first, then the call.
#[test]
fn a_call_whose_values_are_set_right_before_it_is_owned_and_its_table_not_written() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let mut calls = 0;
        for (set, call) in [
            (
                "SET @`_fetch_timeline_ids_0`=1",
                "CALL `fetch_timeline_ids`(@`_fetch_timeline_ids_0`)",
            ),
            (
                "SET @`_fetch_timeline_ids2_0`=1,@`_fetch_timeline_ids2_1`=300",
                "CALL `fetch_timeline_ids2`(@`_fetch_timeline_ids2_0`,@`_fetch_timeline_ids2_1`)",
            ),
            (
                "SET @_fetch_timeline_ids_arg1='2'",
                "CALL fetch_timeline_ids(@_fetch_timeline_ids_arg1)",
            ),
            (
                "SET @`odd ``name`=2",
                "CALL fetch_timeline_ids(@`odd ``name`)",
            ),
        ] {
            for _ in 0..3 {
                twin.run(set);
                twin.run(call);
                twin.run("SELECT @_fetch_timeline_ids_arg1, @`_fetch_timeline_ids_0`");
                twin.run(TAIL);
                calls += 1;
            }
        }
        stage.owned(calls);
        let counts = stage.proxy.counts();
        assert_eq!(counts.of("tables_written"), 0, "{counts:?}");
        let tails = counts.of("tails_virtual") + counts.of("tails_written");
        assert_eq!(tails, calls, "{counts:?}");
        twin.run("PREPARE s FROM 'CALL fetch_timeline_ids(?)'");
        twin.run("EXECUTE s USING @`odd ``name`");
        look(&mut twin);
        stage.owned(calls + 1);
    });
}

/// What a statement leaves that sets variables is in part what the one before it left.
#[test]
fn counts_behind_variables_that_are_set_are_those_of_the_server() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let asked = [
            "SELECT ROW_COUNT()",
            "SELECT FOUND_ROWS()",
            "SHOW WARNINGS",
            "SELECT @@warning_count, @@error_count, @a",
            "SELECT LAST_INSERT_ID(), ROW_COUNT(), FOUND_ROWS()",
        ];
        let set = ["SET @a = 1", "SET @a = 2, @`b` = 'x'"];
        let long = format!("SET @long = '{}'", "x".repeat(5_000));
        let between: &[&[&str]] = &[
            &[set[0]],
            &[TAIL, set[0]],
            &["SELECT 1 UNION SELECT 2", set[0]],
            &["SELECT 1 UNION SELECT 2", set[0], set[1]],
            &[
                "SELECT 1 UNION SELECT 2",
                set[0],
                set[1],
                set[0],
                set[1],
                set[0],
            ],
            &["SELECT 1 UNION SELECT 2", set[0], "SELECT @a, 2", set[1]],
            &["SELECT CAST('x' AS SIGNED)", set[0]],
            &["SELECT 1 UNION SELECT 2", "SELECT nothing"],
            &["SELECT 1 UNION SELECT 2", "SELECT nothing", set[0]],
            &[
                "SELECT 1 UNION SELECT 2",
                "SELECT nothing",
                "SELECT nothing",
            ],
            &["SELECT nothing", set[0]],
            &["SELECT 1 / @a", set[0]],
            &["SELECT 1 FROM follower WHERE @a = 3", set[0]],
            &["SELECT 1 FROM follower WHERE @a = 2", set[0], set[1]],
            &[
                "SELECT 1 FROM follower WHERE @a IS NULL",
                "SET @a = 3",
                "SELECT nothing",
            ],
            &["SELECT 1 / 0", set[0]],
            &[
                "SELECT 1 / 0",
                set[0],
                set[1],
                set[0],
                set[1],
                set[0],
                set[1],
            ],
            &[
                "SELECT 1 / 0",
                "SELECT nothing",
                set[0],
                set[1],
                set[0],
                set[1],
                set[0],
            ],
            &[set[0], set[1], set[0], set[1], set[0], set[1]],
            &["SELECT 1 / 0", &long],
            &[&long],
            &[
                "SELECT 1 UNION SELECT 2 UNION SELECT 3",
                "SELECT nothing",
                "PING",
            ],
            &[
                "SELECT 1 UNION SELECT 2 UNION SELECT 3",
                "SELECT nothing",
                "PING",
                "SELECT nothing",
            ],
            &[
                "SELECT 1 UNION SELECT 2 UNION SELECT 3",
                "SELECT nothing",
                "PING",
                set[0],
            ],
            &["SELECT @@last_insert_id"],
            &[set[0], "SELECT nothing", set[1]],
            &[set[0], "SELECT @a UNION SELECT 2"],
            &[set[0], "SELECT @a := 3 UNION SELECT 2", set[1]],
            &[TAIL, "SELECT 1", set[0], TAIL, set[1]],
        ];
        for between in between {
            for asked in asked {
                twin.run("SET @a = 3");
                twin.run("CALL fetch_timeline_ids(1)");
                for statement in *between {
                    match *statement {
                        "PING" => drop(twin.command(&[COM_PING])),
                        statement => drop(twin.run(statement)),
                    }
                }
                twin.run(asked);
                look(&mut twin);
            }
        }
        stage.owned((between.len() * asked.len()) as u64);
    });
}

/// What double quotes stand for is the session's mode's.
#[test]
fn a_call_with_digits_in_double_quotes_is_owned_where_they_are_a_string() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        let calls = [
            "CALL fetch_timeline_ids(\"1\")",
            "CALL fetch_timeline_ids2(\"002\", '300')",
            "CALL fetch_timeline_ids2(@reader, \"300\")",
            "CALL fetch_timeline_ids2(\"1\", \"0\"); SELECT id FROM fetch_timeline_tt LIMIT 0",
        ];
        twin.run("SET @reader = 1");
        for call in calls {
            twin.run(call);
            twin.run("SELECT ROW_COUNT(), FOUND_ROWS()");
            twin.run("SHOW WARNINGS");
            look(&mut twin);
        }
        stage.owned(calls.len() as u64);
        for mode in [
            "'ANSI_QUOTES'",
            "'ANSI'",
            "CONCAT(@@sql_mode, ',ANSI_QUOTES')",
        ] {
            twin.run(&format!("SET sql_mode = {mode}"));
            for call in calls {
                twin.run(call);
                twin.run("SHOW WARNINGS");
                twin.run("SELECT ROW_COUNT(), FOUND_ROWS(), @@error_count");
                look(&mut twin);
            }
            twin.run("SET sql_mode = DEFAULT");
            twin.run(calls[0]);
            look(&mut twin);
        }
        stage.owned(calls.len() as u64 + 3);
        // A prepared one means what its quotes meant when it was prepared.
        let bounded = twin.prepare("CALL fetch_timeline_ids2(\"1\", ?)");
        let newest = twin.prepare("CALL fetch_timeline_ids(\"1\")");
        let modes = ["''", "'ANSI_QUOTES'"];
        for (then, now) in modes
            .into_iter()
            .flat_map(|then| modes.map(|now| (then, now)))
        {
            twin.run(&format!("SET sql_mode = {then}"));
            twin.run("PREPARE s FROM 'CALL fetch_timeline_ids(\"1\")'");
            twin.run(&format!("SET sql_mode = {now}"));
            twin.run("EXECUTE s");
            look(&mut twin);
            twin.execute(bounded, &[Some("300")]);
            look(&mut twin);
            twin.execute(newest, &[]);
            look(&mut twin);
        }
        stage.owned(calls.len() as u64 + 3);
    });
}

#[test]
fn what_a_variable_becomes_later_does_not_change_the_call() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("SET @reader = 1");
        twin.run("CALL fetch_timeline_ids(@reader)");
        twin.run("SET @reader = 2");
        look(&mut twin);
        twin.run("SET @reader = 1");
        twin.run("CALL fetch_timeline_ids(@reader)");
        twin.run("SELECT @reader := 2, FOUND_ROWS()");
        twin.run("SHOW WARNINGS");
        look(&mut twin);
        stage.owned(2);
    });
}

#[test]
fn a_call_prepared_by_name_is_owned() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("PREPARE s FROM 'CALL fetch_timeline_ids(?)'");
        twin.run("PREPARE `T` FROM 'CALL fetch_timeline_ids2(?, ?)'");
        twin.run("PREPARE u FROM 'CALL fetch_timeline_ids(2);'");
        twin.run("SET @a = 1, @b = 300");
        for _ in 0..2 {
            twin.run("EXECUTE S USING @a");
            look(&mut twin);
            twin.run("EXECUTE t USING @a, @b");
            twin.run("SELECT ROW_COUNT()");
            twin.run("SELECT COUNT(*) FROM max_ids_of_followers");
            look(&mut twin);
            twin.run("EXECUTE u");
            look(&mut twin);
        }
        stage.owned(6);
        // Too few and too many.
        for wrong in [
            "EXECUTE s",
            "EXECUTE s USING @a, @b",
            "EXECUTE u USING @a",
            "EXECUTE t USING @a",
        ] {
            twin.run(wrong);
            look(&mut twin);
        }
        stage.owned(6);
    });
}

#[test]
fn a_name_may_come_to_mean_something_else() {
    on_each_stage(|stage| {
        for other in [
            "PREPARE s FROM 'SELECT ?, 2'",
            "PREPARE s FROM \"SELECT ?, 3\"",
            "PREPARE s FROM @text",
            "PREPARE s FROM 'no such statement'",
            "DEALLOCATE PREPARE s",
            "DROP PREPARE s",
            "CALL changes()",
            "PREPARE other FROM 'SELECT 1'; PREPARE s FROM 'SELECT ?, 4'",
        ] {
            let mut twin = stage.twin();
            twin.run("DROP PROCEDURE IF EXISTS changes");
            twin.run("CREATE PROCEDURE changes() PREPARE s FROM 'SELECT ?, 5'");
            twin.run("SET @a = 1, @text = 'SELECT ?, 6'");
            twin.run("PREPARE s FROM 'CALL fetch_timeline_ids(?)'");
            twin.run("EXECUTE s USING @a");
            look(&mut twin);
            twin.run(other);
            twin.run("EXECUTE s USING @a");
            look(&mut twin);
        }
        stage.owned(8);
    });
}

#[test]
fn a_statement_prepared_by_name_calls_what_was_meant_then() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("SET @a = 1");
        twin.run("CALL fetch_timeline_ids(2)");
        twin.run("PREPARE s FROM 'CALL fetch_timeline_ids(?)'");
        twin.run("USE information_schema");
        twin.run("EXECUTE s USING @a");
        twin.run("PREPARE t FROM 'CALL fetch_timeline_ids(?)'");
        twin.run("SELECT COUNT(*) FROM {db}.fetch_timeline_tt");
        twin.run("USE {db}");
        twin.run("EXECUTE s USING @a");
        look(&mut twin);
        twin.run("BEGIN");
        twin.run("EXECUTE s USING @a");
        twin.run("COMMIT");
        twin.run("EXECUTE s USING @a");
        look(&mut twin);
        stage.owned(3);
        // A procedure that is not the known one may have prepared others by these names.
        twin.run("EXECUTE t USING @a");
        twin.run("EXECUTE s USING @a");
        look(&mut twin);
        stage.owned(3);
    });
}
