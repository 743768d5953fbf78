//! Statements of real apps and ORMs (`fixtures/apps`): replies are the server's own, beside writes, and so many are answered from memory.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::app::steady_statistics;
use super::discover::{await_listener, interrupted, sections, spawn};
use super::served::PATIENT;
use crate::kit::database::Database;
use crate::kit::proxy::{Counts, Proxy, ROOT_SERVICE, free_addr};
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};
use crate::kit::wire_client::{Param, WireClient};
use crate::kit::{how_many, patience, pause_since};

/// One app: its tables, its feeds and its statements.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct App {
    app: String,
    #[allow(dead_code, reason = "for readers of the file")]
    source: String,
    schema: Vec<String>,
    fill: Vec<String>,
    writes: Vec<String>,
    #[serde(default)]
    feed: Vec<toml::Table>,
    statement: Vec<Statement>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    name: String,
    #[allow(dead_code, reason = "for readers of the file")]
    why: String,
    text: String,
    /// The same with the id behind the key, where another text than the outermost ORDER BY has to say it.
    ordered: Option<String>,
    /// It is answered from memory, narrowed or from cached rows, on both servers.
    #[serde(default)]
    answered: bool,
    /// The same with what `headwater discover` says of the app.
    #[serde(default)]
    discovered: bool,
    #[serde(default)]
    prepared: bool,
    #[serde(default)]
    values: Vec<String>,
    /// What the driver or the framework sends first.
    #[serde(default)]
    session: Vec<String>,
}

/// The numbers from 1 to 10,000, by which files make their rows.
fn make_numbers(client: &mut WireClient) {
    client.ok("CREATE TABLE digit (d INT NOT NULL)");
    client.ok("INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)");
    client.ok("CREATE TABLE seq (n INT NOT NULL PRIMARY KEY)");
    client.ok(
        "INSERT INTO seq SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 1 FROM digit a, digit b, digit c, digit e",
    );
}

const USERS: u64 = 40;
const ROWS: u64 = 3_000;

/// Replaces placeholders by random values: equal ones in a statement have one value.
struct Values<'a> {
    random: &'a mut Random,
    chosen: BTreeMap<&'static str, String>,
    number: u64,
}

impl Values<'_> {
    fn new(random: &mut Random) -> Values<'_> {
        Values {
            number: 100_000 + random.below(1_000_000_000),
            random,
            chosen: BTreeMap::new(),
        }
    }

    fn replace(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for name in ["{user}", "{other}", "{row}", "{time}", "{list}", "{n}"] {
            if text.contains(name) {
                let value = self.chosen.get(name).cloned();
                let value = value.unwrap_or_else(|| self.choose(name));
                text = text.replace(name, &value);
                self.chosen.insert(name, value);
            }
        }
        text
    }

    fn choose(&mut self, name: &str) -> String {
        match name {
            "{row}" => (1 + self.random.below(ROWS)).to_string(),
            "{n}" => self.number.to_string(),
            "{time}" => {
                let minute = self.random.below(ROWS / 3);
                format!("2026-01-01 {:02}:{:02}:00", minute / 60 % 24, minute % 60)
            }
            "{list}" => {
                let count = 3 + self.random.below(6);
                let ids = (0..count).map(|_| (1 + self.random.below(USERS)).to_string());
                ids.collect::<Vec<_>>().join(", ")
            }
            _ => (1 + self.random.below(USERS)).to_string(),
        }
    }
}

/// The text with the id after the key, if it orders by the feed's key alone: what Headwater answers with `ties = "id"`.
fn with_id(text: &str, feeds: &[toml::Table]) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let order = lower.rfind("order by")? + "order by".len();
    let end = order + lower[order..].find(" desc")?;
    let behind = end + " desc".len();
    lower[behind..]
        .trim_start()
        .starts_with("limit")
        .then_some(())?;
    let key = text[order..end].trim();
    let (qualifier, name) = match key.rsplit_once('.') {
        Some((qualifier, name)) => (format!("{qualifier}."), name),
        None => (String::new(), key),
    };
    let of_key = |feed: &&toml::Table| {
        let order = feed["message"].get("order")?.as_array()?;
        let by_key = order.len() > 1 && order[0].as_str()? == name.trim_matches('`');
        by_key.then_some(())
    };
    let feed = feeds.iter().find(|feed| of_key(feed).is_some())?;
    let id = feed["message"]["id"].as_str()?;
    Some(format!(
        "{}, {qualifier}`{id}` DESC{}",
        &text[..behind],
        &text[behind..]
    ))
}

