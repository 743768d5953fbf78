//! A primary and its replica: killed, switched, down, split; which server Headwater uses, and how soon.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::{PrivateServer, ServerKind, free_port};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE, headwater, settings_file};
use crate::kit::replica::{another, follow, from_now_on, wait_for};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, ServerError, WireClient};
use crate::memory::{CLASSIC, prepare, warm};

pub(super) const CALL: &str = "CALL fetch_timeline_ids(1)";
const CANNOT_CONNECT: u16 = 1429;
/// Far less than any timeout; `make bench-clusters` measures the actual time.
const SOON: Duration = Duration::from_secs(15);

fn options(mariadb: bool) -> &'static [&'static str] {
    match mariadb {
        true => &["--log-slave-updates=ON", "--max-connections=1500"],
        false => &[
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--max-connections=1500",
        ],
    }
}

/// A primary with a timeline, a read-only replica, and a login.
pub(super) struct Pair<'a> {
    pub(super) one: &'a mut PrivateServer,
    pub(super) other: PrivateServer,
    pub(super) login: Login,
}

impl<'a> Pair<'a> {
    fn new(one: &'a mut PrivateServer) -> Pair<'a> {
        let other = another(one, options(one.kind() == ServerKind::Mariadb));
        follow(&other, one.port(), "root", &from_now_on(one));
        let login = prepare(one.addr());
        let mut root = WireClient::login(one.addr(), &login);
        root.ok("INSERT INTO follower VALUES (1, 2)");
        root.ok("INSERT INTO message VALUES (1, 2, 'text')");
        wait_for(&other, &format!("SELECT COUNT(*) FROM {CLASSIC}.message"));
        read_only(&other, true);
        Pair { one, other, login }
    }

    /// Starts Headwater before both, in this order.
    pub(super) fn proxy(&self, order: [SocketAddr; 2], flags: &[&str]) -> Proxy {
        let proxy = in_front_of(&order, flags);
        proxy.wait_for_log(" is the primary");
        proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
        proxy
    }

    /// Promotes the other server. Returns the time of the promotion, and a session on it whose first call came soon.
    #[track_caller]
    fn promoted(&self, proxy: &Proxy) -> (Instant, WireClient) {
        let promoted = promote(&self.other);
        let mut client = proxy.login(&self.login);
        client.ok(CALL);
        let took = promoted.elapsed();
        eprintln!("from promoted to the first call: {took:?}");
        assert!(took < SOON, "{took:?}\n{}", proxy.log());
        (promoted, client)
    }

    pub(super) fn both(&self) -> [SocketAddr; 2] {
        [self.one.addr(), self.other.addr()]
    }
}

fn in_front_of(servers: &[SocketAddr], flags: &[&str]) -> Proxy {
    let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
    let mut all = [ROOT_SERVICE, flags].concat();
    for server in &servers {
        all.extend(["--upstream", server]);
    }
    Proxy::start_with(&all, &[])
}

pub(super) fn on_each_pair(story: impl Fn(Pair<'_>)) {
    on_servers_of_its_own(options, |one| story(Pair::new(one)));
}

pub(super) fn read_only(server: &PrivateServer, on: bool) {
    let mut root = WireClient::connect(server.addr());
    let variable = match server.kind() {
        ServerKind::Mariadb => "read_only",
        ServerKind::Mysql if on => "super_read_only",
        // `super_read_only` goes off with it.
        ServerKind::Mysql => "read_only",
    };
    root.ok(&format!("SET GLOBAL {variable} = {}", u8::from(on)));
}

/// Stops replication on a server, and makes it writable. Returns the time.
pub(super) fn promote(server: &PrivateServer) -> Instant {
    let mut root = WireClient::connect(server.addr());
    let word = match server.kind() {
        ServerKind::Mariadb => "SLAVE",
        ServerKind::Mysql => "REPLICA",
    };
    root.ok(&format!("STOP {word}"));
    root.ok(&format!("RESET {word} ALL"));
    let begun = Instant::now();
    read_only(server, false);
    begun
}

/// The ids on reader 1's newest page.
pub(super) fn page(client: &mut WireClient) -> BTreeSet<u64> {
    client.ok(CALL);
    let ids = client.column("SELECT id FROM fetch_timeline_tt");
    ids.iter().map(|id| id.parse().unwrap()).collect()
}

pub(super) fn post(server: &PrivateServer, login: &Login, id: u64) {
    let mut root = WireClient::login(server.addr(), login);
    root.ok(&format!("INSERT INTO message VALUES ({id}, 2, 'text')"));
}

/// How long it takes until Headwater closes an idle session.
#[track_caller]
pub(super) fn closed(client: &mut WireClient) -> Duration {
    let begun = Instant::now();
    while client.read_packet().is_ok() {}
    let took = begun.elapsed();
    assert!(took < SOON, "closed after {took:?}");
    took
}

#[track_caller]
fn refused(proxy: &Proxy, login: &Login) -> ServerError {
    match WireClient::try_login(proxy.addr(), login).unwrap() {
        Ok(_) => panic!("a client is let in:\n{}", proxy.log()),
        Err(refused) => refused,
    }
}

/// The port of the server that a client is led to.
pub(super) fn port_of(client: &mut WireClient) -> u16 {
    client.column("SELECT @@global.port")[0].parse().unwrap()
}

#[test]
fn a_primary_is_killed_and_its_replica_promoted() {
    on_each_pair(|pair| {
        let proxy = pair.proxy(pair.both(), &[]);
        let mut idle = proxy.login(&pair.login);
        let mut client = proxy.login(&pair.login);
        warm(&proxy, &mut client, CALL);
        assert_eq!(page(&mut client), BTreeSet::from([1]));
        let mut busy = proxy.login(&pair.login);
        let payload = busy.query_payload(b"SELECT SLEEP(60)", &[]);
        busy.send(&payload).unwrap();
        pair.one.kill();
        for session in [&mut idle, &mut busy, &mut client] {
            assert!(closed(session) < SOON);
        }
        // Without a primary no client gets an answer; a new client waits.
        let addr = proxy.addr();
        let login = pair.login.clone();
        let waiting = thread::spawn(move || {
            let mut client = WireClient::login(addr, &login);
            client.ok(CALL);
            Instant::now()
        });
        thread::sleep(Duration::from_millis(300));
        let promoted = promote(&pair.other);
        let took = waiting.join().unwrap() - promoted;
        eprintln!("from promoted to the first call: {took:?}");
        assert!(took < SOON, "{took:?}\n{}", proxy.log());
        let mut client = proxy.login(&pair.login);
        assert_eq!(port_of(&mut client), pair.other.port());
        warm(&proxy, &mut client, CALL);
        eprintln!("and to an answer from memory: {:?}", promoted.elapsed());
        for id in 2..30 {
            post(&pair.other, &pair.login, id);
            assert_eq!(page(&mut client).last(), Some(&id), "{}", proxy.log());
        }
        assert_eq!(proxy.counts().relayed(), 0, "{}", proxy.log());
        let told = client.rows("SHOW HEADWATER STATUS LIKE 'headwater_failovers_total'");
        assert_eq!(told[0][1].as_deref(), Some("1"));
        // The old primary returns and takes writes: Headwater leads no client to it, and shows none of its data.
        pair.one.restart().unwrap();
        post(pair.one, &pair.login, 1_000);
        proxy.wait_for_log("both take writes");
        for _ in 0..20 {
            assert_eq!(page(&mut client).last(), Some(&29), "{}", proxy.log());
            let mut another = proxy.login(&pair.login);
            assert_eq!(port_of(&mut another), pair.other.port());
        }
        assert_eq!(proxy.log().matches("both take writes").count(), 1);
    });
}

#[test]
fn a_planned_switch_closes_sessions_and_nothing_else() {
    on_each_pair(|pair| {
        let proxy = pair.proxy(pair.both(), &[]);
        let mut client = proxy.login(&pair.login);
        warm(&proxy, &mut client, CALL);
        let mut busy = proxy.login(&pair.login);
        let payload = busy.query_payload(b"SELECT SLEEP(60)", &[]);
        busy.send(&payload).unwrap();
        read_only(pair.one, true);
        // The server would have continued the statement; Headwater ends it.
        let told = busy.read_packet().unwrap();
        assert_eq!(told.payload[..3], [0xff, 0x1d, 0x04], "ER_SERVER_SHUTDOWN");
        assert!(closed(&mut client) < SOON);
        closed(&mut busy);
        let (promoted, mut client) = pair.promoted(&proxy);
        assert_eq!(port_of(&mut client), pair.other.port());
        warm(&proxy, &mut client, CALL);
        eprintln!("and to an answer from memory: {:?}", promoted.elapsed());
        post(&pair.other, &pair.login, 7);
        assert_eq!(page(&mut client).last(), Some(&7));
        // A switch back.
        read_only(&pair.other, true);
        closed(&mut client);
        read_only(pair.one, false);
        let mut client = proxy.login(&pair.login);
        assert_eq!(port_of(&mut client), pair.one.port());
        assert_eq!(
            page(&mut client).last(),
            Some(&1),
            "it has not got the rest"
        );
        assert_eq!(proxy.counts().relayed(), 0, "{}", proxy.log());
    });
}

#[test]
fn all_servers_are_gone_and_back() {
    on_each_pair(|mut pair| {
        let settings = "[limits]\nconnect_ms = 1000\n";
        let (_folder, path) = settings_file(settings);
        let proxy = pair.proxy(pair.both(), &["--config", &path]);
        let mut client = proxy.login(&pair.login);
        warm(&proxy, &mut client, CALL);
        pair.one.kill();
        pair.other.kill();
        closed(&mut client);
        for _ in 0..3 {
            let begun = Instant::now();
            let refusal = refused(&proxy, &pair.login);
            assert_eq!(refusal.code, CANNOT_CONNECT, "{refusal:?}");
            let waited = begun.elapsed();
            let bounds = Duration::from_millis(900)..SOON;
            assert!(bounds.contains(&waited), "refused after {waited:?}");
        }
        pair.one.restart().unwrap();
        let deadline = patience();
        let mut client = loop {
            match WireClient::try_login(proxy.addr(), &pair.login).unwrap() {
                Ok(client) => break client,
                Err(_) => assert!(Instant::now() < deadline, "{}", proxy.log()),
            }
        };
        assert_eq!(port_of(&mut client), pair.one.port(), "{}", proxy.log());
        // The restarted server takes writes too until it is set to read-only: Headwater leads no client to it.
        pair.other.restart().unwrap();
        read_only(&pair.other, true);
        assert_eq!(port_of(&mut client), pair.one.port(), "{}", proxy.log());
        warm(&proxy, &mut client, CALL);
        let mut root = WireClient::login(pair.one.addr(), &pair.login);
        // A test server may lose its last commits in a kill.
        root.ok("INSERT IGNORE INTO follower VALUES (1, 2)");
        post(pair.one, &pair.login, 3);
        assert_eq!(page(&mut client).last(), Some(&3));
        assert_eq!(page(&mut client), page(&mut root));
    });
}

#[test]
fn the_one_that_takes_writes_is_found_beside_a_dead_server() {
    on_each_pair(|pair| {
        // A port without a listener.
        let dead = SocketAddr::from(([127, 0, 0, 1], 9));
        let [one, other] = pair.both();
        let begun = Instant::now();
        let proxy = in_front_of(&[dead, other, one], &[]);
        let mut client = proxy.login(&pair.login);
        let took = begun.elapsed();
        assert!(took < SOON, "{took:?}");
        assert_eq!(port_of(&mut client), one.port());
        proxy.wait_for_log("127.0.0.1:9 does not answer");
        proxy.wait_for_log(&format!("{other} is a replica"));
        warm(&proxy, &mut client, CALL);
        let told = client.rows("SHOW HEADWATER UPSTREAMS");
        let told: Vec<[Option<&str>; 2]> = told
            .iter()
            .map(|row| [row[0].as_deref(), row[1].as_deref()])
            .collect();
        let [dead, one, other] = [dead, one, other].map(|addr| addr.to_string());
        assert_eq!(
            told,
            [
                [Some(dead.as_str()), Some("away")],
                [Some(other.as_str()), Some("replica")],
                [Some(one.as_str()), Some("primary")],
            ]
        );
    });
}

#[test]
fn check_says_what_each_server_is_and_checks_the_primary() {
    on_each_pair(|pair| {
        let [one, other] = pair.both().map(|addr| addr.to_string());
        let checked = || {
            let mut command = headwater(&[]);
            command.args(["check", "--listen", "127.0.0.1:0", "--admin-listen", ""]);
            command.args([
                "--upstream",
                &other,
                "--upstream",
                &one,
                "--upstream",
                "127.0.0.1:9",
            ]);
            let ended = command.args(ROOT_SERVICE).output().unwrap();
            let [out, err] = [ended.stdout, ended.stderr].map(|it| String::from_utf8(it).unwrap());
            (ended.status.success(), out, err)
        };
        let (fine, report, error) = checked();
        assert!(fine, "{report}{error}");
        for line in [
            format!("{one}: the primary"),
            format!("{other}: a replica"),
            "127.0.0.1:9: unreachable".to_owned(),
            format!(" at {one}"),
        ] {
            assert!(report.contains(&line), "no {line:?} in {report}");
        }
        read_only(pair.one, true);
        let (fine, report, error) = checked();
        assert!(!fine && error.contains("is the primary"), "{report}{error}");
        assert!(report.contains(&format!("{one}: a replica")), "{report}");
    });
}

/// On that port, strict freshness refers to what that replica has made readable.
#[test]
fn a_port_for_replicas_is_answered_from_a_replicas_own_memory() {
    on_each_pair(|pair| {
        let [replicas, primary] = [(); 2].map(|()| free_port().unwrap());
        let text = format!(
            "[[listener]]\nlisten = \"127.0.0.1:{replicas}\"\nrole = \"replica\"\n\
             [[listener]]\nlisten = \"127.0.0.1:{primary}\"\n[limits]\nconnect_ms = 2000\n"
        );
        let (_folder, path) = settings_file(&text);
        let proxy = pair.proxy(pair.both(), &["--config", &path]);
        proxy.wait_for_log("are led to");
        let [replicas, primary] =
            [replicas, primary].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let mut reader = WireClient::login(replicas, &pair.login);
        assert_eq!(port_of(&mut reader), pair.other.port());
        let mut writer = WireClient::login(primary, &pair.login);
        assert_eq!(port_of(&mut writer), pair.one.port());
        warm(&proxy, &mut writer, CALL);
        warm(&proxy, &mut reader, CALL);
        let mut seen = WireClient::login(pair.other.addr(), &pair.login);
        for id in 2..60_u64 {
            post(pair.one, &pair.login, id);
            assert_eq!(page(&mut writer).last(), Some(&id), "{}", proxy.log());
            // The next answer contains everything readable on the replica.
            let newest: u64 = seen.column("SELECT MAX(id) FROM message")[0]
                .parse()
                .unwrap();
            let told = *page(&mut reader).last().unwrap();
            assert!((newest..=id).contains(&told), "{told}: {newest} of {id}");
        }
        let there = format!("SELECT COUNT(*) FROM {CLASSIC}.message WHERE id = 59");
        wait_for(&pair.other, &there);
        let word = match pair.other.kind() {
            ServerKind::Mariadb => "SLAVE",
            ServerKind::Mysql => "REPLICA",
        };
        let mut root = WireClient::connect(pair.other.addr());
        root.ok(&format!("STOP {word}"));
        let before = proxy.counts().of("calls_from_memory");
        for id in 60..80_u64 {
            post(pair.one, &pair.login, id);
            assert_eq!(page(&mut writer).last(), Some(&id), "{}", proxy.log());
            assert_eq!(page(&mut reader).last(), Some(&59), "{}", proxy.log());
        }
        assert!(proxy.counts().of("calls_from_memory") >= before + 10);
        assert_eq!(proxy.counts().relayed(), 0, "{}", proxy.log());
        // A reload of the settings applies to both ports.
        std::fs::write(&path, format!("{text}databases = 999\n")).unwrap();
        proxy.signal(Signal::SIGHUP);
        proxy.wait_for_log("in force now: limits.databases: 1000 -> 999");
        assert_eq!(page(&mut reader).last(), Some(&59), "{}", proxy.log());
        // The replica becomes the primary, which leaves no replica.
        pair.one.kill();
        closed(&mut writer);
        promote(&pair.other);
        closed(&mut reader);
        let mut client = proxy.login(&pair.login);
        assert_eq!(port_of(&mut client), pair.other.port());
        let refusal = WireClient::try_login(replicas, &pair.login).unwrap().err();
        let refusal = refusal.expect("there is no replica");
        assert_eq!(refusal.code, CANNOT_CONNECT, "{refusal:?}");
        assert!(refusal.message.contains("is a replica"), "{refusal:?}");
        // The old primary returns as a replica.
        pair.one.restart().unwrap();
        read_only(pair.one, true);
        let mut reader = loop {
            // Headwater ends a session that it accepted while the server became a replica.
            if let Ok(Ok(client)) = WireClient::try_login(replicas, &pair.login) {
                break client;
            }
        };
        assert_eq!(port_of(&mut reader), pair.one.port());
        // The server's data, which may lack the last commits before the kill.
        let mut root = WireClient::login(pair.one.addr(), &pair.login);
        assert_eq!(page(&mut reader), page(&mut root), "{}", proxy.log());
        warm(&proxy, &mut reader, CALL);
        assert_eq!(page(&mut reader), page(&mut root), "{}", proxy.log());
    });
}

#[test]
fn where_all_refuse_writes_clients_wait_and_are_refused() {
    on_each_pair(|pair| {
        read_only(pair.one, true);
        let (_folder, path) = settings_file("[limits]\nconnect_ms = 500\n");
        let proxy = in_front_of(&pair.both(), &["--config", &path]);
        assert_eq!(refused(&proxy, &pair.login).code, CANNOT_CONNECT);
        proxy.wait_for_log("is the primary yet");
        let (_folder, path) = settings_file("[limits]\nconnect_ms = 20000\n");
        let proxy = in_front_of(&pair.both(), &["--config", &path]);
        read_only(pair.one, false);
        let mut client = proxy.login(&pair.login);
        assert_eq!(port_of(&mut client), pair.one.port());
        // A waiting client sees no error.
        read_only(pair.one, true);
        closed(&mut client);
        let (addr, login) = (proxy.addr(), pair.login.clone());
        let waits = thread::spawn(move || WireClient::login(addr, &login));
        thread::sleep(Duration::from_millis(100));
        read_only(pair.one, false);
        let mut client = waits.join().unwrap();
        assert_eq!(port_of(&mut client), pair.one.port());
    });
}

#[test]
fn of_two_that_take_writes_the_one_with_replicas_is_followed_and_both_are_named() {
    on_each_pair(|pair| {
        read_only(&pair.other, false);
        let [one, other] = pair.both();
        let proxy = pair.proxy([other, one], &[]);
        let split = format!("{one} and {other} both take writes");
        proxy.wait_for_log(&split);
        let mut client = proxy.login(&pair.login);
        for _ in 0..10 {
            assert_eq!(port_of(&mut client), one.port());
            thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(proxy.log().matches("both take writes").count(), 1);
        // The session survives role changes of the other server.
        read_only(&pair.other, true);
        proxy.wait_for_log(&format!("{other} is a replica"));
        assert_eq!(port_of(&mut client), one.port());
    });
}

#[test]
fn a_primary_that_hangs_is_lost_after_the_patience_that_is_set() {
    on_each_pair(|pair| {
        let (_folder, path) = settings_file("[failover]\ncheck_ms = 100\npatience_ms = 3000\n");
        let proxy = pair.proxy(pair.both(), &["--config", &path]);
        let mut client = proxy.login(&pair.login);
        warm(&proxy, &mut client, CALL);
        let pid = Pid::from_raw(pair.one.pid().unwrap() as i32);
        signal::kill(pid, Signal::SIGSTOP).unwrap();
        let took = closed(&mut client);
        let bounds = Duration::from_millis(2_900)..SOON;
        assert!(bounds.contains(&took), "closed after {took:?}");
        let (promoted, mut client) = pair.promoted(&proxy);
        warm(&proxy, &mut client, CALL);
        eprintln!("and to an answer from memory: {:?}", promoted.elapsed());
        post(&pair.other, &pair.login, 5);
        assert_eq!(page(&mut client).last(), Some(&5));
        signal::kill(pid, Signal::SIGCONT).unwrap();
        proxy.wait_for_log("both take writes");
        assert_eq!(port_of(&mut client), pair.other.port());
    });
}

#[test]
fn a_thousand_sessions_are_ended() {
    on_each_pair(|pair| {
        let proxy = pair.proxy(pair.both(), &[]);
        let mut sessions: Vec<WireClient> = (0..1_000).map(|_| proxy.login(&pair.login)).collect();
        read_only(pair.one, true);
        let begun = Instant::now();
        for session in &mut sessions {
            while session.read_packet().is_ok() {}
        }
        let took = begun.elapsed();
        eprintln!(
            "a thousand sessions are closed after {took:?}\n{}",
            proxy.log()
        );
        assert!(took < SOON, "{took:?}");
        drop(sessions);
        // Their connections to the server are closed too.
        let mut root = WireClient::connect(pair.one.addr());
        let deadline = patience();
        loop {
            let count = root.rows("SHOW GLOBAL STATUS LIKE 'Threads_connected'");
            let count: usize = count[0][1].as_ref().unwrap().parse().unwrap();
            if count < 50 {
                break;
            }
            assert!(Instant::now() < deadline, "{count} sessions are left");
            thread::sleep(Duration::from_millis(20));
        }
    });
}

#[test]
fn another_list_needs_a_restart_and_sessions_go_on() {
    on_each_pair(|pair| {
        let [one, other] = pair.both();
        let text = format!("upstream = [\"{one}\", \"{other}\"]\n");
        let (_folder, path) = settings_file(&text);
        let flags = [ROOT_SERVICE, &["--config", &path]].concat();
        let proxy = Proxy::start_with(&flags, &[]);
        let mut client = proxy.login(&pair.login);
        std::fs::write(
            &path,
            format!("upstream = \"{one}\"\n[failover]\ncheck_ms = 77\n"),
        )
        .unwrap();
        proxy.signal(Signal::SIGHUP);
        proxy.wait_for_log("settings and certificates are read again");
        for change in ["upstream: ", "failover.check_ms: 250 -> 77"] {
            let told = format!("needs a restart, and is as it was until then: {change}");
            assert!(proxy.log().contains(&told), "{}", proxy.log());
        }
        assert_eq!(port_of(&mut client), one.port());
        // The reload made a new generation of certificates and definitions. A failover works the same on it.
        read_only(pair.one, true);
        closed(&mut client);
        promote(&pair.other);
        let mut client = proxy.login(&pair.login);
        assert_eq!(port_of(&mut client), other.port());
    });
}
