//! The text of a command, and its meaning for a timeline: a call, its follow-up SELECT, or another statement with effects.
//!
//! No IO: a text and definitions in, a class out.

pub mod call;
pub mod call_batch;
pub mod classifier;
pub mod dynamic_sql;
pub mod effects;
pub mod feed_batch;
pub mod follow_up;
pub mod follow_up_rewrite;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod next_transaction;
pub mod show_headwater;
pub mod statement_class;

#[cfg(test)]
mod tests;

pub use call::{CallArgument, CallStatement, TimelineCall};
pub use call_batch::CallBatch;
pub use classifier::StatementClassifier;
pub use dynamic_sql::DynamicStatement;
pub use effects::{StatementEffects, TableLockEffect};
pub use feed_batch::{FeedBatch, FirstStatement};
pub use follow_up::FollowUpSelect;
pub use follow_up_rewrite::FollowUpForm;
pub use show_headwater::{HeadwaterTable, ShowHeadwater};
pub use statement_class::{StatementClass, classify};
