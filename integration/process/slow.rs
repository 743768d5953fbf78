//! Slow statements in the log (`log.slow_ms`): the outcome of each, and nothing of its text.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::feeds::narrowed::narrowed;
use crate::kit::database::{Database, one_message};
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::{Login, WireClient};
use crate::memory::warm;

/// Statements are logged after 200 ms, and are held up for longer.
const SLOW: &[&str] = &["--log-slow-ms", "200"];
const HELD: Duration = Duration::from_millis(400);

/// No rows are cached, so that each page queries the server.
const FEED: &str = "[rows]
memory_bytes = 0
[[feed]]
name = \"home\"
[feed.message]
table = \"message\"
author = \"user_id\"
";
const STATEMENT: &str =
    "SELECT id, body FROM message WHERE user_id IN (2, 71077345) ORDER BY id DESC LIMIT 3";
const CALL: &str = "CALL fetch_timeline_ids(1)";

/// Runs `work` while a lock keeps all sessions from reading messages, for a while.
fn held_up(
    root: &mut WireClient,
    client: &mut WireClient,
    work: impl FnOnce(&mut WireClient) + Send,
) {
    root.ok("LOCK TABLES message WRITE");
    thread::scope(|scope| {
        scope.spawn(|| work(client));
        wait_for_held(root);
        thread::sleep(HELD);
        root.ok("UNLOCK TABLES");
    });
}

