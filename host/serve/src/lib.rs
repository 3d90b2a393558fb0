//! Serving a host to agents: doors translate, they decide nothing.

pub mod mcp;
