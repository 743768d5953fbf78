//! Clients that ask for more than they take.

use std::io::ErrorKind;
use std::time::Duration;

use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_each_server;
use crate::kit::timeline::{Timeline, insert};

const TAIL: &str = "SELECT message.id, user_id, body FROM message \
                    INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";

/// What a session may take, the sockets' own buffers aside.
const SESSION_KIB: u64 = 4 * 1024;

#[test]
fn owned_answers_that_nobody_reads_do_not_grow_the_proxy() {
    on_each_server(|server| {
        let database = Database::empty(server, "unread");
        let mut client = database.connect();
        Timeline::SILENT.create(&mut client);
        client.ok("INSERT INTO follower VALUES (1, 2)");
        let messages: Vec<u32> = (1..=5_000).collect();
        let body = "x".repeat(255);
        insert(&mut client, "message", &messages, |id| {
            format!("({id},2,'{body}')")
        });
        client.query("ANALYZE TABLE message, follower");
        let proxy = Proxy::start(server.addr(), &[]);
        let mut client = proxy.login(&database.login());
        client.ok("CALL fetch_timeline_ids(1)");
        client.rows(TAIL);
        let before = proxy.resident_kib();

        client.ok("CALL fetch_timeline_ids(1)");
        let payload = client.query_payload(TAIL.as_bytes(), &[]);
        client
            .stream
            .set_write_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        // Five kilobytes each, if all were answered: 200 MB.
        let mut sent = 0;
        while sent < 40_000 {
            match client.send(&payload) {
                Ok(()) => sent += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        std::thread::sleep(Duration::from_millis(500));
        let grown = proxy.peak_kib().saturating_sub(before);
        assert!(
            grown < SESSION_KIB,
            "grew by {grown} KiB after {sent} tails"
        );
        // They were worth answering: those first in line are whole.
        for _ in 0..20 {
            let mut packets = 0;
            while packets < 1 + 3 + 20 + 1 {
                client.read_packet().unwrap();
                packets += 1;
            }
        }
        let counts = proxy.counts();
        assert!(counts.of("tails_virtual") > 20, "{counts:?}");
    });
}
