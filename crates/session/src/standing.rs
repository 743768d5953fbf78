//! What is known of a session's state on the server, from what was seen to pass.

use std::time::{Duration, Instant};

use super::prepared::Current;
use super::reason::Reason;
use headwater_statement::{Effects, Locks};
use headwater_timeline::Form;
use headwater_wire::response::OkPacket;
use headwater_wire::status;

/// A session as the last replies and commands leave it.
///
/// Nothing here is guessed: what may have changed unseen is *unproven*, and is asked of the server
/// inside the next owned call (there, and only there, own queries disturb nothing the call itself
/// would not reset).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Status flags of the last OK or EOF; `None` after an ERR, which carries none.
    pub status: Option<u16>,
    /// A transaction was open when flags were last heard of; an ERR may have ended it, or not.
    pub in_transaction: bool,
    /// The current database as last heard of; `None` when there is none, or it is not known.
    pub database: Option<Vec<u8>>,
    /// Nothing since could have chosen another one.
    database_proven: bool,
    /// So many commands may have chosen another one.
    database_changes: u64,
    /// Which server this connection leads to; `None` until it was asked.
    pub server: Option<Vec<u8>>,
    /// The server ends the session when it has heard nothing for so long; as it was when the settings were asked for.
    pub wait_timeout: Duration,
    /// The settings that matter were asked for, and nothing since could have changed them.
    pub settings_proven: bool,
    /// No temporary table hides one of the definition's tables.
    pub tables_proven: bool,
    /// The procedure that the account was seen to be allowed to execute last.
    pub may_execute: Option<ExecuteRight>,
    /// Where a refused procedure was called, and how many commands may have chosen another database up to its end.
    refused: Option<(Vec<u8>, u64)>,
    /// When this account last looked at a definition and saw too little, and in which database.
    pub checked_in_vain: Option<(Instant, Vec<u8>)>,
    /// The procedures that warn of their texts and were relayed for it: the server has parsed them as they were then.
    pub parsed: Vec<(usize, Form, u64)>,
    /// The last statement may have left warnings or an error, which the replies to some commands count. A call
    /// would have ended them.
    pub conditions: bool,
    /// A one-shot `SET TRANSACTION` may be in effect.
    pub one_shot: bool,
    /// The client has locked tables.
    pub locked: bool,
    /// Calls are relayed until the session is reset.
    pub barred: Option<Reason>,
}

/// A right to execute that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecuteRight {
    /// A definition's procedure, in one of its forms.
    pub of: (usize, Form),
    /// When it was seen.
    pub at: Instant,
    /// How often definitions may have changed by then.
    pub epoch: u64,
}

impl Standing {
    /// A session just logged in: it cannot hold a temporary table yet.
    #[must_use]
    pub fn new(database: Option<Vec<u8>>) -> Self {
        Standing {
            status: None,
            in_transaction: false,
            database,
            database_proven: true,
            database_changes: 0,
            server: None,
            wait_timeout: Duration::MAX,
            settings_proven: false,
            tables_proven: true,
            may_execute: None,
            refused: None,
            checked_in_vain: None,
            parsed: Vec::new(),
            conditions: false,
            one_shot: false,
            locked: false,
            barred: None,
        }
    }

    /// Forgets what a relayed command may have changed.
    pub fn disturb(&mut self, effects: Effects) {
        self.one_shot |= effects.one_shot;
        match effects.locks {
            Locks::Taken => self.locked = true,
            Locks::Released => self.locked = false,
            Locks::Kept => {}
        }
        if effects.database {
            self.doubt_database();
        }
        if effects.settings || effects.stored_code {
            self.settings_proven = false;
        }
        // SET ROLE.
        if effects.settings {
            self.may_execute = None;
        }
        if effects.temp_tables || effects.stored_code {
            self.tables_proven = false;
        }
    }

    /// Another database may have been chosen.
    pub fn doubt_database(&mut self) {
        self.database_proven = false;
        self.database_changes += 1;
    }

    /// Takes in the flags and the database that a reply's last OK or EOF carries.
    pub fn observe(&mut self, ok: &OkPacket) {
        self.status = Some(ok.status);
        self.conditions = ok.warnings != 0;
        self.in_transaction = ok.status & (status::IN_TRANS | status::IN_TRANS_READONLY) != 0;
        if ok.truncated {
            self.database = None;
        } else if let Some(schema) = &ok.schema {
            self.enter(Some(schema.clone()));
        }
    }

    /// This is the current database now, or there is none.
    pub fn enter(&mut self, database: Option<Vec<u8>>) {
        self.database = database;
        self.database_proven = true;
    }

    /// The current database, where it is certain.
    #[must_use]
    pub fn certain_database(&self) -> Option<&[u8]> {
        self.database.as_deref().filter(|_| self.database_proven)
    }

    /// An ERR ended a reply: a transaction may have ended with it, or not; a `LOCK TABLES` may have
    /// failed, and lookups fail under locks that are there still.
    pub fn observe_error(&mut self) {
        self.locked = false;
        self.conditions = true;
        self.status = None;
    }

