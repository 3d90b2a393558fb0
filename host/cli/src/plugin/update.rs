//! `toolcrib plugin update`: the newest version of a plugin, from where it came from, with what has changed. It starts without rights.

use super::super::completions;
use super::super::settings_file::{PLUGIN, SettingsFile};
use super::super::setup::{Setup, usage};
use super::super::{print, print_json};
use super::add::{Hosts, check, from, next, remember, unread};
use super::changes::{Change, changed, definitions, lines};
use super::{asked_rights, no_plugin, open, own_directory, record, refuse_builtin, unavailable};
use ::config::PluginSection;
use base::text::names::is_name;
use clap_complete::ArgValueCompleter;
use serde_json::json;
use std::process::ExitCode;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::tools::fetch::{Digest, Source, Wanted};
use toolcrib::tools::manifest::Manifest;

#[derive(clap::Args)]
pub(in super::super) struct Update {
    /// The plugin
    #[arg(add = ArgValueCompleter::new(completions::plugins))]
    name: String,
    /// The digest that the new component must have, `sha256:` and 64 hex digits; a URL needs it
    #[arg(long, value_name = "DIGEST", value_parser = Digest::parse)]
    digest: Option<Digest>,
    #[command(flatten)]
    hosts: Hosts,
    /// Accept that the new version imports, offers or asks for more
    #[arg(long)]
    widen: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn update(setup: &Setup, arguments: &Update) -> Result<ExitCode, Failure> {
    let name = &arguments.name;
    refuse_builtin(setup, name)?;
    let file = setup.dirs.plugins().join(format!("{name}.wasm"));
    if !is_name(name) || !file.exists() {
        let message = format!("there is no plugin `{}` in {}", name.escape_debug(), setup.dirs.plugins().display());
        return Err(usage(message).hint("`toolcrib plugin list` says where each plugin is"));
    }
    let settings = SettingsFile::of_user(&setup.sources)?;
    // The user's own word: what a project or an option says of a source counts for nothing.
    let source = newest(name, settings.section::<PluginSection>(PLUGIN, name)?.source)?;
    let old = open(setup, &file)?;
    let before = old.manifest().clone();
    let digest = arguments.digest.as_ref();
    let wanted = Wanted { source: &source, digest, hosts: &[], file: &file, known: Some(before.sha256()) };
    let fetched = arguments.hosts.fetch(setup, &wanted).await?;
    let Some(bytes) = &fetched.bytes else {
        remember(settings, name, Some(&fetched.source))?;
        let source = fetched.source.to_string();
        if arguments.json {
            return print_json(&json!({ "name": name, "source": source, "changes": null, "written": null }));
        }
        return print(&format!("`{name}` is up to date: {source} has the same bytes\n"));
    };
    let now = fetched.component().map_err(|refused| no_plugin(&refused))?;
    let plugin = now.manifest().clone();
    check(setup, &now, &file)?;
    let new = setup.host.definitions_of(now, &setup.context).await?;
    // One that cannot be asked any more says nothing.
    let old = setup.host.definitions_of(old, &setup.context).await.ok();
    let changes = changes(&before, &plugin, old.as_deref(), &new);
    let is_written = arguments.widen || !changes.iter().any(|change| change.widens);
    if is_written {
        let file = format!("{name}.wasm");
        own_directory(setup)?.replace(&file, bytes).map_err(unavailable)?;
        let place = setup.dirs.plugins().join(file);
        record(setup, &format!("updated {} {}{}", place.display(), plugin.sha256(), from(Some(&fetched.source))));
    }
    let refused = || {
        Failure::denied("not replaced: the new version would import, offer or ask for more than the one before")
            .hint("look at the lines marked `widens`, then repeat with `--widen`")
    };
    let pinned = if is_written { remember(settings, name, Some(&fetched.source))? } else { String::new() };
    if arguments.json {
        print_json(&json!({
            "name": name,
            "source": fetched.source.to_string(),
            "changes": changes.iter().map(Change::to_json).collect::<Vec<_>>(),
            "written": is_written.then_some(&file),
        }))?;
    } else {
        let (was, is) = (&before.sha256()[..12], &plugin.sha256()[..12]);
        print(&format!("{name}: {was} before, {is} now\n{}{}", lines(&changes), unread(Some(&fetched))))?;
    }
    match (is_written, arguments.json) {
        (false, _) => Err(refused()),
        (true, true) => Ok(ExitCode::SUCCESS),
        (true, false) => print(&format!("replaced {}.\n{pinned}{}", file.display(), next(&plugin))),
    }
}

/// Where the newest version of a plugin is: what its tag means now.
fn newest(name: &str, remembered: Option<String>) -> Result<Source, Failure> {
    let replace = |what: &str| format!("`toolcrib plugin add --replace {what}` takes another version");
    let Some(text) = remembered else {
        return Err(usage(format!("your settings do not say where `{name}` is from")).hint(replace("SOURCE")));
    };
    match Source::elsewhere(&text).map_err(usage)? {
        Source::Oci(reference) => reference.anew().map(Source::Oci).ok_or_else(|| {
            usage(format!("`{name}` is from `{reference}`, which names no tag, so there is no newer version"))
                .hint(replace("oci://HOST/REPOSITORY:TAG"))
        }),
        Source::Url(url) => Ok(Source::Url(url)),
        Source::File(file) => Err(Failure::new(Kind::Internal, format!("`{}` is a file", file.display()))),
    }
}

/// What changed, by the bytes and by what they say of their tools.
fn changes(before: &Manifest, now: &Manifest, old: Option<&str>, new: &str) -> Vec<Change> {
    let asked = |plugin: &Manifest| asked_rights(plugin).into_iter().map(|(what, _)| what).collect::<Vec<_>>();
    let imports = changed("import", &before.imports, &now.imports, true);
    let tools = changed("tool", &before.tools, &now.tools, true);
    let asks = changed("asks to", &asked(before), &asked(now), true);
    imports.into_iter().chain(tools).chain(asks).chain(definitions(old, new)).collect()
}
