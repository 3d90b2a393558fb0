//! The program as a user meets it: what it prints where, how it exits, and how it asks.

mod agentfile;
mod authors;
mod call;
mod calls;
mod cases;
mod completions;
mod config;
mod declared;
mod doctor;
mod documents;
mod embedder;
mod jobs;
mod plugin;
mod policy;
mod program;
mod prompt;
mod records;
mod run;
mod schedules;
mod screen;
mod secret;
mod signals;
mod store;
mod tools;
mod toolsets;
mod trust;
