//! The model server's replies: recorded metadata of a real server, and results computed from the current state.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::Notify;

use crate::log;
use crate::model::{ModelState, ModelTable, RowEdit};
use crate::pages::{self, TextRows};
use crate::rights::AccountRight;
use crate::server::WorldServer;
use crate::sql::{self, CellValue, SelectResult};
use crate::wire::ReplyColumn;

/// A MariaDB server's replies for the same tables and accounts.
const RECORDED: &str = include_str!("recorded.json");
/// The only two status flags that the model sends.
const AUTOCOMMIT: u16 = 2;
const IN_TRANSACTION: u16 = 1;
/// The first number by which read-only transactions are listed.
const READ_ONLY: u64 = 0x7f00_0000_0000;

/// The recorded server: id, host, port and folder. A replacement server has another id.
const IDENTITY: &str = "1/primary/3306//var/lib/mysql/";

/// The procedures' result table.
const RESULT: &str = "fetch_timeline_tt";
const HEADS: &str = "max_ids_of_followers";
/// The app's follow-up SELECT.
pub(crate) const FOLLOW_UP_SELECT: &str = "SELECT m.id, m.body FROM fetch_timeline_tt t JOIN message m ON m.id=t.id ORDER BY m.id DESC LIMIT 20";

/// The reply to a statement.
#[derive(Clone, Debug)]
pub(crate) enum ModelReply {
    /// OK with this number of affected rows.
    Ok(u8),
    Rows(Vec<ReplyColumn>, TextRows),
    /// The statement's id, its columns, and the number of its parameters.
    Prepared(u32, Vec<ReplyColumn>, u16),
    Error(u16, &'static str, String),
    /// The model does not support this statement.
    Unknown(String),
}

/// Name, type, character set, length, flags and decimals.
type RecordedColumn = (String, u8, u16, u32, u16, u8);

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum RecordedReply {
    Rows {
        columns: Vec<RecordedColumn>,
        rows: TextRows,
    },
    Error {
        error: (u16, String),
    },
}

pub(crate) fn recorded() -> BTreeMap<String, RecordedReply> {
    serde_json::from_str(RECORDED).expect("recorded replies")
}

/// The state of a session.
#[derive(Debug)]
pub(crate) struct ServerSession {
    pub(crate) thread: u64,
    /// Ends it.
    pub(crate) end: Arc<Notify>,
    /// True for Headwater's service account.
    pub(crate) is_service: bool,
    pub(crate) transaction: Option<OpenTransaction>,
    /// The content of the procedures' result table.
    result: Option<Vec<u64>>,
    /// The helper's result: authors, and where their lists begin.
    heads: Option<Vec<(u64, u64)>>,
    pub(crate) heartbeat: Option<Duration>,
    /// The texts of prepared statements; `None`: closed.
    prepared: Vec<Option<String>>,
}

/// An open transaction.
#[derive(Debug, Default)]
pub(crate) struct OpenTransaction {
    /// The state that its first read took as the snapshot.
    pub(crate) snapshot: Option<usize>,
    /// Its changes.
    pub(crate) edits: Vec<RowEdit>,
}

impl ServerSession {
    pub(crate) fn new(thread: u64, is_service: bool) -> ServerSession {
        ServerSession {
            thread,
            end: Arc::default(),
            is_service,
            transaction: None,
            result: None,
            heads: None,
            heartbeat: None,
            prepared: Vec::new(),
        }
    }

    pub(crate) fn status(&self) -> u16 {
        match self.transaction {
            Some(_) => AUTOCOMMIT | IN_TRANSACTION,
            None => AUTOCOMMIT,
        }
    }
}

impl WorldServer {
    /// Answers a statement that changes no rows.
    pub(crate) fn answer(&self, session: &mut ServerSession, text: &str) -> ModelReply {
        let words: Vec<&str> = text.split_whitespace().collect();
        let denied = AccountRight::of(&words).filter(|right| self.is_denied(session, *right));
        denied
            .map(AccountRight::denial)
            .or_else(|| self.recorded(session, text))
            .or_else(|| self.session(session, text, &words))
            .or_else(|| self.status_of(session, &words))
            .or_else(|| self.log_of(&words))
            .or_else(|| self.result(session, text, &words))
            .unwrap_or_else(|| self.select(session, text))
    }

    /// Prepares a SELECT of the model's tables.
    pub(crate) fn prepare(&self, session: &mut ServerSession, text: &str) -> ModelReply {
        let parameters = text.matches('?').count();
        // Its columns do not depend on rows.
        match relation(&text.replace('?', "0"), &ModelState::default()) {
            ModelReply::Rows(columns, _) => {
                session.prepared.push(Some(text.to_owned()));
                let number = session.prepared.len() as u32;
                ModelReply::Prepared(number, columns, parameters as u16)
            }
            other => other,
        }
    }

