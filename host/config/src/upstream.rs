//! `[upstream.NAME]`: servers of the Model Context Protocol (MCP) that others wrote, and whose tools this host offers. `upstream/` runs and asks
//! them, `policy/upstream.rs` decides on their tools.

use base::target::Target;

use super::{HostPattern, Template, between, each, ports, sha256_hex};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Milliseconds that a call may take where its section does not say.
const TIMEOUT_MS: u64 = 60_000;
/// A day.
const MOST_MS: u64 = 86_400_000;
/// Where HTTPS is.
const PORT: u16 = 443;
/// What a name may have, so that names of tools fit behind it.
const NAME_BYTES: usize = 48;
/// Headers that the protocol sets, besides those that begin with `mcp-`.
const OWN_HEADERS: [&str; 3] = ["accept", "content-type", "last-event-id"];
/// What stands between the name of a server and that of a tool.
pub const BETWEEN: &str = "__";

/// `[upstream.NAME]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamSection {
    /// The program, as an absolute path, and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "command")]
    pub command: Vec<String>,
    /// Instead of a program: the address of a server elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "url")]
    pub url: String,
    /// What it is sent besides as headers, by name. Words in them stand for secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "headers")]
    pub headers: BTreeMap<String, Template>,
    /// The digest of the file of what was accepted of it.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "digest")]
    pub accepted: String,
    /// What it can read besides what the system brings: absolute paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "paths")]
    pub read: Vec<PathBuf>,
    /// Directories that it can write in.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "paths")]
    pub write: Vec<PathBuf>,
    /// The hosts that it can reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "hosts")]
    pub hosts: Vec<HostPattern>,
    /// The ports of those.
    #[serde(default = "https", deserialize_with = "ports")]
    pub ports: Vec<u16>,
    /// Whether names have addresses for it, which are made up; without them it goes by the proxy that its variables name.
    #[serde(default = "yes")]
    pub names: bool,
    /// Its variables, by name. Words in them stand for secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "variables")]
    pub variables: BTreeMap<String, Template>,
    /// Its own names of the tools that are offered, where `*` at the end stands for any rest.
    #[serde(default = "all", deserialize_with = "patterns")]
    pub tools: Vec<String>,
    /// Likewise those that only read.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "patterns")]
    pub reads: Vec<String>,
    /// Which calls a person is asked about.
    #[serde(default)]
    pub confirm: UpstreamConfirm,
    /// Whether it may ask a person something in the middle of a call.
    #[serde(default)]
    pub elicitation: UpstreamElicitation,
    /// How long a call may take, in milliseconds.
    #[serde(default = "usual_timeout", deserialize_with = "between::<1, MOST_MS, _>")]
    pub timeout_ms: u64,
}

/// Which calls of a server's tools a person is asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpstreamConfirm {
    /// None.
    None,
    /// Those of tools that are not among `reads`.
    #[default]
    Writes,
    /// All.
    All,
}

/// Whether a server may ask a person something in the middle of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpstreamElicitation {
    /// It cannot ask: its questions are refused.
    #[default]
    Refuse,
    /// A person is shown its question with what it proposes, and can let it have just that.
    Ask,
}

impl UpstreamSection {
    /// A section that says no more than what is run.
    #[must_use]
    pub fn of_command(command: Vec<String>) -> Self {
        Self {
            command,
            url: String::new(),
            headers: BTreeMap::new(),
            accepted: String::new(),
            read: Vec::new(),
            write: Vec::new(),
            hosts: Vec::new(),
            ports: https(),
            names: true,
            variables: BTreeMap::new(),
            tools: all(),
            reads: Vec::new(),
            confirm: UpstreamConfirm::default(),
            elicitation: UpstreamElicitation::default(),
            timeout_ms: usual_timeout(),
        }
    }

    /// A section that says no more than where the server is.
    #[must_use]
    pub fn of_url(url: String) -> Self {
        Self { url, ..Self::of_command(Vec::new()) }
    }

    /// What is reached by it, for people: an address or a command line.
    #[must_use]
    pub fn place(&self) -> String {
        if self.url.is_empty() { self.command.join(" ") } else { self.url.clone() }
    }

