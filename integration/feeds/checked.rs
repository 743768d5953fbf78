//! Tables that the check refuses: the server answers their feeds.

use super::app::{App, settings, settings_in};
use super::narrowed::relayed;
use super::rules::LISTED;
use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_quiet_server, on_each_server};
use crate::kit::twin::Twin;

fn made(server: &'static Server, story: &str) -> Database {
    let database = Database::empty(server, story);
    let app = App {
        id: "INT",
        user: "INT",
        users: 30,
        messages: 1_000,
        follows: 200,
    };
    app.make(&mut database.connect(), &mut Random(5));
    database
}

/// Covers system-versioned tables and generated columns.
#[test]
fn tables_with_a_history_and_computed_columns_are_refused() {
    const HISTORY: (&str, &str) = (
        "ALTER TABLE statuses ADD SYSTEM VERSIONING",
        "statuses is a system versioned",
    );
    const AUTHOR: (&str, &str) = (
        "ALTER TABLE statuses RENAME COLUMN profile_id TO poster; \
         ALTER TABLE statuses ADD COLUMN profile_id INT GENERATED ALWAYS AS (poster) STORED, ADD KEY (profile_id)",
        "statuses.profile_id is computed from other columns",
    );
    const READER: (&str, &str) = (
        "ALTER TABLE followers RENAME COLUMN profile_id TO who; \
         ALTER TABLE followers ADD COLUMN profile_id INT GENERATED ALWAYS AS (who) STORED, ADD UNIQUE KEY own (profile_id, following_id)",
        "followers.profile_id is computed from other columns",
    );
    const ID: (&str, &str) = (
        "ALTER TABLE statuses RENAME COLUMN id TO number, DROP PRIMARY KEY; \
         ALTER TABLE statuses ADD COLUMN id INT GENERATED ALWAYS AS (number) STORED NOT NULL PRIMARY KEY",
        "statuses.id is computed from other columns",
    );
    on_each_server(|server| {
        // MySQL has no system-versioned tables, and MariaDB has no generated primary keys.
        let own = match server.is_mariadb() {
            true => HISTORY,
            false => ID,
        };
        for (alters, told) in [own, AUTHOR, READER] {
            let database = made(server, "feedrefused");
            let mut root = database.connect();
            for alter in alters.split("; ") {
                root.ok(alter);
            }
            refused(server, &database, &settings(), told);
        }
        let database = made(server, "feedrefusedkey");
        database.connect().ok(
            "ALTER TABLE statuses ADD COLUMN shown_at DATETIME GENERATED ALWAYS AS (created_at) STORED, ADD KEY feed (profile_id, shown_at)",
        );
        let settings = settings().replace("order = [\"id\"]", "order = [\"shown_at\", \"id\"]");
        refused(
            server,
            &database,
            &settings,
            "statuses.shown_at is computed from other columns",
        );
    });
}

#[track_caller]
fn refused(server: &'static Server, database: &Database, settings: &str, told: &str) {
    let proxy = Proxy::configured(server.addr(), settings, ROOT_SERVICE);
    proxy.wait_for_log(told);
    let mut twin = Twin::new(server, &proxy, &database.login());
    for statement in [
        LISTED,
        "SELECT id FROM statuses WHERE profile_id IN (1, 2) ORDER BY shown_at DESC, id DESC LIMIT 5",
        "SELECT s.id FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 ORDER BY s.id DESC LIMIT 5",
    ] {
        for _ in 0..3 {
            twin.run(statement);
        }
    }
    let counts = proxy.counts();
    assert_eq!(counts.feeds_answered(), 0, "{counts:?}");
}

/// Not every server logs the changes that a foreign key makes to messages.
#[test]
fn messages_that_a_foreign_key_changes_are_left_to_the_server() {
    on_each_quiet_server(|server| {
        let database = made(server, "feedcascade");
        let mut root = database.connect();
        root.ok("DELETE FROM statuses WHERE profile_id NOT IN (SELECT id FROM profiles)");
        root.ok(
            "ALTER TABLE statuses ADD CONSTRAINT owner FOREIGN KEY (profile_id) REFERENCES profiles (id) ON DELETE SET NULL ON UPDATE CASCADE",
        );
        let proxy = Proxy::configured(server.addr(), &settings_in(&database), ROOT_SERVICE);
        let name = database.name();
        let key = "the foreign key `owner` of `statuses` changes its rows";
        proxy.wait_for_log(&format!("feed home in database {name}: relayed, {key}"));
        assert!(!proxy.log().contains(&format!("in database {name}: served")));
        let mut twin = Twin::new(server, &proxy, &database.login());
        let statement = "SELECT id, profile_id FROM statuses WHERE profile_id IN (1, 2, 3, 4, 777) ORDER BY id DESC LIMIT 200";
        relayed(&proxy, &mut twin, statement, "feed_refused");
        for changes in [
            "DELETE FROM profiles WHERE id = 2",
            "UPDATE profiles SET id = 777 WHERE id = 9",
            "UPDATE profiles SET id = 2 WHERE id = 3",
        ] {
            root.ok(changes);
            relayed(&proxy, &mut twin, statement, "feed_refused");
        }
        let why = format!("SHOW HEADWATER WHY FOR {statement}");
        let told = twin.proxied.rows(&why).remove(0);
        assert_eq!(told[1].as_deref(), Some("feed_refused"));
        assert!(
            told[2].as_deref().is_some_and(|means| means.contains(key)),
            "{told:?}"
        );
        assert_eq!(told[4].as_deref(), Some("home"));
        root.ok("ALTER TABLE statuses DROP FOREIGN KEY owner");
        proxy.wait_for_log(&format!("feed home in database {name}: served"));
    });
}
