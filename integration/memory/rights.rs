//! A session without EXECUTE on the procedure gets nothing from memory; and what a service account with few rights can see.

use std::thread;
use std::time::Duration;

use super::warm;
use crate::kit::database::{Database, one_message};
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_each_quiet_server;

const DENIED: u16 = 1370;

#[test]
fn a_right_that_is_taken_away_is_gone_within_its_ttl() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "rights");
        let mut root = database.connect();
        one_message(&mut root);
        let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        let mut other = proxy.login(&database.login());
        warm(&proxy, &mut other, "CALL fetch_timeline_ids(1)");

        let login = database.account("SELECT", "");
        let procedure = format!("PROCEDURE {}.fetch_timeline_ids", database.name());
        root.ok(&format!(
            "GRANT EXECUTE ON {procedure} TO {}@'%'",
            login.user
        ));
        let mut client = proxy.login(&login);
        let tail = "SELECT message.id FROM message INNER JOIN fetch_timeline_tt USING(id) \
                    ORDER BY message.id DESC LIMIT 20";
        warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
        assert_eq!(client.column(tail), ["10"]);
        root.ok(&format!(
            "REVOKE EXECUTE ON {procedure} FROM {}@'%'",
            login.user
        ));
        // privileges.ttl_s is 1.
        thread::sleep(Duration::from_millis(1_100));
        assert_eq!(client.error("CALL fetch_timeline_ids(1)").code, DENIED);

        let mut never = proxy.login(&database.account("SELECT", ""));
        assert_eq!(never.error("CALL fetch_timeline_ids(1)").code, DENIED);
    });
}

/// Without the procedures, only the tables' own rights decide who may read their rows.
#[test]
fn where_there_is_no_procedure_memory_answers_nobody() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "absent");
        let mut root = database.connect();
        one_message(&mut root);
        for name in ["fetch_timeline_ids", "fetch_timeline_ids2"] {
            root.ok(&format!("DROP PROCEDURE {name}"));
        }
        let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        // A session that may read is answered by lookups.
        let mut other = proxy.login(&database.login());
        for _ in 0..20 {
            other.ok("CALL fetch_timeline_ids(1)");
            assert_eq!(other.column("SELECT id FROM fetch_timeline_tt"), ["10"]);
            thread::sleep(Duration::from_millis(20));
        }
        let mut client = proxy.login(&database.account("CREATE TEMPORARY TABLES", ""));
        for call in [
            "CALL fetch_timeline_ids(1)",
            "CALL fetch_timeline_ids2(1, 50)",
        ] {
            let reply = client.query_reply(call).unwrap();
            assert_eq!(reply.raw.get(4), Some(&0xff), "{call}");
        }
        assert_eq!(proxy.counts().of("calls_from_memory"), 0, "{}", proxy.log());
    });
}

/// MariaDB shows a foreign key's actions in `information_schema` only to accounts that may do more than read.
#[test]
fn a_foreign_key_that_acts_is_noticed_by_an_account_that_may_only_read() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "cascade");
        let mut root = database.connect();
        root.ok("CREATE TABLE author (id int unsigned NOT NULL PRIMARY KEY) ENGINE=InnoDB");
        root.ok("INSERT INTO author VALUES (2)");
        one_message(&mut root);
        root.ok(
            "ALTER TABLE message ADD CONSTRAINT of_author FOREIGN KEY (user_id) REFERENCES author (id) \
             ON DELETE CASCADE",
        );
        let service = database.account("SELECT", "");
        let bodies = if server.is_mariadb() {
            "SELECT ON mysql.proc"
        } else {
            "SHOW_ROUTINE ON *.*"
        };
        let follows = "REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.*";
        for right in [bodies, follows] {
            root.ok(&format!("GRANT {right} TO {}@'%'", service.user));
        }
        let proxy = Proxy::start(server.addr(), &["--service-user", &service.user]);
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        let mut client = proxy.login(&database.login());
        client.ok("CALL fetch_timeline_ids(1)");
        proxy.wait_for_log(
            "the foreign key `of_author` of `message` changes its rows by ON DELETE CASCADE",
        );
        root.ok("DELETE FROM author WHERE id = 2");
        client.ok("CALL fetch_timeline_ids(1)");
        assert!(client.column("SELECT id FROM fetch_timeline_tt").is_empty());
        assert_eq!(proxy.counts().of("calls_from_memory"), 0);
    });
}
