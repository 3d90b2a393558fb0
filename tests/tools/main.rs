//! One module a tool; what every tool must keep is in `definitions`.

mod definitions;
mod ordinary_user;
mod read_file;
mod run_shell;
mod shell_echo;
mod time;
mod word_count;
mod write_file;
