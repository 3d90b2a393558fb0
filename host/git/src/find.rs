//! Which git directories commands of a workspace reach, and which of them can have a gate.
//!
//! Git finds one by a directory or a file `.git`, and takes any directory that looks like a repository for one. What is looked for is
//! what git would obey: each of these in the directories that commands write, and those outside to which files of the person's lead.

use super::fresh;
use base::disk::Stamp;
use base::disk::Which;
use file_access::obeyed_by_name;
use gix_hash::Kind;
use parking_lot::Mutex;
use rustix::fs::{Dir, FileType};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{Metadata, metadata, symlink_metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Directories that are looked through at most.
const MOST_DIRECTORIES: usize = 100_000;
/// Git directories that have a gate at once; others are only read.
const MOST_GATES: usize = 64;
/// Bytes of a `.git` file.
const MOST_LINK: usize = 4096;

/// A git directory.
#[derive(Clone, Debug)]
pub struct GitDir {
    /// Without links.
    pub path: PathBuf,
    pub which: Which,
    /// Why it has no gate; then commands only read it.
    pub closed: Option<String>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    pub directories: Vec<GitDir>,
    /// Files that lead to git directories.
    pub links: Vec<PathBuf>,
    /// Working trees, each with its git directory.
    pub trees: Vec<(PathBuf, PathBuf)>,
    tracked: Mutex<Tracked>,
    /// There are more directories than are looked through.
    pub is_cut: bool,
}

/// A git directory at a place, if there is one.
pub fn directory(place: &Path) -> Option<GitDir> {
    let path = place.canonicalize().ok()?;
    let found = metadata(&path).ok()?;
    Some(GitDir { which: Which::of(&found), closed: closed(&path, &found), path })
}

/// Looks through directories that commands write.
pub fn find(roots: &[PathBuf]) -> Found {
    let (directories, links, trees) = (BTreeMap::new(), Vec::new(), Vec::new());
    let mut search = Search { roots, directories, links, trees, left: MOST_DIRECTORIES };
    for root in roots {
        search.below(root);
    }
    let Search { directories, links, trees, left, .. } = search;
    let mut directories: Vec<GitDir> = directories.into_values().collect();
    for directory in directories.iter_mut().filter(|directory| directory.closed.is_none()).skip(MOST_GATES) {
        directory.closed = Some(format!("{MOST_GATES} other repositories have a gate already"));
    }
    Found { directories, links, trees, tracked: Mutex::default(), is_cut: left == 0 }
}

impl Found {
    /// These directories, and nothing that leads to them.
    pub fn of(directories: Vec<GitDir>) -> Self {
        Self { directories, ..Self::default() }
    }

    /// Whether git has what is at a place, or something below it, that acts by its name. A checkout may replace that.
    pub fn tracks(&self, place: &Path) -> bool {
        let mut tracked = self.tracked.lock();
        if tracked.has(place) {
            return true;
        }
        // Git may have added it after the indexes were read.
        let index = |(_, git): &(PathBuf, PathBuf)| metadata(git.join("index")).ok().map(|found| Stamp::of(&found));
        let indexes: Vec<Option<Stamp>> = self.trees.iter().map(index).collect();
        if tracked.indexes != indexes {
            let paths = self.trees.iter().flat_map(|(tree, git)| paths(tree, git)).collect();
            *tracked = Tracked { indexes, paths };
        }
        tracked.has(place)
    }

    /// What was found is what there is, as far as a look at each of them tells; nothing tells of one that is new deep below.
    pub fn holds(&self, roots: &[PathBuf]) -> bool {
        let is_same = |found: &GitDir| symlink_metadata(&found.path).is_ok_and(|now| Which::of(&now) == found.which);
        let is_known = |root: &PathBuf| {
            let git = root.join(".git");
            let known = self.directories.iter().map(|found| &found.path).chain(&self.links);
            symlink_metadata(&git).is_ok() == known.into_iter().any(|known| *known == git)
        };
        self.directories.iter().all(is_same) && roots.iter().all(is_known)
    }
}

/// Files with names of the table that git has in working trees.
#[derive(Debug, Default)]
struct Tracked {
    /// The indexes, when these were read.
    indexes: Vec<Option<Stamp>>,
    paths: BTreeSet<PathBuf>,
}

impl Tracked {
    fn has(&self, place: &Path) -> bool {
        self.paths.range(place.to_owned()..).next().is_some_and(|found| found.starts_with(place))
    }
}

struct Search<'s> {
    roots: &'s [PathBuf],
    directories: BTreeMap<PathBuf, GitDir>,
    links: Vec<PathBuf>,
    trees: Vec<(PathBuf, PathBuf)>,
    left: usize,
}

