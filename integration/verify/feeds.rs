//! Statements of feeds: those of apps, with a reader's values.

use super::{READERS, Scene};
use crate::feeds::narrowed::narrowed;
use crate::kit::servers::on_each_quiet_server;

const JOIN: &str = "SELECT m.id, m.body FROM message m JOIN follower f ON f.follower_id = m.user_id \
                    WHERE f.user_id = 1 ORDER BY m.id DESC LIMIT 5";
const FILTERED: &str =
    "SELECT id FROM message WHERE user_id IN (1, 2) AND body <> 'gone' ORDER BY id DESC LIMIT 5";

#[test]
fn an_apps_own_statements_are_asked_for_every_reader() {
    on_each_quiet_server(|server| {
        let scene = Scene::of(server, "verify_feed");
        let mut app = scene.proxy.login(&scene.database.login());
        for statement in [JOIN, FILTERED] {
            narrowed(&scene.proxy, &mut app, statement);
        }
        let before = scene.proxy.counts().feeds_answered();
        let verified = scene.verify(&["--only", "home"]);
        verified.is_equal();
        verified.says(
            "SELECT m.id, m.body FROM message m JOIN follower f ON f.follower_id = m.user_id WHERE f.user_id = READER ORDER BY m.id DESC LIMIT 20",
        );
        verified.says(&format!("{READERS} answers compared: {READERS} equal"));
        verified.says("not compared: SELECT id FROM message WHERE user_id IN (...) AND body <> ?");
        verified.says("its values are the app's own");
        assert!(!verified.report.contains("definition classic"));
        let answered = scene.proxy.counts().feeds_answered() - before;
        assert!(answered > 0, "none from memory");
    });
}

/// Without a follows table: pages of authors with adjacent ids.
#[test]
fn a_feed_without_follows_is_asked_for_by_lists_of_authors() {
    on_each_quiet_server(|server| {
        let mut scene = Scene::of(server, "verify_authors");
        let name = scene.database.name().to_owned();
        scene.settings = format!(
            "[[feed]]\nname = \"home\"\ndatabase = \"{name}\"\n[feed.message]\ntable = \"message\"\nauthor = \"user_id\"\n"
        );
        let verified = scene.verify(&["--only", "home", "--readers", "10"]);
        verified.is_equal();
        verified.says("WHERE m.`user_id` IN (AUTHORS)");
        verified.says("10 of 10 readers");
    });
}
