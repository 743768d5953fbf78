//! Clients that request more than they read.

use std::io::ErrorKind;
use std::time::Duration;

use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_each_server;
use crate::kit::timeline::{Timeline, insert};
use crate::kit::twin::Twin;

const TAIL: &str = "SELECT message.id, user_id, body FROM message \
                    INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";

/// What a session may use, without the sockets' own buffers.
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
            .tcp()
            .set_write_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        // Five kilobytes each: 200 MB if all were answered.
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
        // Answering was useful: the replies to the first requests are complete.
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

/// Beyond a limit, the server answers as without Headwater.
#[test]
fn what_exceeds_a_limit_is_the_servers() {
    on_each_server(|server| {
        let timeline = Timeline {
            n: 3,
            ..Timeline::SILENT
        };
        let database = Database::empty(server, "limits");
        let mut client = database.connect();
        timeline.create(&mut client);
        let authors: Vec<u32> = (100..112).collect();
        insert(&mut client, "follower", &authors, |author| {
            format!("(1,{author})")
        });
        client.ok("INSERT INTO follower VALUES (2, 100), (2, 101)");
        let body = "x".repeat(255);
        let messages: Vec<u32> = (1..6_000).collect();
        insert(&mut client, "message", &messages, |id| {
            format!("({id},{},repeat('{body}', {}))", 100 + id % 12, id % 2)
        });
        client.ok("ALTER TABLE message MODIFY body varchar(2000) NOT NULL");
        client.ok("UPDATE message SET body = repeat(body, 5) WHERE id > 5900");
        client.query("ANALYZE TABLE message, follower");
        let settings = format!(
            "[limits]\npending_ids = 9\ntail_bytes = 1024\n{}",
            timeline.toml()
        );
        let proxy = Proxy::configured(server.addr(), &settings, &[]);
        let tail = TAIL.replace("LIMIT 20", "LIMIT 3");

        let mut twin = Twin::new(server, &proxy, &database.login()).parse_is_silent();
        // Twelve heads, where the limit is nine.
        twin.run("CALL fetch_timeline_ids2(1, 5000)");
        twin.run(&tail);
        let counts = proxy.counts();
        assert_eq!(counts.of("calls_relayed[too_many_ids]"), 1, "{counts:?}");
        // A new session: a session does not retry what failed once.
        let mut twin = Twin::new(server, &proxy, &database.login()).parse_is_silent();
        for call in [
            "CALL fetch_timeline_ids2(2, 5000)",
            "CALL fetch_timeline_ids(1)",
        ] {
            twin.run(call);
            twin.run(&tail);
            twin.run("SELECT COUNT(*) FROM fetch_timeline_tt");
        }
        let counts = proxy.counts();
        assert_eq!(counts.of("calls_owned"), 2, "{counts:?}");
        // The newest bodies exceed the limit for the buffered rows of a follow-up SELECT.
        assert_eq!(counts.of("tails_retried"), 1, "{counts:?}");
    });
}
