//! Which of the places that are to be hidden are there. Nearly all of the hundreds never are, and a directory tells by its time whether
//! something has come into it: so only directories are looked at again.

use super::Profile;
use base::disk::Which;
use base::mountinfo::{self, Table};
use base::unchanged::Directories;
use std::fs::{Metadata, canonicalize, symlink_metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What was found, and of which directories it holds as long as they are as they were.
#[derive(Debug)]
pub(super) struct Hidden {
    pub(super) places: Vec<Place>,
    /// Places that are links, and where each led: a link on the way may be turned where no directory above the place tells.
    links: Vec<(PathBuf, PathBuf)>,
    directories: Directories,
    /// The number of the table of mounts by which places were looked for that show the same.
    mounts: u64,
}

/// A place that is there. It is no link.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) is_directory: bool,
    /// Which file it is, where a directory would tell that another one has come there.
    pub(super) which: Option<Which>,
}

impl Hidden {
    /// Looks for what a profile hides.
    pub(super) fn look(profile: &Profile) -> io::Result<Self> {
        let table = mountinfo::table();
        let (directories, mounts) = (Directories::default(), table.number);
        let mut hidden = Self { places: Vec::new(), links: Vec::new(), directories, mounts };
        for path in &profile.hide {
            match hidden.directories.look(path) {
                // What a link leads to is hidden. One that leads nowhere may lead somewhere by the next time, and no directory would tell.
                Ok(found) if found.is_symlink() => match canonicalize(path) {
                    Ok(leads) => {
                        hidden.links.push((path.clone(), leads.clone()));
                        hidden.places.push(Place { is_directory: leads.is_dir(), path: leads, which: None });
                    }
                    Err(_) => hidden.directories.distrust(),
                },
                Ok(found) => {
                    let which = Some(Which::of(&found));
                    hidden.places.push(Place { path: path.clone(), is_directory: found.is_dir(), which });
                }
                // In a directory that can be written its owner could open the way.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && profile.can_write(path) => {
                    return Err(error);
                }
                Err(error) if super::layout::is_missing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        hidden.add_others(profile, &table);
        Ok(hidden)
    }

    /// Adds where the same is seen by another mount, and copies in snapshots that are mounted.
    fn add_others(&mut self, profile: &Profile, table: &Table) {
        let is_seen = |path: &Path| profile.has_in_sight(path) || profile.can_write(path);
        let mut others: Vec<(PathBuf, Metadata)> = Vec::new();
        for place in &self.places {
            let Ok(own) = symlink_metadata(&place.path) else { continue };
            let found = |path: PathBuf| Some((symlink_metadata(&path).ok()?, path)).map(|(found, path)| (path, found));
            // Something else may lie over it.
            let is_same = |(_, found): &(PathBuf, Metadata)| (found.dev(), found.ino()) == (own.dev(), own.ino());
            others.extend(table.names(&place.path).into_iter().filter_map(found).filter(is_same));
            let parts = table.parts(&place.path).map(Path::to_owned);
            others.extend(parts.chain(table.copies(&place.path)).filter_map(found));
        }
        others.retain(|(path, found)| is_seen(path) && !found.is_symlink());
        for (path, found) in others {
            if !self.places.iter().any(|place| place.path == path) {
                self.places.push(Place { path, is_directory: found.is_dir(), which: None });
            }
        }
    }

    /// Nothing has changed since.
    pub(super) fn holds(&self) -> bool {
        let leads_there = |(link, leads): &(PathBuf, PathBuf)| canonicalize(link).is_ok_and(|now| now == *leads);
        self.mounts == mountinfo::table().number && self.directories.hold() && self.links.iter().all(leads_there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    #[test]
    fn what_comes_into_being_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("a path");
        fs::create_dir_all(root.join("home/there")).expect("a directory");
        let hide = ["home/there", "home/new", "home/deep/below/it", "home/link"].map(|name| root.join(name)).to_vec();
        let profile = Profile { hide, ..Profile::closed() };
        let names = |hidden: &Hidden| {
            hidden.places.iter().map(|place| place.path.strip_prefix(&root).unwrap().to_owned()).collect::<Vec<_>>()
        };
        // What changed just now is looked at again.
        let fresh = Hidden::look(&profile).expect("it is found");
        assert_eq!(names(&fresh), [Path::new("home/there")]);
        assert!(!fresh.holds());
        let settled = || {
            let found = Hidden::look(&profile).expect("it is found");
            Hidden { directories: found.directories.settled(), ..found }
        };
        assert!(settled().holds());
        for (make, found) in [
            (&(|| fs::write(root.join("home/new"), "")) as &dyn Fn() -> io::Result<()>, "home/new"),
            (&|| fs::create_dir_all(root.join("home/deep/below/it")), "home/deep/below/it"),
            (
                &|| {
                    fs::create_dir(root.join("elsewhere"))
                        .and_then(|()| symlink("../elsewhere", root.join("home/link")))
                },
                "elsewhere",
            ),
        ] {
            let before = settled();
            make().expect("it is made");
            assert!(!before.holds(), "{found}");
            assert!(names(&settled()).contains(&found.into()), "{found}");
        }
        let before = settled();
        fs::rename(root.join("home"), root.join("away")).expect("it is moved");
        fs::create_dir(root.join("home")).expect("a directory");
        assert!(!before.holds());
        symlink("nowhere", root.join("home/link")).expect("a link");
        assert!(!Hidden::look(&profile).expect("it is found").holds(), "no directory tells what a link leads to");
    }

    #[test]
    fn a_link_that_is_turned_on_the_way_to_a_place_is_noticed() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("a path");
        for made in ["home", "kept/first", "kept/second"] {
            fs::create_dir_all(root.join(made)).expect("a directory");
        }
        symlink("first", root.join("kept/now")).expect("a link");
        symlink("../kept/now", root.join("home/keys")).expect("a link");
        let profile = Profile { hide: vec![root.join("home/keys")], ..Profile::closed() };
        let found = Hidden::look(&profile).expect("it is found");
        assert_eq!(found.places[0].path, root.join("kept/first"));
        let settled = Hidden { directories: found.directories.settled(), ..found };
        assert!(settled.holds());
        fs::remove_file(root.join("kept/now")).and_then(|()| symlink("second", root.join("kept/now"))).expect("a link");
        assert!(!settled.holds());
    }
}
