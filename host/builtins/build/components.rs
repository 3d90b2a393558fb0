//! Builds every crate of a directory into a component. Shared by the build scripts of the host and of the tests.
#![expect(clippy::disallowed_methods, reason = "a build script starts cargo and rustup")]

use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-wasip2";
const PROFILE: &str = "component";

/// Rust gives a guest a stack of 1 MiB, below its data. A call touches little of it, but so far from the data that a place of the pool could
/// not keep those pages, and each call would have to be given them anew (`engine/lib.rs`). A stack that overflows ends the call either
/// way: below it is nothing.
const STACK: &str = "-Clink-arg=-zstack-size=131072";

/// The directory of the package that is built. Asked when the script runs: a script that was compiled in another checkout is used again
/// where the target directory moves along.
pub(crate) fn here() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"))
}

/// Builds the crates below `directory` and returns their components in order of name.
///
/// A crate's library is named after its directory, and so is its component: the name that policy knows it by.
///
/// `watched` are further paths of the workspace that the crates are built from.
pub(crate) fn build(directory: &Path, watched: &[&str]) -> Vec<PathBuf> {
    let root = directory.ancestors().find(|path| path.join("Cargo.lock").exists()).expect("a workspace");
    println!("cargo::rerun-if-changed={}", directory.display());
    for path in watched {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    add_target();
    let crates = crates(directory);
    let target = target_directory();
    let mut cargo = clean(Command::new(std::env::var_os("CARGO").expect("cargo sets CARGO")));
    cargo.current_dir(root).args(["build", "--locked", "--target", TARGET, "--profile", PROFILE]);
    cargo.arg("--target-dir").arg(&target);
    cargo.env("CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS", STACK);
    for (_, package) in &crates {
        cargo.args(["--package", package]);
    }
    assert!(cargo.status().is_ok_and(|status| status.success()), "the plugins do not build; run: {cargo:?}");
    crates.iter().map(|(name, _)| target.join(TARGET).join(PROFILE).join(format!("{name}.wasm"))).collect()
}

/// Directory and package name of each crate.
fn crates(directory: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(directory).expect("the directory of plugins");
    let mut crates: Vec<(String, String)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let manifest = std::fs::read_to_string(path.join("Cargo.toml")).ok()?;
            let package = manifest.lines().find_map(|line| line.strip_prefix("name = "))?.trim_matches('"').to_owned();
            Some((path.file_name()?.to_str()?.to_owned(), package))
        })
        .collect();
    crates.sort();
    crates
}

/// A nested cargo needs a directory of its own: the outer one is locked.
fn target_directory() -> PathBuf {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // TARGET_DIR/PROFILE/build/PACKAGE-HASH/out
    out.ancestors().nth(4).expect("OUT_DIR lies in the target directory").join("components")
}

/// What is set for the build of the host (flags, wrappers, job server) is not for the build of the plugins.
fn clean(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let is_cargo = text.starts_with("CARGO") && text != "CARGO_HOME" && text != "CARGO_NET_OFFLINE";
        let is_rustc = text.starts_with("RUSTC") || text.starts_with("RUSTFLAGS") || text.starts_with("RUSTDOC");
        if is_cargo || is_rustc || ["MAKEFLAGS", "MFLAGS", "TARGET", "HOST"].contains(&&*text) {
            command.env_remove(&name);
        }
    }
    command
}

/// Adds the target where it is missing and rustup is there to do it.
fn add_target() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let libraries = clean(Command::new(rustc)).args(["--print", "target-libdir", "--target", TARGET]).output();
    let is_there = libraries.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir());
    if is_there {
        return;
    }
    println!("cargo::warning=adding the target {TARGET} with rustup");
    let added = clean(Command::new("rustup")).args(["target", "add", TARGET]).status();
    assert!(
        added.is_ok_and(|status| status.success()),
        "the target {TARGET} is missing; run: rustup target add {TARGET}"
    );
}
