//! `toolcrib secret`: values that no tool sees, kept, listed and removed. None is an argument, and none is ever printed.
//!
//! The value goes into a file of its own beside the settings; what may be done with it is the `[secret.NAME]` section.

use super::completions;
use super::screen::{Table, print_json};
use super::settings_file::{SECRET, SettingsFile};
use super::setup::{dirs, load, sources, usage};
use super::{Global, audit, print, terminal};
use ::config::{HostPattern, SecretSection};
use base::disk::{OwnDir, told};
use base::text::names::is_name;
use base::text::sanitize;
use clap_complete::ArgValueCompleter;
use secrets::{MOST_BYTES, check_value};
use serde_json::json;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;
use toolcrib::config::{Config, Settings, Sources};
use toolcrib::dirs::Dirs;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::secrets::Secrets;

/// Where values are kept, below the directory of the settings.
const KEPT: &str = "secrets";

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// Keep the value of a secret, or say which program prints it
    ///
    /// The value is read from the terminal, without showing it, or from standard input. What it may be used for stays as it was, but for what
    /// the options name.
    #[command(
        after_help = "A program that runs already knows another value within a second, but another section only when it is started anew."
    )]
    Set {
        /// The secret
        #[arg(add = ArgValueCompleter::new(completions::secrets))]
        name: String,
        /// Let it go to this host, in the headers that `http.headers` of a plugin's section names (repeatable)
        #[arg(long, value_name = "HOST", value_parser = SecretSection::host)]
        host: Vec<HostPattern>,
        /// Let commands have it that name it, where `shell_secrets` under [tools] lists it
        #[arg(long)]
        env: bool,
        /// Keep no value: this program prints it when it is needed
        #[arg(last = true, value_name = "PROGRAM")]
        command: Vec<String>,
    },
    /// List the secrets: where each is, where it may go, and what is wrong with it
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a secret, and its value if it is kept here
    Remove {
        /// The secret
        #[arg(add = ArgValueCompleter::new(completions::secrets))]
        name: String,
    },
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> Result<ExitCode, Failure> {
    let dirs = dirs()?;
    let sources = sources(global, &dirs)?;
    match arguments {
        Arguments::Set { name, host, env, command } => set(&sources, &dirs, &name, host, env, command).await,
        Arguments::List { json } => list(&sources, &dirs, json),
        Arguments::Remove { name } => remove(&sources, &dirs, &name),
    }
}

async fn set(
    sources: &Sources,
    dirs: &Dirs,
    name: &str,
    hosts: Vec<HostPattern>,
    env: bool,
    command: Vec<String>,
) -> Result<ExitCode, Failure> {
    if !is_name(name) {
        return Err(usage(format!("`{}` is not the name of a secret", name.escape_debug()))
            .hint("use 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-`"));
    }
    let earlier: SecretSection = SettingsFile::of_user(sources)?.section(SECRET, name)?;
    let mut section = SecretSection { env: env || earlier.env, ..earlier.clone() };
    if !hosts.is_empty() {
        section.hosts = hosts;
    }
    let shown = if command.is_empty() {
        let value = read_value(name).await?;
        keep(sources, dirs, name, &mut section, &value)?
    } else {
        forget(dirs, name, &earlier)?;
        (section.file, section.command) = (None, Some(command));
        write(sources, dirs, name, &section)?
    };
    let use_it = match (section.hosts.is_empty(), section.env) {
        (true, false) => "it goes nowhere yet: see `--host` and `--env` of `toolcrib secret set`\n".to_owned(),
        (false, _) => format!(
            "a plugin's requests get it by a header in its section, such as\nhttp.headers = {{ authorization = \"Bearer ${{secret:{name}}}\" }}\n"
        ),
        (true, true) => format!("commands get it that name it, once `shell_secrets` under [tools] lists \"{name}\"\n"),
    };
    let named = SettingsFile::of_user(sources)?.named().display().to_string();
    print(&sanitize::visible(&format!("{named} now says:\n\n[secret.{name}]\n{shown}\n{use_it}")))
}

/// Keeps a value, and writes the section of its secret; returns that.
pub(super) fn keep(
    sources: &Sources,
    dirs: &Dirs,
    name: &str,
    section: &mut SecretSection,
    value: &[u8],
) -> Result<String, Failure> {
    if let Err(why) = check_value(value) {
        return Err(usage(format!("the value of `{name}` cannot be kept: {why}")));
    }
    let kept = kept(dirs)?;
    kept.replace(name, value).map_err(unusable)?;
    (section.file, section.command) = (Some(kept.path().join(name)), None);
    write(sources, dirs, name, section)
}

