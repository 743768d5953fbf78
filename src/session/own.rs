//! Questions to Headwater from any client: `SHOW HEADWATER ...`, for accounts that hold PROCESS.
//!
//! No server knows these statements, which it was asked. A table goes out as a SELECT of its values in the question's place: so the reply
//! is one of the server's own, in whatever form the session has agreed on.

use std::fmt::Debug;

use tokio::sync::OnceCell;

use super::ownership::{ASK_LIMITS, Ask};
use super::shared::Shared;
use super::state::{Ended, Session};
use super::table::Table;
use crate::catalogue::MAY_SEE;
use crate::statement::own::{Own, OwnTable};
use crate::wire::command::query_payload;
use crate::wire::frame::{self, HEADER_BYTES};
use crate::wire::resultset::Answer;

/// A question that every server takes for a mistake.
const UNKNOWN: &str = "SHOW HEADWATER STATUS";
/// More of a table is not told.
const MOST_BYTES: usize = 256 * 1024;

/// Makes the tables that say how Headwater is.
pub trait Overview: Debug + Send + Sync {
    /// One of them, as it is now.
    fn table(&self, shared: &Shared, table: OwnTable) -> Table;
}

/// Whether clients may ask.
#[derive(Debug)]
pub struct Shows {
    /// What they are told of; `None`: of nothing (`admin.show`).
    overview: Option<Box<dyn Overview>>,
    /// The server does not know such statements itself.
    unknown: OnceCell<bool>,
}

impl Shows {
    /// Clients are told of this.
    #[must_use]
    pub fn new(overview: Option<Box<dyn Overview>>) -> Shows {
        Shows {
            overview,
            unknown: OnceCell::new(),
        }
    }

    /// What this client may be told of, whatever its account.
    async fn overview(&self, shared: &Shared) -> Option<&dyn Overview> {
        let overview = self.overview.as_deref()?;
        let service = shared.catalogue.service.as_ref()?;
        let asked = || async { service.knows(UNKNOWN).await.map(|knows| !knows) };
        let unknown = self.unknown.get_or_try_init(asked).await;
        unknown.is_ok_and(|unknown| *unknown).then_some(overview)
    }
}

impl Session {
    /// Answers the question whose packet waits, or has the server say that it does not know it.
    pub(super) async fn own(&mut self, length: usize, own: Own) -> Result<(), Ended> {
        let shared = std::sync::Arc::clone(&self.shared);
        let Some(overview) = shared.shows.overview(&shared).await else {
            return self.relay_unknown(length);
        };
        if !self.may_see().await? {
            return self.select(length, MAY_SEE);
        }
        let table = match own {
            Own::Table(table, None) => overview.table(&shared, table),
            Own::Table(table, Some(pattern)) => overview.table(&shared, table).like(&pattern),
            Own::WhyFor(statement) => {
                let text = self.text_of(length);
                let text = text.get(statement).unwrap_or_default().to_vec();
                self.why_for(&text).await?
            }
            Own::Unknown => questions(),
        };
        self.select(length, &table.select(MOST_BYTES))
    }

    /// The text of the question that waits.
    fn text_of(&mut self, length: usize) -> Vec<u8> {
        let Some(capabilities) = self.machine.commands().map(|it| it.capabilities) else {
            return Vec::new();
        };
        let packet = self.client_in.get(HEADER_BYTES..length);
        let payload = packet.unwrap_or_default();
        let range = crate::wire::command::query_text(payload, capabilities);
        let text = range.and_then(|range| payload.get(range));
        text.unwrap_or_default().to_vec()
    }

    /// Whether the session's account may see what others do.
    async fn may_see(&mut self) -> Result<bool, Ended> {
        let ask = Ask {
            queries: vec![MAY_SEE.to_owned()],
            limits: ASK_LIMITS,
            reads: false,
        };
        let answers = self.ask_aside(&ask).await?;
        Ok(matches!(answers.first(), Some(Answer::Rows(_))))
    }

    /// Has the server answer this in the place of the packet that waits.
    fn select(&mut self, length: usize, sql: &str) -> Result<(), Ended> {
        let Some(commands) = self.machine.commands() else {
            return self.pass_client(length);
        };
        let payload = query_payload(sql.as_bytes(), commands.capabilities);
        commands.relay_own();
        let packet = frame::opening(&payload);
        let whole = packet.len();
        self.client_in.splice(..length, packet);
        self.pass_client(whole)
    }

    fn relay_unknown(&mut self, length: usize) -> Result<(), Ended> {
        if let Some(commands) = self.machine.commands() {
            commands.relay_unknown();
        }
        self.pass_client(length)
    }
}

/// What can be asked.
fn questions() -> Table {
    let mut table = Table::of(&["statement", "shows"]);
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
