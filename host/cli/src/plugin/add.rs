//! `toolcrib plugin add`: a component into the user's directory of plugins, from a file, from the web or from a registry. It gets no rights.

use super::super::print;
use super::super::settings_file::{PLUGIN, SettingsFile};
use super::super::setup::{Setup, usage};
use super::super::terminal::confirm;
use super::{asked_rights, listed, no_plugin, open, other_names, own_directory, place, record, unavailable};
use ::config::{HostPattern, PluginSection};
use base::text::names::is_name;
use base::text::sanitize;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::tools::fetch::{Digest, Fetched, Source, Wanted};
use toolcrib::tools::manifest::Manifest;
use toolcrib::tools::provider::Component;

/// Hosts that a person is asked about for one plugin: tokens, files, and where these lead.
const MOST_ASKED: usize = 5;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  toolcrib plugin add build/word_count.wasm
  toolcrib plugin add oci://ghcr.io/example/word_count:1.4 --host pkg-containers.githubusercontent.com
  toolcrib plugin add https://example.com/word_count.wasm --digest sha256:…")]
pub(in super::super) struct Add {
    /// A file, https://…, or oci://HOST/REPOSITORY[:TAG][@sha256:…]
    source: OsString,
    /// The digest that the component must have, `sha256:` and 64 hex digits; a URL needs it
    #[arg(long, value_name = "DIGEST", value_parser = Digest::parse)]
    digest: Option<Digest>,
    /// Name the plugin so; default: as its URL or repository ends
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    hosts: Hosts,
    /// Replace a plugin of the same name that has other bytes
    #[arg(long)]
    replace: bool,
}

/// Where a component may be fetched from.
#[derive(clap::Args)]
pub(super) struct Hosts {
    /// Let it come from this host, too, where the one that you named redirects to it or has its tokens there: a name, `*.example.com`, an
    /// address or a range (repeatable)
    #[arg(long, value_name = "HOST", value_parser = HostPattern::exact)]
    host: Vec<HostPattern>,
}

pub(super) async fn add(setup: &Setup, arguments: &Add) -> Result<ExitCode, Failure> {
    let source = Source::parse(&arguments.source).map_err(usage)?;
    let digest = arguments.digest.as_ref();
    if let Source::File(file) = &source {
        if arguments.name.is_some() {
            return Err(usage("`--name` is for what comes from elsewhere").hint("rename your file"));
        }
        let component = open(setup, file)?;
        let found = component.manifest().sha256();
        if let Some(digest) = digest.filter(|digest| digest.hex() != found) {
            return Err(Failure::denied(format!("`{source}` has other bytes: sha256:{found}, not {digest}")));
        }
        return put(setup, &component, file, None, arguments.replace);
    }
    let name = arguments.name.as_deref().or_else(|| source.plugin_name()).filter(|name| is_name(name));
    let name = name.ok_or_else(|| {
        let wrong = arguments.name.as_deref().unwrap_or("its end").escape_debug().to_string();
        usage(format!("`{wrong}` is not a valid plugin name: use 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-`"))
            .hint("name the plugin with `--name NAME`")
    })?;
    let file = setup.dirs.plugins().join(format!("{name}.wasm"));
    let wanted = Wanted { source: &source, digest, hosts: &[], file: &file, known: None };
    let fetched = arguments.hosts.fetch(setup, &wanted).await?;
    let component = fetched.component().map_err(|refused| no_plugin(&refused))?;
    put(setup, &component, &file, Some(&fetched), arguments.replace)
}

impl Hosts {
    /// Fetches a component. A person who is there is asked about each host that the one before names.
    pub(super) async fn fetch(&self, setup: &Setup, wanted: &Wanted<'_>) -> Result<Fetched, Failure> {
        let mut hosts = self.host.clone();
        loop {
            let wanted = Wanted { hosts: &hosts, ..*wanted };
            let failure = match setup.host.fetch_plugin(&wanted, &setup.context).await {
                Ok(fetched) => return Ok(fetched),
                Err(failure) => failure,
            };
            let is_bounded = hosts.len() < self.host.len() + MOST_ASKED;
            match admitted(&failure).await? {
                Some(host) if is_bounded => hosts.push(host),
                Some(_) | None => return Err(failure),
            }
        }
    }
}

/// The host of a refusal, if a person admits it. An address is not asked about: to admit one would open it, so it has to be typed.
async fn admitted(failure: &Failure) -> Result<Option<HostPattern>, Failure> {
    let named = failure.data.as_ref().and_then(|data| data["host"].as_str());
    let host = named.and_then(|host| HostPattern::exact(host).ok());
    let Some(host) = host.filter(|host| matches!(host, HostPattern::Exact(_))) else { return Ok(None) };
    let question = format!("{}.\n", failure.message);
    let prompt = format!("May the plugin come from `{host}`? [y]es, [N]o > ");
    let answer = confirm(&sanitize::visible(&question), &prompt).await?;
    Ok(answer.filter(|is_yes| *is_yes).map(|_| host))
}

