//! Pipelined commands, bytes that arrive one at a time, and a client that stops half way.

use std::io::Write;
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use super::talk::{read_to_end, same_with_and_without};
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::servers::{on_each_server, on_servers_of_its_own};
use crate::kit::wire_client::packet::encode;
use crate::kit::wire_client::{COM_PING, COM_QUERY, Login, WireClient};

#[test]
fn a_hundred_commands_in_one_write_are_answered_in_order() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_pipelines");
        database.connect().ok("CREATE TABLE t (id int PRIMARY KEY)");
        same_with_and_without(server, &database.login(), |talk| {
            talk.query("TRUNCATE t");
            let commands: Vec<Vec<u8>> = (0..100)
                .map(|n| match n % 5 {
                    0 => vec![COM_PING],
                    1 => talk
                        .client
                        .query_payload(format!("SELECT {n}").as_bytes(), &[]),
                    2 => talk
                        .client
                        .query_payload(format!("INSERT INTO t VALUES ({n})").as_bytes(), &[]),
                    // A duplicate key: an error does not stop the commands after it.
                    3 => talk
                        .client
                        .query_payload(format!("INSERT INTO t VALUES ({})", n - 1).as_bytes(), &[]),
                    _ => talk
                        .client
                        .query_payload(b"SELECT 1; SELECT * FROM t LIMIT 3; DO 1", &[]),
                })
                .collect();
            let bytes: Vec<u8> = commands
                .iter()
                .flat_map(|command| encode(0, command))
                .collect();
            talk.client.stream.write_all(&bytes).unwrap();
            for command in &commands {
                let reply = talk.client.reply(command[0]).unwrap();
                talk.heard("one of a hundred", &reply.raw);
            }
        });
    });
}

/// More than Headwater tracks at a time (`limits.in_flight`): the remainder waits.
#[test]
fn two_thousand_commands_in_flight_are_all_answered() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &[]);
        let mut client = proxy.login(&Login::default());
        let mut writer = client.stream.tcp().try_clone().unwrap();
        let writing = thread::spawn(move || {
            for n in 0..2_000 {
                let payload = format!("\u{3}SELECT {n}");
                writer.write_all(&encode(0, payload.as_bytes())).unwrap();
            }
        });
        for n in 0..2_000 {
            let reply = client.reply(COM_QUERY).unwrap();
            let row = &reply.packets[2].payload;
            assert_eq!(&row[1..], n.to_string().as_bytes());
        }
        writing.join().unwrap();
    });
}

#[test]
fn bytes_may_come_one_at_a_time() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_dribble");
        database.connect().ok("CREATE TABLE t (id int)");
        same_with_and_without(server, &database.login(), |talk| {
            for sql in [
                "SELECT 'one byte at a time'",
                "CALL fetch_timeline_ids(7)",
                "INSERT INTO t VALUES (1)",
            ] {
                let command = talk.client.query_payload(sql.as_bytes(), &[]);
                for byte in encode(0, &command) {
                    talk.client.stream.write_all(&[byte]).unwrap();
                    thread::sleep(Duration::from_micros(200));
                }
                let reply = talk.client.reply(COM_QUERY).unwrap();
                talk.heard(sql, &reply.raw);
            }
        });
    });
}

/// Like `printf ... | nc`: it sends all commands, closes its half, and reads on.
#[test]
fn a_client_that_closes_its_side_still_gets_its_replies() {
    on_each_server(|server| {
        same_with_and_without(server, &Login::default(), |talk| {
            let last = talk.client.query_payload(b"SELECT 'the last word'", &[]);
            let commands = [encode(0, &[COM_PING]), encode(0, &last)].concat();
            talk.client.stream.write_all(&commands).unwrap();
            talk.client.stream.tcp().shutdown(Shutdown::Write).unwrap();
            talk.read_to_its_end();
        });
    });
}

/// As drivers do with pending commands. The replies are large enough to be in transit when the client quits.
#[test]
fn a_client_that_quits_and_closes_its_side_still_gets_its_replies() {
    on_each_server(|server| {
        same_with_and_without(server, &Login::default(), |talk| {
            let last = talk
                .client
                .query_payload(b"SELECT REPEAT('the last word ', 500000)", &[]);
            let commands = [encode(0, &last), encode(0, &[1])].concat();
            talk.client.stream.write_all(&commands).unwrap();
            talk.client.stream.tcp().shutdown(Shutdown::Write).unwrap();
            talk.read_to_its_end();
        });
    });
}

/// A server counts clients that it lost without COM_QUIT.
#[test]
fn a_server_hears_those_quit_who_close_at_once() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let proxy = Proxy::start(server.addr(), &[]);
            let mut root = WireClient::connect(server.addr());
            let lost = "SHOW GLOBAL STATUS LIKE 'Aborted_clients'";
            let sessions =
                "SELECT COUNT(*) FROM information_schema.processlist WHERE command <> 'Daemon'";
            let before = root.rows(lost);
            for _ in 0..200 {
                let mut client: WireClient = proxy.login(&Login::default());
                client.send(&[1]).unwrap();
            }
            let client: WireClient = proxy.login(&Login::default());
            while root.column(sessions) != ["2"] {
                thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(root.rows(lost), before);
            // It does count a client that closes without COM_QUIT.
            drop(client);
            while root.rows(lost) == before {
                thread::sleep(Duration::from_millis(10));
            }
        },
    );
}

#[test]
fn a_client_that_leaves_in_mid_packet_takes_its_session_along() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &[]);
        let mut client = proxy.login(&Login::default());
        let id = client.greeting.thread_id;
        let packet = encode(0, &client.query_payload(&[b'x'; 200_000], &[]));
        client.stream.write_all(&packet[..100_000]).unwrap();
        drop(client);
        let mut root = server.connect();
        let gone = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}");
        while root.column(&gone) != ["0"] {
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(proxy.login(&Login::default()).column("SELECT 1"), ["1"]);
    });
}

#[test]
fn quit_ends_the_connection() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &[]);
        let mut client: WireClient = proxy.login(&Login::default());
        client.send(&[1]).unwrap();
        assert_eq!(read_to_end(&mut client.stream), b"");
    });
}
