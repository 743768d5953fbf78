//! SELECTs of feeds: the same directly and through Headwater.

mod app;
mod auto;
mod differential;
mod discover;
mod keys;
mod linear;
mod moved;
mod narrowed;
mod opened;
mod pair;
mod prepared;
mod rules;
mod served;
mod several;
mod statements;
mod transactions;
