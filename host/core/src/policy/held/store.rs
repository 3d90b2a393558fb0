//! What is held back, as it lies in Toolcrib's state until a person keeps or drops it.

use crate::backend::git::{self, Act, Ask};
use crate::disk::OwnDir;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where it lies in the state.
const SHELF: &str = "held";
/// Things that are held at most; then no further ones are.
const MOST: usize = 1000;
/// Bytes of a digest that tell one from the others.
const ID_BYTES: usize = 5;

/// One thing that is held back.
#[derive(Debug, Serialize, Deserialize)]
pub struct Held {
    /// Names it on the command line.
    pub id: String,
    /// When it was held, in seconds since 1970.
    pub since: u64,
    /// The call that made it.
    pub call: String,
    /// The git directory that it is for.
    directory: PathBuf,
    /// What would happen with it.
    pub what: String,
    act: Act,
}

impl Held {
    /// The file that it is, or is in.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.directory.join(self.act.file())
    }

    /// What would be there.
    #[must_use]
    pub fn text(&self) -> String {
        self.act.text()
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

    /// Holds something back. The same thing again is the same one.
    pub(super) fn hold(&self, ask: Ask, call: &str) -> io::Result<String> {
        let said = format!("{}\0{}", ask.directory.join(ask.act.file()).display(), ask.act.text());
        let id = hex::encode(&Sha256::digest(said)[..ID_BYTES]);
        if self.0.files()?.len() >= MOST {
            return Err(io::Error::other(format!("{MOST} things are held already")));
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let Ask { directory, what, act } = ask;
        let held = Held { id: id.clone(), since, call: call.to_owned(), directory, what, act };
        self.0.replace(&id, &serde_json::to_vec(&held)?)?;
        Ok(id)
    }

    /// What is held, the oldest first.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn list(&self) -> io::Result<Vec<Held>> {
        let names = self.0.files()?.into_iter().filter_map(|(name, _)| name.into_string().ok());
        let read = |name: String| self.0.read(&name).ok().flatten();
        Ok(names.filter_map(read).filter_map(|bytes| serde_json::from_slice(&bytes).ok()).collect())
    }

    /// Puts something where the command wanted it, and forgets it.
    ///
    /// # Errors
    ///
    /// What the system says, or that the place was changed meanwhile.
    pub fn keep(&self, held: &Held) -> io::Result<()> {
        git::make(&held.directory, &held.act)?;
        self.forget(held)
    }

    /// Forgets something.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn forget(&self, held: &Held) -> io::Result<()> {
        self.0.remove(held.id.as_ref())
    }
}
