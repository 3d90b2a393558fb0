//! `toolcrib upstream`: servers of the Model Context Protocol that others wrote. What is written of one is what a person has accepted.
//!
//! `upstream/words.rs` shows what a server says, `upstream/add.rs` and `upstream/review.rs` say when it is shown; `upstream/import.rs` adds those
//! that other clients have.

mod add;
mod import;
mod review;
mod words;

use super::choice::Choice;
use super::completions;
use super::plugin::{record, unavailable};
use super::screen::{Page, Table, is_terminal};
use super::settings_file::{SettingsFile, UPSTREAM};
use super::setup::{Setup, usage};
use super::terminal::confirm;
use super::{Global, print, print_json};
use ::config::upstream_name_fault;
use base::text::sanitize;
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use toolcrib::config::UpstreamSection;
use toolcrib::envelope::Failure;
use toolcrib::upstream::Accepted;

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// Look at what a server offers, and accept it
    ///
    /// Starts the server once, in a cell, shows all that it says of itself and of its tools, and asks. A yes writes its [upstream.NAME] section
    /// to your settings, and what you accepted to a file beside them; without a yes nothing is written.
    Add(add::Add),
    /// Take over the servers that other clients have in their settings
    ///
    /// Reads these files and runs nothing that they name. Shows what it found, with variables by name alone, and which sections it would write. For
    /// each server it asks whether to start it in a cell, shows what it offers, and asks whether you accept it; a yes writes its section. What looks
    /// like a secret is kept as one.
    Import(import::Import),
    /// Show what has changed of a server since you accepted it, and accept that
    ///
    /// Starts the server once, in a cell, as its section says.
    Review(review::Review),
    /// List the servers, with what keeps one from being used
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a server from your settings, and what you accepted of it
    Remove {
        /// The server
        #[arg(add = ArgValueCompleter::new(completions::servers))]
        name: String,
    },
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    match arguments {
        Arguments::Add(arguments) => add::add(&setup, global.yes, &arguments).await,
        Arguments::Import(arguments) => import::import(global, setup, &arguments).await,
        Arguments::Review(arguments) => review::review(&setup, global.yes, &arguments).await,
        Arguments::List { json } => list(&setup, json),
        Arguments::Remove { name } => remove(&setup, &name),
    }
}

/// What a person decides on.
struct Proposal<'p> {
    name: &'p str,
    accepted: &'p Accepted,
    declared: &'p UpstreamSection,
    /// The lines of its section; none where the settings have them.
    section: Option<toml::Table>,
    /// What there is to read, for people and for programs.
    page: Page,
    json: Value,
}

impl Proposal<'_> {
    /// Shows it and asks. Nothing is written without a yes.
    async fn decide(mut self, setup: &Setup, is_yes: bool, as_json: bool) -> Result<ExitCode, Failure> {
        let answer = self.ask(setup, is_yes, as_json).await?;
        let told = if answer == Some(true) { Some(self.write(setup)?) } else { None };
        if as_json {
            self.json["written"] = told.is_some().into();
            print_json(&self.json)?;
        }
        match (told, answer) {
            (None, None) => Err(Failure::denied("nothing was written: nobody was asked")
                .hint("read what it offers, then repeat the command with `--yes`")),
            (None, Some(_)) => Err(Failure::denied("nothing was written: you did not accept it")),
            (Some(_), _) if as_json => Ok(ExitCode::SUCCESS),
            (Some(told), _) => print(&told),
        }
    }

    /// Shows it and asks; none where nobody can be asked. What a lock refuses is nobody's to accept.
    async fn ask(&self, setup: &Setup, is_yes: bool, as_json: bool) -> Result<Option<bool>, Failure> {
        let section = UpstreamSection { accepted: self.accepted.digest(), ..self.declared.clone() };
        setup.host.check_upstream(self.name, &section, self.accepted)?;
        if !as_json {
            self.page.print()?;
        }
        asked(is_yes, as_json, &format!("Accept the server `{}`? [y]es, [N]o > ", self.name)).await
    }

    /// Keeps what was accepted, and writes the section that names it; returns what to tell.
    fn write(&mut self, setup: &Setup) -> Result<String, Failure> {
        // As they are now: a person may have thought about it for long.
        let mut file = SettingsFile::of_user(&setup.sources)?;
        let mut section = match self.section.take() {
            Some(section) => section,
            None => file.section(UPSTREAM, self.name)?,
        };
        let digest = self.accepted.keep(&setup.dirs.config, self.name).map_err(unavailable)?;
        record(setup, &format!("accepted upstream {} {digest}", self.name));
        section.insert("accepted".into(), digest.into());
        let shown = file.write(UPSTREAM, self.name, &section)?;
        let told = format!("{} now says:\n\n[upstream.{}]\n{shown}", file.named().display(), self.name);
        Ok(sanitize::visible(&told).into_owned())
    }
}

