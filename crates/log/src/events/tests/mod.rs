#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    // Logs that servers wrote are files.
    clippy::disallowed_methods
)]

mod captured;
mod hostile;
mod keyed;
mod log;
mod made;

pub(crate) use log::routes;
