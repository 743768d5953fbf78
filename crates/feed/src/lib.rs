//! SELECTs that read a feed: decides whether a text can be narrowed to candidates, and narrows it.
//!
//! ```text
//! text -> words (its template's key) -> parse (the grammar) -> shape (names and types) -> narrow
//! ```
//!
//! No IO: texts and facts in, texts out.

pub mod author_groups;
pub mod author_lists;
pub mod authors;
pub mod binding;
pub mod bounds;
pub mod catalogue;
pub mod cost;
pub mod count;
pub mod definition;
pub mod digest;
pub mod equalities;
pub mod feed_proposal;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod id_list;
mod item_subqueries;
pub mod join_cardinality;
pub mod joined_tables;
pub mod narrowed_text;
pub mod newest;
pub mod normalization;
pub mod outcome_counts;
pub mod outer_joins;
pub mod outer_select;
pub mod parser;
pub mod plain_check;
pub mod plain_functions;
pub mod plan_dependence;
pub mod postings;
pub mod query;
pub mod refusal;
pub mod result_metadata;
pub mod row_dependencies;
mod row_multiplicity;
pub mod schema;
pub mod scope;
pub mod shape;
pub mod table_check;
pub mod tally;
pub mod template;
pub mod words;

#[cfg(test)]
mod tests;

pub use definition::{FeedDefinition, FeedId};
pub use refusal::NarrowingRefusal;
pub use shape::{FeedNames, StatementShape, shape, shape_of_postings};
pub use template::Template;
