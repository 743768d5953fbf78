//! Transactions, isolation levels, autocommit.

use super::stage::on_each_stage;
use super::transcripts::stories;

stories!(
    "transactions":
    a_transaction_that_an_error_ends_is_told_of_by_the_call,
    a_call_in_a_transaction_reads_in_its_snapshot_at_each_isolation_level,
    own_uncommitted_rows_are_on_the_page,
    a_transaction_begun_between_call_and_tail_and_rolled_back_keeps_the_page,
    a_read_only_transaction_refuses_the_procedure_as_ever,
    with_autocommit_off_a_call_begins_a_transaction,
    a_one_shot_set_transaction_falls_to_the_statement_that_would_have_had_it,
    savepoints_xa_and_locking_reads_are_relayed,
);

/// Why calls are relayed even where a transaction has only read so far: only the same reads leave the same locks.
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
