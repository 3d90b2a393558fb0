//! Whose signatures hold for a file: minisign files beside it, as `minisign -Sm FILE` and `toolcrib plugin sign` make them.
//!
//! Keys are counted, not files and not names: one key is one reviewer, however often it has signed. The comment of a signature decides
//! nothing.

use crate::config::{Key, Revoked, Role, Signed};
use minisign_verify::Signature;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Signatures of one file that are looked at, and the bytes of each.
const MOST: usize = 32;
const SIGNATURE_BYTES: u64 = 4 << 10;
/// Names of a directory that are looked at: a directory of more is no place for what was signed.
const MOST_NAMES: usize = 100_000;

/// The signatures beside a file.
pub(super) struct Signatures {
    found: Vec<(String, Signature)>,
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
    pub(super) fn beside(file: &Path) -> Self {
        let mut signatures = Self { found: Vec::new(), passed_over: Vec::new() };
        let (Some(directory), Some(name)) = (file.parent(), file.file_name().and_then(|name| name.to_str())) else {
            return signatures;
        };
        let entries = std::fs::read_dir(directory).into_iter().flatten().take(MOST_NAMES).flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let is_of_it = |other: &String| {
            other
                .strip_prefix(name)
                .and_then(|rest| rest.strip_suffix(".minisig"))
                .is_some_and(|between| between.is_empty() || between.starts_with('.'))
        };
        let mut names: Vec<String> = names.filter(is_of_it).collect();
        names.sort();
        let more = names.len().saturating_sub(MOST);
        if more > 0 {
            signatures.passed_over.push(format!("{more} more signatures: {MOST} are looked at"));
        }
        for name in names.into_iter().take(MOST) {
            let read = read_file(&directory.join(&name), SIGNATURE_BYTES).map_err(|error| error.to_string());
            let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()));
            match text.and_then(|text| Signature::decode(&text).map_err(|error| error.to_string())) {
                Ok(signature) => signatures.found.push((name, signature)),
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
    ) -> Signers {
        let mut signers = Signers { names: BTreeSet::new(), told: self.passed_over.clone() };
        for (file, signature) in &self.found {
            // Old signatures, over the bytes themselves, are not taken.
            let makes = |(_, key): &(&String, &Key)| key.public.verify(bytes, signature, false).is_ok();
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
pub(super) fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
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

/// The files of a directory whose names end so, in order.
pub(super) fn named(directory: &Path, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().take(MOST_NAMES).flatten();
    let paths = entries.map(|entry| entry.path());
    let is_one = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(end));
    let mut paths: Vec<PathBuf> = paths.filter(is_one).collect();
    paths.sort();
    paths
}
