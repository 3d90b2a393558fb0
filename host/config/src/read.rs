//! Reads one source of the configuration into checked values, each with the place it was found at.
//!
//! What the values do to each other is decided in `layers.rs`.

use super::allowlist::locate;
use super::narrow::{RULES, Rule, is_plugin_name, is_section, nearest, rule_of};
use super::requests::prefix;
use super::rules::{self, RuleLine};
use super::{Config, DEFAULT_TOML, HostPattern, WORKSPACE};
use base::disk::{Foreign, Unreadable, check_obeyed, open_itself, open_of_root, told};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Table, Value};

/// Far more than any configuration needs; a project's file is not always a friend's.
const MAX_FILE_BYTES: u64 = 256 << 10;

/// More entries than anybody writes by hand; some lists are compared entry by entry.
const MAX_ENTRIES: usize = 1000;

/// Where a value comes from; `{:#}` also shows the column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `default.toml`.
    Default,
    /// A place in a file.
    File(Place),
    /// The environment variable of this name.
    Environment(String),
    /// An argument of `--set`.
    Set,
    /// A value that a policy or an untrusted project narrowed, there.
    Narrowed(Place),
}

/// A place in a file; line and column count from 1, the column in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as the caller named it.
    pub path: PathBuf,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that has to be read cannot be.
    #[error("cannot read `{}`: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// A file that decides could have been written by another user.
    #[error("settings that other users could have written are refused: {0}")]
    NotObeyed(String),
    /// A source has an invalid value.
    #[error("{origin:#}: {message}")]
    Invalid {
        /// The source, for a file with line and column.
        origin: Origin,
        /// What is wrong with it, the key in backticks.
        message: String,
    },
}

/// One value that a source sets.
pub(super) struct Leaf {
    pub(super) key: String,
    pub(super) rule: Rule,
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// What distinguishes the sources when their values are read.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    /// What `~/` stands for.
    pub(super) home: &'a Path,
    /// Where relative paths start, if they may be written.
    pub(super) start: Option<&'a Path>,
    /// In a policy an empty list allows nothing, and what is the user's alone is an error.
    pub(super) is_policy: bool,
}

/// A file of TOML whose values know their places.
pub(super) struct Document<'t> {
    path: &'t Path,
    text: &'t str,
    table: DeTable<'t>,
}

impl<'t> Document<'t> {
    pub(super) fn parse(path: &'t Path, text: &'t str) -> Result<Self, ConfigError> {
        let table = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or_default();
            let message = syntax(error.message(), text.get(span.clone()).unwrap_or_default());
            invalid_at(Place::at(path, text, span.start), message)
        })?;
        Ok(Self { path, text, table: table.into_inner() })
    }

    /// Takes out what lies below a key of the top, with the place where it begins.
    pub(super) fn take(&mut self, key: &str) -> Option<(usize, Spanned<DeValue<'t>>)> {
        let offset = self.table.get_key_value(key)?.0.span().start;
        Some((offset, self.table.remove(key)?))
    }

    pub(super) fn place(&self, offset: usize) -> Place {
        Place::at(self.path, self.text, offset)
    }
}

/// Returns the defaults, as a layer to begin with.
pub(super) fn defaults() -> &'static Table {
    static DEFAULTS: LazyLock<Table> = LazyLock::new(|| toml::from_str(DEFAULT_TOML).expect("default.toml is TOML"));
    &DEFAULTS
}

