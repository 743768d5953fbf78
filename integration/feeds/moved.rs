//! Linearizability of pages ordered by a key: writers move messages to the front while readers query through Headwater.
//!
//! Each writer has SLOTS messages. Its n-th transaction takes the last message and gives it the next key, in one of several ways.
//! So after n transactions the writer has exactly the keys from n to n + SLOTS - 1, and the message of each key is known: an answer
//! with a missing or an extra key never was the state of the table.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use headwater_lab::feed::CLASSIC_FEED;

use super::linear::checks;
use super::served::{PATIENT, served};
use crate::kit::database::Database;
use crate::kit::proxy::{Counts, Proxy};
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_quiet_server};
use crate::kit::threads::wait_for;
use crate::kit::wire_client::{Answer, Login, WireClient};

const WRITERS: u64 = 3;
const SLOTS: u64 = 10;
/// Readers query until this many moves were made.
const MOVES: u64 = 60;
/// The number of authors of each writer, among whom its messages rotate.
const AUTHORS: u64 = 2;
const READER: u64 = 1;

/// The progress of one writer's transactions.
#[derive(Default)]
struct Moves {
    begun: AtomicU64,
    done: AtomicU64,
}

/// A type of key column.
struct Kind {
    sql: &'static str,
    /// The row image that writers' sessions log (`binlog_row_image`).
    image: &'static str,
    /// The minimum number of answers in ten that are narrowed.
    narrowed: u64,
    /// Divides the usual number of answers, and multiplies the writers' pauses.
    slower: u64,
    /// Formats a key as a literal.
    literal: fn(u64) -> String,
    /// Parses a key from the server's text.
    number: fn(&str) -> u64,
}

/// The usual integer key.
const INT: Kind = Kind {
    sql: "INT NOT NULL",
    image: "FULL",
    narrowed: 2,
    slower: 1,
    literal: |key| (key as i64 - 500).to_string(),
    number: |text| u64::try_from(text.parse::<i64>().unwrap() + 500).unwrap(),
};

const KINDS: [Kind; 3] = [
    Kind {
        sql: "DATETIME(3) NULL",
        image: "FULL",
        narrowed: 2,
        slower: 1,
        literal: |key| {
            let (seconds, rest) = (key / 10, key % 10);
            let (hour, minute) = (seconds / 3_600 % 24, seconds / 60 % 60);
            let day = 1 + seconds / 86_400;
            let second = seconds % 60;
            format!("'2026-01-{day:02} {hour:02}:{minute:02}:{second:02}.{rest}'")
        },
        number: |text| {
            let number = |from: usize, to: usize| text[from..to].parse::<u64>().unwrap();
            let hours = (number(8, 10) - 1) * 24 + number(11, 13);
            ((hours * 60 + number(14, 16)) * 60 + number(17, 19)) * 10 + number(20, 21)
        },
    },
    INT,
    // If an update logs neither author nor key, memory is filled again. Some answers are narrowed, but few on a busy machine.
    Kind {
        image: "MINIMAL",
        narrowed: 0,
        slower: 40,
        ..INT
    },
];

/// The id of the writer's message that has the n-th key.
fn id(writer: u64, n: u64) -> u64 {
    1 + writer * SLOTS + n % SLOTS
}

fn key(writer: u64, n: u64) -> u64 {
    n * WRITERS + writer
}

fn author(writer: u64, n: u64) -> u64 {
    1 + writer * AUTHORS + n % AUTHORS
}

fn proxy(server: &Server, database: &Database) -> Proxy {
    let order = "id = \"id\"\norder = [\"moved\", \"id\"]";
    let feed = CLASSIC_FEED.replace("id = \"id\"", order);
    served(server, database, "classic", &[PATIENT, &feed].concat())
}

