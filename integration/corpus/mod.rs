//! The corpus: conversations played directly to the server, twice, and through Headwater, on each release. All three must be equal packet
//! by packet, header and payload, except for what [`mask`] names. The two direct runs show that the server repeats itself, so no other
//! mask is needed.

mod capabilities;
mod collations;
mod column;
mod columns;
mod commands;
mod errors;
mod harness;
mod infile;
mod legs;
mod malformed;
mod mask;
mod parameters;
mod player;
mod side;
mod sizes;
mod statements;
mod tape;
mod texts;
mod types;
mod users;