impl Reader<'_> {
    /// Reads a file without rules; none where there is no file that has to be.
    #[cfg(test)]
    pub(super) fn file(&self, path: &Path, required: bool) -> Result<Vec<Leaf>, ConfigError> {
        let text = read_text(path, required, Author::OursAlone)?;
        text.map_or_else(|| Ok(Vec::new()), |text| self.text(path, &text))
    }

    /// The same of the user's file, with its rules.
    pub(super) fn user_file(&self, path: &Path, required: bool) -> Result<(Vec<Leaf>, Vec<RuleLine>), ConfigError> {
        let Some(text) = read_text(path, required, Author::OursAlone)? else { return Ok((Vec::new(), Vec::new())) };
        let mut document = Document::parse(path, &text)?;
        let rules = rules::take(&mut document, false, self.home)?;
        Ok((self.leaves(&document)?, rules))
    }

    /// The settings that a text names of those that a project may narrow; none where it is not TOML.
    pub(super) fn named(path: &Path, text: &str) -> Vec<String> {
        let Ok(document) = Document::parse(path, text) else { return Vec::new() };
        let mut found = Vec::new();
        collect("", &document.table, &mut found);
        let keys = found.into_iter().map(|(_, key, _)| key);
        let mut named: Vec<_> = keys.filter(|key| rule_of(key).is_some_and(Rule::applies_to_projects)).collect();
        named.sort_unstable();
        named
    }

    /// Reads the text of a file that was read already.
    pub(super) fn text(&self, path: &Path, text: &str) -> Result<Vec<Leaf>, ConfigError> {
        self.leaves(&Document::parse(path, text)?)
    }

    /// Reads every value of a document as a setting.
    pub(super) fn leaves(&self, document: &Document<'_>) -> Result<Vec<Leaf>, ConfigError> {
        let origin = |offset| Origin::File(document.place(offset));
        let mut found = Vec::new();
        collect("", &document.table, &mut found);
        found.sort_by_key(|(offset, ..)| *offset);
        let mut leaves = Vec::new();
        for (offset, key, value) in found {
            let value = Value::deserialize(ValueDeserializer::from(value.clone()));
            let value = value.map_err(|error| invalid(origin(offset), format!("`{key}`: {}", error.message())))?;
            leaves.push(self.leaf(key, value, origin(offset))?);
        }
        self.implied(leaves)
    }

    /// Reads the variables that name a setting outside `[plugin]`.
    pub(super) fn environment(&self, variables: &[(String, String)]) -> Result<Vec<Leaf>, ConfigError> {
        let ours = variables.iter().filter(|(name, _)| name.starts_with(PREFIX));
        let ours = ours.filter(|(name, _)| RULES.iter().any(|(key, ..)| shares_section(name, key)));
        let leaf = |(name, text): &(String, String)| {
            let origin = Origin::Environment(name.clone());
            let named = RULES.iter().find(|(key, ..)| variable(key) == *name);
            let (key, ..) = named.ok_or_else(|| invalid(origin.clone(), unknown_variable(name)))?;
            self.leaf((*key).to_owned(), parsed(text), origin)
        };
        self.implied(ours.map(leaf).collect::<Result<_, _>>()?)
    }

    /// Reads the arguments of `--set`.
    pub(super) fn set(&self, arguments: &[String]) -> Result<Vec<Leaf>, ConfigError> {
        let leaf = |argument: &String| {
            let (key, text) = argument.split_once('=').ok_or_else(|| {
                invalid(Origin::Set, format!("`{}` has no value: write `key=value`", argument.escape_debug()))
            })?;
            let (key, value) = (key.trim().escape_debug().to_string(), parsed(text.trim()));
            // As in a file, where TOML reads it so.
            let shell = key.strip_suffix(".pane").filter(|above| rule_of(above) == Some(Rule::Shell));
            match shell.map(str::to_owned) {
                Some(shell) => self.leaf(shell, Table::from_iter([("pane".to_owned(), value)]).into(), Origin::Set),
                None => self.leaf(key, value, Origin::Set),
            }
        };
        self.implied(arguments.iter().map(leaf).collect::<Result<_, _>>()?)
    }

    /// Adds what the settings of one source mean besides: whoever writes `shell_confirm = true`, which is the default, and nothing of `ask`,
    /// wants to be asked about each command.
    fn implied(&self, mut leaves: Vec<Leaf>) -> Result<Vec<Leaf>, ConfigError> {
        let confirms = |leaf: &&Leaf| leaf.key == "tools.shell_confirm" && leaf.value.as_bool() == Some(true);
        let says_when = leaves.iter().any(|leaf| leaf.key == "confine.ask");
        if let Some(leaf) = leaves.iter().find(confirms).filter(|_| !says_when) {
            leaves.push(self.leaf("confine.ask".into(), "always".into(), leaf.origin.clone())?);
        }
        Ok(leaves)
    }

    pub(super) fn leaf(&self, key: String, value: Value, origin: Origin) -> Result<Leaf, ConfigError> {
        let Some(rule) = rule_of(&key) else { return Err(invalid(origin, unknown(&key))) };
        if self.is_policy && rule == Rule::Never {
            return Err(invalid(origin, format!("`{key}` cannot be set by policy")));
        }
        match self.spelled_out(rule, value).and_then(|value| self.checked(&key, value)) {
            Ok(value) => Ok(Leaf { key, rule, value, origin }),
            Err(message) => Err(invalid(origin, format!("`{key}`: {message}"))),
        }
    }

    /// Returns the value as all sources mean it: directories absolute, hosts and prefixes spelled in one way, digests in
    /// lower case.
    fn spelled_out(&self, rule: Rule, value: Value) -> Result<Value, String> {
        match (rule, value) {
            (_, Value::Array(entries)) if entries.len() > MAX_ENTRIES => {
                Err(format!("at most {MAX_ENTRIES} entries, not {}", entries.len()))
            }
            (Rule::Paths | Rule::Domains, Value::Array(entries)) if entries.is_empty() && self.is_policy => {
                Ok("none".into())
            }
            (rule, Value::Array(entries)) => {
                entries.into_iter().map(|entry| self.entry(rule, entry)).collect::<Result<_, _>>().map(Value::Array)
            }
            (Rule::Digest, Value::String(digits)) => Ok(digits.to_lowercase().into()),
            (_, value) => Ok(value),
        }
    }

    /// Returns an entry of a list as all sources mean it; what is not text is refused by the types of the fields.
    fn entry(&self, rule: Rule, entry: Value) -> Result<Value, String> {
        let Some(text) = entry.as_str() else { return Ok(entry) };
        let spelled = match rule {
            Rule::Roots if text == WORKSPACE => text.to_owned(),
            Rule::Paths | Rule::Directories | Rule::Roots | Rule::Places => self.located(text)?,
            Rule::Domains => HostPattern::domain(text)?.to_string(),
            Rule::Ranges => HostPattern::range(text)?.to_string(),
            Rule::Hosts => HostPattern::exact(text)?.to_string(),
            Rule::Prefixes => prefix(text)?,
            _ => return Ok(entry),
        };
        Ok(spelled.into())
    }

    fn located(&self, text: &str) -> Result<String, String> {
        let path = locate(text, self.home, self.start)?;
        path.to_str().map(str::to_owned).ok_or_else(|| format!("`{}` is not UTF-8", path.display()))
    }

    /// Returns the value if the configuration takes it: types and ranges are those of the fields.
    fn checked(&self, key: &str, value: Value) -> Result<Value, String> {
        let mut all = defaults().clone();
        put(&mut all, key, value.clone());
        Config::deserialize(Value::Table(all)).map(|_| value).map_err(|error| error.message().to_owned())
    }
}

