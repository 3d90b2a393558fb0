//! `toolcrib plugin dev`: builds a project's plugin after each change, runs its cases, and calls it by lines that the author types.

use super::super::screen::report;
use super::super::setup::usage;
use super::super::{Global, notice, print, print_json};
use super::cases::{Cases, Loaded};
use super::project::Project;
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::{Failure, Kind};
use toolcrib::tools::definition::signature;

/// An editor that saves makes several changes; they are taken as one when none has come for so long.
const QUIET: Duration = Duration::from_millis(150);
/// Larger files are data: their changes are not seen.
const SOURCE_BYTES: u64 = 4 << 20;
/// Directories of a project that are not its sources: what builds write, and what package managers install.
const NOT_SOURCES: [&str; 5] = ["target", "build", "node_modules", "__pycache__", "toolcrib-sdk"];
const HELP: &str = "{\"name\":\"Ada\"}       calls the plugin's first tool with these arguments
TOOL {…}             calls another of its tools
:tools               lists its tools with their arguments
:cases               runs cases.toml once more
:build               builds once more
:quit                ends, as the end of the input does
";

#[derive(clap::Args)]
pub(in super::super) struct Dev {
    /// The project's directory
    #[arg(default_value = ".")]
    directory: PathBuf,
}

/// What the author wants next.
enum Wish {
    Build,
    /// A source may have another content.
    Changed(PathBuf),
    Cases,
    Tools,
    Call(Request),
    Help,
    Nothing,
    Quit,
}

/// The plugin as it was built last, with its cases.
struct Bench {
    loaded: Loaded,
    cases: Cases,
}

pub(super) async fn dev(global: &Global, arguments: &Dev) -> Result<ExitCode, Failure> {
    let global = &global.with_whole_paths()?;
    Project::enter(&arguments.directory)?;
    let (sender, mut changes) = mpsc::channel(1);
    let _watcher = watch(sender)?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut sources = Sources::now();
    let mut bench = Bench::built(global, None).await?;
    loop {
        prompt(bench.as_ref());
        let wish = tokio::select! {
            line = lines.next_line() => match line {
                Ok(Some(line)) => wish(&line, bench.as_ref()),
                Ok(None) | Err(_) => Ok(Wish::Quit),
            },
            changed = changes.recv() => Ok(changed.map_or(Wish::Quit, Wish::Changed)),
            () = interrupted(bench.as_ref()) => Ok(Wish::Quit),
        };
        match (wish, &bench) {
            (Ok(Wish::Quit), _) => return Ok(ExitCode::SUCCESS),
            (Ok(Wish::Nothing), _) => {}
            (Ok(Wish::Help), _) => _ = print(HELP)?,
            (Ok(Wish::Changed(path)), _) => {
                tokio::time::sleep(QUIET).await;
                while changes.try_recv().is_ok() {}
                // What a build, or a case, has written anew as it was is no reason for another build.
                let now = Sources::now();
                if now != sources {
                    notice(&format!("changed: {}", path.display()));
                    sources = now;
                    bench = Bench::built(global, bench).await?;
                }
            }
            (Ok(Wish::Build), _) => {
                sources = Sources::now();
                bench = Bench::built(global, bench).await?;
            }
            (Ok(Wish::Cases), Some(there)) => there.run_cases().await?,
            (Ok(Wish::Tools), Some(there)) => there.show_tools().await?,
            (Ok(Wish::Call(request)), Some(there)) => there.call(request).await?,
            (Ok(Wish::Cases | Wish::Tools | Wish::Call(_)), None) => notice("there is no plugin yet: its build failed"),
            (Err(failure), _) => _ = report(&failure),
        }
    }
}

impl Bench {
    /// Builds the project; where that fails, what was there before stays. An error is that the author has interrupted it.
    async fn built(global: &Global, before: Option<Self>) -> Result<Option<Self>, Failure> {
        let bench = Self::new(global).await;
        let ran = match &bench {
            Ok(bench) => bench.run_cases().await,
            Err(_) => Ok(()),
        };
        match (bench, ran) {
            (Err(failure), _) | (_, Err(failure)) if failure.kind == Kind::Cancelled => Err(failure),
            (Ok(bench), ran) => {
                _ = ran.map_err(|failure| report(&failure));
                Ok(Some(bench))
            }
            (Err(failure), _) => {
                report(&failure);
                Ok(before.inspect(|_| notice("the build of before is still loaded")))
            }
        }
    }

    async fn new(global: &Global) -> Result<Self, Failure> {
        // Both files may be what has changed.
        let (project, cases) = (Project::read(Path::new("."))?, Cases::read()?);
        let loaded = Loaded::new(global, &project, &cases).await?;
        Ok(Self { loaded, cases })
    }

    async fn run_cases(&self) -> Result<(), Failure> {
        self.cases.run(&self.loaded, false).await?.tell(&self.cases)
    }

    async fn show_tools(&self) -> Result<(), Failure> {
        let Loaded { setup, tools } = &self.loaded;
        let context = &setup.context;
        for name in tools {
            let ready = setup.host.ready(context.tools.plugin_of(name)?, context).await?;
            let tool = ready.tool(name).expect("a ready plugin has the tools that it showed");
            print(&format!(
                "{name} {}\n  {}\n",
                signature(&tool.definition().input_schema),
                tool.definition().summary
            ))?;
        }
        Ok(())
    }

