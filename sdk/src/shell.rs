//! Commands of the shell on the call's backend.
//!
//! The host checks the command against the denylist, asks for approval where policy says so, and audits it.

use crate::duration::milliseconds;
use crate::host::shell;
use crate::{Declaration, Failure, Pane, Result};
use std::time::Duration;

pub use shell::{Finished, Outcome};

/// How long to wait for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until it exits, at most the host's limit for commands (10 minutes by default).
    UntilExit,
    /// At most that long; then the run fails as `timed_out`, with the output so far.
    AtMost(Duration),
    /// Not at all. Needs a backend with panes.
    Dispatch,
}

/// One command on its way: set what differs from the defaults, then [`run`](Self::run).
#[derive(Debug)]
pub struct Command(shell::Command);

impl Command {
    /// Returns the command that runs `text`, a script for `sh`; several lines are one command.
    #[must_use]
    pub fn new(text: &str, declaration: &Declaration) -> Self {
        Self(shell::Command::new(text, declaration))
    }

    /// Sets how long to wait; the default is until the command exits.
    #[must_use]
    pub fn wait(self, wait: Wait) -> Self {
        self.0.wait(match wait {
            Wait::UntilExit => shell::Wait::UntilExit,
            Wait::AtMost(limit) => shell::Wait::AtMostMs(milliseconds(limit)),
            Wait::Dispatch => shell::Wait::Dispatch,
        });
        self
    }

    /// Sets how many characters of each stream to return; the default is 4,000.
    #[must_use]
    pub fn head(self, chars: u32) -> Self {
        self.0.head(chars);
        self
    }

    /// Sets the pane to run in; the default is the shared one where the grant says `shell.pane`, else a process of its own.
    #[must_use]
    pub fn in_pane(self, pane: &Pane) -> Self {
        self.0.in_pane(pane);
        self
    }

    /// Sets how many characters of the end of each stream to return as well, behind a line that says how much is left out and where
    /// it is kept.
    #[must_use]
    pub fn tail(self, chars: u32) -> Self {
        self.0.tail(chars);
        self
    }

    /// Sets a variable for the command.
    #[must_use]
    pub fn env(self, name: &str, value: &str) -> Self {
        self.0.environment(name, value);
        self
    }

    /// Sets where the command begins: absolute, from `~/`, or relative to the working directory of the backend.
    #[must_use]
    pub fn directory(self, path: &str) -> Self {
        self.0.directory(path);
        self
    }

    /// Sets what is on its standard input before that ends, at most 4 MiB; the default is nothing.
    #[must_use]
    pub fn stdin(self, bytes: impl AsRef<[u8]>) -> Self {
        self.0.stdin(bytes.as_ref());
        self
    }

    /// Has it run in a process of its own, with two streams, also where the grant says `shell.pane`.
    #[must_use]
    pub fn own_process(self) -> Self {
        self.0.own_process();
        self
    }

    /// Runs the command. One that exits non-zero is an outcome, not a failure.
    ///
    /// # Errors
    /// `denied`, `timed_out`, `unavailable`, `limit`, `invalid_arguments` or `cancelled`, as the host finds.
    pub fn run(self) -> Result<Outcome> {
        self.0.run().map_err(Failure::from_host)
    }
}

/// Returns `text` as one word of a script for `sh`.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub(crate) use contract::shell::Wait;
    pub use contract::shell::{Finished, Outcome};
    use contract::types::{Declaration, Pane};

    pub(crate) const CALLS: &[&[Signature]] = &[Command::SIGNATURES];

    resource! { "shell": Command(text: &str, declaration: &Declaration) {
        set in_pane(pane: &Pane);
        set wait(wait: Wait);
        set head(chars: u32);
        set tail(chars: u32);
        set directory(path: &str);
        set stdin(bytes: &[u8]);
        set own_process();
        add environment by environment(name: &str, value: &str);
        end run -> Outcome;
    } }

    read! {
        Finished { exit_code, stdout, stderr, notices }
    }

    impl Write for Wait {
        fn write(&self) -> Value {
            match self {
                Self::UntilExit => "until-exit".into(),
                Self::AtMostMs(ms) => json!({ "at-most-ms": ms.write() }),
                Self::Dispatch => "dispatch".into(),
            }
        }
    }

    impl Read for Outcome {
        fn read(value: Value) -> Result<Self, String> {
            let expected = "expected {\"finished\": …} or {\"dispatched\": …}";
            let Value::Object(cases) = value else { return Err(expected.into()) };
            let mut cases = cases.into_iter();
            match (cases.next(), cases.next()) {
                (Some((case, value)), None) if case == "finished" => Read::read(value).map(Self::Finished),
                (Some((case, value)), None) if case == "dispatched" => Read::read(value).map(Self::Dispatched),
                _ => Err(expected.into()),
            }
        }

        fn blank() -> Value {
            json!({ "finished": Finished::blank() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_keeps_its_quotes() {
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("a'b"), r"'a'\''b'");
    }
}
