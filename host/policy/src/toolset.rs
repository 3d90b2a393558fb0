//! Toolsets: which tools a session has, and which arguments are set for it. They come from `[toolset.NAME]`.
//!
//! A toolset only takes away: what its tools may do is decided by policy like for everybody, within what the toolset leaves of that
//! (`grant`, which is a layer over the settings that only narrows). A session is opened on one with [`Session::on`](crate::session::Session::on).

use crate::Policy;
use base::capability::{Capability, Deed};
use base::envelope::{Failure, Kind, no_such};
use config::{Config, ToolsetSection, all_of, server_of};
use contract::definition::Tool;
use contract::manifest::Manifest;
use futures_util::future::BoxFuture;
use indexmap::IndexMap;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a text for an agent may have.
const TEXT_BYTES: u64 = 4 << 20;
/// How a constant is written that the session gives.
const OF_SESSION: &str = "$session.";

/// When a tool is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// As long as the session.
    Session,
    /// While a turn is open.
    Turn,
}

/// Where a constant comes from.
#[derive(Clone, Debug, PartialEq)]
enum Constant {
    Value(Value),
    /// The session has it under this name.
    Session(String),
}

impl Constant {
    /// What the session has to give for it.
    fn given(&self) -> Option<&str> {
        match self {
            Self::Session(name) => Some(name),
            Self::Value(_) => None,
        }
    }
}

/// Finds the plugin that has a tool, or the server whose tools a toolset names all.
pub type PluginOf<'r> = dyn Fn(&str) -> Option<Arc<Manifest>> + 'r;

/// Which tools a session has.
#[derive(Clone, Debug, PartialEq)]
pub struct Toolset {
    name: String,
    /// By name, or by how [`all_of`] names those of a server.
    tools: BTreeMap<String, Lifetime>,
    /// What a session has besides, by name.
    session: BTreeSet<String>,
    bind: BTreeMap<String, BTreeMap<String, Constant>>,
    /// It or one that it extends narrows settings.
    narrows: bool,
    delegates: BTreeSet<String>,
    contexts: IndexMap<String, Context>,
    environment: BTreeMap<String, String>,
    mounts: BTreeMap<PathBuf, Mount>,
}

pub use config::{Context, Mount};

impl Toolset {
    /// The toolset of this name.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` where there is none, or it extends one that is missing or itself.
    pub fn of(config: &Config, name: &str) -> Result<Self, Failure> {
        let mut toolset = Self {
            name: name.to_owned(),
            tools: BTreeMap::new(),
            session: BTreeSet::new(),
            bind: BTreeMap::new(),
            narrows: false,
            delegates: BTreeSet::new(),
            contexts: IndexMap::new(),
            environment: BTreeMap::new(),
            mounts: BTreeMap::new(),
        };
        for section in sections(config, name)? {
            toolset.add(section);
        }
        Ok(toolset)
    }

    /// Adds what a section says; of those that speak of the same, the later one counts.
    fn add(&mut self, section: &ToolsetSection) {
        let with = |lifetime| move |name: &String| (name.clone(), lifetime);
        self.tools.extend(section.tools.iter().map(with(Lifetime::Session)));
        self.tools.extend(section.turn.iter().map(with(Lifetime::Turn)));
        self.session.extend(section.session.iter().cloned());
        for (tool, arguments) in &section.bind {
            let constants = arguments.iter().map(|(name, value)| (name.clone(), constant(value)));
            self.bind.entry(tool.clone()).or_default().extend(constants);
        }
        // Its commands have cells of their own where it has mounts.
        self.narrows |= !section.grant.is_empty() || !section.mount.is_empty();
        self.delegates.extend(section.delegates.iter().cloned());
        self.contexts.extend(section.context.clone());
        self.environment.extend(section.environment.clone());
        self.mounts.extend(section.mount.clone());
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its tools by name, and when each is there; `SERVER__*` is all tools of another MCP server.
    pub fn tools(&self) -> impl Iterator<Item = (&str, Lifetime)> {
        self.tools.iter().map(|(name, lifetime)| (name.as_str(), *lifetime))
    }

    /// What a session on it has to give, by name.
    #[must_use]
    pub fn needs(&self) -> BTreeSet<&str> {
        let constants = self.bind.iter().filter(|(tool, _)| self.may_have(tool));
        let constants = constants.flat_map(|(_, constants)| constants.values()).filter_map(Constant::given);
        constants.chain(self.session.iter().map(String::as_str)).collect()
    }

    /// Whether it could have a tool of this name: a server offers others over time, and cuts names that are too long.
    fn may_have(&self, tool: &str) -> bool {
        self.tools.contains_key(tool) || self.tools.keys().any(|member| server_of(member).is_some())
    }

    /// When it has this tool of this plugin. What it says of the tool itself counts before what it says of its server.
    fn lifetime(&self, tool: &str, plugin: &Manifest) -> Option<Lifetime> {
        let of_server = || self.tools.get(&all_of(plugin.server()?));
        self.tools.get(tool).or_else(of_server).copied()
    }

    /// The texts that it has for its agent, in the order in which they are declared.
    pub fn contexts(&self) -> impl Iterator<Item = (&str, &Context)> + Clone {
        self.contexts.iter().map(|(name, context)| (name.as_str(), context))
    }

    /// The names of the texts that it has for its agent, and what each is about.
    pub fn context_names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.contexts().map(|(name, context)| (name, context.about.as_str()))
    }