/// Returns the value at a dotted key.
pub(super) fn get<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        Some((first, rest)) => get(table.get(first)?.as_table()?, rest),
        None => table.get(key),
    }
}

/// Sets the value at a dotted key.
pub(super) fn put(table: &mut Table, key: &str, value: Value) {
    let Some((first, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return;
    };
    let below = table.entry(first).or_insert_with(|| Table::new().into());
    put(below.as_table_mut().expect("no setting has settings below it"), rest, value);
}

impl Place {
    fn at(path: &Path, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self { path: path.to_owned(), line: before.matches('\n').count() + 1, column: line.chars().count() + 1 }
    }
}

impl Origin {
    /// Returns the origin of a value that a layer with this origin narrowed.
    pub(super) fn narrowed(self) -> Self {
        if let Self::File(place) = self { Self::Narrowed(place) } else { self }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Default => write!(formatter, "default"),
            Self::File(place) if formatter.alternate() => write!(formatter, "{place}:{}", place.column),
            Self::File(place) => write!(formatter, "{place}"),
            Self::Environment(name) => write!(formatter, "environment {name}"),
            Self::Set => write!(formatter, "--set"),
            Self::Narrowed(place) => write!(formatter, "narrowed by {place}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}:{}", self.path.display(), self.line)
    }
}

/// Says what is wrong at a place of a file.
pub(super) fn invalid_at(place: Place, message: String) -> ConfigError {
    invalid(Origin::File(place), message)
}

fn invalid(origin: Origin, message: String) -> ConfigError {
    ConfigError::Invalid { origin, message }
}

/// Who may have written a file.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Author {
    /// Root alone, and nobody else could have written the way to it.
    Root,
    /// This user or root: the file decides.
    OursAlone,
    /// Anybody: the file is a project's, and only narrows until the user has accepted its bytes.
    Anybody,
}