/// A session that sends one statement, directly or through Headwater.
struct Reader {
    client: WireClient,
    prepared: Option<u32>,
}

impl Reader {
    fn new(mut client: WireClient, statement: &Statement) -> Reader {
        statement
            .session
            .iter()
            .for_each(|text| drop(client.ok(text)));
        let prepared = statement.prepared.then(|| client.prepare(&statement.text));
        Reader { client, prepared }
    }

    /// The rows as sent.
    fn rows(&mut self, statement: &Statement, values: &mut Values<'_>) -> Vec<Vec<u8>> {
        let text = values.replace(&statement.text);
        let reply = match self.prepared {
            None => self.client.query_reply(&text).unwrap(),
            Some(prepared) => {
                let params: Vec<Param> = statement
                    .values
                    .iter()
                    .map(|value| param(&values.replace(value)))
                    .collect();
                let payload = self.client.execution(prepared, &params, 0, true);
                self.client.command(&payload).unwrap()
            }
        };
        rows_of(
            reply
                .packets
                .into_iter()
                .map(|packet| packet.payload)
                .collect(),
            &text,
        )
    }
}

/// The row packets of a reply: those after the column definitions.
#[track_caller]
fn rows_of(packets: Vec<Vec<u8>>, text: &str) -> Vec<Vec<u8>> {
    assert_ne!(
        packets[0][0],
        0xff,
        "{text}: {}",
        String::from_utf8_lossy(&packets[0])
    );
    let columns = usize::from(packets[0][0]);
    let mut rows: Vec<Vec<u8>> = packets.into_iter().skip(1 + columns).collect();
    let is_end = |packet: &Vec<u8>| packet[0] == 0xfe && packet.len() < 10;
    if rows.first().is_some_and(is_end) && rows.len() > 1 {
        rows.remove(0);
    }
    rows.pop();
    rows
}

fn param(value: &str) -> Param {
    match value.parse::<i64>() {
        Ok(number) => Param::new(8, 0, &number.to_le_bytes()),
        Err(_) => Param::text(Some(value)),
    }
}

/// The settings that an operator writes for the app.
fn settings(app: &App, database: &Database) -> String {
    let mut feeds = Vec::new();
    for feed in &app.feed {
        let mut feed = feed.clone();
        feed.insert("database".into(), database.name().into());
        feed.insert("ties".into(), "id".into());
        feeds.push(toml::Value::Table(feed));
    }
    let general = format!("{PATIENT}[limits]\nrecheck_ms = 200\n");
    if feeds.is_empty() {
        return general;
    }
    let mut settings = toml::Table::new();
    settings.insert("feed".into(), toml::Value::Array(feeds));
    general + &toml::to_string(&settings).unwrap()
}

/// How the statement was answered: the feeds' counter that rose.
fn verdict(before: &Counts, after: &Counts) -> String {
    let rose = after.since(before).map(|(name, _)| name);
    let feeds: Vec<&str> = rose.filter(|name| name.starts_with("feeds_")).collect();
    match feeds.as_slice() {
        [] => "no feed".to_owned(),
        feeds => feeds.join(" "),
    }
}

/// How long a statement took, each time.
#[derive(Default)]
struct Times {
    through: Vec<Duration>,
    direct: Vec<Duration>,
}

impl Times {
    /// Both medians in microseconds.
    fn medians(&mut self) -> String {
        let median = |times: &mut Vec<Duration>| {
            times.sort();
            times[times.len() / 2].as_micros()
        };
        let (direct, through) = (median(&mut self.direct), median(&mut self.through));
        format!("{direct} us directly, {through} us through Headwater")
    }
}

/// One answer on both sides.
fn compare(
    (proxy, proxied): (&Proxy, &mut Reader),
    direct: &mut Reader,
    [statement, ordered]: [&Statement; 2],
    values: &mut Values<'_>,
    times: &mut Times,
) -> String {
    let before = proxy.counts();
    let begun = Instant::now();
    let answer = proxied.rows(statement, values);
    times.through.push(begun.elapsed());
    let verdict = verdict(&before, &proxy.counts());
    let begun = Instant::now();
    let expected = direct.rows(ordered, values);
    times.direct.push(begun.elapsed());
    assert_eq!(
        answer.len(),
        expected.len(),
        "{verdict}: {}",
        statement.text
    );
    // A relayed page has the server's own order of ties.
    if is_answered(&verdict) {
        let sorted = |mut rows: Vec<Vec<u8>>| {
            rows.sort();
            rows
        };
        let text = &statement.text;
        assert_eq!(sorted(answer), sorted(expected), "{verdict}: {text}");
    }
    verdict
}

