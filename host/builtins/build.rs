//! Builds the plugins for `wasm32-wasip2` and embeds them, with their digests, in the host.

#[path = "build/components.rs"]
mod components;

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

fn main() {
    let root = components::here().ancestors().nth(2).expect("the crate is in the workspace").to_owned();
    let plugins = components::build(&root.join("plugins"), &["sdk", "wit", "Cargo.lock", "Cargo.toml"]);
    let rows: String = plugins.iter().map(|plugin| row(plugin)).collect();
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    std::fs::write(out.join("builtins.rs"), format!("&[{rows}]")).expect("the list of plugins can be written");
}

/// One entry of the embedded list: name, sha256, bytes.
fn row(plugin: &Path) -> String {
    let bytes = std::fs::read(plugin).expect("a component that was just built");
    let digest = hex::encode(Sha256::digest(bytes));
    let name = plugin.file_stem().expect("a component has a name").to_str().expect("a name in UTF-8");
    format!("({name:?}, {digest:?}, include_bytes!({plugin:?}).as_slice()),")
}
