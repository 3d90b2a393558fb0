//! The goldens: JSON files that `tests/run` also gives to the vendors' own code.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Set to write the goldens in place of comparing them: `TOOLCRIB_BLESS=1 tests/run calls`.
const BLESS: &str = "TOOLCRIB_BLESS";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("calls/formats/goldens").join(format!("{name}.json"))
}

/// Reads a golden.
pub(crate) fn golden(name: &str) -> Value {
    let text = std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Compares bytes with a golden.
pub(crate) fn assert_golden(name: &str, value: &Value) {
    let text = format!("{value:#}\n");
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(path(name), text).expect("a golden");
        return;
    }
    let golden = std::fs::read_to_string(path(name)).unwrap_or_default();
    assert!(golden == text, "`{name}` differs from its golden; if that is meant, set {BLESS}=1. It is now:\n{text}");
}

#[test]
fn every_golden_is_known_to_the_vendors_types() {
    let types = std::fs::read_to_string(path("../vendors/types").with_extension("ts")).expect("the vendors' types");
    let typed: BTreeSet<String> =
        types.lines().filter_map(|line| Some(line.strip_prefix("  \"")?.split_once("\":")?.0.to_owned())).collect();
    let directory = path("x").parent().expect("a directory").read_dir().expect("goldens");
    let files = directory.map(|entry| entry.expect("an entry").path());
    let names: BTreeSet<String> =
        files.map(|file| file.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    assert_eq!(names, typed);
}
