//! What is found in other people's code, where there is no secret: the sources that cargo keeps.

use super::sample::{PRINTED, Random};
use super::{Known, shapes};
use std::path::{Path, PathBuf};

/// Bytes that are looked at: of all that there is, and in short runs.
const LONG: usize = 64 << 20;
const SHORT: usize = 4 << 20;

fn bytes() -> usize {
    if std::env::var_os("TOOLCRIB_LONG").is_some() { LONG } else { SHORT }
}

/// Sources of crates, as text, until there are enough.
fn gather(directory: &Path, left: &mut usize, visit: &mut impl FnMut(&str)) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if *left == 0 {
            return;
        }
        if path.is_dir() {
            gather(&path, left, visit);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            *left = left.saturating_sub(text.len());
            visit(&text);
        }
    }
}

/// K-04: what holds no secret passes.
#[test]
fn sources_of_crates_hold_no_secret_and_little_that_looks_like_one() {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let sources = home.expect("a home").join("registry/src");
    let mut random = Random::new();
    let values: Vec<String> = (0..20).map(|_| random.text(PRINTED, 40)).collect();
    let known = Known::new(values.iter().map(|value| ("S", value.as_str())));
    let (mut left, mut seen, mut shaped) = (bytes(), 0, 0);
    gather(&sources, &mut left, &mut |text| {
        assert_eq!(known.find(text.as_bytes()), None, "a random value was found");
        shaped += shapes::find(text).len();
        seen += text.len();
    });
    assert!(seen > 1 << 20, "{} holds no sources", sources.display());
    assert!(shaped <= (seen >> 20) * 2, "{shaped} in {seen} bytes look like secrets");
}