    fn recorded(&self, session: &ServerSession, text: &str) -> Option<ModelReply> {
        // The session's database is the only one.
        let whole = match text.strip_prefix("SHOW CREATE TABLE `") {
            Some(table) if !table.starts_with("world`") => {
                &format!("SHOW CREATE TABLE `world`.`{table}")
            }
            _ => text,
        };
        let (whole, tables) = of_tables(whole);
        Some(match self.recorded.get(&*whole)? {
            RecordedReply::Rows { columns, rows } => {
                let mut rows = rows.clone();
                if whole.contains("USER_PRIVILEGES") && session.is_service {
                    let model = self.model();
                    let denied = || model.denied.iter().map(|right| right.name());
                    rows.retain(|row| !denied().any(|name| row[0].as_deref() == Some(name)));
                }
                if let Some(tables) = tables {
                    rows.retain(|row| row[0].as_ref().is_some_and(|it| tables.contains(it)));
                }
                for cell in rows.iter_mut().flatten().flatten() {
                    if cell == IDENTITY {
                        *cell = format!("{}{}", self.model().log.server(), &IDENTITY[1..]);
                    }
                }
                let model = self.model();
                let state = model.state(model.readable());
                let wide = ModelTable::ALL
                    .into_iter()
                    .filter(|table| state.is_wide(*table));
                wide.for_each(|table| widen(&whole, table, columns, &mut rows));
                ModelReply::Rows(columns.iter().map(recorded_column).collect(), rows)
            }
            RecordedReply::Error { error } => {
                let state = if error.0 == 1318 { "42000" } else { "HY000" };
                ModelReply::Error(error.0, state, error.1.clone())
            }
        })
    }

    /// Sets a session variable or the session's state.
    fn session(
        &self,
        session: &mut ServerSession,
        text: &str,
        words: &[&str],
    ) -> Option<ModelReply> {
        match *words {
            ["SET", ..] => {
                if let Some(period) = text.strip_prefix("SET @master_heartbeat_period=") {
                    session.heartbeat = period.parse().ok().map(Duration::from_nanos);
                }
            }
            ["DO", ..] => {}
            ["START", "TRANSACTION", ref rest @ ..] => {
                let now = rest == ["WITH", "CONSISTENT", "SNAPSHOT"];
                self.model().end(session.thread);
                session.transaction = Some(OpenTransaction {
                    snapshot: now.then(|| self.model().readable()),
                    edits: Vec::new(),
                });
            }
            ["ROLLBACK"] => {
                session.transaction = None;
                self.model().end(session.thread);
            }
            _ => return None,
        }
        Some(ModelReply::Ok(0))
    }

    fn status_of(&self, session: &ServerSession, words: &[&str]) -> Option<ModelReply> {
        Some(match *words {
            ["SELECT", "CONNECTION_ID()"] => {
                single_cell("CONNECTION_ID()", session.thread.to_string())
            }
            ["SELECT", "SUBSTRING(UUID(),", "20)"] => {
                let run = 0x8ff1 + self.model().run;
                single_cell("SUBSTRING(UUID(), 20)", format!("{run:04x}-0242ac110002"))
            }
            ["SHOW", "GLOBAL", "STATUS", ..] => {
                let model = self.model();
                let rows = [
                    ("Com_reset", 0),
                    ("Connections", model.connections()),
                    ("Slaves_running", 0),
                    ("Uptime", model.uptime()),
                ];
                let rows = rows.map(|(name, value)| cells([name, &value.to_string()]));
                texts(&["Variable_name", "Value"], rows.to_vec())
            }
            ["SELECT", "trx_id,", "trx_mysql_thread_id", ..] => {
                let mut open: Vec<(u64, u64)> = self.model().open.clone().into_iter().collect();
                let is_listed = open.iter().any(|(_, thread)| *thread == session.thread);
                if session.transaction.is_some() && !is_listed {
                    open.push((READ_ONLY + session.thread, session.thread));
                }
                let rows = open
                    .iter()
                    .map(|(id, thread)| cells([&id.to_string(), &thread.to_string()]));
                let columns = ["trx_id", "trx_mysql_thread_id"].map(|name| column("", name, 8));
                ModelReply::Rows(columns.to_vec(), rows.collect())
            }
            [
                "SELECT",
                "ID",
                "FROM",
                "information_schema.PROCESSLIST",
                ..,
                asked,
            ] => {
                let requested = numbers(asked);
                let model = self.model();
                let idle = requested
                    .iter()
                    .filter(|thread| !model.committing.contains(thread));
                let rows = idle.map(|thread| cells([&thread.to_string()]));
                ModelReply::Rows(vec![column("", "ID", 8)], rows.collect())
            }
            _ => return None,
        })
    }