/// A person's answer; none where nobody can be asked. A yes counts only from whoever could read what it is about.
async fn asked(is_yes: bool, as_json: bool, question: &str) -> Result<Option<bool>, Failure> {
    match is_yes {
        true => Ok(Some(true)),
        false if as_json || !is_terminal() => Ok(None),
        false => confirm("", question).await,
    }
}

/// What keeps a server from being used, as far as that is known without starting it.
pub(super) fn problem(setup: &Setup, name: &str, section: &UpstreamSection) -> Option<String> {
    let of_section =
        || section.fault().map(|fault| format!("its section {fault}; `toolcrib upstream remove {name}` removes it"));
    let of_command = || {
        let missing = section.command.first().filter(|program| !Path::new(program).is_file());
        missing.map(|program| format!("its program `{program}` is missing"))
    };
    let of_acceptance = || match Accepted::read(&setup.dirs.config, name, &section.accepted) {
        Err(why) => Some(why),
        Ok(accepted) => {
            let changed = accepted.changed_files(section);
            let review = format!("look at it with `toolcrib upstream review {name}`");
            let of_files = (!changed.is_empty()).then(|| format!("{}; {review}", changed.join(", ")));
            of_files.or_else(|| {
                let refusal = setup.host.check_upstream(name, section, &accepted).err()?;
                Some([Some(refusal.message), refusal.hint].into_iter().flatten().collect::<Vec<_>>().join("; "))
            })
        }
    };
    upstream_name_fault(name).or_else(of_section).or_else(of_command).or_else(of_acceptance)
}

fn list(setup: &Setup, as_json: bool) -> Result<ExitCode, Failure> {
    let mut table = Table::new(&["server", "tools", "confirm", "hosts", "place", "state"]);
    let mut servers = Vec::new();
    for (name, section) in &setup.settings.config.upstream {
        let accepted = Accepted::read(&setup.dirs.config, name, &section.accepted).ok();
        let tools = accepted.map(|accepted| {
            let offered = accepted.tools.values().filter(|tool| section.offers(&tool.name)).count();
            (offered, accepted.tools.len())
        });
        let problem = problem(setup, name, section);
        let hosts: Vec<String> = section.hosts.iter().map(ToString::to_string).collect();
        let counted = tools.map_or_else(|| "-".into(), |(offered, all)| format!("{offered} of {all}"));
        let state = problem.as_deref().unwrap_or("ok");
        let cells = [name, &counted, section.confirm.name(), &hosts.join(", "), &section.place(), state];
        table.row(cells.map(sanitize::visible_line).each_ref().map(String::as_str));
        servers.push(json!({
            "name": name,
            "offered": tools.map(|(offered, _)| offered),
            "accepted": tools.map(|(_, all)| all),
            "confirm": section.confirm.name(),
            "hosts": hosts,
            "command": section.command,
            "url": section.url,
            "problem": problem,
        }));
    }
    match (as_json, servers.is_empty()) {
        (true, _) => print_json(&servers.into()),
        (false, true) => {
            print("there are no servers; `toolcrib upstream add NAME -- PROGRAM` adds one, or with a URL\n")
        }
        (false, false) => table.print(),
    }
}

fn remove(setup: &Setup, name: &str) -> Result<ExitCode, Failure> {
    let mut file = SettingsFile::of_user(&setup.sources)?;
    section(&file, name)?;
    file.remove_whole(UPSTREAM, name)?;
    // Under another name nothing was kept.
    if upstream_name_fault(name).is_none() {
        Accepted::forget(&setup.dirs.config, name).map_err(unavailable)?;
    }
    record(setup, &format!("removed upstream {name}"));
    print(&sanitize::visible(&format!("removed `{name}` from {}\n", file.named().display())))
}

/// The section of a server.
fn section(file: &SettingsFile, name: &str) -> Result<UpstreamSection, Failure> {
    file.find(UPSTREAM, name)?.ok_or_else(|| {
        usage(format!("there is no server `{}` in {}", name.escape_debug(), file.named().display()))
            .hint("`toolcrib upstream list` lists them")
    })
}
