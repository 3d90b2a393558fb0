//! Regular files on the call's backend.
//!
//! A relative path starts at the backend's working directory, `~/` at the user's home. The host resolves links and
//! then judges.

use crate::host::files;
use crate::{Captured, Failure, Result};

/// What one read returns at most, in bytes.
const MAX_BYTES: u32 = 4 << 20;

/// Reads a whole text file.
///
/// # Errors
/// `limit` for a file of more than 4 MiB, else as [`read`].
pub fn read_text(path: &str) -> Result<String> {
    let captured = read(path, 0, MAX_BYTES)?;
    if captured.truncated {
        let message = format!("`{path}` has {} bytes, more than the 4 MiB that fit into one read", captured.bytes);
        return Err(Failure::limit(message));
    }
    Ok(captured.text)
}

/// Reads at most `max` characters of text that start `offset` bytes into the file.
///
/// `captured.bytes` is the size of the whole file. An offset inside a character moves on to the next one.
///
/// # Errors
/// `denied` by policy; `execution_failed` for what is missing, not a regular file or not UTF-8.
pub fn read(path: &str, offset: u64, max: u32) -> Result<Captured> {
    files::read(path, offset, max).map_err(Failure::from_host)
}

/// A whole text file, and what tells its content from any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The text.
    pub content: String,
    /// For [`replace`].
    pub revision: String,
}

/// Reads a whole text file of at most 4 MiB, to change it.
///
/// # Errors
/// `limit` for a larger one, else as [`read`].
pub fn read_whole(path: &str) -> Result<Whole> {
    let files::Whole { content, revision } = files::read_whole(path).map_err(Failure::from_host)?;
    Ok(Whole { content, revision })
}

/// Replaces the whole content of a file if it still has that of `revision`, and returns the number of bytes written. An empty revision is
/// that of a file which does not exist.
///
/// # Errors
/// `busy` where it has another content by now; else as [`write()`].
pub fn replace(path: &str, content: impl AsRef<[u8]>, revision: &str) -> Result<u64> {
    files::replace(path, content.as_ref(), revision).map_err(Failure::from_host)
}

/// Reads at most `max` bytes that start `offset` bytes into the file, whatever they are; at most 4 MiB.
///
/// # Errors
/// As [`read`], but for what is not UTF-8.
pub fn read_bytes(path: &str, offset: u64, max: u32) -> Result<Vec<u8>> {
    files::read_bytes(path, offset, max).map_err(Failure::from_host)
}

/// Adds to the end of a file of at most 4 MiB, or creates it, and returns the size that it has now.
///
/// # Errors
/// `limit` for a larger one, `busy` where somebody else writes it meanwhile; else as [`write()`].
pub fn append(path: &str, content: impl AsRef<[u8]>) -> Result<u64> {
    files::append(path, content.as_ref()).map_err(Failure::from_host)
}

/// What an [`Entry`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, which was not followed.
    Link,
    /// A device, a socket, a pipe …
    Other,
}

/// What a directory has under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Without its directory. What is not UTF-8 in it is replaced by U+FFFD.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes of a file; 0 for all others.
    pub size: u64,
    /// When it was changed last, in milliseconds since 1970; none where the backend does not say.
    pub modified_ms: Option<u64>,
}

impl From<files::Entry> for Entry {
    fn from(entry: files::Entry) -> Self {
        let kind = match entry.kind {
            files::EntryKind::File => EntryKind::File,
            files::EntryKind::Directory => EntryKind::Directory,
            files::EntryKind::Link => EntryKind::Link,
            files::EntryKind::Other => EntryKind::Other,
        };
        Self { name: entry.name, kind, size: entry.size, modified_ms: entry.modified_ms }
    }
}

/// What a directory has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The first of them, in the order of the bytes of their names.
    pub entries: Vec<Entry>,
    /// How many there are.
    pub total: u64,
}

/// The first `max` entries of a directory, at most 10,000.
///
/// # Errors
/// `limit` for a directory of more than 100,000 entries; `execution_failed` for what is none; else as [`read`].
pub fn list_directory(path: &str, max: u32) -> Result<Listing> {
    let files::Listing { entries, total } = files::list_directory(path, max).map_err(Failure::from_host)?;
    Ok(Listing { entries: entries.into_iter().map(Entry::from).collect(), total })
}

/// What a path leads to; never a link.
///
/// # Errors
/// As [`read`], for any kind of file.
pub fn stat(path: &str) -> Result<Entry> {
    files::stat(path).map(Entry::from).map_err(Failure::from_host)
}

/// Makes a directory, and those above it that are missing; false where it was there.
///
/// # Errors
/// `denied` by policy or by whoever was asked; `execution_failed` where something else has the name.
pub fn make_directory(path: &str) -> Result<bool> {
    files::make_directory(path).map_err(Failure::from_host)
}

/// A file that was to be put back as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Undone {
    /// Absolute.
    pub path: String,
    /// Why it was left as it is; none: it is as it was before.
    pub refusal: Option<Failure>,
}

/// Puts files back as they were before the last call of this session that changed any by this interface; with a path, only that file, as it
/// was before its last change. A file that was new is removed.
///
/// # Errors
/// `execution_failed` if nothing was changed, `unavailable` for files of another machine.
pub fn undo(path: Option<&str>) -> Result<Vec<Undone>> {
    let undone = files::undo(path).map_err(Failure::from_host)?;
    Ok(undone
        .into_iter()
        .map(|files::Undone { path, refusal }| Undone { path, refusal: refusal.map(Failure::from_host) })
        .collect())
}

/// Replaces the whole content of a file, or creates it, and returns the number of bytes written.
///
/// Whoever reads the path sees the old or the new content. The directory must exist.
///
/// # Errors
/// `denied` by policy; `execution_failed` where the file cannot be written.
pub fn write(path: &str, content: impl AsRef<[u8]>) -> Result<u64> {
    files::write(path, content.as_ref()).map_err(Failure::from_host)
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub(crate) use contract::files::{Entry, EntryKind, Listing, Undone, Whole};
    use contract::types::Captured;

    pub(crate) const CALLS: &[&[Signature]] = &[SIGNATURES];

    functions! { "files":
        read(path: &str, offset: u64, max: u32) -> Captured;
        write(path: &str, content: &[u8]) -> u64;
        read_whole(path: &str) -> Whole;
        replace(path: &str, content: &[u8], revision: &str) -> u64;
        read_bytes(path: &str, offset: u64, max: u32) -> Vec<u8>;
        append(path: &str, content: &[u8]) -> u64;
        list_directory(path: &str, max: u32) -> Listing;
        stat(path: &str) -> Entry;
        make_directory(path: &str) -> bool;
        undo(path: Option<&str>) -> Vec<Undone>;
    }

    read! {
        Entry { name, kind, size, modified_ms }
        Listing { entries, total }
        Undone { path, refusal }
        Whole { content, revision }
    }

    enums! {
        EntryKind { File, Directory, Link, Other }
    }
}
