//! What the text of a command means for a timeline: total, and `Other` wherever there is doubt.

use std::sync::Arc;

use super::call::Call;
use super::effects::Effects;
use super::tail::Tail;
use crate::timeline::Definition;

/// What a text means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// A call that may be answered.
    Call(Call),
    /// A tail. Where it is relayed as it is, it reads the result table and no more.
    Tail(Arc<Tail>),
    /// Any other text, and what it may do to the session.
    Other(Effects),
}

/// Classifies a text, for a server that is known to have `no_functions` or may have some. Never fails, never panics; a text that is not understood is [`Class::Other`] with all effects.
pub fn classify(text: &[u8], definitions: &[Definition], no_functions: bool) -> Class {
    if let Some(call) = Call::parse(text, definitions) {
        return Class::Call(call);
    }
    if names_a_result(text, definitions)
        && let Some(tail) = Tail::parse(text, definitions)
    {
        return Class::Tail(Arc::new(tail));
    }
    other(text, definitions, no_functions)
}

pub(super) fn other(text: &[u8], definitions: &[Definition], no_functions: bool) -> Class {
    Class::Other(Effects::of(text, definitions, no_functions))
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
        text.windows(first_part.len().max(1))
            .any(|part| part == first_part)
            || first_part.is_empty()
    })
}
