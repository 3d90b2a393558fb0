//! Variables by which compilers, interpreters and package managers are found, and the certificates that programs trust. They hold places and names,
//! no secrets. A command gets one if it can use the place; [`super::build`] passes all others.

use crate::cell::Profile;
use base::environment::Environment;
use base::paths::canonical;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

/// Whether a process gets these variables.
#[derive(Clone, Debug, Default)]
pub enum Toolchains {
    #[default]
    None,
    /// Those whose places its commands can use in this cell; without a cell, those that are there.
    Usable(Option<Arc<Profile>>),
}

/// The kind of value that a variable has.
#[derive(Clone, Copy)]
enum Holds {
    Word,
    /// A program that the system lists in `/etc/shells`: others start it in place of a shell.
    Shell,
    /// Places that programs read, separated by colons.
    Read,
    /// Places that programs write as well. If they cannot, the default place is better: it is among the `caches` of a cell.
    Written,
}

const NAMES: [(&str, Holds); 17] = [
    ("LOGNAME", Holds::Word),
    ("SHELL", Holds::Shell),
    ("VIRTUAL_ENV", Holds::Read),
    ("JAVA_HOME", Holds::Read),
    ("GOPATH", Holds::Written),
    ("CARGO_HOME", Holds::Written),
    ("RUSTUP_HOME", Holds::Read),
    ("NVM_DIR", Holds::Read),
    ("PYENV_ROOT", Holds::Read),
    ("SSL_CERT_FILE", Holds::Read),
    ("NODE_EXTRA_CA_CERTS", Holds::Read),
    ("REQUESTS_CA_BUNDLE", Holds::Read),
    ("CURL_CA_BUNDLE", Holds::Read),
    ("GIT_SSL_CAINFO", Holds::Read),
    // Not `XDG_CONFIG_HOME` and the like, by which Toolcrib finds its own files.
    ("XDG_CONFIG_DIRS", Holds::Read),
    ("XDG_DATA_DIRS", Holds::Read),
    (EDITOR, Holds::Word),
];
/// A command has no terminal to edit on: a program that wants an editor goes on with the text as it is.
const EDITOR: &str = "EDITOR";
const NO_EDITOR: &str = "true";
/// See shells(5).
const SHELLS: &str = "/etc/shells";

/// Returns the names of variables that pass if commands can use what they name.
pub fn toolchain_names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name)
}

/// Returns the variables for a process. Those that settings name in `extra` pass as they are.
pub(crate) fn toolchains(inherited: &Environment, which: &Toolchains, extra: &[String]) -> Vec<(OsString, OsString)> {
    let cell = match which {
        Toolchains::None => return Vec::new(),
        Toolchains::Usable(cell) => cell.as_deref(),
    };
    let named = NAMES.iter().filter(|(name, _)| !extra.iter().any(|extra| extra == name));
    let value = |(name, holds): &(&str, Holds)| {
        if *name == EDITOR {
            return Some((name.into(), NO_EDITOR.into()));
        }
        let value = inherited.get(name)?;
        is_usable(value, *holds, cell).then(|| (name.into(), value.to_owned()))
    };
    named.filter_map(value).collect()
}

/// Returns the person's own shell, if it is among the variables that a process gets and is bash. Scripts then mean the same in a pane and beside one.
pub(crate) fn own_bash(given: &[(OsString, OsString)]) -> Option<OsString> {
    let (_, shell) = given.iter().find(|(name, _)| name == "SHELL")?;
    (Path::new(shell).file_name() == Some("bash".as_ref())).then(|| shell.clone())
}

fn is_usable(value: &OsStr, holds: Holds, cell: Option<&Profile>) -> bool {
    let all = |is: &dyn Fn(&Path) -> bool| !value.is_empty() && std::env::split_paths(value).all(|path| is(&path));
    match holds {
        Holds::Word => true,
        Holds::Shell => is_listed_shell(value) && all(&|path| can_read(path, cell)),
        Holds::Read => all(&|path| can_read(path, cell)),
        Holds::Written => all(&|path| {
            can_read(path, cell) && cell.is_none_or(|cell| cell.can_write(&canonical(path)) || cell.has_copy_of(path))
        }),
    }
}

fn is_listed_shell(value: &OsStr) -> bool {
    let listed = std::fs::read_to_string(SHELLS).unwrap_or_default();
    value.to_str().is_some_and(|value| listed.lines().any(|line| line.trim() == value))
}

fn can_read(path: &Path, cell: Option<&Profile>) -> bool {
    let is_there = || rustix::fs::access(path, rustix::fs::Access::READ_OK).is_ok();
    path.is_absolute() && is_there() && cell.is_none_or(|cell| cell.shows(path) && cell.shows(&canonical(path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Returns the variables that a command gets in a cell that hides one directory and writes in another.
    fn passed(given: &[(&str, &Path)], hidden: &Path, written: &Path) -> Vec<String> {
        let inherited = given.iter().map(|(name, value)| (OsString::from(name), value.as_os_str().to_owned()));
        let profile = Profile { hide: vec![canonical(hidden)], write: vec![canonical(written)], ..Profile::closed() };
        let found = toolchains(&inherited.collect(), &Toolchains::Usable(Some(Arc::new(profile))), &[]);
        found.into_iter().map(|(name, _)| name.into_string().expect("text")).collect()
    }

    #[test]
    fn a_place_passes_where_commands_can_use_it() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let at = |name: &str| place.path().join(name);
        for name in ["hidden", "written", "read"] {
            std::fs::create_dir(at(name)).expect("a directory");
        }
        symlink(at("hidden"), at("link")).expect("a link");
        let (hidden, written) = (at("hidden"), at("written"));
        let passed = |given: &[(&str, &Path)]| passed(given, &hidden, &written);
        let usable: [(&str, &Path); 4] = [
            ("LOGNAME", Path::new("dog")),
            ("JAVA_HOME", &at("read")),
            ("CARGO_HOME", &written),
            ("XDG_DATA_DIRS", Path::new("/usr:/etc")),
        ];
        assert_eq!(passed(&usable), ["LOGNAME", "JAVA_HOME", "CARGO_HOME", "XDG_DATA_DIRS", "EDITOR"]);
        let useless: [(&str, &Path); 9] = [
            ("SHELL", Path::new("/usr/bin/env")),
            ("JAVA_HOME", &hidden),
            ("NVM_DIR", &at("link")),
            ("PYENV_ROOT", &at("missing")),
            ("CARGO_HOME", &at("read")),
            ("SSL_CERT_FILE", Path::new("certificates.pem")),
            ("CURL_CA_BUNDLE", Path::new("")),
            // A cell has a directory of its own there.
            ("VIRTUAL_ENV", Path::new("/dev/shm")),
            ("GITHUB_TOKEN", Path::new("/usr")),
        ];
        assert_eq!(passed(&useless), ["EDITOR"]);
    }

    #[test]
    fn an_editor_that_settings_name_is_kept() {
        let inherited = [(OsString::from("EDITOR"), OsString::from("vi"))].into_iter().collect();
        assert_eq!(toolchains(&inherited, &Toolchains::Usable(None), &["EDITOR".into()]), []);
        assert_eq!(toolchains(&inherited, &Toolchains::None, &[]), []);
    }
}
