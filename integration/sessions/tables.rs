//! Temporary tables that hide others, table locks, and what a client does to the result table.

use super::stage::{TAIL, on_each_stage};

const IDS: &str = "SELECT id FROM fetch_timeline_tt";
const HEADS: &str = "SELECT * FROM max_ids_of_followers";

#[test]
fn a_temporary_table_that_hides_message_is_what_the_procedure_reads() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("CREATE TEMPORARY TABLE message (id int unsigned NOT NULL PRIMARY KEY, user_id int unsigned NOT NULL, body varchar(255) NOT NULL, KEY user_id_id (user_id, id))");
        twin.run("INSERT INTO message VALUES (7, 2, 'hidden')");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        twin.run("DROP TEMPORARY TABLE message");
        twin.run(TAIL);
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        stage.owned(1);
    });
}

#[test]
fn a_temporary_table_made_between_call_and_tail_hides_message_from_the_tail() {
    on_each_stage(|stage| {
        for table in ["message", "follower"] {
            let mut twin = stage.twin();
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(&format!("CREATE TEMPORARY TABLE {table} LIKE {table}"));
            twin.run(TAIL);
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(TAIL);
            twin.run("CALL fetch_timeline_ids2(1, 400)");
            twin.run(TAIL);
            twin.run(&format!("DROP TABLE {table}"));
            twin.run("CALL fetch_timeline_ids2(1, 400)");
            twin.run(TAIL);
        }
    });
}

#[test]
fn a_result_table_of_the_clients_own_keeps_its_form() {
    on_each_stage(|stage| {
        for columns in [
            "(id bigint NOT NULL PRIMARY KEY)",
            "(id int unsigned NOT NULL)",
            "(id int unsigned NOT NULL PRIMARY KEY, at timestamp NULL)",
            "(id int unsigned NOT NULL PRIMARY KEY) ENGINE=InnoDB",
            "(nothing int)",
            "(id tinyint unsigned NOT NULL PRIMARY KEY)",
            "(id int unsigned NOT NULL PRIMARY KEY) ENGINE=MEMORY DEFAULT CHARSET=latin1 COMMENT 'mine'",
            "(id int unsigned NOT NULL PRIMARY KEY COMMENT 'x') ENGINE=MEMORY MAX_ROWS=5",
            "(id int unsigned NOT NULL DEFAULT 7 PRIMARY KEY) ENGINE=MEMORY",
            "(ID int unsigned NOT NULL PRIMARY KEY) ENGINE=MEMORY",
            "(id int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=MEMORY",
        ] {
            let mut twin = stage.twin();
            twin.run(&format!(
                "CREATE TEMPORARY TABLE fetch_timeline_tt {columns}"
            ));
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run_unordered("SELECT * FROM fetch_timeline_tt");
            twin.run(TAIL);
            twin.run("CALL fetch_timeline_ids2(1, 300)");
            twin.run(TAIL);
            twin.run("SHOW CREATE TABLE fetch_timeline_tt");
            twin.run("DROP TABLE fetch_timeline_tt");
            twin.run("CALL fetch_timeline_ids(2)");
            twin.run("ALTER TABLE fetch_timeline_tt ADD COLUMN more int");
            twin.run("SELECT COUNT(more), COUNT(*) FROM fetch_timeline_tt");
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(TAIL);
        }
    });
}

#[test]
fn a_heads_table_of_the_clients_own_keeps_its_form() {
    on_each_stage(|stage| {
        for columns in [
            "(user_id bigint unsigned NOT NULL, max_id bigint unsigned NOT NULL) ENGINE=MEMORY",
            "(user_id int unsigned NOT NULL, max_id int unsigned NOT NULL, KEY (max_id)) ENGINE=MEMORY",
            "(user_id int unsigned, max_id int unsigned) ENGINE=MEMORY",
            "(max_id int unsigned NOT NULL, user_id int unsigned NOT NULL) ENGINE=MEMORY",
        ] {
            let mut twin = stage.twin();
            twin.run(&format!(
                "CREATE TEMPORARY TABLE max_ids_of_followers {columns}"
            ));
            twin.run("CALL fetch_timeline_ids2(1, 300)");
            twin.run(TAIL);
            twin.run_unordered(HEADS);
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(TAIL);
            twin.run_unordered(HEADS);
            twin.run("CALL build_max_ids_of_followers(1, 200)");
            twin.run_unordered(HEADS);
        }
    });
}

