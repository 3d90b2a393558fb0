//! Lays the sources of the configuration over each other and remembers where each value comes from.
//!
//! `read.rs` reads them, `narrow.rs` says what narrowing is; where files lie and what is trusted is the caller's.

use super::narrow::{RULES, Rule};
use super::policy_file::{Lock, PolicyFile};
use super::read::{Author, ConfigError, Leaf, Origin, Reader, defaults, get, invalid_at, put, read_text};
use super::remedy::Over;
use super::vetting::Ceiling;
use super::{Bounds, Config, PluginSection};
use crate::audit::{PolicyDigest, TrailSettings};
use crate::dirs::Dirs;
use serde::Deserialize;
use serde_json::{Map, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use toml::{Table, Value};

/// Notices about one project's file; a hostile one could ask for more.
const MAX_NOTICES: usize = 20;

/// Where the configuration comes from; paths are absolute.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// What `~/` stands for.
    pub home: PathBuf,
    /// The user's file, or the one that `--config` names in its place.
    pub user: Option<PathBuf>,
    /// Whether the user's file has to exist.
    pub user_required: bool,
    /// The project's `toolcrib.toml`; it need not exist.
    pub project: Option<PathBuf>,
    /// The sha256, in hex, of the project's file as the user has accepted it; other bytes are not trusted.
    pub project_sha256: Option<String>,
    /// The operator's files: each narrows what the others left.
    pub policies: Vec<PolicySource>,
    /// Environment variables; those named `TOOLCRIB_SECTION_KEY` count.
    pub environment: Vec<(String, String)>,
    /// The arguments of `--set`, each `key=value`.
    pub set: Vec<String>,
    /// What the command line says besides, for the record.
    pub flags: Vec<String>,
}

/// A policy file.
#[derive(Clone, Debug)]
pub struct PolicySource {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it has to exist.
    pub required: bool,
    /// Whether it is the machine's: then nobody but root can have put it there, or nothing starts.
    pub of_root: bool,
}

impl PolicySource {
    /// A file that whoever starts the program names.
    #[must_use]
    pub fn named(path: PathBuf) -> Self {
        Self { path, required: true, of_root: false }
    }
}

/// The effective configuration and how it came about.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The values.
    pub config: Config,
    /// Where each of them comes from.
    pub origins: Origins,
    /// The locks of the policy files, in their order: a plugin needs the word of every one.
    pub locks: Vec<Lock>,
    /// The policy files, those that are not there too.
    pub policies: Vec<PolicyDigest>,
    /// Where the audit trail is, and how it is kept.
    pub trail: TrailSettings,
    /// What the user should know: values that were ignored or dropped, and why.
    pub notices: Vec<String>,
    /// What they were read from.
    pub(crate) sources: Sources,
    /// What they were below the policies.
    pub(crate) below: Arc<Draft>,
}

/// The origin of every value by dotted key, also of caps on what no layer grants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origins(BTreeMap<String, Origin>);

impl Origins {
    /// Returns where the value of a dotted key, such as `tools.shell_env`, comes from.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Origin> {
        self.0.get(key)
    }

    /// The same, but for the keys that others have.
    pub(crate) fn with(&self, others: &Self) -> Self {
        let mut all = self.clone();
        all.0.extend(others.0.clone());
        all
    }

    /// Returns every dotted key that has an origin, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl Settings {
    /// Reads and layers all sources.
    ///
    /// # Errors
    /// When a source cannot be read or has an invalid value; an untrusted project that asks for more is only noted.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let defaults = defaults();
        let plain = Reader { home: &sources.home, start: None, is_policy: false, defaults: &defaults };
        let mut draft = Draft::new(defaults.clone());
        if let Some(path) = &sources.user {
            draft.replace(plain.file(path, sources.user_required)?);
        }
        if let Some(path) = &sources.project
            && let Some(text) = read_text(path, false, Author::Anybody)?
        {
            let leaves = Reader { start: path.parent(), ..plain }.text(path, &text)?;
            // The very text that is applied is the one that is compared.
            let is_trusted = sources.project_sha256 == Some(hex::encode(Sha256::digest(&text)));
            if is_trusted { draft.replace(leaves) } else { draft.narrow_by_project(leaves) }
        }
        draft.replace(plain.environment(&sources.environment)?);
        draft.replace(plain.set(&sources.set)?);
        Self::under_policies(sources.clone(), Arc::new(draft))
    }

    /// The same below the policies, which are read anew.
    pub(crate) fn anew(&self) -> Result<Self, ConfigError> {
        Self::under_policies(self.sources.clone(), self.below.clone())
    }

    fn under_policies(sources: Sources, below: Arc<Draft>) -> Result<Self, ConfigError> {
        let defaults = defaults();
        let reader = Reader { home: &sources.home, start: None, is_policy: true, defaults: &defaults };
        let mut draft = (*below).clone();
        let (mut locks, mut policies) = (Vec::new(), Vec::new());
        for policy in &sources.policies {
            let file = PolicyFile::read(policy, &reader)?;
            draft.narrow_by_policy(file.narrows);
            locks.extend(file.lock);
            policies.push(PolicyDigest { path: policy.path.clone(), sha256: file.sha256 });
        }
        let trail = trail(&locks)?;
        Ok(draft.finish(sources, below, locks, policies, trail))
    }

    /// Returns the file of the audit trail.
    #[must_use]
    pub fn trail_file(&self, dirs: &Dirs) -> PathBuf {
        self.trail.file.clone().unwrap_or_else(|| dirs.audit())
    }

    /// Returns the effective configuration as TOML, in the order of `default.toml`; with `origin` each line says
    /// where its value comes from. A cap on what no layer grants is a comment.
    #[must_use]
    pub fn render(&self, origin: bool) -> String {
        let values = Table::try_from(&self.config).expect("settings came from TOML");
        let mut text = String::new();
        let mut section = String::new();
        for key in self.keys() {
            let above = section_of(&key);
            if above != section {
                text += &format!("{}[{above}]\n", if text.is_empty() { "" } else { "\n" });
                above.clone_into(&mut section);
            }
            let name = &key[above.len() + 1..];
            text += &match get(&values, &key) {
                Some(value) => format!("{name} = {}", inline(value)),
                None => format!("# {name}: only {}", self.config.bounds.shown(&key)),
            };
            let shown = self.origins.get(&key).filter(|_| origin);
            text += &shown.map(|origin| format!("  # {origin}").replace(char::is_control, "?")).unwrap_or_default();
            text.push('\n');
        }
        text
    }

    /// Returns what a host sets up when it is made, and would have to set up anew for other settings: the first key that differs.
    #[must_use]
    pub(crate) fn set_up_with(&self, other: &Self) -> Option<&'static str> {
        let table = |settings: &Self| Table::try_from(&settings.config).expect("settings came from TOML");
        let (own, others) = (table(self), table(other));
        // These are asked at each decision.
        let is_asked = |key: &str| key.contains('*') || key.starts_with("tools.") || key == "approval.allow_yes";
        let mut keys = RULES.iter().map(|row| row.0).filter(|key| !is_asked(key));
        let differs = |key: &&str| get(&own, key) != get(&others, key);
        let first = keys.find(differs).or_else(|| (self.trail != other.trail).then_some("lock.audit"));
        first.or_else(|| {
            // A lock that says nothing of them leaves the user's.
            let listed =
                |settings: &Self| settings.locks.iter().filter_map(|lock| lock.directories.clone()).collect::<Vec<_>>();
            (listed(self) != listed(other)).then_some("lock.directories")
        })
    }

    /// Returns what [`Self::render`] says, for programs: by dotted key the value, or the cap on what no layer grants, and the origin.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let values = Table::try_from(&self.config).expect("settings came from TOML");
        let shown = |key: &String| {
            let origin = self.origins.get(key).map(ToString::to_string);
            match get(&values, key) {
                Some(value) => json!({ "value": value, "origin": origin }),
                None => json!({ "only": self.config.bounds.shown(key), "origin": origin }),
            }
        };
        self.keys().into_iter().map(|key| (key.clone(), shown(&key))).collect::<Map<_, _>>().into()
    }

    /// Returns the dotted key of every line to render.
    fn keys(&self) -> Vec<String> {
        let plugin = |key: &String| key.strip_prefix("plugin.")?.split('.').next().map(str::to_owned);
        let plugins: BTreeSet<_> = self.origins.0.keys().filter_map(plugin).collect();
        let (own, shared): (Vec<_>, Vec<_>) = RULES.iter().map(|row| row.0).partition(|key| key.contains('*'));
        let mut keys: Vec<_> = shared.into_iter().map(str::to_owned).collect();
        keys.extend(plugins.iter().flat_map(|plugin| own.iter().map(move |pattern| pattern.replace('*', plugin))));
        keys.retain(|key| self.origins.get(key).is_some());
        keys
    }
}

