//! Programs that the user has declared, each by its file and the digest of that. They run without a shell, in the working directory.
//!
//! The host checks the program against the plugin's grant and the denylist, asks for approval where policy says so, and audits it.
//!
//! ```no_run
//! use toolcrib_sdk::{Result, programs::Run};
//!
//! fn name(json: &str) -> Result<String> {
//!     let finished = Run::new("jq").args(["-r", ".name"]).stdin(json).start()?;
//!     Ok(finished.stdout.text.trim().to_owned())
//! }
//! ```

use crate::duration::milliseconds;
use crate::host::programs;
use crate::{Failure, Result};
use std::time::Duration;

pub use programs::{Finished, Program};

/// Returns the declared programs that the plugin's grant names, in the order of their names.
///
/// # Errors
/// `denied` where it names none.
pub fn declared() -> Result<Vec<Program>> {
    programs::declared().map_err(Failure::from_host)
}

/// One program on its way: set what differs from the defaults, then [`start`](Self::start).
#[derive(Clone, Debug)]
pub struct Run {
    program: String,
    arguments: Vec<String>,
    input: Vec<u8>,
    wait: Option<Duration>,
    shown: Option<(u32, u32)>,
}

impl Run {
    /// Returns a declared program without arguments but those that are declared.
    #[must_use]
    pub fn new(program: &str) -> Self {
        Self { program: program.to_owned(), arguments: Vec::new(), input: Vec::new(), wait: None, shown: None }
    }

    /// Adds arguments, behind those that are declared.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets what is on its standard input before that ends, at most 4 MiB; the default is nothing.
    #[must_use]
    pub fn stdin(self, bytes: impl AsRef<[u8]>) -> Self {
        Self { input: bytes.as_ref().to_vec(), ..self }
    }

    /// Sets how long to wait, at most as long as its section says, which is the default.
    #[must_use]
    pub fn at_most(self, wait: Duration) -> Self {
        Self { wait: Some(wait), ..self }
    }

    /// Sets how many characters of the beginning and of the end of each stream to return; the default is 4,000 and 0.
    #[must_use]
    pub fn head_and_tail(self, head: u32, tail: u32) -> Self {
        Self { shown: Some((head, tail)), ..self }
    }

    /// Runs the program. Whether one that exits non-zero is an outcome or a failure is declared with it.
    ///
    /// # Errors
    /// `execution_failed` with both streams in its data, `denied`, `timed_out`, `unavailable`, `limit`, `invalid_arguments` or
    /// `cancelled`, as the host finds.
    pub fn start(self) -> Result<Finished> {
        let run = programs::Run::new(&self.program, &self.arguments);
        if !self.input.is_empty() {
            run.stdin(&self.input);
        }
        self.wait.iter().for_each(|wait| run.at_most_ms(milliseconds(*wait)));
        self.shown.iter().for_each(|(head, tail)| run.head_and_tail(*head, *tail));
        run.start().map_err(Failure::from_host)
    }
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub use contract::programs::{Finished, Program};

    pub(crate) const CALLS: &[&[Signature]] = &[SIGNATURES, Run::SIGNATURES];

    functions! { "programs":
        declared() -> Vec<Program>;
    }

    resource! { "programs": Run(program: &str, arguments: &[String]) {
        set stdin(bytes: &[u8]);
        set at_most_ms(ms: u64);
        set head_and_tail(head: u32, tail: u32);
        end start -> Finished;
    } }

    read! {
        Finished { exit_code, stdout, stderr, notices }
        Program { name, about, usage }
    }
}