#[test]
fn a_permanent_result_table_shows_through_until_the_temporary_one_is_there() {
    on_each_stage(|stage| {
        stage.aside(
            "CREATE TABLE {db}.fetch_timeline_tt (id int unsigned NOT NULL PRIMARY KEY, kept int)",
        );
        stage.aside("INSERT INTO {db}.fetch_timeline_tt VALUES (4, 4), (6, 6)");
        let mut twin = stage.twin();
        twin.run(TAIL);
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        twin.run("SELECT COUNT(*) FROM fetch_timeline_tt");
        twin.run("CALL fetch_timeline_ids2(1, 200)");
        twin.run("DROP TEMPORARY TABLE IF EXISTS fetch_timeline_tt");
        twin.run("SELECT * FROM fetch_timeline_tt");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
    });
}

#[test]
fn whatever_a_client_does_to_the_result_table_the_next_call_counts_it() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        for change in [
            "DELETE FROM fetch_timeline_tt ORDER BY id LIMIT 3",
            "DELETE FROM fetch_timeline_tt",
            "TRUNCATE TABLE fetch_timeline_tt",
            "INSERT INTO fetch_timeline_tt VALUES (3), (5)",
            "UPDATE fetch_timeline_tt SET id = 1 ORDER BY id LIMIT 1",
            "DROP TABLE fetch_timeline_tt",
            "DROP TEMPORARY TABLE fetch_timeline_tt, max_ids_of_followers",
            "DROP TEMPORARY TABLE IF EXISTS nothing_such",
            "REPLACE INTO fetch_timeline_tt SELECT id FROM message LIMIT 4",
            "ALTER TABLE fetch_timeline_tt RENAME TO renamed",
            "DELETE fetch_timeline_tt FROM fetch_timeline_tt JOIN message USING(id) WHERE user_id = 2",
            "INSERT INTO max_ids_of_followers VALUES (1, 1), (1, 2)",
            "DELETE FROM max_ids_of_followers",
            "DROP TABLE max_ids_of_followers",
            "CREATE TABLE copied AS SELECT * FROM fetch_timeline_tt",
            "INSERT INTO note (body) SELECT id FROM fetch_timeline_tt",
        ] {
            for next in [
                "CALL fetch_timeline_ids(2)",
                "CALL fetch_timeline_ids2(2, 300)",
                "CALL build_max_ids_of_followers(2, 300)",
            ] {
                for before in [
                    "CALL fetch_timeline_ids(1)",
                    "CALL fetch_timeline_ids2(1, 400)",
                    "CALL build_max_ids_of_followers(1, 400)",
                ] {
                    twin.run(before);
                    twin.run(change);
                    twin.run_unordered(IDS);
                    twin.run(before);
                    twin.run(change);
                    twin.run(next);
                    twin.run(TAIL);
                    twin.run_unordered(IDS);
                    twin.run_unordered(HEADS);
                }
            }
            twin.run("DROP TABLE IF EXISTS copied, renamed");
        }
        let counts = stage.proxy.counts();
        assert!(counts.of("calls_owned") > 150, "{counts:?}");
    });
}

