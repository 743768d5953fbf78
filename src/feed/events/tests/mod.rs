#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod captured;
mod hostile;
mod log;
mod made;

pub(in crate::feed) use log::routes;
