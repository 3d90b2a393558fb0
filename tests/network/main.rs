//! The one egress: what a tool can make the host ask, connect to and read, and what it never can.
//!
//! Each test lives in a network of its own where every address is this machine (`world.rs`): no packet leaves, servers of the test answer for
//! any address, and whatever the program turns to is on record (`record.rs`).

mod afternoon;
mod cells;
mod confirm;
mod day;
mod examples;
mod host;
mod limits;
mod names;
mod packages;
mod pages;
mod rebinding;
mod record;
mod redirects;
mod requests;
mod search;
mod secrets;
mod settings;
mod tls;
mod upstream;
mod vectors;
mod wasi;
mod web;
mod world;
