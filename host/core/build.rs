//! Builds the first process of a cell (`src/backend/cell/init.rs`), which is embedded: it has no library, so that the linker alone makes it.
#![expect(clippy::disallowed_methods, reason = "a build script starts the compiler")]

use std::env;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "src/backend/cell/init.rs";
/// No start-up files, no library, nothing that is laid out when it starts.
const ARGUMENTS: [&str; 14] = [
    "--edition=2024",
    "-Copt-level=s",
    "-Cpanic=abort",
    "-Cstrip=symbols",
    "-Crelocation-model=static",
    "-Ctarget-feature=+crt-static",
    "-Clink-arg=-nostartfiles",
    "-Clink-arg=-nostdlib",
    "-Clink-arg=-static",
    "-Clink-arg=-Wl,-z,noexecstack",
    "-Clink-arg=-Wl,-z,norelro",
    "-Clink-arg=-Wl,--build-id=none",
    "-Dwarnings",
    "--crate-name=init",
];

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let output = PathBuf::from(variable("OUT_DIR")).join("init");
    if !variable("TARGET").contains("-linux-") {
        std::fs::write(&output, []).expect("a file in OUT_DIR");
        return;
    }
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(ARGUMENTS).arg("--target").arg(variable("TARGET")).arg(SOURCE).arg("-o").arg(&output);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    let status = rustc.status().expect("the compiler that builds this");
    assert!(status.success(), "the first process of a cell was not built");
}
