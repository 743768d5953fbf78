//! Rows that tie in the page's order may come in any order: that is no difference, but another row in their place is one.

use std::time::Instant;

use headwater_lab::private_server::ServerKind;

use super::{READERS, Verified, fill, start};
use crate::kit::database::Database;
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::{mariadb, mysql, on_servers_of_its_own};
use crate::kit::wire_client::{Login, WireClient};

const PAGE: &str =
    "SELECT id, body FROM message WHERE user_id IN (1, 2) ORDER BY posted DESC LIMIT 5";

/// Creates readers, and messages of which seven share each minute. In an index, the columns after the minute order these.
#[track_caller]
fn make(root: &mut WireClient, behind: &str) {
    root.ok("CREATE TABLE follower (user_id INT UNSIGNED NOT NULL, follower_id INT UNSIGNED NOT NULL, PRIMARY KEY (user_id, follower_id))");
    root.ok(&format!(
        "CREATE TABLE message (id INT UNSIGNED NOT NULL PRIMARY KEY, user_id INT UNSIGNED NOT NULL, body VARCHAR(100) NOT NULL, \
         posted DATETIME NOT NULL DEFAULT '2026-01-01', turned INT NOT NULL DEFAULT 0, KEY feed (user_id, posted{behind}))"
    ));
    fill(root);
    root.ok("INSERT INTO follower VALUES (900, 901)");
    root.ok("INSERT INTO message (id, user_id, body) VALUES (9000, 901, 'seen')");
    root.ok("UPDATE message SET turned = 100000 - id, posted = '2026-01-01' + INTERVAL id DIV 300 MINUTE");
}

/// Two servers with the same rows, one of them behind Headwater.
#[test]
fn rows_that_tie_may_come_in_another_order() {
    on_servers_of_its_own(
        |_| &[],
        |other| {
            let server = match other.kind() {
                ServerKind::Mysql => mysql().unwrap(),
                ServerKind::Mariadb => mariadb(),
            };
            let database = Database::empty(server, "verify_ties");
            let name = database.name();
            make(&mut database.connect(), "");
            WireClient::login(other.addr(), &Login::default())
                .ok(&format!("CREATE DATABASE {name}"));
            let mut root = WireClient::login(other.addr(), &database.login());
            make(&mut root, ", turned");
            let settings = format!(
                "[[feed]]\nname = \"home\"\ndatabase = \"{name}\"\n\
                 [feed.message]\ntable = \"message\"\nauthor = \"user_id\"\norder = [\"posted\", \"id\"]\n\
                 [feed.follow]\ntable = \"follower\"\nreader = \"user_id\"\nauthor = \"follower_id\"\n"
            );
            let proxy = Proxy::configured(other.addr(), &settings, ROOT_SERVICE);
            proxy.wait_for_log(&format!("feed home in database {name}: served"));
            let mut app = proxy.login(&database.login());
            let deadline = patience();
            loop {
                app.query(PAGE);
                let rows = app.rows("SHOW HEADWATER STATEMENTS");
                if rows.iter().any(|row| row[1].as_deref() == Some("home")) {
                    break;
                }
                assert!(Instant::now() < deadline, "{rows:?}");
            }
            let verify = || {
                let headwater = proxy.addr().to_string();
                let flags = ["--headwater", &headwater, "--only", "home"];
                let (_folder, child) = start(server.addr(), &settings, &flags);
                Verified::of(child.wait_with_output().unwrap())
            };
            let verified = verify();
            verified.is_equal();
            verified.says("IN (AUTHORS) ORDER BY posted DESC LIMIT 20");
            verified.says(" equal but for ties, 0 different");
            verified.says(" pages had ties: ");
            verified.says(&format!("{} answers compared: ", READERS + 1));
            root.ok("UPDATE message SET body = 'other' WHERE id = 9000");
            let verified = verify();
            assert_eq!(verified.status, 1);
            verified.says("DIFFERENCES: 1. ");
            verified.says(" equal but for ties, 1 different");
            verified.says(&format!("feed home, database {name}, reader 900"));
        },
    );
}
