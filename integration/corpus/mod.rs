//! The corpus: conversations played straight to the server, twice, and through Headwater, on each release. Each packet of all three
//! must be the same, header and payload, but for what [`mask`] names; that the server repeats itself shows that nothing
//! else had to be named.

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
