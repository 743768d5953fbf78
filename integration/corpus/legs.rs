//! The small conversation over every kind of connection: TLS on both legs, compressed frames, and with a service account.

use super::capabilities::small;
use super::player::Player;
use super::side::Side;
use crate::kit::certificates::{Authority, trust_anyone};
use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::{on_each_release, on_servers_of_its_own};
use crate::kit::wire_client::capability::{
    COMPRESS, DEPRECATE_EOF, SESSION_TRACK, ZSTD_COMPRESSION,
};
use crate::kit::wire_client::{Login, WireClient};

const DATABASE: &str = "hw_corpus_legs";

/// Runs a scenario on a TLS server of each product, with a Headwater that has TLS too.
fn on_each_stage(service: &[&str], story: impl Fn(&Player)) {
    let authority = Authority::new();
    let (theirs, own) = (authority.sign("server"), authority.sign("headwater"));
    let mut options = authority.server_options(&theirs);
    // A thread that MariaDB caches for the next connection continues to count its statements.
    options.push("--thread-cache-size=0".to_owned());
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    on_servers_of_its_own(
        |_| &options,
        |server| {
            let mut root = WireClient::connect(server.addr());
            root.ok(&format!("CREATE DATABASE {DATABASE}"));
            root.ok(&format!("USE {DATABASE}"));
            root.ok("CREATE TABLE t (id int PRIMARY KEY, word varchar(9))");
            root.ok("INSERT INTO t VALUES (1, 'one'), (2, NULL)");
            root.ok("CREATE PROCEDURE several(n int) BEGIN SELECT n; SELECT * FROM t; END");
            let certificate = ["--tls-cert", own.cert(), "--tls-key", own.key()];
            let proxy = Proxy::start(server.addr(), &[&certificate, service].concat());
            if !service.is_empty() {
                proxy.wait_for_log("no database has the tables");
            }
            story(&Player::with(server.addr(), proxy));
        },
    );
}

#[test]
fn over_tls_and_in_frames() {
    for service in [&[][..], ROOT_SERVICE] {
        on_each_stage(service, |player| {
            for frames in [0, COMPRESS, ZSTD_COMPRESSION, COMPRESS | ZSTD_COMPRESSION] {
                for tls in [false, true] {
                    for other in [0, DEPRECATE_EOF, SESSION_TRACK] {
                        let mut login = Login::default().database(DATABASE).with(frames);
                        login.capabilities ^= other;
                        if tls {
                            login = login.tls(&trust_anyone());
                        }
                        let what = format!("frames {frames:#x}, TLS {tls}, {other:#x}");
                        player.play(&what, &login, told);
                    }
                }
            }
        });
    }
}

/// Plain clients and a compressed server leg: every packet has the sequence number that it has directly.
#[test]
fn in_frames_towards_the_server_alone() {
    let settings = "[compression]\nserver = 'where-offered'\n";
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_frames");
        let mut root = database.connect();
        root.ok("CREATE TABLE t (id int PRIMARY KEY, word varchar(9))");
        root.ok("INSERT INTO t VALUES (1, 'one'), (2, NULL)");
        root.ok("CREATE PROCEDURE several(n int) BEGIN SELECT n; SELECT * FROM t; END");
        let proxy = Proxy::configured(server.addr(), settings, &["--tls-self-signed"]);
        let player = Player::with(server.addr(), proxy);
        for other in [0, DEPRECATE_EOF, SESSION_TRACK] {
            let mut login = database.login();
            login.capabilities ^= other;
            player.play(&format!("{other:#x}"), &login, |side| {
                small(side, database.name());
                lengths(side);
                // A statement of many packets and frames.
                side.query(format!("SELECT MD5('{}')", "i".repeat(300_000)));
            });
        }
    });
}

fn told(side: &mut Side) {
    small(side, DATABASE);
    lengths(side);
    // Servers number a reply's packets by the frames of its command, and Headwater makes these frames.
    side.query(format!("SELECT MD5('{}')", "i".repeat(300_000)));
}

fn lengths(side: &mut Side) {
    for length in [10, 49, 50, 51, 10_000, 60_000] {
        side.query(format!(
            "SELECT REPEAT('c', {length}), MD5('{}')",
            "i".repeat(length)
        ));
    }
    side.query("WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i FROM n");
}
