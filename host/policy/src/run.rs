//! What is to run: a script or a program, and what it begins with. As people read it, and as a process is made of it.

use backend::ProcessSpec;
use backend::sealed::Sealed;
use base::capability::Capability;
use base::envelope::Failure;
use base::text::{sanitize, shell_quote};
use config::{is_never_passed, is_variable_name};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// Variables that one call sets, and bytes of an input.
const VARIABLES: usize = 100;
const INPUT_BYTES: usize = 4 << 20;

/// What runs.
#[derive(Clone)]
pub enum Run {
    /// A script for `sh`.
    Script(String),
    /// A program with its arguments, without a shell between.
    Program(Vec<String>),
    /// A program that the user has declared.
    Declared(Declared),
}

/// A declared program, as it is to run.
#[derive(Clone)]
pub struct Declared {
    /// The path of its file, and its arguments.
    pub argv: Vec<String>,
    /// Names of variables that are passed beside the standard ones.
    pub environment: Vec<String>,
    /// What is executed.
    pub sealed: Arc<Sealed>,
}

/// What it begins with, besides what every command has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct With {
    pub variables: Vec<(String, String)>,
    /// Absolute.
    pub directory: Option<PathBuf>,
    pub input: Vec<u8>,
}

impl Run {
    pub fn capability(&self) -> Capability {
        match self {
            Self::Script(_) => Capability::Shell,
            Self::Program(_) => Capability::Exec,
            Self::Declared(_) => Capability::Programs,
        }
    }

    /// As a line for a shell, which means just this.
    fn text(&self) -> String {
        match self {
            Self::Script(text) => text.clone(),
            Self::Program(argv) | Self::Declared(Declared { argv, .. }) => {
                argv.iter().map(|word| shell_quote::readable(word)).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

impl With {
    /// Refuses what cannot be, and variables that no command ever gets.
    ///
    /// # Errors
    ///
    /// `invalid_arguments`, `limit`, or `denied`.
    pub fn check(&self) -> Result<(), Failure> {
        if self.variables.len() > VARIABLES {
            return Err(Failure::limit(format!(
                "{} variables are too many (limit: {VARIABLES})",
                self.variables.len()
            )));
        }
        if self.input.len() > INPUT_BYTES {
            let (bytes, most) = (self.input.len(), INPUT_BYTES >> 20);
            return Err(Failure::limit(format!("an input of {bytes} bytes is too long (limit: {most} MiB)"))
                .hint("put it into a file, and have that read"));
        }
        self.variables.iter().try_for_each(|(name, value)| check_variable(name, value))
    }

    /// The input, as people read it.
    pub(crate) fn shown_input(&self) -> Option<String> {
        (!self.input.is_empty()).then(|| format!("on its standard input:\n{}", String::from_utf8_lossy(&self.input)))
    }
}

fn check_variable(name: &str, value: &str) -> Result<(), Failure> {
    let shown = sanitize::beginning(name, 64);
    if !is_variable_name(name) {
        return Err(Failure::invalid(format!("`{shown}` is not a name of a variable"))
            .hint("a name is made of A-Z, a-z, 0-9 and `_`; its value is given beside it"));
    }
    if value.contains('\0') {
        return Err(Failure::invalid(format!("the value of `{shown}` contains a NUL byte")));
    }
    if is_never_passed(name) {
        return Err(
            Failure::denied(format!("`{shown}` never reaches a command: loaders and shells obey it")).hint("omit it")
        );
    }
    Ok(())
}

/// All of it as a script that means just this, for people, the denylist and the record.
pub fn shown(run: &Run, with: &With) -> String {
    let mut shown = String::new();
    if let Some(directory) = &with.directory {
        shown += &format!("cd -- {}\n", shell_quote::readable(&directory.display().to_string()));
    }
    for (name, value) in &with.variables {
        shown += &format!("export {name}={}\n", shell_quote::readable(value));
    }
    shown + &run.text()
}

/// A process that does it, with variables of this name passed, for a call.
pub fn process(run: &Run, with: &With, environment: Vec<String>, call: &str) -> ProcessSpec {
    let With { variables, directory, input } = with.clone();
    let spec = match run {
        Run::Script(text) => ProcessSpec::shell(text, environment, call),
        Run::Program(argv) => {
            let argv = argv.iter().map(OsString::from).collect();
            ProcessSpec { environment, call: Some(call.to_owned()), ..ProcessSpec::own(argv) }
        }
        Run::Declared(Declared { argv, environment, sealed }) => {
            let argv = argv.iter().map(OsString::from).collect();
            let (environment, sealed, call) = (environment.clone(), Some(sealed.clone()), Some(call.to_owned()));
            ProcessSpec { environment, sealed, call, ..ProcessSpec::own(argv) }
        }
    };
    ProcessSpec { variables, directory, input, ..spec }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::envelope::Kind;

    #[test]
    fn what_is_shown_means_what_runs() {
        let program = Run::Program(["printf", "%s", "a b;$(id)", "it's"].map(str::to_owned).into());
        assert_eq!(shown(&program, &With::default()), r"printf %s 'a b;$(id)' 'it'\''s'");
        let with = With {
            variables: vec![("CI".into(), "1".into()), ("WHAT".into(), "a b".into())],
            directory: Some("/srv/a b".into()),
            input: b"in\n".to_vec(),
        };
        let script = Run::Script("make | tee log".into());
        assert_eq!(shown(&script, &with), "cd -- '/srv/a b'\nexport CI=1\nexport WHAT='a b'\nmake | tee log");
        assert_eq!(with.shown_input().as_deref(), Some("on its standard input:\nin\n"));
    }

    #[test]
    fn variables_that_loaders_and_shells_obey_are_denied() {
        let kind = |name: &str, value: &str| {
            let with = With { variables: vec![(name.into(), value.into())], ..With::default() };
            with.check().map_err(|failure| failure.kind)
        };
        assert_eq!(kind("CI", "1"), Ok(()));
        for name in ["LD_PRELOAD", "BASH_ENV", "ENV", "IFS", "TOOLCRIB_CALL"] {
            assert_eq!(kind(name, "1"), Err(Kind::Denied), "{name}");
        }
        for name in ["", "A=B", "A B", "1A", "Ä"] {
            assert_eq!(kind(name, "1"), Err(Kind::InvalidArguments), "{name}");
        }
        assert_eq!(kind("A", "a\0b"), Err(Kind::InvalidArguments));
    }
}
