//! The command line: a door. Each subcommand is a file; results go to stdout, everything else to stderr.

mod approve;
mod arguments;
mod audit;
mod call;
mod calls;
mod choice;
mod clients;
mod completions;
mod config;
mod doctor;
mod files;
mod global;
mod jobs;
mod man;
mod outside;
mod panes;
mod plugin;
mod policy;
mod process;
mod program;
mod progress;
mod question;
mod records;
mod report;
mod result;
mod run;
mod schedules;
mod screen;
mod secret;
mod sections;
mod serve;
mod settings_file;
mod setup;
mod store;
mod terminal;
mod tools;
mod toolset;
mod trust;
mod upstream;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use global::{Below, Branch, Global, PanesAt};
use screen::{notice, print, print_bytes, print_json, report};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use toolcrib::backend::local;
use toolcrib::envelope::{Failure, Kind};

/// A sandboxed tool host for AI agents.
///
/// Every tool is a WebAssembly component; it reaches the world only through capabilities that policy granted.
#[derive(Parser)]
#[command(name = "toolcrib", version = version(), propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes of `call`: 0 success, 1 internal, 2 usage, 3 unknown_tool, 4 invalid_arguments, 5 denied, \
6 limit, 7 timed_out, 8 cancelled (130 by Ctrl-C), 9 busy, 10 unavailable, 11 outcome_unknown, 12 execution_failed."
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// How long threads that still wait for something may delay the exit.
const LAST_THREADS: Duration = Duration::from_millis(100);
/// The exit code that a shell reports for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// What exits that could not begin: no status of a shell that ran.
const NO_CELL: u8 = 125;

/// Reads the command line, or ends the process with what is wrong with it.
fn parse() -> Cli {
    let mut command = Cli::command();
    let words: Vec<OsString> = std::env::args_os().collect();
    let parsed = command.try_get_matches_from_mut(&words).and_then(|matches| {
        let mut cli = Cli::from_arg_matches(&matches)?;
        cli.global.add_below(&matches).map(|()| cli)
    });
    parsed.unwrap_or_else(|error| screen::refuse(&with_shown_names(error, &command, &words).format(&mut command)))
}

/// Takes commands out of a tip that people are not shown: those that the program starts itself.
fn with_shown_names(mut error: clap::Error, command: &clap::Command, words: &[OsString]) -> clap::Error {
    let Some(ContextValue::Strings(names)) = error.remove(ContextKind::SuggestedSubcommand) else { return error };
    // Those that are hidden are commands of the program itself; one of `plugin` may have the same name.
    let is_below = words.iter().skip(1).any(|word| command.find_subcommand(word).is_some());
    let is_hidden = |name: &str| command.find_subcommand(name).is_some_and(clap::Command::is_hide_set);
    let names: Vec<String> = names.into_iter().filter(|name| is_below || !is_hidden(name)).collect();
    if !names.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
    }
    error
}

