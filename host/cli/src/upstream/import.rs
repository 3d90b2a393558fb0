//! `toolcrib upstream import`: the servers that a person has in other clients, as sections. The files of these clients are read, and nothing that
//! they name is run before a person has said so.
//!
//! The command line's `clients.rs` says where the files are, and the one here how they list servers; `read.rs` and `fields.rs` read them, `sections.rs` and `draft.rs` make sections of what they say, with the
//! values of `values.rs`; `shown.rs` shows that, `rewrite.rs` leaves one entry in their place.

mod clients;
mod draft;
mod fields;
mod looks;
mod packages;
mod read;
mod rewrite;
mod sections;
mod shown;
mod values;

use super::super::clients::{Places, codex};
use super::super::plugin::record;
use super::super::screen::is_terminal;
use super::super::secret;
use super::super::settings_file::{SECRET, SettingsFile, UPSTREAM};
use super::super::setup::{Setup, cannot, usage, working_directory};
use super::super::terminal;
use super::super::{Global, print, print_json, report};
use super::{add, asked};
use ::config::{HostPattern, SecretSection};
use base::text::sanitize;
use clients::Client;
use read::Entry;
use rewrite::Taken;
use sections::{Found, Outcome, Planned, World};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::upstream::Look;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  toolcrib upstream import
  toolcrib upstream import --from claude-desktop github --host api.github.com
  toolcrib upstream import --installed /srv/mcp --rewrite")]
pub(in super::super) struct Import {
    /// The servers to take over, by their names there; default: all
    name: Vec<String>,
    /// Read the files of this client alone (repeatable)
    #[arg(long, value_name = "CLIENT", value_enum)]
    from: Vec<Client>,
    /// Read this file alone, which is one of the client that `--from` names
    #[arg(long, value_name = "PATH", requires = "from")]
    file: Option<PathBuf>,
    /// Look for packages in this directory: of npm in its `node_modules`, of PyPI where it is a virtual environment (repeatable)
    #[arg(long, value_name = "DIR")]
    installed: Vec<PathBuf>,
    /// Let the servers that are programs connect to this host, and what is kept as their secrets go there (repeatable)
    #[arg(long, value_name = "HOST", value_parser = SecretSection::host)]
    host: Vec<HostPattern>,
    /// Leave one entry in the files of the clients, which is Toolcrib, in place of what was taken over; each file as it was is kept beside it
    #[arg(long)]
    rewrite: bool,
    /// Print JSON; without `--yes` nobody is asked then
    #[arg(long)]
    json: bool,
}

/// What became of a server.
enum State {
    /// It was not for this command to decide.
    Decided,
    Written,
    /// Its section was written, with nothing accepted.
    Bare,
    NotAsked,
    Refused,
    Failed(Failure),
}

pub(super) async fn import(global: &Global, setup: Setup, arguments: &Import) -> Result<ExitCode, Failure> {
    // Settings that cannot be read fail the command here, before anything is kept.
    SettingsFile::of_user(&setup.sources)?;
    let (entries, unread) = entries(&setup, arguments)?;
    let installed: Vec<PathBuf> =
        arguments.installed.iter().map(|directory| whole(directory)).collect::<Result<_, _>>()?;
    let world = World {
        home: &setup.dirs.home,
        own: &own_files(&setup, &working_directory()?),
        config: &setup.settings.config,
        environment: &setup.sources.environment,
        installed: &installed,
        hosts: &arguments.host,
        is_plugin: &|name| {
            let mut plugins = setup.context.tools.plugins().filter(|plugin| !plugin.id.is_upstream());
            plugins.any(|plugin| plugin.id.has_name(name))
        },
        are_named: !arguments.name.is_empty(),
    };
    let mut found = sections::found(&world, entries);
    if !arguments.json {
        unread.iter().for_each(|failure| _ = report(failure));
        shown::overview(&found).print()?;
    }
    let mut importer = Importer { global, setup, as_json: arguments.json };
    let mut states = Vec::new();
    for found in &mut found {
        let state = importer.one(found).await.unwrap_or_else(|failure| (State::Failed(failure), Value::Null));
        if let (State::Failed(failure), false) = (&state.0, arguments.json) {
            let named = Failure { message: format!("`{}`: {}", found.name, failure.message), ..failure.clone() };
            report(&named);
        }
        states.push(state);
    }
    let rewritten = if arguments.rewrite { importer.rewrite(&found, &states).await } else { Vec::new() };
    if arguments.json {
        print_json(&shown::json(&found, &states, &unread, &rewritten))?;
    }
    ended(&states, &unread, &rewritten)
}

