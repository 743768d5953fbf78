//! The model server: it is honest about time, and knows just the statements that are sent to it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use headwater::link::memory::{MemoryListener, MemoryStream};
use serde::Deserialize;

use crate::log;
use crate::model::{Model, State};
use crate::network::{Weather, between};
use crate::pages::{page, tail};
use crate::random::Random;
use crate::sql::{self, Relation, Value};
use crate::trace::Trace;
use crate::wire::{Column, Peer};

const VERSION: &str = "10.11.19-MariaDB-log";
/// What a MariaDB server said of the same tables and accounts.
const RECORDED: &str = include_str!("recorded.json");

const AUTOCOMMIT: u16 = 2;
const IN_TRANSACTION: u16 = 1;

/// The procedures' result.
const RESULT: &str = "fetch_timeline_tt";
/// The app's page behind a call.
pub(crate) const TAIL: &str = "SELECT m.id, m.body FROM fetch_timeline_tt t JOIN message m ON m.id=t.id ORDER BY m.id DESC LIMIT 20";

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Reply {
    Rows {
        columns: Vec<(String, u8, u16, u32, u16, u8)>,
        rows: Vec<Vec<Option<String>>>,
    },
    Error {
        error: (u16, String),
    },
}

/// One server, and what it is made of.
#[derive(Debug)]
pub(crate) struct Server {
    model: Mutex<Model>,
    recorded: BTreeMap<String, Reply>,
    /// Statements that it refused because it does not know them.
    unknown: Mutex<Vec<String>>,
    pub(crate) trace: Trace,
}

/// What a session has.
struct Session {
    thread: u64,
    snapshot: Option<usize>,
    in_transaction: bool,
    result: Option<Vec<u64>>,
    /// The helper's table is there.
    has_heads: bool,
    heartbeat: Option<Duration>,
}

impl Server {
    pub(crate) fn new(state: State) -> Server {
        Server {
            model: Mutex::new(Model::new(state)),
            recorded: serde_json::from_str(RECORDED).expect("recorded replies"),
            unknown: Mutex::default(),
            trace: Trace::new(),
        }
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().expect("nobody panics with it")
    }

    pub(crate) fn unknown(&self) -> Vec<String> {
        self.unknown.lock().expect("nobody panics with it").clone()
    }

    /// Serves who connects here.
    pub(crate) async fn run(
        self: Arc<Self>,
        listener: MemoryListener,
        weather: Weather,
        mut random: Random,
    ) {
        loop {
            let stream = between(listener.accept().await, &weather, &mut random);
            let server = Arc::clone(&self);
            tokio::spawn(async move {
                let _ = server.serve(stream).await;
            });
        }
    }

    async fn serve(&self, stream: MemoryStream) -> io::Result<()> {
        let thread = self.model().connect();
        let mut peer = Peer::new(stream);
        peer.log_in(VERSION, thread).await?;
        let mut session = Session {
            thread,
            snapshot: None,
            in_transaction: false,
            result: None,
            has_heads: false,
            heartbeat: None,
        };
        loop {
            let command = peer.command().await?;
            match command.split_first() {
                // COM_QUIT.
                Some((1, _)) | None => return Ok(()),
                // COM_INIT_DB, COM_PING, COM_REGISTER_SLAVE.
                Some((2 | 14 | 21, _)) => peer.ok(0, AUTOCOMMIT),
                Some((3, text)) => {
                    let text = String::from_utf8_lossy(text);
                    self.trace.note(format_args!("server {thread}"), &text);
                    self.answer(&mut peer, &mut session, &text);
                }
                Some((18, request)) => {
                    self.trace
                        .note(format_args!("server {thread}"), "sends its log");
                    return self.dump(&mut peer, &session, request).await;
                }
                Some((kind, _)) => {
                    self.refuse(&mut peer, &format!("command {kind}"));
                }
            }
            peer.flush().await?;
        }
    }