// Deferred: only the options of the subcommand that is called are made, which is a tenth of a short call.
#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// List the tools, or show one
    Tools(Below<tools::Arguments>),
    /// Call one tool and print its envelope
    Call(Below<call::Arguments>),
    /// Serve calls as JSON lines: requests on stdin, answers on stdout
    Run(Below<run::Arguments>),
    /// Serve the tools to an agent that speaks MCP, over stdin and stdout or over HTTP
    Serve(Below<serve::Arguments>),
    /// Have a client use these tools in place of its own shell, edit and web tools
    Setup(Below<clients::command::Arguments>),
    /// Run the jobs that agents have submitted
    Worker(Below<jobs::Worker>),
    /// List, show, cancel or adopt jobs, and print what they printed
    Jobs(Below<Branch<jobs::Arguments>>),
    /// List, show, pause, resume, adopt or remove what agents have set times for
    Schedules(Below<Branch<schedules::Arguments>>),
    /// List, inspect, allow or vet plugins
    Plugin(Below<Branch<plugin::Arguments>>),
    /// Print what declares a program as a tool
    Program(Below<Branch<program::Arguments>>),
    /// List, show, write or remove the notes of an agent
    Notes(Below<Branch<records::Notes>>),
    /// List, show or remove the memories of an agent
    Memory(Below<Branch<records::Memory>>),
    /// List, show, approve or move the tasks of an agent
    Tasks(Below<Branch<records::Tasks>>),
    /// Look at what plugins keep, copy it, or move it to another store
    Store(Below<Branch<store::Arguments>>),
    /// Print settings for a toolset
    Toolset(Below<Branch<toolset::Arguments>>),
    /// Keep, list or remove secrets, which no tool sees
    Secret(Below<Branch<secret::Arguments>>),
    /// Add, review, list or remove servers of the Model Context Protocol that others wrote
    Upstream(Below<Branch<upstream::Arguments>>),
    /// Join a managed tmux session, and see what the agent does
    Attach(Below<panes::Attach>),
    /// List the managed tmux sessions of this agent with their panes, or end those with no client attached
    Panes(Below<panes::Panes>),
    /// List the calls that run in your other Toolcrib programs, or end one
    Calls(Below<calls::Arguments>),
    /// Answer a question that another Toolcrib program asks
    Approve(Below<approve::Arguments>),
    /// Keep or drop what commands made that acts by itself
    Files(Below<Branch<files::Arguments>>),
    /// Say what a call may do and which line decides, and check or change the policy of this machine
    Policy(Below<Branch<policy::Arguments>>),
    /// Check or show the record of calls
    Audit(Below<Branch<audit::Arguments>>),
    /// Show the effective settings
    Config(Below<Branch<config::Arguments>>),
    /// Accept this project's toolcrib.toml as it is now
    Trust(Below<trust::Arguments>),
    /// Check this installation
    Doctor(Below<doctor::Arguments>),
    /// Compile a component from stdin to stdout, within limits; the host starts this for third-party plugins
    #[command(hide = true)]
    Compile(Below<Compile>),
    /// End the commands of the host that started this, once it is gone; the host starts this with its first command
    #[command(hide = true)]
    Watch(Below<Watch>),
    /// Run a shell in a cell, on this terminal; panes of confined commands run this
    #[command(hide = true)]
    Cell(Below<Cell>),
    /// Print the script that completes commands, options and tool names in a shell
    Completions(Below<completions::Arguments>),
    /// Print the manual page
    Man(Below<man::Arguments>),
}

#[derive(Args)]
struct Compile {
    /// CPU time, in milliseconds
    #[arg(long)]
    cpu_ms: u64,
    /// Memory, in MiB
    #[arg(long)]
    memory_mib: u64,
}

#[derive(Args)]
struct Watch {}

#[derive(Args)]
struct Cell {
    /// The file of the profile
    profile: PathBuf,
    /// Where the cell is
    address: String,
    /// Where the shell begins
    directory: PathBuf,
    /// The shell and its arguments
    #[arg(required = true, last = true)]
    argv: Vec<OsString>,
}

fn version() -> &'static str {
    concat!(env!("CARGO_PKG_VERSION"), " (wasmtime ", env!("WASMTIME_VERSION"), ")")
}

/// Parses the command line, runs it, and says how the process should exit.
fn main() -> ExitCode {
    let secrets = process::seal();
    completions::answer();
    let cli = parse();
    match &cli.command {
        Command::Compile(Below(limits)) => return compile(limits),
        Command::Watch(Below(Watch {})) => return watch(),
        Command::Cell(Below(shell)) => return cell(shell),
        _ => {}
    }
    local::own_children();
    local::answer_to_watch();
    local::answer_to_cell();
    let makes_many_calls = match &cli.command {
        Command::Serve(_) | Command::Run(_) | Command::Worker(_) => true,
        Command::Plugin(Below(arguments)) => arguments.below.serves(),
        _ => false,
    };
    let runtime = if makes_many_calls {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()
    } else {
        // One call at a time needs no further threads, which would have to be started first.
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    };
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return report(&Failure::new(Kind::Internal, format!("no threads to run on: {error}"))),
    };
    let code = runtime.block_on(dispatch(cli, secrets)).unwrap_or_else(|failure| {
        let code = report(&failure);
        // Outside of a call only a signal cancels.
        if failure.kind == Kind::Cancelled { ExitCode::from(INTERRUPTED) } else { code }
    });
    runtime.block_on(toolcrib::ended());
    // Dropping the tasks ends the tmux clients that they follow. A thread may still wait for a prompt or a file; nothing depends
    // on it.
    runtime.shutdown_timeout(LAST_THREADS);
    code
}

/// The child's side of compiling: no settings, no threads, plain words on stderr.
fn compile(limits: &Compile) -> ExitCode {
    match guest::sandbox::compile::serve(limits.cpu_ms, limits.memory_mib) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}

