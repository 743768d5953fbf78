//! What Headwater reports to operators of several servers, before and during service; and ports that pass from one process to the next.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use headwater_lab::private_server::{PrivateServer, ServerKind, free_port};

use super::upstreams::{CALL, Pair, closed, on_each_pair, page, port_of, post, promote, read_only};
use super::{galera, group};
use crate::admin::http::Admin;
use crate::kit::browser::Browser;
use crate::kit::proxy::{ROOT_SERVICE, free_addr, headwater, settings_file};
use crate::kit::replica::wait_for;
use crate::kit::wire_client::WireClient;
use crate::memory::{CLASSIC, warm};

/// The exit status and output of `headwater check` for these servers.
#[track_caller]
fn check(servers: &[SocketAddr], settings: &str, flags: &[&str]) -> (Option<i32>, String) {
    let (_folder, path) = settings_file(settings);
    let mut command = headwater(&[]);
    command.args(["check", "--admin-listen", "", "--config", &path]);
    if !flags.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    for server in servers {
        command.args(["--upstream", &server.to_string()]);
    }
    let ended = command.args(flags).output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap() + &String::from_utf8_lossy(&ended.stderr);
    // Shown on failure only.
    eprintln!("{said}");
    (ended.status.code(), said)
}

fn in_one_database() -> String {
    format!("[[definition]]\ndatabase = \"{CLASSIC}\"\n")
}

/// The report's lines about one server.
fn about(report: &str, server: SocketAddr) -> Vec<&str> {
    let head = format!("    {server}: ");
    let lines = report.lines().skip_while(|line| !line.starts_with(&head));
    let own = lines
        .skip(1)
        .take_while(|line| line.starts_with("        "));
    own.map(str::trim).collect()
}

fn statement(line: &str) -> &str {
    line.split_inclusive(';').next().unwrap()
}

#[test]
fn the_right_that_is_missing_is_named_for_each_server() {
    on_each_pair(|pair| {
        let mut root = WireClient::connect(pair.one.addr());
        root.ok("CREATE USER hw_operators@'127.0.0.1' IDENTIFIED BY ''");
        let there = "SELECT 1 FROM mysql.user WHERE user = 'hw_operators'";
        wait_for(&pair.other, there);
        let flags = ["--service-user", "hw_operators"];
        let (status, report) = check(&pair.both(), &in_one_database(), &flags);
        assert_eq!(status, Some(1));
        let (right, members) = match pair.one.kind() {
            ServerKind::Mariadb => ("REPLICA MONITOR ON *.*", false),
            ServerKind::Mysql => ("REPLICATION CLIENT ON *.*", true),
        };
        let account = "`hw_operators`@`127.0.0.1`";
        let mut wanted = vec![format!("GRANT {right} TO {account};")];
        let members = members.then(|| {
            format!("GRANT SELECT ON performance_schema.replication_group_members TO {account};")
        });
        for server in pair.both() {
            let lines = about(&report, server);
            let missing = lines.iter().filter(|it| it.contains("-- missing"));
            let missing: Vec<&str> = missing.map(|it| statement(it)).collect();
            assert_eq!(missing, wanted, "{report}");
            // The server is in no group: no grant is missing, and the report notes the grant that a group needs.
            let notes = lines.iter().filter(|it| it.contains("-- needed once"));
            let notes: Vec<&str> = notes.map(|it| statement(it)).collect();
            assert_eq!(notes, members.iter().collect::<Vec<_>>(), "{report}");
        }
        // The printed grants are sufficient.
        wanted.extend(members);
        let grants = report.lines().filter(|it| it.trim().starts_with("GRANT "));
        for grant in grants.map(|it| statement(it.trim())) {
            root.ok(grant);
        }
        root.ok(&format!("CREATE TABLE {CLASSIC}.granted (id int)"));
        let there = format!(
            "SELECT 1 FROM information_schema.tables WHERE table_name = 'granted' AND table_schema = '{CLASSIC}'"
        );
        wait_for(&pair.other, &there);
        let (status, report) = check(&pair.both(), &in_one_database(), &flags);
        assert_eq!(status, Some(0), "{report}");
        for server in pair.both() {
            assert_eq!(about(&report, server), [""; 0], "{report}");
        }
    });
}

