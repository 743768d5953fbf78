//! Transactions, isolation levels, autocommit.

use super::stage::{TAIL, on_each_stage};
use crate::kit::wire_client::{Login, capability};

const COUNT: &str = "SELECT COUNT(*), MIN(id), MAX(id) FROM fetch_timeline_tt";

/// What the server has to tell of a transaction waits behind an error for the next statement's answer.
#[test]
fn a_transaction_that_an_error_ends_is_told_of_by_the_call() {
    on_each_stage(|stage| {
        for capabilities in [0, capability::SESSION_TRACK] {
            for error in [
                "CREATE TABLE message (x int)",
                "DROP TABLE nothing_such",
                "LOCK TABLES nothing_such READ",
                "SELECT nothing_such",
                "SET autocommit = 1, nothing_such = 1",
            ] {
                for begin in ["BEGIN", "START TRANSACTION READ ONLY", "SET autocommit = 0"] {
                    let mut twin = stage.twin_of(&Login::default().with(capabilities));
                    twin.run("SELECT COUNT(*) FROM message");
                    twin.run(begin);
                    twin.run(error);
                    for _ in 0..3 {
                        twin.run("CALL fetch_timeline_ids(1)");
                        twin.run(COUNT);
                    }
                    twin.run("ROLLBACK");
                    twin.run("CALL fetch_timeline_ids(1)");
                    twin.run(TAIL);
                }
            }
        }
    });
}

#[test]
fn a_call_in_a_transaction_reads_in_its_snapshot_at_each_isolation_level() {
    on_each_stage(|stage| {
        for level in [
            "READ UNCOMMITTED",
            "READ COMMITTED",
            "REPEATABLE READ",
            "SERIALIZABLE",
        ] {
            let mut twin = stage.twin();
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run("START TRANSACTION");
            twin.run("SELECT COUNT(*) FROM message");
            if level != "SERIALIZABLE" {
                stage.aside("INSERT INTO {db}.message VALUES (1001, 2, 'later')");
            }
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(TAIL);
            twin.run("CALL fetch_timeline_ids2(1, 2000)");
            twin.run(TAIL);
            twin.run("COMMIT");
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(TAIL);
            stage.aside("DELETE FROM {db}.message WHERE id = 1001");
        }
        stage.owned(12);
    });
}

#[test]
fn own_uncommitted_rows_are_on_the_page() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("BEGIN");
        twin.run("INSERT INTO message VALUES (900, 2, 'uncommitted')");
        twin.run("CALL fetch_timeline_ids(1)");
        let page = twin.rows(TAIL);
        assert_eq!(page[0][0].as_deref(), Some("900"));
        twin.run("ROLLBACK");
        twin.run(COUNT);
        twin.run("CALL fetch_timeline_ids(1)");
        let page = twin.rows(TAIL);
        assert_eq!(page[0][0].as_deref(), Some("480"));
        stage.owned(1);
    });
}

#[test]
fn a_transaction_begun_between_call_and_tail_and_rolled_back_keeps_the_page() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        for (begin, end) in [
            ("BEGIN", "ROLLBACK"),
            ("START TRANSACTION READ ONLY", "COMMIT"),
            ("START TRANSACTION WITH CONSISTENT SNAPSHOT", "ROLLBACK"),
            ("SET autocommit = 0", "SET autocommit = 1"),
        ] {
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(begin);
            twin.run(TAIL);
            twin.run(COUNT);
            twin.run(end);
            twin.run(TAIL);
            twin.run("CALL fetch_timeline_ids2(1, 300)");
            twin.run(begin);
            twin.run(end);
            twin.run(COUNT);
            twin.run(TAIL);
        }
        stage.owned(8);
    });
}

#[test]
fn a_read_only_transaction_refuses_the_procedure_as_ever() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("START TRANSACTION READ ONLY");
        assert_eq!(twin.error("CALL fetch_timeline_ids(1)"), 1792);
        twin.run("COMMIT");
        twin.run("SET SESSION TRANSACTION READ ONLY");
        assert_eq!(twin.error("CALL fetch_timeline_ids(1)"), 1792);
        twin.run("SET SESSION TRANSACTION READ WRITE");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        stage.owned(1);
    });
}

#[test]
fn with_autocommit_off_a_call_begins_a_transaction() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("SET autocommit = 0");
        twin.run("SELECT COUNT(*) FROM message");
        // The snapshot is older than this row. (A call before it would have locked it out.)
        stage.aside("INSERT INTO {db}.message VALUES (1003, 2, 'later')");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        twin.run("COMMIT");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        twin.run("SET autocommit = 1");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        stage.owned(1);
    });
}

#[test]
fn a_one_shot_set_transaction_falls_to_the_statement_that_would_have_had_it() {
    on_each_stage(|stage| {
        for one_shot in [
            "SET TRANSACTION READ ONLY",
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET @@transaction_isolation = 'READ-COMMITTED'",
        ] {
            let mut twin = stage.twin();
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(one_shot);
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(TAIL);
            twin.run("CALL fetch_timeline_ids2(2, 400)");
            twin.run("BEGIN");
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run("COMMIT");
            twin.run("CALL fetch_timeline_ids(2)");
            twin.run(TAIL);

            // Between call and tail: the tail is the statement it is for.
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(one_shot);
            twin.run(TAIL);
            twin.run("BEGIN");
            twin.run("INSERT INTO note (body) VALUES ('may this be written')");
            twin.run("ROLLBACK");
        }
    });
}

#[test]
fn savepoints_xa_and_locking_reads_are_relayed() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run("BEGIN");
        twin.run("SAVEPOINT a");
        twin.run("CALL fetch_timeline_ids(2)");
        twin.run("ROLLBACK TO a");
        twin.run(COUNT);
        twin.run("COMMIT");
        twin.run("XA START 'timeline-{db}'");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        twin.run("XA END 'timeline-{db}'");
        twin.run("XA ROLLBACK 'timeline-{db}'");
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(&format!("{TAIL} FOR UPDATE"));
        twin.run(&format!("{TAIL} LOCK IN SHARE MODE"));
        twin.run(TAIL);
    });
}

/// Why calls are relayed even where a transaction has only read so far: nothing but the same reads leaves the same locks.
#[test]
fn a_call_in_a_transaction_reads_past_its_snapshot_and_keeps_what_it_read_locked() {
    on_each_stage(|stage| {
        let mut twin = stage.twin();
        twin.run("SET autocommit = 0");
        twin.run("SELECT COUNT(*) FROM message");
        stage.aside("INSERT INTO {db}.message VALUES (1001, 2, 'later')");
        twin.run("CALL fetch_timeline_ids(1)");
        let newest = twin.rows("SELECT MAX(id) FROM fetch_timeline_tt");
        assert_eq!(newest, [[Some("1001".to_owned())]]);
        assert_eq!(twin.rows("SELECT id FROM message WHERE id = 1001").len(), 0);
        stage.root.ok("SET SESSION innodb_lock_wait_timeout = 1");
        for database in &stage.databases {
            let delete = format!("DELETE FROM {}.message WHERE id = 1001", database.name());
            let error = stage.root.error(&delete);
            assert_eq!(error.code, 1205, "{error:?}");
        }
        twin.run("ROLLBACK");
        stage.aside("DELETE FROM {db}.message WHERE id = 1001");
        stage.owned(0);
        assert!(stage.proxy.counts().of("calls_relayed[in_transaction]") > 0);
    });
}