/// Puts a component into the user's directory, and writes down where it was fetched from. `given` has the words for its tools beside it.
fn put(
    setup: &Setup,
    component: &Component,
    given: &Path,
    fetched: Option<&Fetched>,
    replace: bool,
) -> Result<ExitCode, Failure> {
    let plugin = component.manifest();
    check(setup, component, given)?;
    let (place, source) = (place(setup, plugin), fetched.map(|fetched| &fetched.source));
    // Settings that cannot be written fail the command here, before anything is written.
    let settings = SettingsFile::of_user(&setup.sources)?;
    let directory = own_directory(setup)?;
    let file = format!("{}.wasm", plugin.name());
    // A file that cannot be read there, such as a link, counts as other bytes.
    let there = directory.read(&file).unwrap_or_else(|_| Some(Vec::new()));
    let bytes = component.bytes(&setup.settings.config.limits);
    let bytes = bytes.map_err(|reason| Failure::new(Kind::Unavailable, reason))?;
    let words_name = format!("{}.tool.toml", plugin.name());
    let words_there = directory.read(&words_name).unwrap_or_else(|_| Some(Vec::new()));
    let has_other_words = words_there.as_deref() != component.words().map(str::as_bytes);
    let is_other = there.as_deref().is_some_and(|there| there != &*bytes || has_other_words);
    if is_other && !replace {
        return Err(usage(format!("`{}` exists already, with other bytes or words", place.display()))
            .hint("add `--replace` to replace it; the new file does not get the rights of the old one"));
    }
    if is_other || there.is_none() {
        // The same bytes and words that were inspected: the files may have changed since. What was fetched has the words of its name that are there.
        match component.words() {
            Some(words) => directory.replace(&words_name, words.as_bytes()).map_err(unavailable)?,
            None if words_there.is_some() => directory.remove(OsStr::new(&words_name)).map_err(unavailable)?,
            None => {}
        }
        directory.replace(&file, &bytes).map_err(unavailable)?;
        record(setup, &format!("added {} {}{}", place.display(), plugin.sha256(), from(source)));
    }
    let pinned = remember(settings, plugin.name(), source)?;
    let unread = unread(fetched);
    let added = format!("added {} with {}.\n", place.display(), plugin.tools.join(", "));
    print(&format!("{added}{unread}{pinned}{}", next(plugin)))
}

/// Whether policy, and the names of other plugins, leave room for it.
pub(super) fn check(setup: &Setup, component: &Component, given: &Path) -> Result<(), Failure> {
    let plugin = component.manifest();
    setup.host.policy().check_locks(plugin)?;
    let place = place(setup, plugin).display().to_string();
    match setup.context.tools.conflict(plugin, Some(&place)) {
        None => Ok(()),
        Some(reason) => {
            Err(usage(format!("`{}` cannot be added: {reason}", plugin.name()))
                .hint(other_names(setup, component, given)))
        }
    }
}

/// Has the user's settings remember where a plugin is from, or nothing of it; returns what they say now.
pub(super) fn remember(mut settings: SettingsFile, name: &str, source: Option<&Source>) -> Result<String, Failure> {
    let section = settings.section::<PluginSection>(PLUGIN, name)?;
    let source = source.and_then(Source::remembered);
    let now = PluginSection { source: source.clone(), ..section.clone() };
    if now == PluginSection::default() && now != section {
        settings.remove(PLUGIN, name)?;
    } else if now != section {
        settings.write(PLUGIN, name, &now)?;
    }
    let said =
        |source| format!("{} says where it is from: [plugin.{name}] source = {source:?}\n", shown(settings.named()));
    Ok(source.map(said).unwrap_or_default())
}

fn shown(path: &Path) -> String {
    sanitize::visible(&path.display().to_string()).into_owned()
}

/// Where a plugin is from, as the record says it.
pub(super) fn from(source: Option<&Source>) -> String {
    source.and_then(Source::remembered).map(|source| format!(" from {source}")).unwrap_or_default()
}

/// What else the artifact has.
pub(super) fn unread(fetched: Option<&Fetched>) -> String {
    match fetched.map(|fetched| fetched.unread.as_slice()) {
        None | Some([]) => String::new(),
        Some(types) => format!("Not read: what else the artifact has ({}).\n", types.join(", ")),
    }
}

/// What a person does next with a plugin that has no rights.
pub(super) fn next(plugin: &Manifest) -> String {
    let asked = asked_rights(plugin);
    match asked.as_slice() {
        [] => "It asks for no rights.\n".into(),
        asked => format!(
            "It has no rights yet, and asks to {}. To allow it, name what it may do:\n  toolcrib plugin allow {} {}\n",
            listed(asked.iter().map(|(what, _)| *what), ", "),
            plugin.name(),
            listed(asked.iter().map(|(_, option)| *option), " ")
        ),
    }
}
