//! Memory outlives the server beside which it was filled, where the next one's history holds all that it is made of; else it is emptied.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headwater::lab::private_server::{Kind, PrivateServer};

use headwater::lab::feed::FEED;

use super::linear::numbers;
use super::{CLASSIC, prepare};
use crate::kit::how_many;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::random::Random;
use crate::kit::relay::Relay;
use crate::kit::replica::{another, follow};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, WireClient};

const READERS: u64 = 60;
const AUTHORS: u64 = 40;
const GOES_ON: &str = "memory goes on with the log of this server";
const ANEW: &str = "memory is filled anew beside this server";

/// Options by which a server's transactions have global ids, and what a replica applies is logged; and its log outlives a crash.
fn options(mariadb: bool) -> &'static [&'static str] {
    match mariadb {
        true => &[
            "--log-slave-updates=ON",
            "--sync-binlog=1",
            "--innodb-flush-log-at-trx-commit=1",
        ],
        false => &[
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--sync-binlog=1",
            "--innodb-flush-log-at-trx-commit=1",
        ],
    }
}

/// A primary with a replica, and a Headwater that reaches whichever a road leads to.
struct Scene<'a> {
    primary: &'a mut PrivateServer,
    replica: PrivateServer,
    road: Relay,
    proxy: Proxy,
    login: Login,
}

