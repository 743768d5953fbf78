//! The application's own statements between calls and follow-up SELECTs: most concern neither.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::stage::{TAIL, on_each_stage_with};
use crate::kit::proxy::settings_file;
use crate::kit::wire_client::COM_PING;

const CALL: &str = "CALL fetch_timeline_ids(1)";
const OTHERS: &[&str] = &[
    "SELECT body FROM message WHERE id = 4",
    "SELECT COUNT(*) FROM follower WHERE user_id = 1",
    "SELECT 1 FROM note WHERE 0",
    "SELECT body + 1 FROM message WHERE id = 6",
    "SELECT nothing FROM note",
    "SELECT SQL_CALC_FOUND_ROWS id FROM message LIMIT 3",
];
const QUESTIONS: &[&str] = &[
    "SELECT ROW_COUNT(), FOUND_ROWS()",
    "SHOW WARNINGS",
    "SELECT @@warning_count",
    "SET @rows = FOUND_ROWS()",
    "INSERT INTO note (body) VALUES (ROW_COUNT())",
    "SHOW ERRORS",
];
const LOOKS: &[&str] = &[
    TAIL,
    "SELECT COUNT(*) FROM fetch_timeline_tt",
    "SELECT id FROM fetch_timeline_tt ORDER BY id",
    "BEGIN",
    "SET autocommit = 0",
    "SELECT * FROM message ORDER BY id LIMIT 2 INTO @a, @b, @c",
];

/// Stored functions concern the whole server, and these tests share a server.
static FUNCTIONS: Mutex<()> = Mutex::new(());

#[test]
fn statements_in_between_leave_calls_and_tails_as_they_are() {
    let _none = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    // The check at the start holds to the end of the test.
    let (_folder, settings) = settings_file("[limits]\nrecheck_ms = 3600000\n");
    on_each_stage_with(&["--config", &settings], |stage| {
        for other in OTHERS {
            for (question, look) in QUESTIONS.iter().zip(LOOKS) {
                let mut twin = stage.twin();
                for call in [CALL, "CALL fetch_timeline_ids2(1, 300)", CALL] {
                    twin.run(call);
                    twin.run(other);
                    twin.run(look);
                    twin.run(other);
                    twin.run("SELECT @rows");
                    twin.run("ROLLBACK");
                    twin.run("SET autocommit = 1");
                    twin.run(call);
                    twin.run(TAIL);
                    twin.run(other);
                    twin.run(question);
                    twin.run(question);
                    twin.run(call);
                    twin.run(other);
                    twin.command(&[COM_PING]);
                    twin.run(question);
                    twin.run(look);
                    twin.run("ROLLBACK");
                    twin.run("SET autocommit = 1");
                }
            }
        }
    });
}

/// Without stored functions, a SELECT of other tables does not make Headwater write the result table. With some, any
/// SELECT may run one, and that may read any table.
#[test]
fn a_select_does_not_have_the_table_written_unless_a_function_may_look() {
    let _own = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    // During a new check of the definitions, Headwater does not know whether there are functions.
    let (_folder, settings) = settings_file("[limits]\nrecheck_ms = 3600000\n");
    on_each_stage_with(&["--config", &settings], |stage| {
        let mut twin = stage.twin();
        let mut written_by_calls = || {
            let before = stage.proxy.counts();
            for _ in 0..10 {
                twin.run(CALL);
                twin.run("SELECT body FROM message WHERE id = 4");
                twin.run(TAIL);
                twin.run("SELECT COUNT(*) FROM follower WHERE user_id = 1");
            }
            let counts = stage.proxy.counts();
            let more = |name| counts.of(name) - before.of(name);
            assert_eq!(more("calls_owned"), 10, "{counts:?}");
            more("tables_written")
        };
        // When Headwater starts to follow the log, it checks everything again.
        let is_quiet = (0..20).any(|_| {
            written_by_calls() == 0 || {
                thread::sleep(Duration::from_secs(1));
                false
            }
        });
        assert!(is_quiet, "{}", stage.proxy.log());

        twin.run(CALL);
        twin.run(
            "CREATE FUNCTION pending() RETURNS int READS SQL DATA \
             RETURN (SELECT COUNT(*) FROM fetch_timeline_tt)",
        );
        twin.run(
            "CREATE FUNCTION settles() RETURNS int NO SQL BEGIN SET SESSION sql_safe_updates = 1; \
             RETURN 1; END",
        );
        twin.run("CREATE VIEW counted AS SELECT pending() AS rows_there");
        for look in [
            "SELECT pending()",
            "SELECT rows_there FROM counted",
            "SELECT settles() FROM note",
            "SELECT body FROM message WHERE id = 4",
        ] {
            for _ in 0..2 {
                twin.run(CALL);
                twin.run(look);
                twin.run(TAIL);
                twin.run("CALL fetch_timeline_ids2(1, 300)");
                twin.run(TAIL);
                twin.run("SELECT @@sql_safe_updates");
                twin.run("SET sql_safe_updates = 0");
            }
        }
        twin.run("DROP VIEW counted");
        twin.run("DROP FUNCTION pending");
        twin.run("DROP FUNCTION settles");
    });
}
