//! SQL texts as both servers read them: tokens, quoting, how names are shown. What a statement means for a timeline is not decided here.
//!
//! No IO: text in, values out.

pub mod display_escape;
pub mod keyword;
pub mod lexer;
pub mod like;
pub mod name_case;
pub mod page_words;
pub mod quoting;
pub mod user_variable;
pub mod word_search;

pub use display_escape::{escape_hidden, escape_hidden_in_json, escape_hidden_in_lines};
pub use like::is_like;
pub use name_case::NameCase;
pub use quoting::{hex_literal, push_list, quoted};
pub use word_search::{contains_bytes, contains_ignoring_case, contains_name};
