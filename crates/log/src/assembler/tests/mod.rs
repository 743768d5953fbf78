#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    // Logs that servers wrote are files.
    clippy::disallowed_methods
)]

mod built_events;
mod captured_log;
mod captured_logs;
mod corrupted_events;
mod negative_numbers;
mod ordering_keys;
mod repeated_follows;

pub(crate) use captured_log::routes;
