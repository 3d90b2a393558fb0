//! Managed tmux, on a real one: sessions and panes, commands in them, what a person at them sees.

mod commands;
mod crib;
mod keys;
mod lifecycle;
mod people;
mod sharing;
mod shells;
