//! Checks the chain of a trail: that no line was changed, taken out, put in or moved since it was written.
//!
//! What it cannot see by itself is a trail that was cut at its end, which is a good chain: for that a later state must be known from
//! elsewhere, by the key beside the trail, seals of bound time, the system's log, or a head that an auditor wrote down.

use super::beside::{Beside, EPOCHS, Seen};
use super::chain::{Head, LOOKED_BACK, Link, NOTHING};
use super::rotate::rotated;
use super::seal::{EpochKey, LINES};
use base::disk::OwnDir;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The most that a line is read of: what is longer is none of ours.
const LINE_BYTES: u64 = 1 << 20;
/// Lines that may stand without a seal where there is a key: as many as are sealed at once, and what was written in the same moment.
const UNSEALED: u64 = LINES + 200;

/// What an auditor knows from elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// The first key, which checks seals.
    pub key: Option<[u8; 32]>,
    /// How the chain stood at some time.
    pub since: Option<Head>,
    /// The key that seals it, read before the trail.
    pub beside: Beside,
}

/// A chain that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The files that it is in.
    pub files: usize,
    /// The number of its first line; above 1 where older files were removed.
    pub first: u64,
    /// Its last line.
    pub head: Head,
    /// Its seals.
    pub seals: u64,
    /// The last of them: its line and when it was made.
    pub last_seal: Option<(u64, String)>,
    /// How many pieces of lines it tells of, as a killed process leaves them.
    pub torn: u64,
    /// Seals that stand twice, as a process leaves them that was killed while it sealed.
    pub doubled: u64,
    /// Bytes at its very end that are no whole line: one that is being written, or torn.
    pub unfinished: u64,
}

/// Why a trail does not hold.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It cannot be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It was changed.
    #[error("{}:{line}: {reason}", .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Its first line that is not as it was written.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// It is whole, and does not fit to what is known from elsewhere.
    #[error("{0}")]
    Cut(String),
}

/// The files of a trail, the oldest first.
///
/// # Errors
///
/// What the system says of the directory.
pub fn files(trail: &Path) -> io::Result<Vec<PathBuf>> {
    let (directory, name) = OwnDir::of_file(trail)?;
    let mut names = rotated(&directory, &name)?;
    names.push(name);
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
    Ok(names.into_iter().map(|name| directory.path().join(name)).filter(is_there).collect())
}

/// Checks the files of a chain, the oldest first.
///
/// # Errors
///
/// The first line that is not as it was written.
pub fn verify(files: &[PathBuf], known: Known) -> Result<Whole, Fault> {
    let mut check = Check::new(known);
    // Opened before any is read: one that is rotated away meanwhile is the same file still.
    let open = |path: &PathBuf| File::open(path).map_err(|error| Fault::Unreadable { path: path.clone(), error });
    let opened: Vec<File> = files.iter().map(open).collect::<Result<_, _>>()?;
    for (path, file) in files.iter().zip(opened) {
        check.file(path, file)?;
    }
    check.end(files)
}

/// The state of a check.
struct Check {
    known: Known,
    head: Head,
    whole: Whole,
    /// The key of the epoch that the next seal should have; the one before, which a doubled seal has.
    key: Option<(EpochKey, Option<EpochKey>)>,
    has_seen_since: bool,
    /// The epoch of the last seal.
    epoch: Option<u64>,
    /// A seal, or the line that begins sealing, stands in the trail.
    is_sealed: bool,
    /// The line since which seals stand close enough: the last seal, or where sealing began. None before that.
    sealed_from: Option<u64>,
    /// Lines of no chain, which a line `torn` has to tell of.
    pending: Option<Pending>,
}

struct Pending {
    line: u64,
    reason: String,
    bytes: u64,
    hash: Sha256,
    /// Whether its last line ends with a newline, which is not part of what a line `torn` counts.
    has_end: bool,
}

/// What is read of a line `torn`.
#[derive(Deserialize)]
struct Torn {
    bytes: u64,
    sha256: String,
}

