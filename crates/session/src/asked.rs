//! A call as the client asked for it, in whatever form.

use headwater_statement::{Call, CallStatement, Effects};
use headwater_timeline::{Definition, DefinitionId, Form};

/// A call whose packet waits.
#[derive(Debug)]
pub struct Asked {
    /// Bytes of the packet, header included.
    pub length: usize,
    /// What is called.
    pub wanted: Wanted,
    /// What the packet is besides.
    pub dress: Dress,
}

/// A call, as far as its packet tells.
#[derive(Debug)]
pub enum Wanted {
    /// All of it.
    Call(Call),
    /// All but the values of parameters, or of what only the session knows.
    Statement(CallStatement, Values),
    /// A prepared one that cannot be owned: the current database was not known for certain then, or the packet is an odd one.
    Astray,
}

/// Values of a call, in the order of their places.
#[derive(Debug)]
pub enum Values {
    /// They stood in the packet.
    Given(Vec<u64>),
    /// The session is asked for these expressions.
    Expressions(Vec<String>),
    /// Some is not certainly a number, or was sent in pieces.
    Unfit,
}

/// What the packet is.
#[derive(Debug)]
pub enum Dress {
    /// COM_QUERY with the call's text, which says all.
    Text,
    /// COM_QUERY with a text whose meaning depends on the session: on its variables or its quotes, or on what was prepared.
    Indirect,
    /// COM_QUERY with several statements of which the call is the first.
    First {
        /// Where the others begin in the payload.
        rest: usize,
        /// What they may do.
        effects: Effects,
    },
    /// COM_STMT_EXECUTE of this statement.
    Prepared(u32),
}

impl Dress {
    /// The text of the statements behind the call.
    #[must_use]
    pub fn rest<'a>(&self, payload: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Dress::First { rest, .. } => payload.get(*rest..),
            Dress::Text | Dress::Indirect | Dress::Prepared(_) => None,
        }
    }

    /// What the statements behind the call may do, if there are any.
    #[must_use]
    pub fn behind(&self) -> Option<&Effects> {
        match self {
            Dress::First { effects, .. } => Some(effects),
            Dress::Text | Dress::Indirect | Dress::Prepared(_) => None,
        }
    }
}

impl Wanted {
    /// A call without parameters, whose other values only the session knows.
    #[must_use]
    pub fn in_session(statement: CallStatement) -> Self {
        let expressions = statement.expressions().collect();
        Wanted::Statement(statement, Values::Expressions(expressions))
    }

    /// Which definition it is, in which form and in which database; `None`: it cannot be told.
    #[must_use]
    pub fn place<'a>(
        &'a self,
        definitions: &[Definition],
        current: Option<&'a [u8]>,
    ) -> Option<(DefinitionId, Form, &'a [u8])> {
        let in_front = |name: &'a Option<String>| name.as_ref().map(String::as_bytes).or(current);
        match self {
            Wanted::Call(call) => {
                let database = in_front(&call.database)?;
                let number = call.procedure_in(definitions, database)?;
                Some((number, call.form, database))
            }
            Wanted::Statement(call, _) => {
                let database = in_front(&call.database)?;
                let number = call.procedure_in(definitions, database)?;
                Some((number, call.form, database))
            }
            Wanted::Astray => None,
        }
    }
}
