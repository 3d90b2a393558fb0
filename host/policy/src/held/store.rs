//! What is held back, as it lies in Toolcrib's state until a person keeps or drops it.

use super::MOST_SHOWN;
use super::fetched::Within;
use super::take::{self, Content};
use base::disk::{DIRECTORY, OwnDir, open_below};
use git::{Act, Ask, Blob};
use rustix::fs::{CWD, Mode, mkdirat, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where it lies in the state, and where it is noted what a person said yes to.
const SHELF: &str = "held";
const ALLOWED: &str = "allowed";
/// Things that are held at most; then no further ones are.
const MOST: usize = 1000;
/// Bytes of all of them.
const MOST_BYTES: u64 = 256 << 20;
/// Bytes of a digest that tell one from the others.
const ID_BYTES: usize = 16;
/// Digits of an id that are shown; more are needed only where others begin with them.
const SHOWN: usize = 10;

/// One thing that is held back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// Names it on the command line.
    pub id: String,
    /// When it was held, in seconds since 1970.
    pub since: u64,
    /// The call that made it; empty where no call waited for it.
    pub call: String,
    /// What would happen with it.
    pub what: String,
    thing: Thing,
}

#[derive(Debug, Serialize, Deserialize)]
enum Thing {
    /// Something in a git directory.
    Git { directory: PathBuf, act: Act },
    /// A file below a directory that commands write.
    File {
        root: PathBuf,
        at: PathBuf,
        content: Content,
        /// What was there before, and is there again.
        before: Option<Content>,
    },
}

/// A file that was taken out of a directory that commands write.
#[derive(Clone, Debug)]
pub struct Taken {
    pub(super) id: String,
    pub(super) path: PathBuf,
    pub(super) what: &'static str,
    /// What was there before is there again.
    pub(super) was_there: bool,
    pub(super) text: String,
    /// The person's repository of whose working tree it is.
    pub(super) within: Option<Within>,
}

impl Held {
    /// As much of its id as people need.
    #[must_use]
    pub fn short(&self) -> &str {
        short(&self.id)
    }

    /// The file that it is, or is in.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        match &self.thing {
            Thing::Git { directory, act } => directory.join(act.file()),
            Thing::File { root, at, .. } => root.join(at),
        }
    }

    /// What would be there.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.thing {
            Thing::Git { act, .. } => act.text(),
            Thing::File { content, .. } => content.text(),
        }
    }
}

/// All that is held back.
pub struct Shelf(OwnDir);

impl Shelf {
    /// Opens it; `state` is Toolcrib's.
    ///
    /// # Errors
    ///
    /// When the state cannot be used.
    pub fn open(state: &Path) -> io::Result<Self> {
        Ok(Self(OwnDir::open(state)?.below(SHELF)?))
    }

    /// Holds back what git would do. The same thing again is the same one.
    pub(super) fn hold(&self, ask: Ask, call: &str) -> io::Result<String> {
        let Ask { directory, what, act } = ask;
        let id = id(&directory.join(act.file()), &serde_json::to_vec(&act)?);
        self.put(Held { id, since: now(), call: call.to_owned(), what, thing: Thing::Git { directory, act } })
    }

    /// Holds back a file; no call is known yet.
    pub(super) fn hold_file(
        &self,
        root: &Path,
        at: &Path,
        content: &Content,
        what: &'static str,
        before: Option<&Content>,
    ) -> io::Result<Taken> {
        let (path, text, was_there) = (root.join(at), content.text(), before.is_some());
        let (id, call) = (id(&path, &serde_json::to_vec(content)?), String::new());
        let (root, at, content) = (root.to_owned(), at.to_owned(), content.clone());
        let thing = Thing::File { root, at, content, before: before.cloned() };
        let id = self.put(Held { id, since: now(), call, what: what.to_owned(), thing })?;
        let text = text[..text.floor_char_boundary(MOST_SHOWN + 1)].to_owned();
        Ok(Taken { id, path, what, was_there, text, within: None })
    }

    fn put(&self, held: Held) -> io::Result<String> {
        let there = self.0.files()?;
        let is_full = there.len() >= MOST || there.iter().map(|(_, bytes)| bytes).sum::<u64>() > MOST_BYTES;
        // The same thing again takes no room.
        if is_full && !there.iter().any(|(name, _)| *name == *held.id) {
            let hint = "`toolcrib files held drop` makes room";
            return Err(io::Error::other(format!(
                "{} things are held already, and no more can be: {hint}",
                there.len()
            )));
        }
        self.0.replace(&held.id, &serde_json::to_vec(&held)?)?;
        Ok(held.id)
    }

