//! Builds the programs that run in cells (`src/cell/programs/`), which are embedded: they have no library, so that the linker alone makes
//! them.
#![expect(clippy::disallowed_methods, reason = "a build script starts the compiler")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: &str = "src/cell/programs";
/// The first process of a cell, and what git calls there.
const PROGRAMS: [&str; 2] = ["init", "relay"];
/// No start-up files, no library, nothing that is laid out when it starts.
const ARGUMENTS: [&str; 13] = [
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
];

fn main() {
    println!("cargo::rerun-if-changed={SOURCES}");
    let output = PathBuf::from(variable("OUT_DIR"));
    for program in PROGRAMS {
        build(program, &output.join(program));
    }
}

fn build(program: &str, output: &Path) {
    if !variable("TARGET").contains("-linux-") {
        std::fs::write(output, []).expect("a file in OUT_DIR");
        return;
    }
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(ARGUMENTS).args(["--crate-name", program, "--target"]).arg(variable("TARGET"));
    rustc.arg(format!("{SOURCES}/{program}.rs")).arg("-o").arg(output);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    let status = rustc.status().expect("the compiler that builds this");
    assert!(status.success(), "`{program}` of cells was not built");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
