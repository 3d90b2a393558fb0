//! `toolcrib serve` as its clients meet it: over pipes and over HTTP, in both eras of the protocol.

mod approvals;
mod beside;
mod change;
mod clients;
mod day;
mod dev;
mod embedder;
mod errand;
mod hour;
mod http;
mod jobs;
mod lazy;
mod library;
mod lists;
mod manners;
mod pinned;
mod results;
mod rig;
mod robust;
mod sdk;
mod servers;
mod traces;
mod unseen;
mod working_day;
mod workspaces;
mod written;
