//! Builds the plugins for `wasm32-wasip2` and embeds them, with their digests, in the host.

#[path = "build/components.rs"]
mod components;

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// What a plugin says of its tools, beside its sources; `tests/tools/definitions.rs` writes it.
const DEFINITIONS: &str = "definitions.json";

fn main() {
    let root = components::here().ancestors().nth(2).expect("the crate is in the workspace").to_owned();
    let plugins = components::build(&root.join("plugins"), &["sdk", "wit", "Cargo.lock", "Cargo.toml"]);
    let (mut rows, mut digests) = (String::new(), String::new());
    for plugin in &plugins {
        let name = plugin.file_stem().expect("a component has a name").to_str().expect("a name in UTF-8");
        let directory = root.join("plugins").join(name);
        let sources = digest_of(&directory);
        rows += &row(name, plugin, &directory.join(DEFINITIONS), &sources);
        digests += &format!("({name:?}, {sources:?}),");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for (file, list) in [("builtins.rs", rows), ("sources.rs", digests)] {
        std::fs::write(out.join(file), format!("&[{list}]")).expect("the list of plugins can be written");
    }
}

/// One entry of the embedded list: name, sha256, bytes, definitions.
fn row(name: &str, plugin: &Path, definitions: &Path, sources: &str) -> String {
    let bytes = std::fs::read(plugin).expect("a component that was just built");
    let digest = hex::encode(Sha256::digest(bytes));
    let said = std::fs::read_to_string(definitions).unwrap_or_default();
    let said = if said.contains(sources) { format!("include_str!({definitions:?})") } else { "\"\"".to_owned() };
    format!("({name:?}, {digest:?}, include_bytes!({plugin:?}).as_slice(), {said}),")
}

/// The digest of all files of a directory, with their names, but for the definitions.
fn digest_of(directory: &Path) -> String {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in std::fs::read_dir(next).expect("a directory of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { directories.push(path) } else { files.push(path) }
        }
    }
    files.retain(|file| *file != directory.join(DEFINITIONS));
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        let name = file.strip_prefix(directory).expect("it is below it").to_string_lossy().into_owned();
        let text = std::fs::read(&file).expect("a file of sources");
        digest.update(format!("{name} {}\n", text.len()));
        digest.update(text);
    }
    hex::encode(digest.finalize())
}
