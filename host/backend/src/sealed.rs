//! A program's file, copied to memory that nobody can write: what was digested is what runs, whatever becomes of the file meanwhile.
//!
//! The program has no file of its own then: one that looks for its parts beside itself, by `/proc/self/exe`, does not find them.

use base::disk::Stamp;
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, SealFlags};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a program.
const MOST_BYTES: u64 = 256 << 20;
/// Bytes of copies that are kept between calls; the one that was used least recently goes first.
const KEPT_BYTES: u64 = 128 << 20;
/// Bytes that are copied at a time.
const PIECE: usize = 256 << 10;
const SCRIPT: &[u8] = b"#!";

/// A program in memory.
pub struct Sealed {
    memory: File,
    sha256: String,
    bytes: u64,
    is_script: bool,
}

impl Sealed {
    /// Copies a file that can be executed.
    fn copy(path: &Path) -> io::Result<(Self, Stamp)> {
        // Opening a FIFO must not wait for its other end.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        let found = file.metadata()?;
        let refuse = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        if !found.is_file() {
            return refuse("it is not a regular file".into());
        }
        if found.mode() & 0o111 == 0 {
            return refuse("it is not executable".into());
        }
        let mut memory = memory()?;
        let (mut digest, mut piece, mut bytes, mut is_script) = (Sha256::new(), vec![0; PIECE], 0, false);
        let mut file = file.take(MOST_BYTES + 1);
        loop {
            let count = match file.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            is_script |= bytes == 0 && piece[..count].starts_with(SCRIPT);
            bytes += count as u64;
            digest.update(&piece[..count]);
            memory.write_all(&piece[..count])?;
        }
        if bytes > MOST_BYTES {
            return refuse(format!("it is larger than {} MiB", MOST_BYTES >> 20));
        }
        let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
        rustix::fs::fcntl_add_seals(&memory, seals)?;
        Ok((Self { memory, sha256: hex::encode(digest.finalize()), bytes, is_script }, Stamp::of(&found)))
    }

    /// The digest of what is in memory, in hex.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// It begins with the line that names its interpreter.
    pub(super) fn is_script(&self) -> bool {
        self.is_script
    }

    /// How the first process of a cell reads what to execute: as the descriptor so many after the first.
    pub(super) fn named(&self, first: libc::c_int, after: usize) -> String {
        format!("{}{}", if self.is_script { '#' } else { '=' }, first as usize + after)
    }
}

impl AsFd for Sealed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

/// The digest of a program's file, in hex.
///
/// # Errors
///
/// When it cannot be read, or cannot be a program.
pub fn program_sha256(path: &Path) -> io::Result<String> {
    Sealed::copy(path).map(|(sealed, _)| sealed.sha256)
}

/// Memory that can be executed where the system has a say in that; older kernels do not know to be asked, and let it be.
fn memory() -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = rustix::fs::memfd_create("toolcrib-program", flags | MemfdFlags::EXEC);
    let made = made.or_else(|_| rustix::fs::memfd_create("toolcrib-program", flags))?;
    Ok(made.into())
}

/// The programs that were copied.
#[derive(Default)]
pub(super) struct SealedPrograms(Mutex<Vec<Kept>>);

struct Kept {
    path: PathBuf,
    stamp: Stamp,
    sealed: Arc<Sealed>,
}

impl SealedPrograms {
    /// The program of a file as it is now. The same copy as before, where the file has not changed since.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or cannot be a program.
    pub(super) fn open(&self, path: &Path) -> io::Result<Arc<Sealed>> {
        let stamp = Stamp::of(&std::fs::metadata(path)?);
        if let Some(kept) = self.kept(path, &stamp) {
            return Ok(kept);
        }
        let (sealed, stamp) = Sealed::copy(path)?;
        let sealed = Arc::new(sealed);
        self.keep(path, stamp, &sealed);
        Ok(sealed)
    }

    fn kept(&self, path: &Path, stamp: &Stamp) -> Option<Arc<Sealed>> {
        let mut all = self.0.lock();
        let found = all.iter().position(|kept| kept.path == path && kept.stamp == *stamp)?;
        let kept = all.remove(found);
        let sealed = kept.sealed.clone();
        all.push(kept);
        Some(sealed)
    }

    fn keep(&self, path: &Path, stamp: Stamp, sealed: &Arc<Sealed>) {
        let mut all = self.0.lock();
        all.retain(|kept| kept.path != path);
        if !stamp.is_settled() {
            return;
        }
        all.push(Kept { path: path.to_owned(), stamp, sealed: sealed.clone() });
        let bytes = |all: &[Kept]| all.iter().map(|kept| kept.sealed.bytes).sum::<u64>();
        while bytes(&all) > KEPT_BYTES {
            all.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    fn program(directory: &Path, text: &[u8]) -> PathBuf {
        let path = directory.join("program");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        path
    }

    #[test]
    fn a_copy_has_the_digest_of_its_bytes_and_cannot_be_written() {
        let place = tempfile::tempdir().unwrap();
        let sealed = SealedPrograms::default().open(&program(place.path(), b"#!/bin/sh\n")).unwrap();
        assert_eq!(sealed.sha256(), hex::encode(Sha256::digest(b"#!/bin/sh\n")));
        assert!(sealed.is_script() && sealed.named(4, 2) == "#6");
        let mut memory = &sealed.memory;
        assert!(memory.write_all(b"x").is_err() && sealed.memory.set_len(0).is_err());
    }

    #[test]
    fn what_cannot_be_a_program_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let all = SealedPrograms::default();
        assert!(all.open(place.path()).is_err(), "a directory");
        assert!(all.open(&place.path().join("missing")).is_err());
        let path = program(place.path(), b"text");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert!(all.open(&path).err().unwrap().to_string().contains("not executable"));
        let fifo = place.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o700.into(), 0).unwrap();
        assert!(all.open(&fifo).is_err());
    }

    #[test]
    fn a_file_that_changed_is_copied_anew() {
        let place = tempfile::tempdir().unwrap();
        let all = SealedPrograms::default();
        let path = program(place.path(), b"one");
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        let first = all.open(&path).unwrap();
        // Its other time is of now: it may change once more within that.
        assert!(!Arc::ptr_eq(&first, &all.open(&path).unwrap()));
        let system = all.open(Path::new("/bin/sh")).unwrap();
        assert!(Arc::ptr_eq(&system, &all.open(Path::new("/bin/sh")).unwrap()));
        fs::write(&path, "two").unwrap();
        assert_ne!(all.open(&path).unwrap().sha256(), first.sha256());
    }
}
