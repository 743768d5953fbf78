//! SELECTs of feeds: the same directly and through Headwater.

mod alike;
mod app;
mod auto;
mod causes;
mod checked;
mod described;
mod differential;
mod discover;
mod grammar;
mod hostile;
mod kept;
mod kept_joined;
mod kept_lists;
mod kept_shadow;
mod keys;
mod lessons;
mod linear;
mod moved;
mod named;
pub(crate) mod narrowed;
mod odd;
mod opened;
mod pair;
mod prepared;
mod rules;
mod served;
mod settings;
mod several;
mod statements;
mod transactions;
mod values;
mod why;

pub(crate) use served::PATIENT;
