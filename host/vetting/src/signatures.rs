//! Whose signatures hold for a file: minisign files beside it, as `minisign -Sm FILE` and `toolcrib plugin sign` make them.
//!
//! Keys are counted, not files and not names: one key is one reviewer, however often it has signed. The comment of a signature decides
//! nothing.

use super::marks::Marks;
use base::dirs::directory_of;
use config::{Key, Revoked, Role, Signed};
use minisign_verify::Signature;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Signatures of one file that are looked at, and the bytes of each.
const MOST: usize = 32;
const SIGNATURE_BYTES: u64 = 4 << 10;
/// Names of a directory that are looked at: a directory of more is no place for what was signed.
const MOST_NAMES: usize = 100_000;

/// The names in a directory, read once for all files that are looked for in it.
#[derive(Default)]
pub(super) struct Names(HashMap<PathBuf, Vec<String>>);

/// The signatures beside a file.
pub(super) struct Signatures {
    /// By the name of the file: what it says, and the digest of its bytes.
    found: Vec<(String, Signature, [u8; 32])>,
    /// What was passed over, and why.
    passed_over: Vec<String>,
}

/// Who has signed something.
pub(super) struct Signers {
    /// The names of distinct keys.
    pub(super) names: BTreeSet<String>,
    /// Signatures that do not count, and why.
    pub(super) told: Vec<String>,
}

impl Signatures {
    /// Reads `FILE.minisig` and `FILE.ANYTHING.minisig`.
    pub(super) fn beside(file: &Path, names: &mut Names) -> Self {
        let mut signatures = Self { found: Vec::new(), passed_over: Vec::new() };
        let Some((directory, name)) = split(file) else {
            return signatures;
        };
        let names = names.signatures_of(directory, name);
        if names.is_empty() {
            signatures.passed_over.push(format!("there is no `{name}.minisig` or `{name}.NAME.minisig` beside it"));
        }
        let more = names.len().saturating_sub(MOST);
        if more > 0 {
            signatures.passed_over.push(format!("{more} more signatures: {MOST} are looked at"));
        }
        for name in names.into_iter().take(MOST) {
            let read = read_file(&directory.join(&name), SIGNATURE_BYTES).map_err(|error| error.to_string());
            let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()));
            let read = |text: String| {
                let signature = Signature::decode(&text).map_err(|error| error.to_string())?;
                Ok((signature, Sha256::digest(&text).into()))
            };
            match text.and_then(read) {
                Ok((signature, digest)) => signatures.found.push((name, signature, digest)),
                Err(reason) => signatures.passed_over.push(format!("{name}: {reason}")),
            }
        }
        signatures
    }

    /// The keys with a role whose signatures hold. `issued` is when the bytes say that they were signed, once they can be read.
    pub(super) fn signers(
        &self,
        bytes: &[u8],
        signed: &Signed,
        revoked: &Revoked,
        role: Role,
        issued: Option<u64>,
        marks: &Marks,
    ) -> Signers {
        let of_bytes = Sha256::digest(bytes);
        let mut signers = Signers { names: BTreeSet::new(), told: self.passed_over.clone() };
        for (file, signature, digest) in &self.found {
            let makes = |(_, key): &(&String, &Key)| {
                // Also the key's number, which is part of what is checked: another one makes another key of the same bytes.
                let name = Sha256::new().chain_update(key.bytes).chain_update(&key.number);
                let name = name.chain_update(of_bytes).chain_update(digest).finalize();
                // Old signatures, over the bytes themselves, are not taken.
                marks.know(name.into(), || key.public.verify(bytes, signature, false).is_ok())
            };
            let Some((name, key)) = signed.keys.iter().find(makes) else {
                signers.told.push(format!("{file}: no key of the policy made it, or it is of the old form"));
                continue;
            };
            match counts(name, key, revoked, role, issued) {
                Ok(()) => _ = signers.names.insert(name.clone()),
                Err(reason) => signers.told.push(format!("{file}: {name} {reason}")),
            }
        }
        signers
    }
}

impl Names {
    /// In order.
    fn of(&mut self, directory: &Path) -> &[String] {
        self.0.entry(directory.to_owned()).or_insert_with(|| {
            let entries = std::fs::read_dir(directory).into_iter().flatten().take(MOST_NAMES).flatten();
            let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            names
        })
    }

    /// The files of a directory whose names end so, in order.
    pub(super) fn ending(&mut self, directory: &Path, end: &str) -> Vec<PathBuf> {
        self.of(directory).iter().filter(|name| name.ends_with(end)).map(|name| directory.join(name)).collect()
    }

    /// The names of the signatures beside a file.
    fn signatures_of(&mut self, directory: &Path, name: &str) -> Vec<String> {
        let is_of_it = |other: &&String| {
            other
                .strip_prefix(name)
                .and_then(|rest| rest.strip_suffix(".minisig"))
                .is_some_and(|between| between.is_empty() || between.starts_with('.'))
        };
        // In order: those that begin with the file's name stand together.
        let all = self.of(directory);
        let from = all.partition_point(|other| other.as_str() < name);
        all[from..].iter().take_while(|other| other.starts_with(name)).filter(is_of_it).cloned().collect()
    }

    /// The signatures beside a file.
    pub(super) fn signatures(&mut self, file: &Path) -> Vec<PathBuf> {
        let Some((directory, name)) = split(file) else {
            return Vec::new();
        };
        self.signatures_of(directory, name).into_iter().take(MOST).map(|name| directory.join(name)).collect()
    }

    /// Forgets what it read: files may have come.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

/// The command with which a reviewer signs a file.
pub(super) fn signing(file: &Path) -> String {
    format!("a reviewer signs it with `toolcrib plugin sign {} --key KEY --as NAME`", file.display())
}

/// The directory and the name of a file.
fn split(file: &Path) -> Option<(&Path, &str)> {
    Some((directory_of(file)?, file.file_name()?.to_str()?))
}

/// Whether a good signature of a key counts.
fn counts(name: &str, key: &Key, revoked: &Revoked, role: Role, issued: Option<u64>) -> Result<(), &'static str> {
    if !key.roles.contains(&role) {
        return Err("has no such role");
    }
    let before = revoked.signed_before.get(name);
    if revoked.keys.contains(&key.number) && before.is_none() {
        return Err("was revoked");
    }
    let Some(issued) = issued else { return Ok(()) };
    if before.is_some_and(|before| issued >= *before) {
        return Err("was revoked before that");
    }
    if key.not_after.is_some_and(|last| issued > last) {
        return Err("had ended by then (`not_after`)");
    }
    Ok(())
}

/// Reads a whole regular file of at most `most` bytes.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // A FIFO in its place must not keep us waiting.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    read_opened(file, most)
}

/// The same of an open file.
pub(super) fn read_opened(file: File, most: u64) -> io::Result<Vec<u8>> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is longer than {} KiB", most >> 10)));
    }
    Ok(bytes)
}
