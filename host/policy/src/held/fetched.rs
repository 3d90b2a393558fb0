//! What came from a remote of the person's: git put it there, and no command made it.
//!
//! A command can write into a git directory what it likes, also what it would have fetched. So the remote itself is asked, outside, which commits
//! it has; what one of them holds at this place is let through.

use super::Shelf;
use super::store::Taken;
use crate::scope::Scope;
use ::keys::Keyring;
use base::text::sanitize;
use git::{Blob, Remote};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a remote may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// Remotes that are asked.
const MOST: usize = 4;

/// Where a file was taken from: a working tree of the person's.
#[derive(Clone, Debug)]
pub(super) struct Within {
    /// What leads git from the working tree to its repository.
    pub(super) link: PathBuf,
    /// The file, seen from the working tree.
    pub(super) below: PathBuf,
    /// Directories that commands write.
    pub(super) write: Vec<PathBuf>,
}

/// A file that may be a remote's.
struct File {
    id: String,
    within: Within,
    blob: Blob,
    remotes: Vec<Remote>,
}

/// Puts back those of these files that a remote has. Returns the others, and what is to be said.
pub(super) async fn let_through(taken: Vec<Taken>, keyring: &Keyring, scope: &Scope) -> (Vec<Taken>, Vec<String>) {
    let is_within = taken.iter().any(|taken| taken.within.is_some());
    let facts = scope.backend.facts().await.ok().filter(|_| is_within);
    let Some(facts) = facts else { return (taken, Vec::new()) };
    let from = from_remotes(taken.clone(), &facts.own, keyring).await;
    let (mut rest, mut notices) = (Vec::new(), Vec::new());
    for taken in taken {
        let is_kept = |_: &&String| Shelf::open(&facts.own).and_then(|shelf| shelf.keep_id(&taken.id)).is_ok();
        match from.get(&taken.id).filter(is_kept) {
            Some(remote) => {
                let (name, remote) = (super::name(&taken.path, Some(&facts)), sanitize::visible_line(remote));
                notices.push(format!("`{name}` was fetched: the remote `{remote}` has it"));
            }
            None => rest.push(taken),
        }
    }
    super::record(&notices, "allowed, as a remote has it", scope);
    let more = notices.len().saturating_sub(super::MOST_TOLD);
    if more > 0 {
        notices.truncate(super::MOST_TOLD);
        notices.push(format!("so it was with {more} more files"));
    }
    (rest, notices)
}

/// Which of these files a remote has, by their ids, and its name. `state` is Toolcrib's.
async fn from_remotes(taken: Vec<Taken>, state: &Path, keyring: &Keyring) -> HashMap<String, String> {
    let state = state.to_owned();
    let Ok(files) = tokio::task::spawn_blocking(move || candidates(taken, &state)).await else { return HashMap::new() };
    let urls: HashSet<&String> = files.iter().flat_map(|file| &file.remotes).map(|remote| &remote.url).collect();
    let ask = async |url: &String| {
        let answer = tokio::time::timeout(PATIENCE, keyring.commits_of(url)).await;
        // One that does not answer has nothing.
        Some((url.clone(), answer.ok()?.ok()?))
    };
    let asked = futures_util::future::join_all(urls.into_iter().take(MOST).map(ask)).await;
    let offered: HashMap<_, _> = asked.into_iter().flatten().collect();
    let found = move || {
        let from = |File { id, within: Within { link, below, .. }, blob, remotes }: File| {
            let has = |remote: &Remote| {
                let commits = offered.get(&remote.url);
                commits.is_some_and(|commits| git::holds(&link, commits, &below, &blob))
            };
            Some((id, remotes.into_iter().find(has)?.name))
        };
        files.into_iter().filter_map(from).collect()
    };
    tokio::task::spawn_blocking(found).await.unwrap_or_default()
}

/// Those whose bytes a reference of their repository holds, with remotes that the person named.
fn candidates(taken: Vec<Taken>, state: &Path) -> Vec<File> {
    let Ok(shelf) = Shelf::open(state) else { return Vec::new() };
    let file = |Taken { id, within, .. }: Taken| {
        let (within, blob) = (within?, shelf.blob(&id)?);
        let remotes = git::may_come_from(state, &within.link, &within.below, &blob, &within.write);
        (!remotes.is_empty()).then_some(File { id, within, blob, remotes })
    };
    taken.into_iter().filter_map(file).collect()
}
