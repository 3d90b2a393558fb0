//! Lays the sources of the configuration over each other and remembers where each value comes from.
//!
//! `read.rs` reads them, `narrow.rs` says what narrowing is, `layers/locks.rs` what locks leave of a plugin's section, `layers/project.rs` reads a project's
//! file; where files lie and what is trusted is the caller's.

mod locks;
mod project;
#[cfg(test)]
mod tests;

use super::narrow::{RULES, Rule, When, is_set_up};
use super::policy_file::{Lock, PolicyFile};
use super::read::{ConfigError, Leaf, Origin, Reader, defaults, get, invalid_at, put, stray_variables};
use super::remedy::Over;
use super::rules::RuleLine;
use super::{Bounds, Config};
use crate::trail::{PolicyDigest, TrailSettings};
use base::dirs::Dirs;
use serde::Deserialize;
use serde_json::{Map, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use toml::{Table, Value};

/// Notices about one project's file; a hostile one could ask for more.
const MAX_NOTICES: usize = 20;
/// Sections whose settings are those of a name.
const NAMED: [&str; 6] = ["plugin.", "program.", "secret.", "mail.", "upstream.", "toolset."];
/// The sections and settings that only the user's own file may have. The settings name who answers questions, and who is told of them.
const PERSONAL: [&str; 5] = ["secret.", "mail.", "upstream.", "approval.embedder", "approval.notify"];
/// Sections of which every setting that is not set up at the start is asked by what a call has been granted.
const OF_CALLS: [&str; 4] = ["plugin.", "tools.", "confine.", "embedder."];

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
    /// The rules of the user's file in its order, then those of the policies.
    pub rules: Vec<RuleLine>,
    /// The locks of the policy files, in their order: a plugin needs the word of every one.
    pub locks: Vec<Lock>,
    /// The policy files, those that are not there too.
    pub policies: Vec<PolicyDigest>,
    /// Where the audit trail is, and how it is kept.
    pub trail: TrailSettings,
    /// What the user should know: values that were ignored or dropped, and why.
    pub notices: Vec<String>,
    /// What they were read from.
    pub sources: Sources,
    /// What they were below the policies.
    pub below: Arc<Draft>,
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
    pub fn with(&self, others: &Self) -> Self {
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
    /// When a source cannot be read or has an invalid value; an untrusted project that asks for more, or cannot be read, is only noted.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let plain = Reader { home: &sources.home, start: None, is_policy: false };
        let mut draft = Draft::new(defaults().clone());
        if let Some(path) = &sources.user {
            let (leaves, rules) = plain.user_file(path, sources.user_required)?;
            draft.replace(leaves);
            draft.rules = rules;
        }
        if let Some(path) = &sources.project {
            draft.lay_project(path, sources.project_sha256.as_deref(), plain)?;
        }
        draft.replace(plain.environment(&sources.environment)?);
        draft.notices.extend(stray_variables(&sources.environment).take(MAX_NOTICES));
        draft.replace(plain.set(&sources.set)?);
        Self::under_policies(sources.clone(), Arc::new(draft))
    }

    /// The same below the policies, which are read anew.
    pub fn anew(&self) -> Result<Self, ConfigError> {
        Self::under_policies(self.sources.clone(), self.below.clone())
    }

    /// The rules as the user's file has them now, and those of the policies as they were read.
    ///
    /// # Errors
    ///
    /// Where that file cannot be used.
    pub fn rules_anew(&self) -> Result<Vec<RuleLine>, ConfigError> {
        let reader = Reader { home: &self.sources.home, start: None, is_policy: false };
        let mut rules = match &self.sources.user {
            Some(path) => reader.user_file(path, self.sources.user_required)?.1,
            None => Vec::new(),
        };
        rules.extend(self.rules.iter().filter(|rule| rule.is_policy).cloned());
        Ok(rules)
    }

    /// The same with further arguments of `--set` behind those that they were read with; the policies are read anew, and nothing else is.
    ///
    /// # Errors
    /// Also where one of them sets what is looked at only when a host is made.
    pub fn with_set(&self, further: &[String]) -> Result<Self, ConfigError> {
        let reader = Reader { home: &self.sources.home, start: None, is_policy: false };
        if let Some(leaf) = reader.set(further)?.into_iter().find(|leaf| is_set_up(&leaf.key)) {
            let message = format!("`{}` is set up when the program starts, and cannot be set later", leaf.key);
            return Err(ConfigError::Invalid { origin: leaf.origin, message });
        }
        let set = [&self.sources.set, further].concat();
        let mut below = (*self.below).clone();
        // All at once, as if the program had started with them: a digest among them drops what was said of other bytes, and no right beside it.
        below.replace(reader.set(&set)?);
        Self::under_policies(Sources { set, ..self.sources.clone() }, Arc::new(below))
    }

    /// What they were below the policies, and which policies were named, as a digest in hex: two programs with the same one have the same
    /// settings, but for what says how many jobs and calls there may be at one time.
    pub fn below_policies(&self) -> String {
        let mut values = self.below.values.clone();
        values.remove("jobs");
        values.remove("schedules");
        if let Some(Value::Table(limits)) = values.get_mut("limits") {
            limits.remove("concurrent_calls");
        }
        // A policy that whoever starts the program names is one of its options.
        let named = self.sources.policies.iter().filter(|policy| !policy.of_root).map(|policy| &policy.path);
        let text = format!("{values:?} {:?} {:?}", self.below.bounds, named.collect::<Vec<_>>());
        hex::encode(Sha256::digest(text))
    }

    /// The same within the grants of toolsets, each given as its name and its settings; the policies are read anew.
    ///
    /// # Errors
    /// Also where one of them would give more than there is.
    pub fn within(&self, grants: &[(String, Table)]) -> Result<Self, ConfigError> {
        Self::layered(self.sources.clone(), self.below.clone(), grants)
    }

    fn under_policies(sources: Sources, below: Arc<Draft>) -> Result<Self, ConfigError> {
        Self::layered(sources, below, &[])
    }

    fn layered(sources: Sources, below: Arc<Draft>, grants: &[(String, Table)]) -> Result<Self, ConfigError> {
        let reader = Reader { home: &sources.home, start: None, is_policy: true };
        let mut draft = (*below).clone();
        let (mut locks, mut policies) = (Vec::new(), Vec::new());
        for policy in &sources.policies {
            let file = PolicyFile::read(policy, &reader)?;
            draft.narrow_by_policy(file.narrows);
            locks.extend(file.lock);
            draft.rules.extend(file.rules);
            policies.push(PolicyDigest { path: policy.path.clone(), sha256: file.sha256 });
        }
        for (toolset, grant) in grants {
            let text = toml::to_string(grant).expect("a table is TOML");
            let place = PathBuf::from(format!("[toolset.{toolset}.grant]"));
            draft.narrow_by_toolset(reader.text(&place, &text)?)?;
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
    pub fn set_up_with(&self, other: &Self) -> Option<&'static str> {
        let table = |settings: &Self| Table::try_from(&settings.config).expect("settings came from TOML");
        let (own, others) = (table(self), table(other));
        let mut keys = RULES.iter().filter(|row| row.2 == When::AtStart).map(|row| row.0);
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
        let mut keys: Vec<_> =
            RULES.iter().map(|row| row.0).filter(|key| !key.contains('*')).map(str::to_owned).collect();
        for section in NAMED {
            let name = |key: &String| key.strip_prefix(section)?.split('.').next().map(str::to_owned);
            let names: BTreeSet<_> = self.origins.0.keys().filter_map(name).collect();
            let own: Vec<_> = RULES.iter().map(|row| row.0).filter(|key| key.starts_with(section)).collect();
            keys.extend(names.iter().flat_map(|name| own.iter().map(move |pattern| pattern.replace('*', name))));
        }
        keys.retain(|key| self.origins.get(key).is_some());
        keys
    }
}

/// The layers so far.
#[derive(Clone, Debug)]
pub struct Draft {
    values: Table,
    origins: Origins,
    bounds: Bounds,
    rules: Vec<RuleLine>,
    notices: Vec<String>,
}

impl Draft {
    fn new(values: Table) -> Self {
        let shared = RULES.iter().filter(|(key, ..)| !key.contains('*'));
        let origins = Origins(shared.map(|(key, ..)| ((*key).to_owned(), Origin::Default)).collect());
        Self { values, origins, bounds: Bounds::default(), rules: Vec::new(), notices: Vec::new() }
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

    /// The same by a project that the user trusts. That says nothing of secrets and mail, where they are and where they may go,
    /// and nothing of who answers questions: that is the user's alone.
    fn replace_by_project(&mut self, leaves: Vec<Leaf>) {
        let is_personal = |leaf: &Leaf| PERSONAL.iter().any(|section| leaf.key.starts_with(section));
        let (personal, leaves): (Vec<_>, Vec<_>) = leaves.into_iter().partition(is_personal);
        self.notices.extend(personal.iter().take(MAX_NOTICES).map(|leaf| {
            let what = match leaf.key.split('.').next() {
                Some("secret") => "secrets",
                Some("mail") => "mail accounts",
                Some("approval") => "the programs that answer questions or announce them",
                _ => "servers of others",
            };
            format!("{}: `{}` is ignored: {what} are named in your own settings alone", leaf.origin, leaf.key)
        }));
        self.replace(leaves);
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

    /// Narrows by what a toolset grants: what would give more than there is, is an error, as whoever wrote it would rely on it.
    fn narrow_by_toolset(&mut self, leaves: Vec<Leaf>) -> Result<(), ConfigError> {
        for leaf in leaves {
            let refused = |what: &str| {
                let message = format!("`{}` {what}", leaf.key);
                Err(ConfigError::Invalid { origin: leaf.origin.clone(), message })
            };
            // What others than the call's own grants ask, they ask of the whole program's policy.
            let is_of_calls = OF_CALLS.iter().any(|section| leaf.key.starts_with(section));
            if !is_of_calls || is_set_up(&leaf.key) || leaf.rule == Rule::Digest {
                return refused("is one for the whole program: a toolset cannot narrow it");
            }
            let base = get(&self.values, &leaf.key);
            let narrowed = if leaf.rule.applies_to_projects() { leaf.narrowing(base) } else { None };
            let is_cap = leaf.is_cap(base);
            if narrowed.is_none() && !is_cap && base.is_none() && !leaf.rule.gives_nothing(&leaf.value) {
                return refused("gives what nothing else gives: a toolset can only narrow");
            }
            if narrowed.as_ref().is_some_and(|narrowed| leaf.rule != Rule::Union && !alike(narrowed, &leaf.value)) {
                return refused("gives more than there is: a toolset can only narrow");
            }
            if narrowed.is_some() || is_cap {
                self.note(&leaf, false);
                self.narrow(leaf, narrowed);
            }
        }
        Ok(())
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
        let Self { values, origins, bounds, rules, notices } = self;
        let config = Config::deserialize(Value::Table(values)).expect("every value was checked when it was read");
        let config = Config { bounds, ..config };
        Settings { config, origins, rules, locks, policies, trail, notices, sources, below }
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
    let dots = if NAMED.iter().any(|section| key.starts_with(section)) { 2 } else { 1 };
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
