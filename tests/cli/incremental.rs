//! `host/incremental`: cargo, as whoever changes the host has it.

use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

#[test]
#[expect(clippy::disallowed_methods, reason = "a test starts cargo")]
fn our_crates_are_compiled_incrementally_and_each_of_their_units_for_itself() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/incremental").canonicalize().expect("the script");
    let place = TempDir::new().expect("a directory");
    let manifest = "[package]\nname = \"one\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
    std::fs::write(place.path().join("Cargo.toml"), manifest).expect("it is written");
    std::fs::create_dir(place.path().join("src")).expect("it is made");
    std::fs::write(place.path().join("src/main.rs"), "fn main() {\n    println!(\"it runs\");\n}\n")
        .expect("it is written");
    let built = Command::new(&script)
        .args(["run", "--release", "--offline", "--verbose"])
        .current_dir(place.path())
        // The tests may have been started by it.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env("CARGO_TARGET_DIR", place.path().join("target"))
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&built.stderr);
    assert_eq!(String::from_utf8_lossy(&built.stdout), "it runs\n", "{said}");
    let (through, incrementally) = (format!("`{} ", script.display()), "-C incremental=");
    assert!(said.lines().any(|line| line.contains(&through) && line.contains(incrementally)), "{said}");
    // What cargo starts in place of the compiler, with its path as the first argument.
    let compiled =
        Command::new(&script).env("RUSTC_WORKSPACE_WRAPPER", &script).args(["echo", "--crate-name"]).output();
    let flags = compiled.expect("it starts").stdout;
    assert_eq!(String::from_utf8_lossy(&flags), "--crate-name -C lto=off -C codegen-units=256\n");
}
