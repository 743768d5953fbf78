//! Headwater reads its settings again while clients are connected.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::admin::http::Admin;
use crate::feeds::narrowed::narrowed;
use crate::kit::database::{Database, HOME_FEED};
use crate::kit::patience;
use crate::kit::proxy::{Counts, Proxy, ROOT_SERVICE, headwater};
use crate::kit::servers::{Server, on_each_server};
use crate::kit::wire_client::{Login, WireClient};
use crate::memory::warm;

const STATEMENT: &str =
    "SELECT id, body FROM message WHERE user_id IN (1, 2) ORDER BY id DESC LIMIT 3";
const CALL: &str = "CALL fetch_timeline_ids(1)";
const TAIL: &str = "SELECT id FROM fetch_timeline_tt ORDER BY id DESC";
const NONE: &str = "[feeds]\nauto = \"off\"\n";
const ELSEWHERE: &str = "[[definition]]\nname = \"classic\"\ndatabase = \"nowhere\"\n";

/// The settings with the feed.
fn feed() -> String {
    format!("[feeds]\nnarrow = \"always\"\nauto = \"off\"\n{HOME_FEED}")
}

/// Reloads as an operator does, with the settings file and the flags that name the port and the account.
fn reload(proxy: &Proxy, admin: Admin, settings: &str) -> Output {
    std::fs::write(proxy.settings(), settings).unwrap();
    let mut command: Command = headwater(&[]);
    let port = admin.0.to_string();
    command.args(["reload", "--config", proxy.settings()]);
    command.args(["--admin-listen", &port]).args(ROOT_SERVICE);
    command.output().unwrap()
}

/// Asserts the exit status; returns the printed text.
#[track_caller]
fn printed(output: &Output, status: i32) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{text}{error}");
    text + &error
}

fn filled(server: &'static Server, story: &str) -> Database {
    let database = Database::classic(server, story);
    let mut root = database.connect();
    root.ok("INSERT INTO follower VALUES (1, 2)");
    root.ok("INSERT INTO message (id, user_id, body) VALUES (10, 2, 'ten'), (11, 2, 'eleven')");
    database
}

/// Queries until the counter of relayed calls has risen; each reply must be the right page.
#[track_caller]
fn relayed(proxy: &Proxy, client: &mut WireClient) {
    let before = proxy.counts();
    for _ in 0..3 {
        client.ok(CALL);
        assert_eq!(client.column(TAIL), ["11", "10"]);
    }
    let after = proxy.counts();
    let owned = |counts: &Counts| counts.of("calls_owned");
    assert_eq!(owned(&after), owned(&before), "{after:?}");
}

#[test]
fn definitions_and_feeds_come_and_go_and_no_session_notices() {
    on_each_server(|server| {
        let database = filled(server, "reload");
        let (proxy, admin) = Admin::beside(server.addr(), NONE, ROOT_SERVICE);
        let mut client = proxy.login(&database.login());
        let thread = client.column("SELECT CONNECTION_ID()");
        warm(&proxy, &mut client, CALL);
        client.ok("SET @kept = 7");

        // Adds a feed.
        let told = printed(&reload(&proxy, admin, &feed()), 0);
        assert!(told.contains("in force now: feed.home."), "{told}");
        narrowed(&proxy, &mut client, STATEMENT);
        warm(&proxy, &mut client, CALL);

        // Removes the feed; the definition is another one, of a database that does not exist.
        let told = printed(&reload(&proxy, admin, &format!("{NONE}{ELSEWHERE}")), 0);
        assert!(
            told.contains("in force now: definition.classic.database: not set -> nowhere"),
            "{told}"
        );
        let before = proxy.counts().feeds_answered();
        for _ in 0..3 {
            assert_eq!(client.rows(STATEMENT).len(), 2);
        }
        assert_eq!(proxy.counts().feeds_answered(), before);
        relayed(&proxy, &mut client);

        // A signal brings both back, and their counters continue.
        std::fs::write(proxy.settings(), feed()).unwrap();
        proxy.signal(Signal::SIGHUP);
        proxy.wait_for_log("in force now: definition.classic.database: nowhere -> not set");
        narrowed(&proxy, &mut client, STATEMENT);
        warm(&proxy, &mut client, CALL);
        let metrics = admin.get("/metrics").body;
        let line = "headwater_calls_total{definition=\"classic\",answer=\"memory\"";
        let lines = metrics.lines().filter(|own| own.starts_with(line));
        assert_eq!(lines.count(), 1, "{metrics}");
        assert_eq!(client.column("SELECT CONNECTION_ID()"), thread);
        assert_eq!(client.column("SELECT @kept"), ["7"]);
    });
}