impl<'a> Scene<'a> {
    fn new(primary: &'a mut PrivateServer) -> Scene<'a> {
        let replica = another(primary, options(primary.kind() == Kind::Mariadb));
        for server in [&*primary, &replica] {
            forget_the_past(server);
        }
        let login = prepare(primary.addr());
        let mut root = WireClient::login(primary.addr(), &login);
        let follows: Vec<String> = (1..=READERS)
            .flat_map(|reader| {
                (1..=5).map(move |n| format!("({reader}, {})", 1 + (reader + n * 7) % AUTHORS))
            })
            .collect();
        root.ok(&format!(
            "INSERT IGNORE INTO follower VALUES {}",
            follows.join(",")
        ));
        let messages: Vec<String> = (1..=2_000)
            .map(|id| format!("({id}, {}, 'text {id}')", 1 + id % AUTHORS))
            .collect();
        root.ok(&format!(
            "INSERT INTO message (id, user_id, body) VALUES {}",
            messages.join(",")
        ));
        let how = match replica.kind() {
            Kind::Mariadb => "MASTER_USE_GTID=slave_pos",
            Kind::Mysql => "SOURCE_AUTO_POSITION=1",
        };
        follow(&replica, primary.port(), "root", how);
        let road = Relay::start(primary.addr());
        let settings = ["[freshness]\nwait_ms = 2000\n", FEED].concat();
        let proxy = Proxy::configured(road.addr(), &settings, ROOT_SERVICE);
        proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
        let scene = Scene {
            primary,
            replica,
            road,
            proxy,
            login,
        };
        scene.wait_for_replica();
        scene.fill();
        scene
    }

    /// Has every reader's page in memory.
    #[track_caller]
    fn fill(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut client = self.proxy.login(&self.login);
        loop {
            let before = self.proxy.counts().of("calls_from_memory");
            for reader in 1..=READERS {
                client.ok(&format!("CALL fetch_timeline_ids({reader})"));
            }
            if self.proxy.counts().of("calls_from_memory") - before == READERS {
                break;
            }
            assert!(Instant::now() < deadline, "{}", self.proxy.log());
        }
        // What the log held before is read beside that.
        std::thread::sleep(Duration::from_millis(500));
    }

    /// Waits until the replica has all that the primary has.
    #[track_caller]
    fn wait_for_replica(&self) {
        let sum = "SELECT COUNT(*) + COALESCE(SUM(id), 0) FROM message";
        let mut source = WireClient::login(self.primary.addr(), &self.login);
        let wanted = source.column(sum);
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut root = WireClient::connect(self.replica.addr());
        let there = format!("SELECT COUNT(*) + COALESCE(SUM(id), 0) FROM {CLASSIC}.message");
        loop {
            let reply = root.query_reply(&there).unwrap();
            let failed = reply.raw.get(4) == Some(&0xff);
            if !failed && root.column(&there) == wanted {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "the replica does not replicate: {:?}",
                root.rows("SHOW REPLICA STATUS")
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the replica has every transaction of the primary, where nobody writes.
    #[track_caller]
    fn wait_for_the_log(&self) {
        let position = |server: &PrivateServer| {
            let position = match server.kind() {
                Kind::Mariadb => "SELECT @@GLOBAL.gtid_binlog_pos",
                Kind::Mysql => "SELECT @@GLOBAL.gtid_executed",
            };
            WireClient::connect(server.addr()).column(position)
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while position(&self.replica) != position(self.primary) {
            assert!(Instant::now() < deadline, "the replica does not catch up");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The primary is gone at once, the replica is one, and the road leads there.
    fn fail_over(&mut self) {
        self.primary.kill();
        self.promote();
    }

    fn promote(&self) {
        let mut root = WireClient::connect(self.replica.addr());
        let stop = match self.replica.kind() {
            Kind::Mariadb => ["STOP SLAVE", "RESET SLAVE ALL"],
            Kind::Mysql => ["STOP REPLICA", "RESET REPLICA ALL"],
        };
        for statement in stop {
            root.ok(statement);
        }
        self.road.lead_to(self.replica.addr());
    }

    /// Authors in memory once the log is followed again, before anybody asks for a page.
    #[track_caller]
    fn authors(&self) -> u64 {
        let deadline = Instant::now() + Duration::from_secs(30);
        let is_followed = || {
            let log = self.proxy.log();
            let says = |text: &str| log.rfind(text).unwrap_or(0);
            says("the server's log is followed again") > says("calls are not answered from memory")
        };
        while !is_followed() {
            assert!(Instant::now() < deadline, "{}", self.proxy.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut client = self.proxy.login(&self.login);
        let rows = client.rows("SHOW HEADWATER MEMORY LIKE '%authors%'");
        rows[0][1].as_deref().unwrap().parse().unwrap()
    }

    /// Every reader's page is as the procedure on `server` makes it, and memory answers in the end.
    #[track_caller]
    fn check(&self, server: &PrivateServer) {
        let mut direct = WireClient::login(server.addr(), &self.login);
        let mut client = self.proxy.login(&self.login);
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let before = self.proxy.counts().of("calls_from_memory");
            for reader in 1..=READERS {
                let own = page(&mut client, reader);
                let theirs = page(&mut direct, reader);
                assert_eq!(own, theirs, "reader {reader}: {}", self.proxy.log());
                let [own, theirs] =
                    [&mut client, &mut direct].map(|client| client.rows(&rows(reader)));
                assert_eq!(own, theirs, "reader {reader}: {}", self.proxy.log());
            }
            let remembered = self.proxy.counts().of("calls_from_memory") - before;
            if remembered * 10 >= READERS * 9 {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{remembered}: {}",
                self.proxy.log()
            );
        }
    }

    fn write(&self, server: &PrivateServer, ids: std::ops::Range<u64>) {
        let mut root = WireClient::login(server.addr(), &self.login);
        for id in ids {
            root.ok(&format!(
                "INSERT INTO message (id, user_id, body) VALUES ({id}, {}, 'later')",
                1 + id % AUTHORS
            ));
        }
    }
}

fn page(client: &mut WireClient, reader: u64) -> BTreeSet<u64> {
    client.ok(&format!("CALL fetch_timeline_ids({reader})"));
    numbers(&client.column("SELECT id FROM fetch_timeline_tt"))
}

/// Asks for a reader's newest rows.
fn rows(reader: u64) -> String {
    format!(
        "SELECT message.id, body FROM message JOIN follower ON message.user_id = follower.follower_id \
         WHERE follower.user_id = {reader} ORDER BY message.id DESC LIMIT 20"
    )
}

/// The log begins anew: what made the server is not in it.
fn forget_the_past(server: &PrivateServer) {
    let mut root = WireClient::connect(server.addr());
    let statements: &[&str] = match server.kind() {
        Kind::Mariadb => &["RESET MASTER", "SET GLOBAL gtid_slave_pos = ''"],
        Kind::Mysql => &["RESET BINARY LOGS AND GTIDS"],
    };
    for statement in statements {
        root.ok(statement);
    }
}

#[test]
fn memory_goes_on_with_the_replica_that_was_promoted() {
    on_servers_of_its_own(options, |primary| {
        let mut scene = Scene::new(primary);
        scene.write(scene.primary, 3_000..3_200);
        scene.check(scene.primary);
        // The last one takes its time.
        let mut root = WireClient::login(scene.primary.addr(), &scene.login);
        for statement in [
            "BEGIN",
            "INSERT INTO message (id, user_id, body) VALUES (3500, 3, 'slow')",
            "DO SLEEP(1.2)",
            "INSERT INTO message (id, user_id, body) VALUES (3501, 4, 'slow')",
            "COMMIT",
        ] {
            root.query(statement);
        }
        scene.check(scene.primary);
        scene.wait_for_replica();
        scene.fail_over();
        scene.write(&scene.replica, 4_000..4_100);
        assert_eq!(scene.authors(), AUTHORS, "{}", scene.proxy.log());
        assert!(scene.proxy.log().contains(GOES_ON), "{}", scene.proxy.log());
        scene.check(&scene.replica);
        for round in 0..20 {
            scene.write(&scene.replica, 5_000 + round * 10..5_010 + round * 10);
            scene.check(&scene.replica);
        }
        let log = scene.proxy.log();
        assert!(!log.contains("contradict"), "{log}");
    });
}

/// What the old primary had more was told to clients, and is in memory.
#[test]
fn what_the_old_primary_alone_had_empties_memory() {
    on_servers_of_its_own(options, |primary| {
        let mut scene = Scene::new(primary);
        let mut root = WireClient::connect(scene.replica.addr());
        root.ok(match scene.replica.kind() {
            Kind::Mariadb => "STOP SLAVE",
            Kind::Mysql => "STOP REPLICA",
        });
        scene.write(scene.primary, 3_000..3_003);
        scene.check(scene.primary);
        scene.fail_over();
        assert_eq!(scene.authors(), 0, "{}", scene.proxy.log());
        for ids in [4_000..4_000, 4_000..4_010, 5_000..5_100] {
            scene.write(&scene.replica, ids);
            scene.check(&scene.replica);
        }
        let log = scene.proxy.log();
        assert!(log.contains(ANEW) && !log.contains(GOES_ON), "{log}");
    });
}

/// The replica has a transaction that nobody else has, from before.
#[test]
fn what_the_new_primary_alone_had_before_empties_memory() {
    on_servers_of_its_own(options, |primary| {
        let mut scene = Scene::new(primary);
        scene.write(&scene.replica, 2_500..2_501);
        scene.write(scene.primary, 3_000..3_020);
        scene.check(scene.primary);
        let caught_up = |scene: &Scene<'_>| {
            let mut root = WireClient::login(scene.replica.addr(), &scene.login);
            root.column("SELECT COUNT(*) FROM message WHERE id BETWEEN 3000 AND 3019") == ["20"]
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        while !caught_up(&scene) {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(5));
        }
        scene.fail_over();
        assert_eq!(scene.authors(), 0, "{}", scene.proxy.log());
        scene.check(&scene.replica);
        scene.write(&scene.replica, 4_000..4_100);
        scene.check(&scene.replica);
        let log = scene.proxy.log();
        assert!(log.contains(ANEW) && !log.contains(GOES_ON), "{log}");
    });
}

/// The connection is lost and the server is there still, or is there again; it was written to meanwhile.
#[test]
fn memory_goes_on_with_the_same_server() {
    on_servers_of_its_own(options, |primary| {
        let scene = Scene::new(primary);
        let mut root = WireClient::connect(scene.primary.addr());
        for round in 0..3 {
            cut_streams(&mut root);
            scene.write(scene.primary, 3_000 + round * 50..3_050 + round * 50);
            assert_eq!(scene.authors(), AUTHORS, "{}", scene.proxy.log());
            scene.check(scene.primary);
        }
        let times = scene
            .proxy
            .log()
            .matches("the server's log is followed again")
            .count();
        assert!(times >= 3, "{}", scene.proxy.log());
        // Killed, it has lost nothing of its log, and says so.
        scene.primary.restart().unwrap();
        scene.road.lead_to(scene.primary.addr());
        scene.write(scene.primary, 4_000..4_050);
        assert_eq!(scene.authors(), AUTHORS, "{}", scene.proxy.log());
        scene.check(scene.primary);
        let log = scene.proxy.log();
        assert!(log.contains(GOES_ON), "{log}");
    });
}

/// Ends all streams of the log.
fn cut_streams(root: &mut WireClient) {
    // Not from information_schema: MariaDB 10.11 was seen to crash in that beside KILL.
    let rows = root.rows("SHOW PROCESSLIST");
    let is_stream = |doing: &str| doing.starts_with("Binlog Dump");
    for row in rows
        .iter()
        .filter(|row| row[4].as_deref().is_some_and(is_stream))
    {
        root.ok(&format!("KILL {}", row[0].as_deref().unwrap()));
    }
}

/// While nobody looked, the log was begun anew and the server started anew: it gave numbers again that memory has.
#[test]
fn numbers_that_were_given_again_empty_memory() {
    on_servers_of_its_own(options, |primary| {
        let scene = Scene::new(primary);
        scene.write(scene.primary, 2_500..2_510);
        scene.check(scene.primary);
        let mut root = WireClient::login(scene.primary.addr(), &scene.login);
        scene.road.lead_to("127.0.0.1:1".parse().unwrap());
        cut_streams(&mut root);
        std::thread::sleep(Duration::from_millis(1_100));
        forget_the_past(scene.primary);
        scene.write(scene.primary, 3_000..3_100);
        root.ok("DELETE FROM message WHERE id BETWEEN 1900 AND 2550");
        scene.primary.restart().unwrap();
        scene.road.lead_to(scene.primary.addr());
        assert_eq!(scene.authors(), 0, "{}", scene.proxy.log());
        scene.check(scene.primary);
        let log = scene.proxy.log();
        assert!(log.contains(ANEW) && !log.contains(GOES_ON), "{log}");
    });
}

/// Somebody has altered a table on the replica alone, without telling its log.
#[test]
fn a_table_that_is_another_one_there_empties_memory() {
    on_servers_of_its_own(options, |primary| {
        let mut scene = Scene::new(primary);
        let mut root = WireClient::login(scene.replica.addr(), &scene.login);
        root.ok("SET sql_log_bin = 0");
        root.ok("ALTER TABLE message ADD COLUMN extra INT NOT NULL DEFAULT 7 AFTER id");
        scene.fail_over();
        scene.write(&scene.replica, 4_000..4_100);
        scene.check(&scene.replica);
        let log = scene.proxy.log();
        assert!(log.contains(ANEW) && !log.contains(GOES_ON), "{log}");
    });
}

/// The log of the new primary goes back to before what memory has: it is begun anew, with the numbers that there were.
#[test]
fn a_server_whose_log_was_begun_anew_empties_memory() {
    on_servers_of_its_own(options, |primary| {
        let scene = Scene::new(primary);
        scene.primary.kill();
        scene.promote();
        let mut root = WireClient::login(scene.replica.addr(), &scene.login);
        root.ok("DELETE FROM message WHERE id > 1900");
        forget_the_past(&scene.replica);
        scene.write(&scene.replica, 4_000..4_100);
        scene.check(&scene.replica);
        let log = scene.proxy.log();
        assert!(log.contains(ANEW) && !log.contains(GOES_ON), "{log}");
    });
}

/// Changes whatever there is until the server is gone.
fn write_until_the_end(server: SocketAddr, login: &Login, number: u64, calm: &AtomicBool) {
    let mut random = Random(number);
    let Ok(Ok(mut client)) = WireClient::try_login(server, login) else {
        return;
    };
    for turn in 0.. {
        let (id, reader) = (1_500 + random.below(800), 1 + random.below(READERS));
        let author = 1 + random.below(AUTHORS);
        let text = match random.below(8) {
            0 | 1 => format!("UPDATE message SET body = 'by {number}, {turn}' WHERE id = {id}"),
            2 => format!("DELETE FROM message WHERE id = {id}"),
            3 => format!("INSERT IGNORE INTO follower VALUES ({reader}, {author})"),
            4 => {
                format!("DELETE FROM follower WHERE user_id = {reader} AND follower_id = {author}")
            }
            5 => format!("UPDATE message SET user_id = {author} WHERE id = {id}"),
            _ => format!(
                "INSERT IGNORE INTO message (id, user_id, body) VALUES ({id}, {author}, 'new, {turn}')"
            ),
        };
        if client.query_reply(&text).is_err() {
            return;
        }
        while calm.load(Ordering::Relaxed) {
            if client.query_reply("DO 1").is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Asks for pages until there is nobody.
fn read_until_the_end(proxy: SocketAddr, login: &Login, number: u64) {
    let mut random = Random(1_000 + number);
    let Ok(Ok(mut client)) = WireClient::try_login(proxy, login) else {
        return;
    };
    loop {
        let reader = 1 + random.below(READERS);
        let texts = [format!("CALL fetch_timeline_ids({reader})"), rows(reader)];
        if texts.iter().any(|text| client.query_reply(text).is_err()) {
            return;
        }
    }
}

/// The primary dies at full speed. What the replica has of it is more or less, what memory has of that as well: whichever it is, nothing is
/// answered but what the replica has.
#[test]
fn nothing_is_answered_but_what_the_new_primary_has() {
    let rounds = how_many("HEADWATER_CHECKS", 4_000) / 2_000;
    for round in 0..rounds {
        on_servers_of_its_own(options, |primary| {
            let scene = Scene::new(primary);
            let calm = AtomicBool::new(false);
            let (server, proxy) = (scene.primary.addr(), scene.proxy.addr());
            std::thread::scope(|scope| {
                for number in 0..4 {
                    let (login, calm) = (&scene.login, &calm);
                    scope.spawn(move || {
                        write_until_the_end(server, login, number + round * 10, calm)
                    });
                    scope.spawn(move || read_until_the_end(proxy, login, number + round * 10));
                }
                let mut random = Random(round);
                std::thread::sleep(Duration::from_millis(300 + random.below(700)));
                if round % 2 == 0 {
                    // The replica catches up.
                    calm.store(true, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(1_000));
                    scene.wait_for_the_log();
                }
                scene.primary.kill();
            });
            scene.promote();
            let authors = scene.authors();
            scene.check(&scene.replica);
            scene.write(&scene.replica, 4_000..4_100);
            scene.check(&scene.replica);
            let log = scene.proxy.log();
            eprintln!("round {round}: {authors} authors in memory");
            assert_eq!(log.contains(GOES_ON), authors > 0, "{log}");
            assert!(authors > 0 || round % 2 == 1, "{log}");
            assert!(!log.contains("contradict"), "{log}");
        });
    }
}
