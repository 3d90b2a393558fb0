//! Commands in cells: what they cannot reach, in processes of their own and in panes, as root and as another user. The letters are those of
//! the cases of confinement.

mod again;
mod approve;
mod attempts;
mod doors;
mod elsewhere;
mod ends;
mod environment;
mod git;
mod git_kill;
mod git_random;
mod git_remotes;
mod git_together;
mod held;
mod held_watch;
mod keys;
mod ladder;
mod memory;
mod modes;
mod mounts;
mod netlink;
mod out;
mod panes;
mod partial;
mod places;
mod ports;
mod programs;
mod questions;
mod rig;
mod secrets;
mod setuid;
mod shared;
mod spare;
mod unread;
