//! Logins, and changes of user.

use std::thread;

use headwater_lab::private_server::{PrivateServer, ServerKind};

use super::player::Player;
use super::side::Side;
use crate::kit::certificates::{Authority, trust_anyone};
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::servers::{mysql, on_each_release};
use crate::kit::wire_client::{COM_CHANGE_USER, Login, WireClient, capability};

#[test]
fn logins_that_are_refused() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_logins");
        let player = Player::new(server);
        let account = database.account("SELECT", "secret");
        for login in [
            Login::default().user("hw_nobody"),
            Login::default().user("hw_nobody").password("x"),
            Login::default().user(""),
            Login::default().user(&"u".repeat(300)),
            Login::default().password("root has none"),
            Login::default().database("no_such_database"),
            Login::default().database(&"d".repeat(65)),
            Login::default().database("d\u{e9}j\u{e0}"),
            account.clone().password("wrong"),
            account.clone().password(""),
            account.clone().database("mysql"),
        ] {
            let held = player.try_play("a login", &login, |_| {});
            // The server may have an anonymous account.
            assert!(!held || login.user.is_empty(), "{login:?}");
        }
        player.play("an account", &account, |side| {
            side.query("SELECT CURRENT_USER(), DATABASE()");
            side.query("CREATE TABLE t (id int)");
            side.query("SELECT * FROM mysql.user");
        });
    });
}

/// MySQL requests the password itself, through TLS or encrypted with its key, unless it is in the server's cache.
#[test]
fn logins_that_the_server_has_not_seen_before() {
    if mysql().is_none() {
        return;
    }
    let authority = Authority::new();
    let (theirs, own) = (authority.sign("server"), authority.sign("headwater"));
    let options = authority.server_options(&theirs);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    // A private server: no other test fills or empties its password cache.
    let server = PrivateServer::start(ServerKind::Mysql, &options).unwrap();
    WireClient::connect(server.addr()).ok("CREATE USER unseen@'%' IDENTIFIED BY 'secret'");
    let certificate = ["--tls-cert", own.cert(), "--tls-key", own.key()];
    let proxy = Proxy::start(server.addr(), &certificate);
    let mut player = Player::with(server.addr(), proxy);
    let plain = Login::default().user("unseen").password("secret");
    for login in [plain.clone(), plain.tls(&trust_anyone())] {
        for (forgets, asked) in [(true, 4), (false, 3)] {
            player.forgets(forgets);
            let wrong = login.clone().password("wrong");
            assert!(!player.try_play("a wrong password", &wrong, |_| {}));
            player.play("a password", &login, |side| {
                // The server's first packet after its greeting.
                let raw = &side.client.login_raw;
                assert_eq!((&raw[..3], &raw[4..6]), (&[2, 0, 0][..], &[1, asked][..]));
                side.query("SELECT CURRENT_USER()");
            });
        }
    }
}

#[test]
fn sessions_change_their_user() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_users");
        let account = database.account("SELECT", "");
        let player = Player::new(server);
        for login in super::commands::logins(&Login::default().with(capability::CONNECT_ATTRS)) {
            player.play("users", &login, |side| {
                side.query("SET @x = 1");
                side.change_user(&account.user, database.name(), 45);
                who(side);
                side.change_user("root", "", 8);
                who(side);
            });
        }
        // MariaDB takes a second for each refusal, so they run at the same time.
        thread::scope(|scope| {
            for (user, name) in [("root", "no_such_database"), ("hw_nobody", "")] {
                let player = &player;
                scope.spawn(move || {
                    player.play("a user that may not", &Login::default(), |side| {
                        side.query("SET @x = 1");
                        side.change_user(user, name, 45);
                        who(side);
                    });
                });
            }
            for body in BODIES {
                let player = &player;
                scope.spawn(move || {
                    player.play("a user that is none", &Login::default(), |side| {
                        side.change(&[&[COM_CHANGE_USER], *body].concat());
                        who(side);
                    });
                });
            }
        });
    });
}

/// Bodies of COM_CHANGE_USER.
const BODIES: &[&[u8]] = &[
    b"",
    b"root",
    b"root\0",
    b"root\0\0",
    b"root\0\0\0",
    b"root\0\x14too short",
    b"root\0\0information_schema\0",
    b"root\0\0\0\x2d",
    b"root\0\0\0\x2d\0",
    b"root\0\0\0\x2d\0no_such_plugin\0",
    b"\0\0\0\x2d\0mysql_native_password\0\xff",
];

fn who(side: &mut Side) {
    side.query("SELECT @x, DATABASE(), CURRENT_USER(), @@character_set_client");
}
