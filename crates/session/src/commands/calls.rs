//! Calls in every form: as a text, with variables, before other statements, prepared.

use super::*;
use headwater_statement::Several;
use headwater_wire::command::LAST_PREPARED;

impl Commands {
    /// A call that waits until the replies before it have ended.
    pub(super) fn ask(&mut self, length: usize, wanted: Wanted, dress: Dress) -> ClientStep {
        if !self.is_idle() {
            return ClientStep::Hold;
        }
        // What the call leaves comes in the place of what the statement before it left.
        self.take_aside();
        ClientStep::Call(Box::new(Asked {
            length,
            wanted,
            dress,
        }))
    }

    /// A call with more statements behind it.
    pub(super) fn several(
        &mut self,
        length: usize,
        from: usize,
        several: Several,
        effects: Effects,
    ) -> ClientStep {
        let Several { call, rest } = several;
        // Without attributes nothing stands in front of the text but the command and two counts.
        let plain = from <= 3;
        if self.multi_statements != Some(true) || !plain || call.parameters() > 0 {
            return self.text(length, Effects::ALL, None);
        }
        let rest = from + rest;
        let dress = Dress::First { rest, effects };
        self.ask(length, Wanted::in_session(call), dress)
    }

    /// COM_STMT_PREPARE of a text of this class.
    pub(super) fn prepare(
        &mut self,
        class: Class,
        text: &[u8],
        header: Header,
        input: &[u8],
    ) -> ClientStep {
        if let Some(step) = self.settle_first(Effects::NONE, None) {
            return step;
        }
        let text = Text::new(class, text, self.standing.current());
        self.prepared.begin();
        self.begin(Command::StmtPrepare, After::Prepared(Box::new(text)));
        self.pass(Command::StmtPrepare, header, input)
    }

    /// Whether this executes a call.
    pub(super) fn is_call(&self, command: Command, id: u32) -> bool {
        let call = match self.being_prepared(id) {
            Some(text) => text.is_call(),
            None => self.prepared.is_call(id),
        };
        command == Command::StmtExecute && call
    }

    /// What an execution may do.
    pub(super) fn execution_effects(&self, id: u32) -> Effects {
        let effects = match self.being_prepared(id) {
            Some(text) => text.effects(),
            None => self.prepared.effects(id),
        };
        self.known(effects)
    }

    /// MariaDB's drivers send an execution of the statement prepared last right behind its text.
    pub(super) fn being_prepared(&self, id: u32) -> Option<&Text> {
        if id != LAST_PREPARED || !self.server.mariadb {
            return None;
        }
        let mut latest = self.in_flight.iter().rev();
        latest.find_map(|command| match &command.after {
            After::Prepared(text) => Some(&**text),
            _ => None,
        })
    }

    /// COM_STMT_EXECUTE of a call.
    pub(super) fn execute(&mut self, id: u32, payload: &[u8]) -> ClientStep {
        if !self.is_idle() {
            return ClientStep::Hold;
        }
        let current = self.standing.current();
        let execution = self
            .prepared
            .execution(id, payload, self.capabilities, current);
        let (wanted, dress) = match execution {
            Some(execution) => (execution.wanted, Dress::Prepared(execution.statement)),
            None => (Wanted::Astray, Dress::Prepared(id)),
        };
        self.ask(HEADER_BYTES + payload.len(), wanted, dress)
    }

    /// What else a command means for the statement that it names.
    pub(super) fn note(&mut self, command: Command, payload: &[u8]) {
        let Some(id) = command::statement_id(payload) else {
            return;
        };
        match command {
            Command::StmtClose => self.prepared.close(id),
            Command::StmtReset => self.prepared.long_data(id, false),
            Command::StmtSendLongData => self.prepared.long_data(id, true),
            Command::StmtBulkExecute if self.prepared.is_feed(id) => drop(self.prepared.unread(id)),
            _ => {}
        }
    }

    /// Notes that a call goes on to the server, to be answered there; the packet that goes in its place, if it has to be
    /// another one.
    ///
    /// `effects`: what the procedure may do where its body is not known; one that is known does nothing beyond its tables.
    pub fn relay_call(
        &mut self,
        dress: &Dress,
        payload: &[u8],
        effects: Option<Effects>,
    ) -> Option<Vec<u8>> {
        self.tables.disturb();
        self.standing.call_relayed();
        let mut after = After::ProcedureCall(match dress {
            Dress::Prepared(id) => Some(*id),
            _ => None,
        });
        for unknown in effects.iter().chain(dress.behind()) {
            self.disturb(*unknown);
            if unknown.one_shot {
                after = After::Nothing;
            }
        }
        let Dress::Prepared(id) = dress else {
            self.begin(Command::Query, after);
            return None;
        };
        self.begin(Command::StmtExecute, after);
        let payload = self.typed(*id, payload)?;
        Some(frame::opening(&payload))
    }

    /// Notes that a call was answered; returns the number of the packet that says so.
    pub fn owned_call(&mut self, dress: &Dress) -> u8 {
        // Whoever asks for them has the call run first.
        self.standing.ends_conditions();
        let told = self.told.take().unwrap_or(0).wrapping_add(1);
        match dress {
            Dress::Prepared(id) => self.prepared.owned(*id),
            Dress::First { .. } => self.told = Some(told),
            Dress::Text | Dress::Indirect => {}
        }
        told
    }
}
