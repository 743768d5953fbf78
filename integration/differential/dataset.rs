//! Random data sets, each with an edge case for timelines.

use std::collections::BTreeSet;

use crate::kit::database::Database;
use crate::kit::random::Random;
use crate::kit::timeline::{Timeline, insert};
use crate::kit::wire_client::WireClient;

/// The bounds of what is drawn at random.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) timeline: Timeline,
    pub(crate) users: u64,
    pub(crate) messages: u64,
    /// The maximum number of authors that a reader follows.
    pub(crate) follows: u64,
    /// User and message ids count down from the maximum of their type.
    pub(crate) at_the_limit: bool,
    /// One author writes this many additional messages, all newer than those of others.
    pub(crate) prolific: u64,
}

/// Existing ids keep their author.
fn write(ids: &[u64], author: u64) -> String {
    let rows: Vec<String> = ids
        .iter()
        .map(|id| format!("({id},{author},'written late')"))
        .collect();
    format!("INSERT IGNORE INTO message VALUES {}", rows.join(","))
}

/// A data set on a server, and the values for calls on it.
#[derive(Debug)]
pub(crate) struct DataSet {
    pub(crate) users: Vec<u64>,
    /// Ids that were inserted; some are deleted.
    pub(crate) ids: Vec<u64>,
    pub(crate) max_id: u64,
    pub(crate) max_user: u64,
}

/// The maximum of an integer type.
fn greatest(sql_type: &str) -> u64 {
    match sql_type {
        "int" => 0x7fff_ffff,
        "int unsigned" => 0xffff_ffff,
        "bigint" => 0x7fff_ffff_ffff_ffff,
        "bigint unsigned" => u64::MAX,
        other => panic!("{other} is no type of ids"),
    }
}

impl Shape {
    /// Creates tables and procedures, and fills them.
    #[track_caller]
    pub(crate) fn load(&self, database: &Database, random: &mut Random) -> DataSet {
        let mut client = database.connect();
        self.timeline.create(&mut client);
        let (max_id, max_user) = (
            greatest(self.timeline.id_type),
            greatest(self.timeline.user_type),
        );
        let users = self.users(max_user);
        let follows = self.follows(&users, random);
        insert(&mut client, "follower", &follows, |(reader, author)| {
            format!("({reader},{author})")
        });

        let mut messages = self.messages(&users, max_id, random);
        let ids: Vec<u64> = messages.iter().map(|message| message.0).collect();
        // The commit order differs from the order of ids.
        random.shuffle(&mut messages);
        insert(&mut client, "message", &messages, |(id, author)| {
            format!("({id},{author},'message {id}')")
        });
        for _ in 0..ids.len() / 20 {
            client.ok(&format!(
                "DELETE FROM message WHERE id = {}",
                random.pick(&ids)
            ));
        }
        client.query("ANALYZE TABLE message, follower");
        DataSet {
            users,
            ids,
            max_id,
            max_user,
        }
    }

    fn users(&self, max: u64) -> Vec<u64> {
        let number = |at| {
            if self.at_the_limit {
                max - at * 3
            } else {
                1 + at
            }
        };
        (0..self.users).map(number).collect()
    }

    /// Some users follow no author, some follow themselves, some follow authors that do not exist.
    fn follows(&self, users: &[u64], random: &mut Random) -> Vec<(u64, u64)> {
        let mut follows = BTreeSet::new();
        for &reader in users {
            if random.one_in(8) {
                continue;
            }
            for _ in 0..random.below(self.follows + 1) {
                follows.insert((reader, *random.pick(users)));
            }
            if random.one_in(5) {
                follows.insert((reader, reader));
            }
            if random.one_in(9) {
                follows.insert((reader, random.below(users.len() as u64) + 1_000_000));
            }
            if self.prolific > 0 && random.one_in(2) {
                follows.insert((reader, users[0]));
            }
        }
        follows.into_iter().collect()
    }

    /// Most authors have few messages, a few have many, a quarter have none. Ids have gaps.
    fn messages(&self, users: &[u64], max: u64, random: &mut Random) -> Vec<(u64, u64)> {
        let total = self.messages + self.prolific;
        let mut id = if self.at_the_limit {
            max - total * 2
        } else {
            0
        };
        let authors: Vec<u64> = users
            .iter()
            .copied()
            .skip(1)
            .filter(|_| !random.one_in(4))
            .collect();
        let mut messages = Vec::new();
        for _ in 0..self.messages {
            let skewed = random.below(authors.len() as u64 * 2);
            let author = authors
                .get(random.below(skewed + 1) as usize)
                .or(authors.first());
            messages.push((id, author.copied().unwrap_or(users[0])));
            id += 1 + random.below(2);
        }
        for _ in 0..self.prolific {
            messages.push((id, users[0]));
            id += 1;
        }
        if self.at_the_limit && !messages.is_empty() {
            messages.push((max, users[users.len() / 2]));
        }
        messages
    }
}

impl DataSet {
    /// Commits one change by another session: earlier reads of an author or reader are stale.
    #[track_caller]
    pub(crate) fn change(&mut self, client: &mut WireClient, random: &mut Random) {
        let author = *random.pick(&self.users);
        let reader = *random.pick(&self.users);
        let some = 1 + random.below(4).pow(3);
        let newest = self.ids.iter().max().copied().unwrap_or(0);
        client.ok(&match random.below(8) {
            // Ids above all others, and a burst.
            0..=2 if newest < self.max_id / 2 => {
                let ids: Vec<u64> = (newest + 1..=newest + some).collect();
                self.ids.extend(&ids);
                write(&ids, author)
            }
            // Ids among the old ones.
            0..=3 => {
                let near = |random: &mut Random| match self.ids.is_empty() {
                    true => 1,
                    false => random.pick(&self.ids).saturating_sub(random.below(3)),
                };
                let ids: Vec<u64> = (0..some).map(|_| near(random)).collect();
                write(&ids, author)
            }
            4 => format!(
                "DELETE FROM message WHERE user_id = {author} ORDER BY id DESC LIMIT {some}"
            ),
            5 => format!(
                "UPDATE message SET user_id = {author} WHERE user_id = {reader} \
                 ORDER BY id DESC LIMIT {some}"
            ),
            6 => format!("INSERT IGNORE INTO follower VALUES ({reader},{author})"),
            _ => format!("DELETE FROM follower WHERE user_id = {reader} LIMIT 1"),
        });
    }

    /// The text of a call: any reader, existing or not, and any bound.
    pub(crate) fn call(&self, random: &mut Random) -> String {
        let reader = match random.below(20) {
            0 => 0,
            1 => self.max_user,
            2 => random.below(self.max_user),
            _ => *random.pick(&self.users),
        };
        if random.one_in(2) {
            return format!("CALL fetch_timeline_ids({reader})");
        }
        let bound = match random.below(20) {
            0 => 0,
            1 => self.max_id,
            2 => random.below(self.max_id),
            3 => self.ids.first().copied().unwrap_or(1),
            _ if self.ids.is_empty() => 1,
            _ => random.pick(&self.ids).saturating_sub(random.below(2)),
        };
        let procedure = match random.below(4) {
            0 => "build_max_ids_of_followers",
            _ => "fetch_timeline_ids2",
        };
        format!("CALL {procedure}({reader}, {bound})")
    }
}
