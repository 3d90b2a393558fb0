//! The servers that the protocol's own project publishes, as npm and PyPI have them (`upstream/servers`, which `tests/run` installs).

use crate::on_path;
use std::path::{Path, PathBuf};
use toolcrib::config::UpstreamSection;

/// Where they are installed; none where they are not.
#[must_use]
pub fn place() -> Option<PathBuf> {
    std::env::var_os("TOOLCRIB_SERVERS").map(PathBuf::from)
}

/// One of npm, with these arguments.
///
/// # Panics
///
/// Where there is no Node.
#[must_use]
pub fn node(place: &Path, package: &str, arguments: &[&str]) -> UpstreamSection {
    let node = on_path("node").canonicalize().expect("its file").display().to_string();
    let index = place.join(format!("node_modules/@modelcontextprotocol/{package}/dist/index.js")).display().to_string();
    let command = [node.as_str(), &index].iter().chain(arguments).map(ToString::to_string).collect();
    UpstreamSection { read: vec![place.to_owned()], ..UpstreamSection::of_command(command) }
}

/// One of PyPI.
///
/// # Panics
///
/// Where its environment is not whole.
#[must_use]
pub fn python(place: &Path, module: &str, arguments: &[&str]) -> UpstreamSection {
    let program = place.join("python/bin/python");
    // The interpreter that the environment was made from, which may be anywhere.
    let found = std::fs::read_to_string(place.join("python/pyvenv.cfg")).expect("an environment");
    let home = found.lines().find_map(|line| line.strip_prefix("home = ")).expect("where its interpreter is");
    let base = Path::new(home).parent().expect("it lies somewhere").to_owned();
    let own = [program.to_str().expect("text"), "-m", module];
    let command = own.iter().chain(arguments).map(ToString::to_string).collect();
    UpstreamSection { read: vec![place.to_owned(), base], ..UpstreamSection::of_command(command) }
}
