//! `toolcrib plugin allow` and `deny`: the `[plugin.NAME]` section of the user's settings.
//!
//! How a section is written without touching the rest of that file is `settings_file.rs`.

use super::super::completions;
use super::super::print;
use super::super::settings_file::{PLUGIN, SettingsFile, table};
use super::super::setup::{Setup, usage};
use super::super::terminal::confirm;
use super::options::{Rights, entry, written};
use super::{asked_rights, listed, open, record, refuse_builtin};
use ::config::PluginSection;
use base::text::names::is_name;
use base::text::sanitize;
use clap_complete::ArgValueCompleter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use toml::Value;
use toolcrib::capability::Capability;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::tools::manifest::Manifest;
use toolcrib::tools::provider::Component;

#[derive(clap::Args)]
pub(in super::super) struct Allow {
    /// The component, or the name of an installed plugin
    #[arg(value_name = "FILE", add = ArgValueCompleter::new(completions::plugins_and_files))]
    plugin: PathBuf,
    #[command(flatten)]
    rights: Rights,
    /// Let it do nothing, whatever it asks for, and pin its definitions
    #[arg(long)]
    nothing: bool,
    /// Let these bytes keep the rights that other bytes under this name had
    #[arg(long)]
    keep: bool,
}

pub(super) async fn allow(setup: &Setup, arguments: &Allow) -> Result<ExitCode, Failure> {
    if arguments.nothing && (arguments.rights.is_some() || arguments.keep) {
        return Err(
            usage("`--nothing` cannot be combined with an option that gives a right").hint("omit one of the two")
        );
    }
    let component = find(setup, &arguments.plugin)?;
    let plugin = component.manifest().clone();
    let is_it = |other: &&Arc<Manifest>| other.id.is_builtin() && other.id.has_name_of(&plugin.id);
    let tools = &setup.context.tools;
    if let Some(builtin) = tools.plugins().chain(tools.barred()).find(is_it) {
        return Err(usage(format!(
            "a plugin `{}` came with Toolcrib, and the section of that name is for it",
            builtin.name()
        ))
        .hint("rename your file"));
    }
    setup.host.policy().check_locks(&plugin)?;
    let (name, sha256) = (plugin.name().to_owned(), plugin.sha256().to_owned());
    let mut file = SettingsFile::of_user(&setup.sources)?;
    let earlier = file.section::<PluginSection>(PLUGIN, &name)?;
    let is_same = earlier.sha256.as_ref().is_some_and(|digest| digest.eq_ignore_ascii_case(&sha256));
    let kept = if arguments.nothing {
        about_the_plugin(earlier)
    } else if is_same || !has_rights(&earlier) || keeps(&plugin, &earlier, arguments).await? {
        earlier
    } else {
        about_the_plugin(earlier)
    };
    let asked = asked_rights(&plugin);
    if !asked.is_empty() && !arguments.rights.is_some() && !has_rights(&kept) && !arguments.nothing {
        let whats = listed(asked.iter().map(|(what, _)| *what), ", ");
        let options = listed(asked.iter().map(|(_, option)| *option), " ");
        return Err(usage(format!("no option names what `{name}` may do; it asks to {whats}")).hint(format!(
            "`toolcrib plugin allow {} {options}`, or fewer of these options; `--nothing` where it does without",
            arguments.plugin.display()
        )));
    }
    let section = PluginSection {
        sha256: Some(sha256),
        definitions: Some(setup.host.definitions_of(component, &setup.context).await?),
        ..arguments.rights.added_to(kept)?
    };
    let shown = file.write(PLUGIN, &name, &section)?;
    record(setup, &format!("allowed {name}: {}", shown.trim_end().replace('\n', "; ")));
    // A directory's name may hold characters that a screen obeys or hides: they are shown as code points.
    print(&sanitize::visible(&format!("{} now says:\n\n[plugin.{name}]\n{shown}", file.named().display())))
}

pub(super) fn deny(setup: &Setup, name: &str) -> Result<ExitCode, Failure> {
    refuse_builtin(setup, name)?;
    let mut file = SettingsFile::of_user(&setup.sources)?;
    let earlier = file.section::<PluginSection>(PLUGIN, name)?;
    if earlier.sha256.is_none() && !has_rights(&earlier) {
        return Err(usage(format!("`{}` was not allowed anything", name.escape_debug()))
            .hint("`toolcrib config show --origin` says where each right comes from"));
    }
    // A plugin that was switched off stays off.
    match about_the_plugin(earlier) {
        nothing if nothing == PluginSection::default() => file.remove(PLUGIN, name)?,
        rest => _ = file.write(PLUGIN, name, &rest)?,
    }
    record(setup, &format!("denied {name}"));
    print(&format!("`{name}` has no rights now\n"))
}

