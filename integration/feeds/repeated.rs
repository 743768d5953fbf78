//! Follow tables without a unique key: the same follow twice, of several kinds, and what is left when one of two goes.

use super::app::{SMALL, settings_in};
use super::narrowed::until_risen;
use super::served::served;
use crate::kit::database::Database;
use crate::kit::proxy::Counts;
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::WireClient;

const PAGES: [&str; 4] = [
    "SELECT id, caption FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) ORDER BY id DESC LIMIT 9",
    "SELECT s.id FROM statuses s WHERE EXISTS (SELECT 1 FROM followers f WHERE f.following_id = s.profile_id AND f.profile_id = 1 \
     AND f.kind = 'user') ORDER BY s.id DESC LIMIT 7",
    // A message has as many rows as the reader follows its author.
    "SELECT s.id, s.caption FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 ORDER BY s.id DESC LIMIT 9, 12",
    "SELECT DISTINCT s.* FROM statuses s LEFT JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 OR s.profile_id = 1 \
     ORDER BY s.id DESC LIMIT 20",
];

fn write(root: &mut WireClient, random: &mut Random) {
    let author = 1 + random.below(6);
    let kind = random.pick(&["user", "group"]);
    root.ok(&match random.below(6) {
        0 => format!("DELETE FROM followers WHERE profile_id = 1 AND following_id = {author} LIMIT 1"),
        1 => format!("DELETE FROM followers WHERE profile_id = 1 AND following_id = {author}"),
        2 => format!("UPDATE followers SET following_id = {author} WHERE profile_id = 1 LIMIT 1"),
        3 => format!("UPDATE followers SET kind = '{kind}', profile_id = 3 - profile_id WHERE profile_id < 3 AND following_id = {author} LIMIT 1"),
        _ => format!("INSERT INTO followers (profile_id, following_id, kind) VALUES (1, {author}, '{kind}'), (NULL, {author}, 'user')"),
    });
}

#[test]
fn a_follow_that_is_there_twice_counts_until_both_are_gone() {
    on_each_server(|server| {
        let database = Database::empty(server, "feedrepeated");
        let mut root = database.connect();
        SMALL.make(&mut root, &mut Random(5));
        root.ok("DROP TABLE followers");
        root.ok("CREATE TABLE followers (profile_id INT, following_id INT, kind VARCHAR(9), KEY (profile_id))");
        root.ok("INSERT INTO followers VALUES (1, 2, 'user'), (1, 2, 'group'), (1, 2, 'user'), (1, 3, 'user'), (2, 4, 'user'), (NULL, NULL, NULL)");
        let proxy = served(server, &database, "home", &settings_in(&database));
        let mut client = proxy.login(&database.login());
        let mut random = Random(20_261_130);
        let quota = Quota::new(&proxy, 120, 60, Counts::feeds_answered);
        while quota.take().is_some() {
            if random.one_in(3) {
                write(&mut root, &mut random);
            }
            let page = random.pick::<&str>(&PAGES);
            assert_eq!(client.rows(page), root.rows(page), "{page}");
        }
        let kept = |counts: &Counts| counts.of("feeds_kept");
        until_risen(&proxy, "kept", kept, || drop(client.query(PAGES[0])));
    });
}
