//! `headwater verify`: it tells equal from different answers despite concurrent writes, and limits its load on the live server.

mod differences;
mod feeds;
mod flags;
mod stops;
mod ties;
mod writers;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::{Child, Output, Stdio};

use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE, headwater, settings_file};
use crate::kit::random::Random;
use crate::kit::servers::Server;
use crate::kit::wire_client::WireClient;

/// Readers of the test timeline.
const READERS: u64 = 40;
/// Users, and so authors.
const USERS: u64 = 60;

/// A parsed report.
#[derive(Debug)]
struct Verified {
    status: i32,
    report: String,
    said: String,
}

/// A Headwater with a classic timeline and a feed over the same tables.
struct Scene {
    database: Database,
    proxy: Proxy,
    root: WireClient,
    settings: String,
}

impl Scene {
    #[track_caller]
    fn of(server: &'static Server, story: &str) -> Scene {
        let database = Database::classic(server, story);
        let mut root = database.connect();
        fill(&mut root);
        let settings = settings(database.name());
        let proxy = Proxy::configured(server.addr(), &settings, ROOT_SERVICE);
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        Scene {
            database,
            proxy,
            root,
            settings,
        }
    }

    /// Starts `headwater verify` for this Headwater.
    #[track_caller]
    fn start(&self, flags: &[&str]) -> (tempfile::TempDir, Child) {
        start(
            self.database.server().addr(),
            &self.settings,
            &[&["--headwater", &self.proxy.addr().to_string()], flags].concat(),
        )
    }

    #[track_caller]
    fn verify(&self, flags: &[&str]) -> Verified {
        let (_folder, child) = self.start(flags);
        Verified::of(child.wait_with_output().unwrap())
    }
}

/// The classic definition and a feed, in this database only.
fn settings(database: &str) -> String {
    format!(
        "[freshness]\nwait_ms = 10000\n\
         [[definition]]\ndatabase = \"{database}\"\n\
         [[feed]]\nname = \"home\"\ndatabase = \"{database}\"\n\
         [feed.message]\ntable = \"message\"\nauthor = \"user_id\"\n\
         [feed.follow]\ntable = \"follower\"\nreader = \"user_id\"\nauthor = \"follower_id\"\n"
    )
}

/// Creates readers who follow one to many authors, and the authors' messages.
fn fill(root: &mut WireClient) {
    let mut random = Random(11);
    let mut follows = String::from("INSERT IGNORE INTO follower VALUES ");
    for reader in 1..=READERS {
        for _ in 0..=random.below(30) {
            let _ = write!(follows, "({reader},{}),", 1 + random.below(USERS));
        }
    }
    root.ok(follows.trim_end_matches(','));
    let mut messages = String::from("INSERT INTO message (id, user_id, body) VALUES ");
    for id in 1..=2_000 {
        let author = 1 + random.below(USERS);
        let _ = write!(messages, "({id},{author},'message {id}'),");
    }
    root.ok(messages.trim_end_matches(','));
    root.query("ANALYZE TABLE follower, message");
}

/// Uses a rate that keeps the test short and ignores the machine's load, unless the flags say otherwise.
#[track_caller]
fn start(server: SocketAddr, settings: &str, flags: &[&str]) -> (tempfile::TempDir, Child) {
    let (folder, path) = settings_file(settings);
    let server = server.to_string();
    let mut all = vec!["verify", "--upstream", &server, "--config", &path];
    all.extend(ROOT_SERVICE);
    for (flag, value) in [("--rate", "2000"), ("--stop-when-slower", "0")] {
        if !flags.contains(&flag) {
            all.extend([flag, value]);
        }
    }
    let child = headwater(&[])
        .args(all)
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (folder, child)
}

impl Verified {
    fn of(output: Output) -> Verified {
        let verified = Verified {
            status: output.status.code().unwrap(),
            report: String::from_utf8(output.stdout).unwrap(),
            said: String::from_utf8(output.stderr).unwrap(),
        };
        // Visible only if the test fails.
        eprintln!("{}{}", verified.report, verified.said);
        verified
    }

    #[track_caller]
    fn says(&self, text: &str) {
        let Verified { report, said, .. } = self;
        assert!(report.contains(text), "no {text:?} in:\n{report}{said}");
    }

    #[track_caller]
    fn is_equal(&self) {
        assert_eq!(self.status, 0, "{}{}", self.report, self.said);
        self.says("All equal. ");
    }
}