/// Waits until a session waits for the table of this session's database, or for ten seconds: the caller checks the outcome anyway.
fn wait_for_held(root: &mut WireClient) {
    let deadline = patience();
    let table = "`message`";
    let own = root.column("SELECT DATABASE()");
    let is_held = |row: &Vec<Option<String>>| {
        let [database, state, text] = [3, 6, 7].map(|at| row[at].as_deref().unwrap_or_default());
        state.contains("metadata lock") && (database == own[0] || text.contains(table))
    };
    while !root.rows("SHOW PROCESSLIST").iter().any(is_held) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for the first line that contains all these parts.
#[track_caller]
fn line(proxy: &Proxy, parts: &[&str]) -> String {
    let deadline = patience();
    loop {
        let log = proxy.log();
        let found = log.lines().find(|line| {
            line.contains("a statement was slow") && parts.iter().all(|part| line.contains(part))
        });
        if let Some(line) = found {
            return line.to_owned();
        }
        assert!(Instant::now() < deadline, "no {parts:?} in:\n{log}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The number after a name in a line.
#[track_caller]
fn number(line: &str, name: &str) -> u64 {
    let (_, behind) = line.split_once(&format!("{name}=")).expect(line);
    behind.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_statement_that_takes_long_is_told_of_with_what_became_of_it() {
    on_each_server(|server| {
        let database = Database::classic(server, "slow");
        let mut root = database.connect();
        one_message(&mut root);
        let proxy = Proxy::configured(server.addr(), FEED, &[ROOT_SERVICE, SLOW].concat());
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        let mut client = proxy.login(&database.login());
        let thread = client.column("SELECT CONNECTION_ID()").remove(0);
        let whose = format!("thread={thread} account=\"root\"}}: ");

        client.rows("SELECT SLEEP(0.4), 'a text that nobody logs'");
        let relayed = line(
            &proxy,
            &[
                &whose,
                "kind=\"other\"",
                "answered_from=\"server\"",
                "command=Query",
                "rows=1",
            ],
        );
        assert!(number(&relayed, "took_ms") >= 400, "{relayed}");
        assert!(number(&relayed, "server_ms") >= 390, "{relayed}");
        let statement = client.prepare("SELECT SLEEP(0.4), 1 UNION ALL SELECT 2, 3");
        client.execute(statement, &[], 0).unwrap();
        line(&proxy, &["command=StmtExecute", "rows=2"]);

        // The server's procedure answers this call.
        client.ok("BEGIN");
        held_up(&mut root, &mut client, |client| drop(client.ok(CALL)));
        client.ok("COMMIT");
        line(
            &proxy,
            &[
                "kind=\"call\"",
                "answered_from=\"server\"",
                "reason=\"in_transaction\"",
                "of=\"classic\"",
            ],
        );

        // Memory selects the messages, the server returns their rows.
        narrowed(&proxy, &mut client, STATEMENT);
        let other = STATEMENT.replace("LIMIT 3", "LIMIT 4");
        held_up(&mut root, &mut client, |client| drop(client.query(&other)));
        let told = line(
            &proxy,
            &[&whose, "kind=\"feed\"", "of=\"home\"", "digest=\""],
        );
        let (_, digest) = told.split_once("digest=\"").unwrap();
        let digest = digest.split('"').next().unwrap();
        let shown = client.rows("SHOW HEADWATER STATEMENTS");
        let of_it: Vec<_> = shown
            .iter()
            .filter(|row| row.last().unwrap().as_deref() == Some(digest))
            .collect();
        assert_eq!(of_it.len(), 1, "{digest}: {shown:?}");
        assert!(
            of_it[0][0].as_ref().unwrap().contains("message"),
            "{shown:?}"
        );

        // The server gives up waiting.
        client.ok("SET lock_wait_timeout = 1");
        root.ok("LOCK TABLES message WRITE");
        client
            .error("SELECT body FROM message WHERE user_id IN (2) ORDER BY RAND(71077345) LIMIT 3");
        root.ok("UNLOCK TABLES");
        line(
            &proxy,
            &["kind=\"feed\"", "reason=\"", "digest=", "error=1205"],
        );
        let log = proxy.log();
        for secret in ["nobody logs", "71077345", "SLEEP"] {
            assert!(!log.contains(secret), "{secret} in:\n{log}");
        }
    });
}

#[test]
fn a_call_by_lookups_and_its_tail_say_how_long_the_server_was_asked() {
    on_each_server(|server| {
        let database = Database::classic(server, "slowly");
        let mut root = database.connect();
        one_message(&mut root);
        let proxy = Proxy::start(server.addr(), &[&["--log-format", "json"], SLOW].concat());
        let mut client = proxy.login(&database.login());
        let deadline = patience();
        while proxy.counts().of("calls_owned") == 0 {
            assert!(Instant::now() < deadline, "{}", proxy.log());
            client.ok(CALL);
        }
        held_up(&mut root, &mut client, |client| drop(client.ok(CALL)));
        let told = line(&proxy, &["\"call\"", "\"lookups\""]);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let fields = &told["fields"];
        assert!(fields["took_ms"].as_u64().unwrap() >= 200, "{told}");
        assert!(fields["server_ms"].as_u64().unwrap() >= 200, "{told}");
        assert_eq!(
            (&fields["of"], &fields["rows"]),
            (&"classic".into(), &1.into()),
            "{told}"
        );
        assert_eq!(told["span"]["account"], "root", "{told}");
        let tail = "SELECT m.id FROM fetch_timeline_tt JOIN message m USING (id) ORDER BY m.id DESC LIMIT 20";
        held_up(&mut root, &mut client, |client| drop(client.query(tail)));
        line(&proxy, &["\"tail\""]);
    });
}

#[test]
fn nothing_is_told_unless_that_is_wished_for() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &[]);
        let mut client = proxy.login(&Login::default());
        client.rows("SELECT SLEEP(0.4)");
        client.rows("SELECT 1");
        let (_, log) = proxy.terminate();
        assert!(!log.contains("slow"), "{log}");
    });
}

/// Everything that Headwater does, at the usual level: the log has names, numbers and reasons, and nothing of what clients send.
#[test]
fn the_log_of_a_busy_run_has_no_statements_values_or_passwords() {
    on_each_server(|server| {
        let database = Database::classic(server, "discreet");
        let mut root = database.connect();
        root.ok("INSERT INTO follower VALUES (71077345, 2)");
        root.ok("INSERT INTO message (id, user_id, body) VALUES (10, 2, 'bodytext')");
        let login = database.account(
            "EXECUTE, SELECT, INSERT, CREATE TEMPORARY TABLES",
            "passw0rd-of-app",
        );
        let service =
            "CREATE USER IF NOT EXISTS hw_discreet@'%' IDENTIFIED BY 'passw0rd-of-service'";
        root.ok(service);
        root.ok("GRANT ALL ON *.* TO hw_discreet@'%'");
        let flags = ["--log-slow-ms", "1", "--service-user", "hw_discreet"];
        let flags = [
            &flags[..],
            &["--service-password", "passw0rd-of-service", "--shadow", "1"],
        ]
        .concat();
        let settings = format!("{FEED}[feeds]\nauto = \"suggest\"\n");
        let proxy = Proxy::configured(server.addr(), &settings, &flags);
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        let mut client = proxy.login(&login);
        warm(&proxy, &mut client, "CALL fetch_timeline_ids(71077345)");
        narrowed(&proxy, &mut client, STATEMENT);
        for statement in [
            "SELECT SLEEP(0.01), 71077345, 'bodytext'",
            "INSERT INTO message (id, user_id, body) VALUES (11, 71077345, 'bodytext')",
            "SELECT nothing_of_the_kind FROM message",
            "SET @variable = 'bodytext'",
            "CALL fetch_timeline_ids('bodytext')",
            "CALL fetch_timeline_ids(71077345)",
            "SELECT m.id, m.body FROM fetch_timeline_tt JOIN message m USING (id) ORDER BY m.id DESC LIMIT 20",
            "SELECT * FROM message WHERE user_id IN (71077345, 2) AND body = 'bodytext' ORDER BY id DESC LIMIT 5",
            "SELECT id FROM message WHERE user_id IN (2) ORDER BY RAND(71077345) LIMIT 2",
            "SHOW HEADWATER WHY FOR SELECT * FROM message WHERE user_id IN (71077345) ORDER BY id DESC LIMIT 5",
            "SELECT SLEEP(0.01) FROM follower f WHERE f.user_id = 71077345; SELECT 'bodytext'",
        ] {
            client.query(statement);
        }
        // A wrong password is denied.
        let mistaken = login.clone().password("passw0rd-mistaken");
        assert!(matches!(
            WireClient::try_login(proxy.addr(), &mistaken),
            Ok(Err(_))
        ));
        drop(client);
        proxy.signal(Signal::SIGTERM);
        let log = proxy.wait().log;
        root.ok("DROP USER hw_discreet@'%'");
        assert!(log.contains("a statement was slow"), "{log}");
        for secret in [
            "passw0rd",
            "bodytext",
            "71077345",
            "nothing_of_the_kind",
            "SELECT ",
            "CALL ",
            "INSERT ",
            "@variable",
        ] {
            let told = log
                .lines()
                .find(|line| line.contains(secret) && !is_section(line));
            assert!(told.is_none(), "{secret}: {told:?}\n{log}");
        }
    });
}

/// The log contains the settings that serve a detected feed, with the names of its tables.
fn is_section(line: &str) -> bool {
    line.contains("[[feed]]")
}