    /// Notes which call made something.
    pub(super) fn made_by(&self, id: &str, call: &str) -> io::Result<()> {
        if let Some(held) = self.read(id) {
            self.0.replace(id, &serde_json::to_vec(&Held { call: call.to_owned(), ..held })?)?;
        }
        Ok(())
    }

    /// What git would have of a file, if it is not too large to be shown.
    pub(super) fn blob(&self, id: &str) -> Option<Blob> {
        match self.read(id)?.thing {
            Thing::File { content, .. } => content.blob(),
            Thing::Git { .. } => None,
        }
    }

    fn read(&self, id: &str) -> Option<Held> {
        serde_json::from_slice(&self.0.read(id).ok()??).ok()
    }

    /// What is held, the oldest first.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn list(&self) -> io::Result<Vec<Held>> {
        let names = self.0.files()?.into_iter().filter_map(|(name, _)| name.into_string().ok());
        Ok(names.filter_map(|name| self.read(&name)).collect())
    }

    /// Puts something where the command wanted it, by its id.
    pub(super) fn keep_id(&self, id: &str) -> io::Result<()> {
        self.keep(&self.read(id).ok_or(io::ErrorKind::NotFound)?)
    }

    /// Puts something where the command wanted it, and forgets it.
    ///
    /// # Errors
    ///
    /// What the system says, or that the place was changed meanwhile.
    pub fn keep(&self, held: &Held) -> io::Result<()> {
        match &held.thing {
            Thing::Git { directory, act } => git::make(directory, act)?,
            Thing::File { root, at, content, before } => {
                let directory = make_way(root, at.parent().unwrap_or(Path::new("")))?;
                let name = at.file_name().ok_or(io::ErrorKind::InvalidInput)?;
                // Before it is there: who looks at it knows that it may be.
                if let Some(allowance) = allowance(&held.file(), content) {
                    self.0.below(ALLOWED)?.replace(&allowance, b"")?;
                }
                let is_as_before = before.is_some() && take::read(&directory, name, take::MOST_BYTES).ok() == *before;
                let put = if is_as_before { take::put } else { take::add };
                put(&directory, name, content).map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => {
                        io::Error::new(error.kind(), "something is there: move it away first")
                    }
                    _ => error,
                })?;
            }
        }
        self.forget(held)
    }

    /// Drops something.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn drop(&self, held: &Held) -> io::Result<()> {
        if let Thing::File { root, at, content, .. } = &held.thing
            && let Ok(top) = openat(CWD, root, DIRECTORY, Mode::empty())
            && let Ok(directory) = open_below(&top, at.parent().unwrap_or(Path::new("")), DIRECTORY)
        {
            take::remove(directory, content)?;
        }
        self.forget(held)
    }

    fn forget(&self, held: &Held) -> io::Result<()> {
        self.0.remove(held.id.as_ref())
    }

    /// Notes that a file of these bytes may be there.
    pub(super) fn allow(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let content = Content::Text { bytes: bytes.to_vec(), mode: 0 };
        match allowance(path, &content) {
            Some(allowance) => self.0.below(ALLOWED)?.replace(&allowance, b""),
            None => Ok(()),
        }
    }

    /// Whether a person said yes to this very file.
    pub(super) fn was_allowed(&self, path: &Path, content: &Content) -> bool {
        let Some(allowance) = allowance(path, content) else { return false };
        matches!(self.0.below(ALLOWED).and_then(|allowed| allowed.read(&allowance)), Ok(Some(_)))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn digest(path: &Path, bytes: &[u8]) -> [u8; 32] {
    Sha256::new()
        .chain_update(path.as_os_str().as_encoded_bytes())
        .chain_update([0])
        .chain_update(bytes)
        .finalize()
        .into()
}

fn id(path: &Path, bytes: &[u8]) -> String {
    hex::encode(&digest(path, bytes)[..ID_BYTES])
}

pub(super) fn short(id: &str) -> &str {
    id.get(..SHOWN).unwrap_or(id)
}

fn allowance(path: &Path, content: &Content) -> Option<String> {
    Some(hex::encode(digest(path, &content.digest()?)))
}

/// Opens a directory below a root, and makes what of it is missing.
fn make_way(root: &Path, at: &Path) -> io::Result<OwnedFd> {
    let mut directory = openat(CWD, root, DIRECTORY, Mode::empty())?;
    for part in at {
        match mkdirat(&directory, part, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        directory = open_below(&directory, Path::new(part), DIRECTORY)?;
    }
    Ok(directory)
}
