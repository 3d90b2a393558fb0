//! The command line: a door. Each subcommand is a file; results go to stdout, everything else to stderr.

mod approve;
mod arguments;
mod audit;
mod call;
mod calls;
mod choice;
mod completions;
mod config;
mod doctor;
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

use clap::builder::PossibleValuesParser;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use screen::{notice, print, print_bytes, print_json, report};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use toolcrib::backend::container::Engine;
use toolcrib::backend::local;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::tools::families;

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

// Options that may appear before or after any subcommand, and add up. No doc comment: clap would show it as every subcommand's own.
#[derive(Args, Clone, Default)]
struct Global {
    /// Settings file to use instead of the user's own
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Operator's policy, added to /etc/toolcrib/policy.toml; it only narrows (repeatable)
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// Directory of plugins, added to the user's own (repeatable)
    #[arg(long, value_name = "DIR")]
    plugins: Vec<PathBuf>,
    /// A setting, such as tools.shell_confirm=false (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Family of tools to list besides those that always are; overrides the setting tools.offer (repeatable)
    #[arg(long, value_name = "FAMILY", value_parser = PossibleValuesParser::new(families()))]
    offer: Vec<String>,
    /// Run commands in this managed tmux session; without a value, in the agent's default one
    #[arg(long, value_name = "SESSION", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "no_tmux")]
    tmux: Option<String>,
    /// Run commands as plain processes, even if tmux is installed
    #[arg(long)]
    no_tmux: bool,
    /// Manage no panes, but look at and type into the tmux pane that this program is started in
    #[arg(long, conflicts_with_all = ["tmux", "no_tmux", "container", "ssh", "panes"])]
    own_pane: bool,
    /// Act in this container, which must be running already
    #[arg(long, value_name = "NAME", conflicts_with = "ssh")]
    container: Option<String>,
    /// The program that runs the container; default: whichever of docker and podman has it
    #[arg(long, value_parser = choice::one_of::<Engine>(), requires = "container")]
    engine: Option<Engine>,
    /// Act on this host: user@host:port, or a name of your ssh configuration
    #[arg(long, value_name = "TARGET")]
    ssh: Option<String>,
    /// Where to run the panes: in the container or host, or on this machine (then no tmux is needed there)
    #[arg(long, value_enum, value_name = "WHERE", conflicts_with = "no_tmux")]
    panes: Option<PanesAt>,
    /// Answer yes to every approval of this process
    #[arg(long, short)]
    yes: bool,
}

impl Global {
    /// The same for when this process has gone to another directory.
    fn with_whole_paths(&self) -> Result<Self, Failure> {
        let whole = |path: &PathBuf| std::path::absolute(path).map_err(|error| setup::cannot(path, &error));
        Ok(Self {
            config: self.config.as_ref().map(whole).transpose()?,
            policy: self.policy.iter().map(whole).collect::<Result<_, _>>()?,
            plugins: self.plugins.iter().map(whole).collect::<Result<_, _>>()?,
            ..self.clone()
        })
    }
}

/// Where panes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PanesAt {
    /// Where commands run
    There,
    /// On this machine: their shells run in the container or host, and end with the connection
    Host,
}

impl Global {
    /// The parser, with these options at every level. Clap's own global options forget the outer values of a list.
    fn at_every_level(command: clap::Command) -> clap::Command {
        let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        names.into_iter().fold(command, |command, name| {
            command.mut_subcommand(name, |sub| Self::at_every_level(Self::augment_args(sub)))
        })
    }

    /// Adds the options that appear after the subcommands.
    fn add_below(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let Some((_, below)) = matches.subcommand() else { return Ok(()) };
        let Self { config, policy, plugins, set, offer, tmux, no_tmux, own_pane, container, engine, ssh, panes, yes } =
            Self::from_arg_matches(below)?;
        self.config = config.or(self.config.take());
        self.policy.extend(policy);
        self.plugins.extend(plugins);
        self.set.extend(set);
        self.offer.extend(offer);
        self.tmux = tmux.or(self.tmux.take());
        self.no_tmux |= no_tmux;
        self.own_pane |= own_pane;
        self.container = container.or(self.container.take());
        self.engine = engine.or(self.engine);
        self.ssh = ssh.or(self.ssh.take());
        self.panes = panes.or(self.panes);
        self.yes |= yes;
        self.add_below(below)
    }
}

