//! What a lock says of those who vet plugins: keys, how many of them must agree, what they have taken back, and what a plugin gets at most.

use super::narrow::{Rule, rule_of, section_keys};
use super::policy_file::LockMode;
use super::read::{ConfigError, Document, Leaf, Origin, Place, Reader, invalid_at};
use super::sha256_hex;
use base::capability::Capability;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minisign_verify::PublicKey;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toml::value::Datetime;
use toml::{Spanned, Table, Value};

/// A day, in seconds.
pub const DAY: u64 = 24 * 60 * 60;
/// Keys of one lock; each is tried on each signature.
const MOST_KEYS: usize = 32;
/// The bytes of a public key as minisign writes it: algorithm, number, key.
const KEY_BYTES: usize = 2 + 8 + 32;

/// `plugins = "signed"`: a list that enough keys have signed names the plugins, and a statement for each says what it was vetted as.
#[derive(Clone, Debug)]
pub struct Signed {
    /// The list's file, and the line that names it.
    pub list: PathBuf,
    pub place: Place,
    /// The name that the list must have.
    pub name: String,
    /// No list older than this counts.
    pub min_sequence: u64,
    /// What every statement must have found.
    pub criteria: Vec<String>,
    pub keys: BTreeMap<String, Key>,
    /// How many distinct keys must have signed a statement, and a list.
    pub vet: usize,
    pub lists: usize,
    /// How many must have signed the policy that takes the place of this one; none where only root's hand replaces it.
    pub policies: Option<usize>,
    /// The number of this policy: one that takes its place has a higher one.
    pub sequence: u64,
    /// How far a clock may be behind what was signed, in seconds.
    pub skew: u64,
    /// For how many seconds a list goes on after its end.
    pub grace: u64,
}

/// What the operator has taken back.
#[derive(Clone, Debug, Default)]
pub struct Revoked {
    /// Digests of components, in lower-case hex.
    pub plugins: BTreeSet<String>,
    /// Numbers of keys, as minisign shows them.
    pub keys: BTreeSet<String>,
    /// What a key signed before this time still counts, by the key's name.
    pub signed_before: BTreeMap<String, u64>,
}

/// The key of a reviewer.
#[derive(Clone, Debug)]
pub struct Key {
    pub public: PublicKey,
    /// What makes it distinct, whatever it is called.
    pub bytes: [u8; 32],
    /// As minisign shows it.
    pub number: String,
    pub roles: BTreeSet<Role>,
    /// The last second in which what it signs is good.
    pub not_after: Option<u64>,
}

/// What a key may sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Statements about plugins.
    Vet,
    /// Lists of plugins.
    List,
    /// What takes back.
    Revoke,
    /// The policy itself.
    Policy,
}

/// Where the rights of a vetted plugin come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantBy {
    /// From `[plugin.NAME]` of the user's settings, within what the policy leaves.
    #[default]
    User,
    /// From what it was vetted with; the user's settings can only narrow that.
    Vetted,
}

