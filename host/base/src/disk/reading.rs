//! Files that this program reads for itself, by a path that settings have or that lies in a workspace: regular ones, with no link followed that
//! a command could have put there. Which directories commands can write is the caller's to say (`policy/host_reads.rs`).

use super::{Foreign, OTHERS_WRITE, ROOT, open_stepwise, own_uid};
use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Links that a path may lead through (path_resolution(7)).
const MOST_LINKS: u32 = 40;

/// What was opened so, and where it lies.
#[derive(Debug)]
pub struct Named {
    pub file: File,
    /// Without links.
    pub path: PathBuf,
    pub found: Metadata,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is a link, or lies behind one, that a command could have made.
    #[error("`{}` is a link that commands could have made", .0.display())]
    Link(PathBuf),
    /// It is of another kind.
    #[error("it is not a regular file")]
    Kind,
    /// It is too long; the limit in KiB.
    #[error("it is larger than {}", kibibytes(*.0))]
    Large(u64),
    /// It is not text.
    #[error("it is not text")]
    Binary,
    /// Nobody reads it for a tool: the reason.
    #[error("{0}")]
    Closed(String),
    /// The system does not open it.
    #[error("{0}")]
    System(io::Error),
}

impl Unreadable {
    /// Whether there is no such file.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        let kinds = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        matches!(self, Self::System(error) if kinds.contains(&error.kind()))
    }

    /// The reason without any path, for those who may not know where the file lies.
    #[must_use]
    pub fn without_path(&self) -> String {
        match self {
            Self::Link(_) => "a part of its path is a link that commands could have made".into(),
            Self::Closed(_) => "it is closed to tools".into(),
            Self::System(error) => error.kind().to_string(),
            Self::Kind | Self::Large(_) | Self::Binary => self.to_string(),
        }
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

fn kibibytes(kib: u64) -> String {
    if kib >= 1 << 10 && kib.is_multiple_of(1 << 10) { format!("{} MiB", kib >> 10) } else { format!("{kib} KiB") }
}

impl Named {
    /// Its bytes, if there are no more of them than that.
    pub fn read(self, most: u64) -> Result<Vec<u8>, Unreadable> {
        // One byte more, which tells that this is the end.
        let length = usize::try_from(self.found.len().min(most)).unwrap_or_default();
        let mut bytes = Vec::with_capacity(length + 1);
        self.file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most { Err(Unreadable::Large(most >> 10)) } else { Ok(bytes) }
    }
}

/// Opens a regular file. `follows` says of a link, by its path without other links, whether it is followed; one that only root can have put
/// where it is always is.
///
/// # Errors
///
/// Why it is not read.
pub fn open_named(path: &Path, follows: &dyn Fn(&Path) -> bool) -> Result<Named, Unreadable> {
    open_kind(path, FileType::is_file, follows)
}

/// The same of a file that a person keeps wherever they like, and whose text no tool is shown.
///
/// # Errors
///
/// Why it is not read.
pub fn open_anywhere(path: &Path) -> Result<Named, Unreadable> {
    open_named(path, &|_| true)
}

/// The same of a file whose way is the caller's own: only the file itself may not be a link.
///
/// # Errors
///
/// Why it is not read.
pub fn open_itself(path: &Path) -> Result<Named, Unreadable> {
    open_named(path, &|link| link.file_name() != path.file_name())
}

/// The same of a directory.
///
/// # Errors
///
/// Why it is not opened.
pub fn open_named_directory(path: &Path, follows: &dyn Fn(&Path) -> bool) -> Result<Named, Unreadable> {
    open_kind(path, FileType::is_dir, follows)
}

fn open_kind(
    path: &Path,
    is_wanted: fn(&FileType) -> bool,
    follows: &dyn Fn(&Path) -> bool,
) -> Result<Named, Unreadable> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..=MOST_LINKS {
        // To open a device does something to it, so its type is looked at before; that it may have changed since, after.
        let there = path.symlink_metadata()?.file_type();
        if !is_wanted(&there) && !there.is_symlink() {
            return Err(Unreadable::Kind);
        }
        let link = match open_stepwise(&path, |_, _| Ok(())) {
            Ok(file) => {
                let found = file.metadata()?;
                let is_wanted = is_wanted(&found.file_type());
                return if is_wanted { Ok(Named { file, path: plain(&path), found }) } else { Err(Unreadable::Kind) };
            }
            Err(error) => match Foreign::of(&error) {
                Some(Foreign::LinkOnTheWay(link)) => link.clone(),
                Some(_) | None => return Err(error.into()),
            },
        };
        let rest = path.strip_prefix(&link).unwrap_or(Path::new("")).to_owned();
        // What stands before the link holds none, so `..` there is what it reads like.
        let link = plain(&link);
        if !follows(&link) && !is_of_root(&link) {
            return Err(Unreadable::Link(link));
        }
        let target = link.parent().unwrap_or(&link).join(std::fs::read_link(&link)?);
        path = if rest.as_os_str().is_empty() { target } else { target.join(rest) };
    }
    Err(Unreadable::System(rustix::io::Errno::LOOP.into()))
}