    /// One of these texts.
    ///
    /// # Errors
    ///
    /// `execution_failed` where there is none of that name, or it cannot be read; where it lies is not told.
    pub fn context<'a>(&'a self, name: &'a str, policy: &Policy) -> BoxFuture<'a, Result<String, Failure>> {
        let reads = policy.host_reads().clone();
        Box::pin(async move {
            let Some(Context { file, .. }) = self.contexts.get(name) else {
                return Err(no_such("context", name, self.contexts.keys().map(String::as_str)));
            };
            let file = file.clone();
            let read = move || reads.text(&file, TEXT_BYTES).map_err(|unread| unread.without_path());
            let read = tokio::task::spawn_blocking(read).await;
            read.unwrap_or_else(|error| Err(error.to_string()))
                .map_err(|why| Failure::failed(format!("the context `{name}` cannot be read: {why}")))
        })
    }

    /// The variables that it tells its agent of, by name, and what each is.
    pub fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        self.environment.iter().map(|(name, about)| (name.as_str(), about.as_str()))
    }

    /// The directories that its agent knows under other names, by those.
    pub fn mounts(&self) -> impl Iterator<Item = (&Path, &Mount)> {
        self.mounts.iter().map(|(at, mount)| (at.as_path(), mount))
    }

    /// What an absolute path without `..` is on this machine, where it lies in a mount; and that mount.
    pub fn mounted(&self, path: &Path) -> Option<(PathBuf, &Mount)> {
        let within = |(at, mount): (_, _)| Some((path.strip_prefix(at).ok()?, mount));
        // Of two, one in the other, the inner one.
        let (rest, mount): (&Path, &Mount) = self.mounts().filter_map(within).last()?;
        Some((if rest.as_os_str().is_empty() { mount.path.clone() } else { mount.path.join(rest) }, mount))
    }

    /// A text with the names of its mounts in place of what they are on this machine.
    pub fn as_mounted(&self, text: &str) -> String {
        self.mounts().fold(text.to_owned(), |text, (at, mount)| {
            let found = mount.path.canonicalize().unwrap_or_else(|_| mount.path.clone());
            let at = at.display().to_string();
            [found, mount.path.clone()].iter().fold(text, |text, path| text.replace(&*path.display().to_string(), &at))
        })
    }

    /// Whether calls in it are decided by narrower settings.
    pub fn narrows(&self) -> bool {
        self.narrows
    }

    /// Refuses a tool of a plugin that it does not have now.
    pub fn admit(&self, tool: &str, plugin: &Manifest, in_turn: bool) -> Result<(), Failure> {
        match self.lifetime(tool, plugin) {
            Some(Lifetime::Session) => Ok(()),
            Some(Lifetime::Turn) if in_turn => Ok(()),
            Some(Lifetime::Turn) => {
                let message = format!("`{tool}` of toolset `{}` is there while a turn is open, and none is", self.name);
                Err(Failure::new(Kind::Unavailable, message).hint("begin a turn, then call it"))
            }
            None => {
                let known: Vec<_> = self.tools.keys().map(|name| format!("`{name}`")).collect();
                let has = if known.is_empty() { "no tools at all".to_owned() } else { known.join(", ") };
                let message = format!("toolset `{}` has no tool `{tool}`", self.name);
                Err(Failure::new(Kind::Unavailable, message).hint(format!("it has {has}")))
            }
        }
    }

    /// What it sets of the arguments of a tool, by what the session has given.
    pub fn bound(&self, tool: &str, given: &Map<String, Value>) -> Option<Map<String, Value>> {
        let constants = self.bind.get(tool).filter(|constants| !constants.is_empty())?;
        let value = |constant: &Constant| match constant {
            Constant::Value(value) => value.clone(),
            // Whoever opens a session gives all that it needs.
            Constant::Session(name) => given.get(name).cloned().unwrap_or_default(),
        };
        Some(constants.iter().map(|(name, constant)| (name.clone(), value(constant))).collect())
    }

    /// What looks like a mistake in it, for people: tools that are not there, constants for nothing, work handed over to nobody who can do it.
    pub fn odd(&self, config: &Config, plugin_of: &PluginOf<'_>) -> Vec<String> {
        let mut odd = Vec::new();
        let name = &self.name;
        for tool in self.tools.keys().filter(|tool| plugin_of(tool).is_none()) {
            let missing = if server_of(tool).is_some() { "server" } else { "tool" };
            odd.push(format!("[toolset.{name}] names `{tool}`, and there is no such {missing}"));
        }
        let has =
            |tool: &str| plugin_of(tool).map_or(self.may_have(tool), |plugin| self.lifetime(tool, &plugin).is_some());
        for tool in self.bind.keys().filter(|tool| !has(tool)) {
            odd.push(format!("[toolset.{name}] binds arguments of `{tool}`, which it does not have"));
        }
        if self.tools.is_empty() {
            odd.push(format!("[toolset.{name}] has no tools"));
        }
        let all: Vec<_> = self.tools.keys().map(String::as_str).collect();
        odd.extend(leak(config, plugin_of, &all).map(|why| format!("[toolset.{name}] {why}")));
        for other in &self.delegates {
            match Self::of(config, other) {
                Err(failure) => odd.push(format!("[toolset.{name}] hands work over: {}", failure.message)),
                Ok(other) if !other.acts(config, plugin_of, &mut BTreeSet::new()) => odd.push(format!(
                    "[toolset.{name}] hands work over to `{}`, and neither that nor any that it hands it on to has a tool that runs commands",
                    other.name
                )),
                Ok(_) => {}
            }
        }
        odd
    }

    /// Whether it, or one that it hands work over to, runs commands.
    fn acts(&self, config: &Config, plugin_of: &PluginOf<'_>, seen: &mut BTreeSet<String>) -> bool {
        let runs = |tool: &String| plugin_of(tool).is_some_and(|plugin| plugin.capabilities.iter().any(is_of_commands));
        seen.insert(self.name.clone())
            && (self.tools.keys().any(runs)
                || self
                    .delegates
                    .iter()
                    .any(|other| Self::of(config, other).is_ok_and(|other| other.acts(config, plugin_of, seen))))
    }
}

