//! `[confine]`: what commands reach, as settings have it. `policy/confine.rs` makes profiles of it.

use super::{Allowlist, HostPattern, MemoryBound, between, each, ports};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::path::{Component, Path, PathBuf};

/// `[confine]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confine {
    /// Whether commands run confined.
    pub mode: ConfineMode,
    /// What counts as confined.
    pub floor: ConfineFloor,
    /// Directories that they may write in: absolute ones, and [`WORKSPACE`].
    pub write: Vec<PathBuf>,
    /// What of the home is there for them.
    pub read: Allowlist,
    /// What is not there for them, besides what is hidden from all.
    pub hide: Vec<PathBuf>,
    /// Directories of the home of which they have copies to write in.
    #[serde(deserialize_with = "paths_below")]
    pub caches: Vec<String>,
    /// What they cannot write in each of these directories, where it exists.
    #[serde(deserialize_with = "paths_below")]
    pub protect: Vec<String>,
    /// What of that which commands make, and which acts by itself, is held until a person says yes.
    pub held: HeldFiles,
    /// Names that are not held.
    #[serde(deserialize_with = "paths_below")]
    pub keep: Vec<String>,
    /// What network they have.
    pub network: CellNetwork,
    /// The hosts that they may reach by [`CellNetwork::Egress`].
    #[serde(deserialize_with = "exact_hosts")]
    pub hosts: Vec<HostPattern>,
    /// The ports of those.
    #[serde(deserialize_with = "few_ports")]
    pub ports: Vec<u16>,
    /// The ports of a cell that are published on this machine's loopback.
    #[serde(deserialize_with = "few_ports")]
    pub publish: Vec<u16>,
    /// Keys and passwords of the user's that they may have used for them, each time by a person's leave.
    pub keys: Vec<Keys>,
    /// Whether they can have sockets of files and names among themselves.
    pub unix_sockets: bool,
    /// Whether they can look into processes of their own, as debuggers do.
    pub debug: bool,
    /// How many processes there can be at once.
    #[serde(deserialize_with = "between::<8, 1_000_000, _>")]
    pub processes: u64,
    /// How much memory the commands of a cell may take together.
    pub memory: MemoryBound,
    /// Which commands in a full cell a person is asked about.
    pub ask: Ask,
    /// Whether a person may let a command out of its cell that was refused something there.
    pub unconfined: Unconfined,
}

/// Where in a cell the proxy listens, on its loopback.
pub const PROXY_PORT: u16 = 3128;

/// What stands for the workspace in lists of directories.
pub const WORKSPACE: &str = ".";

/// What is held of what commands make; each has those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldFiles {
    /// Nothing: it is told.
    None,
    /// What acts when somebody enters the directory, opens it, or types a git command.
    Opens,
    /// What agents take for their user's word.
    Words,
    /// What package managers and builds obey.
    All,
}

/// Keys of the user's, by what has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keys {
    /// ssh-agent has them: it signs for a login, or what git commits.
    Ssh,
    /// gpg has them: it signs commits and tags.
    Gpg,
    /// Passwords that git asks its credential helpers for.
    Passwords,
}

/// Whether commands run confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfineMode {
    /// They do not: they have all rights of the user.
    Off,
    /// Where the system can do it; elsewhere a person is asked about each.
    Auto,
    /// Or they do not run.
    Required,
}

/// Whether a person may let single commands out of their cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unconfined {
    /// They are asked about one that is called again after its cell refused it something.
    Ask,
    /// Nobody may.
    Never,
}

/// Which commands a person is asked about, of those that run in a full cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Those that need more than the cell gives: more rights, this machine's network, a secret that can go anywhere.
    Leaving,
    /// Each.
    Always,
}

/// What counts as confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfineFloor {
    /// Bounded writes and no network, by Landlock, where nobody may make namespaces.
    Partial,
    /// Namespaces alone.
    Full,
}

/// The network that confined commands have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellNetwork {
    /// The machine's, with all that listens there.
    Full,
    /// A loopback of their own, and the hosts that are named or that a person allows.
    Egress,
    /// A loopback of their own.
    None,
}

impl CellNetwork {
    /// As people read it.
    pub fn words(self) -> &'static str {
        match self {
            Self::None => "without a network",
            Self::Egress => "with named hosts only",
            Self::Full => "with this machine's network",
        }
    }
}

/// Paths that are to be looked up below directories: relative, and leading out of none.
fn paths_below<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    each(deserializer, |text| {
        let mut parts = Path::new(text).components();
        let is_below = !text.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)));
        let refused = || format!("`{}` is not a path below a directory, such as `.git/hooks`", text.escape_debug());
        is_below.then(|| text.to_owned()).ok_or_else(refused)
    })
}

/// As a cell takes each of them.
fn few_ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u16>, D::Error> {
    const MOST: usize = 32;
    // What a cell has for itself.
    const TAKEN: [u16; 2] = [53, PROXY_PORT];
    let ports = ports(deserializer)?;
    if ports.len() > MOST {
        return Err(D::Error::custom(format!("{} ports are too many (limit: {MOST})", ports.len())));
    }
    match ports.iter().find(|port| TAKEN.contains(port)) {
        Some(taken) => Err(D::Error::custom(format!("port {taken} serves something else in a cell"))),
        None => Ok(ports),
    }
}

fn exact_hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<HostPattern>, D::Error> {
    each(deserializer, HostPattern::exact)
}
