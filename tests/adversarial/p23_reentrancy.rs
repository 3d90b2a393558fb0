//! P-23: a host function that calls the guest again while the guest waits for it.
//! Outcome: impossible by construction: host functions get the store's data, never a store, so none can name a guest.
//! Switched off: with a use of `StoreContextMut` in `capability/events.rs` the test failed.

use std::path::{Path, PathBuf};

/// The ways into a guest that wasmtime has.
const WAYS: [&str; 7] =
    ["Store<", "StoreContext", "AsContext", "Accessor", "wasmtime::Caller", "TypedFunc", "call_async"];

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).expect("the capabilities").map(|entry| entry.expect("a file").path()).collect()
}

/// A host function that took a store would be written here, or be asked for by an option of the bindings. What an author plays in tests is
/// `trial/played.rs`: it has a store, as handles need one, and calls nothing in it.
#[test]
fn no_host_function_is_given_a_way_into_a_guest() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/guest/src/capability");
    let (mut read, mut waiting) = (0, entries(&directory));
    while let Some(file) = waiting.pop() {
        if file.is_dir() {
            waiting.extend(entries(&file));
            continue;
        }
        let code = std::fs::read_to_string(&file).expect("a file of code");
        let found: Vec<&&str> = WAYS.iter().filter(|way| code.contains(**way)).collect();
        assert!(found.is_empty(), "{} names {found:?}", file.display());
        let imports = code.lines().find(|line| line.trim_start().starts_with("imports:"));
        assert!(imports.is_none_or(|line| !line.contains("store")), "{} asks for stores: {imports:?}", file.display());
        read += 1;
    }
    assert!(read > 3, "{read} files of capabilities");
}