/// Why mail could get out by these tools: what strangers write reaches the agent beside what lets it speak to anybody. None where it could not, and
/// where settings have no mail.
#[must_use]
pub fn leak(config: &Config, plugin_of: &PluginOf<'_>, of: &[&str]) -> Option<String> {
    let first = |wanted: &[Capability]| {
        let has = |tool: &&&str| {
            let plugin = plugin_of(tool);
            plugin.is_some_and(|plugin| plugin.capabilities.iter().any(|capability| wanted.contains(capability)))
        };
        of.iter().find(has).copied()
    };
    let reads = first(&[Capability::Mail]).filter(|_| config.tools.mail_enabled && !config.mail.is_empty())?;
    let speaks = first(&[Capability::Http, Capability::Browser, Capability::Upstream])?;
    let why = "a mail that says so could have the agent send on what others say";
    Some(format!("has `{reads}`, which reads mail, beside `{speaks}`, which reaches the web: {why}"))
}

/// Whether whoever has it runs commands.
fn is_of_commands(capability: &Capability) -> bool {
    let later = [Capability::Jobs, Capability::Schedules];
    capability.deed() == Deed::Command || later.contains(capability)
}

/// A tool as it is with arguments that are set.
pub fn narrowed(tool: &Arc<Tool>, bound: Option<&Map<String, Value>>) -> Arc<Tool> {
    bound.map_or_else(|| tool.clone(), |bound| Arc::new(tool.without(|argument| bound.contains_key(argument))))
}

/// Puts what is set among the arguments that were given.
pub fn set(toolset: &str, tool: &str, bound: Map<String, Value>, given: &mut Value) -> Result<(), Failure> {
    let Some(given) = given.as_object_mut() else { return Ok(()) };
    if let Some(name) = bound.keys().find(|name| given.contains_key(*name)) {
        let message = format!("`{name}` of `{tool}` is set by toolset `{toolset}`, and cannot be given");
        return Err(Failure::invalid(message).hint("leave it out"));
    }
    given.extend(bound);
    Ok(())
}

