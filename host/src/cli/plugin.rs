//! `toolcrib plugin`: which plugins there are, what one asks for, and allowing it by its bytes.

use super::setup::{Setup, usage};
use super::{Global, print, print_json};
use crate::config::{HostPattern, requests};
use crate::envelope::{Failure, Kind};
use crate::policy::files::canonical;
use crate::policy::is_shell;
use crate::registry::Plugin;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::json;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toml_edit::{Array, DocumentMut, Item, Table as TomlTable, value};

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// List the plugins, with those that were refused and why
    List,
    /// Say what a component offers and asks for, without running it
    Inspect {
        /// A component
        file: PathBuf,
    },
    /// Allow a component, by its bytes, to do what it asks for
    ///
    /// Writes its [plugin.NAME] section to your settings. Without options it may use the shell if it imports it, and read
    /// and write files in the current directory if it imports those functions. It may make requests to the hosts that
    /// `--host` names and to no others.
    Allow(Allow),
}

#[derive(clap::Args)]
pub(super) struct Allow {
    /// The component
    file: PathBuf,
    /// Let it read below this directory (repeatable)
    #[arg(long, value_name = "DIR")]
    read: Vec<PathBuf>,
    /// Let it write below this directory (repeatable)
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// Whether it may run commands
    #[arg(long, value_name = "BOOL")]
    shell: Option<bool>,
    /// Let it make requests to this host: a name, `*.example.com` for all below, an address or a range (repeatable)
    #[arg(long, value_name = "HOST", value_parser = HostPattern::exact)]
    host: Vec<HostPattern>,
    /// Let these requests have this method; GET and HEAD unless given (repeatable)
    #[arg(long, value_name = "METHOD", value_parser = requests::method, requires = "host")]
    method: Vec<String>,
    /// Let these requests go to this path and what is below it; everywhere unless given (repeatable)
    #[arg(long, value_name = "PREFIX", value_parser = requests::prefix, requires = "host")]
    path: Vec<String>,
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    match arguments {
        Arguments::List => list(&setup).await,
        Arguments::Inspect { file } => inspect(&setup, &file),
        Arguments::Allow(arguments) => allow(&setup, &arguments),
    }
}

async fn list(setup: &Setup) -> Result<ExitCode, Failure> {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["plugin", "tools", "asks for", "origin", "sha256", "state"]);
    for plugin in setup.context.tools.plugins() {
        let state =
            setup.host.ready(plugin, &setup.context).await.map_or_else(|failure| failure.message, |_| "loaded".into());
        let origin = if plugin.is_builtin() { "built in" } else { plugin.origin() };
        let capabilities = plugin.capabilities().join(", ");
        table.add_row([
            plugin.name(),
            &plugin.tool_names().join(", "),
            &capabilities,
            origin,
            &plugin.sha256()[..12],
            &state,
        ]);
    }
    for refused in setup.context.tools.refused() {
        table.add_row(["-", "-", "-", &refused.origin, "-", &format!("refused: {}", refused.reason)]);
    }
    if !io::stdout().is_terminal() {
        table.force_no_tty();
    }
    print(&format!("{table}\n"))
}

fn open(setup: &Setup, file: &Path) -> Result<Plugin, Failure> {
    Plugin::open(file, &setup.settings.config.limits).map_err(|refused| {
        Failure::new(Kind::Unavailable, format!("`{}` cannot be a plugin: {}", refused.origin, refused.reason))
    })
}

fn inspect(setup: &Setup, file: &Path) -> Result<ExitCode, Failure> {
    let plugin = open(setup, file)?;
    let explained = setup.host.policy().explain(&plugin, &setup.settings);
    print_json(&json!({
        "name": plugin.name(),
        "sha256": plugin.sha256(),
        "tools": plugin.tool_names(),
        "capabilities": plugin.capabilities(),
        "imports": plugin.imports(),
        "may": explained.iter().map(crate::policy::explain::Clause::to_json).collect::<Vec<_>>(),
    }))
}

