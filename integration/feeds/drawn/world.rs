//! The tables of a random app: names, types, rows and changes.

use std::fmt::Write as _;

use crate::feeds::PATIENT;
use crate::feeds::app::steady_statistics;
use crate::kit::random::Random;
use crate::kit::wire_client::WireClient;

/// The class of values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Number,
    Text,
    Time,
    Other,
}

/// A column of messages other than ids.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: &'static str,
    sql: &'static str,
    pub(super) class: Class,
    /// Literals that the column accepts.
    pub(super) values: &'static [&'static str],
}

/// Columns of every type.
const COLUMNS: [Column; 26] = [
    column(
        "caption",
        "VARCHAR(60)",
        Class::Text,
        &[
            "'one'",
            "'two'",
            "'Gr\u{fc}\u{df}e'",
            "''",
            "NULL",
            "'NONE'",
            "'a  '",
            "'5'",
        ],
    ),
    column(
        "note",
        "VARCHAR(20) CHARACTER SET latin1",
        Class::Text,
        &["'x'", "'\u{e9}t\u{e9}'", "NULL", "'X'"],
    ),
    column(
        "code",
        "CHAR(6) CHARACTER SET ascii NOT NULL",
        Class::Text,
        &["'ab'", "'AB'", "''", "'abcdef'"],
    ),
    column(
        "body",
        "TEXT",
        Class::Text,
        &["'long'", "REPEAT('y', 300)", "NULL", "'z'"],
    ),
    column(
        "bin_word",
        "VARCHAR(30) COLLATE utf8mb4_bin NOT NULL DEFAULT 'q'",
        Class::Text,
        &["'Q'", "'q'", "'\u{1f600}'"],
    ),
    column(
        "raw",
        "VARBINARY(12)",
        Class::Other,
        &["x'00ff'", "'r'", "NULL"],
    ),
    column(
        "likes",
        "INT NOT NULL",
        Class::Number,
        &["0", "1", "7", "30", "-4"],
    ),
    column(
        "views",
        "INT UNSIGNED ZEROFILL",
        Class::Number,
        &["0", "5", "4000000000", "NULL"],
    ),
    column(
        "big",
        "BIGINT",
        Class::Number,
        &["0", "9007199254740993", "-1", "NULL"],
    ),
    column(
        "small",
        "SMALLINT UNSIGNED NOT NULL DEFAULT 3",
        Class::Number,
        &["3", "0", "65535"],
    ),
    column(
        "price",
        "DECIMAL(10,2)",
        Class::Number,
        &["1.50", "0", "-3.25", "NULL"],
    ),
    column(
        "ratio",
        "DOUBLE NOT NULL",
        Class::Number,
        &["0", "0.1", "1e100", "-2.5"],
    ),
    column("single", "FLOAT", Class::Number, &["0.1", "3", "NULL"]),
    column(
        "flag",
        "TINYINT(1) NOT NULL DEFAULT 0",
        Class::Number,
        &["0", "1"],
    ),
    column("bits", "BIT(5)", Class::Other, &["b'101'", "0", "NULL"]),
    column(
        "kind",
        "ENUM('photo','text','Video') NOT NULL",
        Class::Text,
        &["'photo'", "'text'", "'Video'"],
    ),
    column(
        "marks",
        "SET('a','b','c')",
        Class::Text,
        &["'a'", "'a,c'", "''", "NULL"],
    ),
    column(
        "day",
        "DATE",
        Class::Time,
        &["'2026-01-31'", "'1999-12-31'", "NULL"],
    ),
    column(
        "hour",
        "TIME(2)",
        Class::Other,
        &["'10:11:12.13'", "'-00:00:01'", "NULL"],
    ),
    column("era", "YEAR", Class::Number, &["2026", "1970", "NULL"]),
    column(
        "seen_at",
        "DATETIME(3)",
        Class::Time,
        &["'2026-01-01 10:00:00.500'", "'2026-01-01 10:00:00'", "NULL"],
    ),
    column(
        "touched",
        "TIMESTAMP NULL DEFAULT NULL",
        Class::Time,
        &["'2026-03-01 12:30:00'", "NULL"],
    ),
    column(
        "doc",
        "JSON",
        Class::Other,
        &["'{\"a\": 1}'", "'[]'", "NULL"],
    ),
    column(
        "deleted_at",
        "DATETIME",
        Class::Time,
        &["NULL", "NULL", "NULL", "'2026-02-02 00:00:00'"],
    ),
    column(
        "camelCase",
        "VARCHAR(9) NOT NULL DEFAULT ''",
        Class::Text,
        &["'m'", "'M'", "''"],
    ),
    column("order", "INT", Class::Number, &["1", "2", "NULL"]),
];

