//! `toolcrib plugin dev`: builds a project's plugin after each change, runs its cases, and calls it by lines that the author types.
//!
//! `dev/watch.rs` hears of changes; `dev/serve.rs` has a client call it instead.

mod serve;
mod watch;

use super::super::screen::{Say, print_beside, report};
use super::super::setup::usage;
use super::super::{Global, notice, print, print_json};
use super::cases::{Anew, Cases, Loaded, in_grants};
use super::project::Project;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncBufReadExt, BufReader};
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::{Failure, Kind};
use toolcrib::policy::approval::Nobody;
use toolcrib::tools::definition::signature;
use watch::Watched;

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
    /// Serve the plugin's tools to an agent that speaks MCP, over stdin and stdout, instead of reading lines that you type
    #[arg(long)]
    pub(super) serve: bool,
}

/// Who is at stdin and stdout.
#[derive(Clone, Copy, PartialEq)]
enum Front {
    /// The author, who types lines.
    Author,
    /// A client: what is for the author goes to stderr.
    Client,
}

impl Front {
    fn say(self) -> Say {
        match self {
            Self::Author => print,
            Self::Client => print_beside,
        }
    }
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
    front: Front,
}

pub(super) async fn dev(global: &Global, arguments: &Dev) -> Result<ExitCode, Failure> {
    let global = &global.with_whole_paths()?;
    Project::enter(&arguments.directory)?;
    let watched = Watched::begin()?;
    if arguments.serve { serve::serve(global, watched).await } else { by_lines(global, watched).await }
}

async fn by_lines(global: &Global, mut watched: Watched) -> Result<ExitCode, Failure> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut bench = None;
    build(global, &mut bench).await?;
    loop {
        prompt(bench.as_ref());
        let wish = tokio::select! {
            line = lines.next_line() => match line {
                Ok(Some(line)) => wish(&line, bench.as_ref()),
                Ok(None) | Err(_) => Ok(Wish::Quit),
            },
            changed = watched.changed() => Ok(changed.map_or(Wish::Quit, Wish::Changed)),
            () = interrupted(bench.as_ref()) => Ok(Wish::Quit),
        };
        match (wish, &bench) {
            (Ok(Wish::Quit), _) => return Ok(ExitCode::SUCCESS),
            (Ok(Wish::Nothing), _) => {}
            (Ok(Wish::Help), _) => _ = print(HELP)?,
            (Ok(Wish::Changed(path)), _) => {
                tell_changed(&path);
                build(global, &mut bench).await?;
            }
            (Ok(Wish::Build), _) => {
                watched.take();
                build(global, &mut bench).await?;
            }
            (Ok(Wish::Cases), Some(there)) => there.run_cases().await?,
            (Ok(Wish::Tools), Some(there)) => there.show_tools().await?,
            (Ok(Wish::Call(request)), Some(there)) => there.call(request).await?,
            (Ok(Wish::Cases | Wish::Tools | Wish::Call(_)), None) => notice("there is no plugin yet: its build failed"),
            (Err(failure), _) => _ = report(&failure),
        }
    }
}

fn tell_changed(path: &Path) {
    notice(&format!("changed: {}", path.display()));
}

/// Builds the project and runs its cases; where it cannot be built, what was there before stays. An error is that the author has interrupted it.
async fn build(global: &Global, bench: &mut Option<Bench>) -> Result<(), Failure> {
    match Bench::built(global, Front::Author).await? {
        Some(built) => bench.insert(built).check().await,
        None => {
            if bench.is_some() {
                notice("the build of before is still loaded");
            }
            Ok(())
        }
    }
}

/// Reports a failure. An error is that the author has interrupted what was done.
fn unless_interrupted(failure: Failure) -> Result<(), Failure> {
    if failure.kind == Kind::Cancelled {
        return Err(failure);
    }
    report(&failure);
    Ok(())
}

impl Bench {
    /// Builds the project and loads its plugin; none where that fails, which is reported. An error is that the author has interrupted it.
    async fn built(global: &Global, front: Front) -> Result<Option<Self>, Failure> {
        match Self::new(global, front).await {
            Ok(bench) => Ok(Some(bench)),
            Err(failure) => unless_interrupted(failure).map(|()| None),
        }
    }

    async fn new(global: &Global, front: Front) -> Result<Self, Failure> {
        // Both files may be what has changed.
        let (project, cases) = (Project::read(Path::new("."))?, Cases::read()?);
        let mut loaded = Loaded::new(global, &project, &cases).await?;
        // The terminal may be the client's own.
        if front == Front::Client && !global.yes {
            loaded.setup.context = loaded.setup.context.clone().approver(Arc::new(Nobody));
        }
        Ok(Self { loaded, cases, front })
    }

    /// Runs the cases of what was just built. An error is that the author has interrupted them.
    async fn check(&self) -> Result<(), Failure> {
        self.run_cases().await.or_else(unless_interrupted)
    }

    async fn run_cases(&self) -> Result<(), Failure> {
        let say = self.front.say();
        self.cases.run(&self.loaded, Anew::default(), say).await?.tell(&self.cases, say)
    }

    async fn show_tools(&self) -> Result<(), Failure> {
        let Loaded { setup, tools, .. } = &self.loaded;
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
            Err(failure) => {
                let hint = failure.hint.as_deref().map(in_grants);
                report(&Failure { hint, ..failure.clone() });
            }
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
