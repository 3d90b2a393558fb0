//! Mail, from Debian's Dovecot and from servers that lie: what is found and read, that nothing changes, and what no server and no sender gets
//! round.
//!
//! The numbers are those of the cases in the design.

mod accounts;
mod hostile;
mod reading;
mod rig;
mod searching;
mod tokens;
