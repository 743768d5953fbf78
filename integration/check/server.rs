//! Unsuitable server settings: the report lists all at once, each with its remedy.

use super::{check, only_in};
use crate::kit::proxy::ROOT_SERVICE;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::WireClient;
use crate::memory::{CLASSIC, prepare};

const IN_THE_WAY: &str = "Settings of the server in the way";

#[test]
fn a_server_without_a_log_is_told_to_have_one() {
    on_servers_of_its_own(
        |_| &["--skip-log-bin"],
        |server| {
            prepare(server.addr());
            let checked = check(server.addr(), "", ROOT_SERVICE);
            assert_eq!(checked.status, 1);
            assert_eq!(checked.words(), ["lookups"; 3]);
            let found = checked.part(IN_THE_WAY);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with("log_bin = \"OFF\"") && found[0].contains("log_bin"));
            assert!(checked.missing().is_empty());
            // Without memory, no binary log is needed.
            let flags = [ROOT_SERVICE, &["--index-memory-bytes", "0"]].concat();
            let checked = check(server.addr(), "", &flags);
            assert_eq!(checked.status, 0);
            assert_eq!(checked.words(), ["lookups"; 3]);
            checked.says("index.memory_bytes  0: no memory");
            checked.says("Every call of every timeline is answered by lookups");
        },
    );
}

#[test]
fn everything_in_the_way_is_named_at_once() {
    on_servers_of_its_own(
        |mariadb| {
            if mariadb {
                &["--binlog-format=MIXED", "--binlog-ignore-db=elsewhere"]
            } else {
                &[
                    "--binlog-format=MIXED",
                    "--binlog-ignore-db=elsewhere",
                    "--binlog-order-commits=OFF",
                ]
            }
        },
        |server| {
            let login = prepare(server.addr());
            let checked = check(server.addr(), "", ROOT_SERVICE);
            assert_eq!(checked.status, 1);
            assert_eq!(checked.words(), ["lookups"; 3]);
            checked.says("binlog_format = \"MIXED\" on the server");
            checked.says("SET GLOBAL binlog_format = ROW");
            checked.says("the server's log is filtered (binlog_ignore_db = \"elsewhere\")");
            let mariadb = checked.report.contains("MariaDB");
            assert_eq!(checked.part(IN_THE_WAY).len(), if mariadb { 2 } else { 3 });
            if !mariadb {
                checked.says("binlog_order_commits = \"OFF\" on the server");
            }

            let mut root = WireClient::login(server.addr(), &login);
            root.ok("SET GLOBAL binlog_format = STATEMENT");
            root.ok("SET GLOBAL sql_safe_updates = 1");
            let checked = check(server.addr(), &only_in(CLASSIC), ROOT_SERVICE);
            assert_eq!(
                (checked.status, checked.words()),
                (1, vec!["relay", "relay", "relay"])
            );
            for name in ["binlog_format = \"STATEMENT\"", "sql_safe_updates = \"1\""] {
                checked.says(&format!(
                    "{name} on the server: calls of sessions that begin with it are relayed"
                ));
            }
        },
    );
}
