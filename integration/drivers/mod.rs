//! Drivers of many languages see the same through Headwater as directly. Each has a program that runs a script and prints all it can see.
//! The test runs it plain and with TLS, directly and through Headwater.

mod orms;
mod program;
mod stage;

use headwater_lab::private_server::ServerKind;

use self::program::is_here;
use self::stage::Stage;
use crate::kit::proxy::{Counts, Proxy, ROOT_SERVICE};
use crate::kit::wire_client::Login;
use crate::memory::warm;

/// A driver's limitation, with Headwater or without.
enum Limit {
    /// Without TLS, it logs in only if the server has its password cached.
    PlainWhenRemembered,
}

const LIMITS: &[(&str, ServerKind, Limit, &str)] = &[(
    "connector_python",
    ServerKind::Mysql,
    Limit::PlainWhenRemembered,
    "in Python alone it asks for no public key: caching_sha2_password needs TLS the first time",
)];

/// Served and relayed calls.
type Calls = (u64, u64);

/// How many calls of each program are served, and how many are relayed, on MariaDB and on MySQL, plain and with TLS together. A driver
/// whose calls are not recognized has fewer of both.
const CALLS: &[(&str, Calls, Calls)] = &[
    ("mariadb", (10, 8), (10, 8)),
    ("mysql", (10, 8), (10, 8)),
    ("pymysql", (16, 6), (16, 6)),
    ("connector_python", (20, 6), (20, 6)),
    ("mysqlclient", (18, 6), (18, 6)),
    ("odbc", (12, 6), (14, 4)),
    ("node_mysql2", (22, 8), (22, 8)),
    ("node_mariadb", (20, 10), (20, 10)),
    ("mysqli", (12, 8), (12, 8)),
    ("pdo", (24, 14), (26, 12)),
    ("dbd_mysql", (30, 8), (30, 8)),
    ("dbd_mariadb", (30, 8), (30, 8)),
    ("ruby_mysql2", (10, 8), (10, 8)),
    ("connector_j", (24, 12), (24, 12)),
    ("go", (18, 8), (18, 8)),
    ("sqlx", (14, 10), (14, 10)),
    ("mysql_async", (16, 10), (16, 10)),
];

fn calls(driver: &str, kind: ServerKind) -> Calls {
    let (_, mariadb, mysql) = CALLS.iter().find(|(name, ..)| *name == driver).unwrap();
    match kind {
        ServerKind::Mariadb => *mariadb,
        ServerKind::Mysql => *mysql,
    }
}

fn limited(driver: &str, kind: ServerKind, wanted: fn(&Limit) -> bool) -> bool {
    let mut limits = LIMITS.iter();
    limits.any(|(name, on, limit, _)| (*name, *on) == (driver, kind) && wanted(limit))
}

#[track_caller]
fn sees_the_same(driver: &str) {
    if !is_here(driver) {
        eprintln!("left out: no driver {driver} on this machine");
        return;
    }
    for kind in [ServerKind::Mariadb, ServerKind::Mysql] {
        let Some(stage) = Stage::shared(kind) else {
            continue;
        };
        let scene = stage.scene(driver);
        let own = ["--tls-cert", stage.own.cert(), "--tls-key", stage.own.key()];
        let proxy = Proxy::start(stage.addr(), &[&own[..], ROOT_SERVICE].concat());
        proxy.wait_for_log(&format!("in database hw_{driver}: accelerated"));
        // The first call resumes the log. Existing sessions learn that only from a call that goes to the server.
        let root = Login::default().database(&format!("hw_{driver}"));
        warm(
            &proxy,
            &mut proxy.login(&root),
            "CALL fetch_timeline_ids(7)",
        );
        let before = proxy.counts();
        for tls in [false, true] {
            let which = format!("{driver} on {} with TLS {tls}", kind.name());
            let remembered = limited(driver, kind, |l| matches!(l, Limit::PlainWhenRemembered));
            let [direct, through] = [stage.addr(), proxy.addr()].map(|addr| {
                scene.begin(remembered && !tls);
                scene.tell(addr, tls)
            });
            let direct = direct.unwrap_or_else(|why| panic!("{which}, directly: {why}"));
            let through = through
                .unwrap_or_else(|why| panic!("{which}, through Headwater: {why}{}", proxy.log()));
            assert!(direct.lines().count() > 20, "{which}: {direct}");
            assert_eq!(direct.contains("TLSv1"), tls, "{which}: {direct}");
            if let Some(difference) = difference(&direct, &through) {
                panic!("{which} sees something else:\n{difference}");
            }
        }
        let counts = proxy.counts();
        eprintln!("{driver} on {}: {counts:?}", kind.name());
        let owned = |counts: &Counts| counts.of("calls_owned");
        let seen = (
            owned(&counts) - owned(&before),
            counts.relayed() - before.relayed(),
        );
        assert_eq!(seen, calls(driver, kind), "{driver}: {counts:?}");
    }
}

/// The first line that differs.
fn difference(direct: &str, through: &str) -> Option<String> {
    let mut lines = through.lines();
    for (number, line) in direct.lines().enumerate() {
        let other = lines.next();
        if other != Some(line) {
            return Some(format!(
                "line {}, directly: {line}\nthrough Headwater: {other:?}",
                number + 1
            ));
        }
    }
    let more = lines.next()?;
    Some(format!("more through Headwater: {more}"))
}

#[test]
fn an_answer_that_differs_is_found() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    for (direct, through) in [("a\nb", "a\nc"), ("a\nb", "a"), ("a", "a\nb")] {
        assert!(difference(direct, through).is_some());
    }
}

macro_rules! stories {
    ($($driver:ident)*) => {
        $(
            #[test]
            fn $driver() {
                sees_the_same(stringify!($driver));
            }
        )*

        #[test]
        fn every_program_has_a_story() {
            assert_eq!(program::names(), [$(stringify!($driver)),*]);
        }
    };
}

stories! {
    mariadb mysql pymysql connector_python mysqlclient odbc node_mysql2 node_mariadb mysqli pdo
    dbd_mysql dbd_mariadb ruby_mysql2 connector_j go sqlx mysql_async
}
