//! SQL texts as both servers read them: words, quoting, how names are shown, and nothing of what a statement means for a timeline.
//!
//! No IO: a text in, values out.

pub mod case;
pub mod keyword;
pub mod lexer;
pub mod like;
pub mod quoting;
pub mod shown;
pub mod variable;
pub mod words;

pub use case::NameCase;
pub use like::is_like;
pub use quoting::{hex, push_list, quoted};
pub use shown::{shown, shown_in_json, shown_lines};
pub use words::{contains, holds, holds_name};