/// The section of this name behind those that it extends, each once.
fn sections<'c>(config: &'c Config, name: &str) -> Result<Vec<&'c ToolsetSection>, Failure> {
    fn add<'c>(
        config: &'c Config,
        name: &str,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
        all: &mut Vec<&'c ToolsetSection>,
    ) -> Result<(), Failure> {
        if way.iter().any(|above| above == name) {
            let way = way.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("` extends `");
            return Err(Failure::invalid(format!("toolset `{way}`: none can extend itself")).hint("remove one of them"));
        }
        let section = config.toolset.get(name).ok_or_else(|| missing(config, name))?;
        if !done.insert(name.to_owned()) {
            return Ok(());
        }
        way.push(name.to_owned());
        for other in &section.extends {
            add(config, other, way, done, all)?;
        }
        way.pop();
        all.push(section);
        Ok(())
    }
    let mut all = Vec::new();
    add(config, name, &mut Vec::new(), &mut BTreeSet::new(), &mut all)?;
    Ok(all)
}

/// The names of a toolset and those that it extends, in the order in which they count.
pub(crate) fn line_of(config: &Config, name: &str) -> Result<Vec<String>, Failure> {
    let sections = sections(config, name)?;
    let is = |one: &ToolsetSection, other: &ToolsetSection| std::ptr::eq(one, other);
    let named = |section: &&ToolsetSection| config.toolset.iter().find(|(_, other)| is(section, other));
    Ok(sections.iter().filter_map(named).map(|(name, _)| name.clone()).collect())
}

fn missing(config: &Config, name: &str) -> Failure {
    let shown: String = name.chars().take(64).collect();
    let known: Vec<_> = config.toolset.keys().map(|name| format!("`{name}`")).collect();
    let hint = match known.is_empty() {
        true => "settings name none: write a section [toolset.NAME]".to_owned(),
        false => format!("there is {}", known.join(", ")),
    };
    Failure::invalid(format!("there is no toolset `{shown}`")).hint(hint)
}

/// A constant as settings have it.
fn constant(value: &toml::Value) -> Constant {
    match value.as_str().and_then(|text| text.strip_prefix(OF_SESSION)) {
        Some(name) => Constant::Session(name.to_owned()),
        None => {
            Constant::Value(serde_json::to_value(value).expect("a value of settings is JSON: times are text there"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::manifest::{Origin, PluginId};

    fn plugin(name: &str, origin: Origin, tool: &str) -> Manifest {
        let id = PluginId { name: name.into(), sha256: "0".repeat(64), origin };
        Manifest::new(id, vec![tool.into()], Vec::new(), Vec::new()).expect("a plugin")
    }

    fn server(name: &str, tool: &str) -> Manifest {
        plugin(name, Origin::Upstream { command: "/bin/server".into(), declared: String::new() }, tool)
    }

    fn toolset(section: &str) -> Toolset {
        let section: ToolsetSection = toml::from_str(section).expect("a section");
        let mut config = Config::default();
        config.toolset.insert("worker".into(), section);
        Toolset::of(&config, "worker").expect("a toolset")
    }

    #[test]
    fn all_tools_of_a_server_are_its_own_and_no_others() {
        let worker = toolset("tools = [\"git__*\"]");
        let has = |tool: &str, plugin: &Manifest| worker.admit(tool, plugin, false).is_ok();
        assert!(has("git__status", &server("git", "git__status")));
        // A name that was too long for models is cut, and is of the server all the same.
        assert!(has("gi__look_41519b51", &server("git", "gi__look_41519b51")));
        assert!(!has("git__status", &plugin("git", Origin::File("/p/git.wasm".into()), "git__status")));
        assert!(!has("github__search", &server("github", "github__search")));
        assert!(!has("time", &plugin("time", Origin::BuiltIn, "time")));
    }

    #[test]
    fn a_tool_that_is_named_itself_is_there_when_its_own_list_says() {
        let worker = toolset("tools = [\"git__*\"]\nturn = [\"git__push\"]");
        let git = server("git", "git__push");
        assert!(worker.admit("git__push", &git, false).is_err() && worker.admit("git__push", &git, true).is_ok());
        assert!(worker.admit("git__status", &git, false).is_ok());
    }

    #[test]
    fn constants_of_tools_of_a_server_are_wanted_of_the_session() {
        let worker = toolset("tools = [\"git__*\"]\nbind.git__log.repository = \"$session.repository\"");
        assert_eq!(worker.needs(), BTreeSet::from(["repository"]));
        assert!(toolset("tools = [\"time\"]\nbind.git__log.repository = \"$session.repository\"").needs().is_empty());
    }
}