    /// A call went on to a procedure of this database that was refused, or to another one.
    pub fn procedure_relayed(&mut self, refused: Option<Vec<u8>>) {
        self.refused = refused.map(|database| (database, self.database_changes));
    }

    /// Where a refused procedure was called last, and nothing since but that procedure could have chosen another database.
    #[must_use]
    pub fn refused_in(&self) -> Option<&[u8]> {
        let refused = self.refused.as_ref();
        let refused = refused.filter(|(_, then)| *then == self.database_changes);
        refused.map(|(database, _)| &**database)
    }

    /// How many commands may have chosen another database.
    #[must_use]
    pub fn database_changes(&self) -> u64 {
        self.database_changes
    }

    /// What a text means that is prepared now.
    #[must_use]
    pub fn current(&self) -> Current<'_> {
        Current {
            name: self.certain_database(),
            changes: self.database_changes,
        }
    }

    /// Why no call can be owned now, as far as can be said without asking the server.
    #[must_use]
    pub fn obstacle(&self) -> Option<Reason> {
        if self.barred.is_some() {
            return self.barred;
        }
        if self.one_shot {
            return Some(Reason::OneShotTransaction);
        }
        if self.locked {
            return Some(Reason::TableLocks);
        }
        if self.status.is_none() && self.in_transaction {
            // The error may have ended it; what the server has to tell of that belongs to the client's next statement.
            return Some(Reason::InTransaction);
        }
        let flags = self.status?;
        if flags & (status::IN_TRANS | status::IN_TRANS_READONLY) != 0 {
            Some(Reason::InTransaction)
        } else if flags & status::AUTOCOMMIT == 0 {
            Some(Reason::AutocommitOff)
        } else {
            None
        }
    }

    /// True when the session was last heard to have autocommit off, whether a transaction is open or not.
    #[must_use]
    pub fn autocommit_is_off(&self) -> bool {
        self.status
            .is_some_and(|flags| flags & status::AUTOCOMMIT == 0)
    }

    /// True when an InnoDB read could disturb the session: its flags are not known.
    #[must_use]
    pub fn must_ask_first(&self) -> bool {
        self.status.is_none() || self.database.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(status: u16) -> OkPacket {
        OkPacket {
            status,
            ..OkPacket::default()
        }
    }

    fn idle() -> Standing {
        let mut standing = Standing::new(Some(b"tl".to_vec()));
        standing.observe(&ok(status::AUTOCOMMIT));
        standing
    }

    #[test]
    fn an_idle_autocommit_session_has_no_obstacle() {
        assert_eq!(idle().obstacle(), None);
    }

    #[test]
    fn flags_of_the_last_reply_decide() {
        let mut standing = idle();
        standing.observe(&ok(status::AUTOCOMMIT | status::IN_TRANS));
        assert_eq!(standing.obstacle(), Some(Reason::InTransaction));
        assert!(!standing.autocommit_is_off());
        standing.observe(&ok(0));
        assert_eq!(standing.obstacle(), Some(Reason::AutocommitOff));
        assert!(standing.autocommit_is_off());
    }

    #[test]
    fn warnings_and_errors_stay_until_the_next_statement() {
        let mut standing = idle();
        assert!(!standing.conditions);
        standing.observe(&OkPacket {
            warnings: 1,
            ..ok(2)
        });
        assert!(standing.conditions);
        standing.observe(&ok(2));
        assert!(!standing.conditions);
        standing.observe_error();
        assert!(standing.conditions);
    }

    #[test]
    fn an_error_makes_the_flags_unknown_and_calls_for_a_question() {
        let mut standing = idle();
        standing.observe_error();
        assert!(standing.must_ask_first());
    }

    #[test]
    fn locked_tables_are_in_the_way_until_they_are_given_back() {
        let locks = |locks| Effects {
            locks,
            ..Effects::NONE
        };
        let mut standing = idle();
        standing.disturb(locks(Locks::Taken));
        standing.disturb(locks(Locks::Kept));
        assert_eq!(standing.obstacle(), Some(Reason::TableLocks));
        standing.disturb(locks(Locks::Released));
        assert_eq!(standing.obstacle(), None);
    }

    #[test]
    fn a_change_of_settings_is_asked_about_and_a_told_database_is_believed() {
        let mut standing = idle();
        standing.settings_proven = true;
        standing.disturb(Effects {
            settings: true,
            ..Effects::NONE
        });
        assert!(!standing.settings_proven && standing.tables_proven);
        standing.observe(&OkPacket {
            schema: Some(b"other".to_vec()),
            ..ok(2)
        });
        assert_eq!(standing.database.as_deref(), Some(&b"other"[..]));
    }

    #[test]
    fn stored_code_may_have_changed_settings_and_tables() {
        let mut standing = idle();
        standing.settings_proven = true;
        standing.disturb(Effects {
            stored_code: true,
            ..Effects::NONE
        });
        assert!(!standing.settings_proven && !standing.tables_proven);
    }
}
