//! What is known of what acts, kept for the next host as long as commands may go on without one: what came meanwhile is then looked at (`tree.rs`).

use super::tree::Known;
use backend::cell::Activity;
use backend::uptime;
use base::disk::OwnDir;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where it lies in the state: of each workspace what is known, and what had run by then.
const SAVED: &str = "watched";
const KNOWN: &str = "known";
const RAN: &str = "ran";
/// What tells one start of the system from another.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// What had run when it was saved.
#[derive(Serialize, Deserialize)]
struct Ran {
    boot: String,
    active: Activity,
    /// Nothing was running then.
    was_idle: bool,
}

/// What a host before this one left.
pub(super) struct Left {
    /// What it knew, where commands went on since.
    pub(super) known: Option<HashMap<PathBuf, Known>>,
    /// Since when they do not any more, in seconds since 1970.
    pub(super) until: Option<i64>,
    /// What had run, where something of it is there still.
    pub(super) active: Option<Activity>,
    /// What was looked at.
    pub(super) done: HashSet<PathBuf>,
}

fn place(state: &Path, workspace: &Path) -> io::Result<OwnDir> {
    let name = hex::encode(&Sha256::digest(workspace.as_os_str().as_encoded_bytes())[..16]);
    OwnDir::open(state)?.below(SAVED)?.below(&name)
}

/// Saves what is known; all of it only where that is not what was saved last.
pub(super) fn save(
    (state, workspace): (&Path, &Path),
    known: Option<&HashMap<PathBuf, Known>>,
    active: &Activity,
    was_idle: bool,
) -> io::Result<()> {
    let place = place(state, workspace)?;
    if let Some(known) = known {
        // One that is no text is looked at by the next host.
        let known: HashMap<_, _> = known.iter().filter(|(path, _)| path.to_str().is_some()).collect();
        place.replace(KNOWN, &serde_json::to_vec(&known)?)?;
    }
    // Last: where it is an older one, more is looked at.
    place.replace(RAN, &serde_json::to_vec(&Ran { boot: boot(), active: active.outliving(), was_idle })?)
}

/// Returns what a host before this one left, and forgets it where nothing goes on.
pub(super) fn left(state: &Path, workspace: &Path) -> Option<Left> {
    let place = place(state, workspace).ok()?;
    let ran: Ran = serde_json::from_slice(&place.read(RAN).ok()??).ok()?;
    let known = place.read(KNOWN).ok()??;
    let is_this_boot = ran.boot == boot();
    let has_run = !is_this_boot || !ran.was_idle || ran.active.has_run();
    let is_there = is_this_boot && ran.active.is_there();
    if !is_there {
        let _ = place.remove(RAN.as_ref());
    }
    Some(Left {
        known: has_run.then(|| serde_json::from_slice(&known).ok()).flatten(),
        until: (!is_this_boot).then(started),
        active: is_there.then_some(ran.active),
        done: HashSet::new(),
    })
}

fn boot() -> String {
    std::fs::read_to_string(BOOT).unwrap_or_default()
}

/// When the system was started, or later where it slept.
fn started() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.saturating_sub(uptime()).as_secs()).unwrap_or(i64::MAX)
}
