//! What moves the bytes of one client's session; its protocol state is `headwater_session`.
pub mod advice;
pub mod counts;
pub mod cut;
pub mod driver;
mod farewell;
mod knowledge;
mod long_rows;
mod memory;
mod owned;
mod secure;
mod settle;
mod stall;
mod tail;

pub use headwater_session::*;