/// The most that a plugin gets: for each key of a section, what it is bound to. What is not named is not given.
#[derive(Clone, Debug, Default)]
pub struct Ceiling(Vec<(&'static str, Value, Origin)>);

/// What `[lock]` has for signatures, as it is written.
#[derive(Default)]
pub(super) struct SignedKeys {
    pub(super) list: Option<Spanned<PathBuf>>,
    pub(super) list_name: Option<Spanned<String>>,
    pub(super) min_sequence: Option<Spanned<u64>>,
    pub(super) criteria: Option<Spanned<Vec<String>>>,
    pub(super) threshold: Option<Spanned<Threshold>>,
    pub(super) keys: BTreeMap<Spanned<String>, KeyTable>,
    pub(super) clock: Option<ClockTable>,
    pub(super) sequence: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Threshold {
    vet: Spanned<usize>,
    list: Spanned<usize>,
    policy: Option<Spanned<usize>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyTable {
    minisign: Spanned<String>,
    roles: BTreeSet<Role>,
    not_after: Option<Spanned<Datetime>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClockTable {
    skew_s: Option<u32>,
    grace_days: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RevokedTable {
    #[serde(default)]
    plugins: Vec<Spanned<String>>,
    #[serde(default)]
    keys: Vec<Spanned<String>>,
    #[serde(default)]
    signed_before: BTreeMap<Spanned<String>, Spanned<Datetime>>,
}

/// The rights of a plugin's section that a ceiling bounds, with their rules: what is about a capability, and not for the user alone to say.
fn bounded() -> impl Iterator<Item = (&'static str, Rule)> {
    let is_about_capability = |key: &str| {
        Capability::ALL.map(Capability::section).iter().any(|keys| [keys.grants, keys.narrows].concat().contains(&key))
    };
    section_keys().filter(move |(key, rule)| *rule != Rule::Never && is_about_capability(key))
}

fn bounded_right(key: &str) -> Option<&'static str> {
    bounded().map(|(right, _)| right).find(|right| *right == key)
}

/// What a ceiling says of a right that it does not name; none for what only narrows what a host of its list may be asked.
fn nothing(rule: Rule) -> Option<Value> {
    match rule {
        Rule::And | Rule::Shell => Some(Value::Boolean(false)),
        Rule::Directories | Rule::Hosts | Rule::Names | Rule::Kinds => Some(Value::Array(Vec::new())),
        Rule::Methods | Rule::Prefixes => None,
        Rule::Never
        | Rule::AndByPolicy
        | Rule::Or
        | Rule::Stricter(_)
        | Rule::Min
        | Rule::Max
        | Rule::Size
        | Rule::Union
        | Rule::Intersect
        | Rule::Paths
        | Rule::Roots
        | Rule::Places
        | Rule::Domains
        | Rule::Ranges
        | Rule::Digest => unreachable!("no right has this rule"),
    }
}

impl Signed {
    /// Reads what mode `signed` needs; in another mode none of it may stand there.
    pub(super) fn checked(
        keys: SignedKeys,
        mode: &Spanned<LockMode>,
        document: &Document<'_>,
    ) -> Result<Option<Self>, ConfigError> {
        let fault = |at: usize, message: String| invalid_at(document.place(at), message);
        let SignedKeys { list, list_name, min_sequence, criteria, threshold, keys, clock, sequence } = keys;
        if *mode.get_ref() != LockMode::Signed {
            let places = [
                list.as_ref().map(Spanned::span),
                list_name.as_ref().map(Spanned::span),
                min_sequence.as_ref().map(Spanned::span),
                criteria.as_ref().map(Spanned::span),
                threshold.as_ref().map(Spanned::span),
                keys.keys().next().map(Spanned::span),
                sequence.as_ref().map(Spanned::span),
            ];
            let message = "this is for lists that were signed: write `plugins = \"signed\"`, or take it out";
            return match places.into_iter().flatten().next() {
                Some(span) => Err(fault(span.start, message.into())),
                None => Ok(None),
            };
        }
        let missing = |what: &str| fault(mode.span().start, format!("`plugins = \"signed\"` needs `{what}`"));
        let (list, name) = (list.ok_or_else(|| missing("list"))?, list_name.ok_or_else(|| missing("list_name"))?);
        let threshold = threshold.ok_or_else(|| missing("threshold"))?.into_inner();
        if !super::policy_file::is_plain(list.get_ref()) {
            let shown = list.get_ref().display().to_string();
            let message = format!("`{}` is not a whole path: write it from `/` on, without `..`", shown.escape_debug());
            return Err(fault(list.span().start, message));
        }
        if keys.len() > MOST_KEYS {
            return Err(missing(&format!("at most {MOST_KEYS} keys")));
        }
        let mut read: BTreeMap<String, Key> = BTreeMap::new();
        for (name, table) in keys {
            let at = table.minisign.span().start;
            let key = Key::read(table, document)?;
            if let Some((other, _)) = read.iter().find(|(_, other)| other.bytes == key.bytes) {
                return Err(fault(at, format!("this is the key of `{other}` too: a person has one name")));
            }
            read.insert(name.into_inner(), key);
        }
        let needed = [(Some(&threshold.vet), Role::Vet), (Some(&threshold.list), Role::List)];
        let needed = needed.into_iter().chain([(threshold.policy.as_ref(), Role::Policy)]);
        for (needed, role) in needed.filter_map(|(needed, role)| Some((needed?, role))) {
            let there = read.values().filter(|key| key.roles.contains(&role)).count();
            if !(1..=there).contains(needed.get_ref()) {
                let message = format!("{there} keys have this role: the number is from 1 to that");
                return Err(fault(needed.span().start, message));
            }
        }
        let (skew, grace) = clock.map_or((None, None), |clock| (clock.skew_s, clock.grace_days));
        Ok(Some(Self {
            place: document.place(list.span().start),
            list: list.into_inner(),
            name: name.into_inner(),
            min_sequence: min_sequence.map_or(0, Spanned::into_inner),
            criteria: criteria.map(Spanned::into_inner).unwrap_or_default(),
            keys: read,
            vet: threshold.vet.into_inner(),
            lists: threshold.list.into_inner(),
            policies: threshold.policy.map(Spanned::into_inner),
            sequence: sequence.map_or(0, Spanned::into_inner),
            skew: skew.map_or(300, u64::from),
            grace: grace.map_or(0, u64::from) * DAY,
        }))
    }
}

impl Key {
    fn read(table: KeyTable, document: &Document<'_>) -> Result<Self, ConfigError> {
        let at = table.minisign.span().start;
        let text = table.minisign.into_inner();
        let not_a_key = || {
            let message = "this is no public key of minisign: write the second line of its `.pub` file";
            invalid_at(document.place(at), message.into())
        };
        let public = PublicKey::from_base64(&text).map_err(|_| not_a_key())?;
        let decoded = STANDARD.decode(&text).map_err(|_| not_a_key())?;
        let decoded: [u8; KEY_BYTES] = decoded.try_into().map_err(|_| not_a_key())?;
        let number = decoded[2..10].try_into().map(u64::from_le_bytes).expect("eight bytes");
        let bytes = decoded[10..].try_into().expect("32 bytes");
        let not_after = table.not_after.map(|date| at_second(&date, document)).transpose()?;
        Ok(Self { public, bytes, number: format!("{number:016X}"), roles: table.roles, not_after })
    }
}

impl Revoked {
    pub(super) fn checked(
        table: RevokedTable,
        signed: Option<&Signed>,
        document: &Document<'_>,
    ) -> Result<Self, ConfigError> {
        let is_known = |name: &String| signed.is_some_and(|signed| signed.keys.contains_key(name));
        if let Some(name) = table.signed_before.keys().find(|name| !is_known(name.get_ref())) {
            let message = format!("`{}` is no key of this lock", name.get_ref().escape_debug());
            return Err(invalid_at(document.place(name.span().start), message));
        }
        let digest = |text: Spanned<String>| {
            let refusal = || invalid_at(document.place(text.span().start), "a digest is 64 hex digits".into());
            sha256_hex(text.get_ref()).ok_or_else(refusal)
        };
        let number = |text: Spanned<String>| {
            // minisign prints no leading zeros.
            let is_short = (1..=16).contains(&text.get_ref().len());
            let is_number = is_short && text.get_ref().bytes().all(|byte| byte.is_ascii_hexdigit());
            let refusal = || {
                let message = "a key is named by its number, up to 16 hex digits: they stand in the first line of its `.pub` file";
                invalid_at(document.place(text.span().start), message.into())
            };
            if is_number { Ok(format!("{:0>16}", text.get_ref().to_uppercase())) } else { Err(refusal()) }
        };
        let before =
            |(name, date): (Spanned<String>, Spanned<Datetime>)| Ok((name.into_inner(), at_second(&date, document)?));
        Ok(Self {
            plugins: table.plugins.into_iter().map(digest).collect::<Result<_, _>>()?,
            keys: table.keys.into_iter().map(number).collect::<Result<_, _>>()?,
            signed_before: table.signed_before.into_iter().map(before).collect::<Result<_, ConfigError>>()?,
        })
    }
}

impl Ceiling {
    /// Reads the rights in a table, as `[plugin.NAME]` writes them.
    pub(super) fn read(rights: &Table, place: &Place, reader: &Reader<'_>) -> Result<Self, ConfigError> {
        let mut found = Vec::new();
        let origin = Origin::File(place.clone());
        flatten("", rights, &mut found);
        let mut ceiling = Vec::new();
        for (key, value) in found {
            if texts(&value).any(|text| text.starts_with('~')) {
                return Err(invalid_at(place.clone(), format!("`{key}`: write whole paths, without `~`")));
            }
            let Some(right) = bounded_right(&key) else {
                let known: Vec<_> = bounded().map(|(right, _)| right).collect();
                let message = format!("`{}` is no right: they are {}", key.escape_debug(), known.join(", "));
                return Err(invalid_at(place.clone(), message));
            };
            let leaf = reader.leaf(format!("plugin.x.{key}"), value, origin.clone())?;
            ceiling.push((right, leaf.value, leaf.origin));
        }
        let mut ceiling = Self(ceiling);
        ceiling.complete(&origin);
        Ok(ceiling)
    }

    /// Reads the rights of a document that is no policy, whose paths are all whole.
    pub fn alone(rights: &Table, path: &Path) -> Result<Self, String> {
        let place = Place { path: path.to_owned(), line: 1, column: 1 };
        let reader = Reader { home: Path::new("/"), start: None, is_policy: true };
        Self::read(rights, &place, &reader).map_err(|error| error.to_string())
    }

    /// Nothing at all, by a line of a policy.
    pub fn nothing(place: &Place) -> Self {
        let mut ceiling = Self::default();
        ceiling.complete(&Origin::File(place.clone()));
        ceiling
    }

    /// What it gives and another does not, in words.
    pub fn beyond(&self, other: &Self) -> Vec<String> {
        let mut beyond = Vec::new();
        for (right, value, _) in &self.0 {
            let before = other.0.iter().find(|(named, ..)| named == right).map(|(_, value, _)| value);
            match (value, before) {
                (Value::Array(entries), Some(Value::Array(before))) => {
                    let added = entries.iter().filter(|entry| !before.contains(entry));
                    beyond.extend(added.map(|entry| format!("{right} {entry}")));
                }
                // Without a list of them, all methods and paths are meant.
                (_, before) if before != Some(value) && *value != Value::Boolean(false) => {
                    beyond.push(format!("{right} {value}"));
                }
                _ => {}
            }
        }
        let unbound = |right: &&str| !self.0.iter().any(|(named, ..)| named == right);
        let lost = other.0.iter().map(|(right, ..)| *right).filter(|right| unbound(right));
        beyond.extend(lost.map(|right| format!("{right}: any")));
        beyond
    }

    /// Adds what it does not name: that is not given.
    fn complete(&mut self, origin: &Origin) {
        for (right, rule) in bounded() {
            let is_named = self.0.iter().any(|(named, ..)| *named == right);
            self.0.extend(nothing(rule).filter(|_| !is_named).map(|nothing| (right, nothing, origin.clone())));
        }
    }

    /// The keys of all rights in a plugin's section, with their rules.
    pub(super) fn keys(name: &str) -> impl Iterator<Item = (String, Rule)> {
        bounded().map(move |(right, rule)| (format!("plugin.{name}.{right}"), rule))
    }

    /// What it says of a plugin, as a layer of settings does.
    pub(super) fn leaves(&self, name: &str) -> impl Iterator<Item = Leaf> {
        self.0.iter().map(move |(right, value, origin)| {
            let key = format!("plugin.{name}.{right}");
            let rule = rule_of(&key).expect("a right is a setting");
            Leaf { key, rule, value: value.clone(), origin: origin.clone() }
        })
    }
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The dotted keys of a table. A table that is a right itself, as `shell` can be, stays whole.
fn flatten(above: &str, table: &Table, found: &mut Vec<(String, Value)>) {
    for (name, value) in table {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match value {
            Value::Table(below) if bounded_right(&key).is_none() => flatten(&key, below, found),
            value => found.push((key, value.clone())),
        }
    }
}

fn at_second(date: &Spanned<Datetime>, document: &Document<'_>) -> Result<u64, ConfigError> {
    seconds(date.get_ref()).map_err(|message| invalid_at(document.place(date.span().start), message))
}

/// A time of a document as seconds since 1970, or the beginning of a day.
pub fn seconds(date: &Datetime) -> Result<u64, String> {
    let text = match (date.date, date.time, date.offset) {
        (Some(_), None, None) => format!("{date}T00:00:00Z"),
        (Some(_), Some(_), Some(_)) => date.to_string(),
        _ => return Err(format!("`{date}` is no moment: write 2026-11-22 or 2026-11-22T08:00:00Z")),
    };
    let time = humantime::parse_rfc3339(&text).map_err(|_| format!("`{date}` is not in UTC: write it with `Z`"))?;
    Ok(time.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::super::{Allowlist, Settings, Sources};
    use super::*;
    use proptest::prelude::*;

    const PLACES: [&str; 5] = ["/", "/a", "/a/b", "/c", "/a/bc"];

    fn ceiling(shell: bool, read: &[usize]) -> Ceiling {
        let read: Vec<Value> = read.iter().map(|at| PLACES[*at].into()).collect();
        let rights = Table::from_iter([
            ("shell".to_owned(), Value::Boolean(shell)),
            ("files".to_owned(), Table::from_iter([("read".to_owned(), Value::Array(read))]).into()),
        ]);
        Ceiling::alone(&rights, Path::new("/s.toml")).expect("rights")
    }

    /// What is open to a plugin: whether commands, and which places.
    fn open(settings: &Settings, vetted: Option<&Ceiling>, ceilings: &[&Ceiling]) -> (bool, Vec<bool>) {
        let sha256 = "0".repeat(64);
        let (config, _) = settings.config.under_locks("x", &sha256, vetted, ceilings);
        let rights = config.plugin_rights("x", &sha256, false);
        let lets = |list: &Allowlist, place: &str| match list {
            Allowlist::Any => true,
            Allowlist::Only(directories) => directories.iter().any(|directory| Path::new(place).starts_with(directory)),
        };
        let reads = |place: &&str| rights.read.iter().all(|list| lets(list, place));
        (rights.shell, PLACES.iter().map(reads).collect())
    }

    /// A policy that takes commands away counts for a vetted plugin, whatever bytes the user's section is about.
    #[test]
    fn what_a_policy_takes_away_is_not_given_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path
        };
        let policy = write("policy.toml", "[plugin.x]\nshell = false\nfiles.read = [\"/a\"]\n");
        for digest in ["0", "1"] {
            let user =
                format!("[plugin.x]\nsha256 = \"{}\"\nshell = true\nhttp.paths = [\"/v1\"]\n", digest.repeat(64));
            let sources = Sources {
                home: "/home/u".into(),
                user: Some(write("user.toml", &user)),
                policies: vec![super::super::PolicySource::named(policy.clone())],
                ..Sources::default()
            };
            let settings = Settings::load(&sources).expect("settings");
            let vetted = ceiling(true, &[0]);
            assert_eq!(open(&settings, Some(&vetted), &[]), (false, vec![false, true, true, false, true]), "{digest}");
        }
    }

    fn settings(sections: &[(bool, bool, Vec<usize>)]) -> Settings {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |(number, (is_about_it, shell, read)): (usize, &(bool, bool, Vec<usize>))| {
            let digest = if *is_about_it { "0" } else { "1" }.repeat(64);
            let read: Vec<String> = read.iter().map(|at| format!("{:?}", PLACES[*at])).collect();
            let text =
                format!("[plugin.x]\nsha256 = \"{digest}\"\nshell = {shell}\nfiles.read = [{}]\n", read.join(", "));
            let path = directory.path().join(format!("{number}.toml"));
            std::fs::write(&path, text).expect("settings");
            path
        };
        let mut files: Vec<PathBuf> = sections.iter().enumerate().map(write).collect();
        let (user, project) = (files.pop(), files.pop());
        Settings::load(&Sources { home: "/home/u".into(), user, project, ..Sources::default() }).expect("settings")
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        /// L-52: whatever a user and a project say, a plugin gets no more than with none of it, nor than any ceiling gives.
        #[test]
        fn nobody_widens_what_was_vetted(
            shells in any::<[bool; 2]>(),
            reads in any::<[prop::sample::Index; 4]>(),
            sections in prop::collection::vec((any::<bool>(), any::<bool>(), prop::collection::vec(0usize..5, 0..3)), 0..3),
        ) {
            let at = |index: &prop::sample::Index| index.index(PLACES.len());
            let vetted = ceiling(shells[0], &[at(&reads[0]), at(&reads[1])]);
            let most = ceiling(shells[1], &[at(&reads[2]), at(&reads[3])]);
            let (alone, said) = (settings(&[]), settings(&sections));
            let is_within = |(shell, places): &(bool, Vec<bool>), (most_shell, most_places): &(bool, Vec<bool>)| {
                (!shell || *most_shell) && places.iter().zip(most_places).all(|(open, most)| !open || *most)
            };
            let with_user = open(&said, Some(&vetted), &[&vetted, &most]);
            prop_assert!(is_within(&with_user, &open(&alone, Some(&vetted), &[&vetted, &most])));
            prop_assert!(is_within(&with_user, &open(&alone, Some(&most), &[])));
            // Where users grant, ceilings bind them.
            let granted = open(&said, None, &[&vetted, &most]);
            prop_assert!(is_within(&granted, &open(&said, None, &[])));
            prop_assert!(is_within(&granted, &open(&alone, Some(&most), &[])));
            prop_assert!(is_within(&granted, &open(&alone, Some(&vetted), &[])));
        }
    }
}
