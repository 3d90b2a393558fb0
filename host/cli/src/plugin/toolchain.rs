//! `toolcrib plugin doctor`: whether this machine has what a language needs to build a plugin.

use super::super::print_json;
use super::super::report::{Report, Verdict};
use super::project::{FILE, Lang, Project};
use backend::finish;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use toolcrib::backend::{Finished, local};
use toolcrib::envelope::Failure;

/// The target that Rust's components are built for.
const TARGET: &str = "wasm32-wasip2";
/// Variables that change what rustc makes of a plugin: flags of these replace those of the project.
const RUST_FLAGS: [&str; 4] = ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER"];
/// What installs the packages of PyPI that a project names.
const VENV: &str = "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt";
/// What installs the generator of bindings for Go and C.
const GENERATOR: &str = "cargo install wit-bindgen-cli@0.63.0 --locked --no-default-features --features go,c";

#[derive(clap::Args)]
pub(in super::super) struct Doctor {
    /// The language; default: that of the project here, or all
    #[arg(value_enum)]
    lang: Option<Lang>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn doctor(arguments: &Doctor) -> Result<ExitCode, Failure> {
    let here = Path::new(".");
    let langs = match (arguments.lang, here.join(FILE).exists()) {
        (Some(lang), _) => vec![lang],
        (None, true) => vec![Project::read(here)?.lang],
        (None, false) => Lang::ALL.to_vec(),
    };
    let mut report = Report::default();
    for lang in langs {
        look_at(lang, here, &mut report).await;
    }
    if arguments.json {
        print_json(&report.to_json())?
    } else {
        report.page().print()?
    };
    Ok(ExitCode::from(u8::from(report.is_bad())))
}

/// What there is for a language, in a project's directory.
pub(super) async fn look(lang: Lang, directory: &Path) -> Report {
    let mut report = Report::default();
    look_at(lang, directory, &mut report).await;
    report
}

/// What installs all that a project of a language brings along.
pub(super) fn install(lang: Lang) -> String {
    match lang {
        Lang::Rust => "rustup target add wasm32-wasip2".into(),
        Lang::Js => "npm install".into(),
        Lang::Python => VENV.into(),
        Lang::Go | Lang::C => format!("{VENV} && {GENERATOR}"),
    }
}

async fn look_at(lang: Lang, directory: &Path, report: &mut Report) {
    match lang {
        Lang::Rust => rust(directory, report).await,
        Lang::Js => {
            tool(directory, "node", "install Node.js 20 or newer", (20, 0), report).await;
            tool(directory, "npm", "install npm", (0, 0), report).await;
            builder(lang, directory, "componentize-qjs", "node_modules/.bin/componentize-qjs", report);
        }
        Lang::Python => {
            tool(directory, "python3", "install Python 3.10 or newer", (3, 10), report).await;
            builder(lang, directory, "componentize-py", ".venv/bin/componentize-py", report);
        }
        Lang::Go => {
            let install = format!("install Go 1.27 or newer, or in the project's directory run: {VENV}");
            let places = [[".venv/bin/go", "version"], ["go", "version"]];
            first_of(directory, "go", &places, &install, (1, 27), report).await;
            generator(directory, report).await;
        }
        Lang::C => {
            let install = format!("install zig 0.17 or newer, or in the project's directory run: {VENV}");
            let places = [[".venv/bin/python-zig", "version"], ["zig", "version"]];
            first_of(directory, "zig", &places, &install, (0, 17), report).await;
            generator(directory, report).await;
        }
    }
}

/// What makes bindings of the contract.
async fn generator(directory: &Path, report: &mut Report) {
    let places = [[".venv/bin/wit-bindgen", "--version"], ["wit-bindgen", "--version"]];
    let install = format!("run: {GENERATOR}");
    first_of(directory, "wit-bindgen", &places, &install, (0, 63), report).await;
}

async fn rust(directory: &Path, report: &mut Report) {
    tool(directory, "cargo", "install Rust with rustup: https://rustup.rs", (1, 95), report).await;
    let libraries = ask(directory, "rustc", &["--print", "target-libdir", "--target", TARGET]).await;
    if libraries.is_ok_and(|libraries| Path::new(&libraries).is_dir()) {
        report.line(Verdict::Good, "target", TARGET);
    } else {
        report.line(Verdict::Bad, "target", format!("{TARGET} is missing: {}", install(Lang::Rust)));
    }
    for variable in RUST_FLAGS.into_iter().filter(|variable| std::env::var_os(variable).is_some()) {
        let finding = format!("{variable} is set, and changes how the plugin is built: unset it");
        report.line(Verdict::Note, "environment", finding);
    }
}

/// A program that is started and says its version.
async fn tool(directory: &Path, program: &'static str, install: &str, least: (u32, u32), report: &mut Report) {
    first_of(directory, program, &[[program, "--version"]], install, least, report).await;
}

/// The same, for one that is in the first of several places.
async fn first_of(
    directory: &Path,
    program: &'static str,
    places: &[[&str; 2]],
    install: &str,
    least: (u32, u32),
    report: &mut Report,
) {
    let mut found = Err("missing".to_owned());
    for [place, argument] in places {
        found = ask(directory, place, &[argument]).await;
        if found.is_ok() {
            break;
        }
    }
    match found {
        Ok(said) if version(&said).is_some_and(|version| version < least) => {
            report.line(Verdict::Bad, program, format!("{said} is too old: {install}"));
        }
        Ok(said) => report.line(Verdict::Good, program, said),
        Err(fault) => report.line(Verdict::Bad, program, format!("{fault}: {install}")),
    }
}

/// The first two numbers of what a program says of its version.
fn version(said: &str) -> Option<(u32, u32)> {
    let begin = said.find(|c: char| c.is_ascii_digit())?;
    let mut numbers = said[begin..].split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next().and_then(Result::ok).unwrap_or_default()))
}

/// A program that each project has of its own.
fn builder(lang: Lang, directory: &Path, what: &'static str, program: &str, report: &mut Report) {
    let file = directory.join(program);
    if file.exists() {
        report.line(Verdict::Good, what, file.display().to_string());
    } else if directory.join(FILE).exists() {
        report.line(Verdict::Bad, what, format!("missing: in the project's directory run: {}", install(lang)));
    } else {
        report.line(Verdict::Note, what, format!("each project installs its own: {}", install(lang)));
    }
}

/// The first line that a program prints.
async fn ask(directory: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    let argv: Vec<OsString> = [program].iter().chain(arguments).map(OsString::from).collect();
    let directory = if directory.is_dir() { directory } else { Path::new(".") };
    let process = local::start_for_person(&argv, directory).map_err(|_| "missing".to_owned())?;
    let Finished { status, stdout, .. } = finish(process).await.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&stdout);
    match status {
        0 => Ok(text.lines().next().unwrap_or_default().to_owned()),
        status => Err(format!("exits with {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_are_read_from_what_programs_say() {
        for (said, wanted) in [
            ("cargo 1.95.0 (f2d3ce0bd 2026-03-21)", Some((1, 95))),
            ("v20.20.2", Some((20, 20))),
            ("Python 3.11.7", Some((3, 11))),
            ("go version go1.27.3 linux/amd64", Some((1, 27))),
            ("wit-bindgen-cli 0.63.0", Some((0, 63))),
            ("11", Some((11, 0))),
            ("unknown", None),
        ] {
            assert_eq!(version(said), wanted, "{said}");
        }
    }
}