impl Search<'_> {
    fn below(&mut self, root: &Path) {
        let mut waiting = vec![root.to_owned()];
        while let Some(at) = waiting.pop() {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let Ok(listed) = rustix::fs::open(&at, base::disk::DIRECTORY, rustix::fs::Mode::empty()).and_then(Dir::new)
            else {
                continue;
            };
            let (mut inner, mut has_head) = (Vec::new(), false);
            for entry in listed.flatten() {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                match entry.file_type() {
                    FileType::Directory if name == ".git" => {
                        self.add(&at.join(name));
                        self.trees.push((at.clone(), at.join(name)));
                    }
                    FileType::Directory if name != "." && name != ".." => inner.push(at.join(name)),
                    FileType::RegularFile | FileType::Symlink if name == ".git" => self.link(&at, root),
                    FileType::RegularFile if name == "HEAD" => has_head = true,
                    FileType::Directory
                    | FileType::RegularFile
                    | FileType::Symlink
                    | FileType::Fifo
                    | FileType::Socket
                    | FileType::CharacterDevice
                    | FileType::BlockDevice
                    | FileType::Unknown => {}
                }
            }
            if has_head && is_repository(&at) {
                self.add(&at);
            } else {
                waiting.extend(inner);
            }
        }
    }

    /// A `.git` file, or a link of that name, in a directory.
    fn link(&mut self, at: &Path, root: &Path) {
        let link = at.join(".git");
        let Some(git) = leads_to(&link) else { return self.links.push(link) };
        self.trees.push((at.to_owned(), git.clone()));
        let common = common_dir(&git);
        let roots = self.roots;
        let is_within = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        // Only the person's own settings lead out of what commands write: a git directory that names this place, or the workspace's own.
        if is_within(&git) || at == root || names(&git, &link) {
            // A link may lead anywhere, to the working tree too.
            let holds_root = |path: &Path| roots.iter().any(|root| root.starts_with(path));
            for directory in [common, git] {
                let has_gate = self.directories.keys().any(|found| directory.starts_with(found));
                if is_git_dir(&directory) && !holds_root(&directory) && !has_gate {
                    self.add(&directory);
                }
            }
        }
        if symlink_metadata(&link).is_ok_and(|found| found.is_file()) {
            self.links.push(link);
        }
    }

    fn add(&mut self, path: &Path) {
        if let Some(found) = directory(path) {
            self.directories.insert(found.path.clone(), found);
        }
    }
}

/// What acts by its name of that which git has in a working tree.
fn paths(tree: &Path, git: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read(git.join("index")).ok().and_then(|index| fresh::paths(&index, |_| true).ok());
    let acts = |path: &PathBuf| path.ancestors().any(|above| obeyed_by_name(above).is_some());
    paths.into_iter().flatten().filter(acts).map(|path| tree.join(path)).collect()
}

