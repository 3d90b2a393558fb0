//! What the attacks on files share: a guest that may read and write in the working directory alone, and a secret beside it.

use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use toolcrib_tests::{Preparation, Siege};

/// What must never come out of `outside/secret`.
pub(crate) const SECRET: &str = "SECRET-OF-ANOTHER";

/// How a guest sees a refusal by policy.
pub(crate) const DENIED: &str = "Err(\"denied\")";

/// A host whose guest `hostile` may use files in the working directory; `outside/secret` lies beside that.
pub(crate) fn confined() -> Siege {
    begun(Siege::with("hostile").allowing("hostile"))
}

/// The same where commands have all rights of the user, and can make what a cell would keep them from.
pub(crate) fn confined_beside_commands() -> Siege {
    begun(Siege::with("hostile").allowing("hostile").set("confine.mode=off"))
}

/// A host whose tools write in the working directory alone; `outside/secret` lies beside that.
pub(crate) fn workspace() -> Siege {
    let prepared = Preparation::new();
    let work = root(&prepared).join("work");
    begun(prepared.set(&format!("tools.files_allowed_paths=[{work:?}]")))
}

/// Starts the host and puts the secret into its place.
pub(crate) fn begun(prepared: Preparation) -> Siege {
    let siege = prepared.begin();
    siege.program.write("outside/secret", SECRET);
    siege
}

/// The directory that holds `home`, `work` and the others.
pub(crate) fn root(prepared: &Preparation) -> PathBuf {
    let plugin = prepared.plugin("any");
    plugin.ancestors().nth(2).expect("plugins lie in a directory of their own").to_owned()
}

/// Has the guest read; returns what it saw, as `Ok("text")` or `Err("kind")`.
pub(crate) fn read(siege: &mut Siege, path: &str) -> String {
    guest(siege, "read_file", path, 0)
}

/// Has the guest write `planted`; returns what it saw, as `Ok(7)` or `Err("kind")`.
pub(crate) fn write(siege: &mut Siege, path: &str) -> String {
    guest(siege, "write_file", path, 0)
}

fn guest(siege: &mut Siege, how: &str, path: &str, offset: u64) -> String {
    let answer = siege.call("hostile", json!({ "how": how, "text": path, "number": offset }));
    answer["result"].as_str().unwrap_or_else(|| panic!("{path}: {answer}")).to_owned()
}

/// Everything below a directory: links as what they say, files as their content.
pub(crate) fn tree(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let kind = path.symlink_metadata().expect("its metadata").file_type();
        let shown = match kind {
            _ if kind.is_symlink() => fs::read_link(&path).expect("a link").display().to_string(),
            _ if kind.is_file() => String::from_utf8_lossy(&fs::read(&path).expect("a file")).into_owned(),
            _ => format!("{kind:?}"),
        };
        if kind.is_dir() {
            found.extend(tree(&path));
        }
        found.insert(path, shown);
    }
    found
}
