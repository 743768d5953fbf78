//! Tests of the relay: client and server exchange the same bytes as without Headwater.

mod big;
mod commands;
mod cut_logins;
mod ends;
mod idle;
mod logins;
mod out_of_order;
mod pipelines;
mod prepared;
mod progress;
mod redirects;
mod stalled;
mod strange_clients;
mod strange_servers;
mod stream;
mod talk;
