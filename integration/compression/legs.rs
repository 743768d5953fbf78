//! Compression on one side only, or with a different algorithm on each side.

use super::{CALLS, TAIL, algorithms};
use crate::kit::certificates::trust_anyone;
use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::{
    Server, on_each_release, on_each_server, on_servers_of_its_own, wait_until_busy,
};
use crate::kit::wire_client::capability::{COMPRESS, ZSTD_COMPRESSION};
use crate::kit::wire_client::packet::Packet;
use crate::kit::wire_client::{COM_PING, COM_STMT_CLOSE, INFILE_PACKET, Login, WireClient};

/// With its newline, one packet of a file.
const LINE: &[u8] = &[b'7'; INFILE_PACKET - 1];
const LOAD: &str = "LOAD DATA LOCAL INFILE 'any' INTO TABLE t";

fn settings(clients: &str, server: &str) -> String {
    format!("[compression]\nclients = '{clients}'\nserver = '{server}'\n")
}

fn proxy(server: &'static Server, clients: &str, servers: &str) -> Proxy {
    Proxy::configured(server.addr(), &settings(clients, servers), ROOT_SERVICE)
}

/// Whether the server reports the session's connection as compressed.
fn is_compressed(client: &mut WireClient) -> bool {
    let rows = client.rows("SHOW STATUS LIKE 'Compression'");
    rows[0][1].as_deref() == Some("ON")
}

/// The packets of the replies to all kinds of commands, by command.
fn told(client: &mut WireClient) -> Vec<(String, Vec<Packet>)> {
    let mut told = Vec::new();
    let rows = |count: usize| {
        format!(
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT i FROM n"
        )
    };
    let numbers = rows(900);
    for statement in [
        "SELECT 1",
        "SELECT REPEAT('x', 70000), REPEAT('y', 20)",
        "nonsense",
        "SELECT 2; SELECT REPEAT('z', 300); DO 1",
        &format!("DO 1; {numbers}; DO 2; SELECT 3; nonsense"),
        &numbers,
        "SELECT REPEAT('w', 17000000)",
        "SELECT REPEAT('v', 16777210); SELECT 5",
        "SET @a = 5",
    ] {
        let reply = client.query_reply(statement).unwrap();
        told.push((statement.to_owned(), reply.packets));
    }
    for length in [17_000_000, (1 << 24) - 1 - 18, (2 << 24) - 2 - 18] {
        let long = format!("SELECT LENGTH('{}')", "q".repeat(length));
        let reply = client.query_reply(&long).unwrap();
        told.push((format!("{length} bytes"), reply.packets));
    }
    let reply = client.command(&[COM_PING]).unwrap();
    told.push(("ping".to_owned(), reply.packets));
    let statement = client.prepare("SELECT ?, @a");
    for parameter in ["seven", &"p".repeat(17_000_000)] {
        let executed = client.execute(statement, &[Some(parameter)], 0).unwrap();
        told.push((
            format!("executed with {}", parameter.len()),
            executed.packets,
        ));
    }
    // Several commands at once, one of which has no reply.
    let long = format!("SELECT LENGTH('{}')", "r".repeat(17_000_000));
    let commands = [
        client.query_payload(b"SELECT 'ahead'", &[]),
        client.query_payload(long.as_bytes(), &[]),
        [&[COM_STMT_CLOSE][..], &statement.to_le_bytes()].concat(),
        vec![COM_PING],
    ];
    if client.stream.framed().is_none() {
        for command in &commands {
            client.send(command).unwrap();
        }
        for command in &commands {
            let reply = client.reply(command[0]).unwrap();
            told.push(("one of several".to_owned(), reply.packets));
        }
    }
    told.extend(files(client));
    told
}

