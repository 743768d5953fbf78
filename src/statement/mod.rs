//! The text of a command, and what it means for a timeline.
pub mod call;
pub mod classify;
pub mod effects;
pub mod lexer;

mod keyword;

pub use call::Call;
pub use classify::{Class, classify};
pub use effects::{Effects, Locks};
