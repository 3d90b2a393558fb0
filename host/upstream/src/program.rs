//! How a server is started: in a cell, with variables of its own, a home of its own, and no more of this machine than its section says.

use super::lines::Lines;
use super::made::Makings;
use super::wire::Wire;
use backend::cell::Profile;
use backend::local::{Local, try_cell};
use backend::{Backend, ProcessSpec};
use base::dirs::Dirs;
use base::disk::OwnDir;
use base::envelope::{Failure, Kind};
use base::environment::Environment;
use base::paths::canonical;
use base::text::id::random_id;
use config::UpstreamSection;
use egress::{Attached, Egress, Naming};
use leaks::Value;
use policy::confine::Confine;
use secrets::Secrets;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of the homes of servers, below Toolcrib's own.
const HOMES: &str = "upstream";
/// Directories of the system that may hold what is hidden.
const OF_SYSTEM: [&str; 2] = ["/opt", "/usr"];
/// Processes of a server.
const PROCESSES: u64 = 256;
/// A server's standard error is its own; what is written there is this user's alone. Each of its processes has at most 4 GiB of its own (in KiB).
const STARTED: &str = r#"umask 077; ulimit -d 4194304; exec "$@""#;

/// What a server is started with.
pub(super) struct Start<'s> {
    pub(super) name: &'s str,
    /// Who calls it: servers keep what belongs to one conversation.
    pub(super) principal: &'s str,
    pub(super) section: &'s UpstreamSection,
    /// What keeps it from more than that.
    pub(super) confine: &'s Confine,
}

/// Whether a server can be confined here.
///
/// # Errors
///
/// Why not.
pub(super) async fn check_confined() -> Result<(), String> {
    let profile = Profile::of_system(Vec::new(), &[]).map_err(|error| error.to_string())?;
    try_cell(&profile).await.map_err(|error| error.to_string())
}

/// A server that was started.
pub(super) struct Started {
    pub(super) wire: Wire,
    pub(super) network: Arc<Attached>,
    /// None of one that writes in its home alone.
    pub(super) makings: Option<Makings>,
}

/// Starts a server.
pub(super) async fn start(
    start: &Start<'_>,
    dirs: &Dirs,
    egress: &Egress,
    secrets: &Secrets,
) -> Result<Started, Failure> {
    let Start { name, principal, section, confine } = *start;
    let unavailable =
        |error: &dyn std::fmt::Display| Failure::new(Kind::Unavailable, format!("`{name}` cannot be started: {error}"));
    let program = section.command.first().ok_or_else(|| unavailable(&"its section says no `command`"))?;
    if !Path::new(program).is_file() {
        return Err(unavailable(&format!("`{program}` is not a file"))
            .hint(format!("`command` under [upstream.{name}] names its program")));
    }
    let home = home(dirs, name, principal).map_err(|error| unavailable(&error))?;
    let profile = profile(section, &home, confine).map_err(|error| unavailable(&error))?;
    let profile = Arc::new(profile);
    let local = Local::new(home.clone(), dirs.home.clone(), dirs.state.clone(), Environment::default());
    let listeners = local.listeners(&profile).map_err(|why| unavailable(&why))?;
    let listeners = listeners.ok_or_else(|| unavailable(&io::Error::from(io::ErrorKind::AddrInUse)))?;
    let naming = if section.names { Naming::MadeUp } else { Naming::Unknown };
    let network = Arc::new(egress.attach(listeners, naming).map_err(|error| unavailable(&error))?);
    let (variables, lent) = variables(section, &home, secrets).await?;
    // Before it can make anything.
    let local = Arc::new(local);
    let makings = Makings::of(&profile, &home, confine, &local).await;
    let argv = ["/bin/sh", "-c", STARTED, "sh"].into_iter().chain(section.command.iter().map(String::as_str));
    let spec = ProcessSpec {
        variables,
        secrets: lent,
        directory: Some(home),
        cell: Some(profile),
        ..ProcessSpec::own(argv.map(OsString::from).collect())
    };
    let (process, input) = local.open(spec).await?;
    Ok(Started { wire: Wire::Lines(Lines::over(process, input, (local, network.clone()))), network, makings })
}