    /// Answers statements about the binary log.
    fn log_of(&self, words: &[&str]) -> Option<ModelReply> {
        Some(match *words {
            ["SHOW", "BINARY", "LOG", "STATUS"] => {
                let message = "You have an error in your SQL syntax".to_owned();
                ModelReply::Error(1064, "42000", message)
            }
            ["SHOW", "MASTER", "STATUS"] => {
                let names = ["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB"];
                let (file, end) = self.model().log.end();
                texts(&names, vec![cells([&file, &end.to_string(), "", ""])])
            }
            ["SHOW", "BINARY", "LOGS"] => {
                let files = self.model().log.files();
                let rows = files
                    .iter()
                    .map(|(name, size)| cells([name, &size.to_string()]));
                texts(&["Log_name", "File_size"], rows.collect())
            }
            ["SHOW", "BINLOG", "EVENTS", "IN", name, ..] => {
                let names = [
                    "Log_name",
                    "Pos",
                    "Event_type",
                    "Server_id",
                    "End_log_pos",
                    "Info",
                ];
                let name = name.trim_matches('\'');
                let before = self.model().log.before(name);
                let Some((list, at, end)) = before else {
                    let message = "Could not find target log".to_owned();
                    return Some(ModelReply::Error(1220, "HY000", message));
                };
                let (at, end) = (at.to_string(), end.to_string());
                texts(
                    &names,
                    vec![cells([name, &at, "Gtid_list", "1", &end, &list])],
                )
            }
            _ => return None,
        })
    }

    /// Answers calls, and statements on their result table.
    fn result(
        &self,
        session: &mut ServerSession,
        text: &str,
        words: &[&str],
    ) -> Option<ModelReply> {
        Some(match *words {
            ["CALL", ..] => return self.call(session, text),
            ["SHOW", "CREATE", "TABLE", name] => {
                let (is_there, columns) = match name.trim_matches('`') {
                    RESULT => (
                        session.result.is_some(),
                        "  `id` int(10) unsigned NOT NULL,\n  PRIMARY KEY (`id`)\n",
                    ),
                    HEADS => (
                        session.heads.is_some(),
                        "  `user_id` int(10) unsigned NOT NULL,\n  `max_id` int(10) unsigned NOT NULL\n",
                    ),
                    _ => return None,
                };
                let plain = name.trim_matches('`');
                if !is_there {
                    return Some(missing(plain));
                }
                let created = format!(
                    "CREATE TEMPORARY TABLE {name} (\n{columns}) ENGINE=MEMORY DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"
                );
                texts(&["Table", "Create Table"], vec![cells([plain, &created])])
            }
            ["SELECT", "COUNT(*)", "FROM", name] => {
                let (table, count) = match name {
                    "`world`.`fetch_timeline_tt`" => {
                        (RESULT, session.result.as_ref().map(Vec::len))
                    }
                    "`world`.`max_ids_of_followers`" => {
                        (HEADS, session.heads.as_ref().map(Vec::len))
                    }
                    _ => return None,
                };
                let Some(count) = count else {
                    return Some(missing(table));
                };
                let columns = vec![column("", "COUNT(*)", 8)];
                ModelReply::Rows(columns, vec![cells([&count.to_string()])])
            }
            ["SELECT", "`id`", "FROM", "`world`.`fetch_timeline_tt`", ..] => {
                let Some(ids) = &session.result else {
                    return Some(missing(RESULT));
                };
                let rows = ids.iter().map(|id| cells([&id.to_string()]));
                ModelReply::Rows(vec![column(RESULT, "id", 3)], rows.collect())
            }
            [
                "SELECT",
                "`user_id`,`max_id`",
                "FROM",
                "`world`.`max_ids_of_followers`",
                ..,
            ] => {
                let Some(heads) = &session.heads else {
                    return Some(missing(HEADS));
                };
                let rows = heads
                    .iter()
                    .map(|(author, id)| cells([&author.to_string(), &id.to_string()]));
                let columns = ["user_id", "max_id"].map(|name| column(HEADS, name, 3));
                ModelReply::Rows(columns.to_vec(), rows.collect())
            }
            ["CREATE", "TEMPORARY", "TABLE", ..] => {
                session.result.get_or_insert_default();
                ModelReply::Ok(0)
            }
            [
                "INSERT",
                "INTO",
                "`world`.`fetch_timeline_tt`" | "`fetch_timeline_tt`",
                ..,
            ] => {
                let ids = numbers(text);
                let count = ids.len();
                session.result.get_or_insert_default().extend(ids);
                ModelReply::Ok(count as u8)
            }
            [
                "DELETE",
                "FROM",
                "`world`.`fetch_timeline_tt`" | "`fetch_timeline_tt`",
            ] => {
                session.result = Some(Vec::new());
                ModelReply::Ok(0)
            }
            [
                "DELETE",
                "FROM",
                "`world`.`max_ids_of_followers`" | "`max_ids_of_followers`",
            ] => {
                session.heads = Some(Vec::new());
                ModelReply::Ok(0)
            }
            [
                "INSERT",
                "INTO",
                "`world`.`max_ids_of_followers`" | "`max_ids_of_followers`",
                ..,
            ] => {
                let heads: Vec<(u64, u64)> = numbers(text)
                    .chunks_exact(2)
                    .map(|pair| (pair[0], pair[1]))
                    .collect();
                let count = heads.len();
                session.heads.get_or_insert_default().extend(heads);
                ModelReply::Ok(count as u8)
            }
            _ if text == FOLLOW_UP_SELECT => {
                let Some(ids) = session.result.clone() else {
                    return Some(missing(RESULT));
                };
                let rows = pages::follow_up_rows(&self.read(session), &ids);
                let columns = [column("message", "id", 3), column("message", "body", 253)];
                ModelReply::Rows(columns.to_vec(), rows)
            }
            _ => return None,
        })
    }

