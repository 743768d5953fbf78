//! The SQL of lookups, and how pages are read from the server's answers.
//!
//! No IO: a call and hints in, statements out; rows in, ids out.

mod author_grouping;
pub mod backlog;
pub mod heads;
pub mod hints;
pub mod id_density;
pub mod lists;
pub mod lookup;
mod lookup_error;
pub mod page_guess;
pub mod per_author_heads;
pub mod plan;
pub mod session_probes;
mod spider;

pub use lookup::{CallLookup, LookupResult};
pub use lookup_error::LookupError;
