//! Commands in cells: what they cannot reach, in processes of their own and in panes, as root and as another user. The letters are those of
//! the cases of confinement.

mod again;
mod approve;
mod attempts;
mod ends;
mod modes;
mod panes;
mod places;
mod questions;
mod rig;
mod shared;
