//! Apps that connect for each page: what one session of an account has proved helps the next ones.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::app::{SMALL, settings, settings_in};
use super::kept::kept;
use super::narrowed::narrowed;
use super::served::served;
use crate::kit::certificates::{Authority, trust_anyone};
use crate::kit::database::Database;
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server, on_servers_of_its_own};
use crate::kit::twin::Twin;
use crate::kit::wire_client::{Login, WireClient};
use crate::memory::prepare;

const PAGE: &str = "SELECT s.id, s.caption FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 \
                    AND s.deleted_at IS NULL ORDER BY s.id DESC LIMIT 5";
const COUNT: &str = "SELECT COUNT(*) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 \
                     AND s.deleted_at IS NULL";

/// An app whose feed is served, with rights that count for so long.
fn app(server: &'static Server, story: &str, ttl: u64) -> (Database, Proxy) {
    let database = Database::empty(server, story);
    SMALL.make(&mut database.connect(), &mut Random(5));
    let settings = format!("{}\n[privileges]\nttl_s = {ttl}\n", settings_in(&database));
    let proxy = served(server, &database, "home", &settings);
    (database, proxy)
}

/// How many statements the server ran in the session for what came before: without this one, and without the one before it that leaves
/// the page's `FOUND_ROWS()`.
fn questions(twin: &mut Twin) -> u64 {
    let status = twin.proxied.rows("SHOW SESSION STATUS LIKE 'Questions'");
    let all: u64 = status[0][1].as_ref().unwrap().parse().unwrap();
    all - 2
}

/// Rows and numbers are cached by a session of this login that logged in a moment ago.
fn prove(server: &Server, proxy: &Proxy, login: &Login) {
    let mut twin = Twin::new(server, proxy, login);
    kept(proxy, &mut twin, PAGE);
    kept(proxy, &mut twin, COUNT);
}

/// Sessions of these logins, one after the other: each costs one question, and has its page and its count from memory.
#[track_caller]
fn costs_one_question(server: SocketAddr, proxy: &Proxy, logins: &[Login], other: &mut WireClient) {
    let twin_of = |login: &Login| {
        // A TLS session belongs to one server, and would be offered to the other for resumption.
        let fresh = || match login.tls {
            Some(_) => login.clone().tls(&trust_anyone()),
            None => login.clone(),
        };
        Twin::between(WireClient::login(server, &fresh()), proxy.login(&fresh()))
    };
    for login in logins {
        let mut twin = twin_of(login);
        kept(proxy, &mut twin, PAGE);
        kept(proxy, &mut twin, COUNT);
    }
    let request = |turn: usize, prepares: bool| {
        let before = proxy.counts().of("feeds_kept");
        let mut twin = twin_of(&logins[turn % logins.len()]);
        if prepares {
            let statement = twin.prepare(PAGE);
            twin.execute(statement, &[]);
        } else {
            twin.run(PAGE);
        }
        twin.run(COUNT);
        let kept = proxy.counts().of("feeds_kept") - before;
        (kept, questions(&mut twin))
    };
    // Other tests on this server may invalidate the cache at any time.
    let (deadline, mut turn) = (patience(), 0);
    for login in 0..logins.len() {
        loop {
            let cost = request(login, false);
            if cost == (2, 1) {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "{cost:?}: {:?}\n{}",
                proxy.counts(),
                proxy.log()
            );
        }
    }
    while turn < 24 {
        turn += 1;
        request(turn, turn % 4 == 3);
        other.ok(&format!(
            "UPDATE statuses SET deleted_at = IF(deleted_at IS NULL, NOW(), NULL) WHERE id > {}",
            2_990 - turn
        ));
    }
}

#[test]
fn a_new_session_costs_one_question_and_has_page_and_count_from_memory() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "newsessions", 600);
        let account = database.account("SELECT, EXECUTE", "");
        let user = account.user.clone();
        let (logins, mut other) = ([database.login(), account], database.connect());
        costs_one_question(server.addr(), &proxy, &logins, &mut other);
        other.ok(&format!("DROP USER {user}@'%'"));
    });
}

/// The same with TLS and a password, on MySQL by `caching_sha2_password`.
#[test]
fn a_new_session_with_a_password_and_tls_costs_one_question() {
    let authority = Authority::new();
    let (theirs, own) = (authority.sign("server"), authority.sign("headwater"));
    let options = authority.server_options(&theirs);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    on_servers_of_its_own(
        |_| &options,
        |server| {
            let login = prepare(server.addr());
            let mut root = WireClient::login(server.addr(), &login);
            SMALL.make(&mut root, &mut Random(5));
            root.ok("CREATE USER secret@'%' IDENTIFIED BY 'geheim'");
            root.ok("GRANT SELECT ON tl.* TO secret@'%'");
            let settings = format!("{}\n[privileges]\nttl_s = 600\n", settings());
            let own = ["--tls-cert", own.cert(), "--tls-key", own.key()];
            let proxy = Proxy::configured(server.addr(), &settings, &[&own, ROOT_SERVICE].concat());
            proxy.wait_for_log("feed home in database tl: served");
            let secret = login.user("secret").password("geheim");
            let enciphered = secret.clone().tls(&trust_anyone());
            costs_one_question(server.addr(), &proxy, &[enciphered, secret], &mut root);
        },
    );
}