/// Files of so many packets, alone and among other statements.
fn files(client: &mut WireClient) -> Vec<(String, Vec<Packet>)> {
    let mut told = Vec::new();
    let mut load = |statement: &str, packets: usize| {
        client.infile = [LINE, b"\n"].concat().repeat(packets);
        let reply = client.query_reply(statement).unwrap();
        told.push((format!("{statement}, {packets} packets"), reply.packets));
        assert_eq!(
            client.column("SELECT COUNT(*) FROM t"),
            [packets.to_string()]
        );
        client.ok("TRUNCATE t");
    };
    for packets in [0, 1, 2, 252, 253, 254, 255, 256, 510] {
        load(LOAD, packets);
    }
    load(&format!("SELECT 1; {LOAD}; SELECT 2"), 3);
    // The server requests the file in packets with the last sequence numbers and the first.
    for rows in 247..=257 {
        let before = format!(
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i FROM n"
        );
        load(&format!("{before}; {LOAD}; SELECT 2"), 2);
    }
    let refused = "LOAD DATA LOCAL INFILE 'any' INTO TABLE t (no_such_column)";
    client.infile = LINE.repeat(3);
    let reply = client.query_reply(refused).unwrap();
    told.push((refused.to_owned(), reply.packets));
    client.infile = Vec::new();
    told
}

/// Changes the user twice, with a dialogue of several packets where the server is MySQL.
fn changes_user(client: &mut WireClient, login: &Login) -> Vec<(u8, usize)> {
    let before = client.login_raw.len();
    client.change_user(login).unwrap().unwrap();
    client.change_user(login).unwrap().unwrap();
    let raw = client.login_raw.split_off(before);
    let (mut said, mut rest) = (Vec::new(), &raw[..]);
    while !rest.is_empty() {
        let packet = Packet::read(&mut rest, &mut Vec::new()).unwrap();
        said.push((packet.seq, packet.payload.len()));
    }
    said
}

#[track_caller]
fn assert_same(
    one: &[(String, Vec<Packet>)],
    other: &[(String, Vec<Packet>)],
    numbers: bool,
    what: &str,
) {
    assert_eq!(one.len(), other.len(), "{what}");
    for ((said, one), (_, other)) in one.iter().zip(other) {
        let said = &said[..said.len().min(200)];
        assert_eq!(one.len(), other.len(), "{what}: packets of {said}");
        for (number, (one, other)) in one.iter().zip(other).enumerate() {
            if numbers {
                assert_eq!(
                    one.seq, other.seq,
                    "{what}: number of packet {number} of {said}"
                );
            }
            assert!(
                one.payload == other.payload,
                "{what}: packet {number} of {said}"
            );
        }
    }
}

/// A database with an empty table, and a user with a password.
fn stage(server: &'static Server, name: &str) -> (Database, Login) {
    let database = Database::empty(server, name);
    let mut root = database.connect();
    root.ok("SET GLOBAL local_infile = 1");
    root.ok("CREATE TABLE t (a mediumtext)");
    let other = Login::default().user(name).password("secret");
    (database, other)
}

/// Recreates the user: before a first login, the server requests the password itself.
fn made(database: &Database, user: &str) {
    let mut root = database.connect();
    root.ok(&format!("DROP USER IF EXISTS {user}@'%'"));
    root.ok(&format!("CREATE USER {user}@'%' IDENTIFIED BY 'secret'"));
}

#[test]
fn plain_clients_of_a_compressed_server_are_told_what_they_would_be_directly() {
    on_each_release(|server| {
        let (database, other) = stage(server, "legs_plain");
        let proxy = proxy(server, "mirror", "where-offered");
        for login in [
            database.login(),
            database
                .login()
                .without(crate::kit::wire_client::capability::DEPRECATE_EOF),
        ] {
            let mut direct = WireClient::login(server.addr(), &login);
            let mut client = proxy.login(&login);
            assert!(client.stream.framed().is_none());
            assert!(is_compressed(&mut client) && !is_compressed(&mut direct));
            assert_same(&told(&mut client), &told(&mut direct), true, "plain");
            made(&database, &other.user);
            let through = changes_user(&mut client, &other);
            made(&database, &other.user);
            assert_eq!(through, changes_user(&mut direct, &other));
            let who = "SELECT CURRENT_USER()";
            assert_eq!(
                client.query_reply(who).unwrap(),
                direct.query_reply(who).unwrap()
            );
        }
    });
}