const fn column(
    name: &'static str,
    sql: &'static str,
    class: Class,
    values: &'static [&'static str],
) -> Column {
    Column {
        name,
        sql,
        class,
        values,
    }
}

/// The order keys of pages: name, type, and the fractional digits of a time (`None`: a number).
const KEYS: [(&str, &str, Option<usize>); 5] = [
    ("created_at", "DATETIME NOT NULL", Some(0)),
    ("created_at", "DATETIME(3) NULL", Some(3)),
    ("posted", "TIMESTAMP NULL DEFAULT NULL", Some(0)),
    (
        "shown_at",
        "TIMESTAMP(6) NOT NULL DEFAULT '2026-01-01 00:00:00'",
        Some(6),
    ),
    ("score", "INT NULL", None),
];

const ID_TYPES: [&str; 5] = [
    "INT",
    "INT UNSIGNED",
    "BIGINT UNSIGNED",
    "BIGINT",
    "MEDIUMINT UNSIGNED",
];
const USER_TYPES: [&str; 5] = [
    "INT",
    "INT UNSIGNED",
    "BIGINT UNSIGNED",
    "BIGINT",
    "SMALLINT",
];
const CHARSETS: [&str; 4] = [
    "utf8mb4",
    "utf8mb4",
    "latin1",
    "utf8mb4 COLLATE utf8mb4_unicode_ci",
];

pub(super) const USERS: u64 = 24;
const MESSAGES: u64 = 900;

/// An app's tables.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) message: &'static str,
    pub(super) id: &'static str,
    pub(super) author: &'static str,
    pub(super) key: &'static str,
    pub(super) digits: Option<usize>,
    key_sql: &'static str,
    pub(super) columns: Vec<Column>,
    pub(super) follow: &'static str,
    pub(super) reader: &'static str,
    pub(super) followed: &'static str,
    id_type: &'static str,
    user_type: &'static str,
    own_key: bool,
    charset: &'static str,
}

impl World {
    pub(super) fn draw(random: &mut Random) -> World {
        let names = [
            ("statuses", "id", "profile_id"),
            ("Posts", "postId", "userId"),
            ("msg", "id", "by_user"),
            ("`group`", "`key`", "owner"),
        ];
        let (message, id, author) = *random.pick(&names);
        let follows = [
            ("followers", "profile_id", "following_id"),
            ("follow", "reader", "author"),
            ("Subscription", "fromId", "toId"),
        ];
        let (follow, reader, followed) = *random.pick(&follows);
        let (key, key_sql, digits) = *random.pick(&KEYS);
        let mut columns = COLUMNS.to_vec();
        random.shuffle(&mut columns);
        columns.truncate(5 + random.below(6) as usize);
        let (id_type, user_type) = (*random.pick(&ID_TYPES), *random.pick(&USER_TYPES));
        let charset = *random.pick(&CHARSETS);
        World {
            message,
            id,
            author,
            key,
            digits,
            key_sql,
            columns,
            follow,
            reader,
            followed,
            id_type,
            user_type,
            own_key: random.one_in(2),
            charset,
        }
    }