/// What is read of a line `seal`.
#[derive(Deserialize)]
struct SealLine {
    time: String,
    epoch: u64,
    mac: String,
}

impl Check {
    fn new(known: Known) -> Self {
        let whole =
            Whole { files: 0, first: 0, head: NOTHING, seals: 0, last_seal: None, torn: 0, doubled: 0, unfinished: 0 };
        let key = known.key.map(|key| (EpochKey::first(key), None));
        Self {
            known,
            head: NOTHING,
            whole,
            key,
            has_seen_since: false,
            epoch: None,
            is_sealed: false,
            sealed_from: None,
            pending: None,
        }
    }

    fn file(&mut self, path: &Path, file: File) -> Result<(), Fault> {
        let unreadable = |error| Fault::Unreadable { path: path.to_owned(), error };
        let broken = |line, reason| Fault::Broken { path: path.to_owned(), line, reason };
        if let Some(pending) = self.pending.take() {
            return Err(broken(
                1,
                format!("the file before this ends with bytes that no line tells of: {}", pending.reason),
            ));
        }
        self.whole.files += 1;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let (mut bytes, mut number) = (Vec::new(), 0);
        loop {
            bytes.clear();
            number += 1;
            let read = reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut bytes).map_err(unreadable)?;
            if read == 0 {
                return Ok(());
            }
            let reason = match self.line(&bytes) {
                Ok(()) => continue,
                Err(reason) => reason,
            };
            let pending = self.pending.get_or_insert_with(|| Pending {
                line: number,
                reason,
                bytes: 0,
                hash: Sha256::new(),
                has_end: false,
            });
            pending.add(&bytes);
            if pending.bytes > LOOKED_BACK {
                return Err(broken(pending.line, pending.reason.clone()));
            }
        }
    }

    /// Takes a line that goes on from the one before.
    fn line(&mut self, bytes: &[u8]) -> Result<(), String> {
        let line = bytes.strip_suffix(b"\n").ok_or("half a line")?;
        let link = Link::of(line).ok_or("this is no line of the chain")?;
        let is_first = self.whole.first == 0;
        if is_first {
            if link.n == 0 || (link.n == 1 && link.prev != NOTHING.digest) {
                return Err("a chain does not begin so".into());
            }
            self.whole.first = link.n;
            self.head = Head { n: link.n - 1, digest: link.prev };
        }
        if link.n != self.head.n + 1 {
            let (n, expected) = (link.n, self.head.n + 1);
            return Err(if n > expected {
                format!("line {n} stands where line {expected} should: {} lines are missing", n - expected)
            } else {
                format!("line {n} stands where line {expected} should")
            });
        }
        if link.prev != self.head.digest {
            return Err(format!("line {} does not go on from the line before: one of them was changed", link.n));
        }
        self.told(line, &link)?;
        match link.event {
            b"seal" => self.sealed(line)?,
            // Seals stand from here on; where older files are gone, this line was in one of them.
            b"sealing" => {
                self.is_sealed = true;
                self.sealed_from.get_or_insert(link.n);
            }
            _ => {}
        }
        if is_first && link.n > 1 {
            self.sealed_from = Some(link.n);
        }
        if self.key.is_some() && self.sealed_from.is_some_and(|from| link.n > from + UNSEALED) {
            return Err(format!("a seal is missing: none stands in the {UNSEALED} lines before this"));
        }
        self.head = Head { n: link.n, digest: Sha256::digest(line).into() };
        if let Some(since) = self.known.since.filter(|since| since.n == self.head.n) {
            if since.digest != self.head.digest {
                return Err(format!("line {} is another than the one that was noted", since.n));
            }
            self.has_seen_since = true;
        }
        Ok(())
    }

    /// Bytes that belong to no chain have to be told of by the next line of the chain.
    fn told(&mut self, line: &[u8], link: &Link<'_>) -> Result<(), String> {
        match (&self.pending, link.event == b"torn") {
            (None, false) => Ok(()),
            (None, true) => Err("this line tells of bytes that are not there".into()),
            (Some(pending), true) => {
                let torn: Torn = serde_json::from_slice(line).map_err(|_| "this line cannot be read")?;
                let digest = hex::encode(pending.hash.clone().finalize());
                if (torn.bytes, torn.sha256.as_str()) != (pending.bytes, digest.as_str()) {
                    return Err(pending.reason.clone());
                }
                self.pending = None;
                self.whole.torn += 1;
                Ok(())
            }
            (Some(pending), false) => Err(pending.reason.clone()),
        }
    }

    fn sealed(&mut self, line: &[u8]) -> Result<(), String> {
        let seal: SealLine = serde_json::from_slice(line).map_err(|_| "this seal cannot be read")?;
        if let Some((next, last)) = &mut self.key {
            let is_first = self.whole.seals == 0;
            let makes = |key: &EpochKey| hex::encode(key.seal(self.head)) == seal.mac;
            // The seals of older files are not here.
            if is_first && self.whole.first > 1 && seal.epoch < EPOCHS {
                while next.epoch < seal.epoch {
                    *next = next.next();
                }
            }
            if last.as_ref().is_some_and(|last| last.epoch == seal.epoch && makes(last)) {
                self.whole.doubled += 1;
            } else if seal.epoch != next.epoch {
                return Err(format!("the seal of epoch {} stands where that of {} should", seal.epoch, next.epoch));
            } else if makes(next) {
                let after = next.next();
                *last = Some(std::mem::replace(next, after));
            } else {
                return Err(format!("the seal of epoch {} is of another chain or another key", seal.epoch));
            }
        } else if !self.goes_on_with(seal.epoch) {
            let should = self.epoch.map_or(0, |epoch| epoch + 1);
            return Err(format!("the seal of epoch {} stands where that of {should} should", seal.epoch));
        }
        (self.epoch, self.is_sealed) = (Some(seal.epoch), true);
        self.whole.seals += 1;
        self.sealed_from = Some(self.head.n + 1);
        self.whole.last_seal = Some((self.head.n + 1, seal.time));
        Ok(())
    }

    /// Whether a seal of this epoch can stand here, as far as that shows without the key: each follows the one before, which may stand twice.
    fn goes_on_with(&self, epoch: u64) -> bool {
        match self.epoch {
            // The seals of older files are not here.
            None => epoch == 0 || self.whole.first > 1,
            Some(last) => epoch == last || last.checked_add(1) == Some(epoch),
        }
    }

    fn end(mut self, files: &[PathBuf]) -> Result<Whole, Fault> {
        if let Some(pending) = self.pending.take() {
            if pending.has_end || pending.reason != "half a line" {
                let path = files.last().cloned().unwrap_or_default();
                return Err(Fault::Broken { path, line: pending.line, reason: pending.reason });
            }
            self.whole.unfinished = pending.bytes;
        }
        let seen = Seen { head: self.head, is_sealed: self.is_sealed, epoch: self.epoch, first: self.known.key };
        self.known.beside.check(&seen).map_err(Fault::Cut)?;
        if self.whole.first == 0 {
            return Err(Fault::Cut(
                "no line is in the trail: nothing was recorded yet, or all of it was removed".into(),
            ));
        }
        if self.key.is_some() && self.whole.seals == 0 {
            return Err(Fault::Cut("a key was given, and no seal stands in the trail".into()));
        }
        if let Some(since) = self.known.since.filter(|_| !self.has_seen_since) {
            let Head { n, .. } = self.head;
            return Err(Fault::Cut(if since.n > n {
                format!("the trail ends with line {n}, and line {} was noted: its end was cut off", since.n)
            } else {
                format!("line {} was noted, and the trail begins with line {}", since.n, self.whole.first)
            }));
        }
        Ok(Whole { head: self.head, ..self.whole })
    }
}

impl Pending {
    fn add(&mut self, bytes: &[u8]) {
        if self.has_end {
            self.hash.update(b"\n");
            self.bytes += 1;
        }
        let content = bytes.strip_suffix(b"\n");
        self.has_end = content.is_some();
        let content = content.unwrap_or(bytes);
        self.hash.update(content);
        self.bytes += content.len() as u64;
    }
}
