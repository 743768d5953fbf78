//! An owned call: what is asked of the server, in which order, and what the client is told.

use std::sync::Arc;

use super::counts::Event;
use super::driver::{Ended, Session};
use super::reason::Reason;
use super::result_table::Pending;
use crate::statement::Call;
use crate::timeline::check::Verdict;
use crate::wire::frame::{self, HEADER_BYTES};
use crate::wire::response::{ErrPacket, OkPacket};
use crate::wire::resultset::Limits;

/// ER_QUERY_INTERRUPTED: KILL QUERY, or Ctrl-C at a prompt.
pub(super) const INTERRUPTED: u16 = 1317;
/// The connection is being closed: ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED (MariaDB), ER_SESSION_WAS_KILLED
/// and ER_CLIENT_INTERACTION_TIMEOUT (MySQL).
const LAST_WORDS: [u16; 4] = [1053, 1927, 3169, 4031];
/// Denied: to the table, a column, the database, the command.
pub(super) const DENIED: [u16; 5] = [1044, 1045, 1142, 1143, 1227];

/// How much the answer to an own question may hold: a table's description, a procedure's body.
pub(super) const ASK_LIMITS: Limits = Limits {
    max_rows: 10_000,
    max_bytes: 4 * 1024 * 1024,
};

/// Why a call is not owned after all.
pub(super) enum Refusal {
    Relay(Reason),
    /// The lookups were interrupted: the client is told, as it would be of the procedure.
    Interrupted(ErrPacket),
    Ended(Ended),
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Refusal::Relay(reason)
    }
}

impl<E: Into<Ended>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Refusal::Ended(error.into())
    }
}

/// What an owned call found.
pub(super) struct Owned {
    pub(super) pending: Pending,
    pub(super) affected_rows: u64,
    pub(super) status: u16,
}

impl Session {
    /// Answers the call whose packet waits, or has the server's procedure answer it.
    pub(super) async fn call(&mut self, length: usize, call: &Call) -> Result<(), Ended> {
        let payload = self
            .client_in
            .get(HEADER_BYTES..length)
            .unwrap_or_default()
            .to_vec();
        match self.own(call, &payload).await {
            Ok(owned) => {
                self.client_in.drain(..length);
                self.shared.counts.add(Event::CallOwned);
                self.answer_call(owned)
            }
            Err(Refusal::Relay(reason)) => {
                self.shared.counts.relayed(reason);
                tracing::debug!(reason = reason.label(), "a call is relayed");
                // Its OK packet may count the rows it deletes.
                self.settle(false).await?;
                if let Some(commands) = self.machine.commands() {
                    commands.relay_call();
                }
                self.pass_client(length)
            }
            Err(Refusal::Interrupted(error)) => {
                self.client_in.drain(..length);
                self.shared.counts.add(Event::CallInterrupted);
                if let Some(commands) = self.machine.commands() {
                    commands.standing.observe_error();
                }
                let (mut bytes, mut packet) = (Vec::new(), Vec::new());
                error.write(&mut bytes);
                frame::encode(1, &bytes, &mut packet);
                self.tell_client(&packet)
            }
            Err(Refusal::Ended(ended)) => Err(ended),
        }
    }

    fn answer_call(&mut self, owned: Owned) -> Result<(), Ended> {
        let ok = OkPacket {
            affected_rows: owned.affected_rows,
            status: owned.status,
            ..OkPacket::default()
        };
        let (mut bytes, mut packet) = (Vec::new(), Vec::new());
        if let Some(commands) = self.machine.commands() {
            commands.tables.pending = Some(Box::new(owned.pending));
            ok.write(commands.capabilities, &mut bytes);
        }
        frame::encode(1, &bytes, &mut packet);
        self.tell_client(&packet)
    }

    async fn own(&mut self, call: &Call, payload: &[u8]) -> Result<Owned, Refusal> {
        if !self.shared.accelerate {
            return Err(Reason::SwitchedOff.into());
        }
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        if let Some(reason) = commands.standing.obstacle() {
            return Err(reason.into());
        }
        if commands.standing.must_ask_first() || self.may_be_elsewhere(call) {
            self.ask_settings().await?;
        }
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        let database = commands
            .standing
            .database
            .clone()
            .ok_or(Reason::OtherDatabase)?;
        // Such a name's bytes depend on the session's character set, and verdicts go by bytes.
        if !database.is_ascii() {
            return Err(Reason::OtherDatabase.into());
        }
        if call
            .database
            .as_ref()
            .is_some_and(|name| name.as_bytes() != database)
        {
            return Err(Reason::OtherDatabase.into());
        }
        let shared = Arc::clone(&self.shared);
        let definitions = shared.catalogue.definitions();
        let number = call
            .definition_in(definitions, &database)
            .ok_or(Reason::OtherDatabase)?;
        if let Some(shadow) = &shared.shadow
            && shadow.distrusts(number)
        {
            return Err(Reason::Distrusted.into());
        }
        self.turn_to(number, &database).await?;
        let definition = definitions.get(number).ok_or(Reason::OtherDatabase)?;
        let verdict = self.verdict(number, definition, &database).await?;
        let Verdict::Accelerate(facts) = &*verdict else {
            return Err(Reason::Definition.into());
        };
        let call = Call {
            definition: number,
            ..call.clone()
        };
        if facts.form(call.form).is_err() {
            return Err(Reason::Definition.into());
        }
        self.look_up(&call, payload, definition, facts, &database)
            .await
    }

    /// True when the database that this session was last heard to be in serves no such call, while a
    /// statement since may have chosen another one: not every client is told which.
    fn may_be_elsewhere(&mut self, call: &Call) -> bool {
        let catalogue = &self.shared.catalogue;
        let Some(commands) = self.machine.commands() else {
            return false;
        };
        let standing = &commands.standing;
        let Some(database) = standing
            .database
            .as_deref()
            .filter(|_| !standing.settings_proven)
        else {
            return false;
        };
        let verdict = call
            .definition_in(catalogue.definitions(), database)
            .and_then(|number| catalogue.verdict(number, database));
        !verdict.is_some_and(|verdict| matches!(&*verdict, Verdict::Accelerate(_)))
    }

    /// Another definition, or another database, has result tables of its own.
    async fn turn_to(&mut self, definition: usize, database: &[u8]) -> Result<(), Ended> {
        let commands = self.machine.commands();
        let pending = commands.and_then(|commands| commands.tables.pending.as_ref());
        if pending.is_some_and(|pending| pending.definition != definition) {
            self.settle(false).await?;
        }
        if let Some(commands) = self.machine.commands()
            && commands.tables.turn_to(definition, database)
        {
            commands.standing.tables_proven = false;
        }
        Ok(())
    }
}

pub(super) fn failed(error: &ErrPacket) -> Refusal {
    if error.code == INTERRUPTED || LAST_WORDS.contains(&error.code) {
        return Refusal::Interrupted(error.clone());
    }
    tracing::debug!(code = error.code, "a lookup failed");
    Reason::LookupFailed.into()
}