    /// What keeps the section from being used, as the rest of a sentence that begins with its name; none where nothing does.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let is_elsewhere = !self.url.is_empty();
        let of_programs = [
            ("read", !self.read.is_empty()),
            ("write", !self.write.is_empty()),
            ("hosts", !self.hosts.is_empty()),
            ("ports", self.ports != https()),
            ("names", !self.names),
            ("variables", !self.variables.is_empty()),
        ];
        let odd = match is_elsewhere {
            true => of_programs.into_iter().find(|(_, is_said)| *is_said).map(|(key, _)| key),
            false => (!self.headers.is_empty()).then_some("headers"),
        };
        match (self.command.is_empty(), is_elsewhere) {
            (true, false) => Some("says no `command` and no `url`".into()),
            (false, true) => Some("says both `command` and `url`: a server is a program or elsewhere".into()),
            (true, true) => odd.map(|key| format!("says `{key}`, which is for servers that are programs")),
            (false, false) => odd.map(|key| format!("says `{key}`, which is for servers with a `url`")),
        }
    }

    /// The hosts that it can reach: of one that is elsewhere, its own.
    pub fn reachable(&self) -> (Vec<HostPattern>, Vec<u16>) {
        match Target::parse(&self.url, None).ok().filter(|_| !self.url.is_empty()) {
            Some(target) => (HostPattern::exact(&target.host().to_string()).into_iter().collect(), vec![target.port()]),
            None => (self.hosts.clone(), self.ports.clone()),
        }
    }

    /// Whether it offers the tool of this name.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        is_among(&self.tools, tool)
    }

    /// Whether a tool only reads, as a person has said; what the server says of that does not count.
    #[must_use]
    pub fn only_reads(&self, tool: &str) -> bool {
        is_among(&self.reads, tool)
    }

    /// The names of the secrets that it is started with.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.variables.values().chain(self.headers.values()).flat_map(Template::secrets)
    }
}

/// Why a server cannot have this name; none where it can.
#[must_use]
pub fn upstream_name_fault(name: &str) -> Option<String> {
    let fits = base::text::names::is_name(name) && name.len() <= NAME_BYTES && !name.contains(BETWEEN);
    (!fits).then(|| {
        format!(
            "`{}` cannot name a server: use 1 to {NAME_BYTES} of A-Z, a-z, 0-9, `_`, `-`, and no `__`",
            name.escape_debug()
        )
    })
}

fn is_among(patterns: &[String], tool: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(begin) => tool.starts_with(begin),
        None => pattern == tool,
    })
}

fn https() -> Vec<u16> {
    vec![PORT]
}

fn yes() -> bool {
    true
}

fn all() -> Vec<String> {
    vec!["*".into()]
}

fn usual_timeout() -> u64 {
    TIMEOUT_MS
}

fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let argv = Vec::<String>::deserialize(deserializer)?;
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err(D::Error::custom("no program can be given a NUL byte"));
    }
    match argv.first() {
        Some(program) if Path::new(program).is_absolute() => Ok(argv),
        _ => Err(D::Error::custom(
            "it begins with the absolute path of a program, such as [\"/usr/bin/node\", \"/srv/mcp/index.js\"]",
        )),
    }
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let url = String::deserialize(deserializer)?;
    Target::parse(&url, None).map(|_| url).map_err(|failure| D::Error::custom(failure.message))
}

fn headers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Template>, D::Error> {
    let headers = super::secrets::headers(deserializer)?.unwrap_or_default();
    let own = |name: &&String| OWN_HEADERS.contains(&name.as_str()) || name.starts_with("mcp-");
    match headers.keys().find(own) {
        Some(own) => Err(D::Error::custom(format!("`{own}` is a header that the protocol sets"))),
        None => Ok(headers),
    }
}

fn digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    sha256_hex(&String::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("must be 64 hex digits"))
}

fn paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    let paths = Vec::<PathBuf>::deserialize(deserializer)?;
    match paths.iter().find(|path| !path.is_absolute() || path.parent().is_none()) {
        Some(odd) => Err(D::Error::custom(format!("`{}` is not an absolute path below `/`", odd.display()))),
        None => Ok(paths),
    }
}

fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<HostPattern>, D::Error> {
    each(deserializer, HostPattern::exact)
}

fn variables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Template>, D::Error> {
    let written = BTreeMap::<String, String>::deserialize(deserializer)?;
    let read = |(name, text): (String, String)| {
        if super::is_never_passed(&name) || !super::is_variable_name(&name) {
            return Err(D::Error::custom(format!("`{}` is never passed", name.escape_debug())));
        }
        Template::value(&text).map(|template| (name, template)).map_err(D::Error::custom)
    };
    written.into_iter().map(read).collect()
}

fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    each(deserializer, |text| {
        let name = text.strip_suffix('*').unwrap_or(text);
        let fits = !text.is_empty() && !name.contains(|char: char| char == '*' || char.is_control());
        let refused = || {
            format!(
                "`{}` is not the name of a tool, nor the beginning of one with a `*` behind it",
                text.escape_debug()
            )
        };
        fits.then(|| text.to_owned()).ok_or_else(refused)
    })
}
