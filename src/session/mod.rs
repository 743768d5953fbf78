//! What moves the bytes of one client's session; its protocol state is `headwater_session`.
pub mod advice;
mod batch;
pub mod calls;
pub mod counts;
mod cut;
mod driver;
mod execution;
mod farewell;
mod feed;
pub mod hot;
mod knowledge;
pub mod login_errors;
mod long_rows;
mod memory;
mod overlooked;
mod owned;
mod secure;
mod settle;
pub mod shared;
mod stall;
pub mod state;
pub mod tail;
mod watch;
pub mod watched;
pub(crate) mod who;

pub use headwater_session::*;
