//! An owned call: what is asked of the server, in which order, and what the client is told.

use std::sync::Arc;

use super::asked::{Asked, Dress, Wanted};
use super::counts::Event;
use super::driver::{Ended, Session};
use super::reason::Reason;
use super::result_table::Pending;
use crate::backend::query_payload;
use crate::statement::{Call, Effects};
use crate::timeline::Form;
use crate::timeline::check::Verdict;
use crate::wire::frame::{self, HEADER_BYTES};
use crate::wire::response::{ErrPacket, OkPacket};
use crate::wire::resultset::Limits;
use crate::wire::status;

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

/// What the last check saw of a procedure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// No check has been made of it, or it cannot be told which one it is.
    Nothing,
    /// It is the known one; `lately`: it was, and is to be looked at again.
    Known { lately: bool },
    /// It is another one.
    Refused,
}

/// What an owned call found.
pub(super) struct Owned {
    pub(super) pending: Pending,
    pub(super) affected_rows: u64,
    pub(super) status: u16,
}

impl Session {
    /// Answers the call whose packet waits, or has the server's procedure answer it.
    pub(super) async fn call(&mut self, asked: &Asked) -> Result<(), Ended> {
        let payload = self
            .client_in
            .get(HEADER_BYTES..asked.length)
            .unwrap_or_default()
            .to_vec();
        match self.own(asked, &payload).await {
            Ok(owned) => {
                self.client_in.drain(..asked.length);
                self.shared.counts.add(Event::CallOwned);
                self.answer_call(asked, &payload, owned)
            }
            Err(Refusal::Relay(reason)) => {
                self.shared.counts.relayed(reason);
                tracing::debug!(reason = reason.label(), "a call is relayed");
                self.advise(reason);
                // Its OK packet may count the rows it deletes.
                self.settle(false).await?;
                self.relay_call(asked, &payload)
            }
            Err(Refusal::Interrupted(error)) => {
                self.client_in.drain(..asked.length);
                self.shared.counts.add(Event::CallInterrupted);
                let (mut bytes, mut packet) = (Vec::new(), Vec::new());
                error.write(&mut bytes);
                frame::encode(1, &bytes, &mut packet);
                if let Some(commands) = self.machine.commands() {
                    commands.standing.observe_error();
                    commands.numbered(&mut packet);
                }
                self.tell_client(&packet)
            }
            Err(Refusal::Ended(ended)) => Err(ended),
        }
    }

    /// Says what an operator would otherwise learn from a counter only.
    fn advise(&mut self, reason: Reason) {
        if matches!(reason, Reason::AutocommitOff | Reason::InTransaction)
            && let Some(commands) = self.machine.commands()
            && commands.standing.autocommit_is_off()
        {
            self.shared.advice.autocommit_is_off(&commands.account);
        }
    }

    fn answer_call(&mut self, asked: &Asked, payload: &[u8], owned: Owned) -> Result<(), Ended> {
        let mut ok = OkPacket {
            affected_rows: owned.affected_rows,
            status: owned.status,
            warnings: owned.pending.warnings,
            ..OkPacket::default()
        };
        let (mut bytes, mut packet) = (Vec::new(), Vec::new());
        if let Some(commands) = self.machine.commands() {
            commands.tables.pending = Some(Box::new(owned.pending));
            if let Some(rest) = asked.dress.rest(payload) {
                ok.status |= status::MORE_RESULTS;
                // It comes next, as a command of its own whose reply continues this one.
                let rest = query_payload(rest, commands.capabilities);
                self.client_in.splice(..0, frame::opening(&rest));
            }
            ok.write(commands.capabilities, &mut bytes);
            frame::encode(commands.owned_call(&asked.dress), &bytes, &mut packet);
        }
        self.tell_client(&packet)
    }

    fn relay_call(&mut self, asked: &Asked, payload: &[u8]) -> Result<(), Ended> {
        let place = self.place_of(&asked.wanted);
        let seen = self.seen(place.as_ref());
        self.relayed = match (&place, seen) {
            (Some((number, form, database)), Seen::Known { .. }) => {
                let rights = self.shared.catalogue.definer_rights(*number, database);
                Some((rights, *form))
            }
            _ => None,
        };
        let commands = self.machine.commands();
        let own = commands
            .and_then(|commands| commands.relay_call(&asked.dress, payload, unknown_effects(seen)));
        self.refused = match (place, self.machine.commands()) {
            (Some((.., database)), Some(commands)) if seen == Seen::Refused => {
                Some((database, commands.standing.database_changes()))
            }
            _ => None,
        };
        let Some(own) = own else {
            return self.pass_client(asked.length);
        };
        let length = own.len();
        self.client_in.splice(..asked.length, own);
        self.pass_client(length)
    }