#[test]
fn an_account_that_one_server_lacks_is_named() {
    on_each_pair(|pair| {
        let mut there = WireClient::connect(pair.other.addr());
        read_only(&pair.other, false);
        for statement in [
            "SET sql_log_bin = 0",
            "CREATE USER hw_half@'127.0.0.1' IDENTIFIED BY ''",
            "GRANT ALL ON *.* TO hw_half@'127.0.0.1'",
        ] {
            there.ok(statement);
        }
        read_only(&pair.other, true);
        let flags = ["--service-user", "hw_half"];
        let (status, report) = check(&pair.both(), &in_one_database(), &flags);
        assert_ne!(status, Some(0));
        let one = pair.one.addr();
        let line = format!("{one}: does not tell the service account what it is: ");
        assert!(report.contains(&line), "no {line:?} in {report}");
    });
}

#[test]
fn each_port_is_tried_and_none_is_had_twice() {
    on_each_pair(|pair| {
        let [first, second] = [(); 2].map(|()| free_port().unwrap());
        let listen = |address: &str, role: &str| {
            format!("[[listener]]\nlisten = \"{address}\"\nrole = \"{role}\"\n")
        };
        let checked = |listeners: &[String]| {
            let settings = listeners.concat() + &in_one_database();
            let first = format!("127.0.0.1:{first}");
            let flags = [ROOT_SERVICE, &["--listen", first.as_str()]].concat();
            check(&pair.both(), &settings, &flags)
        };
        let own = format!("127.0.0.1:{second}");
        let (status, report) = checked(&[listen(&own, "replica")]);
        assert_eq!(status, Some(0));
        let line = format!("listener.listen = {own} is free");
        assert!(report.contains(&line), "{report}");
        let held = TcpListener::bind(&own).unwrap();
        let unspecified = format!("0.0.0.0:{second}");
        let same = format!("localhost:{first}");
        let far = "192.0.2.1:3307".to_owned();
        let (status, report) = checked(&[
            listen(&own, "any"),
            listen(&unspecified, "primary"),
            listen(&same, "replica"),
            listen(&far, "replica"),
            listen(&pair.other.addr().to_string(), "replica"),
        ]);
        assert_eq!(status, Some(1));
        drop(held);
        for line in [
            format!("in the way: listener.listen = {own} is taken by another process"),
            format!(
                "in the way: listener.listen = {unspecified} is the port of listener.listen = {own} as well"
            ),
            format!(
                "in the way: listener.listen = {same} is the port of listen = 127.0.0.1:{first} as well"
            ),
            format!("in the way: cannot listen on listener.listen = {far}"),
            format!(
                "in the way: listener.listen = {} is the server's own address",
                pair.other.addr()
            ),
        ] {
            assert!(report.contains(&line), "no {line:?} in {report}");
        }
        // A running Headwater's port is no obstacle, whatever server its clients are led to.
        let (_folder, path) = settings_file(&listen(&own, "replica"));
        let proxy = pair.proxy(pair.both(), &["--config", &path]);
        proxy.wait_for_log("are led to");
        let (status, report) = checked(&[listen(&own, "replica")]);
        assert_eq!(status, Some(0));
        let line = format!("listener.listen = {own} is taken, by a Headwater");
        assert!(report.contains(&line), "no {line:?} in {report}");
    });
}

/// Checks the report of a setting of all sessions, for a member alone and for one of several. Returns how many lines have the way out.
#[track_caller]
fn waits_are_named(servers: [SocketAddr; 2], set: &str, reset: &str, way_out: &str) {
    for server in servers {
        WireClient::connect(server).ok(set);
    }
    let alone = check(&servers[..1], "", ROOT_SERVICE);
    let several = check(&servers, "", ROOT_SERVICE);
    for server in servers {
        WireClient::connect(server).ok(reset);
    }
    for ((status, report), count) in [(alone, 1), (several, 2)] {
        assert_eq!(status, Some(1));
        let lines = report
            .lines()
            .filter(|it| it.contains("(waits_for_cluster)"));
        let lines: Vec<&str> = lines.collect();
        assert_eq!(lines.len(), count, "{report}");
        assert!(lines.iter().all(|it| it.contains(way_out)), "{lines:?}");
    }
    for servers in [&servers[..1], &servers] {
        let (_, report) = check(servers, "", ROOT_SERVICE);
        assert!(!report.contains("waits_for_cluster"), "{report}");
    }
}

