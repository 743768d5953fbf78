//! Who may not execute the procedure learns nothing from memory either.

use std::thread;
use std::time::Duration;

use super::warm;
use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_each_quiet_server;

const DENIED: u16 = 1370;

#[test]
fn a_right_that_is_taken_away_is_gone_within_its_ttl() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "rights");
        let mut root = database.connect();
        root.ok("INSERT INTO follower VALUES (1, 2)");
        root.ok("INSERT INTO message (id, user_id, body) VALUES (10, 2, 'ten')");
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
        let before = proxy.counts().of("calls_from_memory");
        client.ok("CALL fetch_timeline_ids(1)");
        assert_eq!(client.column(tail), ["10"]);
        assert!(
            proxy.counts().of("calls_from_memory") > before,
            "{}",
            proxy.log()
        );
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