    fn call(&self, session: &mut ServerSession, text: &str) -> Option<ModelReply> {
        let (name, rest) = text.split_once('(')?;
        let numbers = rest.trim_end().strip_suffix(')')?.split(',');
        let numbers: Result<Vec<u64>, _> = numbers.map(|it| it.trim().parse()).collect();
        let (reader, bound) = match numbers.ok()?[..] {
            [reader] if name.contains("fetch_timeline_ids") => (reader, u64::MAX),
            [reader, bound] if name.contains("fetch_timeline_ids2") => (reader, bound),
            _ => return None,
        };
        let state = self.read(session);
        if bound != u64::MAX {
            session.heads = Some(pages::heads(&state, reader, bound));
        }
        session.result = Some(pages::page(&state, reader, bound));
        Some(ModelReply::Ok(0))
    }

    fn select(&self, session: &mut ServerSession, text: &str) -> ModelReply {
        if self.is_denied(session, AccountRight::Rows) {
            return AccountRight::Rows.denial();
        }
        relation(text, &self.read(session))
    }
}

impl ServerSession {
    /// The text of an executed prepared statement, with its numbers inserted.
    pub(crate) fn bound(&self, command: &[u8]) -> Option<String> {
        let text = self.prepared.get(statement_place(command)?)?.as_deref()?;
        let count = text.matches('?').count();
        let values = match count {
            0 => &[][..],
            // The values follow flags, iteration count, NULL bitmap and types.
            _ => command.get(9 + count.div_ceil(8) + 1 + 2 * count..)?,
        };
        let numbers = values.chunks_exact(8).map(|value| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(value);
            u64::from_le_bytes(bytes)
        });
        let numbers: Vec<u64> = numbers.collect();
        (numbers.len() == count).then(|| sql::bound(text, &numbers))
    }

    pub(crate) fn close(&mut self, command: &[u8]) {
        let index = statement_place(command);
        if let Some(text) = index.and_then(|place| self.prepared.get_mut(place)) {
            *text = None;
        }
    }
}

/// The index of the statement whose id the command contains; ids are counted from 1.
fn statement_place(command: &[u8]) -> Option<usize> {
    let number = u32::from_le_bytes(*command.first_chunk()?);
    (number as usize).checked_sub(1)
}

/// The result of a SELECT on this state.
fn relation(text: &str, state: &ModelState) -> ModelReply {
    let answer = sql::parse(text).and_then(|query| {
        let relation = sql::evaluate(&query, state)?;
        Ok(typed(relation, text))
    });
    answer.unwrap_or_else(|unknown| ModelReply::Unknown(format!("{text}: {}", unknown.0)))
}

fn missing(table: &str) -> ModelReply {
    let message = format!("Table 'world.{table}' doesn't exist");
    ModelReply::Error(1146, "42S02", message)
}