#[test]
fn table_locks_have_the_effect_that_they_have_on_the_procedure() {
    on_each_stage(|stage| {
        for locked in [
            "note READ",
            "message READ, follower READ",
            "message WRITE, follower WRITE",
            "message READ",
            "message READ, follower READ, message m READ, message hw_m READ, follower hw_f READ",
        ] {
            for first in [true, false] {
                let mut twin = stage.twin();
                if first {
                    twin.run("CALL fetch_timeline_ids(1)");
                }
                twin.run(&format!("LOCK TABLES {locked}"));
                twin.run("CALL fetch_timeline_ids(1)");
                twin.run(TAIL);
                twin.run("CALL fetch_timeline_ids2(1, 300)");
                twin.run(TAIL);
                twin.run("UNLOCK TABLES");
                twin.run("CALL fetch_timeline_ids(1)");
                twin.run(TAIL);
            }
        }
        let counts = stage.proxy.counts();
        // The second of each pair is not known to be under locks where the first met an error.
        assert!(counts.of("calls_relayed[table_locks]") >= 10, "{counts:?}");
    });
}

#[test]
fn a_lock_between_call_and_tail_is_met_by_the_tail() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        for locked in [
            "note READ",
            "message READ",
            "fetch_timeline_tt READ, message READ",
        ] {
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(&format!("LOCK TABLES {locked}"));
            twin.run(TAIL);
            twin.run_unordered(IDS);
            twin.run("UNLOCK TABLES");
            twin.run(TAIL);
        }
    });
}

/// The helper fills one table and leaves the other; a page that comes next finds either.
#[test]
fn the_helper_called_by_itself_leaves_the_result_table_alone() {
    on_each_stage(|stage| {
        const CALLS: [&str; 5] = [
            "CALL fetch_timeline_ids(1)",
            "CALL fetch_timeline_ids2(1, 300)",
            "CALL build_max_ids_of_followers(1, 200)",
            "CALL build_max_ids_of_followers(2, 400)",
            "CALL build_max_ids_of_followers(3, 400)",
        ];
        let mut twin = stage.twin();
        twin.run(CALLS[2]);
        twin.run_unordered(HEADS);
        twin.run(IDS);
        twin.run(TAIL);
        let mut calls = 1;
        // Each order of three, with nothing between that would have the tables written.
        for first in CALLS {
            for second in CALLS {
                for third in CALLS {
                    for call in [first, second, third] {
                        twin.run(call);
                    }
                    twin.run(TAIL);
                    twin.run_unordered(HEADS);
                    twin.run_unordered(IDS);
                    calls += 3;
                }
                // What is counted is the last one's, which runs again behind those it came after.
                for call in [first, second] {
                    twin.run(call);
                }
                twin.run("SELECT ROW_COUNT(), FOUND_ROWS()");
                twin.run_unordered(HEADS);
                twin.run_unordered(IDS);
                calls += 2;
            }
        }
        stage.owned(calls);
    });
}

#[test]
fn explain_describe_and_show_see_the_result_table() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        for question in [
            "EXPLAIN SELECT COUNT(*) FROM fetch_timeline_tt",
            "DESCRIBE fetch_timeline_tt",
            "SHOW COLUMNS FROM fetch_timeline_tt",
            "SHOW CREATE TABLE fetch_timeline_tt",
            "SHOW CREATE TABLE max_ids_of_followers",
            "SHOW INDEX FROM fetch_timeline_tt",
            "SHOW TABLES",
            "SHOW TABLES LIKE 'fetch%'",
            "CHECK TABLE fetch_timeline_tt",
            "SELECT table_name FROM information_schema.tables WHERE table_name = 'fetch_timeline_tt'",
            "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()",
            "CREATE TEMPORARY TABLE fetch_timeline_tt (id int)",
            "CREATE TEMPORARY TABLE IF NOT EXISTS fetch_timeline_tt (id int)",
            "CREATE TEMPORARY TABLE IF NOT EXISTS max_ids_of_followers (id int)",
            "ALTER TABLE fetch_timeline_tt ADD KEY (id)",
        ] {
            twin.run("CALL fetch_timeline_ids2(1, 400)");
            twin.run(question);
            // Written by Headwater, where it was the procedure's above.
            twin.run("CALL fetch_timeline_ids2(1, 300)");
            twin.run("SELECT COUNT(*) FROM fetch_timeline_tt");
            twin.run("SHOW CREATE TABLE fetch_timeline_tt");
            twin.run("SHOW CREATE TABLE max_ids_of_followers");
            twin.run_unordered(IDS);
        }
    });
}