#[test]
fn a_mistake_changes_nothing_and_what_needs_a_restart_is_named() {
    on_each_server(|server| {
        let database = filled(server, "reload_wrong");
        let (proxy, admin) = Admin::beside(server.addr(), NONE, ROOT_SERVICE);
        let mut client = proxy.login(&database.login());
        warm(&proxy, &mut client, CALL);

        // The reload command also reads the file.
        let told = printed(
            &reload(&proxy, admin, "threads = 1\n[limits]\nrecheck = 1\n"),
            2,
        );
        assert!(
            told.contains("line 3") && told.contains("limits.recheck"),
            "{told}"
        );
        // Headwater itself also checks the file, for reloads by other means.
        proxy.signal(Signal::SIGHUP);
        proxy.wait_for_log("settings stay as they were: ");
        let log = proxy.log();
        assert!(log.contains("line 3"), "{log}");
        let answer = admin.post("/api/reload", "");
        assert!(answer.status == 422, "{answer:?}");
        assert!(answer.body.contains("line 3"), "{answer:?}");
        warm(&proxy, &mut client, CALL);

        let told = printed(
            &reload(
                &proxy,
                admin,
                &format!("threads = 3\n{NONE}[limits]\nconnect_ms = 9000\n"),
            ),
            3,
        );
        assert!(
            told.contains("in force now: limits.connect_ms: 10000 -> 9000"),
            "{told}"
        );
        assert!(told.contains("needs a restart: threads: 0 -> 3"), "{told}");
        let settings = admin.get("/api/settings").body;
        assert!(
            settings.contains(r#"{"name":"threads","value":"0"}"#),
            "{settings}"
        );
        assert!(
            settings.contains(r#"{"name":"limits.connect_ms","value":"9000"}"#),
            "{settings}"
        );

        // Only the reported settings still differ.
        let told = printed(
            &reload(
                &proxy,
                admin,
                &format!("{NONE}[limits]\nconnect_ms = 9000\n"),
            ),
            0,
        );
        assert!(told.contains("no setting differs"), "{told}");
        // A page of another site may not request a reload, and no client may do so by GET.
        let answer = admin.post("/api/reload", "Sec-Fetch-Site: cross-site\r\n");
        assert!(answer.status == 403, "{answer:?}");
        let answer = admin.post("/api/reload", "Origin: http://evil.example\r\n");
        assert!(answer.status == 403, "{answer:?}");
        let answer = admin.get("/api/reload");
        assert!(answer.status == 405, "{answer:?}");
        assert!(answer.head.contains("allow: POST"), "{answer:?}");

        // Where no Headwater answers, the command prints the alternative.
        drop(proxy);
        let mut command = headwater(&[]);
        command.args(["reload", "--admin-listen", &admin.0.to_string()]);
        let told = printed(&command.output().unwrap(), 1);
        assert!(
            told.contains("no Headwater answers") && told.contains("SIGHUP"),
            "{told}"
        );
    });
}

#[test]
fn while_settings_change_all_the_time_each_answer_is_right() {
    on_each_server(|server| {
        let database = filled(server, "reload_load");
        let (proxy, admin) = Admin::beside(server.addr(), &feed(), ROOT_SERVICE);
        let mut client = proxy.login(&database.login());
        warm(&proxy, &mut client, CALL);
        let rows = database.connect().rows(STATEMENT);
        let over = AtomicBool::new(false);
        let asked: u64 = thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut client = proxy.login(&database.login());
                        let mut asked = 0;
                        while !over.load(Ordering::Relaxed) {
                            client.ok(CALL);
                            assert_eq!(client.column(TAIL), ["11", "10"]);
                            assert_eq!(client.rows(STATEMENT), rows);
                            client.ok("BEGIN");
                            assert_eq!(client.rows(STATEMENT), rows);
                            client.ok("COMMIT");
                            asked += 1;
                        }
                        asked
                    })
                })
                .collect();
            for round in 0..20 {
                let settings = match round % 4 {
                    0 => format!("{NONE}{ELSEWHERE}"),
                    1 => feed(),
                    2 => format!("accelerate = false\n{}", feed()),
                    _ => format!("{}[[definition]]\nname = \"a{round}\"\n", feed()),
                };
                printed(&reload(&proxy, admin, &settings), 0);
                thread::sleep(Duration::from_millis(50));
            }
            over.store(true, Ordering::Relaxed);
            clients.into_iter().map(|it| it.join().unwrap()).sum()
        });
        assert!(asked > 20, "{asked}");
        warm(&proxy, &mut client, CALL);
    });
}

