//! Long, padded or oddly terminated statements on databases without timelines: memory survives them.

use headwater_lab::private_server::ServerKind;

use super::stage::{CALL, Stage, page, post};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Answer, WireClient};

/// Headwater logs this when memory has been emptied.
const EMPTIED: &str = "calls are not answered from memory";
/// The length of a comment.
const LONG: usize = 3 << 20;
/// How often a list of two megabytes renames a table there and back.
const RENAMED: usize = 50;

const MADE: &[&str] = &[
    "CREATE DATABASE aside",
    "INSERT INTO message (id, user_id, body) VALUES (50, 2, 'text')",
];

/// Statements of a user with a separate database; `{long}` stands for megabytes, `{some}` for slightly more than a
/// table's comment may have, `{list}` for many names of a RENAME TABLE.
const ASIDE: &[&str] = &[
    "CREATE TABLE aside.a (id int PRIMARY KEY, message int) COMMENT '{some}'",
    "CREATE TABLE b (id int PRIMARY KEY) COMMENT '{long}'",
    "CREATE TABLE c /* {long} */ (id int)",
    "CREATE /* {long} */ TABLE aside.d (id int)",
    "CREATE TABLE IF NOT EXISTS `e` (id int) /*! COMMENT '{long}' */",
    "CREATE OR REPLACE VIEW v AS SELECT '{some}' FROM a",
    "ALTER TABLE a COMMENT '{long}'",
    "ALTER TABLE aside.b ADD message int COMMENT '', COMMENT '{some}' /* {long} */",
    "CREATE INDEX message ON aside.b (id) /* {long} */",
    "DROP INDEX message ON b /* {long} */",
    "TRUNCATE b /* {long} */",
    "TRUNCATE /* {long} */ aside.b",
    "RENAME TABLE b /* {long} */ TO message, message TO b",
    "DROP TABLE IF EXISTS b /* {long} */",
    "CREATE TABLE `tl``` (id int) COMMENT '{long}'",
    "CREATE TABLE f COMMENT '{some}' AS SELECT id FROM a",
    "CREATE TABLE g LIKE a /* {long} */",
    "CREATE DATABASE third /* {long} */",
    "DROP DATABASE third /* {long} */",
    "CREATE TABLE h (id int) -- {long}",
    "RENAME TABLE {list} h TO i",
];

/// Ends of statements that both servers accept.
const ENDS: &[&str] = &[
    "\0",
    ";\0",
    "\0;",
    "; ;",
    " -- x\0",
    " # x\0",
    " /* \0 */",
    " --\0",
    " --",
    ";\n",
];

fn run(client: &mut WireClient, statement: &str) {
    let answers = client.query(statement);
    // The server may reject the text after a semicolon, but not the statement itself.
    assert!(
        matches!(answers.first(), Some(Answer::Ok { .. })),
        "{:.60}: {:?}",
        statement.escape_debug().to_string(),
        answers.first()
    );
}

#[test]
fn memory_outlives_long_statements_in_databases_of_others() {
    on_servers_of_its_own(
        |_| &["--max-allowed-packet=64M"],
        |server| {
            let mut stage = Stage::new(server.addr(), MADE, "");
            let mut direct = WireClient::login(server.addr(), &stage.login);
            direct.ok("USE aside");
            // Without strict mode, a table's comment that is too long is truncated with a warning.
            direct.ok("SET sql_mode = ''");
            // After such a name, the text between names is not taken for padding.
            let between = "a comment ".repeat(2_000);
            let list = format!("h TO `h``2` /* {between} */, `h``2` TO h /* {between} */, ");
            let list = list.repeat(RENAMED);
            for (at, statement) in ASIDE.iter().enumerate() {
                let statement = statement
                    .replace("{long}", &"it is message ".repeat(LONG / 14))
                    .replace("{some}", &"tl.message ".repeat(6_100))
                    .replace("{list}", &list);
                run(&mut direct, &statement);
                let id = 100 + u64::try_from(at).unwrap();
                post(&mut stage.root, id);
                assert!(stage.page().contains(&id), "{statement:.60}");
            }
            let log = stage.proxy.log();
            assert!(!log.contains(EMPTIED), "{log}");
            assert_eq!(stage.proxy.counts().of("statements_unreadable"), 0);
        },
    );
}

#[test]
fn a_statement_is_read_up_to_where_the_server_reads_it() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut stage = Stage::new(server.addr(), MADE, "");
            let mut direct = WireClient::login(server.addr(), &stage.login);
            direct.ok("USE aside");
            for (at, end) in ENDS.iter().enumerate() {
                for statement in [
                    format!("CREATE TABLE t{at} (message int)"),
                    format!("ALTER TABLE t{at} ADD a int"),
                    format!("RENAME TABLE t{at} TO message"),
                    "TRUNCATE message".to_owned(),
                    "DROP TABLE message".to_owned(),
                ] {
                    run(&mut direct, &format!("{statement}{end}"));
                }
                let id = 100 + u64::try_from(at).unwrap();
                post(&mut stage.root, id);
                assert!(stage.page().contains(&id), "{}", end.escape_debug());
            }
            let log = stage.proxy.log();
            assert!(!log.contains(EMPTIED), "{log}");
            // The same ends on a timeline's table do empty memory.
            for end in ENDS {
                run(&mut direct, &format!("TRUNCATE tl.message{end}"));
                post(&mut stage.root, 200);
                assert_eq!(
                    stage.page(),
                    page(&mut WireClient::login(server.addr(), &stage.login))
                );
                super::warm(&stage.proxy, &mut stage.client, CALL);
            }
        },
    );
}

/// A CREATE TABLE that is logged as a statement may call a function that writes: MariaDB executes it, MySQL rejects it.
#[test]
fn a_long_create_table_that_writes_elsewhere_is_in_the_very_next_answer() {
    on_servers_of_its_own(
        |_| &["--log-bin-trust-function-creators=1"],
        |server| {
            let mut stage = Stage::new(server.addr(), MADE, "");
            stage.root.ok(
                "CREATE FUNCTION posts(id int) RETURNS int DETERMINISTIC MODIFIES SQL DATA \
                 BEGIN INSERT INTO message VALUES (id, 2, 'text'); RETURN id; END",
            );
            let mut direct = WireClient::login(server.addr(), &stage.login);
            direct.ok("SET sql_mode = ''");
            direct.ok("SET binlog_format = STATEMENT");
            for (id, kind) in [(300_u64, ""), (301, "TEMPORARY"), (302, "OR REPLACE")] {
                let filler = "text ".repeat(LONG / 5);
                let statement = format!(
                    "CREATE {kind} TABLE aside.t{id} COMMENT '{filler}' AS SELECT tl.posts({id}) AS a"
                );
                let answers = direct.query(&statement);
                if server.kind() == ServerKind::Mysql {
                    assert!(matches!(answers.first(), Some(Answer::Err(_))), "{kind}");
                    continue;
                }
                let mut other = WireClient::login(server.addr(), &stage.login);
                for _ in 0..20 {
                    let expected = page(&mut other);
                    assert!(expected.contains(&id));
                    assert_eq!(stage.page(), expected, "{kind}\n{}", stage.proxy.log());
                }
                super::warm(&stage.proxy, &mut stage.client, CALL);
            }
        },
    );
}
