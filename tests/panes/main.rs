//! Managed tmux, on a real one: sessions and panes, commands in them, what a person at them sees.

mod arguments;
mod commands;
mod crib;
mod doctor;
mod ends;
mod examples;
mod floods;
mod guards;
mod keys;
mod left_running;
mod lifecycle;
mod lines;
mod meddling;
mod own_pane;
mod people;
mod sharing;
mod shells;
mod socket;
mod stale;
mod startup;
mod unchanged;
mod views;
mod workspaces;
