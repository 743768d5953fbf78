//! Where operators look in: what it says is so, and nothing that is done to it is felt by a session.

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
