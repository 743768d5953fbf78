//! Calls whose values are in user variables, and calls that PREPARE names.

use super::stage::{TAIL, look, on_each_stage};
use super::transcripts::stories;
use crate::kit::wire_client::COM_PING;

stories!(
    "variables":
    a_call_with_variables_is_owned_where_they_hold_numbers,
    a_call_with_variables_that_hold_something_else_is_the_servers,
    a_call_whose_values_are_set_right_before_it_is_owned_and_its_table_not_written,
    a_call_with_digits_in_double_quotes_is_owned_where_they_are_a_string,
    what_a_variable_becomes_later_does_not_change_the_call,
    a_call_prepared_by_name_is_owned,
    a_name_may_come_to_mean_something_else,
    a_statement_prepared_by_name_calls_what_was_meant_then,
);

/// The counts after a statement that sets variables depend in part on the statement before it.
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
