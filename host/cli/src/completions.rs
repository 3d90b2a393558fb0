//! `toolcrib completions`: a script for the shell, which asks this program what can come next, so it knows the current tools.

use super::setup::{dirs, load, plugin_directories, sources};
use super::{Cli, Global, print_bytes};
use ::config::Settings;
use ::policy::in_force::InForce;
use clap::{CommandFactory, FromArgMatches, ValueEnum};
use clap_complete::engine::{PathCompleter, ValueCompleter};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, CompletionCandidate, Shell};
use std::ffi::OsStr;
use std::process::ExitCode;
use std::sync::Arc;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::tools::registry::Registry;
use toolcrib::tools::source::PluginSource;
use toolcrib_builtins::BUILTINS;

/// Set by the script. Not one of the variables that are settings, which all begin with `TOOLCRIB_`.
const VARIABLE: &str = "_TOOLCRIB_COMPLETE";

#[derive(clap::Args)]
#[command(after_help = "Where the script goes:
  bash  source <(toolcrib completions bash)    in ~/.bashrc
  zsh   source <(toolcrib completions zsh)     in ~/.zshrc, after compinit
  fish  toolcrib completions fish | source     in ~/.config/fish/config.fish")]
pub(super) struct Arguments {
    /// The shell to print it for
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let name = arguments.shell.to_possible_value().expect("no shell is hidden");
    let shells = Shells::builtins();
    let shell = shells.completer(name.get_name()).expect("every shell has its script");
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, "toolcrib", "toolcrib", "toolcrib", &mut script)
        .map_err(|error| Failure::new(Kind::Internal, format!("the script could not be made: {error}")))?;
    print_bytes(&script)
}

/// Answers the script, and ends the process, when it was the script that started it.
pub(super) fn answer() {
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}

/// The names of all tools that begin so. What cannot be read offers nothing: a shell has nowhere to show an error.
pub(super) fn tools(begun: &OsStr) -> Vec<CompletionCandidate> {
    offered(begun, registry().map(|tools| tools.plugins().flat_map(|plugin| plugin.tools.clone()).collect()))
}

/// Likewise the names of plugins that the user has added.
pub(super) fn plugins(begun: &OsStr) -> Vec<CompletionCandidate> {
    let names = |tools: Registry| {
        let own =
            tools.plugins().chain(tools.barred()).filter(|plugin| !plugin.id.is_builtin() && !plugin.id.is_program());
        own.map(|plugin| plugin.name().to_owned()).collect()
    };
    offered(begun, registry().map(names))
}

/// Likewise these plugins, and files.
pub(super) fn plugins_and_files(begun: &OsStr) -> Vec<CompletionCandidate> {
    plugins(begun).into_iter().chain(PathCompleter::file().complete(begun)).collect()
}

/// Likewise the names of the servers in the settings.
pub(super) fn servers(begun: &OsStr) -> Vec<CompletionCandidate> {
    offered(begun, settings().map(|settings| settings.config.upstream.into_keys().collect()))
}

/// Likewise the names of secrets.
pub(super) fn secrets(begun: &OsStr) -> Vec<CompletionCandidate> {
    offered(begun, settings().map(|settings| settings.config.secret.into_keys().collect()))
}

fn offered(begun: &OsStr, names: Result<Vec<String>, Failure>) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy();
    let fitting = names.unwrap_or_default().into_iter().filter(|name| name.starts_with(&*begun));
    fitting.map(CompletionCandidate::new).collect()
}

fn settings() -> Result<Settings, Failure> {
    load(&sources(&typed(), &dirs()?)?)
}

fn registry() -> Result<Registry, Failure> {
    let (global, dirs, settings) = (typed(), dirs()?, settings()?);
    let plugins = plugin_directories(&global, &dirs, &mut Vec::new());
    let policy = Arc::new(InForce::new(&settings, &dirs, &[])?);
    Ok(PluginSource::new(BUILTINS, plugins, policy).load())
}

/// The options of the line so far, which may name other settings and further plugins.
fn typed() -> Global {
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(words).unwrap_or_default();
    let mut global = Global::from_arg_matches(&matches).unwrap_or_default();
    let _ = global.add_below(&matches);
    global
}