    /// Which definition a call is of, in which form and database.
    fn place_of(&mut self, wanted: &Wanted) -> Option<(usize, Form, Vec<u8>)> {
        let standing = &self.machine.commands()?.standing;
        let certain = standing.certain_database().map(<[u8]>::to_vec);
        let changes = standing.database_changes();
        // Where a refused procedure was called, and nothing since but that procedure could have chosen another database.
        let refused = self.refused.as_ref().filter(|(_, then)| *then == changes);
        let current = certain.or_else(|| refused.map(|(database, _)| database.clone()));
        let definitions = self.shared.catalogue.definitions();
        let (number, form, database) = wanted.place(definitions, current.as_deref())?;
        Some((number, form, database.to_vec()))
    }

    /// What the last check saw of the procedure that is called.
    fn seen(&self, place: Option<&(usize, Form, Vec<u8>)>) -> Seen {
        let verdict = place.and_then(|(number, form, database)| {
            let (verdict, fresh) = self.shared.catalogue.last_verdict(*number, database)?;
            Some((verdict, *form, fresh))
        });
        let Some((verdict, form, fresh)) = verdict else {
            return Seen::Nothing;
        };
        match &*verdict {
            Verdict::Accelerate(facts) if facts.form(form).is_ok() => {
                Seen::Known { lately: !fresh }
            }
            _ if fresh => Seen::Refused,
            _ => Seen::Nothing,
        }
    }

    /// Why a call is relayed that this is in the way of. What a refused procedure may have left behind is in no way of the next
    /// call of it, which is relayed as the first was.
    fn true_reason(&mut self, obstacle: Reason, wanted: &Wanted) -> Reason {
        match obstacle {
            Reason::OneShotTransaction => {
                let place = self.place_of(wanted);
                match self.seen(place.as_ref()) {
                    Seen::Refused => Reason::Definition,
                    Seen::Nothing | Seen::Known { .. } => obstacle,
                }
            }
            obstacle => obstacle,
        }
    }

    async fn own(&mut self, asked: &Asked, payload: &[u8]) -> Result<Owned, Refusal> {
        if !self.shared.accelerate {
            return Err(Reason::SwitchedOff.into());
        }
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        if let Some(reason) = commands.standing.obstacle() {
            return Err(self.true_reason(reason, &asked.wanted).into());
        }
        let call = &self.bound(&asked.wanted).await?;
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
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
        let payload = self.plain(&call, &asked.dress, payload)?;
        self.look_up(&call, payload, definition, facts, &database)
            .await
    }

    /// The payload by which the same call runs again, whatever the session's variables have become.
    fn plain(&mut self, call: &Call, dress: &Dress, payload: &[u8]) -> Result<Vec<u8>, Refusal> {
        if let Dress::Text = dress {
            return Ok(payload.to_vec());
        }
        let text = call.written_out(self.shared.catalogue.definitions());
        let commands = self.machine.commands().ok_or(Reason::Unchecked)?;
        Ok(query_payload(
            text.ok_or(Reason::Unchecked)?.as_bytes(),
            commands.capabilities,
        ))
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

/// What a procedure may do that is called by a name of ours; `None`: it was seen to be the known one.
fn unknown_effects(seen: Seen) -> Option<Effects> {
    // Any may change definitions, but what is accepted was checked after that.
    let refused = Effects {
        definition: false,
        ..Effects::ALL
    };
    // Nothing is known to be in the way of the next call.
    let unchecked = Effects {
        one_shot: false,
        ..refused
    };
    // It was the known one until lately, and is being looked at again.
    let lately = Effects {
        dynamic: false,
        database: false,
        ..unchecked
    };
    match seen {
        Seen::Nothing => Some(unchecked),
        Seen::Refused => Some(refused),
        Seen::Known { lately: true } => Some(lately),
        Seen::Known { lately: false } => None,
    }
}

pub(super) fn failed(error: &ErrPacket) -> Refusal {
    if error.code == INTERRUPTED || LAST_WORDS.contains(&error.code) {
        return Refusal::Interrupted(error.clone());
    }
    tracing::debug!(code = error.code, "a lookup failed");
    Reason::LookupFailed.into()
}
