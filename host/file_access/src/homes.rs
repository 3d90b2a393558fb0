//! Homes besides `HOME` whose files this user can read: that of the user's entry in passwd, and as root those of all.

use super::credentials::{CREDENTIALS, Class, Secret, TOOLCRIB};
use super::protected::SYSTEM;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Homes that are looked through.
const MOST: usize = 256;

/// A home of somebody else.
struct Home {
    path: PathBuf,
    /// What lies in it; none where it is this user's, in which anything may come into being.
    names: Option<BTreeSet<OsString>>,
}

impl Home {
    /// Whether a place below it can be one.
    fn has(&self, below: &str) -> bool {
        let first = below.split('/').next().unwrap_or(below);
        self.names.as_ref().is_none_or(|names| names.contains(OsStr::new(first)))
    }

    fn secrets(&self) -> impl Iterator<Item = Secret> {
        let secret = |class: &'static Class, path: &&'static str| {
            let below = path.strip_prefix("~/").filter(|below| self.has(below))?;
            Some(Secret { root: self.path.join(below), what: class.what })
        };
        let classes = CREDENTIALS.iter().chain([&TOOLCRIB]);
        classes.flat_map(move |class| class.paths.iter().filter_map(move |path| secret(class, path)))
    }
}

/// Credentials and what is Toolcrib's in homes other than this one, and what is Toolcrib's in this one; without what is `own`.
pub(crate) fn secrets(home: &Path, own: &[PathBuf]) -> Vec<Secret> {
    let passwd = std::fs::read("/etc/passwd").unwrap_or_default();
    let others = others(&String::from_utf8_lossy(&passwd), rustix::process::getuid().as_raw(), home);
    let toolcrib = TOOLCRIB.paths.iter().filter_map(|path| path.strip_prefix("~/"));
    let here = toolcrib.map(|below| Secret { root: home.join(below), what: TOOLCRIB.what });
    let is_own = |secret: &Secret| own.iter().any(|own| own.starts_with(&secret.root) || secret.root.starts_with(own));
    others.iter().flat_map(Home::secrets).chain(here).filter(|secret| !is_own(secret)).collect()
}

fn others(passwd: &str, user: u32, home: &Path) -> Vec<Home> {
    let listed = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':').skip(2);
        let (number, path) = (fields.next()?.parse::<u32>().ok()?, fields.nth(2)?);
        (number == user || user == 0).then(|| (number == user, PathBuf::from(path)))
    });
    let usual = std::fs::read_dir("/home").into_iter().flatten().flatten().map(|entry| (false, entry.path()));
    let usual = usual.chain([(false, PathBuf::from("/root"))]).filter(|_| user == 0);
    let mut seen = BTreeSet::from([home.to_owned()]);
    let found = listed.chain(usual).filter_map(|(is_own, path)| {
        let path = path.canonicalize().ok()?;
        // Accounts of the system have homes like `/`, `/bin` and `/usr/sbin`.
        let is_home = path.is_dir() && path.parent().is_some() && !SYSTEM.iter().any(|system| path.starts_with(system));
        (is_home && seen.insert(path.clone())).then(|| {
            let names = || std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.file_name());
            Home { names: (!is_own).then(|| names().collect()), path }
        })
    });
    found.take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[test]
    fn the_home_of_passwd_counts_and_for_root_every_home() {
        let root = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let root = root.path().canonicalize().expect("a path");
        for home in ["own", "other", "home"] {
            create_dir_all(root.join(home)).expect("a directory");
        }
        write(root.join("other/.netrc"), "").expect("a file");
        let at = |name: &str| root.join(name).display().to_string();
        let passwd = format!(
            "root:x:0:0:root:/usr/sbin:/bin/sh\nown:x:4102:4102::{}:/bin/sh\nother:x:4103:4103:a,b:{}:/bin/sh\n\
             gone:x:4104:4104::{}:\nodd\n",
            at("own"),
            at("other"),
            at("gone")
        );
        let home = root.join("home");
        let paths = |user: u32, home: &Path| -> Vec<PathBuf> {
            let homes = others(&passwd, user, home);
            homes.iter().flat_map(Home::secrets).map(|secret| secret.root).filter(|at| at.starts_with(&root)).collect()
        };
        let own = paths(4102, &home);
        assert!(own.contains(&root.join("own/.ssh")) && own.contains(&root.join("own/.local/state/toolcrib")));
        assert!(own.iter().all(|path| path.starts_with(root.join("own"))), "{own:?}");
        assert_eq!(paths(4102, &root.join("own")), Vec::<PathBuf>::new());
        let all = paths(0, &home);
        assert_eq!(all, [root.join("other/.netrc")], "what is not there in homes of others is left out");
    }

    #[test]
    fn what_is_this_programs_own_is_no_secret_of_another() {
        let home = Path::new("/nowhere/home");
        let roots = |own: &[PathBuf]| -> Vec<PathBuf> {
            let found = secrets(home, own).into_iter().map(|secret| secret.root);
            found.filter(|root| root.starts_with(home)).collect()
        };
        assert_eq!(roots(&[]), [home.join(".config/toolcrib"), home.join(".local/state/toolcrib")]);
        assert_eq!(roots(&[home.join(".local/state/toolcrib")]), [home.join(".config/toolcrib")]);
    }
}
