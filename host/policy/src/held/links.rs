//! What links lead to in the directories that commands write. Who obeys a link obeys that; and what an ordinary name leads to is an ordinary place,
//! whatever directory it lies in. What lies there is looked at by `tree.rs`.

use super::rules::{Acts, NAMED, ON_PATH};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Ordinary links that are followed.
const MOST: usize = 4096;
/// Links that follow each other, as the kernel has it (path_resolution(7)).
const MOST_HOPS: usize = 40;

/// The links that are known.
#[derive(Default)]
pub(super) struct Links {
    /// By what each acts; none for an ordinary one.
    all: BTreeMap<PathBuf, Option<Acts>>,
    /// What settings of git name, and the directories of PATH.
    named: Vec<PathBuf>,
    path: Vec<PathBuf>,
    /// Where those are.
    programs: BTreeSet<PathBuf>,
    /// What they lead to, with the links on the way.
    to: BTreeMap<PathBuf, Option<Acts>>,
    /// All that lies on the way.
    on_the_way: HashSet<PathBuf>,
    /// Some have come, or lead elsewhere.
    has_changed: bool,
}

impl Links {
    /// What settings of git name is obeyed, whatever it is, and so is what leads to the directories of PATH.
    pub(super) fn name(&mut self, named: Vec<PathBuf>, path: &[PathBuf]) {
        (self.named, self.path) = (named, path.to_owned());
        self.has_changed = true;
    }

    /// A directory is one of PATH.
    pub(super) fn is_on_path(&self, directory: &Path) -> bool {
        self.programs.contains(directory)
    }

    /// Knows a link from now on.
    pub(super) fn insert(&mut self, link: PathBuf, acts: Option<Acts>) {
        if acts.is_some() || self.all.len() < MOST {
            self.all.insert(link, acts);
            self.has_changed = true;
        }
    }

    /// By what a path acts because something leads to it.
    pub(super) fn acts(&self, path: &Path) -> Option<Acts> {
        self.to.get(path).copied().flatten()
    }

    /// Something leads to a path.
    pub(super) fn lead_to(&self, path: &Path) -> bool {
        self.to.contains_key(path)
    }

    /// Something leads to a path, or on from there.
    pub(super) fn lead_by(&self, path: &Path) -> bool {
        self.on_the_way.contains(path)
    }

    /// Follows them where that is to be done; returns what they lead to that they did not before.
    pub(super) fn follow(&mut self) -> Vec<PathBuf> {
        if !std::mem::take(&mut self.has_changed) {
            return Vec::new();
        }
        self.all.retain(|link, _| link.is_symlink());
        self.on_the_way.clear();
        let before = std::mem::take(&mut self.to);
        let named = self.named.iter().map(|path| (path.clone(), Some(NAMED)));
        let all: Vec<_> = self.all.iter().map(|(link, acts)| (link.clone(), *acts)).chain(named).collect();
        for (from, acts) in all {
            let way = Way::of(&from);
            // One that leads to where it lies itself does not have all of that obeyed.
            let ends = way.end.into_iter().filter(|end| acts.is_none() || !from.starts_with(end) || from == *end);
            for path in way.links.into_iter().chain(ends) {
                self.lead(path, acts);
            }
            self.on_the_way.extend(way.all);
        }
        self.programs.clear();
        for directory in self.path.clone() {
            let way = Way::of(&directory);
            for link in way.links {
                self.lead(link, Some(ON_PATH));
            }
            // Wherever it lies, nobody passes over it.
            if let Some(end) = way.end {
                self.lead(end.clone(), None);
                self.programs.insert(end);
            }
            self.on_the_way.extend(way.all);
        }
        self.to.iter().filter(|(path, acts)| before.get(*path) != Some(acts)).map(|(path, _)| path.clone()).collect()
    }

    fn lead(&mut self, to: PathBuf, acts: Option<Acts>) {
        let known = self.to.entry(to).or_default();
        *known = known.or(acts);
    }
}

/// Where a path leads.
#[derive(Default)]
struct Way {
    /// The links, itself among them.
    links: Vec<PathBuf>,
    /// What it leads to, which may be missing; none where links lead to each other.
    end: Option<PathBuf>,
    /// All that is passed.
    all: Vec<PathBuf>,
}

impl Way {
    fn of(path: &Path) -> Self {
        let mut way = Self::default();
        let (mut at, mut rest) = (PathBuf::new(), parts(path));
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                at.pop();
                continue;
            }
            at.push(&part);
            way.all.push(at.clone());
            let Ok(to) = at.read_link() else { continue };
            way.links.push(at.clone());
            if way.links.len() > MOST_HOPS {
                return way;
            }
            at.pop();
            for part in parts(&to).into_iter().rev() {
                rest.push_front(part);
            }
        }
        way.end = Some(at);
        way
    }
}

/// The parts of a path; one that is absolute begins with the root, which takes the place of all before it.
fn parts(path: &Path) -> VecDeque<OsString> {
    let part = |part: Component<'_>| match part {
        Component::CurDir => None,
        Component::Prefix(_) | Component::RootDir | Component::ParentDir | Component::Normal(_) => {
            Some(part.as_os_str().to_owned())
        }
    };
    path.components().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_is_followed_to_its_end_by_all_links_on_the_way() {
        let top = tempfile::tempdir().expect("a directory");
        let top = top.path().canonicalize().expect("a path");
        std::fs::create_dir(top.join("d")).expect("a directory");
        for (link, to) in [("a", "d/../b/x"), ("b", "d"), ("loop", "loop2"), ("loop2", "loop"), ("up", "..")] {
            symlink(to, top.join(link)).expect("a link");
        }
        symlink(top.join("d"), top.join("absolute")).expect("a link");
        let way = |name: &str| Way::of(&top.join(name));
        let paths = |names: &[&str]| names.iter().map(|name| top.join(name)).collect::<Vec<_>>();
        assert_eq!((way("a").links, way("a").end), (paths(&["a", "b"]), Some(top.join("d/x"))));
        assert_eq!((way("absolute").links, way("absolute").end), (paths(&["absolute"]), Some(top.join("d"))));
        assert_eq!(way("loop").end, None);
        assert_eq!(way("up/x").end, top.parent().map(|above| above.join("x")));
        assert!(way("a").all.contains(&top.join("d")));
    }

    #[test]
    fn what_links_lead_to_is_told_once_and_forgotten_with_them() {
        let top = tempfile::tempdir().expect("a directory");
        let top = top.path().canonicalize().expect("a path");
        symlink("x", top.join("a")).expect("a link");
        let mut links = Links::default();
        links.insert(top.join("a"), Some(NAMED));
        assert_eq!(links.follow(), [top.join("a"), top.join("x")]);
        assert!(links.follow().is_empty() && links.acts(&top.join("x")) == Some(NAMED));
        // It does not have all of the directory obeyed in which it lies.
        symlink(".", top.join("up")).expect("a link");
        links.insert(top.join("up"), Some(NAMED));
        assert_eq!(links.follow(), [top.join("up")]);
        std::fs::remove_file(top.join("a")).expect("it is there");
        links.insert(top.join("b"), None);
        assert!(links.follow().is_empty() && !links.lead_to(&top.join("x")));
    }
}
