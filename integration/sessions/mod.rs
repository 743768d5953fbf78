//! Tests of one session: the same statements directly to the server and through Headwater give the
//! same replies in every state of the session.

mod accounts;
mod at_random;
mod between;
mod clients;
mod definitions;
mod hostile;
mod leftovers;
mod others;
mod parsed;
mod places;
mod prepared;
mod pressure;
mod reasons;
mod service;
mod settings;
mod several;
mod spellings;
mod stage;
mod tables;
mod told;
mod transactions;
mod transcripts;
mod variables;
