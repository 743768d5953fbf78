//! Which leg has TLS, and what a client sees of that.

use std::thread;
use std::time::Duration;

use super::{Stage, cipher, enciphered, on_each_stage};
use crate::kit::certificates::{read, trust_anyone};
use crate::kit::database::classic_on;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::wire_client::{COM_PING, Login, WireClient};

/// Statements whose replies are compared byte by byte.
const SCRIPT: &[&str] = &[
    "SELECT 1",
    "SELECT REPEAT('x', 70000), REPEAT('y', 20)",
    "nonsense",
    "SET @a = 5",
    "SELECT @a; SELECT 2; DO 1",
    "CREATE DATABASE tls_story",
    "USE tls_story",
    "CREATE TABLE t (a int PRIMARY KEY, b text)",
    "INSERT INTO t VALUES (1, 'one'), (2, NULL)",
    "SELECT * FROM t ORDER BY a",
    "SHOW WARNINGS",
    "DROP DATABASE tls_story",
];

const TAIL: &str = "SELECT message.id, body FROM message INNER JOIN fetch_timeline_tt USING(id) \
                    ORDER BY message.id DESC LIMIT 20";

/// Every byte of the replies.
fn told(client: &mut WireClient) -> Vec<Vec<u8>> {
    let mut told: Vec<Vec<u8>> = SCRIPT
        .iter()
        .map(|statement| client.query_reply(statement).unwrap().raw)
        .collect();
    told.push(client.command(&[COM_PING]).unwrap().raw);
    told
}

#[test]
fn the_servers_leg_has_tls_exactly_when_the_clients_has() {
    on_each_stage(|stage| {
        let proxy = stage.proxy("", &[]);
        for login in [Login::default, enciphered] {
            // A client's TLS sessions belong to one server.
            let (login, direct) = (login(), login());
            let mut direct = WireClient::login(stage.addr(), &direct);
            let mut client = proxy.login(&login);
            assert_eq!(client.stream.is_tls(), login.tls.is_some());
            assert_eq!(cipher(&mut client), cipher(&mut direct));
            assert_eq!(cipher(&mut client).is_empty(), login.tls.is_none());
            assert_eq!(told(&mut client), told(&mut direct));
            assert_eq!(client.login_raw, direct.login_raw);
        }
    });
}

#[test]
fn calls_are_owned_behind_tls() {
    on_each_stage(|stage| {
        let login = classic_on(stage.addr(), "tl");
        let mut root = WireClient::login(stage.addr(), &login);
        root.ok("INSERT INTO follower (user_id, follower_id) VALUES (1, 2)");
        root.ok("INSERT INTO message (id, user_id, body) VALUES (10, 2, 'ten'), (11, 2, 'eleven')");
        let proxy = stage.proxy("", ROOT_SERVICE);
        proxy.wait_for_log("in database tl: accelerated");
        let login = || enciphered().database("tl");
        let mut direct = WireClient::login(stage.addr(), &login());
        let mut client = proxy.login(&login());
        for (call, tail) in [
            ("CALL fetch_timeline_ids(1)", TAIL),
            (
                "CALL fetch_timeline_ids2(1, 10)",
                "SELECT id FROM fetch_timeline_tt",
            ),
        ] {
            assert_eq!(client.ok(call), direct.ok(call), "{call}");
            assert_eq!(client.rows(tail), direct.rows(tail), "{tail}");
        }
        assert_eq!(proxy.counts().of("calls_owned"), 2, "{}", proxy.log());
    });
}

#[test]
fn either_leg_can_have_tls_alone() {
    on_each_stage(|stage| {
        for (mode, login, server) in [
            ("disabled", enciphered(), false),
            ("preferred", Login::default(), true),
            ("required", Login::default(), true),
            ("required", enciphered(), true),
        ] {
            let settings = format!("[upstream_tls]\nmode = '{mode}'\nmirror = false\n");
            let proxy = stage.proxy(&settings, &[]);
            let mut client = proxy.login(&login);
            assert_eq!(client.stream.is_tls(), login.tls.is_some(), "{mode}");
            assert_eq!(cipher(&mut client).is_empty(), !server, "{mode}");
            let mut direct = WireClient::login(stage.addr(), &login);
            assert_eq!(told(&mut client), told(&mut direct), "{mode}");
        }
    });
}

