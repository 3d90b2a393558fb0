//! The options that may appear before or after any subcommand, and add up.

use super::choice;
use super::setup;
use ::config::FAMILIES;
use clap::builder::PossibleValuesParser;
use clap::{ArgMatches, Args, FromArgMatches, Subcommand};
use std::path::PathBuf;
use toolcrib::backend::container::Engine;
use toolcrib::envelope::Failure;

// No doc comment: clap would show it as the own words of every subcommand.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Options of every subcommand")]
pub(crate) struct Global {
    /// Settings file to use instead of the user's own
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Operator's policy, added to /etc/toolcrib/policy.toml; it only narrows (repeatable)
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub(crate) policy: Vec<PathBuf>,
    /// Directory of plugins, added to the user's own (repeatable)
    #[arg(long, hide_short_help = true, value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
    /// A setting, such as tools.shell_confirm=false (repeatable)
    #[arg(long, hide_short_help = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Family of tools to list besides those that always are; overrides the setting tools.offer (repeatable)
    #[arg(long, hide_short_help = true, value_name = "FAMILY", value_parser = PossibleValuesParser::new(FAMILIES))]
    pub(crate) offer: Vec<String>,
    /// Run commands in this managed tmux session; without a value, in the agent's default one
    #[arg(long, hide_short_help = true, value_name = "SESSION", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "no_tmux")]
    pub(crate) tmux: Option<String>,
    /// Run commands as plain processes, even if tmux is installed
    #[arg(long, hide_short_help = true)]
    pub(crate) no_tmux: bool,
    /// Manage no panes, but look at and type into the tmux pane that this program is started in
    #[arg(long, hide_short_help = true, conflicts_with_all = ["tmux", "no_tmux", "container", "ssh", "panes"])]
    pub(crate) own_pane: bool,
    /// Act in this container, which must be running already
    #[arg(long, hide_short_help = true, value_name = "NAME", conflicts_with = "ssh")]
    pub(crate) container: Option<String>,
    /// The program that runs the container; default: whichever of docker and podman has it
    #[arg(long, hide_short_help = true, value_parser = choice::one_of::<Engine>(), requires = "container")]
    pub(crate) engine: Option<Engine>,
    /// Act on this host: user@host:port, or a name of your ssh configuration
    #[arg(long, hide_short_help = true, value_name = "TARGET")]
    pub(crate) ssh: Option<String>,
    /// Where to run the panes: in the container or host, or on this machine (then no tmux is needed there)
    #[arg(long, hide_short_help = true, value_enum, value_name = "WHERE", conflicts_with = "no_tmux")]
    pub(crate) panes: Option<PanesAt>,
    /// Answer yes to every approval of this process
    #[arg(long, short, hide_short_help = true)]
    pub(crate) yes: bool,
}

impl Global {
    /// The same for when this process has gone to another directory.
    pub(crate) fn with_whole_paths(&self) -> Result<Self, Failure> {
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
pub(crate) enum PanesAt {
    /// Where commands run
    There,
    /// On this machine: their shells run in the container or host, and end with the connection
    Host,
}

impl Global {
    /// The parser of a subcommand, with these options at every level. Clap's own global options forget the outer values of a list.
    fn at_every_level(command: clap::Command) -> clap::Command {
        let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        let command = Self::augment_args(command);
        names.into_iter().fold(command, |command, name| command.mut_subcommand(name, Self::at_every_level))
    }

    /// Adds the options that appear after the subcommands.
    pub(crate) fn add_below(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
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

/// What a subcommand takes, with the options of [`Global`] beside it.
pub(crate) struct Below<T>(pub(crate) T);

impl<T: FromArgMatches> FromArgMatches for Below<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Below<T> {
    fn augment_args(command: clap::Command) -> clap::Command {
        Global::at_every_level(T::augment_args(command))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Global::at_every_level(T::augment_args_for_update(command))
    }
}

// The same of a subcommand that has subcommands: to clap these are arguments, as it defers nothing else. No doc comment, as above.
#[derive(Args)]
pub(crate) struct Branch<T: Subcommand> {
    #[command(subcommand)]
    pub(crate) below: T,
}