#[test]
fn clients_in_frames_of_a_plain_server_are_told_what_they_would_be_directly() {
    on_each_server(|server| {
        let (database, other) = stage(server, "legs_framed");
        let proxy = proxy(server, "mirror", "never");
        for &algorithm in algorithms(server) {
            let login = database.login().with(algorithm);
            let mut direct = WireClient::login(server.addr(), &login);
            let mut client = proxy.login(&login);
            assert!(!is_compressed(&mut client) && is_compressed(&mut direct));
            assert_same(
                &told(&mut client),
                &told(&mut direct),
                false,
                &format!("{algorithm:#x}"),
            );
            let (came, went) = client.stream.framed().unwrap();
            assert!(came < 1 << 20 && went < 2 << 20, "{came} {went}");
            made(&database, &other.user);
            let through = changes_user(&mut client, &other);
            made(&database, &other.user);
            let direct = changes_user(&mut direct, &other);
            let lengths = |said: &[(u8, usize)]| said.iter().map(|it| it.1).collect::<Vec<_>>();
            assert_eq!(lengths(&through), lengths(&direct));
            client.ok("DO 1");
        }
    });
}

#[test]
fn each_side_has_an_algorithm_of_its_own() {
    on_servers_of_its_own(
        |mariadb| match mariadb {
            true => &["--max-allowed-packet=256M"],
            false => &[
                "--max-allowed-packet=256M",
                "--protocol-compression-algorithms=zstd,uncompressed",
                "--local-infile=1",
            ],
        },
        |server| {
            let mut root = WireClient::connect(server.addr());
            root.ok("CREATE DATABASE legs");
            root.ok("CREATE TABLE legs.t (a mediumtext)");
            let settings = settings("offer", "where-offered");
            let proxy = Proxy::configured(server.addr(), &settings, &["--tls-self-signed"]);
            let login = Login::default().database("legs");
            let straight = told(&mut WireClient::login(server.addr(), &login));
            for (algorithm, tls) in [
                (0, false),
                (COMPRESS, false),
                (ZSTD_COMPRESSION, false),
                (COMPRESS, true),
            ] {
                let mariadb = root.greeting.is_mariadb();
                if mariadb && (algorithm == ZSTD_COMPRESSION || tls) {
                    continue;
                }
                let mut login = Login::default().database("legs").with(algorithm);
                if tls {
                    login = login.tls(&trust_anyone());
                }
                let mut client = proxy.login(&login);
                assert_eq!(client.stream.framed().is_some(), algorithm != 0);
                assert!(is_compressed(&mut client));
                if !mariadb {
                    let rows = client.rows("SHOW STATUS LIKE 'Compression_algorithm'");
                    assert_eq!(rows[0][1].as_deref(), Some("zstd"));
                }
                // A compressed client does not send ahead.
                let numbers = algorithm == 0;
                let mut straight = straight.clone();
                if !numbers {
                    straight.retain(|(said, _)| said != "one of several");
                }
                assert_same(
                    &told(&mut client),
                    &straight,
                    numbers,
                    &format!("{algorithm:#x}"),
                );
            }
        },
    );
}

#[test]
fn clients_are_offered_what_the_settings_say() {
    on_each_server(|server| {
        let zstd = if server.is_mariadb() {
            0
        } else {
            ZSTD_COMPRESSION
        };
        let ways = |proxy: &Proxy| {
            let client = proxy.login(&Login::default());
            client.greeting.capabilities & (COMPRESS | ZSTD_COMPRESSION)
        };
        for (clients, offered) in [
            ("never", 0),
            ("offer", COMPRESS | zstd),
            ("mirror", COMPRESS | zstd),
        ] {
            let proxy = proxy(server, clients, "mirror");
            assert_eq!(ways(&proxy), offered, "{clients}");
            let mut client = proxy.login(&Login::default().with(COMPRESS));
            assert_eq!(is_compressed(&mut client), clients != "never", "{clients}");
        }
    });
}