    /// The settings of its feeds, by id and by key, for this database alone.
    pub(super) fn settings(&self, database: &str) -> String {
        let bare = |name: &str| name.replace('`', "");
        let mut settings = format!("{PATIENT}\n[privileges]\nttl_s = 600\n");
        for (name, order) in [
            ("home", format!("{:?}", bare(self.id))),
            ("timed", format!("{:?}, {:?}", self.key, bare(self.id))),
        ] {
            let _ = write!(
                settings,
                "\n[[feed]]\nname = \"{name}\"\ndatabase = \"{database}\"\n[feed.message]\ntable = {:?}\nid = {:?}\nauthor = {:?}\n\
                 order = [{order}]\n[feed.follow]\ntable = {:?}\nreader = {:?}\nauthor = {:?}\n",
                bare(self.message),
                bare(self.id),
                self.author,
                self.follow,
                self.reader,
                self.followed
            );
        }
        settings
    }

    /// Creates the tables, and fills them.
    pub(super) fn make(&self, root: &mut WireClient, random: &mut Random) {
        let World {
            message,
            id,
            author,
            key,
            key_sql,
            follow,
            reader,
            followed,
            id_type,
            user_type,
            charset,
            ..
        } = self;
        root.ok("SET NAMES utf8mb4");
        root.ok("SET time_zone = '+00:00'");
        let columns: String = self
            .columns
            .iter()
            .map(|column| format!("`{}` {}, ", column.name, column.sql))
            .collect();
        let by_key = format!("{author}, {key}");
        root.ok(&format!(
            "CREATE TABLE {message} ({id} {id_type} NOT NULL PRIMARY KEY, {author} {user_type} NOT NULL, topic INT, {key} {key_sql}, \
             {columns} KEY by_author ({author}), KEY by_key ({by_key})) DEFAULT CHARSET={charset}"
        ));
        let (own, unique) = match self.own_key {
            true => (
                "no BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, ",
                "UNIQUE KEY",
            ),
            false => ("", "PRIMARY KEY"),
        };
        root.ok(&format!(
            "CREATE TABLE {follow} ({own}{reader} {user_type} NOT NULL, {followed} {user_type} NOT NULL, accepted BOOLEAN NOT NULL DEFAULT 1, \
             since DATE, {unique} ({reader}, {followed}), KEY ({followed}))"
        ));
        for table in [
            format!("users (uid {user_type} NOT NULL PRIMARY KEY, name VARCHAR(30) NOT NULL, bio VARCHAR(40), closed BOOLEAN NOT NULL) DEFAULT CHARSET={charset}"),
            "topics (tid INT NOT NULL PRIMARY KEY, title VARCHAR(20) NOT NULL, hidden BOOLEAN) DEFAULT CHARSET=utf8mb4".to_owned(),
            format!("blocks (who {user_type} NOT NULL, whom {user_type} NOT NULL, PRIMARY KEY (who, whom))"),
            format!("tags (mid {id_type} NOT NULL, tag VARCHAR(10) NOT NULL, PRIMARY KEY (mid, tag))"),
            format!("hearts (mid {id_type} NOT NULL, uid {user_type} NOT NULL, PRIMARY KEY (mid, uid))"),
        ] {
            root.ok(&format!("CREATE TABLE {table}"));
        }
        for user in 1..=USERS {
            let bio = if user % 3 == 0 {
                "NULL".to_owned()
            } else {
                format!("'bio {user}'")
            };
            root.ok(&format!(
                "INSERT INTO users VALUES ({user}, 'user {user}', {bio}, {})",
                user % 5 / 4
            ));
            for followed_user in 1..=USERS {
                if random.below(USERS) > user {
                    root.ok(&format!(
                        "INSERT INTO {follow} ({reader}, {followed}, accepted) VALUES ({user}, {followed_user}, {})",
                        u8::from(!random.one_in(5))
                    ));
                }
                if random.one_in(12) {
                    root.ok(&format!(
                        "INSERT INTO blocks VALUES ({user}, {followed_user})"
                    ));
                }
            }
        }
        for topic in 1..=8 {
            root.ok(&format!(
                "INSERT INTO topics VALUES ({topic}, 'topic {topic}', {})",
                ["0", "1", "NULL"][topic % 3]
            ));
        }
        let rows: Vec<String> = (1..=MESSAGES).map(|id| self.row(id * 2, random)).collect();
        for rows in rows.chunks(300) {
            root.ok(&format!("INSERT INTO {message} VALUES {}", rows.join(",")));
        }
        root.ok(&format!("INSERT INTO tags SELECT {id}, ELT(1 + {id} MOD 5, 'a', 'b', 'c', 'd', 'e') FROM {message} WHERE {id} MOD 3 = 0"));
        root.ok(&format!(
            "INSERT INTO hearts SELECT {id}, 1 + {id} MOD {USERS} FROM {message}"
        ));
        let tables = [
            message, follow, "users", "topics", "blocks", "tags", "hearts",
        ];
        steady_statistics(root, &tables);
    }

