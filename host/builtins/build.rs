//! Builds the plugins for `wasm32-wasip2` and embeds them, with their digests, in the host.

#[path = "build/components.rs"]
mod components;

use serde::Deserialize;
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
        rows += &row(name, plugin, &directory, &sources);
        digests += &format!("({name:?}, {sources:?}),");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for (file, list) in [("builtins.rs", rows), ("sources.rs", digests)] {
        std::fs::write(out.join(file), format!("&[{list}]")).expect("the list of plugins can be written");
    }
}

/// One entry of the embedded list, a `Builtin`.
fn row(name: &str, plugin: &Path, directory: &Path, sources: &str) -> String {
    let bytes = std::fs::read(plugin).expect("a component that was just built");
    let digest = hex::encode(Sha256::digest(bytes));
    let definitions = directory.join(DEFINITIONS);
    let said = std::fs::read_to_string(&definitions).unwrap_or_default();
    let said = if said.contains(sources) { format!("include_str!({definitions:?})") } else { "\"\"".to_owned() };
    let Metadata { family, search } = metadata(&directory.join("Cargo.toml"));
    let search = search.map_or("None".to_owned(), |search| format!("Some({})", search.row()));
    format!(
        "Builtin {{ name: {name:?}, sha256: {digest:?}, bytes: include_bytes!({plugin:?}).as_slice(), definitions: {said}, \
         family: {family:?}, search: {search} }},"
    )
}

/// What the package of a plugin says of it to the host.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    family: Option<String>,
    search: Option<Search>,
}

/// The server that a plugin searches the web by: its own, the one of a setting, or one like `example` that users name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Search {
    server: String,
    base: Option<String>,
    example: Option<String>,
    key_header: Option<String>,
}

impl Search {
    /// As a `SearchServer`.
    fn row(&self) -> String {
        let Self { server, base, example, key_header } = self;
        let base = match (base.as_deref(), example) {
            (Some("tools.search_endpoint"), None) => "SearchBase::Endpoint".to_owned(),
            (Some(url), None) if url.starts_with("https://") => format!("SearchBase::Fixed({url:?})"),
            (None, Some(example)) => format!("SearchBase::Named {{ example: {example:?} }}"),
            (base, example) => panic!("a server to search by has a base or an example: {base:?}, {example:?}"),
        };
        format!("SearchServer {{ name: {server:?}, base: {base}, key_header: {key_header:?} }}")
    }
}

fn metadata(manifest: &Path) -> Metadata {
    let text = std::fs::read_to_string(manifest).expect("a manifest");
    let manifest: toml::Table = text.parse().expect("a manifest that cargo has read");
    let said = manifest["package"].get("metadata").and_then(|metadata| metadata.get("toolcrib"));
    said.map_or_else(Metadata::default, |said| said.clone().try_into().expect("metadata.toolcrib of a plugin"))
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
