//! `SHOW HEADWATER ...`: any client may send it, if its account holds PROCESS.
//!
//! No server knows these statements. A table is sent to the server as a SELECT of its values in the statement's place, so the reply has the
//! form that the session has agreed on.

use std::fmt::Debug;

use tokio::sync::OnceCell;

use super::overview_table::OverviewTable;
use super::shared_state::SharedState;
use super::state::{Session, SessionEnd};
use crate::catalogue::SESSION_PRIVILEGE_QUERY;
use headwater_session::call_decision::{INTERNAL_QUERY_LIMITS, InternalQueries};
use headwater_statement::show_headwater::{HeadwaterTable, ShowHeadwater};
use headwater_wire::command::query_payload;
use headwater_wire::packet::{self, HEADER_BYTES};
use headwater_wire::resultset::QueryReply;

/// A statement that every server rejects as a syntax error.
const UNKNOWN_STATEMENT: &str = "SHOW HEADWATER STATUS";
/// Longest SELECT of a table, in bytes.
const MAX_TABLE_BYTES: usize = 256 * 1024;

/// Builds the overview's tables.
pub trait OverviewSource: Debug + Send + Sync {
    /// Builds one table.
    fn table(&self, shared: &SharedState, table: HeadwaterTable) -> OverviewTable;
}

/// Whether clients may send these statements.
#[derive(Debug)]
pub struct ShowStatements {
    /// The source of the tables; `None`: switched off (`admin.show`).
    overview: Option<Box<dyn OverviewSource>>,
    /// True if the server rejects such statements.
    unknown_to_server: OnceCell<bool>,
}

impl ShowStatements {
    /// Uses this source.
    #[must_use]
    pub fn new(overview: Option<Box<dyn OverviewSource>>) -> ShowStatements {
        ShowStatements {
            overview,
            unknown_to_server: OnceCell::new(),
        }
    }

    /// The source of the tables, if the server does not know these statements itself.
    async fn overview(&self, shared: &SharedState) -> Option<&dyn OverviewSource> {
        let overview = self.overview.as_deref()?;
        let service = shared.catalogue.service.as_ref()?;
        let probe = || async {
            service
                .accepts_statement(UNKNOWN_STATEMENT)
                .await
                .map(|knows| !knows)
        };
        let unknown = self.unknown_to_server.get_or_try_init(probe).await;
        unknown.is_ok_and(|unknown| *unknown).then_some(overview)
    }
}

impl Session {
    /// Answers the waiting statement, or has the server reject it.
    pub(super) async fn serve_show(
        &mut self,
        length: usize,
        show_statement: ShowHeadwater,
    ) -> Result<(), SessionEnd> {
        let shared = std::sync::Arc::clone(&self.shared);
        let Some(overview) = shared.show_statements.overview(&shared).await else {
            return self.relay_unknown(length);
        };
        if !self.may_see().await? {
            return self.answer_with_select(length, SESSION_PRIVILEGE_QUERY);
        }
        let table = match show_statement {
            ShowHeadwater::Table(table, None) => overview.table(&shared, table),
            ShowHeadwater::Table(table, Some(pattern)) => {
                overview.table(&shared, table).filtered_like(&pattern)
            }
            ShowHeadwater::Explanation(statement) => {
                let text = self.text_of(length);
                let text = text.get(statement).unwrap_or_default().to_vec();
                self.explain(&text).await?
            }
            ShowHeadwater::Unknown => statement_table(),
        };
        self.answer_with_select(length, &table.select_statement(MAX_TABLE_BYTES))
    }

    /// The text of the waiting statement.
    fn text_of(&mut self, length: usize) -> Vec<u8> {
        let Some(capabilities) = self.machine.commands().map(|it| it.capabilities) else {
            return Vec::new();
        };
        let packet = self.client_in.get(HEADER_BYTES..length);
        let payload = packet.unwrap_or_default();
        let range = headwater_wire::command::query_text_range(payload, capabilities);
        let text = range.and_then(|range| payload.get(range));
        text.unwrap_or_default().to_vec()
    }

    /// Whether the session's account may see other sessions.
    async fn may_see(&mut self) -> Result<bool, SessionEnd> {
        let ask = InternalQueries {
            queries: vec![SESSION_PRIVILEGE_QUERY.to_owned()],
            limits: INTERNAL_QUERY_LIMITS,
            reads: false,
        };
        let answers = self.run_internal_queries(&ask).await?;
        Ok(matches!(answers.first(), Some(QueryReply::Rows(_))))
    }

    /// Has the server answer this SELECT in place of the waiting packet.
    fn answer_with_select(&mut self, length: usize, sql: &str) -> Result<(), SessionEnd> {
        let Some(commands) = self.machine.commands() else {
            return self.relay_from_client(length);
        };
        let payload = query_payload(sql.as_bytes(), commands.capabilities);
        commands.relay_replacement();
        let packet = packet::encode_first(&payload);
        let whole = packet.len();
        self.client_in.splice(..length, packet);
        self.relay_from_client(whole)
    }

    fn relay_unknown(&mut self, length: usize) -> Result<(), SessionEnd> {
        if let Some(commands) = self.machine.commands() {
            commands.relay_unknown();
        }
        self.relay_from_client(length)
    }
}

/// The statements that exist.
fn statement_table() -> OverviewTable {
    let mut table = OverviewTable::with_columns(&["statement", "shows"]);
    for (statement, shows) in [
        (
            "SHOW HEADWATER STATUS",
            "everything that is counted, by the names of /metrics",
        ),
        (
            "SHOW HEADWATER FEEDS",
            "feeds and definitions, whether each is answered from memory, and what is in the way",
        ),
        (
            "SHOW HEADWATER STATEMENTS",
            "forms of statements, what became of them and why",
        ),
        ("SHOW HEADWATER SESSIONS", "client sessions"),
        ("SHOW HEADWATER MEMORY", "what memory holds, and its bounds"),
        ("SHOW HEADWATER SETTINGS", "settings as they are in force"),
        (
            "SHOW HEADWATER UPSTREAMS",
            "the servers, and which of several is the primary",
        ),
        (
            "SHOW HEADWATER WHY FOR <statement>",
            "whether the statement would be answered from memory here and now; if not, why, and the cure",
        ),
    ] {
        table.add([statement.into(), shows.into()]);
    }
    table
}
