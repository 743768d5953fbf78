//! The subcommands that look at a server and report: `check`, `discover` and `verify`.

pub mod check;
pub mod discover;
pub mod verify;
