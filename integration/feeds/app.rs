//! The tables of an app with a feed, and their rows.

use std::fmt::Write as _;

use super::served::PATIENT;
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::random::Random;
use crate::kit::wire_client::WireClient;

/// An app's column types and the numbers of its rows.
#[derive(Clone, Debug)]
pub(super) struct App {
    /// The SQL type of message ids.
    pub(super) id: &'static str,
    /// The SQL type of user ids.
    pub(super) user: &'static str,
    pub(super) users: u64,
    pub(super) messages: u64,
    pub(super) follows: u64,
}

/// A small app, whose pages are fast to compute.
pub(super) const SMALL: App = App {
    id: "INT",
    user: "INT",
    users: 30,
    messages: 3_000,
    follows: 200,
};

/// An app of a site's size: with `HEADWATER_FEEDS`, 300 users and 40,000 messages; otherwise a fifth of both, with the same density.
pub(super) fn large(id: &'static str, user: &'static str) -> App {
    let size = if how_many("HEADWATER_FEEDS", 0) > 0 {
        5
    } else {
        1
    };
    App {
        id,
        user,
        users: 60 * size,
        messages: 8_000 * size,
        follows: 1_800 * size,
    }
}

/// The app's feed.
pub(super) const FEED: &str = "
[[feed]]
name = \"home\"
[feed.message]
table = \"statuses\"
id = \"id\"
author = \"profile_id\"
order = [\"id\"]
[feed.follow]
table = \"followers\"
reader = \"profile_id\"
author = \"following_id\"
";

/// Settings with that feed.
pub(super) fn settings() -> String {
    [PATIENT, FEED].concat()
}

/// The same for this database alone. In all databases the feed would lose its memory when other tests alter or drop tables there.
pub(super) fn settings_in(database: &Database) -> String {
    let name = "name = \"home\"";
    let only = format!("{name}\ndatabase = \"{}\"", database.name());
    settings().replace(name, &only)
}

impl App {
    pub(super) fn make(&self, client: &mut WireClient, random: &mut Random) {
        let App { id, user, .. } = self;
        client.ok(&format!(
            "CREATE TABLE statuses (id {id} NOT NULL PRIMARY KEY, profile_id {user}, caption VARCHAR(100), kind VARCHAR(10) NOT NULL, \
             visibility ENUM('public','private') NOT NULL, likes INT NOT NULL, in_reply_to {id}, created_at DATETIME NOT NULL, \
             deleted_at DATETIME, KEY (profile_id), KEY by_time (created_at)) DEFAULT CHARSET=utf8mb4"
        ));
        client.ok(&format!(
            "CREATE TABLE profiles (id {user} NOT NULL PRIMARY KEY, name VARCHAR(50) NOT NULL, private BOOLEAN NOT NULL) \
             DEFAULT CHARSET=utf8mb4"
        ));
        client.ok(&format!(
            "CREATE TABLE followers (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, profile_id {user} NOT NULL, \
             following_id {user} NOT NULL, accepted BOOLEAN NOT NULL DEFAULT 1, UNIQUE KEY (profile_id, following_id), \
             KEY (following_id)) DEFAULT CHARSET=utf8mb4"
        ));
        client.ok(&format!(
            "CREATE TABLE blocks (profile_id {user} NOT NULL, blocked_id {user} NOT NULL, PRIMARY KEY (profile_id, blocked_id))"
        ));
        let users: Vec<String> = (1..=self.users)
            .map(|user| format!("({user},'user {user}',{})", u8::from(random.one_in(5))))
            .collect();
        insert(client, "profiles", &users);
        let mut messages = Vec::new();
        for id in 1..=self.messages {
            // A few authors write most messages.
            let author = 1 + random.below(self.users).min(random.below(self.users));
            let author = match random.one_in(40) {
                true => "NULL".to_owned(),
                false => author.to_string(),
            };
            let reply = match random.one_in(3) {
                true => random.below(id).max(1).to_string(),
                false => "NULL".to_owned(),
            };
            let gone = match random.one_in(6) {
                true => "'2026-01-01 00:00:00'",
                false => "NULL",
            };
            let kind = random.pick(&["photo", "video", "text"]);
            let visibility = random.pick(&["public", "public", "private"]);
            let (likes, second) = (random.below(50), id % 60);
            messages.push(format!(
                "({id},{author},'caption {id}','{kind}','{visibility}',{likes},{reply},'2026-01-01 10:00:{second:02}',{gone})"
            ));
        }
        insert(client, "statuses", &messages);
        let mut follows = std::collections::BTreeSet::new();
        let mut blocks = std::collections::BTreeSet::new();
        for _ in 0..self.follows {
            // Readers follow none to very many authors.
            let reader = 1 + random.below(self.users).min(random.below(self.users));
            follows.insert((reader, 1 + random.below(self.users)));
            if random.one_in(5) {
                blocks.insert((reader, 1 + random.below(self.users)));
            }
        }
        let rows: Vec<String> = follows
            .into_iter()
            .map(|(reader, author)| {
                format!(
                    "(DEFAULT,{reader},{author},{})",
                    u8::from(!random.one_in(10))
                )
            })
            .collect();
        insert(client, "followers", &rows);
        let rows: Vec<String> = blocks
            .into_iter()
            .map(|(reader, author)| format!("({reader},{author})"))
            .collect();
        insert(client, "blocks", &rows);
        steady_statistics(client, &["statuses", "followers", "profiles", "blocks"]);
    }
}

/// Counts the tables' rows, and has their statistics stay as they are. Plans depend on them, and column definitions on plans: they must change when
/// a test asks for it, not ten seconds later by themselves.
pub(super) fn steady_statistics(client: &mut WireClient, tables: &[&str]) {
    for table in tables {
        client.ok(&format!(
            "ALTER TABLE {table} STATS_AUTO_RECALC = 0, STATS_PERSISTENT = 1"
        ));
        client.query(&format!("ANALYZE TABLE {table}"));
    }
}

fn insert(client: &mut WireClient, table: &str, rows: &[String]) {
    for chunk in rows.chunks(1_000) {
        let mut text = format!("INSERT INTO {table} VALUES ");
        let _ = write!(text, "{}", chunk.join(","));
        client.ok(&text);
    }
}