/// All numbers of a text.
fn numbers(text: &str) -> Vec<u64> {
    let runs = text.split(|it: char| !it.is_ascii_digit());
    runs.filter_map(|it| it.parse().ok()).collect()
}

fn cells<const N: usize>(cells: [&str; N]) -> Vec<Option<String>> {
    cells.iter().map(|&it| Some(it.to_owned())).collect()
}

fn single_cell(name: &str, value: String) -> ModelReply {
    texts(&[name], vec![cells([&value])])
}

fn texts(names: &[&str], rows: TextRows) -> ModelReply {
    let columns = names.iter().map(|name| column("", name, 253));
    ModelReply::Rows(columns.collect(), rows)
}

fn column(table: &str, name: &str, kind: u8) -> ReplyColumn {
    let (charset, length) = match kind {
        253 => (45, 1020),
        _ => (63, 21),
    };
    ReplyColumn {
        table: table.to_owned(),
        name: name.to_owned(),
        kind,
        charset,
        length,
        flags: 0,
        decimals: 0,
    }
}

fn recorded_column((name, kind, charset, length, flags, decimals): &RecordedColumn) -> ReplyColumn {
    ReplyColumn {
        table: String::new(),
        name: name.clone(),
        kind: *kind,
        charset: *charset,
        length: *length,
        flags: *flags,
        decimals: *decimals,
    }
}

/// Adapts recorded metadata of a table to one more column.
fn widen(question: &str, table: ModelTable, columns: &[RecordedColumn], rows: &mut TextRows) {
    let name = table.name();
    let is_alone = question.contains(&alone(name));
    if question.contains("information_schema.COLUMNS") {
        let is_here = |row: &Vec<Option<String>>| row[0].as_deref() == Some(name);
        let last = match is_alone {
            true => Some(rows.len()),
            false => rows.iter().rposition(is_here).map(|index| index + 1),
        };
        let cells = columns.iter().map(|(column, ..)| {
            let cell = match &column[..] {
                "TABLE_NAME" => name,
                "COLUMN_NAME" => log::EXTRA,
                "COLUMN_TYPE" => "int(11)",
                "IS_NULLABLE" => "YES",
                _ => "",
            };
            Some(cell.to_owned())
        });
        if let Some(last) = last {
            rows.insert(last, cells.collect());
        }
    } else if question == format!("SHOW CREATE TABLE `world`.`{name}`") {
        for cell in rows.iter_mut().flatten().flatten() {
            let wide = format!("  `{}` int(11) DEFAULT NULL,\n  PRIMARY KEY", log::EXTRA);
            *cell = cell.replace("  PRIMARY KEY", &wide);
        }
    }
}

/// The part of a metadata query that restricts it to the table of this name.
fn alone(name: &str) -> String {
    let digits = name.bytes().map(|byte| format!("{byte:02x}"));
    format!("= 0x{} ", digits.collect::<String>())
}

/// The recorded queries were about all tables: turns a query about some of them into that about all, and returns their names.
fn of_tables(text: &str) -> (Cow<'_, str>, Option<Vec<String>>) {
    const IN: &str = " AND TABLE_NAME IN (";
    let parts = text.split_once(IN);
    let parts = parts.and_then(|(head, rest)| Some((head, rest.split_once(')')?)));
    let Some((head, (listed, rest))) = parts else {
        return (Cow::Borrowed(text), None);
    };
    let names = listed.split(',').map(|name| {
        let digits = name.trim().trim_start_matches("0x");
        String::from_utf8(log::unhex(digits)).expect("a name")
    });
    (
        Cow::Owned(format!("{head}{IN}*){rest}")),
        Some(names.collect()),
    )
}

/// Columns and cells as they are sent. A column of a table is recognized by its name.
fn typed(relation: SelectResult, text: &str) -> ModelReply {
    let columns = relation.columns.iter();
    let columns = columns.map(|name| match &name[..] {
        "body" => column("message", name, 253),
        "caption" => column("statuses", name, 253),
        "name" => column("profiles", name, 253),
        "id" if text.contains("statuses") => column("statuses", name, 8),
        "id" | "user_id" => column("message", name, 3),
        "profile_id" => column("statuses", name, 3),
        other if other.starts_with("GROUP_CONCAT") => column("", name, 253),
        _ => column("", name, 8),
    });
    let cells = |row: Vec<CellValue>| {
        let each = row.into_iter();
        each.map(|cell| match cell {
            CellValue::Null => None,
            other => Some(other.to_string()),
        })
        .collect()
    };
    ModelReply::Rows(
        columns.collect(),
        relation.rows.into_iter().map(cells).collect(),
    )
}
