//! What runs behind a command line, by its bytes: the files that it names, what runs these, and the packages in which they lie with all that was
//! installed beside them. Who changes one of these changes what was accepted, also if the server says the same as before.
//!
//! What runs a script is said by `interpreter.rs`.

use super::interpreter::interpreters;
use base::disk;
use config::UpstreamSection;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where the system's own programs are, which root alone writes.
const SYSTEM: [&str; 3] = ["/usr/bin", "/usr/lib", "/bin"];
/// Where Node.js has packages, what tells an environment of Python, and of what such a one is made: the packages, the interpreter with the programs
/// beside it, and which Python that is.
const NODE: &str = "node_modules";
const PYTHON: &str = "pyvenv.cfg";
const PYTHON_PARTS: [&str; 3] = ["lib", "bin", PYTHON];
/// What Python makes of the files beside it. Servers are started so that they have their own instead (`program.rs`).
const MADE: &str = "__pycache__";
/// Files of the packages of one server.
const MOST_FILES: usize = 100_000;
/// How deep they lie.
const DEEP: usize = 64;

/// The digests of what a section starts: of files, and of directories with all that is in them. Not those of the system, which change with its
/// updates, and not those that the server may write, on which it works.
pub(super) fn digests(section: &UpstreamSection) -> io::Result<BTreeMap<PathBuf, String>> {
    let paths = section.command.iter().map(Path::new).enumerate();
    let files = paths.filter(|(place, path)| *place == 0 || path.is_absolute() && path.is_file());
    // An environment has links to what the system brings.
    let lies_in = |path: &Path| SYSTEM.iter().any(|system| path.starts_with(system));
    let is_system = |path: &Path| lies_in(path) || path.canonicalize().is_ok_and(|found| lies_in(&found));
    let is_its_own = |path: &Path| section.write.iter().any(|write| path.starts_with(write));
    let runs = |path: &Path| interpreters(path, section).into_iter().filter(|program| program.is_file());
    let files = files.flat_map(|(_, path)| [path.to_owned()].into_iter().chain(runs(path)));
    let files: BTreeSet<PathBuf> = files.filter(|path| !is_its_own(path)).collect();
    let packages = files.iter().flat_map(|file| packages(file));
    let all: BTreeSet<PathBuf> = packages.chain(files.iter().cloned()).collect();
    let mut digests = BTreeMap::new();
    for path in all.into_iter().filter(|path| !is_system(path) && !is_its_own(path)) {
        let digest = match path.is_dir() {
            true => {
                let (mut tree, mut left) = (Sha256::new(), MOST_FILES);
                add(&mut tree, &path, Path::new(""), DEEP, &mut left)?;
                tree.finalize().into()
            }
            false => sha256(&path)?,
        };
        digests.insert(path, hex::encode(digest));
    }
    Ok(digests)
}

/// The packages in which a file lies, if it lies in any; where it is a link, also those to which it leads.
fn packages(file: &Path) -> Vec<PathBuf> {
    let found = file.canonicalize().ok().filter(|found| found != file);
    [Some(file.to_owned()), found].into_iter().flatten().flat_map(|file| packages_around(&file)).collect()
}

fn packages_around(file: &Path) -> Vec<PathBuf> {
    // The outermost: what a package needs is installed beside it.
    if let Some(node) = file.ancestors().filter(|above| above.file_name().is_some_and(|name| name == NODE)).last() {
        return vec![node.to_owned()];
    }
    let environment = file.ancestors().find(|above| above.join(PYTHON).is_file());
    let parts = environment.map(|environment| PYTHON_PARTS.map(|part| environment.join(part)));
    parts.into_iter().flatten().filter(|part| part.exists()).collect()
}

/// Adds all that lies below a directory, by names, kinds and bytes.
fn add(tree: &mut Sha256, root: &Path, below: &Path, deep: usize, left: &mut usize) -> io::Result<()> {
    let directory = root.join(below);
    let told = |error: io::Error| io::Error::new(error.kind(), format!("`{}`: {error}", directory.display()));
    let entries = fs::read_dir(&directory).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(told)?;
    let mut names: Vec<_> = entries.into_iter().map(|entry| entry.file_name()).collect();
    names.sort();
    // `node_modules/.cache` counts: programs keep compiled code there and run it, and `require(".cache")` finds it, too.
    for name in names.into_iter().filter(|name| name != MADE) {
        let below = below.join(name);
        let path = root.join(&below);
        let kind = fs::symlink_metadata(&path).map_err(told)?.file_type();
        *left = left.checked_sub(1).filter(|_| deep > 0).ok_or_else(|| {
            told(io::Error::other(format!(
                "it holds more than {MOST_FILES} files, or deeper ones than can be compared"
            )))
        })?;
        let (kind, said) = match (kind.is_dir(), kind.is_symlink(), kind.is_file()) {
            (true, ..) => ("directory", Vec::new()),
            (_, true, _) => ("link", fs::read_link(&path).map_err(told)?.into_os_string().into_encoded_bytes()),
            (_, _, true) => ("file", sha256(&path)?.to_vec()),
            (false, false, false) => ("other", Vec::new()),
        };
        for part in [kind.as_bytes(), below.as_os_str().as_encoded_bytes(), &said] {
            tree.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            tree.update(part);
        }
        if kind == "directory" {
            add(tree, root, &below, deep - 1, left)?;
        }
    }
    Ok(())
}

