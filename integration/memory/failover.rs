//! Memory survives a failover if the new primary's history holds every transaction that memory was built from; otherwise it is emptied.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headwater_lab::private_server::ServerKind;

use super::scene::{ANEW, AUTHORS, GOES_ON, READERS, Scene, count, forget_the_past, options, rows};
use crate::kit::how_many;
use crate::kit::patience;
use crate::kit::random::Random;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, WireClient};

#[test]
fn memory_goes_on_with_the_replica_that_was_promoted() {
    on_servers_of_its_own(options, |primary| {
        let mut scene = Scene::new(primary);
        scene.write(scene.primary, 3_000..3_200);
        scene.check(scene.primary);
        // The last transaction is slow.
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

/// Clients and memory have the transactions that only the old primary had.
#[test]
fn what_the_old_primary_alone_had_empties_memory() {
    on_servers_of_its_own(options, |primary| {
        let mut scene = Scene::new(primary);
        let mut root = WireClient::connect(scene.replica.addr());
        root.ok(match scene.replica.kind() {
            ServerKind::Mariadb => "STOP SLAVE",
            ServerKind::Mysql => "STOP REPLICA",
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

/// The replica has an earlier transaction that no other server has.
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
        let deadline = patience();
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

/// The connection is lost while the server stays up or restarts, and writers go on meanwhile.
#[test]
fn memory_goes_on_with_the_same_server() {
    on_servers_of_its_own(options, |primary| {
        let scene = Scene::new(primary);
        let mut root = WireClient::connect(scene.primary.addr());
        for round in 0..3 {
            scene.will_change();
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
        // The killed server has lost nothing of its log, and reports that.
        scene.will_change();
        scene.primary.restart().unwrap();
        scene.road.lead_to(scene.primary.addr());
        scene.write(scene.primary, 4_000..4_050);
        assert_eq!(scene.authors(), AUTHORS, "{}", scene.proxy.log());
        scene.check(scene.primary);
        let log = scene.proxy.log();
        assert!(log.contains(GOES_ON), "{log}");
    });
}

/// Ends all binary log streams.
fn cut_streams(root: &mut WireClient) {
    // Not from information_schema: MariaDB 10.11 crashed in that next to KILL.
    let rows = root.rows("SHOW PROCESSLIST");
    let is_stream = |doing: &str| doing.starts_with("Binlog Dump");
    for row in rows
        .iter()
        .filter(|row| row[4].as_deref().is_some_and(is_stream))
    {
        root.ok(&format!("KILL {}", row[0].as_deref().unwrap()));
    }
}

/// While Headwater is disconnected, the log is reset and the server restarts: it reuses transaction numbers that memory has.
#[test]
fn numbers_that_were_given_again_empty_memory() {
    on_servers_of_its_own(options, |primary| {
        let scene = Scene::new(primary);
        scene.write(scene.primary, 2_500..2_510);
        scene.check(scene.primary);
        let mut root = WireClient::login(scene.primary.addr(), &scene.login);
        scene.will_change();
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

/// An operator alters a table on the replica alone, without logging it.
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

/// The new primary resets its log to before what memory has, and reuses the same transaction numbers.
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

/// Writes random changes until the server is gone.
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

/// Reads pages and counts until the server is gone.
fn read_until_the_end(proxy: SocketAddr, login: &Login, number: u64) {
    let mut random = Random(1_000 + number);
    let Ok(Ok(mut client)) = WireClient::try_login(proxy, login) else {
        return;
    };
    loop {
        let reader = 1 + random.below(READERS);
        let texts = [
            format!("CALL fetch_timeline_ids({reader})"),
            rows(reader),
            count(reader),
        ];
        if texts.iter().any(|text| client.query_reply(text).is_err()) {
            return;
        }
    }
}

/// The primary dies at full speed. The replica may have more or fewer of its transactions than memory: either way, every answer
/// holds only what the replica has.
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
                    // The pause lets the replica catch up.
                    calm.store(true, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(1_000));
                    scene.wait_for_the_log();
                }
                scene.will_change();
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
