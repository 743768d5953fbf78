//! What moves the bytes of one client's session; its protocol state is `headwater_session`.
pub mod advice;
pub mod counts;
pub mod cut;
pub mod driver;
mod farewell;
mod long_rows;
mod lookup;
mod owned;
mod proof;
mod run;
mod secure;
mod settle;
mod stall;
mod tail;
mod values;

pub use headwater_session::*;
