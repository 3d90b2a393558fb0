//! Tells the program which version of wasmtime it has, and gives it what authors of plugins are given: the contract, the SDK, the templates.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rustc-env=WASMTIME_VERSION={}", locked_version("wasmtime"));
    let root = Path::new("../..").canonicalize().expect("the workspace");
    let mut code = String::new();
    for (name, directory) in [("CONTRACT", "wit"), ("SDK", "sdk"), ("TEMPLATES", "sdk/templates")] {
        println!("cargo::rerun-if-changed={}", root.join(directory).display());
        let _ = writeln!(code, "pub(super) const {name}: &[(&str, &str)] = &{};", files(&root.join(directory), name));
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    std::fs::write(out.join("authors.rs"), code).expect("a file of this build");
}

/// The files below a directory, as a list of paths and texts.
fn files(directory: &Path, name: &str) -> String {
    let mut paths = Vec::new();
    walk(directory, &mut paths);
    // The SDK has the contract by a link, and the templates are a list of their own.
    paths.retain(|path| name != "SDK" || !path.starts_with(directory.join("templates")));
    paths.sort();
    let file = |path: &PathBuf| {
        let relative = path.strip_prefix(directory).expect("it was found there").to_str().expect("a name in ASCII");
        format!("({relative:?}, include_str!({:?}))", path.to_str().expect("a path in UTF-8"))
    };
    format!("[{}]", paths.iter().map(file).collect::<Vec<_>>().join(", "))
}

fn walk(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory of the workspace") {
        let path = entry.expect("its entry").path();
        if path.is_dir() { walk(&path, paths) } else { paths.push(path) }
    }
}

/// Reads a dependency's version from the lock file; the crate itself does not tell.
fn locked_version(name: &str) -> String {
    let lock = include_str!("../../Cargo.lock");
    let package = lock.split("[[package]]").find(|package| package.contains(&format!("name = \"{name}\"\n")));
    let version = package.and_then(|package| package.split("version = \"").nth(1)?.split('"').next());
    version.expect("the lock file has the dependency").to_owned()
}