/// The home of a server for who calls it: what it keeps there stays.
fn home(dirs: &Dirs, name: &str, principal: &str) -> io::Result<PathBuf> {
    let own = OwnDir::open(&dirs.state)?.below(HOMES)?.below(name)?;
    let whose = base::text::names::is_name(principal).then(|| principal.to_owned());
    let whose = whose.unwrap_or_else(|| {
        use sha2::{Digest, Sha256};
        hex::encode(&Sha256::digest(principal)[..16])
    });
    Ok(canonical(own.below(&whose)?.path()))
}

/// What it sees: what the system brings, its home, its program, and what its section names.
fn profile(section: &UpstreamSection, home: &Path, confine: &Confine) -> io::Result<Profile> {
    let there = |path: &PathBuf| {
        let missing = |error: io::Error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display()));
        path.canonicalize().map_err(missing)
    };
    let mut write = section.write.iter().map(there).collect::<io::Result<Vec<_>>>()?;
    let protect = confine.protected_in(&write).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
    write.push(home.to_owned());
    let program = section.command.iter().take(1).map(PathBuf::from);
    let read: Vec<PathBuf> = section.read.iter().cloned().chain(program).collect();
    // A link is there by its own name as well.
    let found = read.iter().map(there).collect::<io::Result<Vec<_>>>()?;
    let mut read: Vec<PathBuf> = read.into_iter().chain(found).collect();
    read.sort();
    read.dedup();
    // What lies in a directory that is there comes with it.
    let (all, written) = (read.clone(), &write);
    read.retain(|path| !all.iter().chain(written).any(|above| path != above && path.starts_with(above)));
    let hide = hidden_in(write.iter().chain(&read), home, confine.hidden())?;
    let base = Profile::of_system(write, &read)?;
    Ok(Profile {
        // Profiles have the same cell only if they are equal: no two servers share one.
        toolset: Some(random_id()),
        hide: base.hide.iter().cloned().chain(hide).collect(),
        protect,
        ports: section.ports.clone(),
        processes: PROCESSES,
        ..base
    })
}

/// What is hidden of what is there, by each name under which it is there.
fn hidden_in<'p>(
    there: impl Iterator<Item = &'p PathBuf>,
    home: &Path,
    hidden: &[PathBuf],
) -> io::Result<Vec<PathBuf>> {
    let mut hide = Vec::new();
    let names = |path: &PathBuf| [path.clone()].into_iter().chain(base::mountinfo::table().names(path));
    let hidden: Vec<PathBuf> = hidden.iter().flat_map(names).collect();
    for named in there.cloned().chain(OF_SYSTEM.map(PathBuf::from)) {
        let Ok(found) = named.canonicalize() else { continue };
        for path in hidden.iter().filter(|path| path.starts_with(&found)) {
            // Its home lies in what is Toolcrib's own.
            match home.starts_with(path) {
                true if named == home => {}
                true => {
                    let why =
                        format!("`{}` in `read` or `write` holds Toolcrib's own `{}`", named.display(), path.display());
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, why + ": name directories below it"));
                }
                false => hide.push(named.join(path.strip_prefix(&found).unwrap_or(Path::new("")))),
            }
        }
    }
    Ok(hide)
}

type Variables = (Vec<(String, String)>, Vec<(String, Value)>);

/// The variables of a section, those with secrets apart, behind a home.
async fn variables(section: &UpstreamSection, home: &Path, secrets: &Secrets) -> Result<Variables, Failure> {
    let mut plain = vec![
        ("HOME".to_owned(), home.display().to_string()),
        ("TMPDIR".to_owned(), "/tmp".to_owned()),
        // What Python has made of files beside them is not what was accepted.
        ("PYTHONPYCACHEPREFIX".to_owned(), home.join(".pycache").display().to_string()),
        // Some say in their definitions where the clock is.
        ("TZ".to_owned(), "UTC".to_owned()),
    ];
    let mut lent = Vec::new();
    for (name, template) in &section.variables {
        let text = secrets.fill(template).await?;
        match template.secrets().next() {
            None => {
                plain.retain(|(known, _)| known != name);
                plain.push((name.clone(), text.to_string()));
            }
            Some(_) => {
                let value = Value::read(text.as_bytes()).map_err(|why| {
                    Failure::new(Kind::Unavailable, format!("the variable `{name}` cannot have this value: {why}"))
                })?;
                lent.push((name.clone(), value));
            }
        }
    }
    Ok((plain, lent))
}
