//! Programs that settings name for the host itself: what prints a secret, what makes vectors of texts, what signs. They are not confined, and have all
//! of the user's environment.

use super::local::Local;
use super::{Backend, Input, Process, ProcessSpec};
use crate::dirs::Dirs;
use crate::envelope::Failure;
use std::ffi::OsString;

/// What starts such programs.
pub(crate) struct OwnPrograms {
    local: Local,
    /// The variables that they get.
    environment: Vec<String>,
}

impl OwnPrograms {
    pub(crate) fn new(dirs: &Dirs) -> Self {
        let (home, environment) = (dirs.home.clone(), dirs.environment.clone());
        let names = environment.names().map(str::to_owned).collect();
        Self { local: Local::new(home.clone(), home, dirs.state.clone(), environment), environment: names }
    }

    /// Starts one with closed standard input.
    pub(crate) async fn start(&self, argv: &[String]) -> Result<Box<dyn Process>, Failure> {
        self.local.start(self.spec(argv.iter().map(OsString::from).collect())).await
    }

    /// Starts one that is written to.
    pub(crate) async fn open(&self, argv: &[String]) -> Result<(Box<dyn Process>, Input), Failure> {
        self.local.open(self.spec(argv.iter().map(OsString::from).collect())).await
    }

    /// The same with variables of its own.
    pub(crate) async fn open_with(
        &self,
        argv: Vec<OsString>,
        variables: &[(&str, &str)],
    ) -> Result<(Box<dyn Process>, Input), Failure> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.local.open(ProcessSpec { variables, ..self.spec(argv) }).await
    }

    fn spec(&self, argv: Vec<OsString>) -> ProcessSpec {
        ProcessSpec { environment: self.environment.clone(), ..ProcessSpec::own(argv) }
    }
}