/// With rights that count for ten minutes, every case in which another session's proof does not hold.
#[test]
fn a_proof_is_of_one_account_host_role_and_login() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "newroles", 600);
        let name = database.name();
        let reader = database.account("SELECT, EXECUTE", "");
        let other = database.account("EXECUTE", "");
        prove(server, &proxy, &reader);
        let denied = |twin: &mut Twin| {
            for _ in 0..2 {
                assert_eq!(twin.error(PAGE), 1142);
                assert_eq!(twin.error(COUNT), 1142);
            }
        };
        denied(&mut Twin::new(server, &proxy, &other));

        // By COM_CHANGE_USER, to and fro.
        let mut twin = Twin::new(server, &proxy, &reader);
        twin.run(PAGE);
        for (login, may) in [(&other, false), (&reader, true)] {
            for client in [&mut twin.direct, &mut twin.proxied] {
                client.change_user(login).unwrap().unwrap();
            }
            twin.ok(&format!("USE {name}"));
            if !may {
                denied(&mut twin);
            }
        }
        twin.run(PAGE);
        twin.run(COUNT);

        // By a role. Both servers know a role by this name from here on.
        let (role, user) = (format!("{}_r", other.user), &other.user);
        let mut root = database.connect();
        root.ok(&format!("CREATE ROLE {role}"));
        root.ok(&format!("GRANT SELECT ON {name}.* TO {role}"));
        root.ok(&format!("GRANT {role} TO {user}@'%'"));
        let mut with = Twin::new(server, &proxy, &other);
        with.ok(&format!("SET ROLE {role}"));
        kept(&proxy, &mut with, PAGE);
        kept(&proxy, &mut with, COUNT);
        denied(&mut Twin::new(server, &proxy, &other));
        let mut second = Twin::new(server, &proxy, &other);
        second.ok(&format!("SET ROLE {role}"));
        let before = proxy.counts().of("feeds_kept");
        second.run(PAGE);
        second.run(COUNT);
        assert_eq!(proxy.counts().of("feeds_kept"), before + 2);
        second.ok("SET ROLE NONE");
        denied(&mut second);
        root.ok(&format!("DROP ROLE {role}"));

        // A fault that was found: a right that is given after a login is not that session's. Both servers check rights to a whole database
        // when a session enters it.
        let mut earlier = Twin::new(server, &proxy, &other);
        root.ok(&format!("GRANT SELECT ON {name}.* TO {}@'%'", other.user));
        prove(server, &proxy, &other);
        denied(&mut earlier);
        denied(&mut earlier);
        Twin::new(server, &proxy, &other).run(PAGE);
        for user in [&reader.user, &other.user] {
            root.ok(&format!("DROP USER {user}@'%'"));
        }
    });
}

/// A right that is taken between two logins counts for `privileges.ttl_s` more, and with 0 not at all.
#[test]
fn a_right_that_is_taken_between_two_logins_counts_no_longer_than_is_promised() {
    on_each_server(|server| {
        for ttl in [0, 1, 5] {
            let (database, proxy) = app(server, &format!("newrevoked{ttl}"), ttl);
            narrowed(&proxy, &mut proxy.login(&database.login()), PAGE);
            let account = database.account("SELECT, EXECUTE", "");
            let (name, user) = (database.name(), &account.user);
            let mut root = database.connect();
            for _ in 0..2 {
                for _ in 0..20 {
                    let mut twin = Twin::new(server, &proxy, &account);
                    twin.run(PAGE);
                    twin.run(COUNT);
                }
                root.ok(&format!("REVOKE SELECT ON {name}.* FROM {user}@'%'"));
                let revoked = Instant::now();
                let promised = Duration::from_secs(ttl);
                // Who connects meanwhile gets the page or the server's error.
                while revoked.elapsed() < promised {
                    let mut new = proxy.login(&account);
                    new.query(PAGE);
                    new.query(COUNT);
                    thread::sleep(Duration::from_millis(20));
                }
                for _ in 0..10 {
                    let mut twin = Twin::new(server, &proxy, &account);
                    assert_eq!(twin.error(PAGE), 1142);
                    assert_eq!(twin.error(COUNT), 1142);
                }
                root.ok(&format!("GRANT SELECT ON {name}.* TO {user}@'%'"));
            }
            root.ok(&format!("DROP USER {user}@'%'"));
        }
    });
}
