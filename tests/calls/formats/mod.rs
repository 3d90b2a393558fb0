//! What model APIs are told of the tools, and what becomes of their calls.
//!
//! The goldens are also checked against the vendors' own packages, by `tests/run` (`vendors/`).

mod calls;
mod definitions;
mod golden;
mod results;
mod strict;
