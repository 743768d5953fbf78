//! Concurrent writers cause no false differences.

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

/// Inserts, deletes, follows and unfollows.
fn write(client: &mut WireClient, random: &mut Random) {
    let (reader, author) = (1 + random.below(READERS), 1 + random.below(USERS));
    match random.below(6) {
        0 => client.ok(&format!(
            "INSERT IGNORE INTO follower VALUES ({reader}, {author})"
        )),
        1 => client.ok(&format!(
            "DELETE FROM follower WHERE user_id = {reader} AND follower_id = {author}"
        )),
        2 => client.ok(&format!(
            "DELETE FROM message WHERE user_id = {author} ORDER BY id DESC LIMIT 1"
        )),
        3 => client.ok(&format!(
            "UPDATE message SET body = CONCAT('edited ', RAND()) WHERE user_id = {author} ORDER BY id DESC LIMIT 2"
        )),
        _ => client.ok(&format!(
            "INSERT INTO message (user_id, body) VALUES ({author}, 'new')"
        )),
    };
}

#[test]
fn a_server_that_is_written_to_has_no_differences() {
    on_each_quiet_server(|server| {
        let scene = Scene::of(server, "verify_writers");
        let done = AtomicBool::new(false);
        let verified = thread::scope(|scope| {
            for seed in 1..=2 {
                let (scene, done) = (&scene, &done);
                scope.spawn(move || {
                    let (mut client, mut random) = (scene.database.connect(), Random(seed));
                    while !done.load(Ordering::Relaxed) {
                        write(&mut client, &mut random);
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
                verified = scene.verify(&[]);
            }
            done.store(true, Ordering::Relaxed);
            verified
        });
        verified.is_equal();
        verified.says(AGAIN);
    });
}