fn is_answered(verdict: &str) -> bool {
    ["feeds_narrowed", "feeds_kept"].contains(&verdict)
}

/// What the line of a statement says that has to be answered and is not.
const NOT_ANSWERED: &str = ", and has to be answered";

/// A database with the app's tables and rows.
fn made(server: &'static Server, app: &App) -> Database {
    let database = Database::empty(server, "feedapp");
    let mut root = database.connect();
    make_numbers(&mut root);
    for text in app.schema.iter().chain(&app.fill) {
        root.ok(text);
    }
    let tables = root.rows("SHOW TABLES");
    let tables: Vec<String> = tables
        .into_iter()
        .filter_map(|row| row.into_iter().next()?)
        .map(|table| format!("`{table}`"))
        .collect();
    let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
    steady_statistics(&mut root, &tables);
    database
}

/// The statement, what it is prepared with, and the same with the order that Headwater gives ties.
fn with_order(statement: &Statement, feeds: &[toml::Table], random: &mut Random) -> [Statement; 2] {
    let (mut statement, mut ordered) = (statement.clone(), statement.clone());
    let with_id = || with_id(&statement.text, feeds);
    if let Some(text) = statement.ordered.clone().or_else(with_id) {
        ordered.text = text;
    }
    if statement.prepared {
        // What is no parameter is the same in all executions.
        let mut values = Values::new(random);
        for one in [&mut statement, &mut ordered] {
            one.text = values.replace(&one.text);
        }
    }
    [statement, ordered]
}

/// Sends the statements of an app on both sides beside its writes, at least so often, and until each is answered from memory that has to be.
/// Returns a line for each: how it was answered at last.
fn run(
    (app, feeds): (&App, &[toml::Table]),
    (database, proxy): (&Database, &Proxy),
    turns: u64,
    has_to_be: fn(&Statement) -> bool,
) -> Vec<String> {
    let mut root = database.connect();
    let mut random = Random(20_261_130);
    let mut report = Vec::new();
    for statement in &app.statement {
        let [statement, ordered] = with_order(statement, feeds, &mut random);
        let mut direct = Reader::new(database.connect(), &ordered);
        let mut proxied = Reader::new(proxy.login(&database.login()), &statement);
        let (mut last, mut times) = (String::new(), Times::default());
        let (mut turn, begun, deadline) = (0, Instant::now(), patience());
        // Memory is loaded at the first statements, and on a busy machine later.
        while turn < turns || has_to_be(&statement) && !is_answered(&last) {
            turn += 1;
            if Instant::now() >= deadline {
                last.push_str(NOT_ANSWERED);
                break;
            }
            if turn > turns {
                pause_since(begun);
            }
            if random.one_in(2) {
                let write = random.pick(&app.writes).clone();
                root.query(&Values::new(&mut random).replace(&write));
            }
            let mut values = Values::new(&mut random);
            let sides = (proxy, &mut proxied);
            let texts = [&statement, &ordered];
            last = compare(sides, &mut direct, texts, &mut values, &mut times);
            // Without autocommit the next page is of a transaction of its own.
            for reader in [&mut direct, &mut proxied] {
                reader.client.ok("ROLLBACK");
            }
        }
        let medians = times.medians();
        report.push(format!(
            "{} | {} | {last} | {medians}",
            app.app, statement.name
        ));
    }
    report
}

/// The same with the settings that an operator writes.
fn run_described(server: &'static Server, app: &App, turns: u64) -> Vec<String> {
    let database = made(server, app);
    let proxy = Proxy::configured(server.addr(), &settings(app, &database), ROOT_SERVICE);
    for feed in &app.feed {
        let name = feed["name"].as_str().unwrap();
        proxy.wait_for_log(&format!("feed {name} in database {}", database.name()));
    }
    follow_advice(&proxy, &mut database.connect(), app, &database);
    run((app, &app.feed), (&database, &proxy), turns, |statement| {
        statement.answered
    })
}