#[test]
fn calls_are_owned_whatever_each_side_speaks() {
    on_each_server(|server| {
        for (clients, servers, algorithm) in [
            ("mirror", "where-offered", 0),
            ("never", "where-offered", 0),
            ("mirror", "never", COMPRESS),
        ] {
            let database = Database::classic(server, "legs_calls");
            let mut root = database.connect();
            root.ok("INSERT INTO follower VALUES (1, 2)");
            root.ok(
                "INSERT INTO message (id, user_id, body) VALUES (10, 2, 'ten'), (11, 2, 'eleven')",
            );
            let proxy = proxy(server, clients, servers);
            proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
            let login = database.login().with(algorithm);
            let mut direct = WireClient::login(server.addr(), &login);
            let mut client = proxy.login(&login);
            assert_eq!(is_compressed(&mut client), servers == "where-offered");
            let mut same = |statement: &str| {
                let one = client.query_reply(statement).unwrap().packets;
                let other = direct.query_reply(statement).unwrap().packets;
                let (mut one, mut other) = (one, other);
                if statement.contains(TAIL) {
                    // The flags in the terminator depend on the query plan, which differs.
                    let ends = [one.pop(), other.pop()].map(|end| end.unwrap());
                    assert!(
                        algorithm != 0 || ends[0].seq == ends[1].seq,
                        "{servers}: {ends:?}"
                    );
                    assert_eq!(ends[0].payload[..3], ends[1].payload[..3]);
                }
                let (one, other) = ([(statement.to_owned(), one)], [(String::new(), other)]);
                assert_same(&one, &other, algorithm == 0, servers);
            };
            for (call, look) in CALLS {
                same(call);
                same(look);
            }
            same("CALL fetch_timeline_ids(1); SELECT id FROM fetch_timeline_tt; SELECT 2; DO 3");
            same("CALL fetch_timeline_ids(1); CALL fetch_timeline_ids2(1, 11); SELECT 4; nonsense");
            same(&format!("CALL fetch_timeline_ids(1); {TAIL}"));
            same("SELECT 'behind all'");
            assert_eq!(proxy.counts().of("calls_owned"), 7, "{}", proxy.log());
        }
    });
}

#[test]
fn good_byes_have_the_numbers_they_have_directly() {
    on_each_release(|server| {
        let proxy = proxy(server, "mirror", "where-offered");
        let mut root = server.connect();
        let last_words = |addr| {
            let mut client = WireClient::connect(addr);
            client.ok("SET SESSION wait_timeout = 1");
            client.ok("SELECT 1; SELECT 2; DO 1");
            client.read_packet().ok()
        };
        assert_eq!(last_words(proxy.addr()), last_words(server.addr()));
        let mut killed = |addr| {
            let mut client = WireClient::connect(addr);
            let id = client.greeting.thread_id;
            client
                .send(&client.query_payload(b"SELECT SLEEP(30)", &[]))
                .unwrap();
            wait_until_busy(server.addr(), id, "SELECT SLEEP");
            root.ok(&format!("KILL {id}"));
            client.read_packet().ok()
        };
        assert_eq!(killed(proxy.addr()), killed(server.addr()));
    });
}

/// The products' own command line numbers a file's packets by the frames it has read.
#[test]
fn the_stock_client_compresses_towards_headwater_alone() {
    on_each_server(|server| {
        let database = Database::empty(server, "legs_stock");
        let mut root = database.connect();
        root.ok("SET GLOBAL local_infile = 1");
        root.ok("CREATE TABLE t (a mediumtext)");
        let proxy = proxy(server, "mirror", "never");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lines");
        std::fs::write(&file, [LINE, b"\n"].concat().repeat(300)).unwrap();
        let script = format!(
            "SHOW STATUS LIKE 'Compression'; SELECT REPEAT('x', 70000) INTO @x; SELECT LENGTH(REPEAT('y', 30000000)); \
             LOAD DATA LOCAL INFILE '{}' INTO TABLE t; SELECT COUNT(*) FROM t; SELECT LENGTH('{}')",
            file.display(),
            "z".repeat(100_000)
        );
        let compressed = match server.is_mariadb() {
            true => "--compress",
            false => "--compression-algorithms=zlib",
        };
        let told = |addr, flags: &[&str]| {
            let output = server
                .stock_client(addr)
                .args(["--local-infile=1", "--batch", database.name()])
                .args(flags)
                .args(["-e", &script])
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let through = told(proxy.addr(), &[compressed]);
        root.ok("TRUNCATE t");
        assert_eq!(through, told(server.addr(), &[]));
        assert!(
            through.contains("OFF") && through.contains("\n300\n"),
            "{through}"
        );
    });
}