/// Files and directories outside of git directories that the settings of these roots' repositories and of the user have git obey: hooks, and
/// settings that are included.
pub fn obeyed(roots: &[PathBuf], home: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for root in roots {
        let Some(git) = repository_of(&root.join(".git")) else { continue };
        let own = git.join("config");
        let of_user = [home.join(".gitconfig"), home.join(".config/git/config")];
        for file in of_user.iter().chain([&own]) {
            let Some(settings) = std::fs::read(file).ok().and_then(|bytes| super::config::parse(&bytes).ok()) else {
                continue;
            };
            for (key, values) in super::config::values(&settings) {
                // A hook is looked for at the top of the working tree, and what is included beside what includes it.
                let key = key.to_string();
                let is_include = ["include.", "includeif."].iter().any(|section| key.starts_with(section));
                let beside = match is_include && key.ends_with(".path") {
                    true => file.parent().unwrap_or(home),
                    false if key == "core.hookspath" => root,
                    false => continue,
                };
                all.extend(values.iter().map(|value| beside.join(path(value, home))));
            }
        }
    }
    let is_below = |path: &PathBuf| roots.iter().any(|root| path.starts_with(root) && path != root);
    all.into_iter().filter_map(|path| clean(&path)).filter(is_below).collect()
}

/// A path as settings of git have it.
fn path(value: &bstr::BString, home: &Path) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(value));
    path.strip_prefix("~").map_or_else(|_| path.to_owned(), |below| home.join(below))
}

/// A path without `..`, by its names alone: what it leads to may not be there yet.
fn clean(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !clean.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
        }
    }
    Some(clean)
}

/// Whether git takes a directory for a repository; see gitrepository-layout(5).
pub(crate) fn is_repository(path: &Path) -> bool {
    path.join("objects").is_dir() && path.join("refs").is_dir() && path.join("HEAD").exists()
}

/// Whether it is one, or that of a linked working tree.
fn is_git_dir(path: &Path) -> bool {
    is_repository(path) || path.join("commondir").is_file() && path.join("HEAD").exists()
}

/// The repository to which the `.git` of a working tree leads.
pub(crate) fn repository_of(link: &Path) -> Option<PathBuf> {
    let git = if symlink_metadata(link).ok()?.is_dir() { link.canonicalize().ok()? } else { leads_to(link)? };
    Some(common_dir(&git))
}

/// Where a `.git` file or link leads.
fn leads_to(link: &Path) -> Option<PathBuf> {
    if symlink_metadata(link).ok()?.is_symlink() {
        return link.canonicalize().ok();
    }
    let text = read_line(link)?;
    let to = text.strip_prefix("gitdir:")?.trim();
    link.parent()?.join(to).canonicalize().ok()
}

/// The repository of a git directory, which is another one for linked working trees.
fn common_dir(git: &Path) -> PathBuf {
    let named = read_line(&git.join("commondir")).and_then(|line| git.join(line).canonicalize().ok());
    named.unwrap_or_else(|| git.to_owned())
}

/// Whether a git directory says that a `.git` file is its own.
fn names(git: &Path, link: &Path) -> bool {
    let is_link = |line: String| git.join(line).canonicalize().is_ok_and(|found| found == *link);
    let is_tree = |tree: PathBuf| Some(tree.as_path()) == link.parent();
    let worktree = || {
        let bytes = std::fs::read(git.join("config")).ok()?;
        let value = super::config::parse(&bytes).ok()?.string("core.worktree")?;
        git.join(OsStr::from_bytes(&value)).canonicalize().ok()
    };
    read_line(&git.join("gitdir")).is_some_and(is_link) || worktree().is_some_and(is_tree)
}

fn read_line(path: &Path) -> Option<String> {
    let text = std::fs::read(path).ok().filter(|text| text.len() <= MOST_LINK)?;
    Some(String::from_utf8(text).ok()?.lines().next()?.to_owned())
}

