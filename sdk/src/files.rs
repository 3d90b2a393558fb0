//! Regular files on the call's backend.
//!
//! A relative path starts at the backend's working directory, `~/` at the user's home. The host resolves links and
//! then judges.

use crate::bindings::toolcrib::plugin::files;
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

/// Replaces the whole content of a file, or creates it, and returns the number of bytes written.
///
/// Whoever reads the path sees the old or the new content. The directory must exist.
///
/// # Errors
/// `denied` by policy; `execution_failed` where the file cannot be written.
pub fn write(path: &str, content: impl AsRef<[u8]>) -> Result<u64> {
    files::write(path, content.as_ref()).map_err(Failure::from_host)
}
