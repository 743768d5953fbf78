//! Accounts that may do less.

use std::thread::sleep;
use std::time::Duration;

use super::stage::{TAIL, on_each_stage};
use crate::kit::twin::Twin;

#[track_caller]
fn pages(twin: &mut Twin) {
    for _ in 0..3 {
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        twin.run("CALL fetch_timeline_ids2(1, 300)");
        twin.run(TAIL);
        twin.run("SELECT COUNT(*) FROM fetch_timeline_tt");
        twin.run_unordered("SELECT * FROM max_ids_of_followers");
        twin.run("CALL build_max_ids_of_followers(1, 200)");
        twin.run_unordered("SELECT * FROM max_ids_of_followers");
    }
}

#[test]
fn every_account_gets_what_its_rights_allow() {
    on_each_stage(|stage| {
        for privileges in [
            "EXECUTE",
            "SELECT",
            "SELECT, EXECUTE",
            "SELECT, EXECUTE, CREATE TEMPORARY TABLES",
            "SELECT, INSERT, UPDATE, DELETE, EXECUTE, CREATE TEMPORARY TABLES",
            "EXECUTE, CREATE TEMPORARY TABLES",
            "SELECT, EXECUTE, LOCK TABLES, INSERT, DELETE",
            "ALL",
        ] {
            let login = stage.account(privileges);
            eprintln!("{privileges}");
            pages(&mut stage.twin_of(&login));
        }
        if stage.service {
            let counts = stage.proxy.counts();
            assert!(counts.of("calls_owned") >= 20, "{counts:?}");
        }
    });
}

#[test]
fn without_execute_it_is_1370() {
    on_each_stage(|stage| {
        let login = stage.account("SELECT, CREATE TEMPORARY TABLES");
        let mut twin = stage.twin_of(&login);
        assert_eq!(twin.error("CALL fetch_timeline_ids(1)"), 1370);
        assert_eq!(twin.error("CALL fetch_timeline_ids2(1, 20)"), 1370);
        let helper = "CALL build_max_ids_of_followers(1, 20)";
        assert_eq!(twin.error(helper), 1370);
        stage.owned(0);
    });
}

#[test]
fn execute_on_one_procedure_is_no_leave_for_the_other() {
    on_each_stage(|stage| {
        let login = stage.account("SELECT");
        let user = &login.user.clone();
        stage.aside(&format!(
            "GRANT EXECUTE ON PROCEDURE {{db}}.fetch_timeline_ids TO {user}@'%'"
        ));
        let mut twin = stage.twin_of(&login);
        twin.run("CALL fetch_timeline_ids(1)");
        twin.run(TAIL);
        assert_eq!(twin.error("CALL fetch_timeline_ids2(1, 20)"), 1370);
        let helper = "CALL build_max_ids_of_followers(1, 20)";
        assert_eq!(twin.error(helper), 1370);
        twin.run("CALL fetch_timeline_ids(2)");
        twin.run(TAIL);
    });
}

#[test]
fn a_right_taken_away_in_mid_session_is_missed_soon() {
    on_each_stage(|stage| {
        let login = stage.account("SELECT, CREATE TEMPORARY TABLES");
        let user = &login.user.clone();
        for procedure in ["fetch_timeline_ids", "fetch_timeline_ids2"] {
            stage.aside(&format!(
                "GRANT EXECUTE ON PROCEDURE {{db}}.{procedure} TO {user}@'%'"
            ));
        }
        let mut twin = stage.twin_of(&login);
        pages(&mut twin);
        stage.aside(&format!(
            "REVOKE EXECUTE ON PROCEDURE {{db}}.fetch_timeline_ids FROM {user}@'%'"
        ));
        // Longer than privileges.ttl_s.
        sleep(Duration::from_millis(1_200));
        assert_eq!(twin.error("CALL fetch_timeline_ids(1)"), 1370);
        twin.run("CALL fetch_timeline_ids2(1, 300)");
        twin.run(TAIL);
    });
}

#[test]
fn select_on_a_table_taken_away_leaves_the_procedure() {
    on_each_stage(|stage| {
        let login = stage.account("EXECUTE, CREATE TEMPORARY TABLES");
        let user = &login.user.clone();
        for table in ["message", "follower"] {
            stage.aside(&format!("GRANT SELECT ON {{db}}.{table} TO {user}@'%'"));
        }
        let mut twin = stage.twin_of(&login);
        pages(&mut twin);
        stage.aside(&format!("REVOKE SELECT ON {{db}}.follower FROM {user}@'%'"));
        pages(&mut twin);
        stage.aside(&format!("REVOKE SELECT ON {{db}}.message FROM {user}@'%'"));
        pages(&mut twin);
    });
}

#[test]
fn a_column_that_the_account_may_not_read_stays_hidden() {
    on_each_stage(|stage| {
        let login = stage.account("EXECUTE, CREATE TEMPORARY TABLES");
        let user = &login.user.clone();
        stage.aside(&format!("GRANT SELECT ON {{db}}.follower TO {user}@'%'"));
        stage.aside(&format!(
            "GRANT SELECT (id, user_id) ON {{db}}.message TO {user}@'%'"
        ));
        let mut twin = stage.twin_of(&login);
        twin.run("CALL fetch_timeline_ids(1)");
        assert_eq!(twin.error(TAIL), 1143);
        twin.run(&TAIL.replace(",body", ""));
        stage.aside(&format!(
            "REVOKE SELECT (id, user_id) ON {{db}}.message FROM {user}@'%'"
        ));
        stage.aside(&format!(
            "GRANT SELECT (user_id) ON {{db}}.message TO {user}@'%'"
        ));
        pages(&mut twin);
    });
}

/// What an account may do can change within a session.
#[test]
fn a_role_that_is_laid_down_takes_its_rights_along() {
    on_each_stage(|stage| {
        let login = stage.account("SELECT");
        let role = format!("{}_role", login.user);
        let mut root = stage.server.connect();
        root.ok(&format!("CREATE ROLE {role}"));
        stage.aside(&format!(
            "GRANT EXECUTE, CREATE TEMPORARY TABLES ON {{db}}.* TO {role}"
        ));
        root.ok(&format!("GRANT {role} TO {}@'%'", login.user));
        // An account that may see the bodies comes first.
        stage.twin().run("CALL fetch_timeline_ids(1)");
        let mut twin = stage.twin_of(&login);
        for _ in 0..2 {
            assert_eq!(twin.error("CALL fetch_timeline_ids(1)"), 1370);
            twin.run(&format!("SET ROLE {role}"));
            twin.run("CALL fetch_timeline_ids(1)");
            twin.run(TAIL);
            twin.run("SET ROLE NONE");
        }
        stage.owned(3);
        root.ok(&format!("DROP ROLE {role}"));
    });
}
