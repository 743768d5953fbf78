//! Concurrent writers cause no false differences.

use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::{READERS, Scene, USERS};
use crate::kit::random::Random;
use crate::kit::servers::on_each_quiet_server;
use crate::kit::wire_client::WireClient;

const AGAIN: &str = " had to be asked again";
/// Each takes some tenths of a second.
const ROUNDS: u32 = 60;

/// Inserts and follows, or deletes and unfollows, and edits. Pages only grow or only shrink during a comparison: a change that is taken back
/// within it would look as a late answer.
fn write(client: &mut WireClient, random: &mut Random, grow: bool) {
    let (reader, author) = (1 + random.below(READERS), 1 + random.below(USERS));
    match (random.below(3), grow) {
        (0, true) => client.ok(&format!(
            "INSERT IGNORE INTO follower VALUES ({reader}, {author})"
        )),
        (0, false) => client.ok(&format!(
            "DELETE FROM follower WHERE user_id = {reader} AND follower_id = {author}"
        )),
        (1, true) => client.ok(&format!(
            "INSERT INTO message (user_id, body) VALUES ({author}, 'new')"
        )),
        (1, false) => client.ok(&format!(
            "DELETE FROM message WHERE user_id = {author} ORDER BY id DESC LIMIT 1"
        )),
        _ => client.ok(&format!(
            "UPDATE message SET body = CONCAT('edited ', RAND()) WHERE user_id = {author} ORDER BY id DESC LIMIT 2"
        )),
    };
}

#[test]
fn a_server_that_is_written_to_has_no_differences() {
    on_each_quiet_server(|server| {
        let scene = Scene::of(server, "verify_writers");
        let (done, grow) = (AtomicBool::new(false), RwLock::new(true));
        let verified = thread::scope(|scope| {
            for seed in 1..=2 {
                let (scene, done, grow) = (&scene, &done, &grow);
                scope.spawn(move || {
                    let (mut client, mut random) = (scene.database.connect(), Random(seed));
                    while !done.load(Ordering::Relaxed) {
                        let grow = grow.read().unwrap();
                        write(&mut client, &mut random, *grow);
                        drop(grow);
                        thread::sleep(Duration::from_millis(3));
                    }
                });
            }
            // Repeats until some pages change between the two reads: else the test would prove nothing.
            let mut verified = scene.verify(&[]);
            for _ in 1..ROUNDS {
                if verified.status != 0 || verified.report.contains(AGAIN) {
                    break;
                }
                let mut grow = grow.write().unwrap();
                *grow = !*grow;
                drop(grow);
                verified = scene.verify(&[]);
            }
            done.store(true, Ordering::Relaxed);
            verified
        });
        verified.is_equal();
        verified.says(AGAIN);
    });
}
