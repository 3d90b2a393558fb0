//! Sessions and panes beside the shared one: made and ended, within the host's limits.
//!
//! The host names them, asks for approval and audits. Without managed tmux everything here is `unavailable`.

use crate::host::pane_sessions;
use crate::panes::Place;
use crate::{Declaration, Failure, Result};

/// Makes a session with its shared pane, or finds it.
///
/// # Errors
/// `denied` by policy or a person; `limit` for more sessions than the host allows.
pub fn create_session(session: &str, declaration: &Declaration) -> Result<Place> {
    pane_sessions::create_session(session, declaration).map_err(Failure::from_host)
}

/// Ends a session with all that runs in it, and returns its name.
///
/// # Errors
/// `denied` by policy or a person; for the default session and for one that the agent has not made, as the host finds.
pub fn kill_session(session: &str, declaration: &Declaration) -> Result<String> {
    pane_sessions::kill_session(session, declaration).map_err(Failure::from_host)
}

/// Makes a pane in a session, or finds it; without a session, in the default one.
///
/// # Errors
/// `denied` by policy or a person; `limit` for more panes than the host allows.
pub fn create_pane(session: Option<&str>, pane: &str, declaration: &Declaration) -> Result<Place> {
    pane_sessions::create_pane(session, pane, declaration).map_err(Failure::from_host)
}

/// Ends a pane with what runs in it; without a session, one of the default session. Returns where it was.
///
/// # Errors
/// `denied` by policy or a person; for a shared pane and for one that the agent has not made, as the host finds.
pub fn kill_pane(session: Option<&str>, pane: &str, declaration: &Declaration) -> Result<Place> {
    pane_sessions::kill_pane(session, pane, declaration).map_err(Failure::from_host)
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    use contract::types::{Declaration, Place};

    pub(crate) const CALLS: &[&[Signature]] = &[SIGNATURES];

    functions! { "pane-sessions":
        create_session(session: &str, declaration: &Declaration) -> Place;
        kill_session(session: &str, declaration: &Declaration) -> String;
        create_pane(session: Option<&str>, pane: &str, declaration: &Declaration) -> Place;
        kill_pane(session: Option<&str>, pane: &str, declaration: &Declaration) -> Place;
    }
}