/// Removes everything that the user's settings say about a plugin; returns whether there was more than where it came from.
pub(super) fn forget(setup: &Setup, name: &str) -> Result<bool, Failure> {
    let mut file = SettingsFile::of_user(&setup.sources)?;
    let section = file.section::<PluginSection>(PLUGIN, name)?;
    if section != PluginSection::default() {
        file.remove(PLUGIN, name)?;
    }
    Ok(PluginSection { source: None, ..section } != PluginSection::default())
}

/// What a section says of the plugin itself, whatever its bytes: all but its rights.
fn about_the_plugin(section: PluginSection) -> PluginSection {
    PluginSection { source: section.source, enabled: section.enabled, ..PluginSection::default() }
}

/// The plugin of a name, or the component of a file. The name comes first: a file of that name that somebody put into this directory is
/// not taken for the plugin (`./NAME` is always the file).
pub(super) fn find(setup: &Setup, named: &Path) -> Result<Component, Failure> {
    let (name, tools) = (named.to_str().filter(|name| is_name(name)), &setup.context.tools);
    let mut plugins = tools.plugins().chain(tools.barred());
    let loaded = plugins.find(|plugin| Some(plugin.name()) == name && !plugin.id.is_builtin());
    if let (None, Some(name)) = (loaded, name)
        && !named.exists()
    {
        let message = format!("there is no plugin `{name}` of your own, and no such file");
        return Err(Failure::new(Kind::Unavailable, message)
            .hint("`toolcrib plugin list` lists the plugins; of a file, give the path"));
    }
    open(setup, loaded.map_or(named, |plugin| Path::new(plugin.id.origin())))
}

/// Whether it gives anything: a key that grants something of a capability, but for a switch that is off, or a value, which may name secrets.
fn has_rights(section: &PluginSection) -> bool {
    let written = written(section);
    let mut keys = Capability::ALL.into_iter().flat_map(|capability| capability.section().grants);
    section.config.is_some()
        || keys.any(|key| entry(&written, key).is_some_and(|value| *value != Value::Boolean(false)))
}

/// Whether these bytes get the rights of other bytes under their name: `--keep`, or the answer of the person who was shown these.
async fn keeps(plugin: &Manifest, earlier: &PluginSection, arguments: &Allow) -> Result<bool, Failure> {
    if arguments.keep {
        return Ok(true);
    }
    let short = |digest: &str| digest.get(..12).unwrap_or(digest).to_owned();
    let (name, before, now) = (plugin.name(), earlier.sha256.as_deref().unwrap_or_default(), plugin.sha256());
    let rights = PluginSection { source: None, sha256: None, definitions: None, enabled: None, ..earlier.clone() };
    let rights = table(&rights).to_string().trim_end().replace('\n', "\n  ");
    let asked = asked_rights(plugin);
    let question = format!(
        "the bytes of `{name}` have changed since you allowed it ({} before, {} now). It was allowed:\n  {rights}\n\
         It now asks to {}.\n",
        short(before),
        short(now),
        listed(asked.iter().map(|(what, _)| *what), ", "),
    );
    let answer = confirm(&sanitize::visible(&question), "Keep what was allowed? [y]es, [N]o > ").await?;
    Ok(answer == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command};

    /// Hints print these options: each has to be one that `plugin allow` takes, and that gives a right.
    #[test]
    fn every_option_that_a_capability_names_is_one_of_allow() {
        let allow = Allow::augment_args(Command::new("allow"));
        for option in Capability::ALL.into_iter().flat_map(|capability| capability.options()) {
            let words = option.option.split(' ').map(|word| match word {
                "HOST" => "a.example.com",
                "DIR" => "/a",
                "KIND" => "message.send",
                "PROGRAM" => "git",
                "NAME" | "TOOL" => "jq",
                word => word,
            });
            let line = ["allow", "plugin"].into_iter().chain(words);
            let matches = allow.clone().try_get_matches_from(line).unwrap_or_else(|error| panic!("{error}"));
            let arguments = <Allow as clap::FromArgMatches>::from_arg_matches(&matches).unwrap();
            assert!(arguments.rights.is_some(), "{}", option.option);
        }
    }
}