/// The layers so far.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    values: Table,
    origins: Origins,
    bounds: Bounds,
    notices: Vec<String>,
}

impl Draft {
    fn new(values: Table) -> Self {
        let shared = RULES.iter().filter(|(key, _)| !key.contains('*'));
        let origins = Origins(shared.map(|(key, _)| ((*key).to_owned(), Origin::Default)).collect());
        Self { values, origins, bounds: Bounds::default(), notices: Vec::new() }
    }

    fn replace(&mut self, mut leaves: Vec<Leaf>) {
        leaves.sort_by_key(|leaf| leaf.rule != Rule::Digest);
        for leaf in leaves {
            if leaf.rule == Rule::Digest && get(&self.values, &leaf.key) != Some(&leaf.value) {
                self.drop_plugin(section_of(&leaf.key));
            }
            self.bounds.lists.remove(&leaf.key);
            put(&mut self.values, &leaf.key, leaf.value);
            self.origins.0.insert(leaf.key, leaf.origin);
        }
    }

    fn narrow_by_project(&mut self, leaves: Vec<Leaf>) {
        let mut notices = Vec::new();
        for leaf in leaves {
            let base = get(&self.values, &leaf.key);
            let narrowed = if leaf.rule.applies_to_projects() { leaf.narrowing(base) } else { None };
            let narrowed = narrowed.filter(|narrowed| base != Some(narrowed));
            if let Some(what) = leaf.beyond(base, narrowed.as_ref()) {
                notices.push(format!(
                    "{}: `{}` {what}: a project that is not trusted can only narrow; `toolcrib trust` would accept it",
                    leaf.origin, leaf.key
                ));
            }
            if narrowed.is_some() || leaf.is_cap(base) {
                self.note(&leaf, false);
                self.narrow(leaf, narrowed);
            }
        }
        let more = notices.len().saturating_sub(MAX_NOTICES);
        notices.truncate(MAX_NOTICES);
        self.notices.append(&mut notices);
        self.notices.extend((more > 0).then(|| format!("{more} more settings of the project are ignored likewise")));
    }

    fn narrow_by_policy(&mut self, leaves: Vec<Leaf>) {
        for leaf in leaves {
            self.note(&leaf, true);
            if leaf.rule == Rule::Digest {
                self.demand(leaf);
            } else {
                self.narrow_to(leaf);
            }
        }
    }

    /// Remembers a line that narrows, for hints.
    fn note(&mut self, leaf: &Leaf, is_policy: bool) {
        if let Origin::File(place) = &leaf.origin {
            let Leaf { key, rule, value, .. } = leaf;
            let (key, value, place) = (key.clone(), value.clone(), place.clone());
            self.bounds.remedies.add(Over { key, rule: *rule, value, place, is_policy });
        }
    }

    /// Narrows a value by what a leaf says of it.
    fn narrow_to(&mut self, leaf: Leaf) {
        let narrowed = leaf.narrowing(get(&self.values, &leaf.key));
        self.narrow(leaf, narrowed);
    }

    /// Puts `narrowed` in the place of a value; without it, no layer has granted what the leaf caps.
    fn narrow(&mut self, leaf: Leaf, narrowed: Option<Value>) {
        let base = get(&self.values, &leaf.key);
        let bound = leaf.rule.bound(&leaf.value);
        let is_cap = base.is_none() && bound.is_some();
        if let Some(bound) = bound {
            let own = base.and_then(|base| leaf.rule.bound(base));
            self.bounds.lists.entry(leaf.key.clone()).or_insert_with(|| own.into_iter().collect()).push(bound);
        }
        if is_cap || base != narrowed.as_ref() {
            self.origins.0.insert(leaf.key.clone(), leaf.origin.narrowed());
        }
        if let Some(narrowed) = narrowed {
            put(&mut self.values, &leaf.key, narrowed);
        }
    }

    /// Binds a plugin to a digest; a section about other bytes is dropped, and no bytes fit both.
    fn demand(&mut self, leaf: Leaf) {
        let section = section_of(&leaf.key);
        let name = section.trim_start_matches("plugin.");
        let base = get(&self.values, &leaf.key);
        let other = base.filter(|base| **base != leaf.value).cloned();
        let demanded = [Some(&leaf.value), other.as_ref()].into_iter().flatten().filter_map(Value::as_str);
        self.bounds.digests.entry(name.to_owned()).or_default().extend(demanded.map(str::to_owned));
        if other.is_some() {
            self.notices.push(format!("{}: `[{section}]` is dropped: the policy allows other bytes", leaf.origin));
            self.drop_plugin(section);
        }
        if get(&self.values, &leaf.key).is_none() {
            self.origins.0.insert(leaf.key, leaf.origin.narrowed());
        }
    }

