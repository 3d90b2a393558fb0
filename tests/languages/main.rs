//! Plugins in each language that `plugin new` has a template for: made, built, checked, allowed and called as their authors do it. Then what was
//! not written for this host: a published program, and a component of another host.
//!
//! `tests/run` installs what builds all but Rust (`builders/`); without it these tests are skipped.

mod published;
mod templates;
mod time;
mod tools;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use toolcrib_tests::Program;
use toolcrib_tests::outcome::succeeded;

/// A language, and where a project has its tool.
#[derive(Clone, Copy, Debug)]
struct Lang {
    name: &'static str,
    /// The name of the language's tools in this directory.
    prefix: &'static str,
    source: &'static str,
    component: &'static str,
    /// Where a project expects its builders, and where they are installed.
    builders: Option<(&'static str, &'static str)>,
}

const RUST: Lang = Lang {
    name: "rust",
    prefix: "rust",
    source: "src/lib.rs",
    component: "target/wasm32-wasip2/release",
    builders: None,
};
const JS: Lang = Lang {
    name: "js",
    prefix: "js",
    source: "tool.js",
    component: "build",
    builders: Some(("node_modules", "node_modules")),
};
const PYTHON: Lang =
    Lang { name: "python", prefix: "py", source: "app.py", component: "build", builders: Some((".venv", "python")) };
const GO: Lang =
    Lang { name: "go", prefix: "go", source: "tool.go", component: "build", builders: Some((".venv", "python")) };
const C: Lang =
    Lang { name: "c", prefix: "c", source: "tool.c", component: "build", builders: Some((".venv", "python")) };

/// Where the builders are, if they are installed.
fn installed() -> Option<PathBuf> {
    std::env::var_os("TOOLCRIB_BUILDERS").map(PathBuf::from)
}

/// What everything in Go and C builds anew, such as their libraries, is built once.
fn with_caches(command: &mut Command) {
    if let Some(builders) = installed() {
        command.env("GOCACHE", builders.join("go-cache")).env("ZIG_GLOBAL_CACHE_DIR", builders.join("zig-cache"));
    }
}

/// A project of a new plugin, made by `plugin new`.
struct Project {
    program: Program,
    lang: Lang,
    name: &'static str,
}

impl Project {
    fn new(lang: Lang, name: &'static str, needs: &[&str]) -> Self {
        let program = Program::new();
        let needs = needs.join(",");
        let mut arguments = vec!["plugin", "new", name, "--lang", lang.name];
        if !needs.is_empty() {
            arguments.extend(["--needs", &needs]);
        }
        succeeded(&program.run(&arguments));
        let project = Self { program, lang, name };
        if let Some((wanted, there)) = lang.builders {
            let builders = installed().expect("the caller has looked").join(there);
            std::os::unix::fs::symlink(builders, project.path(wanted)).expect("a link to the builders");
        } else {
            // What every project builds anew is built once.
            let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugins");
            std::fs::create_dir_all(&target).expect("a directory for all projects");
            std::os::unix::fs::symlink(target, project.path("target")).expect("a link to it");
        }
        project
    }

    fn path(&self, file: &str) -> PathBuf {
        self.program.path(&format!("work/{}/{file}", self.name))
    }

    /// Runs `toolcrib` in the directory that the project is in, with the person's own environment: builders need it.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.program.command(arguments);
        for variable in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
            if let Some(value) = std::env::var_os(variable) {
                command.env(variable, value);
            }
        }
        with_caches(&mut command);
        command.output().expect("the program ends")
    }

    fn build(&self) -> Output {
        self.run(&["plugin", "build", self.name])
    }

    /// Its component, by its path from where `toolcrib` is started.
    fn component(&self) -> String {
        format!("{}/{}/{}.wasm", self.name, self.lang.component, self.name)
    }
}
