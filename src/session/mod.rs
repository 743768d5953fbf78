//! One client's session: its protocol state (pure), and the driver that moves the bytes.
pub mod commands;
pub mod counts;
pub mod driver;
mod farewell;
pub mod legs;
pub mod login;
mod lookup;
pub mod machine;
mod owned;
pub mod probe;
mod proof;
pub mod reason;
pub mod result_table;
mod secure;
mod settle;
pub mod standing;
mod tail;
