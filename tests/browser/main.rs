//! The browser, with each of the two that Debian has, against sites on this machine: what a page comes as, what is acted on, and what no page
//! gets round.
//!
//! The numbers are those of the cases in the design.

mod acting;
mod cell;
mod guarded;
mod looking;
mod reach;
mod rig;
mod running;
mod secrets;
mod uploads;
