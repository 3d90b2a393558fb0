//! Toolcrib: a sandboxed tool host for AI agents.
//!
//! One call, door to effect:
//! 1. a door ([`cli`]) turns what came in into a [`call::Request`] with a [`call::CallContext`];
//! 2. [`call`] accepts it, bounds it in time, and takes it through every stage below;
//! 3. [`registry`] finds the plugin's component, [`definition`] validates the arguments;
//! 4. [`policy`] turns the settings of [`config`] into the plugin's grants;
//! 5. `sandbox` makes a fresh instance with all limits, and runs the guest;
//! 6. the guest reaches the world through `capability`: check the grant, act, convert;
//! 7. [`backend`] is where it lands: processes, files; [`tmux`] keeps the panes in which commands run there; `http` is the one way out;
//! 8. back in [`call`], texts are cleaned by [`sanitize`], the outcome is audited, and one [`envelope`] goes out.
//!
//! Definitions, calls and results as model APIs write them are in [`formats`].

pub mod audit;
pub mod backend;
pub mod call;
mod capability;
pub mod cli;
pub mod config;
pub mod dirs;
mod disk;
mod egress;
pub mod envelope;
pub mod event;
pub mod formats;
mod host;
pub mod kept_output;
mod mcp;
pub mod policy;
pub mod sandbox;
pub mod text;
pub mod tmux;
pub mod tools;
pub mod workspace;

pub use host::Host;