/// Writes a section; returns it.
fn write(sources: &Sources, dirs: &Dirs, name: &str, section: &SecretSection) -> Result<String, Failure> {
    let shown = SettingsFile::of_user(sources)?.write(SECRET, name, section)?;
    record(sources, dirs, &format!("set secret {name}: {}", shown.trim_end().replace('\n', "; ")))?;
    Ok(shown)
}

fn list(sources: &Sources, dirs: &Dirs, as_json: bool) -> Result<ExitCode, Failure> {
    let settings = load(sources)?;
    let config = &settings.config;
    let secrets = Secrets::new(config, dirs)?;
    let listed = secrets.check().into_iter().map(|(name, found)| (name, &config.secret[name], found));
    if as_json {
        let shown = listed.map(|(name, section, found)| {
            json!({
                "name": name,
                "file": section.file,
                "command": section.command,
                "hosts": section.hosts,
                "env": section.env,
                "used_by": users(config, name),
                "problem": found.err(),
            })
        });
        return print_json(&shown.collect());
    }
    let mut table = Table::new(&["secret", "source", "hosts", "used by", "state"]);
    for (name, section, found) in listed {
        let source = match (&section.file, &section.command) {
            (Some(file), _) => file.display().to_string(),
            (None, Some(command)) => command.join(" "),
            (None, None) => String::new(),
        };
        let hosts = section.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let state =
            found.err().unwrap_or_else(|| if section.command.is_some() { "asked when needed" } else { "ok" }.into());
        let shown = [name, &source, &hosts, &users(config, name).join(", "), &state].map(sanitize::visible_line);
        table.row(shown.each_ref().map(String::as_str));
    }
    table.print()
}

/// What settings let have a secret: plugins by name, commands, and mail accounts by their sections.
fn users(config: &Config, name: &str) -> Vec<String> {
    let has_it = |headers: &std::collections::BTreeMap<_, ::config::Template>| {
        headers.values().any(|template| template.secrets().any(|secret| secret == name))
    };
    let plugins = config.plugin.iter().filter(|(_, section)| section.http.headers.as_ref().is_some_and(has_it));
    let commands = config.tools.shell_secrets.iter().any(|secret| secret == name).then(|| "commands".to_owned());
    let has_account = |(account, section): (&String, &::config::MailSection)| {
        section.secrets().any(|secret| secret == name).then(|| format!("mail.{account}"))
    };
    let accounts = config.mail.iter().filter_map(has_account);
    plugins.map(|(plugin, _)| plugin.clone()).chain(commands).chain(accounts).collect()
}

fn remove(sources: &Sources, dirs: &Dirs, name: &str) -> Result<ExitCode, Failure> {
    let file = SettingsFile::of_user(sources)?;
    let section: SecretSection = file.section(SECRET, name)?;
    if section == SecretSection::default() {
        return Err(usage(format!("there is no secret `{}` in {}", name.escape_debug(), file.named().display()))
            .hint("`toolcrib secret list` lists them"));
    }
    drop_whole(sources, dirs, name, &section)?;
    print(&format!("`{name}` is removed\n"))
}

/// Removes a secret, with its value if that is kept here.
pub(super) fn drop_whole(sources: &Sources, dirs: &Dirs, name: &str, section: &SecretSection) -> Result<(), Failure> {
    forget(dirs, name, section)?;
    SettingsFile::of_user(sources)?.remove(SECRET, name)?;
    record(sources, dirs, &format!("removed secret {name}"))
}

/// Removes a value that was kept here; a file elsewhere is the user's own.
fn forget(dirs: &Dirs, name: &str, section: &SecretSection) -> Result<(), Failure> {
    let kept = kept(dirs)?;
    if section.file.as_deref() != Some(&kept.path().join(name)) {
        return Ok(());
    }
    match kept.remove(OsStr::new(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

async fn read_value(name: &str) -> Result<Vec<u8>, Failure> {
    let unread = |error: io::Error| usage(format!("the value cannot be read: {error}"));
    if io::stdin().is_terminal() {
        let typed = terminal::secret(&format!("The value of {name}: ")).await.map_err(unread)?;
        return Ok(typed.into_bytes());
    }
    let mut value = Vec::new();
    io::stdin().take(MOST_BYTES as u64 + 1).read_to_end(&mut value).map_err(unread)?;
    Ok(value)
}

fn kept(dirs: &Dirs) -> Result<OwnDir, Failure> {
    OwnDir::open(&dirs.config).and_then(|config| config.below(KEPT)).map_err(unusable)
}

/// What cannot be loaded may be what this is about to mend, so that it has no record then.
fn record(sources: &Sources, dirs: &Dirs, what: &str) -> Result<(), Failure> {
    let settings: Settings = load(sources)?;
    audit::changed(&settings, dirs, what);
    Ok(())
}

fn unusable(error: io::Error) -> Failure {
    Failure::new(Kind::Unavailable, format!("secrets cannot be kept: {}", told(&error)))
}