/// The writer's n-th move: the last message gets the key after the first message's.
fn plan(kind: &Kind, writer: u64, n: u64, random: &mut Random) -> Vec<String> {
    let next = n + SLOTS;
    let (id, at) = (id(writer, n), (kind.literal)(key(writer, next)));
    let whose = author(writer, random.below(AUTHORS));
    let update = |what: &str| format!("UPDATE message SET {what} WHERE id = {id}");
    match random.below(6) {
        0 | 1 => vec![update(&format!("moved = {at}"))],
        2 => vec![update(&format!("moved = {at}, user_id = {whose}"))],
        3 => vec![
            format!("DELETE FROM message WHERE id = {id}"),
            format!(
                "INSERT INTO message (id, user_id, body, moved) VALUES ({id}, {whose}, 'x', {at})"
            ),
        ],
        4 => vec![
            update("user_id = NULL"),
            update(&format!("moved = {at}")),
            "DO SLEEP(0.001)".into(),
            update(&format!("user_id = {whose}, body = 'y'")),
        ],
        _ => vec![
            update(&format!("moved = {}", (kind.literal)(0))),
            update(&format!("moved = {at}")),
        ],
    }
}

fn write(kind: &Kind, writer: u64, moves: &Moves, stop: &AtomicBool, mut client: WireClient) {
    client.ok(&format!("SET SESSION binlog_row_image = {}", kind.image));
    let mut random = Random(writer + 5);
    let mut n = 0;
    while !stop.load(Ordering::Relaxed) {
        let statements = plan(kind, writer, n, &mut random);
        n += 1;
        moves.begun.store(n, Ordering::SeqCst);
        client.ok("BEGIN");
        for statement in statements {
            client.ok(&statement);
        }
        client.ok("COMMIT");
        moves.done.store(n, Ordering::SeqCst);
        thread::sleep(Duration::from_micros(random.below(12_000 * kind.slower)));
    }
}

/// The statement of a page with this bound and limit.
fn statement(kind: &Kind, turn: u64, upper: Option<u64>, limit: usize) -> String {
    let followed = format!("SELECT follower_id FROM follower WHERE follower.user_id = {READER}");
    let all: Vec<String> = (1..=WRITERS * AUTHORS).map(|it| it.to_string()).collect();
    let join = "JOIN follower ON message.user_id = follower.follower_id";
    let (from, condition) = match turn % 4 {
        0 => (join, format!("follower.user_id = {READER}")),
        1 => ("", format!("message.user_id IN ({followed})")),
        2 => ("", format!("message.user_id IN ({})", all.join(","))),
        _ => (
            "",
            format!("(message.user_id IN ({followed}) OR message.user_id = 999999)"),
        ),
    };
    let bound = upper.map(|upper| match turn / 4 % 3 {
        0 => format!(" AND moved <= {}", (kind.literal)(upper)),
        1 => format!(" AND moved < {}", (kind.literal)(upper + 1)),
        _ => format!(
            " AND (moved, message.id) < ({}, 1)",
            (kind.literal)(upper + 1)
        ),
    });
    let behind = if (turn / 12).is_multiple_of(2) {
        ", id DESC"
    } else {
        ""
    };
    format!(
        "SELECT message.id, moved FROM message {from} WHERE {condition}{} ORDER BY moved DESC{} LIMIT {limit}",
        bound.unwrap_or_default(),
        behind.replace("id", "message.id"),
    )
}

/// Describes a wrong answer, whose rows are a message and its key.
fn fault(
    rows: &[(u64, u64)],
    (upper, limit): (Option<u64>, usize),
    done: &[u64],
    begun: &[u64],
) -> Option<String> {
    if !rows.is_sorted_by(|(_, a), (_, b)| a > b) {
        return Some("not in order".into());
    }
    let oldest = match rows.last() {
        Some((_, oldest)) if rows.len() == limit => *oldest,
        _ => 0,
    };
    let within = |key: &u64| *key >= oldest && upper.is_none_or(|upper| *key <= upper);
    for writer in 0..WRITERS {
        let own: Vec<(u64, u64)> = rows
            .iter()
            .filter(|(_, key)| key % WRITERS == writer)
            .copied()
            .collect();
        let at = usize::try_from(writer).unwrap();
        let fits = |moves: u64| {
            let all = (moves..moves + SLOTS).rev();
            let expected = all.map(|n| (id(writer, n), key(writer, n)));
            let expected = expected.filter(|(_, key)| within(key));
            expected.eq(own.iter().copied())
        };
        if !(done[at]..=begun[at]).any(fits) {
            let (done, begun) = (done[at], begun[at]);
            return Some(format!(
                "writer {writer}, between moves {done} and {begun}: {own:?}"
            ));
        }
    }
    None
}

