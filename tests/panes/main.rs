//! Managed tmux, on a real one: sessions and panes, commands in them, what a person at them sees.

mod commands;
mod crib;
mod doctor;
mod keys;
mod lifecycle;
mod own_pane;
mod people;
mod sharing;
mod shells;
mod unchanged;
