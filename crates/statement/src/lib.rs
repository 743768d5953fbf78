//! The text of a command, and what it means for a timeline: a call, its tail, or something else with effects.
//!
//! No IO: a text and definitions in, a class out.

pub mod batch;
pub mod call;
pub mod classify;
pub mod dynamic;
pub mod effects;
#[doc(hidden)]
pub mod fuzzing;
pub mod memory;
mod one_shot;
pub mod own;
pub mod rewrite;
pub mod several;
pub mod tail;

#[cfg(test)]
mod tests;

pub use batch::{Batch, First};
pub use call::{Argument, Call, CallStatement};
pub use classify::{Class, classify};
pub use dynamic::Dynamic;
pub use effects::{Effects, Locks};
pub use memory::Classes;
pub use own::{Own, OwnTable};
pub use rewrite::TailForm;
pub use several::Several;
pub use tail::Tail;