fn read(kind: &Kind, number: u64, moves: &[Moves], quota: &Quota, mut client: WireClient) {
    let of = |which: fn(&Moves) -> &AtomicU64| -> Vec<u64> {
        let all = moves.iter().map(|own| which(own).load(Ordering::SeqCst));
        all.collect()
    };
    let mut turn = number;
    let is_over = || of(|own| &own.done).iter().sum::<u64>() >= MOVES;
    while quota.take().is_some() || !is_over() {
        turn += 1;
        let limit = [4, 17, 400][(turn / 24 % 3) as usize];
        let done = of(|own| &own.done);
        let newest = key(0, done[0] + SLOTS - 1);
        let upper = (turn / 3)
            .is_multiple_of(3)
            .then(|| newest.saturating_sub(turn % 7));
        let text = statement(kind, turn, upper, limit);
        let answers = client.query(&text);
        let begun = of(|own| &own.begun);
        let Some(Answer::Rows(answer)) = answers.into_iter().next() else {
            panic!("no rows to {text}");
        };
        let rows = answer.rows.iter().map(|row| {
            let cell = |at: usize| row[at].clone().unwrap();
            (cell(0).parse().unwrap(), (kind.number)(&cell(1)))
        });
        let rows: Vec<(u64, u64)> = rows.collect();
        let fault = fault(&rows, (upper, limit), &done, &begun);
        assert_eq!(fault, None, "{rows:?} to {text}");
    }
}

fn story(server: &'static Server, kind: &'static Kind) {
    let database = Database::classic(server, "feedmoved");
    let mut root = database.connect();
    root.ok(&format!(
        "ALTER TABLE message MODIFY user_id INT UNSIGNED NULL, ADD COLUMN moved {}, ADD INDEX feed (user_id, moved)",
        kind.sql
    ));
    for author in 1..=WRITERS * AUTHORS {
        root.ok(&format!("INSERT INTO follower VALUES ({READER}, {author})"));
    }
    for writer in 0..WRITERS {
        for n in 0..SLOTS {
            root.ok(&format!(
                "INSERT INTO message (id, user_id, body, moved) VALUES ({}, {}, 'x', {})",
                id(writer, n),
                author(writer, n),
                (kind.literal)(key(writer, n))
            ));
        }
    }
    let proxy = proxy(server, &database);
    let login: Login = database.login();
    let stop = AtomicBool::new(false);
    let turns = checks() / kind.slower;
    let quota = Quota::new(
        &proxy,
        turns,
        turns * kind.narrowed / 10,
        Counts::feeds_answered,
    );
    let moves: Vec<Moves> = (0..WRITERS).map(|_| Moves::default()).collect();
    thread::scope(|scope| {
        for (writer, own) in (0..).zip(&moves) {
            let (stop, client) = (&stop, database.connect());
            scope.spawn(move || write(kind, writer, own, stop, client));
        }
        let readers: Vec<_> = (0..4)
            .map(|number| {
                let (moves, quota, client) = (&moves, &quota, proxy.login(&login));
                scope.spawn(move || read(kind, number * 31, moves, quota, client))
            })
            .collect();
        wait_for(readers, &stop);
    });
    let counts = proxy.counts();
    let done: u64 = moves
        .iter()
        .map(|own| own.done.load(Ordering::Relaxed))
        .sum();
    println!("{}, {}: {done} moves; {counts:?}", kind.sql, kind.image);
}

#[test]
fn no_page_is_stale_while_keys_change() {
    on_each_quiet_server(|server| {
        for kind in &KINDS {
            story(server, kind);
        }
    });
}