#[test]
fn reads_of_a_group_that_all_wait_are_named_with_the_way_out() {
    let Some(cluster) = group::group() else {
        return;
    };
    waits_are_named(
        [0, 1].map(|index| cluster.addr(index)),
        "SET GLOBAL group_replication_consistency = 'BEFORE'",
        "SET GLOBAL group_replication_consistency = DEFAULT",
        "SET PERSIST group_replication_consistency = 'BEFORE_ON_PRIMARY_FAILOVER'",
    );
    // The account needs the privilege to see the members of a group.
    let mut root = cluster.connect(0);
    root.ok("CREATE USER hw_blind@'127.0.0.1' IDENTIFIED BY ''");
    root.ok("GRANT REPLICATION CLIENT ON *.* TO hw_blind@'127.0.0.1'");
    let there = "SELECT 1 FROM mysql.user WHERE user = 'hw_blind'";
    wait_for(cluster.server(1), there);
    let servers = [0, 1].map(|index| cluster.addr(index));
    let (_, report) = check(&servers, "", &["--service-user", "hw_blind"]);
    let grant = "GRANT SELECT ON performance_schema.replication_group_members TO `hw_blind`@`127.0.0.1`;  -- missing";
    for server in servers {
        let lines = about(&report, server);
        assert!(lines.iter().any(|it| it.starts_with(grant)), "{report}");
    }
    root.ok("DROP USER hw_blind@'127.0.0.1'");
}

#[test]
fn reads_of_galera_that_all_wait_are_named_with_the_way_out() {
    let Some(cluster) = galera::cluster() else {
        return;
    };
    waits_are_named(
        [0, 1].map(|index| cluster.addr(index)),
        "SET GLOBAL wsrep_sync_wait = 7",
        "SET GLOBAL wsrep_sync_wait = 0",
        "SET GLOBAL wsrep_sync_wait = 6,",
    );
}