fn sha256(path: &Path) -> io::Result<[u8; 32]> {
    let told = |error: io::Error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display()));
    // A FIFO in the file's place must not keep us waiting.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(told)?;
    if !file.metadata().map_err(told)?.is_file() {
        return Err(told(io::Error::other("it is not a regular file")));
    }
    disk::sha256(file).map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_of_a_program_count_with_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |path: &str| directory.path().join(path);
        for path in [
            "node_modules/a/node_modules/b/index.js",
            "node_modules/a/index.js",
            "node_modules/c/index.js",
            "beside.js",
        ] {
            fs::create_dir_all(at(path).parent().expect("it lies somewhere")).expect("a directory");
            fs::write(at(path), path).expect("a file");
        }
        let program = at("node_modules/a/node_modules/b/index.js").display().to_string();
        let section = UpstreamSection::of_command(vec!["/usr/bin/node".into(), program]);
        let of = || digests(&section).expect("digests");
        let before = of();
        assert_eq!(before.len(), 2, "{before:?}");
        assert!(before.contains_key(&at("node_modules")));
        fs::write(at("beside.js"), "x").expect("a file");
        assert_eq!(of(), before);
        fs::write(at("node_modules/c/index.js"), "x").expect("a file");
        let changed = of();
        assert_ne!(changed[&at("node_modules")], before[&at("node_modules")]);
        fs::write(at("node_modules/c/new.js"), "").expect("a file");
        assert_ne!(of(), changed);
    }

    #[test]
    fn an_environment_of_python_counts_with_its_packages() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |path: &str| directory.path().join(path);
        for path in ["bin/server", "lib/site-packages/server/main.py", "lib/site-packages/server/__pycache__/main.pyc"]
        {
            fs::create_dir_all(at(path).parent().expect("it lies somewhere")).expect("a directory");
            fs::write(at(path), path).expect("a file");
        }
        fs::write(at("pyvenv.cfg"), "home = /usr/bin").expect("a file");
        let section = UpstreamSection::of_command(vec![at("bin/server").display().to_string()]);
        let of = || digests(&section).expect("digests");
        let before = of();
        let parts = [at("bin"), at("bin/server"), at("lib"), at("pyvenv.cfg")];
        assert_eq!(before.keys().cloned().collect::<Vec<_>>(), parts);
        // Nothing of that is loaded.
        fs::write(at("lib/site-packages/server/__pycache__/main.pyc"), "another").expect("a file");
        assert_eq!(of(), before);
        fs::write(at("lib/site-packages/server/main.py"), "another").expect("a file");
        assert_ne!(of(), before);
        // Which Python that is, and what is beside the program that runs.
        for (path, part) in [("bin/python3", "bin"), ("pyvenv.cfg", "pyvenv.cfg")] {
            let before = of();
            fs::write(at(path), "another").expect("a file");
            assert_ne!(of()[&at(part)], before[&at(part)], "{path}");
        }
        let linked = at("link");
        std::os::unix::fs::symlink(at("bin/server"), &linked).expect("a link");
        let section = UpstreamSection::of_command(vec![linked.display().to_string()]);
        assert!(digests(&section).expect("digests").contains_key(&at("lib").canonicalize().expect("it is there")));
    }

    #[test]
    fn what_runs_a_script_counts_with_its_environment() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().expect("a directory");
        let at = |path: &str| directory.path().join(path);
        for path in ["venv/bin/other", "venv/lib/x.py", "venv/pyvenv.cfg", "server"] {
            fs::create_dir_all(at(path).parent().expect("it lies somewhere")).expect("a directory");
            fs::write(at(path), path).expect("a file");
        }
        symlink("/usr/bin/env", at("venv/bin/python3")).expect("a link");
        fs::write(at("server"), format!("#!{}\n", at("venv/bin/python3").display())).expect("a script");
        fs::set_permissions(at("server"), fs::Permissions::from_mode(0o755)).expect("a mode");
        let section = UpstreamSection::of_command(vec![at("server").display().to_string()]);
        let of = || digests(&section).expect("digests");
        let before = of();
        let parts = ["server", "venv/bin", "venv/lib", "venv/pyvenv.cfg"].map(at);
        assert_eq!(before.keys().cloned().collect::<Vec<_>>(), parts);
        // Another program of the system under that name, and one of somebody's own.
        fs::remove_file(at("venv/bin/python3")).expect("it goes");
        symlink("/usr/bin/true", at("venv/bin/python3")).expect("a link");
        let linked = of();
        assert_ne!(linked, before);
        fs::remove_file(at("venv/bin/python3")).expect("it goes");
        fs::write(at("venv/bin/python3"), "own").expect("a file");
        assert!(of() != linked && of().contains_key(&at("venv/bin/python3")));
    }
}
