//! A call as the client asked for it, in whatever form.

use headwater_statement::{CallStatement, StatementEffects, TimelineCall};
use headwater_timeline::{DefinitionId, ProcedureForm, TimelineDefinition};

/// A call whose packet waits.
#[derive(Debug)]
pub struct CallRequest {
    /// Bytes of the packet, header included.
    pub length: usize,
    /// What is called.
    pub call: RequestedCall,
    /// What the packet is besides.
    pub packet_form: CallPacketForm,
}

/// A call, as far as its packet tells.
#[derive(Debug)]
pub enum RequestedCall {
    /// All of it.
    Call(TimelineCall),
    /// All but the values of parameters, or of what only the session knows.
    Statement(CallStatement, CallValues),
    /// A prepared one that cannot be owned: the current database was not known for certain then, or the packet is an odd one.
    Unresolvable,
}

/// Values of a call, in the order of their places.
#[derive(Debug)]
pub enum CallValues {
    /// They stood in the packet.
    Given(Vec<u64>),
    /// The session is asked for these expressions.
    Expressions(Vec<String>),
    /// Some is not certainly a number, or was sent in pieces.
    Invalid,
}

/// What the packet is.
#[derive(Debug)]
pub enum CallPacketForm {
    /// COM_QUERY with the call's text, which says all.
    Text,
    /// COM_QUERY with a text whose meaning depends on the session: on its variables or its quotes, or on what was prepared.
    Indirect,
    /// COM_QUERY with several statements of which the call is the first.
    FirstOfSeveral {
        /// Where the others begin in the payload.
        remainder: usize,
        /// What they may do.
        effects: StatementEffects,
    },
    /// COM_STMT_EXECUTE of this statement.
    Prepared(u32),
}

impl CallPacketForm {
    /// The text of the statements behind the call.
    #[must_use]
    pub fn remainder<'a>(&self, payload: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            CallPacketForm::FirstOfSeveral {
                remainder: rest, ..
            } => payload.get(*rest..),
            CallPacketForm::Text | CallPacketForm::Indirect | CallPacketForm::Prepared(_) => None,
        }
    }

    /// What the statements behind the call may do, if there are any.
    #[must_use]
    pub fn remainder_effects(&self) -> Option<&StatementEffects> {
        match self {
            CallPacketForm::FirstOfSeveral { effects, .. } => Some(effects),
            CallPacketForm::Text | CallPacketForm::Indirect | CallPacketForm::Prepared(_) => None,
        }
    }
}

impl RequestedCall {
    /// A call without parameters, whose other values only the session knows.
    #[must_use]
    pub fn in_session(statement: CallStatement) -> Self {
        let expressions = statement.session_expressions().collect();
        RequestedCall::Statement(statement, CallValues::Expressions(expressions))
    }

    /// Which definition it is, in which form and in which database; `None`: it cannot be told.
    #[must_use]
    pub fn resolve<'a>(
        &'a self,
        definitions: &[TimelineDefinition],
        current: Option<&'a [u8]>,
    ) -> Option<(DefinitionId, ProcedureForm, &'a [u8])> {
        let in_front = |name: &'a Option<String>| name.as_ref().map(String::as_bytes).or(current);
        match self {
            RequestedCall::Call(call) => {
                let database = in_front(&call.database)?;
                let number = call.procedure_in(definitions, database)?;
                Some((number, call.form, database))
            }
            RequestedCall::Statement(call, _) => {
                let database = in_front(&call.database)?;
                let number = call.procedure_in(definitions, database)?;
                Some((number, call.form, database))
            }
            RequestedCall::Unresolvable => None,
        }
    }
}
