//! SELECTs of feeds: the same directly and through Headwater.

mod app;
mod differential;
mod discover;
mod linear;
mod narrowed;
mod pair;
mod rules;
mod statements;
mod transactions;