    /// Forgets a section: what it grants is for the bytes it was written about.
    fn drop_plugin(&mut self, section: &str) {
        if let Some(Value::Table(plugins)) = self.values.get_mut("plugin") {
            plugins.remove(section.trim_start_matches("plugin."));
        }
        self.origins.0.retain(|key, _| section_of(key) != section);
    }

    fn finish(
        self,
        sources: Sources,
        below: Arc<Self>,
        locks: Vec<Lock>,
        policies: Vec<PolicyDigest>,
        trail: TrailSettings,
    ) -> Settings {
        let config = Config::deserialize(Value::Table(self.values)).expect("every value was checked when it was read");
        let config = Config { bounds: self.bounds, ..config };
        Settings { config, origins: self.origins, locks, policies, trail, notices: self.notices, sources, below }
    }
}

impl Config {
    /// The settings as locks leave them to one plugin, and where what they changed comes from. With `vetted`, that is what it gets, and its
    /// section only narrows; `ceilings` narrow further.
    pub(crate) fn under_locks(
        &self,
        name: &str,
        sha256: &str,
        vetted: Option<&Ceiling>,
        ceilings: &[&Ceiling],
    ) -> (Self, Origins) {
        let section = self.plugin.get(name).cloned().unwrap_or_default();
        let own = Table::try_from(&section).expect("a section came from TOML");
        let values = Table::from_iter([("plugin".into(), Table::from_iter([(name.into(), own.into())]).into())]);
        let (origins, notices) = (Origins::default(), Vec::new());
        let mut draft = Draft { values, origins, bounds: self.bounds.clone(), notices };
        if let Some(vetted) = vetted {
            let is_about_it = section.sha256.as_ref().is_none_or(|digest| digest.eq_ignore_ascii_case(sha256));
            let before = std::mem::take(&mut draft.values);
            put(&mut draft.values, &format!("plugin.{name}.sha256"), sha256.into());
            if let Some(enabled) = section.enabled {
                put(&mut draft.values, &format!("plugin.{name}.enabled"), enabled.into());
            }
            // What a section says of commands may be a policy's word, and that counts for any bytes; to narrow is never too much.
            let counts = |rule| is_about_it || rule == Rule::Shell;
            let own = Ceiling::keys(name).filter(|(_, rule)| counts(*rule)).filter_map(|(key, rule)| {
                let value = get(&before, &key)?.clone();
                Some(Leaf { key, rule, value, origin: Origin::Set })
            });
            let narrowing: Vec<Leaf> = own.collect();
            let leaves: Vec<Leaf> = vetted.leaves(name).collect();
            draft.replace(leaves);
            draft.bounds.lists.extend(self.bounds.lists.clone());
            narrowing.into_iter().for_each(|leaf| draft.narrow_to(leaf));
            // Where a section narrowed is known to the settings themselves.
            draft.origins.0.retain(|_, origin| *origin != Origin::Set);
        }
        for ceiling in ceilings {
            ceiling.leaves(name).for_each(|leaf| {
                draft.note(&leaf, true);
                draft.narrow_to(leaf);
            });
        }
        let section = get(&draft.values, &format!("plugin.{name}")).cloned();
        let section = section.map(|section| PluginSection::deserialize(section).expect("every value was checked"));
        let plugin = BTreeMap::from_iter([(name.to_owned(), section.unwrap_or_default())]);
        (Self { plugin, bounds: draft.bounds, ..self.clone() }, draft.origins)
    }
}

/// Where the trail is by these locks: two that both say so would each have the other's lines in another file.
fn trail(locks: &[Lock]) -> Result<TrailSettings, ConfigError> {
    let mut said = locks.iter().filter_map(|lock| lock.audit.as_ref());
    let Some((first, trail)) = said.next() else { return Ok(TrailSettings::default()) };
    match said.next() {
        None => Ok(trail.clone()),
        Some((other, _)) => {
            let message = format!("`[lock.audit]` is in {first} already, and there is one audit trail");
            Err(invalid_at(other.clone(), message))
        }
    }
}

impl Leaf {
    /// Returns what is left of `base`; `None` where there is nothing to narrow.
    fn narrowing(&self, base: Option<&Value>) -> Option<Value> {
        match base {
            Some(base) => Some(self.rule.narrow(base, &self.value)),
            None => self.rule.gives_nothing(&self.value).then(|| self.value.clone()),
        }
    }

    /// Returns what becomes of a wish that goes beyond narrowing `base`.
    fn beyond(&self, base: Option<&Value>, narrowed: Option<&Value>) -> Option<&'static str> {
        const NARROWS: &str = "applies only as far as it narrows";
        match narrowed {
            None if self.is_cap(base) => Some(NARROWS),
            None => base.is_none_or(|base| !alike(base, &self.value)).then_some("is ignored"),
            Some(_) if self.rule == Rule::Union => None,
            Some(narrowed) => (!alike(narrowed, &self.value)).then_some(NARROWS),
        }
    }

    /// Returns whether a project's value binds plugins that no layer has granted anything.
    fn is_cap(&self, base: Option<&Value>) -> bool {
        base.is_none() && self.rule.caps() && self.rule.bound(&self.value).is_some()
    }
}

impl Bounds {
    fn shown(&self, key: &str) -> String {
        let lists = self.lists.get(key).into_iter().flatten();
        let lists = lists.map(|list| inline(&Value::try_from(list).expect("lists came from TOML")));
        let name = section_of(key).trim_start_matches("plugin.");
        let digests = self.digests.get(name).filter(|_| key.ends_with(".sha256")).into_iter().flatten().cloned();
        lists.chain(digests).collect::<Vec<_>>().join(" and ")
    }
}

/// Returns the section that a dotted key is printed in.
fn section_of(key: &str) -> &str {
    let dots = if key.starts_with("plugin.") { 2 } else { 1 };
    key.match_indices('.').nth(dots - 1).map_or(key, |(at, _)| &key[..at])
}

/// Returns whether two values say the same; the order of a list says nothing.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.iter().all(|entry| other.contains(entry)) && other.iter().all(|entry| one.contains(entry))
        }
        _ => one == other,
    }
}