/// The files of clients that are this user's own: all others came with a directory, as those of a cloned repository do.
fn own_files(setup: &Setup, here: &Path) -> BTreeSet<PathBuf> {
    let config = setup.dirs.config.parent().unwrap_or(&setup.dirs.config);
    let of_codex = codex(&setup.sources.environment, &setup.dirs.home);
    let nowhere = Path::new("");
    let places = Places { home: &setup.dirs.home, config, codex: &of_codex, here: nowhere };
    let files = Client::IMPORTED.iter().flat_map(|client| client.files(&places));
    // A variable may point into the directory that was cloned.
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (here, home) = (real(here), real(&setup.dirs.home));
    let project = here.ancestors().filter(|directory| directory.join(".git").exists()).last().unwrap_or(&here);
    let is_of_project = |file: &Path| real(file).starts_with(project) && !home.starts_with(project);
    files.filter(|file| file.is_absolute() && !is_of_project(file)).collect()
}

/// The servers of all files that are there, and what is wrong with the others.
fn entries(setup: &Setup, arguments: &Import) -> Result<(Vec<Entry>, Vec<Failure>), Failure> {
    let here = working_directory()?;
    let config = setup.dirs.config.parent().unwrap_or(&setup.dirs.config);
    let of_codex = codex(&setup.sources.environment, &setup.dirs.home);
    let places = Places { home: &setup.dirs.home, config, codex: &of_codex, here: &here };
    let clients = if arguments.from.is_empty() { &Client::IMPORTED[..] } else { &arguments.from };
    let files: Vec<(Client, PathBuf)> = match (&arguments.file, clients) {
        (None, clients) => {
            clients.iter().flat_map(|client| client.files(&places).into_iter().map(|file| (*client, file))).collect()
        }
        (Some(file), [client]) => vec![(*client, whole(file)?)],
        (Some(_), _) => return Err(usage("`--file` is of one client: give `--from` once")),
    };
    let (mut entries, mut unread, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (client, file) in files {
        // Two clients read `.mcp.json`.
        if !seen.insert(file.clone()) {
            continue;
        }
        match read::entries(client, &file, &here) {
            Ok(Some(mut read)) => {
                refuse(&mut read, client.refusals(&file, &places), &mut unread);
                entries.extend(read);
            }
            Ok(None) if arguments.file.is_some() => return Err(cannot(&file, &"there is no such file")),
            Ok(None) => {}
            Err(failure) => unread.push(failure),
        }
    }
    // A file can be read for its servers, and for those that it has switched off.
    let mut told = BTreeSet::new();
    unread.retain(|failure: &Failure| told.insert(failure.message.clone()));
    if let Some(missing) = arguments.name.iter().find(|name| !entries.iter().any(|entry| entry.name == **name)) {
        return Err(usage(format!("no client has a server `{}`", missing.escape_debug()))
            .hint("without a name, this command lists all servers that it finds"));
    }
    entries.retain(|entry| arguments.name.is_empty() || arguments.name.contains(&entry.name));
    Ok((entries, unread))
}

/// Marks the servers that other files of their client have switched off.
fn refuse(entries: &mut [Entry], refusals: Vec<(PathBuf, Vec<String>)>, unread: &mut Vec<Failure>) {
    for (file, keys) in refusals {
        match read::names(&file, &keys) {
            Ok(names) => entries.iter_mut().for_each(|entry| entry.is_refused |= names.contains(&entry.name)),
            Err(failure) => unread.push(failure),
        }
    }
}

fn whole(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| cannot(path, &error))
}

/// What the command ends with: the worst of what happened.
fn ended(states: &[(State, Value)], unread: &[Failure], rewritten: &[Rewritten]) -> Result<ExitCode, Failure> {
    let count = |is: fn(&State) -> bool| states.iter().filter(|(state, _)| is(state)).count();
    let written = count(|state| matches!(state, State::Written | State::Bare));
    let not_rewritten = rewritten.iter().filter(|rewritten| rewritten.kept.is_err()).count();
    if count(|state| matches!(state, State::NotAsked)) > 0 {
        return Err(Failure::denied("nothing was written: nobody was asked")
            .hint("read what was found, then repeat the command with `--yes`"));
    }
    let failed = count(|state| matches!(state, State::Failed(_)));
    if failed > 0 {
        let message = format!("{failed} of {} servers could not be taken over", states.len());
        return Err(Failure::new(Kind::Unavailable, message).hint("the reason of each was told above"));
    }
    if count(|state| matches!(state, State::Refused)) > 0 && written == 0 {
        return Err(Failure::denied("nothing was written: you did not accept it"));
    }
    match unread.len() + not_rewritten {
        0 => Ok(ExitCode::SUCCESS),
        files => {
            Err(usage(format!("{files} of the files could not be used")).hint("the reason of each was told above"))
        }
    }
}

