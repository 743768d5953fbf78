//! A server restarts without transactions that its log has, or with some that its log has lost: answers still match the server.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use headwater_lab::private_server::{PrivateServer, ServerKind};

use super::scene::{READERS, Scene, options};
use crate::kit::how_many;
use crate::kit::patience;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::WireClient;

/// How a server comes back with a different state; returns `true` if rows of its log are lost.
type Crash = (&'static str, fn(&mut Scene<'_>) -> bool);

const CRASHES: [Crash; 6] = [
    ("nothing was flushed, which is set otherwise now", |scene| {
        with_setting(scene, "innodb_flush_log_at_trx_commit = 0");
        killed_behind_writes(scene)
    }),
    ("the system was to flush", |scene| {
        with_setting(scene, "innodb_flush_log_at_trx_commit = 2");
        killed_behind_writes(scene)
    }),
    ("the log was not synced, and has lost its end", |scene| {
        with_setting(scene, "sync_binlog = 0");
        killed_behind_writes(scene);
        cut_the_log(scene);
        true
    }),
    ("neither was, both are set back", |scene| {
        with_setting(scene, "sync_binlog = 0");
        with_setting(scene, "innodb_flush_log_at_trx_commit = 0");
        let lost = killed_behind_writes(scene);
        with_setting(scene, "sync_binlog = 1");
        with_setting(scene, "innodb_flush_log_at_trx_commit = 1");
        lost
    }),
    ("a run of the server had no log", |scene| {
        let usual = options(scene.primary.kind() == ServerKind::Mariadb);
        scene.primary.stop();
        let logless: Vec<&str> = usual
            .iter()
            .copied()
            .filter(|option| !option.contains("gtid"))
            .collect();
        scene
            .primary
            .set_options(&[&logless[..], &["--skip-log-bin"]].concat());
        scene.primary.restart().unwrap();
        let mut root = WireClient::login(scene.primary.addr(), &scene.login);
        root.ok("DELETE FROM message WHERE id > 1950");
        root.ok("UPDATE message SET body = 'unlogged' WHERE id > 1900");
        scene.primary.stop();
        scene.primary.set_options(usual);
        scene.primary.restart().unwrap();
        true
    }),
    ("a snapshot of the disk was restored", |scene| {
        let data = scene.primary.data();
        let saved = data.with_extension("saved");
        scene.primary.stop();
        copy(&data, &saved);
        scene.primary.restart().unwrap();
        scene.road.lead_to(scene.primary.addr());
        scene.write(scene.primary, 3_000..3_100);
        scene.check(scene.primary);
        scene.primary.kill();
        std::fs::remove_dir_all(&data).unwrap();
        std::fs::rename(&saved, &data).unwrap();
        scene.primary.restart().unwrap();
        // The server reuses transaction numbers that memory already has.
        scene.write(scene.primary, 3_500..3_600);
        true
    }),
];

fn with_setting(scene: &Scene<'_>, setting: &str) {
    let mut root = WireClient::connect(scene.primary.addr());
    root.ok(&format!("SET GLOBAL {setting}"));
}

/// Kills the server right after writes that memory has; retries while the writes survive. Returns true once some are lost.
fn killed_behind_writes(scene: &mut Scene<'_>) -> bool {
    for attempt in 0..3 {
        let from = 3_000 + attempt * 200;
        scene.fill();
        scene.write(scene.primary, from..from + 100);
        // These calls bring every logged change into memory before the server dies.
        let mut client = scene.proxy.login(&scene.login);
        for reader in 1..=READERS {
            client.ok(&format!("CALL fetch_timeline_ids({reader})"));
        }
        scene.primary.kill();
        scene.primary.restart().unwrap();
        scene.road.lead_to(scene.primary.addr());
        let mut root = WireClient::login(scene.primary.addr(), &scene.login);
        let count = format!("SELECT COUNT(*) FROM message WHERE id >= {from}");
        let left = root.column(&count).remove(0);
        eprintln!("of 100 messages {left} are left");
        if left != "100" {
            return true;
        }
    }
    false
}

/// Truncates the log's last file while the server is down.
fn cut_the_log(scene: &mut Scene<'_>) {
    scene.fill();
    scene.write(scene.primary, 3_800..3_850);
    scene.check(scene.primary);
    let mut root = WireClient::connect(scene.primary.addr());
    let status = match scene.primary.kind() {
        ServerKind::Mariadb => "SHOW MASTER STATUS",
        ServerKind::Mysql => "SHOW BINARY LOG STATUS",
    };
    let name = root.rows(status)[0][0].clone().unwrap();
    scene.primary.kill();
    let file = scene.primary.data().join(name);
    let length = std::fs::metadata(&file).unwrap().len();
    let log = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    log.set_len(length - 4_000).unwrap();
    scene.primary.restart().unwrap();
    // The server reuses the lost transactions' numbers.
    scene.write(scene.primary, 3_900..3_920);
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(done.unwrap().success());
}

/// Restarts a server after this crash, and compares all pages while writers run.
fn come_back(primary: &mut PrivateServer, (name, crash): Crash, rounds: u64) {
    eprintln!("{name}");
    let mut scene = Scene::new(primary);
    let has_lost = crash(&mut scene);
    scene.road.lead_to(scene.primary.addr());
    let deadline = patience();
    while WireClient::try_login(scene.proxy.addr(), &scene.login).is_err() {
        assert!(Instant::now() < deadline);
    }
    for round in 0..rounds {
        scene.check(scene.primary);
        scene.write(scene.primary, 5_000 + round * 10..5_010 + round * 10);
    }
    scene.check(scene.primary);
    let log = scene.proxy.log();
    eprintln!(
        "rows of the log are gone: {has_lost}; different: {}",
        scene.proxy.counts().of("memory_different")
    );
    assert!(!log.contains("contradict"), "{log}");
}

/// The number of comparisons of all pages; each compares one page of ids and two of rows for every reader.
fn rounds() -> u64 {
    how_many("HEADWATER_CHECKS", 120).min(10_000) / (READERS * 3) + 1
}

#[test]
fn a_server_that_lost_what_its_log_has_is_answered_by_its_own_rows() {
    on_servers_of_its_own(options, |primary| come_back(primary, CRASHES[0], rounds()));
}

#[test]
fn a_server_that_ran_without_its_log_is_answered_by_its_own_rows() {
    on_servers_of_its_own(options, |primary| come_back(primary, CRASHES[4], rounds()));
}

#[test]
fn a_server_on_an_older_state_of_its_disk_is_answered_by_its_own_rows() {
    on_servers_of_its_own(options, |primary| come_back(primary, CRASHES[5], rounds()));
}

/// The other crashes; `make soak` runs them.
#[test]
fn other_crashes() {
    if how_many("HEADWATER_CHECKS", 0) == 0 {
        return;
    }
    for crash in &CRASHES[1..4] {
        on_servers_of_its_own(options, |primary| come_back(primary, *crash, rounds()));
    }
}
