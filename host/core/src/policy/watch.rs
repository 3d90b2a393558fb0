//! Whether the policy files are still what this program has read: with others, or with one that is there now, nothing goes on as before.

use super::vetting::read_file;
use crate::audit::PolicyDigest;
use crate::envelope::{Failure, Kind};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often they are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// More than a policy may have, in bytes: what is longer is another.
const LONGEST: u64 = 4 << 20;

/// The policy files of a program.
pub(super) struct PolicyWatch {
    files: Vec<PolicyDigest>,
    state: Mutex<State>,
}

struct State {
    looked: Instant,
    changed: Option<PathBuf>,
}

impl PolicyWatch {
    /// Files as they were read a moment ago.
    pub(super) fn new(files: Vec<PolicyDigest>) -> Self {
        Self { files, state: Mutex::new(State { looked: Instant::now(), changed: None }) }
    }

    /// The first file that has changed.
    pub(super) fn changed(&self) -> Option<PathBuf> {
        let mut state = self.state.lock();
        if state.looked.elapsed() >= LOOK {
            let has_changed = |file: &&PolicyDigest| digest(&file.path) != Ok(file.sha256.clone());
            state.changed = self.files.iter().find(has_changed).map(|file| file.path.clone());
            state.looked = Instant::now();
        }
        state.changed.clone()
    }

    /// What a call answers then.
    pub(super) fn refusal(path: &Path) -> Failure {
        let message = format!("the policy {} was changed since this program started", path.display());
        Failure::new(Kind::Unavailable, message).hint("start it again: it then obeys the policy as it is now")
    }
}

/// The digest of a file; none where there is none. What cannot be read is another.
fn digest(path: &Path) -> Result<Option<String>, ErrorKind> {
    match read_file(path, LONGEST) {
        Ok(bytes) => Ok(Some(hex::encode(Sha256::digest(bytes)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.kind()),
    }
}
