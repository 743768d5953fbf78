//! Changes that the log does not contain as rows: statements instead of rows, and changes while no stream ran.

use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::ServerKind;

use super::CLASSIC;
use super::stage::{CALL, Stage, page, post};
use super::warm;
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::WireClient;

/// Statements whose text does not show that they change the tables.
#[test]
fn statements_that_change_rows_by_a_function_or_a_trigger_are_noticed_where_a_session_logs_them() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let made = [
                "CREATE TABLE other (a int)",
                "INSERT INTO other VALUES (1)",
                "CREATE FUNCTION write_one(id int) RETURNS int DETERMINISTIC MODIFIES SQL DATA BEGIN \
                 INSERT INTO message VALUES (id, 2, 'by a function'); RETURN id; END",
                "CREATE TRIGGER too BEFORE UPDATE ON other FOR EACH ROW \
                 INSERT INTO message VALUES (NEW.a, 2, 'by a trigger')",
            ];
            let mut stage = Stage::new(server.addr(), &made, "");
            let mut session = WireClient::login(server.addr(), &stage.login);
            session.ok("SET SESSION binlog_format = STATEMENT");
            for (id, statement, on_mysql) in [
                (100, "CREATE TABLE filled AS SELECT write_one(100)", 1746),
                (101, "ANALYZE UPDATE other SET a = 101", 1064),
                (
                    102,
                    "CREATE OR REPLACE TABLE filled AS VALUES (write_one(102))",
                    1064,
                ),
                (
                    103,
                    "CREATE /* view */ TABLE more AS SELECT write_one(103)",
                    1746,
                ),
            ] {
                warm(&stage.proxy, &mut stage.client, CALL);
                if server.kind() == ServerKind::Mysql {
                    assert_eq!(session.error(statement).code, on_mysql, "{statement}");
                    continue;
                }
                session.query(statement);
                let there = stage.root.column("SELECT MAX(id) FROM message");
                assert_eq!(there, [id.to_string()], "{statement}");
                assert_eq!(stage.page().last(), Some(&id), "{statement}");
            }
        },
    );
}

/// A table became a view while the stream was down: no statement that Headwater reads in the log shows it.
#[test]
fn a_table_that_was_replaced_while_nobody_listened_is_not_read_for_it() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut stage = Stage::new(server.addr(), &["CREATE TABLE noise (a int)"], "");
            let mut session = WireClient::login(server.addr(), &stage.login);
            session.ok("SET SESSION binlog_format = STATEMENT");
            // Each of these ends the stream, and the delay before the next attempt grows.
            let lost = || stage.proxy.log().matches("in place of row changes").count();
            for round in 0..4 {
                session.ok("INSERT INTO noise VALUES (1)");
                thread::sleep(Duration::from_millis(50 + 60 * (1 << round)));
            }
            assert!(lost() > 0, "{}", stage.proxy.log());
            session.ok("INSERT INTO noise VALUES (1)");
            thread::sleep(Duration::from_millis(100));
            stage.root.ok("RENAME TABLE message TO message_1");
            stage
                .root
                .ok("CREATE VIEW message AS SELECT * FROM message_1");
            // Until the stream is back.
            thread::sleep(Duration::from_millis(2_200));
            let begun = Instant::now();
            let mut id = 0;
            while begun.elapsed() < Duration::from_secs(5) {
                id += 1;
                stage
                    .root
                    .ok(&format!("INSERT INTO message_1 VALUES ({id}, 2, 'x')"));
                assert_eq!(stage.page().last(), Some(&id), "{}", stage.proxy.log());
                thread::sleep(Duration::from_millis(20));
            }
        },
    );
}

/// Two timelines over the same tables both receive the tables' changes.
#[test]
fn definitions_that_share_tables_share_what_is_told_of_them() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut stage = Stage::new(server.addr(), &[], "");
            // The classic procedures once more, with other names and a shorter page.
            for statement in
                headwater_lab::demo::script::statements(headwater_lab::demo::load::PROCEDURES)
            {
                let statement = statement
                    .replace("fetch_timeline_tt", "small_tt")
                    .replace("build_max_ids_of_followers", "build_small")
                    .replace("max_ids_of_followers", "small_heads")
                    .replace("fetch_timeline_ids", "fetch_small")
                    .replace("LIMIT 20", "LIMIT 10");
                stage.root.ok(&statement);
            }
            let settings = "[freshness]\nwait_ms = 10000\n[[definition]]\nname = 'classic'\n[[definition]]\nname = 'small'\nn = 10\n\
                            [definition.result]\ntable = 'small_tt'\n[definition.heads]\ntable = 'small_heads'\n\
                            [definition.procedures]\nnewest = 'fetch_small'\nbounded = 'fetch_small2'\nheads = 'build_small'\n";
            let proxy = Proxy::configured(server.addr(), settings, ROOT_SERVICE);
            proxy.wait_for_log(&format!(
                "definition small in database {CLASSIC}: accelerated"
            ));
            let mut client = proxy.login(&stage.login);
            warm(&proxy, &mut client, "CALL fetch_small(1)");
            warm(&proxy, &mut client, CALL);
            let before = proxy.counts().of("calls_from_memory");
            for id in 1..=50 {
                post(&mut stage.root, id);
                assert_eq!(page(&mut client).last(), Some(&id), "{}", proxy.log());
                client.ok("CALL fetch_small(1)");
                let newest = client.column("SELECT MAX(id) FROM small_tt");
                assert_eq!(newest, [id.to_string()], "{}", proxy.log());
            }
            let remembered = proxy.counts().of("calls_from_memory") - before;
            assert!(remembered >= 50, "{remembered} of 100 from memory");
        },
    );
}

/// Headwater soon notices a log that was reset, even if it grows to exactly its earlier length.
#[test]
fn a_log_that_begins_anew_and_is_as_long_as_before_is_noticed_soon() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut stage = Stage::new(server.addr(), &[], "");
            let reset = match server.kind() {
                ServerKind::Mariadb => "RESET MASTER",
                ServerKind::Mysql => "RESET BINARY LOGS AND GTIDS",
            };
            // The log begins with the same events each time.
            stage.root.ok(reset);
            stage.post(201);
            thread::sleep(Duration::from_millis(1_500));
            warm(&stage.proxy, &mut stage.client, CALL);
            assert!(stage.page().contains(&201));
            stage.root.ok(reset);
            stage.post(202);
            let deadline = patience();
            while !stage.page().contains(&202) {
                assert!(Instant::now() < deadline, "{}", stage.proxy.log());
                thread::sleep(Duration::from_millis(20));
            }
            warm(&stage.proxy, &mut stage.client, CALL);
            assert!(stage.page().contains(&202));
        },
    );
}