    fn refuse(&self, peer: &mut Peer, what: &str) {
        let mut unknown = self.unknown.lock().expect("nobody panics with it");
        unknown.push(what.to_owned());
        peer.error(1105, "HY000", &format!("the model does not know: {what}"));
    }

    fn answer(&self, peer: &mut Peer, session: &mut Session, text: &str) {
        let status = match session.in_transaction {
            true => AUTOCOMMIT | IN_TRANSACTION,
            false => AUTOCOMMIT,
        };
        // The session's database is the only one.
        let whole = match text.strip_prefix("SHOW CREATE TABLE `") {
            Some(table) if !table.starts_with("world`") => {
                &format!("SHOW CREATE TABLE `world`.`{table}")
            }
            _ => text,
        };
        if let Some(reply) = self.recorded.get(whole) {
            return match reply {
                Reply::Rows { columns, rows } => {
                    let columns: Vec<Column> = columns.iter().map(recorded_column).collect();
                    peer.rows(&columns, rows, status);
                }
                Reply::Error { error } => {
                    let state = if error.0 == 1318 { "42000" } else { "HY000" };
                    peer.error(error.0, state, &error.1);
                }
            };
        }
        let one =
            |name: &str, value: String| (vec![column("", name, 253)], vec![vec![Some(value)]]);
        let words: Vec<&str> = text.split_whitespace().collect();
        let (columns, rows) = match words[..] {
            ["SET", ..] => {
                if let Some(period) = text.strip_prefix("SET @master_heartbeat_period=") {
                    session.heartbeat = period.parse().ok().map(Duration::from_nanos);
                }
                return peer.ok(0, status);
            }
            ["START", "TRANSACTION", ref rest @ ..] => {
                session.in_transaction = true;
                let snapshot = rest == ["WITH", "CONSISTENT", "SNAPSHOT"];
                session.snapshot = snapshot.then(|| self.model().readable());
                return peer.ok(0, AUTOCOMMIT | IN_TRANSACTION);
            }
            ["COMMIT"] | ["ROLLBACK"] => {
                (session.in_transaction, session.snapshot) = (false, None);
                return peer.ok(0, AUTOCOMMIT);
            }
            ["DO", ..] => return peer.ok(0, status),
            ["SELECT", "CONNECTION_ID()"] => one("CONNECTION_ID()", session.thread.to_string()),
            ["SELECT", "SUBSTRING(UUID(),", "20)"] => {
                one("SUBSTRING(UUID(), 20)", "8ff1-11ef-0242ac110002".to_owned())
            }
            ["SHOW", "GLOBAL", "STATUS", ..] => {
                let connections = self.model().connections();
                let rows = [
                    ("Com_reset", "0".to_owned()),
                    ("Connections", connections.to_string()),
                    ("Slaves_running", "0".to_owned()),
                    ("Uptime", "1000".to_owned()),
                ];
                let rows = rows.map(|(name, value)| vec![Some(name.to_owned()), Some(value)]);
                let columns = ["Variable_name", "Value"].map(|name| column("", name, 253));
                (columns.to_vec(), rows.to_vec())
            }
            ["SHOW", "BINARY", "LOG", "STATUS"] => {
                return peer.error(1064, "42000", "You have an error in your SQL syntax");
            }
            ["SHOW", "MASTER", "STATUS"] => {
                let names = ["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB"];
                let end = self.model().log.end().to_string();
                let row = [log::FILE.to_owned(), end, String::new(), String::new()];
                (
                    names.map(|name| column("", name, 253)).to_vec(),
                    vec![row.map(Some).to_vec()],
                )
            }
            ["SHOW", "BINLOG", "EVENTS", ..] => {
                let names = [
                    "Log_name",
                    "Pos",
                    "Event_type",
                    "Server_id",
                    "End_log_pos",
                    "Info",
                ];
                let row = [log::FILE, "256", "Gtid_list", "1", "285", "[]"];
                (
                    names.map(|name| column("", name, 253)).to_vec(),
                    vec![row.map(|it| Some(it.to_owned())).to_vec()],
                )
            }
            ["SELECT", "trx_id,", "trx_mysql_thread_id", ..] => {
                let model = self.model();
                let mut rows: Vec<(u64, u64)> = model
                    .open
                    .iter()
                    .map(|(id, thread)| (*id, *thread))
                    .collect();
                if session.in_transaction {
                    rows.push((0x7f00_0000_0000 + session.thread, session.thread));
                }
                let rows = rows
                    .into_iter()
                    .map(|(id, thread)| vec![Some(id.to_string()), Some(thread.to_string())]);
                let columns = ["trx_id", "trx_mysql_thread_id"].map(|name| column("", name, 8));
                (columns.to_vec(), rows.collect())
            }
            ["CALL", ..] => return self.call(peer, session, text),
            [
                "SHOW",
                "CREATE",
                "TABLE",
                name @ ("`fetch_timeline_tt`" | "`max_ids_of_followers`"),
            ] => {
                let (is_there, columns) = match name {
                    "`fetch_timeline_tt`" => (
                        session.result.is_some(),
                        "  `id` int(10) unsigned NOT NULL,\n  PRIMARY KEY (`id`)\n",
                    ),
                    _ => (
                        session.has_heads,
                        "  `user_id` int(10) unsigned NOT NULL,\n  `max_id` int(10) unsigned NOT NULL\n",
                    ),
                };
                let plain = name.trim_matches('`');
                if !is_there {
                    return missing(peer, plain);
                }
                let created = format!(
                    "CREATE TEMPORARY TABLE {name} (\n{columns}) ENGINE=MEMORY DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"
                );
                (
                    ["Table", "Create Table"]
                        .map(|name| column("", name, 253))
                        .to_vec(),
                    vec![vec![Some(plain.to_owned()), Some(created)]],
                )
            }
            ["SELECT", "COUNT(*)", "FROM", "`world`.`fetch_timeline_tt`"] => {
                let Some(ids) = &session.result else {
                    return missing(peer, RESULT);
                };
                (
                    vec![column("", "COUNT(*)", 8)],
                    vec![vec![Some(ids.len().to_string())]],
                )
            }
            ["CREATE", "TEMPORARY", "TABLE", ..] => {
                session.result.get_or_insert_default();
                return peer.ok(0, status);
            }
            [
                "INSERT",
                "INTO",
                "`world`.`fetch_timeline_tt`" | "`fetch_timeline_tt`",
                ..,
            ] => {
                let numbers = text.split(|it: char| !it.is_ascii_digit());
                let ids: Vec<u64> = numbers.filter_map(|it| it.parse().ok()).collect();
                let count = ids.len();
                session.result.get_or_insert_default().extend(ids);
                return peer.ok(count as u8, status);
            }
            [
                "DELETE",
                "FROM",
                "`world`.`fetch_timeline_tt`" | "`fetch_timeline_tt`",
            ] => {
                session.result = Some(Vec::new());
                return peer.ok(0, status);
            }
            ["DELETE", "FROM", "`world`.`max_ids_of_followers`"] => return peer.ok(0, status),
            _ if text == TAIL => {
                let Some(ids) = &session.result else {
                    return missing(peer, RESULT);
                };
                let state = self.read(session);
                let rows = tail(&state, ids);
                let columns = [column("message", "id", 3), column("message", "body", 253)];
                (columns.to_vec(), rows)
            }
            _ => match sql::parse(text).and_then(|query| {
                let state = self.read(session);
                let relation = sql::evaluate(&query, &state)?;
                Ok(typed(relation, text))
            }) {
                Ok(answer) => answer,
                Err(unknown) => return self.refuse(peer, &format!("{text}: {}", unknown.0)),
            },
        };
        peer.rows(&columns, &rows, status);
    }