/// Returns the value as TOML on one line.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(entries) => format!("[{}]", entries.iter().map(inline).collect::<Vec<_>>().join(", ")),
        value => value.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Allowlist, HostList, HostPattern};
    use crate::policy::rights::HttpRights;
    use std::fs;
    use std::path::Path;
    use tempfile::TempDir;

    /// Sources in a directory of their own, with `/home/u` as home.
    struct Given {
        directory: TempDir,
        sources: Sources,
    }

    fn given() -> Given {
        let directory = tempfile::tempdir().unwrap();
        Given { directory, sources: Sources { home: "/home/u".into(), ..Sources::default() } }
    }

    impl Given {
        fn file(&self, name: &str, text: &str) -> PathBuf {
            let path = self.directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }

        fn user(mut self, text: &str) -> Self {
            self.sources.user = Some(self.file("user.toml", text));
            self
        }

        fn project(mut self, text: &str) -> Self {
            self.sources.project = Some(self.file("project/toolcrib.toml", text));
            self
        }

        fn trusted(mut self) -> Self {
            let text = fs::read(self.sources.project.as_ref().unwrap()).unwrap();
            self.sources.project_sha256 = Some(hex::encode(Sha256::digest(text)));
            self
        }

        fn policy(mut self, text: &str) -> Self {
            let path = self.file(&format!("policy{}.toml", self.sources.policies.len()), text);
            self.sources.policies.push(PolicySource::named(path));
            self
        }

        fn variable(mut self, name: &str, value: &str) -> Self {
            self.sources.environment.push((name.to_owned(), value.to_owned()));
            self
        }

        fn set(mut self, argument: &str) -> Self {
            self.sources.set.push(argument.to_owned());
            self
        }

        fn settings(&self) -> Settings {
            Settings::load(&self.sources).unwrap()
        }

        /// Returns the error, the test's own directory left out.
        fn error(&self) -> String {
            self.shorten(&Settings::load(&self.sources).unwrap_err().to_string())
        }

        fn notices(&self) -> Vec<String> {
            self.settings().notices.iter().map(|notice| self.shorten(notice)).collect()
        }

        fn origin(&self, key: &str) -> String {
            self.shorten(&self.settings().origins.get(key).unwrap().to_string())
        }

        fn render(&self) -> String {
            self.shorten(&self.settings().render(true))
        }

        fn shorten(&self, text: &str) -> String {
            text.replace(&format!("{}/", self.directory.path().display()), "")
        }
    }

    fn only(directories: &[&str]) -> Allowlist {
        Allowlist::Only(directories.iter().map(PathBuf::from).collect())
    }

    fn allows(lists: &[Allowlist], path: &str) -> bool {
        lists.iter().all(|list| list.contains(Path::new(path)))
    }

    fn domains(entries: &[&str]) -> HostList {
        HostList::Only(entries.iter().map(|entry| HostPattern::domain(entry).unwrap()).collect())
    }

    fn hosts(entries: &[&str]) -> HostList {
        HostList::Only(entries.iter().map(|entry| HostPattern::exact(entry).unwrap()).collect())
    }

    fn ranges(entries: &[&str]) -> Vec<HostPattern> {
        entries.iter().map(|entry| HostPattern::range(entry).unwrap()).collect()
    }

    fn reaches(lists: &[HostList], name: &str) -> bool {
        lists.iter().all(|list| list.covers_name(name))
    }

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    #[test]
    fn no_sources_give_the_defaults() {
        let settings = given().settings();
        assert_eq!(settings.config, Config::default());
        assert_eq!(settings.notices, [""; 0]);
        assert_eq!(given().origin("limits.call_ms"), "default");
    }

    #[test]
    fn each_layer_outranks_the_one_before() {
        let given = given().user("limits.call_ms = 1");
        assert_eq!(
            (given.settings().config.limits.call_ms, given.origin("limits.call_ms").as_str()),
            (1, "user.toml:1")
        );
        let given = given.project("[limits]\ncall_ms = 2").trusted();
        assert_eq!(given.settings().config.limits.call_ms, 2);
        assert_eq!(given.origin("limits.call_ms"), "project/toolcrib.toml:2");
        let given = given.variable("TOOLCRIB_LIMITS_CALL_MS", "3");
        assert_eq!(given.settings().config.limits.call_ms, 3);
        assert_eq!(given.origin("limits.call_ms"), "environment TOOLCRIB_LIMITS_CALL_MS");
        let given = given.set("limits.call_ms=40");
        assert_eq!((given.settings().config.limits.call_ms, given.origin("limits.call_ms").as_str()), (40, "--set"));
        let given = given.policy("[limits]\n\ncall_ms = 30");
        assert_eq!(given.settings().config.limits.call_ms, 30);
        assert_eq!(given.origin("limits.call_ms"), "narrowed by policy0.toml:3");
    }

    #[test]
    fn a_policy_narrows_every_setting_by_its_rule() {
        let given =
            given().user("[tools]\nshell_denylist = ['a', 'b']\nshell_env = ['X', 'Y']\nshell_confirm = false").policy(
                "[tools]\nshell_enabled = false\nfiles_enabled = false\nshell_confirm = true\n\
                 shell_denylist = ['b', 'c']\nshell_env = ['Y', 'Z']\n\
                 [approval]\nallow_yes = false\ntimeout_ms = 5\n[limits]\nmemory_mib = 4096\nhandles = 1",
            );
        let Config { tools, approval, limits, .. } = given.settings().config;
        assert_eq!((tools.shell_enabled, tools.files_enabled, tools.shell_confirm), (false, false, true));
        assert_eq!(
            (tools.shell_denylist, tools.shell_env),
            (vec!["a".into(), "b".into(), "c".into()], vec!["Y".into()])
        );
        assert_eq!((approval.allow_yes, approval.timeout_ms), (false, 5));
        assert_eq!((limits.memory_mib, limits.handles), (64, 1));
        assert_eq!(given.origin("limits.memory_mib"), "default");
        assert_eq!(given.notices(), [""; 0]);
    }

    #[test]
    fn a_policy_narrows_every_setting_about_requests_by_its_rule() {
        let given = given()
            .user(
                "[tools]\nfetch_blocked_domains = ['a.com']\nfetch_private_ranges = ['10.0.0.0/8', '::1']\n\
                 fetch_ports = [80, 8080]\nfetch_allowed_domains = ['a.com', 'b.com']",
            )
            .policy(
                "[tools]\nfetch_enabled = false\nfetch_confirm = true\nfetch_plain_http = false\n\
                 fetch_allowed_domains = ['*.a.com', 'c.com']\nfetch_blocked_domains = ['b.com']\n\
                 fetch_private_ranges = ['10.1.0.0/16']\nfetch_ports = [443, 80]\nsearch_enabled = false\n\
                 [network]\nfetch_timeout_secs = 5",
            );
        let Config { tools, network, .. } = given.settings().config;
        assert_eq!(
            (tools.fetch_enabled, tools.fetch_confirm, tools.fetch_plain_http, tools.search_enabled),
            (false, true, false, false)
        );
        assert_eq!(tools.fetch_allowed_domains, domains(&["*.a.com"]));
        assert_eq!(HostList::Only(tools.fetch_blocked_domains), domains(&["a.com", "b.com"]));
        assert_eq!((tools.fetch_private_ranges, tools.fetch_ports), (ranges(&["10.1.0.0/16"]), vec![80]));
        assert_eq!(network.fetch_timeout_secs, 5);
        assert_eq!(given.notices(), [""; 0]);
    }

    #[test]
    fn a_policy_never_widens() {
        let given = given()
            .user(
                "approval.allow_yes = false\n\
                 [tools]\nshell_enabled = false\nfiles_allowed_paths = ['/a']\nshell_env = []\n\
                 fetch_enabled = false\nfetch_confirm = true\nfetch_allowed_domains = ['a.com']\n\
                 fetch_blocked_domains = ['b.a.com']",
            )
            .policy(
                "[tools]\nshell_enabled = true\nshell_confirm = false\nshell_denylist = []\nshell_env = ['X']\n\
                 files_allowed_paths = ['/']\nfetch_enabled = true\nfetch_confirm = false\n\
                 fetch_allowed_domains = ['com', 'org']\nfetch_blocked_domains = []\n\
                 fetch_private_ranges = ['0.0.0.0/0']\nfetch_ports = [22, 80, 443]\n\
                 [approval]\nallow_yes = true\ntimeout_ms = 31536000000\n\
                 [network]\nfetch_timeout_secs = 3600\n[limits]\ncall_ms = 31536000000",
            );
        let mut settings = given.settings();
        settings.config.bounds = Bounds::default();
        assert_eq!(
            settings.config,
            Given { sources: Sources { policies: Vec::new(), ..given.sources }, ..given }.settings().config
        );
    }

    #[test]
    fn what_is_the_users_alone_cannot_be_set_by_policy() {
        for (line, column, key) in [
            ("agent.name = 'x'", 7, "agent.name"),
            ("tools.search_endpoint = 'https://a.com/'", 7, "tools.search_endpoint"),
            ("network.dns_servers = ['127.0.0.1']", 9, "network.dns_servers"),
            ("network.ca_file = '/a'", 9, "network.ca_file"),
            ("plugin.x.http.base = 'https://a.com/'", 15, "plugin.x.http.base"),
        ] {
            let expected = format!("policy0.toml:1:{column}: `{key}` cannot be set by policy");
            assert_eq!(given().policy(line).error(), expected);
        }
    }

    #[test]
    fn an_empty_list_of_paths_is_everywhere_for_the_user_and_nowhere_for_a_policy() {
        let given = given().user("tools.files_allowed_paths = []");
        assert_eq!(given.settings().config.tools.files_allowed_paths, Allowlist::Any);
        let given = given.policy("tools.files_allowed_paths = []");
        assert_eq!(given.settings().config.tools.files_allowed_paths, Allowlist::NOTHING);
        assert!(given.render().contains("files_allowed_paths = \"none\"  # narrowed by policy0.toml:1"));
    }

    #[test]
    fn an_empty_list_of_domains_is_every_host_for_the_user_and_none_for_a_policy() {
        let given = given().user("tools.fetch_allowed_domains = []");
        assert_eq!(given.settings().config.allowed_domains(), [HostList::Any]);
        let given = given.policy("tools.fetch_allowed_domains = []");
        assert_eq!(given.settings().config.tools.fetch_allowed_domains, HostList::NOTHING);
        assert!(given.render().contains("fetch_allowed_domains = \"none\"  # narrowed by policy0.toml:1"));
        let given = given.set("tools.fetch_allowed_domains=none");
        assert_eq!(given.settings().config.tools.fetch_allowed_domains, HostList::NOTHING);
    }

    #[test]
    fn a_host_is_held_against_every_list_that_took_part() {
        let given = given()
            .user("tools.fetch_allowed_domains = ['a.com', '10.0.0.0/8']")
            .policy("tools.fetch_allowed_domains = ['b.a.com', '10.1.0.0/16']")
            .policy("tools.fetch_allowed_domains = ['com', '10.0.0.0/8']");
        let settings = given.settings();
        assert_eq!(settings.config.tools.fetch_allowed_domains, domains(&["b.a.com", "10.1.0.0/16"]));
        assert_eq!(
            settings.config.allowed_domains(),
            [
                domains(&["b.a.com", "10.1.0.0/16"]),
                domains(&["a.com", "10.0.0.0/8"]),
                domains(&["b.a.com", "10.1.0.0/16"]),
                domains(&["com", "10.0.0.0/8"]),
            ]
        );
        assert_eq!(HostList::Only(settings.config.opened_domains().to_vec()), domains(&["a.com", "10.0.0.0/8"]));
    }

    #[test]
    fn only_the_user_opens_private_addresses() {
        let given = given().project("[tools]\nfetch_allowed_domains = ['router.lan']\nfetch_private_ranges = []");
        let config = given.settings().config;
        assert_eq!(config.tools.fetch_allowed_domains, domains(&["router.lan"]));
        assert!(config.opened_domains().is_empty());
        assert_eq!(given.notices(), [""; 0]);
        let given = given.trusted().policy("tools.fetch_allowed_domains = ['lan']");
        assert_eq!(HostList::Only(given.settings().config.opened_domains().to_vec()), domains(&["router.lan"]));
        let given = given.policy("tools.fetch_private_ranges = ['10.0.0.0/8']");
        assert!(given.settings().config.tools.fetch_private_ranges.is_empty());
    }

    #[test]
    fn private_addresses_are_open_within_every_list_that_took_part() {
        let given = given()
            .user("tools.fetch_private_ranges = ['127.0.0.1', '10.1.0.0/16']")
            .policy("tools.fetch_private_ranges = ['10.0.0.0/8']");
        assert_eq!(
            given.settings().config.private_ranges(),
            [ranges(&["10.1.0.0/16"]), ranges(&["127.0.0.1", "10.1.0.0/16"]), ranges(&["10.0.0.0/8"])]
        );
        assert_eq!(given.origin("tools.fetch_private_ranges"), "narrowed by policy0.toml:1");
        let given = given.set("tools.fetch_private_ranges=['10.0.0.0/8']");
        assert_eq!(given.settings().config.tools.fetch_private_ranges, ranges(&["10.0.0.0/8"]));
    }

    #[test]
    fn a_policy_leaves_of_paths_what_both_allow() {
        let given = given()
            .user("tools.files_allowed_paths = ['~/work', '/srv']")
            .policy("tools.files_allowed_paths = ['/home', '/srv/a/../b/.', '/opt']");
        assert_eq!(given.settings().config.tools.files_allowed_paths, only(&["/home/u/work", "/srv/b"]));
        let apart = given.set("tools.files_allowed_paths=['/usr']");
        assert_eq!(apart.settings().config.tools.files_allowed_paths, Allowlist::NOTHING);
    }

    #[test]
    fn a_link_out_of_a_policy_stays_outside() {
        let given = given()
            .user("tools.files_allowed_paths = ['/home/u/link', '/etc']")
            .policy("tools.files_allowed_paths = ['/home']");
        let settings = given.settings();
        assert_eq!(settings.config.tools.files_allowed_paths, only(&["/home/u/link"]));
        let lists = settings.config.allowed_paths();
        assert_eq!(lists, [only(&["/home/u/link"]), only(&["/home/u/link", "/etc"]), only(&["/home"])]);
    }

    #[test]
    fn only_the_user_opens_sensitive_directories() {
        let given = given().project("tools.files_allowed_paths = ['/etc']");
        let settings = given.settings();
        assert_eq!(settings.config.tools.files_allowed_paths, only(&["/etc"]));
        assert!(settings.config.opened_paths().is_empty());
        let settings = given.trusted().policy("tools.files_allowed_paths = ['/']").settings();
        assert_eq!(settings.config.opened_paths(), [PathBuf::from("/etc")]);
    }

    #[test]
    fn a_later_layer_of_the_user_undoes_what_a_project_narrowed() {
        let given = given()
            .project("tools.files_allowed_paths = ['src']")
            .variable("TOOLCRIB_TOOLS_FILES_ALLOWED_PATHS", "['/etc']");
        let config = given.settings().config;
        assert_eq!((config.allowed_paths(), config.opened_paths()), (vec![only(&["/etc"])], &["/etc".into()][..]));
    }

    #[test]
    fn an_untrusted_project_narrows() {
        let given = given().user("tools.shell_env = ['X', 'Y']").project(
            "[tools]\nshell_enabled = false\nshell_denylist = ['git push']\nshell_env = ['Y']\n\
             files_allowed_paths = ['src', '../x']\n[limits]\ncall_ms = 10",
        );
        let Config { tools, limits, .. } = given.settings().config;
        assert_eq!((tools.shell_enabled, limits.call_ms, tools.shell_env), (false, 10, vec!["Y".into()]));
        assert_eq!(tools.shell_denylist.len(), 7);
        let start = given.directory.path();
        assert_eq!(tools.files_allowed_paths, Allowlist::Only(vec![start.join("project/src"), start.join("x")]));
        assert_eq!(given.origin("tools.shell_denylist"), "narrowed by project/toolcrib.toml:3");
        assert_eq!(given.notices(), [""; 0]);
    }

    #[test]
    fn an_untrusted_project_that_asks_for_more_is_ignored_with_a_notice() {
        for (line, key) in [
            ("agent.name = 'root'", "agent.name"),
            ("tools.shell_confirm = false", "tools.shell_confirm"),
            ("tools.shell_denylist = []", "tools.shell_denylist"),
            ("tools.shell_env = ['TOKEN']", "tools.shell_env"),
            ("tools.files_allowed_paths = []", "tools.files_allowed_paths"),
            ("tools.fetch_confirm = false", "tools.fetch_confirm"),
            ("tools.fetch_allowed_domains = []", "tools.fetch_allowed_domains"),
            ("tools.fetch_allowed_domains = ['com']", "tools.fetch_allowed_domains"),
            ("tools.fetch_private_ranges = ['127.0.0.1']", "tools.fetch_private_ranges"),
            ("tools.search_endpoint = 'https://evil.com/'", "tools.search_endpoint"),
            ("tmux.enabled = false", "tmux.enabled"),
            ("network.fetch_timeout_secs = 21", "network.fetch_timeout_secs"),
            ("network.dns_servers = ['192.0.2.1']", "network.dns_servers"),
            ("network.ca_file = 'evil.pem'", "network.ca_file"),
            ("plugin.x.http.base = 'https://evil.com/'", "plugin.x.http.base"),
            ("limits.call_ms = 60001", "limits.call_ms"),
            ("plugin.x.shell = true", "plugin.x.shell"),
            ("plugin.x.files.read = ['/']", "plugin.x.files.read"),
            ("plugin.x.files.write = ['.']", "plugin.x.files.write"),
        ] {
            let given = given()
                .user("[tools]\nfiles_allowed_paths = ['/a']\nfetch_confirm = true\nfetch_allowed_domains = ['a.com']");
            let before = given.settings();
            let given = given.project(&format!("\n{line}"));
            let after = given.settings();
            assert_eq!((after.config, after.origins), (before.config, before.origins), "{line}");
            let notice = format!(
                "project/toolcrib.toml:2: `{key}` is ignored: a project that is not trusted can only narrow; \
                 `toolcrib trust` would accept it"
            );
            assert_eq!(given.notices(), [notice]);
            let accepted = given.trusted();
            assert_eq!(accepted.origin(key), "project/toolcrib.toml:2");
            assert_eq!(accepted.notices(), [""; 0]);
        }
    }

    #[test]
    fn notices_about_a_project_are_bounded() {
        let lines: String = (0..30).map(|number| format!("plugin.p{number}.shell = true\n")).collect();
        let notices = given().project(&lines).notices();
        assert_eq!((notices.len(), notices[20].as_str()), (21, "10 more settings of the project are ignored likewise"));
    }

    #[test]
    fn an_untrusted_project_is_taken_as_far_as_it_narrows() {
        let given = given().user("tools.shell_env = ['X', 'Y']").project("tools.shell_env = ['Y', 'TOKEN']");
        assert_eq!(given.settings().config.tools.shell_env, ["Y"]);
        assert!(given.notices()[0].contains("`tools.shell_env` applies only as far as it narrows"));
    }

    #[test]
    fn an_untrusted_project_that_repeats_what_holds_is_not_noted() {
        let given = given()
            .user("agent.name = 'x'\ntools.shell_env = ['X', 'Y']")
            .project("agent.name = 'x'\ntools.shell_env = ['Y', 'X']\nlimits.call_ms = 60000");
        assert_eq!(given.notices(), [""; 0]);
        assert_eq!(given.origin("tools.shell_env"), "user.toml:2");
    }

    #[test]
    fn an_untrusted_project_cannot_give_a_section_other_bytes() {
        let given = given().user("plugin.x.files.read = ['/a']").project(&format!("plugin.x.sha256 = '{B}'"));
        let config = given.settings().config;
        assert!(!allows(&config.plugin_rights("x", B, false).read, "/a"));
        assert!(given.notices()[0].contains("`plugin.x.sha256` is ignored"));
    }

    #[test]
    fn a_section_grants_to_its_bytes_only() {
        let given = given()
            .user(&format!("[plugin.x]\nsha256 = '{}'\nshell = true\nfiles.read = ['~/work']", A.to_uppercase()));
        let config = given.settings().config;
        let rights = config.plugin_rights("x", A, false);
        assert!(rights.shell && allows(&rights.read, "/home/u/work/a") && !allows(&rights.read, "/home/u/workshop"));
        assert!(!allows(&rights.write, "/home/u/work/a"));
        for embedded in [true, false] {
            let rights = config.plugin_rights("x", B, embedded);
            assert!(!rights.shell && !allows(&rights.read, "/home/u/work/a"));
        }
    }

    #[test]
    fn a_section_without_digest_grants_nothing_to_foreign_bytes() {
        let config = given().user("plugin.x.shell = true\nplugin.x.files.read = ['/a']").settings().config;
        let rights = config.plugin_rights("x", A, false);
        assert!(!rights.shell && !allows(&rights.read, "/a/b"));
        let rights = config.plugin_rights("x", A, true);
        assert!(
            rights.shell && allows(&rights.read, "/a/b") && !allows(&rights.read, "/b") && allows(&rights.write, "/b")
        );
    }

    #[test]
    fn a_layer_about_other_bytes_starts_with_nothing() {
        let given = given()
            .user(&format!("[plugin.x]\nsha256 = '{A}'\nshell = true\nfiles.read = ['/']"))
            .project(&format!("[plugin.x]\nfiles.write = ['src']\nsha256 = '{B}'"))
            .trusted();
        let config = given.settings().config;
        let rights = config.plugin_rights("x", B, false);
        assert!(!rights.shell && !allows(&rights.read, "/a"));
        assert_eq!(rights.write, [Allowlist::Only(vec![given.directory.path().join("project/src")])]);
        assert_eq!(given.settings().origins.get("plugin.x.shell"), None);
    }

    #[test]
    fn a_policy_takes_the_shell_from_an_embedded_plugin() {
        let given = given().policy("[plugin.x]\nshell = false").policy("[plugin.x]\nshell = true");
        assert!(!given.settings().config.plugin_rights("x", A, true).shell);
        assert_eq!(given.origin("plugin.x.shell"), "narrowed by policy0.toml:2");
    }

    #[test]
    fn panes_are_for_a_grant_that_names_them() {
        for (line, expected) in [
            ("shell = true", (true, false)),
            ("shell.pane = true", (true, true)),
            ("shell = { pane = true }", (true, true)),
            ("shell.pane = false", (true, false)),
            ("shell = false", (false, false)),
        ] {
            let config = given().user(&format!("[plugin.x]\nsha256 = '{A}'\n{line}")).settings().config;
            let rights = config.plugin_rights("x", A, false);
            assert_eq!((rights.shell, rights.pane), expected, "{line}");
        }
        let set = given().set(&format!("plugin.x.sha256={A}")).set("plugin.x.shell.pane=true").settings().config;
        assert!(set.plugin_rights("x", A, false).pane);
        assert!(given().settings().config.plugin_rights("x", A, true).pane);
    }

    #[test]
    fn a_policy_or_an_untrusted_project_takes_panes_and_gives_none() {
        let user = format!("[plugin.x]\nsha256 = '{A}'\nshell.pane = true\n[plugin.y]\nsha256 = '{A}'\nshell = true");
        for line in ["[plugin.x]\nshell.pane = false", "[plugin.x]\nshell = false"] {
            for given in [given().user(&user).policy(line), given().user(&user).project(line)] {
                assert!(!given.settings().config.plugin_rights("x", A, false).pane, "{line}");
            }
        }
        for given in [
            given().policy("plugin.run_shell.shell.pane = false"),
            given().project("plugin.run_shell.shell.pane = false"),
        ] {
            let rights = given.settings().config.plugin_rights("run_shell", A, true);
            assert_eq!((rights.shell, rights.pane), (true, false));
            assert!(given.render().contains("# shell: only { pane = false }"), "{}", given.render());
        }
        let more = given().user(&user).policy("plugin.y.shell.pane = true").settings().config;
        assert!(!more.plugin_rights("y", A, false).pane);
        let same = given().user(&user).policy("plugin.x.shell = true").settings().config;
        assert!(same.plugin_rights("x", A, false).pane);
    }

    #[test]
    fn a_grant_for_panes_is_rendered_as_it_is_written() {
        let given = given().user("plugin.x.shell.pane = true");
        assert!(given.render().contains("[plugin.x]\nshell = { pane = true }  # user.toml:1\n"), "{}", given.render());
    }

    #[test]
    fn a_policy_caps_a_plugin_and_grants_it_nothing() {
        let policy = format!("[plugin.x]\nsha256 = '{A}'\nshell = true\nfiles.read = ['/srv']\nfiles.write = []");
        let given = given().policy(&policy);
        let config = given.settings().config;
        let foreign = config.plugin_rights("x", A, false);
        assert!(!foreign.shell && !allows(&foreign.read, "/srv/a") && !allows(&foreign.write, "/srv/a"));
        let embedded = config.plugin_rights("x", A, true);
        assert!(embedded.shell && allows(&embedded.read, "/srv/a") && !allows(&embedded.read, "/a"));
        assert!(!allows(&embedded.write, "/srv/a"));
        assert!(!config.plugin_rights("x", B, true).shell);
        let lines = format!(
            "[plugin.x]\n# sha256: only {A}  # narrowed by policy0.toml:2\n\
             # files.read: only [\"/srv\"]  # narrowed by policy0.toml:4\n\
             files.write = []  # narrowed by policy0.toml:5\n"
        );
        assert!(given.render().ends_with(&lines), "{}", given.render());
    }

    #[test]
    fn a_section_grants_requests_to_its_bytes_only() {
        let given = given().user(&format!(
            "[plugin.x]\nsha256 = '{A}'\nhttp.hosts = ['a.com', '*.b.com']\nhttp.methods = ['POST']\n\
             http.paths = ['/v1/']\nhttp.base = 'https://a.com/v1/'"
        ));
        let config = given.settings().config;
        let rights = HttpRights {
            hosts: vec![hosts(&["a.com", "*.b.com"])],
            methods: vec![vec!["POST".into()]],
            paths: vec![vec!["/v1".into()]],
            base: Some("https://a.com/v1/".into()),
        };
        assert_eq!(config.plugin_rights("x", A, false).http, Some(rights));
        for embedded in [true, false] {
            assert_eq!(config.plugin_rights("x", B, embedded).http, None);
        }
    }

    #[test]
    fn a_section_without_hosts_leaves_them_to_embedded_bytes() {
        let config = given().user("plugin.x.http.methods = ['POST']").settings().config;
        assert_eq!(config.plugin_rights("x", A, false).http, None);
        let rights = config.plugin_rights("x", A, true).http.unwrap();
        assert_eq!((rights.hosts, rights.methods), (vec![HostList::Any], vec![vec!["POST".to_owned()]]));
        let config = given().user("plugin.x.http.hosts = []").settings().config;
        assert_eq!(config.plugin_rights("x", A, true).http, None);
    }

    #[test]
    fn a_policy_caps_the_requests_of_an_embedded_plugin() {
        let given = given()
            .policy("[plugin.x]\nhttp.hosts = ['docs.rs']\nhttp.methods = ['GET', 'POST']\nhttp.paths = ['/crate']");
        let config = given.settings().config;
        let rights = config.plugin_rights("x", A, true).http.unwrap();
        assert!(reaches(&rights.hosts, "docs.rs") && !reaches(&rights.hosts, "a.docs.rs"));
        assert_eq!(rights.methods, [vec!["GET", "HEAD"], vec!["GET", "POST"]]);
        assert_eq!(rights.paths, [["/crate"]]);
        assert_eq!(config.plugin_rights("x", A, false).http, None);
        let lines = "[plugin.x]\n# http.hosts: only [\"docs.rs\"]  # narrowed by policy0.toml:2\n\
                     # http.methods: only [\"GET\", \"POST\"]  # narrowed by policy0.toml:3\n\
                     # http.paths: only [\"/crate\"]  # narrowed by policy0.toml:4\n";
        assert!(given.render().ends_with(lines), "{}", given.render());
        let given = given.policy("plugin.x.http.hosts = []");
        assert_eq!(given.settings().config.plugin_rights("x", A, true).http, None);
    }

    #[test]
    fn a_policy_narrows_the_requests_that_the_user_granted() {
        let given = given()
            .user(&format!(
                "[plugin.x]\nsha256 = '{A}'\n\
                 http = {{ hosts = ['a.com', '*.b.com'], methods = ['GET', 'PUT'], paths = ['/v1', '/v2'] }}"
            ))
            .policy("[plugin.x]\nhttp.hosts = ['a.com', 'c.b.com', 'd.com']\nhttp.methods = ['PUT']")
            .policy("plugin.x.http.paths = ['/v1/x', '/v10']");
        let config = given.settings().config;
        let rights = config.plugin_rights("x", A, false).http.unwrap();
        assert_eq!(rights.hosts[0], hosts(&["a.com", "c.b.com"]));
        assert_eq!((rights.hosts.len(), rights.methods.len(), rights.paths.len()), (3, 3, 3));
        let own = &config.plugin["x"].http;
        assert_eq!((&own.methods, &own.paths), (&Some(vec!["PUT".to_owned()]), &Some(vec!["/v1/x".to_owned()])));
        assert_eq!(given.origin("plugin.x.http.paths"), "narrowed by policy1.toml:1");
    }

    #[test]
    fn an_untrusted_project_caps_requests_and_grants_none() {
        let given = given().project("[plugin.x]\nhttp.hosts = ['docs.rs']");
        let config = given.settings().config;
        let rights = config.plugin_rights("x", A, true).http.unwrap();
        assert!(reaches(&rights.hosts, "docs.rs") && !reaches(&rights.hosts, "a.com"));
        assert_eq!(config.plugin_rights("x", A, false).http, None);
        let notice = "project/toolcrib.toml:2: `plugin.x.http.hosts` applies only as far as it narrows: a project that is \
                      not trusted can only narrow; `toolcrib trust` would accept it";
        assert_eq!(given.notices(), [notice]);
    }

    #[test]
    fn a_policy_narrows_what_the_user_granted_a_plugin() {
        let given = given()
            .user(&format!(
                "[plugin.x]\nsha256 = '{A}'\nshell = true\nfiles = {{ read = ['/a', '/b'], write = ['/a'] }}"
            ))
            .policy("[plugin.x]\nshell = false\nfiles.read = ['/b/c', '/d']");
        let config = given.settings().config;
        let rights = config.plugin_rights("x", A, false);
        assert!(
            !rights.shell && allows(&rights.read, "/b/c") && !allows(&rights.read, "/a") && !allows(&rights.read, "/d")
        );
        assert!(allows(&rights.write, "/a"));
        assert_eq!(config.plugin["x"].files.read, Some(vec!["/b/c".into()]));
        assert_eq!(given.origin("plugin.x.files.read"), "narrowed by policy0.toml:3");
    }

    #[test]
    fn a_policy_for_other_bytes_drops_the_section() {
        let given = given()
            .user(&format!("[plugin.x]\nsha256 = '{A}'\nfiles.read = ['/a']\n[plugin.y]\nshell = true"))
            .policy(&format!("plugin.x.sha256 = '{A}'"))
            .policy(&format!("plugin.x.sha256 = '{B}'"));
        let settings = given.settings();
        assert_eq!(settings.config.plugin.keys().collect::<Vec<_>>(), ["y"]);
        assert_eq!(given.notices(), ["policy1.toml:1: `[plugin.x]` is dropped: the policy allows other bytes"]);
        for (bytes, embedded) in [(A, false), (B, false), (A, true), (B, true)] {
            assert!(!allows(&settings.config.plugin_rights("x", bytes, embedded).read, "/a"));
        }
    }

    #[test]
    fn environment_variables_are_values_of_toml_or_text() {
        let given = given()
            .variable("TOOLCRIB_TOOLS_SHELL_CONFIRM", "false")
            .variable("TOOLCRIB_AGENT_NAME", "some one")
            .variable("TOOLCRIB_TOOLS_SHELL_ENV", "[\"X\"]")
            .variable("TOOLCRIB_LOG", "debug")
            .variable("TOOLCRIB_PLUGIN_X", "1");
        let Config { agent, tools, .. } = given.settings().config;
        assert_eq!((agent.name.as_str(), tools.shell_confirm, tools.shell_env), ("some one", false, vec!["X".into()]));
    }

    #[test]
    fn an_unknown_variable_of_a_section_is_an_error() {
        assert_eq!(
            given().variable("TOOLCRIB_TOOLS_SHELL_CONFRIM", "false").error(),
            "environment TOOLCRIB_TOOLS_SHELL_CONFRIM: `TOOLCRIB_TOOLS_SHELL_CONFRIM` is not a setting, did you mean \
             `TOOLCRIB_TOOLS_SHELL_CONFIRM`?"
        );
        assert_eq!(
            given().variable("TOOLCRIB_LIMITS_CALL_MS", "1s").error(),
            "environment TOOLCRIB_LIMITS_CALL_MS: `limits.call_ms`: must be a whole number from 1 to 31536000000"
        );
    }

    #[test]
    fn set_takes_any_setting() {
        let given = given().set("tools.files_allowed_paths=none").set("plugin.x.shell=true").set("agent.name = a=b");
        let config = given.settings().config;
        assert_eq!(config.tools.files_allowed_paths, Allowlist::NOTHING);
        let shell = config.plugin["x"].shell.map(|shell| (shell.commands, shell.pane));
        assert_eq!((shell, config.agent.name.as_str()), (Some((true, None)), "a=b"));
        assert_eq!(given.set("agent.name").error(), "--set: `agent.name` has no value: write `key=value`");
    }

    #[test]
    fn what_is_rendered_is_a_configuration() {
        let text = format!(
            "agent.name = 'a \"b\" \\ c'\ntools.files_allowed_paths = [\"/a\\u007f\"]\n\
             [plugin.b]\nsha256 = '{A}'\n[plugin.a]\nfiles.write = []"
        );
        let settings = given().user(&text).settings();
        for origin in [false, true] {
            assert_eq!(given().user(&settings.render(origin)).settings().config, settings.config);
        }
        assert_eq!(
            given().settings().render(false).lines().take(5).collect::<Vec<_>>(),
            ["[agent]", "name = \"agent\"", "", "[tools]", "shell_enabled = true"]
        );
    }
}
