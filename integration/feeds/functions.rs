//! A stored function that is created directly on the server, and called before Headwater can know of it: it may do anything.

use std::time::{Duration, Instant};

use headwater_lab::private_server::PrivateServer;

use super::app::{SMALL, settings};
use super::kept::{PAGES, kept};
use super::rules::LISTED;
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::random::Random;
use crate::kit::semi_sync::run_told_early;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::twin::Twin;
use crate::kit::wire_client::{Login, WireClient};
use crate::memory::prepare;

const ROUNDS: u32 = 4;
/// Creates a function that shadows the table of messages in the session that calls it.
const HIDES: &str = "CREATE FUNCTION hides() RETURNS INT BEGIN \
    CREATE TEMPORARY TABLE IF NOT EXISTS statuses (id INT PRIMARY KEY, profile_id INT, caption VARCHAR(9), kind VARCHAR(9), visibility INT, \
    likes INT, created_at DATETIME, deleted_at DATETIME); RETURN 1; END";
const SESSIONS: usize = 6;

/// Waits until Headwater knows that the server has no functions: only then does a transaction count as read-only after a SELECT.
#[track_caller]
fn knows_none(proxy: &Proxy, login: &Login) {
    let mut client = proxy.login(login);
    let deadline = patience();
    loop {
        let before = proxy.counts().feeds_answered();
        client.ok("BEGIN");
        client.query("SELECT COUNT(*) FROM profiles");
        client.query(LISTED);
        client.ok("COMMIT");
        if proxy.counts().feeds_answered() > before {
            return;
        }
        assert!(Instant::now() < deadline, "{:?}", proxy.counts());
    }
}

/// An app whose feed is served, with cached privileges that outlast the test.
fn app(server: &PrivateServer) -> (Login, WireClient, Proxy) {
    let login = prepare(server.addr());
    let mut root = WireClient::login(server.addr(), &login);
    SMALL.make(&mut root, &mut Random(5));
    let settings = format!("{}\n[privileges]\nttl_s = 600\n", settings());
    let proxy = Proxy::configured(server.addr(), &settings, ROOT_SERVICE);
    proxy.wait_for_log("feed home in database tl: served");
    (login, root, proxy)
}

#[test]
fn a_function_that_nobody_has_told_of_may_hide_a_table() {
    on_servers_of_its_own(
        |_| &["--log-bin-trust-function-creators=1"],
        |server| {
            let (login, mut root, proxy) = app(server);
            for round in 0..ROUNDS {
                knows_none(&proxy, &login);
                let mut twins: Vec<Twin> = (0..SESSIONS)
                    .map(|_| {
                        let direct = WireClient::login(server.addr(), &login);
                        Twin::between(direct, proxy.login(&login))
                    })
                    .collect();
                let calls = ["SELECT hides()", "SELECT * FROM hidden"];
                let prepared: Vec<[u32; 2]> = twins
                    .iter_mut()
                    .map(|twin| {
                        for page in PAGES {
                            kept(&proxy, twin, page);
                        }
                        twin.prepare("SELECT * FROM profiles WHERE id < 3")
                    })
                    .collect();
                root.ok(HIDES);
                root.ok("CREATE VIEW hidden AS SELECT hides() AS one");
                for (at, (twin, prepared)) in twins.iter_mut().zip(prepared).enumerate() {
                    if at % 3 == 2 {
                        twin.execute(prepared, &[]);
                    }
                    twin.run(calls[(at + round as usize) % 2]);
                    for page in PAGES {
                        assert!(twin.rows(page).is_empty());
                    }
                }
                root.ok("DROP FUNCTION hides");
                root.ok("DROP VIEW hidden");
            }
        },
    );
}

/// A server that waits for a replica logs a function before it makes it visible: an immediate query, such as Headwater's, does not
/// find it.
#[test]
fn a_function_that_the_log_has_and_nobody_sees_yet_may_hide_a_table() {
    on_servers_of_its_own(
        |_| &["--log-bin-trust-function-creators=1"],
        |server| {
            let (login, mut root, proxy) = app(server);
            for _ in 0..ROUNDS {
                knows_none(&proxy, &login);
                let direct = WireClient::login(server.addr(), &login);
                let mut twin = Twin::between(direct, proxy.login(&login));
                for page in PAGES {
                    kept(&proxy, &mut twin, page);
                }
                run_told_early(server, &mut root, HIDES, Duration::from_millis(700));
                twin.run("SELECT hides()");
                for page in PAGES {
                    assert!(twin.rows(page).is_empty());
                }
                root.ok("DROP FUNCTION hides");
            }
        },
    );
}

/// MySQL logs a change before the change is visible.
#[test]
fn a_column_that_compares_otherwise_does_so_at_once() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let (login, mut root, proxy) = app(server);
            root.ok("UPDATE statuses SET kind = UPPER(kind) WHERE id % 2 = 0");
            let direct = WireClient::login(server.addr(), &login);
            let mut twin = Twin::between(direct, proxy.login(&login));
            for collation in ["bin", "general_ci"] {
                for page in PAGES {
                    kept(&proxy, &mut twin, page);
                }
                let alters = format!(
                    "ALTER TABLE statuses MODIFY kind VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_{collation} NOT NULL"
                );
                run_told_early(server, &mut root, &alters, Duration::from_millis(1_500));
                for _ in 0..5 {
                    for page in PAGES {
                        twin.run(page);
                    }
                }
            }
        },
    );
}