#[test]
fn a_server_without_tls_has_none_offered_unless_the_legs_are_apart() {
    crate::kit::servers::on_servers_of_its_own(
        |mariadb| if mariadb { &[] } else { &["--tls-version="] },
        |server| {
            let mirror = Proxy::start(server.addr(), &["--tls-self-signed"]);
            let refused = WireClient::try_login(mirror.addr(), &enciphered());
            let error = refused.map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("offers no TLS"), "{error}");
            mirror.login(&Login::default()).ok("DO 1");

            let apart = "[upstream_tls]\nmode = 'preferred'\nmirror = false\n";
            let proxy = Proxy::configured(server.addr(), apart, &["--tls-self-signed"]);
            let mut client = proxy.login(&enciphered());
            assert!(client.stream.is_tls());
            assert_eq!(cipher(&mut client), "");

            let strict = "[upstream_tls]\nmode = 'required'\nmirror = false\n";
            let proxy = Proxy::configured(server.addr(), strict, &[]);
            let refused = WireClient::try_login(proxy.addr(), &Login::default());
            let error = refused.unwrap().map(|_| ()).unwrap_err();
            assert!(error.message.contains("upstream_tls.mode"), "{error:?}");
        },
    );
}

#[test]
fn a_client_without_tls_is_refused_by_the_setting_that_wants_it() {
    on_each_stage(|stage| {
        for (settings, named) in [
            ("[tls]\nrequired = true\n", "tls.required"),
            ("[upstream_tls]\nmode = 'required'\n", "upstream_tls.mirror"),
        ] {
            let proxy = stage.proxy(settings, &[]);
            let refused = WireClient::try_login(proxy.addr(), &Login::default());
            let error = refused.unwrap().map(|_| ()).unwrap_err();
            assert_eq!(error.code, 3159);
            assert!(error.message.contains(named), "{error:?}");
            proxy.login(&enciphered()).ok("DO 1");
        }
    });
}

#[test]
fn tls_that_is_passed_through_ends_at_the_server() {
    on_each_stage(|stage| {
        let settings = "[tls]\npassthrough = true\n[limits]\nlogin_ms = 700\n";
        let proxy = Proxy::configured(stage.addr(), settings, &[]);
        let mut direct = WireClient::login(stage.addr(), &enciphered());
        let mut client = proxy.login(&enciphered());
        assert_eq!(client.stream.certificate(), direct.stream.certificate());
        assert_ne!(client.stream.certificate(), Some(read(&stage.own.cert)));
        assert_eq!(told(&mut client), told(&mut direct));
        let mut plain = proxy.login(&Login::default());
        assert_eq!(cipher(&mut plain), "");
        // Headwater cannot see the end of a login that it passes through.
        thread::sleep(Duration::from_millis(900));
        assert_eq!(told(&mut client), told(&mut direct));
    });
}

/// More data than any buffer holds, in both directions at once, to a slow reader.
#[test]
fn much_is_carried_whole_and_held_by_nobody() {
    on_each_stage(|stage| {
        let proxy = stage.proxy("", &[]);
        let mut client = proxy.login(&enciphered());
        let sent = "x".repeat(40 << 20);
        let length = client.column(&format!("SELECT LENGTH('{sent}')"));
        assert_eq!(length, [sent.len().to_string()]);
        let before = proxy.resident_kib();
        client
            .send(&client.query_payload(b"SELECT REPEAT('z', 200 << 20)", &[]))
            .unwrap();
        thread::sleep(Duration::from_secs(2));
        let held = proxy.resident_kib().saturating_sub(before);
        assert!(held < 32 << 10, "{held} KiB");
        let reply = client.reply(3).unwrap();
        let letters = reply.raw.iter().filter(|byte| **byte == b'z').count();
        assert!(letters >= 200 << 20, "{letters}");
        drop(reply);
        client.infile = vec![b'7'; 5 << 20];
        client.ok("CREATE DATABASE much");
        client.ok("SET GLOBAL local_infile = 1");
        client.ok("CREATE TABLE much.t (a longtext)");
        client.ok("LOAD DATA LOCAL INFILE 'any' INTO TABLE much.t");
        assert_eq!(
            client.column("SELECT LENGTH(a) FROM much.t"),
            [(5 << 20).to_string()]
        );
        client.ok("DROP DATABASE much");
    });
}

/// The service account uses TLS too: a server that requires TLS of all accounts is served.
#[test]
fn a_server_that_wants_tls_of_everybody_has_it_of_the_service_account() {
    on_each_stage(|stage: &mut Stage<'_>| {
        let mut root = WireClient::login(stage.addr(), &enciphered());
        root.ok("CREATE DATABASE tl");
        root.ok("SET GLOBAL require_secure_transport = ON");
        let ca = stage.authority.path();
        let ca = ca.to_str().unwrap();
        for mode in ["required", "verify-ca", "verify-identity"] {
            let mut flags = vec!["--upstream-tls", mode];
            if mode != "required" {
                flags.extend(["--upstream-tls-ca", ca]);
            }
            let proxy = stage.proxy("", &[ROOT_SERVICE, &flags].concat());
            proxy.wait_for_log("no database has the tables");
            let login = Login::default().tls(&trust_anyone());
            assert!(!cipher(&mut proxy.login(&login)).is_empty());
        }
    });
}
