//! What the text of a command means for a timeline: total, and `Other` wherever there is doubt.

use std::sync::Arc;

use super::batch::Batch;
use super::call::{Argument, Call, CallStatement};
use super::dynamic::Dynamic;
use super::effects::Effects;
use super::own::Own;
use super::several::Several;
use super::tail::Tail;
use headwater_sql::lexer::Lexer;
use headwater_sql::{holds, holds_name};
use headwater_timeline::Definition;

/// What a text means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// A call that may be answered.
    Call(Call),
    /// A call whose values have to be found first: user variables, or the parameters of a statement to be prepared.
    Unbound(CallStatement),
    /// A call with more statements behind it, and what those may do.
    Several(Several, Effects),
    /// A statement that is prepared or executed by name.
    Dynamic(Dynamic),
    /// A tail. Where it is relayed as it is, it reads the result table and no more.
    Tail(Arc<Tail>),
    /// A SELECT that may be a feed's: it names a table of messages, and has an order and a limit. What it may do where it is relayed.
    Feed(Effects),
    /// Several statements, of which one may be a feed's.
    Batch(Batch),
    /// A question to Headwater itself.
    Own(Own),
    /// Any other text, and what it may do to the session.
    Other(Effects),
}

/// Classifies a text, for a server that is known to have `no_functions` or may have some. Never fails, never panics; a text that is not understood is [`Class::Other`] with all effects.
pub fn classify(text: &[u8], definitions: &[Definition], no_functions: bool) -> Class {
    if let Some(class) = of_call(text, definitions) {
        return class;
    }
    if names_a_result(text, definitions)
        && let Some(tail) = Tail::parse(text, definitions)
    {
        return Class::Tail(Arc::new(tail));
    }
    other(text, definitions, no_functions)
}

/// The classes of texts that begin with the words of a call, of dynamic SQL, or of a question to Headwater.
pub(super) fn of_call(text: &[u8], definitions: &[Definition]) -> Option<Class> {
    let verb = Lexer::new(text).next()?;
    if !verb.is_word("CALL") {
        if verb.is_word("SHOW") {
            return Own::parse(text).map(Class::Own);
        }
        let dynamic = DYNAMIC.iter().any(|word| verb.is_word(word));
        return dynamic
            .then(|| Dynamic::parse(text, definitions).map(Class::Dynamic))
            .flatten();
    }
    let Some(statement) = CallStatement::parse(text, definitions) else {
        let several = Several::parse(text, definitions)?;
        let rest = text.get(several.rest..).unwrap_or_default();
        let effects = Effects::of(rest, definitions, false);
        return Some(Class::Several(several, effects));
    };
    let known = |argument: &Argument| matches!(argument, Argument::Number(_));
    if statement.arguments().all(known) {
        return statement.bind(definitions, &[]).map(Class::Call);
    }
    Some(Class::Unbound(statement))
}

/// First words of statements that are prepared or executed by name.
const DYNAMIC: &[&str] = &["PREPARE", "EXECUTE", "DEALLOCATE", "DROP"];

pub(super) fn other(text: &[u8], definitions: &[Definition], no_functions: bool) -> Class {
    Class::Other(Effects::of(text, definitions, no_functions))
}

/// True for a SELECT that names one of these tables, or any `other`, and has an order and a limit, as far as a glance tells.
pub(super) fn may_be_feed(text: &[u8], messages: &[Box<[u8]>], other: bool) -> bool {
    (other || !messages.is_empty())
        && Lexer::new(text)
            .next()
            .is_some_and(|verb| verb.is_word("SELECT"))
        && names_feed(text, messages, other)
}

/// True for a text that has the words of a feed's SELECT somewhere.
pub(super) fn names_feed(text: &[u8], messages: &[Box<[u8]>], other: bool) -> bool {
    holds(text, "LIMIT")
        && holds(text, "ORDER")
        && (messages.iter().any(|table| holds_name(text, table)) || other && holds(text, "DESC"))
}

/// Without a result table's name in it, a text is no tail.
pub(super) fn names_a_result(text: &[u8], definitions: &[Definition]) -> bool {
    definitions.iter().any(|definition| {
        let first_part = definition
            .result
            .table
            .split('`')
            .next()
            .unwrap_or_default()
            .as_bytes();
        first_part.is_empty() || holds_name(text, first_part)
    })
}