fn allow(setup: &Setup, arguments: &Allow) -> Result<ExitCode, Failure> {
    let plugin = open(setup, &arguments.file)?;
    if let Some(builtin) = setup.context.tools.plugins().find(|other| other.is_builtin() && other.has_name_of(&plugin))
    {
        return Err(usage(format!(
            "the plugin `{}` came with Toolcrib, and its section speaks of that one",
            builtin.name()
        ))
        .hint("give your file another name"));
    }
    let named = setup.sources.user.clone().expect("the command line always names the user's settings");
    // Settings that are a link stay one.
    let file = canonical(&named);
    let unusable = |error: &dyn std::fmt::Display| usage(format!("`{}`: {error}", file.display()));
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unusable(&error)),
    };
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| unusable(&error))?;
    let section = section(&plugin, arguments)?;
    let shown = format!("[plugin.{}]\n{section}{}", plugin.name(), left_out(&plugin, arguments));
    let plugins = document.entry("plugin").or_insert_with(|| {
        let mut table = TomlTable::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let plugins = plugins.as_table_mut().ok_or_else(|| unusable(&"`plugin` is not a section"))?;
    match plugins.get_mut(plugin.name()).and_then(Item::as_table_mut) {
        Some(written) => rewrite(written, section),
        None => _ = plugins.insert(plugin.name(), Item::Table(section)),
    }
    crate::dirs::replace(&file, document.to_string().as_bytes()).map_err(|error| unusable(&error))?;
    print(&format!("{} now says:\n\n{shown}", named.display()))
}

/// Puts new rights in the place of old ones; comments round the section and its keys stay.
fn rewrite(written: &mut TomlTable, section: TomlTable) {
    let gone: Vec<String> =
        written.iter().map(|(key, _)| key.to_owned()).filter(|key| !section.contains_key(key)).collect();
    for key in gone {
        written.remove(&key);
    }
    for (key, item) in section {
        match (written.get_mut(&key).and_then(Item::as_value_mut), item) {
            (Some(old), Item::Value(mut new)) => {
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            (_, item) => _ = written.insert(&key, item),
        }
    }
}

/// The section that lets the plugin do what it asks for, or what the options say.
fn section(plugin: &Plugin, arguments: &Allow) -> Result<TomlTable, Failure> {
    let mut section = TomlTable::new();
    section.insert("sha256", value(plugin.sha256()));
    let capabilities = plugin.capabilities();
    if arguments.shell.is_some() || capabilities.into_iter().any(is_shell) {
        section.insert("shell", value(arguments.shell.unwrap_or(true)));
    }
    for (key, given) in [("read", &arguments.read), ("write", &arguments.write)] {
        let asked = plugin.calls("files", key);
        let directories =
            if given.is_empty() && asked { vec![super::setup::working_directory()?] } else { given.clone() };
        if !directories.is_empty() {
            let mut list = Array::new();
            for directory in directories {
                list.push(canonical(&super::setup::working_directory()?.join(directory)).display().to_string());
            }
            dotted(&mut section, "files")[key] = value(list);
        }
    }
    let hosts: Vec<String> = arguments.host.iter().map(ToString::to_string).collect();
    for (key, given) in [("hosts", &hosts), ("methods", &arguments.method), ("paths", &arguments.path)] {
        if !given.is_empty() {
            dotted(&mut section, "http")[key] = value(given.iter().map(String::as_str).collect::<Array>());
        }
    }
    Ok(section)
}

/// The part of a section that is written with dots: `files.read = …`.
fn dotted<'t>(section: &'t mut TomlTable, name: &str) -> &'t mut Item {
    section.entry(name).or_insert_with(|| {
        let mut part = TomlTable::new();
        part.set_dotted(true);
        Item::Table(part)
    })
}

/// Says what the plugin asks for and does not get, because nobody can guess which hosts it is for.
fn left_out(plugin: &Plugin, arguments: &Allow) -> String {
    if !arguments.host.is_empty() || !plugin.capabilities().contains(&"http") {
        return String::new();
    }
    format!(
        "\nIt also asks for `http`, and may make no requests until hosts are named:\n\
         `toolcrib plugin allow {} --host HOST`\n",
        arguments.file.display()
    )
}
