//! The bench measures, compares, and leaves the tables as they were.

use std::process::Output;

use crate::kit::database::{Database, HOME_FEED};
use crate::kit::proxy::{Proxy, ROOT_SERVICE, headwater, settings_file};
use crate::kit::servers::{Server, mariadb, on_each_server};
use crate::kit::wire_client::WireClient;

#[test]
fn a_bench_starts_its_own_headwater_and_compares_what_it_measures() {
    // The other tests of the bench run on both servers: this one measures everything, which takes most of a minute.
    let server = mariadb();
    let (database, mut root) = filled(server);
    let upstream = server.addr().to_string();
    let output = headwater(&[])
        .args([
            "bench",
            "--upstream",
            &upstream,
            "--user",
            "root",
            "--database",
            database.name(),
        ])
        .args([
            "--service-user",
            "root",
            "--service-password",
            "",
            "--password",
            "",
        ])
        .args([
            "--seconds",
            "1",
            "--connections",
            "1",
            "--pages",
            "1",
            "--readers",
            "5",
            "--idle-sessions",
            "5",
        ])
        .arg("--writes")
        .output()
        .unwrap();
    nothing_differs(&output);
    assert_eq!(root.column("SELECT COUNT(*) FROM message"), ["1200"]);
}

/// Asserts that the bench compared its timelines and found no difference.
#[track_caller]
pub(crate) fn nothing_differs(output: &Output) {
    let (told, complained) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    // So small a set and so short a time miss the targets, which is what status 1 reports.
    assert!(
        told.contains("measured timelines differ") && told.contains("\n0 of "),
        "{told}\n{complained}"
    );
}

/// Forty authors; each follows three others.
fn filled(server: &'static Server) -> (Database, WireClient) {
    let database = Database::classic(server, "bench");
    let mut root = database.connect();
    for author in 1..=40 {
        let follows = [1, 2, 3].map(|next| format!("({author}, {})", (author + next) % 40 + 1));
        root.ok(&format!(
            "INSERT INTO follower VALUES {}",
            follows.join(", ")
        ));
        let rows = vec![format!("({author}, 'text')"); 30].join(", ");
        root.ok(&format!(
            "INSERT INTO message (user_id, body) VALUES {rows}"
        ));
    }
    (database, root)
}

/// Runs a short bench of that database with these settings and further flags; returns its output and whether it succeeded.
fn measured(
    server: &Server,
    database: &Database,
    settings: &str,
    flags: &[&str],
) -> (String, bool) {
    let (_folder, path) = settings_file(settings);
    let output = headwater(&[])
        .args(["bench", "--upstream", &server.addr().to_string()])
        .args(["--user", "root", "--database", database.name()])
        .args(["--config", &path, "--seconds", "0.25", "--readers", "5"])
        .args(flags)
        .output()
        .unwrap();
    let told = [output.stdout, output.stderr].concat();
    (
        String::from_utf8_lossy(&told).into_owned(),
        output.status.success(),
    )
}

/// The same of that feed, or of another name.
fn of_feed(server: &Server, database: &Database, name: &str, flags: &[&str]) -> (String, bool) {
    let settings = format!("[service]\nuser = \"root\"\n{HOME_FEED}");
    let feed = ["--feed", name, "--connections", "1"];
    measured(server, database, &settings, &[&feed[..], flags].concat())
}

#[test]
fn a_feed_of_the_settings_is_measured_by_its_names_or_by_a_statement() {
    on_each_server(|server| {
        let (database, _root) = filled(server);
        let statement = "SELECT id FROM message WHERE user_id IN ({authors}) OR user_id = {reader} ORDER BY id DESC LIMIT 5";
        for (flags, asked) in [
            (&[][..], "JOIN `follower` f ON"),
            (&["--statement", statement], "WHERE user_id IN ("),
            (&["--reconnect"], "each on a connection of its own"),
        ] {
            let (told, well) = of_feed(server, &database, "home", flags);
            assert!(well && told.contains("Feed home in database"), "{told}");
            assert!(
                told.contains(asked) && told.contains("feeds_narrowed="),
                "{told}"
            );
            assert!(told.contains("\n0 answers differ"), "{told}");
        }
        let (told, well) = of_feed(server, &database, "hone", &[]);
        assert!(!well && told.contains("it has: home"), "{told}");
    });
}

