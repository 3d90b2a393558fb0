//! Whether the person's repository had a file with these bytes at this place: then a command that puts it there makes nothing new.
//!
//! What a repository had is what the commits of its references hold, up to those that came by commands. Those are in it too, so each object
//! that is taken over is noted first (`Additions`), and a repository that commands made is noted as a whole.

use super::config;
use super::find;
use super::real::Real;
use super::refs;
use base::disk::{DIRECTORY, OwnDir};
use bstr::{BStr, ByteSlice};
use gix_hash::{Kind, ObjectId};
use gix_object::{FindExt, FindHeader};
use gix_ref::Target;
use rustix::fs::{CWD, Mode, openat};
use sha2::{Digest, Sha256};
use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where it is noted, beside the rooms of gates.
const ADDED: &str = "added";
/// What the name of a note ends with that is about a whole repository.
const ALL: &str = ".all";
/// And of one about where its remotes are, a line each.
const REMOTES: &str = ".remotes";
/// Bytes of such notes of one repository; where there are more, none of its remotes is the person's.
const MOST_REMOTES: usize = 1 << 20;
/// Bytes of notes of one repository; more are all of it.
const MOST_NOTED: u64 = 256 << 20;
/// Commits that are looked at.
const MOST_COMMITS: usize = 500;
/// Bytes of a commit, or of a directory of one.
const MOST_BYTES: u64 = 16 << 20;
const OBJECT: usize = 20;

/// What commands added to repositories.
pub struct Additions(OwnDir);

impl Additions {
    /// Those beside the rooms of a workspace's gates.
    pub fn beside(own: &OwnDir) -> io::Result<Self> {
        Self::of(own.path().parent().ok_or(io::ErrorKind::NotFound)?)
    }

    fn of(git: &Path) -> io::Result<Self> {
        Ok(Self(OwnDir::open(git)?.below(ADDED)?))
    }

    /// Notes objects that are about to be added to a repository.
    pub fn note(&self, repository: &Path, objects: &[ObjectId]) -> io::Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let bytes: Vec<u8> = objects.iter().flat_map(|id| id.as_slice().iter().copied()).collect();
        self.0.append(&name(repository))?.write_all(&bytes)
    }

    /// Notes that commands made the whole repository.
    pub(crate) fn note_all(&self, repository: &Path) -> io::Result<()> {
        self.0.replace(&(name(repository) + ALL), b"")
    }

    /// Notes where remotes are that commands are about to add to a repository.
    pub(crate) fn note_remotes(&self, repository: &Path, urls: &[&BStr]) -> io::Result<()> {
        if urls.is_empty() {
            return Ok(());
        }
        let lines: Vec<u8> = urls.iter().flat_map(|url| [url.as_bytes(), b"\n"].concat()).collect();
        self.0.append(&(name(repository) + REMOTES))?.write_all(&lines)
    }

    /// The remotes of a repository that commands did not add.
    fn remotes(&self, repository: &Path) -> io::Result<Vec<Remote>> {
        let noted = self.0.read(&(name(repository) + REMOTES))?.unwrap_or_default();
        if noted.len() > MOST_REMOTES {
            return Ok(Vec::new());
        }
        let real = Real::new(openat(CWD, repository, DIRECTORY, Mode::empty())?);
        let settings = config::parse(&real.read(Path::new("config"), config::MOST_BYTES)?.unwrap_or_default())?;
        let is_noted = |url: &BStr| noted.lines().any(|line| line == url.as_bytes());
        let values = config::values(&settings);
        let remotes = config::remotes(&values).filter(|(_, url)| !is_noted(url));
        let text = |text: &BStr| text.to_str().ok().map(str::to_owned);
        Ok(remotes.filter_map(|(name, url)| Some(Remote { name: text(name)?, url: text(url)? })).collect())
    }

    /// What was noted; none where that is all of it.
    fn of_repository(&self, repository: &Path) -> io::Result<Option<HashSet<ObjectId>>> {
        let name = name(repository);
        if self.0.read(&(name.clone() + ALL))?.is_some() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        match self.0.file(&name) {
            Ok(file) => _ = file.take(MOST_NOTED).read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let is_cut = bytes.len() as u64 == MOST_NOTED;
        let ids = bytes.chunks_exact(OBJECT).map(ObjectId::from_bytes_or_panic).collect();
        Ok((!is_cut).then_some(ids))
    }
}