    async fn call(&self, request: Request) -> Result<(), Failure> {
        let begin = Instant::now();
        let Loaded { setup, .. } = &self.loaded;
        let envelope = setup.host.call(request, &setup.context).await;
        let took = begin.elapsed().as_secs_f64() * 1000.0;
        match &envelope.outcome {
            Ok(_) => _ = print_json(&envelope.to_json())?,
            Err(failure) => _ = report(failure),
        }
        notice(&format!("{took:.1} ms"));
        Ok(())
    }
}

/// Reads a line.
fn wish(line: &str, bench: Option<&Bench>) -> Result<Wish, Failure> {
    let line = line.trim();
    let first = bench.and_then(|bench| bench.loaded.tools.first());
    match line {
        "" => return Ok(Wish::Nothing),
        ":help" => return Ok(Wish::Help),
        ":tools" => return Ok(Wish::Tools),
        ":cases" => return Ok(Wish::Cases),
        ":build" => return Ok(Wish::Build),
        ":quit" => return Ok(Wish::Quit),
        _ => {}
    }
    let (tool, arguments) = match line.split_once(char::is_whitespace) {
        _ if line.starts_with('{') => (first.cloned().unwrap_or_default(), line),
        Some((tool, arguments)) => (tool.to_owned(), arguments.trim()),
        None if line.starts_with(':') => {
            return Err(usage(format!("`{line}` is not known")).hint("`:help` says what is"));
        }
        None => (line.to_owned(), "{}"),
    };
    let arguments: Value = serde_json::from_str(arguments)
        .map_err(|error| usage(format!("`{arguments}` is not JSON: {error}")).hint("such as {\"name\":\"Ada\"}"))?;
    Ok(Wish::Call(Request { tool, arguments: Arguments::Json(arguments) }))
}

fn prompt(bench: Option<&Bench>) {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        let name = bench.and_then(|bench| bench.loaded.tools.first()).map_or("", String::as_str);
        let _ = write!(std::io::stdout(), "{name}> ").and_then(|()| std::io::stdout().flush());
    }
}

/// Returns when the author interrupts; never while there is no plugin, when the signal ends the process.
async fn interrupted(bench: Option<&Bench>) {
    match bench {
        Some(bench) => bench.loaded.setup.context.cancel.cancelled().await,
        None => std::future::pending().await,
    }
}

/// The sources of the project that this process is in, by their digests. What the project writes to as `out` is none.
#[derive(PartialEq)]
struct Sources(BTreeMap<PathBuf, Vec<u8>>);

impl Sources {
    fn now() -> Self {
        let here = Path::new(".");
        let out = Project::read(here).map(|project| project.out).unwrap_or_default();
        let mut files = BTreeMap::new();
        gather(here, Path::new(""), &mut files);
        files.remove(&out);
        Self(files)
    }
}

/// Digests the sources below a directory of the project.
fn gather(root: &Path, below: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(root.join(below)).into_iter().flatten().filter_map(Result::ok) {
        let path = below.join(entry.file_name());
        let kind = entry.file_type().ok().filter(|_| is_source(&path));
        match kind {
            Some(kind) if kind.is_dir() => gather(root, &path, files),
            Some(kind) if kind.is_file() && entry.metadata().is_ok_and(|found| found.len() <= SOURCE_BYTES) => {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                files.insert(path, Sha256::digest(bytes).to_vec());
            }
            Some(_) | None => {}
        }
    }
}

/// Watches the sources of the project that this process is in: its own files, and the directories that are not somebody else's.
fn watch(changed: mpsc::Sender<PathBuf>) -> Result<RecommendedWatcher, Failure> {
    let cannot = |error: notify::Error| usage(format!("the project cannot be watched: {error}"));
    let here = std::path::absolute(".").map_err(|error| usage(format!("the directory is gone: {error}")))?;
    let root = here.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        let Ok(event) = event else { return };
        let source = event.paths.iter().find(|path| is_source(path.strip_prefix(&root).unwrap_or(path)));
        // A build reads the sources; that is not a change.
        if let Some(path) = source.filter(|_| !event.kind.is_access()) {
            let _ = changed.try_send(path.strip_prefix(&root).unwrap_or(path).to_owned());
        }
    })
    .map_err(cannot)?;
    watcher.watch(&here, RecursiveMode::NonRecursive).map_err(cannot)?;
    let entries = std::fs::read_dir(&here).into_iter().flatten().filter_map(Result::ok);
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if is_source(Path::new(&entry.file_name())) {
            watcher.watch(&entry.path(), RecursiveMode::Recursive).map_err(cannot)?;
        }
    }
    Ok(watcher)
}

/// Whether a path of the project is a source: editors leave hidden files and copies behind, builders leave locks.
fn is_source(path: &Path) -> bool {
    let is_hidden = |name: &str| name.starts_with('.') || name.ends_with('~') || name.ends_with(".lock");
    let mut names = path.iter().filter_map(|name| name.to_str());
    let first = path.iter().next().and_then(|name| name.to_str()).unwrap_or_default();
    !path.as_os_str().is_empty() && !NOT_SOURCES.contains(&first) && !names.any(is_hidden)
}

#[cfg(test)]
mod tests {
    use super::is_source;
    use std::path::Path;

    #[test]
    fn only_what_an_author_writes_is_a_source() {
        for path in
            ["src/lib.rs", "tool.js", "app.py", "cases.toml", "toolcrib-plugin.toml", "fixtures/two.txt", "src/wit/a"]
        {
            assert!(is_source(Path::new(path)), "{path}");
        }
        for path in [
            "target/x",
            "build/a.wasm",
            "node_modules/a/b.js",
            ".git/index",
            "src/.lib.rs.swp",
            "a~",
            "Cargo.lock",
            "",
            "__pycache__/a",
        ] {
            assert!(!is_source(Path::new(path)), "{path}");
        }
    }
}
