//! A primary with its own replica, and a Headwater that connects to either of them through a relay.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use headwater_lab::feed::CLASSIC_FEED;
use headwater_lab::private_server::{PrivateServer, ServerKind};

use super::linear::numbers;
use super::{CLASSIC, prepare};
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::relay::Relay;
use crate::kit::replica::{another, follow};
use crate::kit::wire_client::{Login, WireClient};

pub(super) const READERS: u64 = 60;
pub(super) const AUTHORS: u64 = 40;
pub(super) const GOES_ON: &str = "memory goes on with the log of this server";
pub(super) const ANEW: &str = "memory is filled anew beside this server";

/// Options that give a server's transactions global ids, log what a replica applies, and make the log survive a crash.
pub(super) fn options(mariadb: bool) -> &'static [&'static str] {
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

/// A primary with a replica, and a Headwater that connects to either of them through a relay.
pub(super) struct Scene<'a> {
    pub(super) primary: &'a mut PrivateServer,
    pub(super) replica: PrivateServer,
    pub(super) road: Relay,
    pub(super) proxy: Proxy,
    pub(super) login: Login,
    /// The length of Headwater's log just before the server that it follows changed.
    logged: Cell<usize>,
    /// Where the next process finds this one.
    _folder: tempfile::TempDir,
}