fn name(repository: &Path) -> String {
    hex::encode(&Sha256::digest(repository.as_os_str().as_bytes())[..16])
}

/// Notes that a command made what leads git to a repository from a place, and so that repository, unless one of `known`, the person's own, leads
/// there as well: such is another working tree. `state` is Toolcrib's.
pub fn note_made<'k>(state: &Path, link: &Path, mut known: impl Iterator<Item = &'k PathBuf>) {
    let mut noted = || -> io::Result<()> {
        let repository = find::repository_of(link).ok_or(io::ErrorKind::NotFound)?;
        if known.any(|known| find::repository_of(known).as_ref() == Some(&repository)) {
            return Ok(());
        }
        Additions::of(&state.join(super::ROOMS))?.note_all(&repository)
    };
    // What is not noted is not there for `had` either, as the same cannot be read.
    let _ = noted();
}

/// A file or a link as git stores it: the bytes of the file, or the target of the link.
#[derive(Debug, PartialEq)]
pub struct Blob {
    pub is_link: bool,
    pub bytes: Vec<u8>,
}

impl Blob {
    fn id(&self) -> Option<ObjectId> {
        gix_object::compute_hash(Kind::Sha1, gix_object::Kind::Blob, &self.bytes).ok()
    }
}

/// Whether the repository to which `link` leads, the `.git` of a working tree, had this file or link at a path of that tree.
pub fn had(state: &Path, link: &Path, path: &Path, blob: &Blob) -> bool {
    let found = || -> Option<bool> {
        let repository = find::repository_of(link)?;
        let additions = Additions::of(&state.join(super::ROOMS)).ok()?;
        let added = additions.of_repository(&repository).ok()??;
        let is_known = !added.contains(&blob.id()?);
        Some(is_known && History::open(&repository, added)?.has(path, blob)?)
    };
    found().unwrap_or(false)
}

/// A remote.
#[derive(Clone, Debug)]
pub struct Remote {
    pub name: String,
    pub url: String,
}

/// The person's remotes from which a command may have fetched this file or link, at this path of the working tree of `link`. Empty where no
/// reference of the repository has it. A remote that a command added, or that lies in `write`, is not the person's.
pub fn may_come_from(state: &Path, link: &Path, path: &Path, blob: &Blob, write: &[PathBuf]) -> Vec<Remote> {
    let found = || -> Option<Vec<Remote>> {
        let repository = find::repository_of(link)?;
        let additions = Additions::of(&state.join(super::ROOMS)).ok()?;
        additions.of_repository(&repository).ok()??;
        let remotes = additions.remotes(&repository).ok()?;
        let remotes = remotes.into_iter().filter(|remote| !is_in(&remote.url, write)).collect();
        History::open(&repository, HashSet::new())?.has(path, blob)?.then_some(remotes)
    };
    found().unwrap_or_default()
}

/// Whether a remote is, or may be, in a directory that commands write.
fn is_in(url: &str, write: &[PathBuf]) -> bool {
    let path = url.strip_prefix("file://").unwrap_or(url);
    let is_elsewhere =
        path == url && (url.contains("://") || url.split('/').next().is_some_and(|host| host.contains(':')));
    let is_outside = |path: PathBuf| !write.iter().any(|root| path.starts_with(root));
    let is_known = path.starts_with('/') && Path::new(path).canonicalize().is_ok_and(is_outside);
    !is_elsewhere && !is_known
}

/// Whether one of these commits of the repository of `link`, which are a remote's, or one before them has this file or link at a path.
pub fn holds(link: &Path, commits: &[ObjectId], path: &Path, blob: &Blob) -> bool {
    let found = || -> Option<bool> {
        let mut history = History::open(&find::repository_of(link)?, HashSet::new())?;
        history.tips.retain(|tip| commits.contains(tip));
        history.has(path, blob)
    };
    found().unwrap_or(false)
}

/// The commits of a repository.
struct History {
    objects: gix_odb::Handle,
    added: HashSet<ObjectId>,
    tips: Vec<ObjectId>,
}

