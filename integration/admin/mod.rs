//! The admin port: its reports are correct, and abuse of it does not affect sessions.

mod api;
mod forged;
mod guard;
mod health;
mod hostile;
pub(crate) mod http;
mod messages;
mod metrics;
mod page;
mod scene;
mod show;