/// A path without links and without `..`.
fn plain(path: &Path) -> PathBuf {
    crate::paths::normal(path)
}

/// Whether nobody but root can have made what has this name; of no use to root, whose commands are root's.
fn is_of_root(link: &Path) -> bool {
    let is_roots = |directory: &Path| {
        let found = directory.symlink_metadata();
        found.is_ok_and(|found| found.is_dir() && found.uid() == ROOT && found.mode() & OTHERS_WRITE == 0)
    };
    own_uid() != ROOT && link.ancestors().skip(1).all(is_roots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir, write};
    use std::os::unix::fs::symlink;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("it is there");
        for name in ["kept", "work", "work/below"] {
            create_dir(root.join(name)).expect("a directory");
        }
        write(root.join("secret"), "secret").expect("a file");
        write(root.join("work/own"), "own").expect("a file");
        (directory, root)
    }

    fn read(root: &Path, name: &str) -> Result<String, Unreadable> {
        let kept = root.join("kept");
        let named = open_named(&root.join(name), &|link| link.starts_with(&kept))?;
        named.read(100).map(|bytes| String::from_utf8(bytes).expect("text"))
    }

    #[test]
    fn a_link_is_followed_where_no_command_can_make_one() {
        let (_directory, root) = place();
        symlink("../secret", root.join("kept/secret")).expect("a link");
        symlink(root.join("work"), root.join("kept/work")).expect("a link");
        assert_eq!(read(&root, "kept/secret").expect("a text"), "secret");
        assert_eq!(read(&root, "kept/work/own").expect("a text"), "own");
        assert_eq!(read(&root, "kept/work/below/../own").expect("a text"), "own");
    }

    #[test]
    fn a_link_that_commands_can_make_is_refused_wherever_it_stands() {
        let (_directory, root) = place();
        symlink("../secret", root.join("work/last")).expect("a link");
        symlink(&root, root.join("work/way")).expect("a link");
        symlink(root.join("work/last"), root.join("kept/twice")).expect("a link");
        for (name, link) in [
            ("work/last", "work/last"),
            ("work/way/secret", "work/way"),
            ("work/below/../way/secret", "work/way"),
            ("kept/twice", "work/last"),
        ] {
            match read(&root, name) {
                Err(Unreadable::Link(found)) => assert_eq!(found, root.join(link), "{name}"),
                other => panic!("{name}: {other:?}"),
            }
        }
        symlink("loop", root.join("kept/loop")).expect("a link");
        assert!(matches!(read(&root, "kept/loop"), Err(Unreadable::System(_))));
    }

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let (_directory, root) = place();
        let fifo = root.join("work/fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
        for name in ["work/fifo", "work"] {
            assert!(matches!(read(&root, name), Err(Unreadable::Kind)), "{name}");
        }
        write(root.join("work/long"), [b'x'; 101]).expect("a file");
        assert!(matches!(read(&root, "work/long"), Err(Unreadable::Large(0))));
        assert!(read(&root, "work/none").is_err_and(|unread| unread.is_missing()));
    }
}
