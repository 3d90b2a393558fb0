//! What a write on this machine took the place of, and how a file is put back as it was.

use super::files::{failure, open_parent, open_regular, stamp};
use super::temporary::Temporary;
use base::envelope::Failure;
use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, Permissions, PermissionsExt};
use rustix::fs::{Gid, Uid};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Bytes of a file that is kept as it was; a larger one cannot be put back.
pub const MOST_BYTES: u64 = 8 << 20;
/// Bits of a mode that are put back. None of them gives rights of others.
const MODE: u32 = 0o777;

/// What a write took the place of.
#[derive(Debug, PartialEq)]
pub enum Replaced {
    /// There was no file.
    Nothing,
    /// A file.
    File(Was),
    /// A file that has more than 8 MiB, or cannot be read.
    Unread,
    /// The file is on another machine, whose files are not kept.
    Elsewhere,
}

/// A file as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Was {
    pub content: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
}

/// Why a file was not put back.
#[derive(Debug)]
pub enum NotPutBack {
    /// It is no longer what the tool left; what it is now, if it is there and can be read.
    Changed(Option<Vec<u8>>),
    Failed(Failure),
}

/// Reads a file that is about to be replaced.
pub(super) fn was(directory: &Dir, name: &OsStr, replaced: &Metadata, shown: &str) -> Replaced {
    let opened = open_regular(directory, name, OpenOptions::new().read(true), shown);
    let Ok(Some((mut file, found))) = opened else { return Replaced::Unread };
    match read(&mut file) {
        Ok(Some(content)) if stamp(&found) == stamp(replaced) => {
            Replaced::File(Was { content, mode: found.permissions().mode() & MODE })
        }
        _ => Replaced::Unread,
    }
}

/// The content, unless there is too much of it.
fn read(file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= MOST_BYTES).then_some(content))
}

/// Puts a file back as it was, or removes it where there was none; only if it still is what the tool left, by its digest. No link is followed.
///
/// # Errors
///
/// That it has changed since, or what the system says.
pub fn put_back(path: &Path, left: [u8; 32], was: Option<&Was>) -> Result<(), NotPutBack> {
    let shown = path.display().to_string();
    let fail = |error| NotPutBack::Failed(failure(&shown, &error));
    let (directory, name) = open_parent(path).map_err(fail)?;
    let now = || open_regular(&directory, name, OpenOptions::new().read(true), &shown).map_err(NotPutBack::Failed);
    let Some((mut file, found)) = now()? else { return Err(NotPutBack::Changed(None)) };
    let content = read(&mut file).map_err(fail)?;
    if content.as_deref().is_none_or(|content| *Sha256::digest(content) != left) {
        return Err(NotPutBack::Changed(content));
    }
    let is_still = || Ok(now()?.is_some_and(|(_, again)| stamp(&again) == stamp(&found)));
    let Some(was) = was else {
        if !is_still()? {
            return Err(NotPutBack::Changed(None));
        }
        return directory.remove_file(name).map_err(fail);
    };
    let mut made = Temporary::new(&directory).map_err(fail)?;
    made.file().set_permissions(Permissions::from_std(std::fs::Permissions::from_mode(was.mode))).map_err(fail)?;
    // Only the superuser can; anyone else owns what they replace.
    let _ = rustix::fs::fchown(made.file(), Some(Uid::from_raw(found.uid())), Some(Gid::from_raw(found.gid())));
    made.file().write_all(&was.content).map_err(fail)?;
    made.file().sync_data().map_err(fail)?;
    if !is_still()? {
        return Err(NotPutBack::Changed(None));
    }
    made.replace(name).map_err(fail)
}

/// Gives a file of this content and these permissions a name of a directory, whole or not at all; `is_over` where something has the name that it
/// takes the place of.
///
/// # Errors
///
/// What the system says.
pub fn put(directory: BorrowedFd<'_>, name: &OsStr, content: &[u8], mode: u32, is_over: bool) -> io::Result<()> {
    let directory = Dir::from_std_file(directory.try_clone_to_owned()?.into());
    // A new file has the owner of its directory: only the superuser can see to that, and makes files for others.
    let owner = if is_over { directory.symlink_metadata(name)? } else { directory.dir_metadata()? };
    let mut made = Temporary::new(&directory)?;
    made.file().set_permissions(Permissions::from_std(std::fs::Permissions::from_mode(mode & MODE)))?;
    let _ = rustix::fs::fchown(made.file(), Some(Uid::from_raw(owner.uid())), Some(Gid::from_raw(owner.gid())));
    made.file().write_all(content)?;
    if is_over { made.replace(name) } else { made.appear(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(content: &[u8]) -> [u8; 32] {
        Sha256::digest(content).into()
    }

    #[test]
    fn a_file_is_put_back_only_while_it_is_what_was_left() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().canonicalize().expect("a directory").join("file");
        let was = Was { content: b"before".to_vec(), mode: 0o640 };
        std::fs::write(&path, "a person's").expect("a file");
        let Err(NotPutBack::Changed(now)) = put_back(&path, digest(b"after"), Some(&was)) else { panic!("put back") };
        assert_eq!(now.as_deref(), Some(&b"a person's"[..]));
        assert_eq!(std::fs::read(&path).expect("a file"), b"a person's");
        std::fs::write(&path, "after").expect("a file");
        put_back(&path, digest(b"after"), Some(&was)).expect("as it was left");
        assert_eq!(std::fs::read(&path).expect("a file"), b"before");
        assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o640);
        put_back(&path, digest(b"before"), None).expect("it was new");
        assert!(!path.exists());
        assert!(matches!(put_back(&path, digest(b"before"), None), Err(NotPutBack::Changed(None))));
    }

    #[test]
    fn no_link_is_followed() {
        let place = tempfile::tempdir().expect("a directory");
        let place = place.path().canonicalize().expect("a directory");
        std::fs::create_dir(place.join("real")).expect("a directory");
        std::fs::write(place.join("real/file"), "after").expect("a file");
        std::os::unix::fs::symlink("real", place.join("link")).expect("a link");
        std::os::unix::fs::symlink("real/file", place.join("name")).expect("a link");
        for path in ["link/file", "name"] {
            let put = put_back(&place.join(path), digest(b"after"), None);
            assert!(matches!(put, Err(NotPutBack::Failed(_))), "{path}: {put:?}");
        }
        assert!(place.join("real/file").exists());
    }
}
