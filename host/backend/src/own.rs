//! Programs that settings name for the host itself: what prints a secret, what makes vectors of texts, what signs. They are not confined, and have all
//! of the user's environment.

use super::local::Local;
use super::{Backend, Input, Process, ProcessSpec};
use base::dirs::Dirs;
use base::envelope::Failure;
use futures_util::future::BoxFuture;
use std::ffi::OsString;

/// A program, and the way to say something to it.
pub type Spoken = (Box<dyn Process>, Input);

/// What starts such programs.
pub struct OwnPrograms {
    local: Local,
    /// The variables that they get.
    environment: Vec<String>,
}

impl OwnPrograms {
    pub fn new(dirs: &Dirs) -> Self {
        let (home, environment) = (dirs.home.clone(), dirs.environment.clone());
        let names = environment.names().map(str::to_owned).collect();
        Self { local: Local::new(home.clone(), home, dirs.state.clone(), environment), environment: names }
    }

    /// Starts one with closed standard input.
    pub fn start<'a>(&'a self, argv: &'a [String]) -> BoxFuture<'a, Result<Box<dyn Process>, Failure>> {
        Box::pin(async move { self.local.start(self.spec(argv.iter().map(OsString::from).collect())).await })
    }

    /// Starts one that is written to.
    pub fn open<'a>(&'a self, argv: &'a [String]) -> BoxFuture<'a, Result<Spoken, Failure>> {
        Box::pin(async move { self.local.open(self.spec(argv.iter().map(OsString::from).collect())).await })
    }

    /// The same with variables of its own.
    pub fn open_with<'a>(
        &'a self,
        argv: Vec<OsString>,
        variables: &'a [(&'a str, &'a str)],
    ) -> BoxFuture<'a, Result<Spoken, Failure>> {
        Box::pin(async move {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            self.local.open(ProcessSpec { variables, ..self.spec(argv) }).await
        })
    }

    fn spec(&self, argv: Vec<OsString>) -> ProcessSpec {
        ProcessSpec { environment: self.environment.clone(), ..ProcessSpec::own(argv) }
    }
}