/// Figures of a feed that is not served would suggest that Headwater is useless.
#[test]
fn a_feed_that_is_not_served_is_not_measured() {
    on_each_server(|server| {
        let (database, mut root) = filled(server);
        let user = database.account("SELECT", "secret").user;
        let without = |flags: &[&str], missing: &[&str]| {
            let (told, well) = of_feed(server, &database, "home", flags);
            assert!(!well && !told.contains("directly/s"), "{told}");
            assert!(told.contains("feed home is not served"), "{told}");
            for missing in missing {
                assert!(told.contains(missing), "no {missing:?} in {told}");
            }
        };
        without(
            &["--service-user", &user],
            &["the service account cannot log in", "--service-password"],
        );
        let flags = ["--service-user", &user, "--service-password", "secret"];
        without(&flags, &["REPLICATION SLAVE ON *.*"]);
        let proxy = Proxy::start(server.addr(), &[]);
        let address = proxy.addr().to_string();
        // A proxy that runs, but does not know the feed or refuses the query.
        let (told, well) = of_feed(server, &database, "home", &["--proxy", &address]);
        assert!(
            well && told.contains("whether the feed is served cannot be asked"),
            "{told}"
        );
        let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
        let address = proxy.addr().to_string();
        without(&["--proxy", &address], &["suggested"]);
        let index = "ALTER TABLE message DROP KEY";
        let keys = root.rows("SHOW INDEX FROM message WHERE Key_name <> 'PRIMARY'");
        let keys: std::collections::BTreeSet<_> =
            keys.iter().filter_map(|row| row[2].clone()).collect();
        for key in keys {
            root.ok(&format!("{index} {key}"));
        }
        without(&[], &["ALTER TABLE `message` ADD INDEX (`user_id`"]);
        root.ok(&format!("DROP USER {user}@'%'"));
    });
}

/// Each line's time is told, with its share; with the feed of the settings, with the one that Headwater finds, and with none.
#[test]
fn a_whole_request_is_played_and_compared() {
    on_each_server(|server| {
        let (database, _root) = filled(server);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.txt");
        let play = |lines: &str, settings: &str| {
            std::fs::write(&file, lines).unwrap();
            let request = ["--request", file.to_str().unwrap()];
            let flags = [&request[..], &["--connections", "2", "--pages", "1,2"]].concat();
            measured(server, &database, settings, &flags)
        };
        let page = "connect\nSET NAMES utf8mb4\n\
             SELECT m.id, m.body FROM message m JOIN follower f ON f.follower_id = m.user_id \\\n\
               WHERE f.user_id = {reader} ORDER BY m.id DESC LIMIT 20 OFFSET {page}\n\
             SELECT COUNT(*) FROM message m JOIN follower f ON f.follower_id = m.user_id WHERE f.user_id = {reader}\n\
             SELECT id, user_id FROM message WHERE id IN ({ids}) ORDER BY id\n";
        let readers = format!("readers SELECT DISTINCT user_id FROM follower\n{page}");
        let home = format!("[service]\nuser = \"root\"\n{HOME_FEED}");
        for (lines, settings) in [(page, &*home), (&readers, "[service]\nuser = \"root\"\n")] {
            let (told, well) = play(lines, settings);
            assert!(well && told.contains("\n0 answers differ"), "{told}");
            for part in [
                "of 5 readers",
                "page 2, 2 connections",
                "\nconnect ",
                "OFFSET {page}",
                "\nthe whole request ",
                "\nrequests a second ",
            ] {
                assert!(told.contains(part), "no {part:?} in {told}");
            }
            // Through the connection that the app makes anew.
            assert!(told.contains("feeds_kept="), "{told}");
        }
        for (lines, part) in [
            (
                "SELECT {reader}\nSELECT {ids}\n",
                "line 2: {ids} means the rows",
            ),
            ("connect\n", "no statement"),
            (
                "readers SELECT 1 FROM message WHERE id = 0\nSELECT 1\n",
                "name the readers",
            ),
        ] {
            let (told, well) = play(lines, &home);
            assert!(!well && told.contains(part), "no {part:?} in {told}");
        }
        let (told, well) = play("SELECT 1\n", "[service]\nuser = \"root\"\n");
        assert!(
            !well && told.contains("readers SELECT id FROM users"),
            "{told}"
        );
    });
}

#[test]
fn a_simulation_needs_no_server_and_is_the_same_by_its_seed() {
    let simulated = || {
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("figures.json");
        let output = headwater(&[])
            .args(["bench", "--simulate", "1000000", "--sample", "1000"])
            .args(["--seed", "3", "--json", json.to_str().unwrap()])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{told}");
        let figures: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
        (told, figures)
    };
    let (told, figures) = simulated();
    for word in ["1,000,000 users", "hit share", "GiB a million", "MB/s"] {
        assert!(told.contains(word), "no {word} in:\n{told}");
    }
    let (_, other) = simulated();
    // How fast the log is read depends on the machine.
    for of in ["all", "of_active", "budgets", "shared", "rates"] {
        assert_eq!(figures[of], other[of], "{of}");
    }
}