/// The same with what `headwater discover` says of the statements: its sections, and the indexes that it asks for.
fn run_discovered(server: &'static Server, app: &App, turns: u64) -> Vec<String> {
    let database = made(server, app);
    let listen = free_addr();
    let address = listen.to_string();
    let flags = [ROOT_SERVICE, &["--listen", &address, "--for", "600"]].concat();
    let child = spawn(server.addr(), &flags);
    await_listener(listen);
    let mut random = Random(20_261_130);
    for statement in &app.statement {
        let [statement, _] = with_order(statement, &[], &mut random);
        let mut app = Reader::new(WireClient::login(listen, &database.login()), &statement);
        for _ in 0..3 {
            app.rows(&statement, &mut Values::new(&mut random));
        }
    }
    let report = String::from_utf8(interrupted(child).stdout).unwrap();
    let mut root = database.connect();
    for alter in alter_statements(&report) {
        root.ok(&alter);
    }
    let sections = sections(&report).join("\n\n");
    let settings: toml::Table = toml::from_str(&sections).unwrap();
    let feeds = settings.get("feed").and_then(|feeds| feeds.as_array());
    let feeds = feeds.into_iter().flatten();
    let feeds: Vec<toml::Table> = feeds.map(|feed| feed.as_table().unwrap().clone()).collect();
    let settings = format!("{PATIENT}[limits]\nrecheck_ms = 200\n{sections}");
    let proxy = Proxy::configured(server.addr(), &settings, ROOT_SERVICE);
    for feed in &feeds {
        let name = feed["name"].as_str().unwrap();
        proxy.wait_for_log(&format!("feed {name} in database {}", database.name()));
    }
    let discovered = |statement: &Statement| statement.discovered;
    let mut lines = run((app, &feeds), (&database, &proxy), turns, discovered);
    lines.extend(
        report
            .lines()
            .map(|line| format!("    {line}"))
            .filter(|_| turns > 5),
    );
    lines
}

/// The statements that a text tells an operator to execute.
fn alter_statements(text: &str) -> std::collections::BTreeSet<String> {
    let mut alters = std::collections::BTreeSet::new();
    for line in text.lines() {
        for part in line.split("ALTER TABLE ").skip(1) {
            let end = part.find(')').map_or(part.len(), |end| end + 1);
            alters.insert(format!("ALTER TABLE {}", &part[..end]));
        }
    }
    alters
}

/// Adds the indexes that the log asks for, as an operator would, and waits until each feed with nothing else in its way is served.
fn follow_advice(proxy: &Proxy, root: &mut WireClient, app: &App, database: &Database) {
    let log = proxy.log();
    for alter in alter_statements(&log) {
        root.query(&alter);
    }
    for feed in &app.feed {
        let name = feed["name"].as_str().unwrap();
        let of_feed = format!("feed {name} in database {}:", database.name());
        let refused = log.lines().filter(|line| line.contains(&of_feed));
        let is_hopeless = refused
            .clone()
            .any(|line| line.contains("has to be") || line.contains("computed"));
        if !is_hopeless {
            proxy.wait_for_log(&format!("{of_feed} served"));
        }
    }
}

fn apps() -> Vec<App> {
    // Another folder of such files.
    let folder = std::env::var("HEADWATER_APPS_IN").unwrap_or("fixtures/apps".into());
    let folder = PathBuf::from(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.iter().map(read).collect()
}

/// `HEADWATER_APPS`: so many answers of each statement of all apps. Otherwise a few of every fifth app.
fn on_apps(run: fn(&'static Server, &App, u64) -> Vec<String>) {
    const EVERY: usize = 5;
    let mut apps = apps();
    let turns = how_many("HEADWATER_APPS", 0);
    if turns == 0 {
        let mut number = 0..;
        apps.retain(|_| {
            number
                .next()
                .is_some_and(|number: usize| number.is_multiple_of(EVERY))
        });
    }
    on_each_server(|server| {
        let reports = apps.iter().flat_map(|app| run(server, app, turns.max(5)));
        let report: Vec<String> = reports.collect();
        let answered = report
            .iter()
            .filter(|line| line.contains("| feeds_narrowed |") || line.contains("| feeds_kept |"));
        println!(
            "{}\n{} of {} from memory",
            report.join("\n"),
            answered.count(),
            report.len()
        );
        let missing = report.iter().filter(|line| line.contains(NOT_ANSWERED));
        let missing: Vec<&String> = missing.collect();
        assert!(missing.is_empty(), "{missing:#?}");
    });
}

#[test]
fn statements_of_apps_are_answered_as_directly() {
    on_apps(run_described);
}

#[test]
fn what_discover_says_of_an_app_serves_its_statements() {
    on_apps(run_discovered);
}
