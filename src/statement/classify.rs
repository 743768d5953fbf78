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
    /// A SELECT that joins a result table with the messages.
    Tail(Arc<Tail>),
    /// Any other text, and what it may do to the session.
    Other(Effects),
}

/// Classifies a text. Never fails, never panics; a text that is not understood is [`Class::Other`] with all effects.
pub fn classify(text: &[u8], definitions: &[Definition]) -> Class {
    match Call::parse(text, definitions) {
        Some(call) => Class::Call(call),
        None => Class::Other(Effects::of(text, definitions)),
    }
}