/// Why a git directory can have no gate.
fn closed(path: &Path, found: &Metadata) -> Option<String> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let parts = ["HEAD", "config", "index", "objects", "refs"].map(|name| metadata(path.join(name)));
    // The kernel copies up no file whose owner or group is nobody in a cell.
    let is_foreign = |found: &Metadata| found.uid() != user || found.gid() != group;
    if is_foreign(found) || parts.iter().flatten().any(is_foreign) {
        return Some("a file in it belongs to another user or group".into());
    }
    if path.to_str().is_none() {
        return Some("its path is not UTF-8".into());
    }
    let config = std::fs::read(path.join("config")).ok().map(|bytes| super::config::parse(&bytes));
    let file = match config {
        None => return None,
        Some(Err(error)) => return Some(format!("its settings cannot be read: {error}")),
        Some(Ok(file)) => file,
    };
    let has =
        |key: &str, usual: &str| file.string(key).is_none_or(|value| value.eq_ignore_ascii_case(usual.as_bytes()));
    if !has("extensions.objectformat", &Kind::Sha1.to_string()) {
        return Some("its objects are not named by SHA-1".into());
    }
    if !has("extensions.refstorage", "files") {
        return Some("its references are kept in another format (reftable)".into());
    }
    None
}

/// Opens a git directory that was found, if it is still that one.
pub fn open(directory: &GitDir) -> io::Result<std::os::fd::OwnedFd> {
    let opened = rustix::fs::open(&directory.path, base::disk::DIRECTORY, rustix::fs::Mode::empty())?;
    let file = std::fs::File::from(opened);
    if Which::of(&file.metadata()?) != directory.which {
        return Err(io::Error::new(io::ErrorKind::NotFound, "another directory is there by now"));
    }
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    fn repository(at: &Path) {
        for directory in ["objects", "refs"] {
            create_dir_all(at.join(directory)).expect("a directory");
        }
        write(at.join("HEAD"), "ref: refs/heads/main\n").expect("a file");
        write(at.join("config"), "[core]\n\tbare = false\n").expect("a file");
    }

    #[test]
    fn every_kind_of_git_directory_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let top = directory.path().canonicalize().expect("a path");
        let root = top.join("work");
        for at in [
            "work/.git",
            "work/a/b/c/d/.git",
            "work/node_modules/x/.git",
            "work/bare.git",
            "main/.git",
            "other/.git",
            "real",
        ] {
            repository(&top.join(at));
        }
        // A working tree that its repository knows, and a file that leads to a repository which does not know it.
        create_dir_all(top.join("main/.git/worktrees/w")).expect("a directory");
        write(top.join("main/.git/worktrees/w/commondir"), "../..\n").expect("a file");
        create_dir_all(root.join("w")).expect("a directory");
        write(top.join("main/.git/worktrees/w/gitdir"), format!("{}\n", root.join("w/.git").display()))
            .expect("a file");
        write(root.join("w/.git"), format!("gitdir: {}\n", top.join("main/.git/worktrees/w").display()))
            .expect("a file");
        create_dir_all(root.join("evil")).expect("a directory");
        write(root.join("evil/.git"), format!("gitdir: {}\n", top.join("other/.git").display())).expect("a file");
        let found = find(std::slice::from_ref(&root));
        let paths: Vec<_> =
            found.directories.iter().map(|found| found.path.strip_prefix(&top).expect("below")).collect();
        let expected =
            ["main/.git", "work/.git", "work/a/b/c/d/.git", "work/bare.git", "work/node_modules/x/.git"].map(Path::new);
        assert_eq!(paths, expected);
        assert_eq!(found.links.len(), 2);
        assert!(found.directories.iter().all(|found| found.closed.is_none()), "{:?}", found.directories);
    }

    #[test]
    fn other_formats_have_no_gate() {
        let directory = tempfile::tempdir().expect("a directory");
        let git = directory.path().canonicalize().expect("a path").join(".git");
        repository(&git);
        for (config, is_closed) in [
            ("[extensions]\n\tobjectFormat = sha256\n", true),
            ("[extensions]\n\trefStorage = reftable\n", true),
            ("[extensions]\n\tworktreeConfig = true\n", false),
        ] {
            write(git.join("config"), config).expect("a file");
            let found = find(&[git.parent().expect("a parent").to_owned()]);
            assert_eq!(found.directories[0].closed.is_some(), is_closed, "{config}");
        }
    }
}