impl<'a> Scene<'a> {
    pub(super) fn new(primary: &'a mut PrivateServer) -> Scene<'a> {
        let replica = another(primary, options(primary.kind() == ServerKind::Mariadb));
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
        root.ok("CREATE TABLE user_names (id INT UNSIGNED NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL)");
        let names: Vec<String> = (1..=AUTHORS)
            .map(|id| format!("({id}, 'user {id}')"))
            .collect();
        root.ok(&format!(
            "INSERT INTO user_names VALUES {}",
            names.join(",")
        ));
        let how = match replica.kind() {
            ServerKind::Mariadb => "MASTER_USE_GTID=slave_pos",
            ServerKind::Mysql => "SOURCE_AUTO_POSITION=1",
        };
        follow(&replica, primary.port(), "root", how);
        let road = Relay::start(primary.addr());
        let settings = [
            "[freshness]\nwait_ms = 2000\n[feeds]\nnarrow = \"always\"\n",
            CLASSIC_FEED,
        ]
        .concat();
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("takeover.sock");
        let flags = [
            ROOT_SERVICE,
            &["--takeover-socket", socket.to_str().unwrap()],
        ]
        .concat();
        let proxy = Proxy::configured(road.addr(), &settings, &flags);
        proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
        let scene = Scene {
            primary,
            replica,
            road,
            proxy,
            login,
            logged: Cell::new(0),
            _folder: folder,
        };
        scene.wait_for_replica();
        scene.fill();
        scene
    }

    /// Brings every reader's page into memory.
    #[track_caller]
    pub(super) fn fill(&self) {
        let deadline = patience();
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
        // Meanwhile Headwater reads the earlier events of the log.
        std::thread::sleep(Duration::from_millis(500));
    }

    /// Waits until the replica has everything that the primary has.
    #[track_caller]
    pub(super) fn wait_for_replica(&self) {
        let sum = "SELECT COUNT(*) + COALESCE(SUM(id), 0) FROM message";
        let mut source = WireClient::login(self.primary.addr(), &self.login);
        let wanted = source.column(sum);
        let deadline = patience();
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

    /// Waits until the replica has every transaction of the primary, without any writer running.
    #[track_caller]
    pub(super) fn wait_for_the_log(&self) {
        let position = |server: &PrivateServer| {
            let position = match server.kind() {
                ServerKind::Mariadb => "SELECT @@GLOBAL.gtid_binlog_pos",
                ServerKind::Mysql => "SELECT @@GLOBAL.gtid_executed",
            };
            WireClient::connect(server.addr()).column(position)
        };
        let deadline = patience();
        while position(&self.replica) != position(self.primary) {
            assert!(Instant::now() < deadline, "the replica does not catch up");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Marks that the followed server, or the connection to it, is about to change: earlier log lines concern the earlier server.
    pub(super) fn will_change(&self) {
        self.logged.set(self.proxy.log().len());
    }

    /// Kills the primary, promotes the replica, and directs the relay to it.
    pub(super) fn fail_over(&mut self) {
        self.will_change();
        self.primary.kill();
        self.promote();
    }

    pub(super) fn promote(&self) {
        let mut root = WireClient::connect(self.replica.addr());
        let stop = match self.replica.kind() {
            ServerKind::Mariadb => ["STOP SLAVE", "RESET SLAVE ALL"],
            ServerKind::Mysql => ["STOP REPLICA", "RESET REPLICA ALL"],
        };
        for statement in stop {
            root.ok(statement);
        }
        self.road.lead_to(self.replica.addr());
    }

    /// The number of authors in memory once Headwater follows the log again after the last change, before any page is requested.
    #[track_caller]
    pub(super) fn authors(&self) -> u64 {
        let deadline = patience();
        let is_followed = || {
            let log = self.proxy.log();
            let says = |text: &str| log[self.logged.get()..].rfind(text);
            says("the server's log is followed again") > says("nothing is answered from memory: ")
        };
        while !is_followed() {
            assert!(Instant::now() < deadline, "{}", self.proxy.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut client = self.proxy.login(&self.login);
        let rows = client.rows("SHOW HEADWATER MEMORY LIKE '%authors%'");
        rows[0][1].as_deref().unwrap().parse().unwrap()
    }

    /// Checks that every reader's page equals the procedure's on `server`, and that memory answers in the end.
    #[track_caller]
    pub(super) fn check(&self, server: &PrivateServer) {
        let mut direct = WireClient::login(server.addr(), &self.login);
        let mut client = self.proxy.login(&self.login);
        let deadline = patience();
        loop {
            let before = self.proxy.counts().of("calls_from_memory");
            for reader in 1..=READERS {
                let own = page(&mut client, reader);
                let theirs = page(&mut direct, reader);
                assert_eq!(own, theirs, "reader {reader}: {}", self.proxy.log());
                for statement in [rows(reader), named(reader), count(reader)] {
                    let [own, theirs] =
                        [&mut client, &mut direct].map(|client| client.rows(&statement));
                    assert_eq!(own, theirs, "reader {reader}: {}", self.proxy.log());
                }
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

    pub(super) fn write(&self, server: &PrivateServer, ids: std::ops::Range<u64>) {
        let mut root = WireClient::login(server.addr(), &self.login);
        for id in ids {
            root.ok(&format!(
                "INSERT INTO message (id, user_id, body) VALUES ({id}, {}, 'later')",
                1 + id % AUTHORS
            ));
        }
    }
}

pub(super) fn page(client: &mut WireClient, reader: u64) -> BTreeSet<u64> {
    client.ok(&format!("CALL fetch_timeline_ids({reader})"));
    numbers(&client.column("SELECT id FROM fetch_timeline_tt"))
}

/// The SELECT of a reader's newest rows.
pub(super) fn rows(reader: u64) -> String {
    format!(
        "SELECT message.id, body FROM message JOIN follower ON message.user_id = follower.follower_id \
         WHERE follower.user_id = {reader} ORDER BY message.id DESC LIMIT 20"
    )
}

/// The same, joined with the authors' names.
pub(super) fn named(reader: u64) -> String {
    format!(
        "SELECT message.id, body, name FROM message JOIN follower ON message.user_id = follower.follower_id \
         JOIN user_names ON user_names.id = message.user_id \
         WHERE follower.user_id = {reader} ORDER BY message.id DESC LIMIT 20"
    )
}

/// The number of a reader's messages that a filter passes.
pub(super) fn count(reader: u64) -> String {
    format!(
        "SELECT COUNT(*) FROM message JOIN follower ON message.user_id = follower.follower_id \
         WHERE follower.user_id = {reader} AND body <> 'hidden'"
    )
}

/// Resets the log: it no longer contains the statements that set up the server.
pub(super) fn forget_the_past(server: &PrivateServer) {
    let mut root = WireClient::connect(server.addr());
    let statements: &[&str] = match server.kind() {
        ServerKind::Mariadb => &["RESET MASTER", "SET GLOBAL gtid_slave_pos = ''"],
        ServerKind::Mysql => &["RESET BINARY LOGS AND GTIDS"],
    };
    for statement in statements {
        root.ok(statement);
    }
}