#[test]
fn which_server_is_in_use_is_shown_and_since_when() {
    on_each_pair(|pair| {
        let admin = free_addr();
        let port = format!("127.0.0.1:{}", free_port().unwrap());
        let text = format!("[[listener]]\nlisten = \"{port}\"\nrole = \"replica\"\n");
        let (_folder, path) = settings_file(&text);
        let listen = admin.to_string();
        let proxy = pair.proxy(pair.both(), &["--config", &path, "--admin-listen", &listen]);
        proxy.wait_for_log("are led to");
        let admin = Admin(admin);
        let [one, other] = pair.both().map(|addr| addr.to_string());
        let rows = || {
            let rows = admin.get("/api/upstreams").body;
            let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
            let row = |row: &serde_json::Value| {
                let seconds = row["serves_seconds"].as_f64();
                // No role can be older than the process.
                assert!(seconds.is_none_or(|it| (0.0..600.0).contains(&it)), "{row}");
                assert_eq!(seconds.is_some(), row["serves"].is_string(), "{row}");
                ["server", "role", "serves", "says"].map(|key| row[key].as_str().map(str::to_owned))
            };
            let rows: Vec<_> = rows.as_array().unwrap().iter().map(row).collect();
            rows
        };
        let texts = |cells: [Option<&str>; 4]| cells.map(|it| it.map(str::to_owned));
        let refuses = Some("it refuses writes (read_only)");
        assert_eq!(
            rows(),
            [
                texts([Some(&one), Some("primary"), Some("listen"), None]),
                texts([Some(&other), Some("replica"), Some(&port), refuses]),
            ]
        );
        let mut client = proxy.login(&pair.login);
        let shown = client.rows("SHOW HEADWATER UPSTREAMS");
        assert_eq!(shown[0][3].as_deref(), Some("listen"), "{shown:?}");
        assert_eq!(shown[1][3].as_deref(), Some(port.as_str()), "{shown:?}");
        // The page shows the table without a click.
        let mut browser = Browser::open();
        browser.go(&format!("http://{listen}/"));
        browser.wait_until("document.getElementById('of-upstreams')?.hidden === false");
        let page = "document.getElementById('of-upstreams').innerText";
        let text = browser.text(page);
        for part in [
            &one,
            &other,
            "primary",
            "replica",
            "listen",
            &port,
            "read_only",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        pair.one.kill();
        promote(&pair.other);
        closed(&mut client);
        let mut client = proxy.login(&pair.login);
        assert_eq!(port_of(&mut client), pair.other.port());
        let now = rows();
        assert_eq!(now[0][1].as_deref(), Some("away"), "{now:?}");
        assert_eq!(now[0][2], None, "{now:?}");
        assert!(now[0][3].is_some(), "{now:?}");
        assert_eq!(
            now[1],
            texts([Some(&other), Some("primary"), Some("listen"), None])
        );
        browser.wait_until(&format!("{page}.includes('away')"));
        assert_eq!(browser.complaints(), [""; 0]);
    });
}

/// Clients connect to both ports all the time: none is refused, and each gets a server of its port's role.
#[test]
fn ports_for_replicas_go_to_the_next_process_with_the_first_one() {
    on_each_pair(|pair| {
        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("takeover.sock");
        let [replicas, primary] = [(); 2].map(|()| free_port().unwrap());
        let text = format!(
            "[[listener]]\nlisten = \"127.0.0.1:{replicas}\"\nrole = \"replica\"\n\
             [[listener]]\nlisten = \"127.0.0.1:{primary}\"\n"
        );
        let (_folder, path) = settings_file(&text);
        let control = control.to_str().unwrap();
        let own = ["--config", &path, "--takeover-socket", control];
        let first = pair.proxy(pair.both(), &own);
        first.wait_for_log("are led to");
        let [replicas, primary] =
            [replicas, primary].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let ports = [(replicas, pair.other.port()), (primary, pair.one.port())];
        let mut reader = WireClient::login(replicas, &pair.login);
        warm(&first, &mut reader, CALL);
        reader.ok("SET @own = 7");
        let mut idle = WireClient::login(replicas, &pair.login);
        idle.ok("DO 1");
        let done = AtomicBool::new(false);
        let second = thread::scope(|scope| {
            let come = ports.map(|(addr, server)| {
                let (done, login) = (&done, &pair.login);
                scope.spawn(move || {
                    let mut count = 0;
                    while !done.load(Ordering::Relaxed) {
                        let mut client = WireClient::login(addr, login);
                        assert_eq!(port_of(&mut client), server);
                        count += 1;
                    }
                    count
                })
            });
            let second = first.beside(&["--takeover"]);
            second.wait_for_log("taken over from process");
            first.wait_for_log("has taken over");
            thread::sleep(Duration::from_millis(500));
            done.store(true, Ordering::Relaxed);
            for thread in come {
                assert!(thread.join().unwrap() > 10);
            }
            second
        });
        closed(&mut idle);
        assert_eq!(reader.column("SELECT @own"), ["7"], "{}", first.log());
        drop(reader);
        let ended = first.wait();
        assert!(ended.status.success(), "{}", ended.log);
        // The first process has stopped listening, and each port has warm memory at once.
        let log = second.log();
        let warmed = log.find("warm after ").expect("it was warm");
        assert!(warmed < log.find("taken over from").unwrap(), "{log}");
        is_exact(&pair, ports.map(|(addr, _)| addr));
        assert!(
            second.counts().of("calls_from_memory") > 0,
            "{}",
            second.log()
        );
        assert_eq!(second.counts().relayed(), 0, "{}", second.log());
        // The settings of a third process have one port less, and another first port.
        let text = format!("[[listener]]\nlisten = \"{replicas}\"\nrole = \"replica\"\n");
        std::fs::write(&path, text).unwrap();
        let third = second.beside(&[]);
        third.wait_for_log(&format!("the other process listens on {primary} as well"));
        third.wait_for_log("taken over from process");
        let ended = second.wait();
        assert!(ended.status.success(), "{}", ended.log);
        is_exact(&pair, [replicas, third.addr()]);
        assert!(std::net::TcpStream::connect(primary).is_err());
    });
}

/// Checks that each port's next answer contains a write that the port's server has.
#[track_caller]
fn is_exact(pair: &Pair<'_>, ports: [SocketAddr; 2]) {
    let newest = |server: &PrivateServer| -> u64 {
        let mut root = WireClient::login(server.addr(), &pair.login);
        root.column("SELECT MAX(id) FROM message")[0]
            .parse()
            .unwrap()
    };
    let id = newest(pair.one) + 1;
    post(pair.one, &pair.login, id);
    let there = format!("SELECT COUNT(*) FROM {CLASSIC}.message WHERE id = {id}");
    wait_for(&pair.other, &there);
    for addr in ports {
        let mut client = WireClient::login(addr, &pair.login);
        for _ in 0..20 {
            let page: BTreeSet<u64> = page(&mut client);
            assert_eq!(page.last(), Some(&id), "at {addr}");
        }
    }
}