/// Everything that can appear on the command line.
fn grammar() -> clap::Command {
    Global::at_every_level(Cli::command())
}

/// Reads the command line, or ends the process with what is wrong with it.
fn parse() -> Cli {
    let mut command = grammar();
    let parsed = command.try_get_matches_from_mut(std::env::args_os()).and_then(|matches| {
        let mut cli = Cli::from_arg_matches(&matches)?;
        cli.global.add_below(&matches).map(|()| cli)
    });
    parsed.unwrap_or_else(|error| screen::refuse(&error.format(&mut command)))
}

#[derive(Subcommand)]
enum Command {
    /// List the tools, or show one
    Tools(tools::Arguments),
    /// Call one tool and print its envelope
    Call(call::Arguments),
    /// Serve calls as JSON lines: requests on stdin, answers on stdout
    Run(run::Arguments),
    /// Serve the tools to an agent that speaks MCP, over stdin and stdout or over HTTP
    Serve(serve::Arguments),
    /// Run the jobs that agents have submitted
    Worker(jobs::Worker),
    /// List, show, cancel or adopt jobs, and print what they printed
    #[command(subcommand)]
    Jobs(jobs::Arguments),
    /// List, show, pause, resume, adopt or remove what agents have set times for
    #[command(subcommand)]
    Schedules(schedules::Arguments),
    /// List, inspect, allow or vet plugins
    #[command(subcommand)]
    Plugin(plugin::Arguments),
    /// Print what declares a program as a tool
    #[command(subcommand)]
    Program(program::Arguments),
    /// List, show, write or remove the notes of an agent
    #[command(subcommand)]
    Notes(records::Notes),
    /// List, show or remove the memories of an agent
    #[command(subcommand)]
    Memory(records::Memory),
    /// List, show, approve or move the tasks of an agent
    #[command(subcommand)]
    Tasks(records::Tasks),
    /// Look at what plugins keep, copy it, or move it to another store
    #[command(subcommand)]
    Store(store::Arguments),
    /// Print settings for a toolset
    #[command(subcommand)]
    Toolset(toolset::Arguments),
    /// Keep, list or remove secrets, which no tool sees
    #[command(subcommand)]
    Secret(secret::Arguments),
    /// Add, review, list or remove servers of the Model Context Protocol that others wrote
    #[command(subcommand)]
    Upstream(upstream::Arguments),
    /// Join a managed tmux session, and see what the agent does
    Attach(panes::Attach),
    /// List the managed tmux sessions of this agent with their panes, or end those with no client attached
    Panes(panes::Panes),
    /// List the calls that run in your other Toolcrib programs, or end one
    Calls(calls::Arguments),
    /// Answer a question that another Toolcrib program asks
    Approve(approve::Arguments),
    /// Say what a call may do and which line decides, and check or change the policy of this machine
    #[command(subcommand)]
    Policy(policy::Arguments),
    /// Check or show the record of calls
    #[command(subcommand)]
    Audit(audit::Arguments),
    /// Show the effective settings
    #[command(subcommand)]
    Config(config::Arguments),
    /// Accept this project's toolcrib.toml as it is now
    Trust(trust::Arguments),
    /// Check this installation
    Doctor(doctor::Arguments),
    /// Compile a component from stdin to stdout, within limits; the host starts this for third-party plugins
    #[command(hide = true)]
    Compile {
        /// CPU time, in milliseconds
        #[arg(long)]
        cpu_ms: u64,
        /// Memory, in MiB
        #[arg(long)]
        memory_mib: u64,
    },
    /// End the commands of the host that started this, once it is gone; the host starts this with its first command
    #[command(hide = true)]
    Watch,
    /// Run a shell in a cell, on this terminal; panes of confined commands run this
    #[command(hide = true)]
    Cell {
        /// The file of the profile
        profile: PathBuf,
        /// Where the cell is
        address: String,
        /// Where the shell begins
        directory: PathBuf,
        /// The shell and its arguments
        #[arg(required = true, last = true)]
        argv: Vec<OsString>,
    },
    /// Print the script that completes commands, options and tool names in a shell
    Completions(completions::Arguments),
    /// Print the manual page
    Man(man::Arguments),
}

