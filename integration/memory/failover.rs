//! Memory outlives the server beside which it was filled, where the next one's history holds all that it is made of; else it is emptied.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use headwater::lab::private_server::{Kind, PrivateServer};

use super::linear::numbers;
use super::{CLASSIC, prepare};
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
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
        let proxy = Proxy::configured(road.addr(), "[freshness]\nwait_ms = 2000\n", ROOT_SERVICE);
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
        let mut scene = Scene::new(primary);
        let mut root = WireClient::connect(scene.primary.addr());
        for round in 0..3 {
            let dumps = root.column("SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%' AND HOST LIKE '127.%' ORDER BY ID DESC LIMIT 1");
            root.ok(&format!("KILL {}", dumps[0].as_str()));
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
        let mut scene = Scene::new(primary);
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