/// The watcher's side: nobody reads its errors.
fn watch() -> ExitCode {
    if local::watch().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The pane's side: without a cell there is no shell.
fn cell(shell: &Cell) -> ExitCode {
    let error = local::run_cell(&shell.profile, &shell.address, &shell.directory, &shell.argv);
    eprintln!("toolcrib: this shell cannot be confined, so it does not run: {error}");
    ExitCode::from(NO_CELL)
}

async fn dispatch(cli: Cli, secrets: process::Secrets) -> Result<ExitCode, Failure> {
    let global = &cli.global;
    match cli.command {
        Command::Tools(Below(arguments)) => tools::run(global, &arguments).await,
        Command::Call(Below(arguments)) => call::run(global, arguments).await,
        Command::Run(Below(arguments)) => run::run(global, &arguments).await,
        Command::Serve(Below(arguments)) => serve::run(global, arguments, secrets.token).await,
        Command::Setup(Below(arguments)) => clients::command::run(global, &arguments).await,
        Command::Worker(Below(jobs::Worker {})) => jobs::work(global).await,
        Command::Jobs(Below(arguments)) => jobs::run(global, arguments.below).await,
        Command::Schedules(Below(arguments)) => schedules::run(global, arguments.below).await,
        Command::Plugin(Below(arguments)) => plugin::run(global, arguments.below).await,
        Command::Program(Below(arguments)) => program::run(&arguments.below),
        Command::Notes(Below(arguments)) => records::notes(global, arguments.below).await,
        Command::Memory(Below(arguments)) => records::memory(global, arguments.below).await,
        Command::Tasks(Below(arguments)) => records::tasks(global, arguments.below).await,
        Command::Store(Below(arguments)) => store::run(global, &arguments.below).await,
        Command::Toolset(Below(arguments)) => toolset::run(global, &arguments.below).await,
        Command::Secret(Below(arguments)) => secret::run(global, arguments.below).await,
        Command::Upstream(Below(arguments)) => upstream::run(global, arguments.below).await,
        Command::Attach(Below(arguments)) => panes::attach(global, &arguments).await,
        Command::Panes(Below(arguments)) => panes::panes(global, &arguments).await,
        Command::Calls(Below(arguments)) => calls::run(&arguments).await,
        Command::Approve(Below(arguments)) => approve::run(global, &arguments).await,
        Command::Files(Below(arguments)) => files::run(global, &arguments.below).await,
        Command::Policy(Below(arguments)) => policy::run(global, &arguments.below).await,
        Command::Audit(Below(arguments)) => audit::run(global, arguments.below).await,
        Command::Config(Below(arguments)) => config::run(global, &arguments.below),
        Command::Trust(Below(arguments)) => trust::run(global, &arguments),
        Command::Doctor(Below(arguments)) => doctor::run(global, &arguments).await,
        // Reached only when somebody types it: `main` answers before a runtime is made.
        Command::Compile(Below(limits)) => Ok(compile(&limits)),
        Command::Watch(Below(Watch {})) => Ok(watch()),
        Command::Cell(Below(shell)) => Ok(cell(&shell)),
        Command::Completions(Below(arguments)) => completions::run(&arguments),
        Command::Man(Below(arguments)) => man::run(&arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_people_are_not_shown_is_in_no_tip() {
        let tip = |words: &[&str]| {
            let (mut command, words) = (Cli::command(), words.iter().map(OsString::from).collect::<Vec<_>>());
            let error = command.try_get_matches_from_mut(&words).expect_err("there is no such command");
            with_shown_names(error, &command, &words).format(&mut command).to_string()
        };
        let text = tip(&["toolcrib", "cal"]);
        assert!(text.contains("'call'") && !text.contains("'cell'"), "{text}");
        let text = tip(&["toolcrib", "plugin", "compil"]);
        assert!(text.contains("'compile'"), "{text}");
    }

    #[test]
    fn the_short_help_of_a_subcommand_has_its_own_options_alone() {
        let mut command = Cli::command();
        let mut help = |of: &str| {
            let error = command.try_get_matches_from_mut(["toolcrib", "audit", "rotate", of]).expect_err("a help page");
            error.to_string()
        };
        assert!(!help("-h").contains("--container") && help("-h").contains("--json"));
        assert!(help("--help").contains("Options of every subcommand:"));
    }
}
