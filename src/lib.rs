//! Headwater: a MySQL proxy that answers timeline procedures itself and relays everything else.
pub mod demo;
pub mod statement;
pub mod timeline;
pub mod wire;
