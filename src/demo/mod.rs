//! A private database server with the classic data set, and Headwater in front.

pub mod private_server;
