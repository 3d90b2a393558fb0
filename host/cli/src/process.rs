//! What this process hides from other processes of its user, such as the commands it runs: its memory, its environment, and its core dump.
//!
//! Commands are given an environment of their own (`backend/environment.rs`), but could read this program's where the kernel shows it.

use ::config::TOKEN_VARIABLE;
use std::ffi::OsString;
use toolcrib::backend::local::leave_no_core;

/// Secrets that were taken out of the environment.
pub(super) struct Secrets {
    /// The token that HTTP clients send.
    pub(super) token: Option<OsString>,
}

/// Takes secrets out of the environment, and the environment and all memory out of sight. Called while this process has one thread.
pub(super) fn seal() -> Secrets {
    // No process of this user reads its memory or its descriptors, or traces it: only root does. It cannot fail with this value.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    leave_no_core();
    let token = std::env::var_os(TOKEN_VARIABLE);
    hide_environment();
    Secrets { token }
}

/// Moves the environment from the block that the kernel shows as `/proc/PID/environ` to memory of our own, without the token, and wipes the
/// block.
#[expect(unsafe_code, reason = "the block that a process was started with has no safe form")]
fn hide_environment() {
    unsafe extern "C" {
        static mut environ: *mut *mut libc::c_char;
    }
    let variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let mut block = Vec::new();
    // SAFETY: there is no other thread yet, so nobody else reads or changes the environment. Its entries are texts that end in NUL, in
    // memory that this process may write. Each is wiped after the library holds a copy of it, and nobody keeps what `environ` pointed to.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            block.push((*entry, libc::strlen(*entry)));
            entry = entry.add(1);
        }
        // If a name appears twice, its first value counts.
        for (name, value) in variables.iter().rev() {
            let is_name = !name.is_empty() && !name.as_encoded_bytes().contains(&b'=');
            match is_name && name != TOKEN_VARIABLE {
                true => std::env::set_var(name, value),
                false if is_name => std::env::remove_var(name),
                false => {}
            }
        }
        for (text, length) in block {
            text.write_bytes(0, length);
        }
    }
}
