//! What there is to know of the place that a call is made in: what its session's toolset declares, the settings, the host's documents.
//!
//! No function returns the value of a secret or of a variable, nor where a declared file lies.

use crate::host::introspect;
use crate::{Captured, Failure, Result};

pub use introspect::{ContextFile, Entry, MountPoint};

/// The texts that the session's toolset has for its agent, by name.
///
/// # Errors
/// `denied` without a grant.
pub fn contexts() -> Result<Vec<ContextFile>> {
    introspect::contexts().map_err(Failure::from_host)
}

/// At most `max` characters of such a text, that start `offset` bytes into it.
///
/// # Errors
/// `execution_failed` where there is none of that name, or it cannot be read; `denied` without a grant.
pub fn context(name: &str, offset: u64, max: u32) -> Result<Captured> {
    introspect::context(name, offset, max).map_err(Failure::from_host)
}

/// The environment variables that the toolset tells its agent of; never their values.
///
/// # Errors
/// `denied` without a grant.
pub fn environment() -> Result<Vec<Entry>> {
    introspect::environment().map_err(Failure::from_host)
}

/// The directories that the session's toolset has under other names; never what they are on the machine.
///
/// # Errors
/// `denied` without a grant.
pub fn mounts() -> Result<Vec<MountPoint>> {
    introspect::mounts().map_err(Failure::from_host)
}

/// The settings in force, as TOML with where each value comes from; of one section or of all.
///
/// # Errors
/// `execution_failed` where there is no such section; `denied` without a grant.
pub fn settings(section: Option<&str>) -> Result<String> {
    introspect::settings(section).map_err(Failure::from_host)
}

/// The documents of the host, by name.
///
/// # Errors
/// `denied` without a grant.
pub fn documents() -> Result<Vec<Entry>> {
    introspect::documents().map_err(Failure::from_host)
}

/// One of them, as Markdown.
///
/// # Errors
/// `execution_failed` where there is none of that name; `denied` without a grant.
pub fn document(name: &str) -> Result<String> {
    introspect::document(name).map_err(Failure::from_host)
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub use contract::introspect::{ContextFile, Entry, MountPoint};
    use contract::types::Captured;

    pub(crate) const CALLS: &[&[Signature]] = &[SIGNATURES];

    functions! { "introspect":
        contexts() -> Vec<ContextFile>;
        context(name: &str, offset: u64, max: u32) -> Captured;
        environment() -> Vec<Entry>;
        mounts() -> Vec<MountPoint>;
        settings(section: Option<&str>) -> String;
        documents() -> Vec<Entry>;
        document(name: &str) -> String;
    }

    read! {
        ContextFile { name, file, about }
        Entry { name, about }
        MountPoint { target, about, read_only }
    }
}
