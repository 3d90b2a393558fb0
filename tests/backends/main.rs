//! Tools that act in containers and behind SSH: one list of cases over every place, then what is peculiar to each.
//!
//! The places are real ones: `tests/targets up DIR` prepares them, `TOOLCRIB_TARGETS=DIR` says so.

mod conformance;
mod container;
mod doctor;
mod files;
mod link;
mod names;
mod panes;
mod processes;
mod rig;
mod ssh;
mod targets;
