//! Logins: greeting, capabilities, accounts and passwords, and changes from one account to another.

use super::talk::{same_through, same_with_and_without};
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::packet::put_bytes;
use crate::kit::wire_client::{COM_CHANGE_USER, Login, WireClient, capability};

#[test]
fn the_greeting_loses_tls_where_there_is_no_certificate_and_nothing_else() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &["--tls-own", "false"]);
        let direct = server.connect().greeting;
        let relayed = proxy.login(&Login::default()).greeting;
        assert_eq!(relayed.capabilities, direct.capabilities & !capability::SSL);
        assert_ne!(direct.capabilities & capability::COMPRESS, 0);
        // Except for thread id, scramble and capabilities, every byte is the same.
        let other = |greeting: &crate::kit::wire_client::Greeting| {
            let mut raw = greeting.raw.clone();
            let id = 4 + 1 + greeting.version.len() + 1;
            raw[id..id + 12].fill(0);
            raw[id + 13..id + 15].fill(0);
            raw[id + 18..id + 20].fill(0);
            raw[id + 31..id + 43].fill(0);
            raw
        };
        assert_eq!(other(&direct), other(&relayed));
    });
}

#[test]
fn every_set_of_capabilities_is_carried() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_capabilities");
        let proxy = Proxy::start(server.addr(), &[]);
        let usual = capability::USUAL;
        for capabilities in [
            usual,
            usual | capability::SESSION_TRACK,
            usual | capability::CONNECT_ATTRS,
            usual & !capability::PLUGIN_AUTH_LENENC_DATA,
            capability::PROTOCOL_41 | capability::SECURE_CONNECTION | capability::PLUGIN_AUTH,
            // FOUND_ROWS, LONG_FLAG, NO_SCHEMA, ODBC, IGNORE_SPACE, INTERACTIVE
            usual | 2 | 4 | 16 | 64 | 256 | 1024,
            // All capabilities.
            (u64::MAX >> 24 | usual) & !not_agreed(),
        ] {
            let mut login = database.login();
            login.capabilities = capabilities;
            login.attributes = vec![("_client_name".into(), "a story".into())];
            same_through(&proxy, server.addr(), &login, |talk| {
                talk.query("SELECT 1, DATABASE()");
                talk.query("SET autocommit = 1");
                talk.query("nonsense");
            });
        }
    });
}

/// Capabilities that this client lacks, and those that a client sets only when it can use them.
fn not_agreed() -> u64 {
    // SSL, COMPRESS, ZSTD, CAN_HANDLE_EXPIRED_PASSWORDS, MFA and above; MariaDB's COM_MULTI.
    capability::SSL
        | capability::COMPRESS
        | capability::ZSTD_COMPRESSION
        | 1 << 22
        | 0b1111 << 28
        | 1 << 33
}

#[test]
fn passwords_are_between_client_and_server() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_accounts");
        let proxy = Proxy::start(server.addr(), &[]);
        for password in [
            "",
            "secret",
            "p\u{e4}ssword with spaces and a length of more than twenty",
        ] {
            let login = database.account("SELECT", password);
            // The first login takes the whole exchange, the second the server's cache.
            for _ in 0..2 {
                let mut client = proxy.login(&login);
                assert_eq!(client.column("SELECT DATABASE()"), [database.name()]);
                assert_eq!(client.error("CREATE TABLE t (id int)").code, 1142);
            }
            let wrong = login.clone().password("wrong");
            let [direct, relayed] = [server.addr(), proxy.addr()]
                .map(|addr| WireClient::try_login(addr, &wrong).unwrap().unwrap_err());
            assert_eq!(direct, relayed);
            assert_eq!(direct.code, 1045);
            let elsewhere = login.database("mysql");
            let [direct, relayed] = [server.addr(), proxy.addr()].map(|addr| {
                WireClient::try_login(addr, &elsewhere)
                    .unwrap()
                    .unwrap_err()
            });
            assert_eq!(direct, relayed);
        }
        let nobody = Login::default().user("hw_nobody").password("x");
        let error = WireClient::try_login(proxy.addr(), &nobody)
            .unwrap()
            .unwrap_err();
        assert_eq!(error.code, 1045);
    });
}

#[test]
fn a_session_changes_its_user() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_change_user");
        let account = database.account("SELECT", "");
        same_with_and_without(server, &Login::default(), |talk| {
            talk.query("SET @x = 1");
            let change = change_user(&account.user, b"", database.name(), &talk.client);
            let reply = changed(&mut talk.client, &change);
            talk.heard("CHANGE_USER", &reply);
            talk.query("SELECT @x, DATABASE(), CURRENT_USER()");
            talk.query("CREATE TABLE t (id int)");
            // MariaDB continues with the old account, MySQL closes the connection.
            let change = change_user("hw_nobody", b"wrong", database.name(), &talk.client);
            let reply = changed(&mut talk.client, &change);
            talk.heard("CHANGE_USER to nobody", &reply);
            if server.is_mariadb() {
                talk.query("SELECT DATABASE(), CURRENT_USER()");
                let change = change_user("root", b"", "", &talk.client);
                let reply = changed(&mut talk.client, &change);
                talk.heard("CHANGE_USER to root", &reply);
                talk.query("SELECT DATABASE(), CURRENT_USER()");
            } else {
                talk.read_to_its_end();
            }
        });
    });
}

fn change_user(user: &str, answer: &[u8], database: &str, client: &WireClient) -> Vec<u8> {
    let mut payload = vec![COM_CHANGE_USER];
    payload.extend(user.as_bytes());
    payload.push(0);
    payload.push(answer.len() as u8);
    payload.extend(answer);
    payload.extend(database.as_bytes());
    payload.extend([0, 45, 0]);
    payload.extend(client.greeting.plugin.as_bytes());
    payload.push(0);
    if client.capabilities & capability::CONNECT_ATTRS != 0 {
        put_bytes(&mut payload, b"");
    }
    payload
}

/// The kinds and sizes of the packets of the dialogue: all scrambles differ. An empty password is answered by an empty packet, whatever
/// the plugin.
fn changed(client: &mut WireClient, payload: &[u8]) -> Vec<u8> {
    client.send(payload).unwrap();
    let mut heard = Vec::new();
    loop {
        let packet = client.read_packet().unwrap();
        heard.extend([packet.seq, packet.payload.len() as u8, packet.payload[0]]);
        match packet.payload[0] {
            0x00 | 0xff => {
                heard.extend(&packet.payload);
                return heard;
            }
            _ => client.send_packet(packet.seq.wrapping_add(1), &[]).unwrap(),
        }
    }
}