    fn read(&self, session: &Session) -> Arc<State> {
        let model = self.model();
        let number = session.snapshot.unwrap_or_else(|| model.readable());
        model.state(number)
    }

    fn call(&self, peer: &mut Peer, session: &mut Session, text: &str) {
        let inner = text.split_once('(').and_then(|(name, rest)| {
            let arguments = rest.trim_end().strip_suffix(')')?;
            let numbers: Result<Vec<u64>, _> =
                arguments.split(',').map(|it| it.trim().parse()).collect();
            Some((name.to_owned(), numbers.ok()?))
        });
        let Some((name, numbers)) = inner else {
            return self.refuse(peer, text);
        };
        let (reader, bound) = match numbers[..] {
            [reader] if name.contains("fetch_timeline_ids") => (reader, u64::MAX),
            [reader, bound] if name.contains("fetch_timeline_ids2") => (reader, bound),
            _ => return self.refuse(peer, text),
        };
        session.has_heads |= bound != u64::MAX;
        session.result = Some(page(&self.read(session), reader, bound));
        peer.ok(0, AUTOCOMMIT);
    }

    async fn dump(&self, peer: &mut Peer, session: &Session, request: &[u8]) -> io::Result<()> {
        let offset = u64::from(u32::from_le_bytes(
            *request.first_chunk().expect("an offset"),
        ));
        let to_the_end = request.get(4) == Some(&1);
        let mut ends = self.model().log.ends();
        let send = |peer: &mut Peer, event: &[u8]| peer.packet(&[&[0][..], event].concat());
        send(peer, &log::rotation(offset));
        let mut at = offset;
        if offset > 4 {
            let again = log::again(self.model().log.description());
            send(peer, &again);
        }
        let silence = session.heartbeat.unwrap_or(Duration::from_secs(30));
        loop {
            loop {
                let event = self.model().log.at(at).map(<[u8]>::to_vec);
                let Some(event) = event else {
                    break;
                };
                at += event.len() as u64;
                send(peer, &event);
            }
            if to_the_end {
                peer.eof();
                return peer.flush().await;
            }
            peer.flush().await?;
            match tokio::time::timeout(silence, ends.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Ok(()),
                Err(_) => send(peer, &log::heartbeat(at)),
            }
        }
    }
}

