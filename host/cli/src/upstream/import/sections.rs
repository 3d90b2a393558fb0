//! From a client's entry to a section: what would be written, which secrets would be kept, or why the server is left out.

use super::super::super::setup::usage;
use super::draft::Draft;
use super::fields::Fields;
use super::looks;
use super::read::Entry;
use ::config::{HostPattern, upstream_name_fault};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toolcrib::config::{Config, UpstreamSection};
use toolcrib::envelope::Failure;
use url::Url;

/// What stands in place of an argument that looks like a secret.
const HIDDEN: &str = "[hidden]";
/// Bytes of a server's name.
const NAME_BYTES: usize = 48;
/// What stands before it where a plugin has that name.
const PREFIX: &str = "mcp-";

/// What sections depend on besides the entries.
pub(super) struct World<'w> {
    pub(super) home: &'w Path,
    /// The files of clients that are this user's own.
    pub(super) own: &'w BTreeSet<PathBuf>,
    pub(super) config: &'w Config,
    pub(super) environment: &'w [(String, String)],
    pub(super) installed: &'w [PathBuf],
    /// Where the servers may connect to, and their secrets go.
    pub(super) hosts: &'w [HostPattern],
    /// Whether a plugin has this name.
    pub(super) is_plugin: &'w dyn Fn(&str) -> bool,
    /// The user named the servers, and so wants also those that are disabled.
    pub(super) are_named: bool,
}

/// An entry, and what comes of it.
pub(super) struct Found {
    pub(super) entry: Entry,
    /// The name of its section.
    pub(super) name: String,
    /// Its command line or its URL, without what looks like a secret.
    pub(super) shown: String,
    /// The names of its variables and of its headers.
    pub(super) variables: Vec<String>,
    pub(super) headers: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) unknown: Vec<String>,
    pub(super) outcome: Outcome,
}

/// What comes of an entry.
pub(super) enum Outcome {
    New(Box<Planned>),
    /// The settings have it.
    There,
    /// It is the same as one that comes before, of this file.
    Same(PathBuf),
    LeftOut(Failure),
}

/// A section that would be written.
pub(super) struct Planned {
    pub(super) section: UpstreamSection,
    /// What would be kept for it.
    pub(super) secrets: Vec<Secret>,
    /// Where these may go.
    pub(super) bound: Vec<HostPattern>,
    /// Tools that are not offered, by the server's own names. They are left out of `tools` once it is known which there are.
    pub(super) denied: Vec<String>,
}

/// A secret that is not kept yet.
pub(super) struct Secret {
    pub(super) name: String,
    pub(super) value: String,
    /// It was not in the client's file.
    pub(super) is_of_environment: bool,
}

/// Makes sections of entries, in order; of two of one name the first counts.
pub(super) fn found(world: &World, entries: Vec<Entry>) -> Vec<Found> {
    let mut earlier = BTreeMap::<String, (PathBuf, UpstreamSection)>::new();
    let mut values = BTreeMap::new();
    let mut all = Vec::new();
    for entry in entries {
        let mut found = one(world, entry, &mut values);
        if let Outcome::New(planned) = &found.outcome {
            let before =
                earlier.get(&found.name).map(|(file, section)| (file.clone(), is_alike(section, &planned.section)));
            match before {
                None => {
                    earlier.insert(found.name.clone(), (found.entry.file.clone(), planned.section.clone()));
                }
                Some((file, true)) => found.outcome = Outcome::Same(file),
                Some((file, false)) => {
                    let why = format!("`{}` has another server of this name, which comes first", file.display());
                    found.outcome = Outcome::LeftOut(usage(why));
                }
            }
        }
        all.push(found);
    }
    all
}