    /// A message's row.
    fn row(&self, id: u64, random: &mut Random) -> String {
        let topic = match random.below(9) {
            0 => "NULL".to_owned(),
            topic => topic.to_string(),
        };
        let is_nullable = !self.key_sql.contains("NOT NULL");
        let moment = match is_nullable && random.one_in(15) {
            true => "NULL".to_owned(),
            false => self.moment(random),
        };
        let mut row = format!("({id}, {}, {topic}, {moment}", 1 + random.below(USERS));
        for column in &self.columns {
            let _ = write!(row, ", {}", random.pick(column.values));
        }
        row.push(')');
        row
    }

    /// A random value of the key.
    pub(super) fn moment(&self, random: &mut Random) -> String {
        let Some(digits) = self.digits else {
            return random.below(300).to_string();
        };
        let (day, hour, second) = (1 + random.below(9), random.below(24), random.below(60));
        let fraction = match digits > 0 && random.one_in(2) {
            true => format!(".{}", random.below(10)),
            false => String::new(),
        };
        format!("'2026-01-{day:02} {hour:02}:30:{second:02}{fraction}'")
    }

    pub(super) fn id_of(random: &mut Random) -> u64 {
        random.below(MESSAGES * 2 + 40)
    }

    /// A random change of rows or tables.
    pub(super) fn change(&self, random: &mut Random) -> String {
        let World {
            message,
            id,
            author,
            key,
            follow,
            reader,
            followed,
            ..
        } = self;
        let (number, user, other) = (
            World::id_of(random),
            1 + random.below(USERS),
            1 + random.below(USERS),
        );
        let newest = MESSAGES * 2 - random.below(60);
        let column = random.pick(&self.columns);
        let (name, value) = (column.name, random.pick(column.values));
        match random.below(16) {
            0..=3 => format!("UPDATE {message} SET `{name}` = {value} WHERE {id} = {newest}"),
            4 => format!(
                "UPDATE {message} SET `{name}` = {value} WHERE {id} BETWEEN {number} AND {number} + 9"
            ),
            5 => format!("UPDATE {message} SET {author} = {user} WHERE {id} = {newest}"),
            6 => format!(
                "UPDATE {message} SET {key} = {} WHERE {id} = {newest}",
                self.moment(random)
            ),
            7 => format!("DELETE FROM {message} WHERE {id} = {newest}"),
            8 | 9 => format!("REPLACE INTO {message} VALUES {}", self.row(newest, random)),
            10 => format!(
                "INSERT IGNORE INTO {follow} ({reader}, {followed}) VALUES ({user}, {other})"
            ),
            11 => format!("DELETE FROM {follow} WHERE {reader} = {user} AND {followed} = {other}"),
            12 => format!(
                "UPDATE {follow} SET accepted = 1 - accepted WHERE {reader} = {user} AND {followed} = {other}"
            ),
            13 => format!(
                "UPDATE users SET name = 'name {number}', closed = 1 - closed WHERE uid = {user}"
            ),
            14 => match random.one_in(2) {
                true => format!("INSERT IGNORE INTO blocks VALUES ({user}, {other})"),
                false => format!("DELETE FROM blocks WHERE who = {user}"),
            },
            _ => match random.one_in(2) {
                true => format!(
                    "REPLACE INTO topics VALUES ({}, 'topic {number}', 0)",
                    user % 8
                ),
                false => format!(
                    "UPDATE {message} SET topic = {} WHERE {id} = {newest}",
                    user % 9
                ),
            },
        }
    }
}
