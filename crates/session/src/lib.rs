//! One client's session: its protocol state, its login, and its known state on the server.
//!
//! No IO and no clock: packets in, steps out. The driver that moves the bytes is `headwater::session`.

pub mod account_rights;
pub mod author_lists;
mod binlog_dump;
pub mod cached_rows;
pub mod call_request;
pub mod commands;
pub mod compression_frames;
pub mod feed_decision;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod idle_session;
pub mod login;
pub mod machine;
pub mod placeholder_login;
pub mod plain_text;
pub mod reply_difference;
pub mod tls_policy;
mod tracked_value;

pub mod call_decision;
pub mod call_relay_reason;
pub mod definer_rights;
mod machine_step;
pub mod pending_flush;
pub mod prepared_statements;
pub mod process_user;
pub mod result_table;
mod result_table_write;
pub mod session_state;
pub mod settings_probe;
