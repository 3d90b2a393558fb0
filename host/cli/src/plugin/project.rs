//! An author's project: what `toolcrib-plugin.toml` says, and how it is built.
//!
//! Its build line is a program that runs on the author's machine with the author's rights, as a Makefile is. Only commands that an author
//! types read it; hosts never do.

use super::super::call::cancel_on_signal;
use super::super::screen::PassedOn;
use super::super::setup::{Setup, cannot, usage};
use super::super::{notice, print};
use super::pack::pack_file;
use serde::Deserialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use toolcrib::backend::{ProcessEvent, local};
use toolcrib::envelope::{Failure, Kind};

/// The file's name.
pub(super) const FILE: &str = "toolcrib-plugin.toml";
/// The status by which `env` and shells say that a program was not found.
const NOT_FOUND: i32 = 127;

/// A language that there is a template for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Lang {
    /// With the SDK
    Rust,
    /// With componentize-qjs, in QuickJS
    Js,
    /// With componentize-py
    Python,
    /// With Go's own compiler
    Go,
    /// With clang, as zig has it
    C,
}

/// What the file says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Project {
    /// The plugin's name.
    pub(super) name: String,
    pub(super) lang: Lang,
    /// The program that builds it, with its arguments. It begins in the project's directory.
    pub(super) build: Vec<String>,
    /// The component, or the core module, that this makes.
    pub(super) out: PathBuf,
}

#[derive(clap::Args)]
pub(in super::super) struct Build {
    /// The project's directory
    #[arg(default_value = ".")]
    directory: PathBuf,
}

impl Lang {
    pub(super) const ALL: [Self; 5] = [Self::Rust, Self::Js, Self::Python, Self::Go, Self::C];

    /// As it is typed, and as its template's directory is named.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Js => "js",
            Self::Python => "python",
            Self::Go => "go",
            Self::C => "c",
        }
    }
}

impl Project {
    /// Goes into a project's directory, where paths of its cases begin, and reads its file.
    pub(super) fn enter(directory: &Path) -> Result<Self, Failure> {
        // Without it there is nothing to go into, which this says.
        Self::read(directory)?;
        std::env::set_current_dir(directory).map_err(|error| cannot(directory, &error))?;
        Self::read(Path::new("."))
    }

    /// Reads the file of a directory.
    pub(super) fn read(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            usage(format!("`{}` cannot be read: {error}", path.display()))
                .hint("`toolcrib plugin new NAME` makes a project; give its directory")
        })?;
        let project: Self = toml::from_str(&text)
            .map_err(|error| usage(format!("`{}`: {}", path.display(), error.to_string().trim_end())))?;
        if project.build.is_empty() {
            return Err(usage(format!("`{}`: `build` names no program", path.display())));
        }
        Ok(project)
    }

    /// Builds it and writes the tools' names into what was built. Returns the component's file.
    pub(super) async fn build(&self, setup: &Setup, directory: &Path) -> Result<PathBuf, Failure> {
        let begin = Instant::now();
        let line = self.build.join(" ");
        let file = directory.join(&self.out);
        // Not every builder makes the directory that it writes to.
        let parent = file.parent().unwrap_or(directory);
        std::fs::create_dir_all(parent)
            .map_err(|error| usage(format!("`{}` cannot be made: {error}", parent.display())))?;
        let argv = self.argv().map_err(|error| usage(format!("this program has no path: {error}")))?;
        let cannot_start = |fault: String| {
            Failure::new(Kind::Unavailable, fault)
                .hint(format!("`toolcrib plugin doctor {}` says what is missing", self.lang.name()))
        };
        let status = run(setup, &argv, directory)
            .await
            .map_err(|error| cannot_start(format!("`{}` cannot be started: {error}", self.build[0])))?;
        match status {
            Some(0) => {}
            Some(NOT_FOUND) => {
                let fault = format!("the build starts a program that is missing (see above): `{line}`");
                return Err(cannot_start(fault));
            }
            Some(-1) => return Err(Failure::failed(format!("the build was ended by a signal: `{line}`"))),
            Some(status) => {
                return Err(Failure::failed(format!("the build failed (see above): `{line}` exits with {status}")));
            }
            None => return Err(Failure::cancelled()),
        }
        if !file.is_file() {
            return Err(Failure::failed(format!("the build made no `{}`", self.out.display()))
                .hint("`out` in toolcrib-plugin.toml names what `build` makes"));
        }
        let tools = pack_file(setup, &file, &file).await?;
        let took = begin.elapsed().as_secs_f64();
        notice(&format!("built `{}` in {took:.1} s, with {}", self.name, tools.join(", ")));
        Ok(file)
    }

    /// The build line as it is started: with this program's path in its environment, as a build may ask it for the contract.
    fn argv(&self) -> std::io::Result<Vec<OsString>> {
        let mut program = OsString::from("TOOLCRIB=");
        program.push(std::env::current_exe()?);
        Ok([OsString::from("env"), program].into_iter().chain(self.build.iter().map(OsString::from)).collect())
    }
}

pub(super) async fn build(setup: &Setup, arguments: &Build) -> Result<ExitCode, Failure> {
    cancel_on_signal(setup.context.cancel.clone())?;
    let file = Project::read(&arguments.directory)?.build(setup, &arguments.directory).await?;
    print(&format!("{}\n", file.display()))
}

/// Runs a program that the person at this machine has named, with what they have in their environment. All that it prints goes to stderr as it
/// comes. Returns its status, or nothing if the person interrupts; it is ended then.
pub(super) async fn run(setup: &Setup, argv: &[OsString], directory: &Path) -> std::io::Result<Option<i32>> {
    let mut process = local::start_for_person(argv, directory)?;
    let mut passed = PassedOn::default();
    loop {
        let event = tokio::select! {
            event = process.next() => event?,
            () = setup.context.cancel.cancelled() => {
                process.end().await;
                return Ok(None);
            }
        };
        match event {
            ProcessEvent::Stdout(bytes) | ProcessEvent::Stderr(bytes) => passed.pass(&bytes),
            ProcessEvent::Exited(status) => return Ok(Some(status)),
        }
    }
}
