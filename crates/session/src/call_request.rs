//! A client's call, in whatever form it came.

use headwater_statement::{CallStatement, StatementEffects, TimelineCall};
use headwater_timeline::{DefinitionId, ProcedureForm, TimelineDefinition};

/// A call whose packet waits.
#[derive(Debug)]
pub struct CallRequest {
    /// Bytes of the packet, header included.
    pub length: usize,
    /// The call.
    pub call: RequestedCall,
    /// The form of the packet.
    pub packet_form: CallPacketForm,
}

/// A call, as far as its packet shows it.
#[derive(Debug)]
pub enum RequestedCall {
    /// A complete call.
    Call(TimelineCall),
    /// A call that lacks the values of parameters, or values that only the session knows.
    Statement(CallStatement, CallValues),
    /// A prepared call that cannot be served: the current database was uncertain at PREPARE, or the packet is unusual.
    Unresolvable,
}

/// The values of a call, in parameter order.
#[derive(Debug)]
pub enum CallValues {
    /// The packet contained them.
    Given(Vec<u64>),
    /// The session must evaluate these expressions.
    Expressions(Vec<String>),
    /// A value may not be a number, or was sent in pieces.
    Invalid,
}

/// The form of a call's packet.
#[derive(Debug)]
pub enum CallPacketForm {
    /// COM_QUERY with the complete call.
    Text,
    /// COM_QUERY with a text whose meaning depends on the session: on its variables, its quotes or its prepared statements.
    Indirect,
    /// COM_QUERY with several statements, the first of which is the call.
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
    /// The text of the statements after the call.
    #[must_use]
    pub fn remainder<'a>(&self, payload: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            CallPacketForm::FirstOfSeveral {
                remainder: rest, ..
            } => payload.get(*rest..),
            CallPacketForm::Text | CallPacketForm::Indirect | CallPacketForm::Prepared(_) => None,
        }
    }

    /// What the statements after the call may do, if there are any.
    #[must_use]
    pub fn remainder_effects(&self) -> Option<&StatementEffects> {
        match self {
            CallPacketForm::FirstOfSeveral { effects, .. } => Some(effects),
            CallPacketForm::Text | CallPacketForm::Indirect | CallPacketForm::Prepared(_) => None,
        }
    }
}

impl RequestedCall {
    /// A call without parameters, whose remaining values only the session knows.
    #[must_use]
    pub fn in_session(statement: CallStatement) -> Self {
        let expressions = statement.session_expressions().collect();
        RequestedCall::Statement(statement, CallValues::Expressions(expressions))
    }

    /// The call's definition, form and database; `None`: unknown.
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