fn one(world: &World, entry: Entry, values: &mut BTreeMap<String, String>) -> Found {
    let own_name = section_name(&entry.name);
    let name = own_name.map(|name| if (world.is_plugin)(&name) { format!("{PREFIX}{name}") } else { name });
    let fields = Fields::of(&entry);
    let mut found = Found {
        name: name.clone().unwrap_or_default(),
        shown: String::new(),
        variables: Vec::new(),
        headers: Vec::new(),
        notes: Vec::new(),
        unknown: Vec::new(),
        outcome: Outcome::There,
        entry,
    };
    let mut fields = match fields {
        Ok(fields) => fields,
        Err(failure) => {
            found.outcome = Outcome::LeftOut(failure);
            return found;
        }
    };
    found.unknown = std::mem::take(&mut fields.unknown);
    found.notes = std::mem::take(&mut fields.notes);
    found.notes.extend(
        name.as_ref()
            .filter(|name| name.starts_with(PREFIX) && **name != found.entry.name)
            .map(|name| format!("a plugin has its name, so it is called `{name}` here")),
    );
    found.shown = shown(&fields);
    found.variables = fields.variables.iter().map(|(name, _)| name).chain(&fields.passed).cloned().collect();
    found.headers = fields.headers.iter().chain(&fields.passed_headers).map(|(name, _)| name.clone()).collect();
    let Some(name) = name else {
        let why = format!("`{}` cannot name a server, and nothing like it can", found.entry.name.escape_debug());
        found.outcome = Outcome::LeftOut(usage(why));
        return found;
    };
    let mut draft = Draft::new(world, &found.entry, &name, values);
    let planned = draft.planned(fields);
    let notes = std::mem::take(&mut draft.notes);
    found.outcome = outcome(world, &name, planned);
    found.notes.extend(notes);
    found
}

fn outcome(world: &World, name: &str, planned: Result<Planned, Failure>) -> Outcome {
    let remove = || format!("to replace it, first `toolcrib upstream remove {name}`");
    match (planned, world.config.upstream.get(name)) {
        (Ok(planned), None) => Outcome::New(Box::new(planned)),
        (Ok(planned), Some(known)) if is_alike(known, &planned.section) => Outcome::There,
        (Err(failure), None) => Outcome::LeftOut(failure),
        (Ok(_), Some(_)) => {
            Outcome::LeftOut(usage(format!("your settings have another server `{name}`")).hint(remove()))
        }
        (Err(_), Some(_)) => {
            Outcome::LeftOut(usage(format!("your settings have a server `{name}` already")).hint(remove()))
        }
    }
}

/// Whether two sections are about the same server: people change other lines once they have it.
fn is_alike(one: &UpstreamSection, other: &UpstreamSection) -> bool {
    one.command == other.command
        && one.url == other.url
        && one.variables == other.variables
        && one.headers == other.headers
}

/// The name of a section, where the client's own does not fit.
fn section_name(name: &str) -> Option<String> {
    let fitting = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' };
    let mut fit: String = name.chars().map(fitting).take(NAME_BYTES).collect();
    while fit.contains("__") {
        fit = fit.replace("__", "_");
    }
    let fit = fit.trim_matches('-').to_owned();
    upstream_name_fault(&fit).is_none().then_some(fit)
}

/// What is run or asked, without what looks like a secret.
fn shown(fields: &Fields) -> String {
    if fields.command.is_empty() && fields.url.is_empty() {
        return String::new();
    }
    if fields.command.is_empty() {
        return match Url::parse(&fields.url) {
            Ok(url) if looks::is_secret_in_url(&url) || looks::is_secret_text(&fields.url) => {
                format!("{}/{HIDDEN}", url.origin().ascii_serialization())
            }
            Ok(_) => fields.url.clone(),
            Err(_) => HIDDEN.into(),
        };
    }
    let secret = looks::in_arguments(&fields.command);
    let words = fields.command.iter().enumerate();
    let words = words.map(|(at, word)| if secret.contains(&at) { HIDDEN.into() } else { shell_word(word) });
    // What is a secret by its name in one place may stand without that name in another.
    let named = fields.variables.iter().chain(&fields.headers);
    let values = named.filter(|(name, value)| !value.is_empty() && looks::is_secret(name, value));
    values.fold(words.collect::<Vec<_>>().join(" "), |shown, (_, value)| shown.replace(value, HIDDEN))
}

/// A word as a shell reads it.
pub(super) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_are_made_to() {
        for (name, fit) in [
            ("github", Some("github")),
            ("My Server!", Some("My-Server")),
            ("a__b", Some("a_b")),
            ("@scope/x", Some("scope-x")),
            ("", None),
            ("ä", None),
        ] {
            assert_eq!(section_name(name).as_deref(), fit, "{name}");
        }
    }

    #[test]
    fn words_can_be_copied_into_a_shell() {
        assert_eq!(shell_word("/a/b-c"), "/a/b-c");
        assert_eq!(shell_word("$(x) 'y'"), r"'$(x) '\''y'\'''");
        assert_eq!(shell_word(""), "''");
    }
}