impl History {
    fn open(repository: &Path, added: HashSet<ObjectId>) -> Option<Self> {
        let real = Real::new(openat(CWD, repository, DIRECTORY, Mode::empty()).ok()?);
        let tips = refs::all(&real).into_values().filter_map(|target| match target {
            Target::Object(id) => Some(id),
            Target::Symbolic(_) => None,
        });
        let tips = tips.collect();
        let objects = gix_odb::at(repository.join("objects"), Kind::Sha1).ok()?;
        Some(Self { objects, added, tips })
    }

    /// Whether one of the commits that commands did not add has this file or link at a path.
    fn has(&self, path: &Path, blob: &Blob) -> Option<bool> {
        let wanted = (blob.id()?, blob.is_link);
        let mut seen: HashSet<ObjectId> = self.tips.iter().copied().collect();
        let mut waiting: VecDeque<ObjectId> = seen.iter().copied().collect();
        for _ in 0..MOST_COMMITS {
            let Some(id) = waiting.pop_front() else { break };
            let Some((tree, parents)) = self.commit(id) else { continue };
            if !self.added.contains(&id) && self.at(tree, path) == Some(wanted) {
                return Some(true);
            }
            waiting.extend(parents.into_iter().filter(|parent| seen.insert(*parent)));
        }
        Some(false)
    }

    /// The tree of a commit and what was before it; of a tag, that of what it is of.
    fn commit(&self, id: ObjectId) -> Option<(ObjectId, Vec<ObjectId>)> {
        let mut buffer = Vec::new();
        match self.header(id)? {
            gix_object::Kind::Commit => {
                let tree = self.objects.find_commit_iter(&id, &mut buffer).ok()?.tree_id().ok()?;
                let parents = self.objects.find_commit_iter(&id, &mut buffer).ok()?.parent_ids().collect();
                Some((tree, parents))
            }
            gix_object::Kind::Tag => {
                let of = self.objects.find_tag_iter(&id, &mut buffer).ok()?.target_id().ok()?;
                // One tag of another is not followed further.
                let is_commit = self.header(of)? == gix_object::Kind::Commit;
                if is_commit { self.commit(of) } else { None }
            }
            gix_object::Kind::Tree | gix_object::Kind::Blob => None,
        }
    }

    /// What an object is, unless it is too large to be read.
    fn header(&self, id: ObjectId) -> Option<gix_object::Kind> {
        let header = self.objects.try_header(&id).ok()??;
        (header.size <= MOST_BYTES).then_some(header.kind)
    }

    /// The object at a path of a tree, and whether it is a link.
    fn at(&self, tree: ObjectId, path: &Path) -> Option<(ObjectId, bool)> {
        let mut buffer = Vec::new();
        let (mut at, mut is_link) = (tree, false);
        for part in path {
            if self.header(at)? != gix_object::Kind::Tree {
                return None;
            }
            let tree = self.objects.find_tree_iter(&at, &mut buffer).ok()?;
            let entry = tree.filter_map(Result::ok).find(|entry| OsStr::from_bytes(entry.filename) == part)?;
            (at, is_link) = (entry.oid.to_owned(), entry.mode.is_link());
        }
        Some((at, is_link))
    }
}

/// The objects of an index of a pack.
pub(crate) fn packed(index: &[u8]) -> io::Result<Vec<ObjectId>> {
    let odd = |error: gix_error::Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    // From memory: what is mapped from a file that commands may cut off would end this program.
    let index = gix_odb::pack::index::File::from_data(index.to_vec(), PathBuf::new(), Kind::Sha1).map_err(odd)?;
    Ok(index.iter().map(|entry| entry.oid).collect())
}

/// The name of a loose object.
pub(crate) fn loose(path: &Path) -> Option<ObjectId> {
    let mut parts = path.components().rev().filter_map(|part| part.as_os_str().to_str());
    let (name, directory) = (parts.next()?, parts.next()?);
    ObjectId::from_hex(format!("{directory}{name}").as_bytes()).ok()
}

/// Those of them that a repository has not.
pub(crate) fn missing(real: &Real, objects: Vec<ObjectId>) -> Vec<ObjectId> {
    let Ok(there) = gix_odb::at(real.path().join("objects"), Kind::Sha1) else { return objects };
    objects.into_iter().filter(|id| !gix_object::Exists::exists(&there, id)).collect()
}