/// Returns the digest under which a project's settings are trusted: of the text that is then read.
pub fn project_sha256(path: &Path) -> Result<String, ConfigError> {
    let text = read_text(path, true, Author::Anybody)?;
    Ok(hex::encode(Sha256::digest(text.unwrap_or_default())))
}

/// Returns whether nothing is there, and nothing was meant to be: a link that leads nowhere stands for a file.
fn is_absent(path: &Path) -> bool {
    let is_missing = path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    is_missing && !path.ancestors().any(Path::is_symlink)
}

pub(super) fn read_text(path: &Path, required: bool, author: Author) -> Result<Option<String>, ConfigError> {
    let unreadable = |reason| ConfigError::Unreadable { path: path.to_owned(), reason };
    if !required && is_absent(path) {
        return Ok(None);
    }
    let opened = match author {
        Author::Root => open_of_root(path),
        // A FIFO in the file's place must not keep us waiting.
        Author::OursAlone => File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path),
        Author::Anybody => open_itself(path).map(|opened| opened.file).map_err(|unread| match unread {
            Unreadable::System(error) => error,
            other => io::Error::other(other.to_string()),
        }),
    };
    let file = opened.map_err(|error| match Foreign::of(&error) {
        Some(_) => ConfigError::NotObeyed(told(&error)),
        None => unreadable(error),
    })?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unreadable(io::Error::other("not a regular file")));
    }
    if author == Author::OursAlone {
        check_obeyed(&file, path).map_err(|error| ConfigError::NotObeyed(told(&error)))?;
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(unreadable(io::Error::other(format!("longer than {} KiB", MAX_FILE_BYTES >> 10))));
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    Ok(Some(text))
}

type Found<'a, 'i> = (usize, String, &'a Spanned<DeValue<'i>>);

/// Collects offset, dotted key and value of each setting, and of each thing that is none.
fn collect<'a, 'i>(above: &str, table: &'a DeTable<'i>, found: &mut Vec<Found<'a, 'i>>) {
    for (name, value) in table {
        let is_plain = is_plugin_name(name.get_ref());
        let name_text = if is_plain { name.get_ref().to_string() } else { format!("{:?}", name.get_ref()) };
        let key = if above.is_empty() { name_text } else { format!("{above}.{name_text}") };
        match value.get_ref() {
            DeValue::Table(below) if is_section(&key) => collect(&key, below, found),
            _ => found.push((name.span().start, key, value)),
        }
    }
}

fn parsed(text: &str) -> Value {
    text.parse().unwrap_or_else(|_| text.into())
}

/// How the names of our environment variables begin.
const PREFIX: &str = "TOOLCRIB_";

/// Returns the environment variable for a dotted key.
fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_uppercase().replace('.', "_"))
}

fn shares_section(name: &str, key: &str) -> bool {
    !key.contains('*')
        && key.split_once('.').is_some_and(|(section, _)| name.starts_with(&format!("{}_", variable(section))))
}

/// Variables that look like a setting's in a section that does not exist. Those of other programs may begin as ours do, so that these are only
/// told.
pub(super) fn stray_variables(variables: &[(String, String)]) -> impl Iterator<Item = String> {
    let ours = variables.iter().map(|(name, _)| name).filter(|name| name.starts_with(PREFIX));
    let stray = ours.filter(|name| !RULES.iter().any(|(key, ..)| shares_section(name, key)));
    stray.filter_map(|name| {
        let meant = nearest(&key_of(name)).filter(|key| !is_section(key) && !key.contains(".NAME"))?;
        Some(format!(
            "`{}` is not a setting, and has no effect: did you mean `{}`?",
            name.escape_debug(),
            variable(&meant)
        ))
    })
}

/// The key that a variable seems to name.
fn key_of(name: &str) -> String {
    name.trim_start_matches(PREFIX).to_lowercase().replacen('_', ".", 1)
}

