//! Code that the programs of both drivers share: arguments, script, and how a result is printed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

pub const TAIL: &str = "SELECT message.id,user_id,body FROM message \
    INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";
pub const DIGITS: &str = "SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n, 'word' \
    FROM digit a, digit b, digit c, digit e ORDER BY n";

/// The program's arguments.
pub struct Arguments {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    pub database: String,
    pub tls: bool,
    pub ca: PathBuf,
}

/// A parameter of a prepared statement.
pub enum Given {
    Number(i64),
    Text(&'static str),
    Null,
}

pub fn given() -> Arguments {
    let mut words = std::env::args().skip(1);
    let mut next = || words.next().expect("HOST PORT USER PASSWORD DATABASE TLS CA");
    Arguments {
        host: next(),
        port: next().parse().expect("a port"),
        user: next(),
        password: next(),
        database: next(),
        tls: next() == "1",
        ca: next().into(),
    }
}

/// Prints a text, or the digest of a long one.
pub fn see(text: &str) {
    if text.len() > 20_000 {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        println!("{} bytes {:x}", text.len(), hasher.finish());
    } else {
        println!("{text}");
    }
}

/// Statements, and the parameters of those that are prepared.
pub fn script() -> Vec<(&'static str, Option<Vec<Given>>)> {
    use Given::{Null, Number, Text};
    vec![
        ("SELECT VERSION(), DATABASE(), CURRENT_USER()", None),
        ("SHOW STATUS LIKE 'Ssl_version'", None),
        ("SELECT * FROM sample ORDER BY id", None),
        ("SELECT * FROM sample WHERE id < ? ORDER BY id", Some(vec![Number(4)])),
        ("SELECT nothing FROM nowhere", None),
        ("THIS IS NO SQL", None),
        (
            "INSERT INTO note (word, amount) VALUES ('één 東京', 1), (NULL, NULL)",
            None,
        ),
        ("INSERT INTO note (id) VALUES (1)", None),
        ("UPDATE note SET amount = 5 WHERE id < 3", None),
        (
            "INSERT INTO note (word, amount) VALUES (?, ?)",
            Some(vec![Text("prepared"), Null]),
        ),
        (
            "SELECT id, word, ? AS given FROM note WHERE id > ? OR word <=> ? ORDER BY id",
            Some(vec![Text("Zoë"), Number(1), Null]),
        ),
        ("SELECT CAST('12x' AS SIGNED)", None),
        ("SHOW WARNINGS", None),
        ("CALL fetch_timeline_ids(7)", None),
        (TAIL, None),
        ("call `fetch_timeline_ids2`( 7 , 6000 ) -- page", None),
        (TAIL, None),
        ("SELECT COUNT(*), MIN(id), MAX(id) FROM fetch_timeline_tt", None),
        ("CALL fetch_timeline_ids(999)", None),
        (TAIL, None),
        ("CALL fetch_timeline_ids(1, 2, 3)", None),
        ("CALL fetch_timeline_ids(?)", Some(vec![Number(4)])),
        (TAIL, Some(vec![])),
        ("CALL fetch_timeline_ids2(?, ?)", Some(vec![Number(7), Number(6000)])),
        (TAIL, None),
        ("CALL fetch_timeline_ids(7)", None),
        (TAIL, Some(vec![])),
        ("BEGIN", None),
        (
            "INSERT INTO message (id, user_id, body) VALUES (20000, 1, 'rolled back')",
            None,
        ),
        ("CALL fetch_timeline_ids(7)", None),
        (TAIL, None),
        ("ROLLBACK", None),
        (
            "INSERT INTO message (id, user_id, body) VALUES (20001, 1, 'kept')",
            None,
        ),
        ("CALL fetch_timeline_ids(7)", None),
        (TAIL, None),
        ("SET autocommit = 0", None),
        ("CALL fetch_timeline_ids(7)", None),
        (TAIL, None),
        ("SET autocommit = 1", None),
        ("SELECT id, word, amount FROM note ORDER BY id", None),
        ("SELECT REPEAT('x', ?) AS long_one", Some(vec![Number(1_000_000)])),
    ]
}
