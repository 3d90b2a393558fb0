//! One module a tool; what every tool must keep is in `definitions`.

mod agent;
mod bin_list;
mod definitions;
mod exec;
mod factory;
mod fetch_url;
mod file;
mod file_edit;
mod file_list;
mod file_read;
mod file_write;
mod fleet;
mod introspect;
mod memory;
mod notes;
mod ordinary_user;
mod program;
mod read_file;
mod run_shell;
mod send_file;
mod shell;
mod shell_echo;
mod time;
mod web_search;
mod word_count;
mod write_file;