/// A file that was to have one entry: where it is kept as it was, or why it stays.
struct Rewritten {
    file: PathBuf,
    kept: Result<PathBuf, Failure>,
}

/// Takes over one server after the other.
struct Importer<'g> {
    global: &'g Global,
    setup: Setup,
    as_json: bool,
}

impl Importer<'_> {
    /// Takes over a server, if a person wants that; returns what it offers, for programs.
    async fn one(&mut self, found: &mut Found) -> Result<(State, Value), Failure> {
        let Outcome::New(planned) = &mut found.outcome else { return Ok((State::Decided, Value::Null)) };
        let name = &found.name;
        self.bind(name, planned).await?;
        self.tell(|| shown::section(name, planned))?;
        let question = format!("Start `{name}` in a cell, and show what it offers? [y]es, [N]o > ");
        match asked(self.global.yes, self.as_json, &question).await? {
            None => return Ok((State::NotAsked, Value::Null)),
            Some(false) => return Ok((State::Refused, Value::Null)),
            Some(true) => {}
        }
        let mut kept = Vec::new();
        let state = match self.keep(planned, &mut kept).await {
            Ok(()) => self.accept(name, planned).await,
            Err(failure) => Err(failure),
        };
        if !matches!(state, Ok((State::Written | State::Bare, _))) {
            self.forget(&kept)?;
        }
        state
    }

    /// Has a person accept what a server offers.
    async fn accept(&self, name: &str, planned: &mut Planned) -> Result<(State, Value), Failure> {
        let look = match add::look(&self.setup, name, &planned.section).await {
            Ok(look) => look,
            Err(failure) => return self.without_look(name, planned, failure).await,
        };
        leave_out(planned, &look);
        let mut proposal = match add::proposal(name, &look, &planned.section) {
            Ok(proposal) => proposal,
            Err(failure) => return self.without_look(name, planned, failure).await,
        };
        if proposal.ask(&self.setup, self.global.yes, self.as_json).await? != Some(true) {
            return Ok((State::Refused, Value::Null));
        }
        let told = proposal.write(&self.setup)?;
        self.tell(|| Ok(told))?;
        Ok((State::Written, proposal.json))
    }

    /// Has a person name the host that its secrets may go to, where nothing else names one.
    async fn bind(&self, name: &str, planned: &mut Planned) -> Result<(), Failure> {
        if planned.secrets.is_empty() || !planned.bound.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = planned.secrets.iter().map(|secret| secret.name.as_str()).collect();
        let question = format!("Which host may `{}` go to, as `{name}` needs it? > ", names.join("`, `"));
        let is_asked = !self.as_json && !self.global.yes && is_terminal();
        let typed = if is_asked { terminal::line("", &question).await? } else { None };
        match typed {
            Some(host) if !host.is_empty() => planned.bound.push(SecretSection::host(&host).map_err(usage)?),
            // What would be written can be read all the same.
            None if !self.global.yes => return Ok(()),
            Some(_) | None => {
                let why = format!(
                    "`{}` would be kept as a secret, and no host is named that it may go to",
                    names.join("`, `")
                );
                let line = format!("`toolcrib upstream import {name} --host HOST`, such as `--host api.example.com`");
                return Err(usage(why).hint(line));
            }
        }
        planned.section.hosts.clone_from(&planned.bound);
        Ok(())
    }

    /// Keeps what the server needs as secrets; `kept` gets what their sections were before.
    async fn keep(&mut self, planned: &Planned, kept: &mut Vec<(String, SecretSection)>) -> Result<(), Failure> {
        if planned.bound.is_empty() && !planned.secrets.is_empty() {
            return Err(usage("no host is named that its secrets may go to").hint("name one with `--host HOST`"));
        }
        let (sources, dirs) = (&self.setup.sources, &self.setup.dirs);
        for found in &planned.secrets {
            let mut section: SecretSection = SettingsFile::of_user(sources)?.section(SECRET, &found.name)?;
            kept.push((found.name.clone(), section.clone()));
            let further = planned.bound.iter().filter(|host| !section.hosts.contains(host)).cloned();
            section.hosts.extend(further.collect::<Vec<_>>());
            secret::keep(sources, dirs, &found.name, &mut section, found.value.as_bytes())?;
        }
        if !planned.secrets.is_empty() {
            // A host knows the secrets that were there when it was made.
            self.setup = Box::pin(Setup::quiet(self.global)).await?;
        }
        Ok(())
    }

    /// Has secrets as they were before.
    fn forget(&self, kept: &[(String, SecretSection)]) -> Result<(), Failure> {
        let (sources, dirs) = (&self.setup.sources, &self.setup.dirs);
        kept.iter().rev().try_for_each(|(name, before)| {
            let mut file = SettingsFile::of_user(sources)?;
            if *before == SecretSection::default() {
                let section: SecretSection = file.section(SECRET, name)?;
                return secret::drop_whole(sources, dirs, name, &section);
            }
            file.write(SECRET, name, before).map(drop)
        })
    }

    /// What happens with a server that could not be looked at: its section is written only if a person wants it so.
    async fn without_look(&self, name: &str, planned: &Planned, failure: Failure) -> Result<(State, Value), Failure> {
        let line = shown::add_line(name, planned);
        if !self.as_json && !self.global.yes && planned.denied.is_empty() {
            report(&failure);
            let question = format!("Write the section of `{name}` all the same, with nothing accepted? [y]es, [N]o > ");
            if asked(false, false, &question).await? == Some(true) {
                let mut file = SettingsFile::of_user(&self.setup.sources)?;
                let section = file.write(UPSTREAM, name, &add::lines(&planned.section)?)?;
                record(&self.setup, &format!("wrote upstream {name}, with nothing accepted"));
                let told = format!(
                    "{} now says:\n\n[upstream.{name}]\n{section}\n\
                     `toolcrib upstream review {name}` shows what it offers, and accepts that if you do\n",
                    file.named().display()
                );
                self.tell(|| Ok(told))?;
                return Ok((State::Bare, Value::Null));
            }
        }
        let hint = failure.hint.iter().cloned().chain([format!("with what it needs besides: `{line}`")]);
        let hint = hint.collect::<Vec<_>>().join("; ");
        Ok((State::Failed(failure.hint(hint)), Value::Null))
    }

    /// Leaves one entry in each file that servers were taken over from.
    async fn rewrite(&self, found: &[Found], states: &[(State, Value)]) -> Vec<Rewritten> {
        let is_written = |(state, _): &(State, Value)| matches!(state, State::Written);
        let written: Vec<&str> = found
            .iter()
            .zip(states)
            .filter(|(_, state)| is_written(state))
            .map(|(found, _)| found.name.as_str())
            .collect();
        let taken = found.iter().filter(|found| match &found.outcome {
            Outcome::There => self.is_accepted(&found.name),
            Outcome::New(_) | Outcome::Same(_) => written.contains(&found.name.as_str()),
            Outcome::LeftOut(_) => false,
        });
        let taken: Vec<&Found> = taken.collect();
        let files: BTreeSet<&Path> = taken.iter().map(|found| found.entry.file.as_path()).collect();
        let mut rewritten = Vec::new();
        for file in files {
            let of_file: Vec<&&Found> = taken.iter().filter(|found| found.entry.file == file).collect();
            let question = format!(
                "Leave one entry in `{}` in place of {}? [y]es, [N]o > ",
                sanitize::visible_line(&file.display().to_string()),
                shown::names(&of_file)
            );
            match asked(self.global.yes, self.as_json, &question).await {
                Ok(Some(true)) => {}
                Ok(_) => continue,
                Err(failure) => {
                    rewritten.push(Rewritten { file: file.to_owned(), kept: Err(failure) });
                    continue;
                }
            }
            let servers =
                of_file.iter().map(|found| (found.entry.table.as_slice(), found.entry.name.as_str())).collect();
            let kept = rewrite::rewrite(file, &Taken { client: of_file[0].entry.client, servers });
            match &kept {
                Err(failure) if !self.as_json => _ = report(failure),
                Ok(kept) => {
                    _ = self.tell(|| {
                        Ok(format!(
                            "{} has one entry now; as it was, it is kept as {}\n",
                            file.display(),
                            kept.display()
                        ))
                    })
                }
                Err(_) => {}
            }
            rewritten.push(Rewritten { file: file.to_owned(), kept });
        }
        rewritten
    }

    /// Whether the settings have a server of this name that can be used.
    fn is_accepted(&self, name: &str) -> bool {
        self.setup.settings.config.upstream.get(name).is_some_and(|section| !section.accepted.is_empty())
    }

    /// Prints a text for a person. With `--json` all is printed at the end.
    fn tell(&self, text: impl FnOnce() -> Result<String, Failure>) -> Result<(), Failure> {
        if self.as_json {
            return Ok(());
        }
        print(&sanitize::visible(&text()?)).map(drop)
    }
}

/// Names the tools that are offered, now that it is known which there are.
fn leave_out(planned: &mut Planned, look: &Look) {
    if planned.denied.is_empty() {
        return;
    }
    let section = &planned.section;
    let names = look.accepted.tools.values().map(|tool| tool.name.clone());
    let offered = names.filter(|name| section.offers(name) && !planned.denied.contains(name));
    // Others could be read as patterns.
    let offered: Vec<String> = offered.filter(|name| !name.contains('*') && !name.contains(char::is_control)).collect();
    planned.section.tools = offered;
}