fn syntax(message: &str, at: &str) -> String {
    if message == "duplicate key" { format!("`{}` is set twice", at.trim().escape_debug()) } else { message.to_owned() }
}

fn unknown(key: &str) -> String {
    if is_section(key) {
        return format!("`{key}` is a section: write the settings within it");
    }
    let is_misnamed =
        key.strip_prefix("plugin.").is_some_and(|rest| !rest.split('.').next().is_some_and(is_plugin_name));
    if is_misnamed {
        return format!("`{key}`: the name of a plugin is 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-`");
    }
    if key == "allow" || key == "deny" {
        return format!("`{key}` is not a setting here: rules are in your own settings file alone");
    }
    if key == "lock" || key.starts_with("lock.") {
        return format!("`{key}` is not a setting: only a policy file can have a lock");
    }
    format!("`{key}` is not a setting{}", hint(nearest(key)))
}

fn unknown_variable(name: &str) -> String {
    let meant = nearest(&key_of(name)).map(|key| variable(&key));
    format!("`{}` is not a setting{}", name.escape_debug(), hint(meant))
}

fn hint(nearest: Option<String>) -> String {
    nearest.map(|name| format!(", did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Vec<Leaf>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f.toml");
        std::fs::write(&path, text).unwrap();
        let reader = Reader { home: Path::new("/home/u"), start: None, is_policy: false };
        let shorten = |error: ConfigError| error.to_string().replace(&format!("{}/", directory.path().display()), "");
        reader.file(&path, true).map_err(shorten)
    }

    fn error(text: &str) -> String {
        read(text.as_bytes()).err().unwrap_or_else(|| panic!("accepted: {text}"))
    }

    #[test]
    fn unknown_keys_are_named_with_place_and_nearest() {
        for (text, expected) in [
            (
                "[tools]\n  shell_confrim = true",
                "f.toml:2:3: `tools.shell_confrim` is not a setting, did you mean `tools.shell_confirm`?",
            ),
            ("\n[tool]\nshell_env = []", "f.toml:2:2: `tool` is not a setting, did you mean `tools`?"),
            ("[tool]", "f.toml:1:2: `tool` is not a setting"),
            ("a.b.c = 1", "f.toml:1:1: `a` is not a setting"),
            ("'tools.shell_confirm' = true", "f.toml:1:1: `\"tools.shell_confirm\"` is not a setting"),
            ("\"\\u001b[2J\" = 1", "f.toml:1:1: `\"\\u{1b}[2J\"` is not a setting"),
            ("tools = 1", "f.toml:1:1: `tools` is a section: write the settings within it"),
            ("[[plugin]]", "f.toml:1:3: `plugin` is a section: write the settings within it"),
            (
                "[plugin.'a b']\nshell = true",
                "f.toml:1:9: `plugin.\"a b\"`: the name of a plugin is 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-`",
            ),
            ("[plugin.x]\nsockets = {}", "f.toml:2:1: `plugin.x.sockets` is not a setting"),
            ("[plugin.x]\nhttp.verbs = []", "f.toml:2:6: `plugin.x.http.verbs` is not a setting"),
            ("[plugin.x]\nhttp = true", "f.toml:2:1: `plugin.x.http` is a section: write the settings within it"),
        ] {
            assert!(error(text).starts_with(expected), "{}", error(text));
        }
    }

    #[test]
    fn wrong_types_and_bad_values_are_named_with_place() {
        for (text, expected) in [
            (
                "[tools]\nshell_confirm = 'yes'",
                "f.toml:2:1: `tools.shell_confirm`: invalid type: string \"yes\", expected a boolean",
            ),
            ("[tools.shell_confirm]", "f.toml:1:8: `tools.shell_confirm`: invalid type: map, expected a boolean"),
            ("[tools]\nshell_env = [1]", "f.toml:2:1: `tools.shell_env`: invalid type: integer `1`, expected a string"),
            ("tools.shell_denylist = [' ']", "f.toml:1:7: `tools.shell_denylist`: an empty entry is not a command"),
            ("[limits]\nmemory_mib = 0", "f.toml:2:1: `limits.memory_mib`: must be 1 to 4096, not 0"),
            ("[limits]\nmemory_mib = -1", "f.toml:2:1: `limits.memory_mib`: must be 1 to 4096, not -1"),
            ("[limits]\nmemory_mib = 4097", "f.toml:2:1: `limits.memory_mib`: must be 1 to 4096, not 4097"),
            ("limits.call_ms = 1.5", "f.toml:1:8: `limits.call_ms`: must be a whole number from 1 to"),
            (
                "agent.name = ''",
                "f.toml:1:7: `agent.name`: must be 1 to 64 characters, none of them a control character",
            ),
            ("plugin.x.sha256 = 'abc'", "f.toml:1:10: `plugin.x.sha256`: must be 64 hex digits"),
            (
                "plugin.x.shell = 1",
                "f.toml:1:10: `plugin.x.shell`: invalid type: integer `1`, expected true, false or { pane = true }",
            ),
            (
                "plugin.x.shell = { panes = true }",
                "f.toml:1:10: `plugin.x.shell`: unknown field `panes`, expected `pane`",
            ),
            ("plugin.x.shell = {}", "f.toml:1:10: `plugin.x.shell`: missing field `pane`"),
            (
                "tools.files_allowed_paths = 'all'",
                "f.toml:1:7: `tools.files_allowed_paths`: invalid value: string \"all\"",
            ),
            (
                "tools.files_allowed_paths = ['w']",
                "f.toml:1:7: `tools.files_allowed_paths`: `w` is relative: write `~/w` or",
            ),
            ("plugin.x.files.read = ['w']", "f.toml:1:16: `plugin.x.files.read`: `w` is relative: write `~/w` or"),
            (
                "tools.fetch_allowed_domains = ['example.com:80']",
                "f.toml:1:7: `tools.fetch_allowed_domains`: `example.com:80` has a scheme or a port: write the host alone",
            ),
            (
                "tools.fetch_allowed_domains = 'all'",
                "f.toml:1:7: `tools.fetch_allowed_domains`: invalid value: string \"all\", expected a list of hosts or",
            ),
            (
                "tools.fetch_blocked_domains = ['127.0.0.1/8']",
                "f.toml:1:7: `tools.fetch_blocked_domains`: `127.0.0.1/8` is not a valid range: write `127.0.0.0/8`",
            ),
            (
                "tools.fetch_private_ranges = ['localhost']",
                "f.toml:1:7: `tools.fetch_private_ranges`: `localhost` is a name: write an address",
            ),
            (
                "tools.fetch_private_ranges = [1]",
                "f.toml:1:7: `tools.fetch_private_ranges`: invalid type: integer `1`, expected a string",
            ),
            ("tools.fetch_ports = [80, 0]", "f.toml:1:7: `tools.fetch_ports`: a port must be 1 to 65535, not 0"),
            ("tools.fetch_ports = [65536]", "f.toml:1:7: `tools.fetch_ports`: a port must be 1 to 65535, not 65536"),
            (
                "tools.search_provider = 'a b'",
                "f.toml:1:7: `tools.search_provider`: `a b` is not a valid plugin name: use 1 to 64 of A-Z",
            ),
            (
                "tools.search_endpoint = 'https://example.com/search'",
                "f.toml:1:7: `tools.search_endpoint`: `https://example.com/search` does not end in `/`: write",
            ),
            (
                "network.dns_servers = ['dns.example.com']",
                "f.toml:1:9: `network.dns_servers`: `dns.example.com` is not a valid name server: write `192.0.2.1`",
            ),
            (
                "plugin.x.http.hosts = ['*']",
                "f.toml:1:15: `plugin.x.http.hosts`: `*` has a `*` that is not at its beginning",
            ),
            (
                "plugin.x.http.methods = ['get']",
                "f.toml:1:15: `plugin.x.http.methods`: `get` is a method in upper case: write `GET`",
            ),
            ("plugin.x.http.paths = ['v1']", "f.toml:1:15: `plugin.x.http.paths`: `v1` does not begin with `/`"),
            ("plugin.x.http.base = '/v1/'", "f.toml:1:15: `plugin.x.http.base`: `/v1/` is not an absolute URL"),
        ] {
            assert!(error(text).starts_with(expected), "{}", error(text));
        }
        assert!(error("limits.call_ms = 99999999999999999999").starts_with("f.toml:1:8: `limits.call_ms`: "));
    }

    #[test]
    fn syntax_errors_and_duplicate_keys_are_named_with_place() {
        assert_eq!(error("[tools]\nshell_env = []\nshell_env = []"), "f.toml:3:1: `shell_env` is set twice");
        assert_eq!(error("[tools]\n[agent]\n[tools]"), "f.toml:3:2: `tools` is set twice");
        assert!(error("[tools]\nshell_env = [").starts_with("f.toml:2:14: "));
        assert!(error("= 1").starts_with("f.toml:1:1: "));
    }

    #[test]
    fn the_first_error_in_the_file_is_reported() {
        assert!(error("zzz = 1\nagent.name = ''").starts_with("f.toml:1:1: `zzz`"));
        assert!(error("tools.shell_env = ['ENV']\nagent.name = ''").starts_with("f.toml:1:7: `tools.shell_env`"));
    }

    #[test]
    fn hooks_of_the_shell_are_never_passed() {
        assert_eq!(
            error("[tools]\nshell_env = ['A', 'LD_PRELOAD']"),
            "f.toml:2:1: `tools.shell_env`: `LD_PRELOAD` is never passed"
        );
        assert_eq!(error("tools.shell_env = [\"a=\\n\"]"), "f.toml:1:7: `tools.shell_env`: `a=\\n` is never passed");
    }

    #[test]
    fn a_list_of_thousands_is_refused() {
        for key in ["tools.shell_env", "tools.shell_denylist", "tools.files_allowed_paths", "plugin.x.files.read"] {
            let list = |length| format!("{key} = [{}]", vec!["'/a'"; length].join(","));
            assert!(error(&list(1001)).ends_with("at most 1000 entries, not 1001"));
            assert!(key == "tools.shell_env" || read(list(1000).as_bytes()).is_ok());
        }
    }

    #[test]
    fn hosts_and_prefixes_are_spelled_in_one_way() {
        let leaves = read(
            b"tools.fetch_allowed_domains = ['Example.COM.', '10.0.0.1/32']\ntools.fetch_private_ranges = ['::1/128']\n\
              plugin.x.http = { hosts = ['*.B\xc3\x9cCHER.example'], paths = ['/v1/'] }",
        );
        let values: Vec<_> = leaves.unwrap().into_iter().map(|leaf| leaf.value).collect();
        let lists = [vec!["example.com", "10.0.0.1"], vec!["::1"], vec!["*.xn--bcher-kva.example"], vec!["/v1"]];
        assert_eq!(values, lists.map(Value::from));
    }

    #[test]
    fn lines_and_columns_count_characters() {
        assert!(error("# ä\r\n\r\nplugin = { x = { 'ä' = 1, b = 2 } }").starts_with("f.toml:3:18: "));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error() {
        assert!(read(b"\xff").err().unwrap().starts_with("cannot read `f.toml`: "));
        assert!(read(&[b'#'; 300_000]).err().unwrap().ends_with("longer than 256 KiB"));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f.toml");
        assert!(matches!(read_text(&path, false, Author::OursAlone), Ok(None)));
        assert!(read_text(&path, true, Author::OursAlone).is_err());
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert!(read_text(&path, false, Author::OursAlone).is_err());
        assert!(
            read_text(directory.path(), false, Author::OursAlone)
                .unwrap_err()
                .to_string()
                .ends_with("not a regular file")
        );
        assert!(read_text(&Path::new("/dev/null").join("f.toml"), false, Author::OursAlone).is_err());
    }

    #[test]
    fn a_file_that_others_may_write_is_not_obeyed() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f.toml");
        std::fs::write(&path, "tools.shell_confirm = false").unwrap();
        for (mode, is_obeyed) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_text(&path, true, Author::OursAlone).is_ok(), is_obeyed, "{mode:o}");
            assert!(read_text(&path, true, Author::Anybody).is_ok(), "{mode:o}");
        }
        let told = format!(
            "settings that other users could have written are refused: `{0}` can be written by others (mode 0646) (chmod go-w '{0}')",
            path.display()
        );
        assert_eq!(read_text(&path, false, Author::OursAlone).unwrap_err().to_string(), told);
    }
}
