//! Servers of the Model Context Protocol that others wrote: what of them is offered and called, what they see of this machine, and what none of
//! them gets round, however it behaves. The server is `server.py`, whose first argument says how, or over HTTP `web.py`.
//!
//! The numbers are those of the cases in the design.

mod accepting;
mod asking;
mod calling;
mod confined;
mod hostile;
mod library;
mod neighbours;
mod official;
mod rig;
mod web;