fn version() -> &'static str {
    concat!(env!("CARGO_PKG_VERSION"), " (wasmtime ", env!("WASMTIME_VERSION"), ")")
}

/// Parses the command line, runs it, and says how the process should exit.
fn main() -> ExitCode {
    let secrets = process::seal();
    completions::answer();
    let cli = parse();
    if let Command::Compile { cpu_ms, memory_mib } = cli.command {
        return compile(cpu_ms, memory_mib);
    }
    if matches!(cli.command, Command::Watch) {
        return watch();
    }
    if let Command::Cell { profile, address, directory, argv } = &cli.command {
        return cell(profile, address, directory, argv);
    }
    local::own_children();
    local::answer_to_watch();
    local::answer_to_cell();
    let makes_many_calls = match &cli.command {
        Command::Serve(_) | Command::Run(_) | Command::Worker(_) => true,
        Command::Plugin(arguments) => arguments.serves(),
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
fn compile(cpu_ms: u64, memory_mib: u64) -> ExitCode {
    match toolcrib::sandbox::compile::serve(cpu_ms, memory_mib) {
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
fn cell(profile: &Path, address: &str, directory: &Path, argv: &[OsString]) -> ExitCode {
    let error = local::run_cell(profile, address, directory, argv);
    eprintln!("toolcrib: this shell cannot be confined, so it does not run: {error}");
    ExitCode::from(NO_CELL)
}

async fn dispatch(cli: Cli, secrets: process::Secrets) -> Result<ExitCode, Failure> {
    let global = &cli.global;
    match cli.command {
        Command::Tools(arguments) => tools::run(global, &arguments).await,
        Command::Call(arguments) => call::run(global, arguments).await,
        Command::Run(arguments) => run::run(global, &arguments).await,
        Command::Serve(arguments) => serve::run(global, arguments, secrets.token).await,
        Command::Worker(jobs::Worker {}) => jobs::work(global).await,
        Command::Jobs(arguments) => jobs::run(global, arguments).await,
        Command::Schedules(arguments) => schedules::run(global, arguments).await,
        Command::Plugin(arguments) => plugin::run(global, arguments).await,
        Command::Program(arguments) => program::run(&arguments),
        Command::Notes(arguments) => records::notes(global, arguments).await,
        Command::Memory(arguments) => records::memory(global, arguments).await,
        Command::Tasks(arguments) => records::tasks(global, arguments).await,
        Command::Store(arguments) => store::run(global, &arguments).await,
        Command::Toolset(arguments) => toolset::run(global, &arguments).await,
        Command::Secret(arguments) => secret::run(global, arguments).await,
        Command::Upstream(arguments) => upstream::run(global, arguments).await,
        Command::Attach(arguments) => panes::attach(global, &arguments).await,
        Command::Panes(arguments) => panes::panes(global, &arguments).await,
        Command::Calls(arguments) => calls::run(&arguments).await,
        Command::Approve(arguments) => approve::run(&arguments).await,
        Command::Policy(arguments) => policy::run(global, &arguments).await,
        Command::Audit(arguments) => audit::run(global, arguments).await,
        Command::Config(arguments) => config::run(global, &arguments),
        Command::Trust(arguments) => trust::run(global, &arguments),
        Command::Doctor(arguments) => doctor::run(global, &arguments).await,
        // Reached only when somebody types it: `main` answers before a runtime is made.
        Command::Compile { cpu_ms, memory_mib } => Ok(compile(cpu_ms, memory_mib)),
        Command::Watch => Ok(watch()),
        Command::Cell { profile, address, directory, argv } => Ok(cell(&profile, &address, &directory, &argv)),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}