fn missing(peer: &mut Peer, table: &str) {
    let message = format!("Table 'world.{table}' doesn't exist");
    peer.error(1146, "42S02", &message);
}

fn column(table: &str, name: &str, kind: u8) -> Column {
    let (charset, length) = match kind {
        253 => (45, 1020),
        _ => (63, 21),
    };
    Column {
        table: table.to_owned(),
        name: name.to_owned(),
        kind,
        charset,
        length,
        flags: 0,
        decimals: 0,
    }
}

fn recorded_column(
    (name, kind, charset, length, flags, decimals): &(String, u8, u16, u32, u16, u8),
) -> Column {
    Column {
        table: String::new(),
        name: name.clone(),
        kind: *kind,
        charset: *charset,
        length: *length,
        flags: *flags,
        decimals: *decimals,
    }
}

/// Columns and cells as they are sent. A column of a table is one by its name.
fn typed(relation: Relation, text: &str) -> (Vec<Column>, Vec<Vec<Option<String>>>) {
    let columns = relation.columns.iter();
    let columns = columns.map(|name| match &name[..] {
        "body" => column("message", name, 253),
        "caption" => column("statuses", name, 253),
        "id" if text.contains("statuses") => column("statuses", name, 8),
        "id" | "user_id" => column("message", name, 3),
        "profile_id" => column("statuses", name, 3),
        other if other.starts_with("GROUP_CONCAT") => column("", name, 253),
        _ => column("", name, 8),
    });
    let cells = |row: Vec<Value>| {
        let each = row.into_iter();
        each.map(|cell| match cell {
            Value::Null => None,
            other => Some(other.to_string()),
        })
        .collect()
    };
    (
        columns.collect(),
        relation.rows.into_iter().map(cells).collect(),
    )
}
