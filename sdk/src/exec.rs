//! Programs on the call's backend, started without a shell between: no argument is more than itself.
//!
//! The host checks the program against the plugin's grant and the denylist, asks for approval where policy says so, and audits it.
//!
//! ```no_run
//! use toolcrib_sdk::{Declaration, Result, exec::Program};
//!
//! fn branch(declaration: &Declaration) -> Result<String> {
//!     let finished = Program::new("git", declaration).args(["branch", "--show-current"]).run()?;
//!     Ok(finished.stdout.text.trim().to_owned())
//! }
//! ```

use crate::duration::milliseconds;
use crate::host::exec;
use crate::{Declaration, Failure, Result};
use std::time::Duration;

pub use exec::Finished;

/// One program on its way: set what differs from the defaults, then [`run`](Self::run).
#[derive(Clone, Debug)]
pub struct Program {
    program: String,
    arguments: Vec<String>,
    declaration: Declaration,
    variables: Vec<(String, String)>,
    directory: Option<String>,
    input: Vec<u8>,
    wait: Option<Duration>,
    shown: Option<(u32, u32)>,
}

impl Program {
    /// Returns a program without arguments: a name that is found on `PATH`, or an absolute path.
    #[must_use]
    pub fn new(program: &str, declaration: &Declaration) -> Self {
        let (variables, directory, input) = (Vec::new(), None, Vec::new());
        let (program, arguments, declaration) = (program.to_owned(), Vec::new(), declaration.clone());
        Self { program, arguments, declaration, variables, directory, input, wait: None, shown: None }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable for it, which the plugin's grant has to name.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets where it begins: absolute, from `~/`, or relative to the working directory of the backend.
    #[must_use]
    pub fn directory(self, path: &str) -> Self {
        Self { directory: Some(path.to_owned()), ..self }
    }

    /// Sets what is on its standard input before that ends, at most 4 MiB; the default is nothing.
    #[must_use]
    pub fn stdin(self, bytes: impl AsRef<[u8]>) -> Self {
        Self { input: bytes.as_ref().to_vec(), ..self }
    }

    /// Sets how long to wait; the default is the host's limit for commands.
    #[must_use]
    pub fn at_most(self, wait: Duration) -> Self {
        Self { wait: Some(wait), ..self }
    }

    /// Sets how many characters of the beginning and of the end of each stream to return; the default is 4,000 and 0.
    #[must_use]
    pub fn head_and_tail(self, head: u32, tail: u32) -> Self {
        Self { shown: Some((head, tail)), ..self }
    }

    /// Runs the program. One that exits non-zero is an outcome, not a failure.
    ///
    /// # Errors
    /// `denied`, `timed_out`, `unavailable`, `limit`, `invalid_arguments` or `cancelled`, as the host finds.
    pub fn run(self) -> Result<Finished> {
        let process = exec::Process::new(&self.program, &self.arguments, &self.declaration);
        self.variables.iter().for_each(|(name, value)| process.environment(name, value));
        self.directory.iter().for_each(|path| process.directory(path));
        if !self.input.is_empty() {
            process.stdin(&self.input);
        }
        self.wait.iter().for_each(|wait| process.at_most_ms(milliseconds(*wait)));
        self.shown.iter().for_each(|(head, tail)| process.head_and_tail(*head, *tail));
        process.run().map_err(Failure::from_host)
    }
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub use contract::exec::Finished;
    use contract::types::Declaration;

    pub(crate) const CALLS: &[&[Signature]] = &[Process::SIGNATURES];

    resource! { "exec": Process(program: &str, arguments: &[String], declaration: &Declaration) {
        set directory(path: &str);
        set stdin(bytes: &[u8]);
        set at_most_ms(ms: u64);
        set head_and_tail(head: u32, tail: u32);
        add environment by environment(name: &str, value: &str);
        end run -> Finished;
    } }

    read! {
        Finished { exit_code, stdout, stderr, notices }
    }
}