#[test]
fn another_password_of_the_service_account_is_picked_up() {
    on_each_server(|server| {
        let database = filled(server, "reload_password");
        let mut root = server.connect();
        root.ok("DROP USER IF EXISTS hw_reload@'%'");
        root.ok("CREATE USER hw_reload@'%' IDENTIFIED BY 'first'");
        root.ok("GRANT ALL ON *.* TO hw_reload@'%'");
        let file = |password: &str| {
            format!("{NONE}[service]\nuser = \"hw_reload\"\npassword = \"{password}\"\n")
        };
        let (proxy, admin) = Admin::beside(server.addr(), &file("first"), &[]);
        let mut client = proxy.login(&database.login());
        warm(&proxy, &mut client, CALL);
        root.ok("ALTER USER hw_reload@'%' IDENTIFIED BY 'second'");
        let own = "SELECT id FROM information_schema.processlist WHERE user = 'hw_reload'";
        for id in root.column(own) {
            // One of them may already have ended.
            root.query(&format!("KILL {id}"));
        }
        proxy.wait_for_log("refuses the service account");
        client.ok(CALL);
        std::fs::write(proxy.settings(), file("second")).unwrap();
        proxy.signal(Signal::SIGHUP);
        proxy.wait_for_log("service.password: (set) -> (another one)");
        let deadline = patience();
        while admin.get("/accelerating").status != 200 {
            assert!(Instant::now() < deadline, "{}", proxy.log());
            thread::sleep(Duration::from_millis(50));
        }
        warm(&proxy, &mut client, CALL);
        let log = proxy.log();
        assert!(!log.contains("second"), "{log}");
        root.ok("DROP USER hw_reload@'%'");
    });
}

#[test]
fn a_session_that_is_open_obeys_another_bound_of_slow_statements() {
    on_each_server(|server| {
        let (proxy, admin) = Admin::beside(server.addr(), NONE, ROOT_SERVICE);
        let mut client = proxy.login(&Login::default());
        let slow = || proxy.log().matches("a statement was slow").count();
        let mut sleeps = || assert_eq!(client.column("SELECT SLEEP(0.3)"), ["0"]);
        sleeps();
        assert_eq!(slow(), 0, "{}", proxy.log());
        let told = printed(
            &reload(&proxy, admin, &format!("{NONE}[log]\nslow_ms = 100\n")),
            0,
        );
        assert!(
            told.contains("in force now: log.slow_ms: 0 -> 100"),
            "{told}"
        );
        sleeps();
        sleeps();
        let deadline = patience();
        while slow() < 2 {
            assert!(Instant::now() < deadline, "{}", proxy.log());
            thread::sleep(Duration::from_millis(5));
        }
        printed(&reload(&proxy, admin, NONE), 0);
        sleeps();
        sleeps();
        // A log line about these statements would come before the counters.
        proxy.counts();
        assert_eq!(slow(), 2, "{}", proxy.log());
    });
}
