//! The text of a command, and what it means for a timeline.
pub mod call;
pub mod classify;
pub mod dynamic;
pub mod effects;
#[doc(hidden)]
pub mod fuzzing;
pub mod lexer;
pub mod memory;
pub mod rewrite;
pub mod several;
pub mod tail;

mod keyword;
#[cfg(test)]
mod tests;
mod variable;

pub use call::{Argument, Call, CallStatement};
pub use classify::{Class, classify};
pub use dynamic::Dynamic;
pub use effects::{Effects, Locks, holds};
pub use memory::Classes;
pub use rewrite::TailForm;
pub use several::Several;
pub use tail::Tail;
