//! Scenarios, corpora and properties of statements.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod corpus;
mod properties;
mod scenarios;
