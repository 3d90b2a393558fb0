//! Tells the program which version of wasmtime it has.

fn main() {
    println!("cargo::rustc-env=WASMTIME_VERSION={}", locked_version("wasmtime"));
}

/// Reads a dependency's version from the lock file; the crate itself does not tell.
fn locked_version(name: &str) -> String {
    let lock = include_str!("../../Cargo.lock");
    let package = lock.split("[[package]]").find(|package| package.contains(&format!("name = \"{name}\"\n")));
    let version = package.and_then(|package| package.split("version = \"").nth(1)?.split('"').next());
    version.expect("the lock file has the dependency").to_owned()
}
