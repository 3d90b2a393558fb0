//! The sources of the project that this process is in, and notice of their changes.

use super::super::super::setup::usage;
use super::super::project::Project;
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use toolcrib::envelope::Failure;

/// An editor that saves makes several changes; they are taken as one when none has come for so long.
const QUIET: Duration = Duration::from_millis(150);
/// Larger files are data: their changes are not seen.
const SOURCE_BYTES: u64 = 4 << 20;
/// Directories of a project that are not its sources: what builds write, and what package managers install.
const NOT_SOURCES: [&str; 5] = ["target", "build", "node_modules", "__pycache__", "toolcrib-sdk"];

/// The sources, as they were built last, while they are watched.
pub(super) struct Watched {
    built: Sources,
    touches: mpsc::Receiver<()>,
    /// Something was touched, and not looked at yet.
    is_touched: bool,
    _watcher: RecommendedWatcher,
}

impl Watched {
    pub(super) fn begin() -> Result<Self, Failure> {
        let (touched, touches) = mpsc::channel(1);
        let watcher = watch(touched)?;
        Ok(Self { built: Sources::now(), touches, is_touched: false, _watcher: watcher })
    }

    /// Takes the sources as they are now: they are about to be built.
    pub(super) fn take(&mut self) {
        self.built = Sources::now();
    }

    /// Returns a source that was changed, once no more changes come, and takes the sources as they are then; none where nothing is watched any
    /// more. Loses nothing when it is dropped.
    pub(super) async fn changed(&mut self) -> Option<PathBuf> {
        loop {
            if !self.is_touched {
                self.touches.recv().await?;
                self.is_touched = true;
            }
            tokio::time::sleep(QUIET).await;
            while self.touches.try_recv().is_ok() {}
            self.is_touched = false;
            // What a build, or a case, has written anew as it was is no reason for another build.
            let now = Sources::now();
            let changed = now.other_than(&self.built).map(Path::to_owned);
            if changed.is_some() {
                self.built = now;
                return changed;
            }
        }
    }
}

/// The sources of the project that this process is in, by their digests. What the project writes to as `out` is none.
struct Sources(BTreeMap<PathBuf, Vec<u8>>);

impl Sources {
    fn now() -> Self {
        let here = Path::new(".");
        let out = Project::read(here).map(|project| project.out).unwrap_or_default();
        let mut files = BTreeMap::new();
        gather(here, Path::new(""), &mut files);
        files.remove(&out);
        Self(files)
    }

    /// The first file that is another one before, or was not there, or is gone.
    fn other_than<'s>(&'s self, before: &'s Self) -> Option<&'s Path> {
        let other = self.0.iter().find(|(path, digest)| before.0.get(*path) != Some(*digest));
        let gone = || before.0.iter().find(|(path, _)| !self.0.contains_key(*path));
        other.map(|(path, _)| path.as_path()).or_else(|| gone().map(|(path, _)| path.as_path()))
    }
}

/// Digests the sources below a directory of the project.
fn gather(root: &Path, below: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(root.join(below)).into_iter().flatten().filter_map(Result::ok) {
        let path = below.join(entry.file_name());
        let kind = entry.file_type().ok().filter(|_| is_source(&path));
        match kind {
            Some(kind) if kind.is_dir() => gather(root, &path, files),
            Some(kind) if kind.is_file() && entry.metadata().is_ok_and(|found| found.len() <= SOURCE_BYTES) => {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                files.insert(path, Sha256::digest(bytes).to_vec());
            }
            Some(_) | None => {}
        }
    }
}

/// Watches the sources of the project that this process is in: its own files, and the directories that are not somebody else's.
fn watch(touched: mpsc::Sender<()>) -> Result<RecommendedWatcher, Failure> {
    let cannot = |error: notify::Error| usage(format!("the project cannot be watched: {error}"));
    let here = std::path::absolute(".").map_err(|error| usage(format!("the directory is gone: {error}")))?;
    let root = here.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        let Ok(event) = event else { return };
        let mut paths = event.paths.iter().map(|path| path.strip_prefix(&root).unwrap_or(path));
        // A build reads the sources; that is not a change.
        if !event.kind.is_access() && paths.any(is_source) {
            let _ = touched.try_send(());
        }
    })
    .map_err(cannot)?;
    watcher.watch(&here, RecursiveMode::NonRecursive).map_err(cannot)?;
    let entries = std::fs::read_dir(&here).into_iter().flatten().filter_map(Result::ok);
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if is_source(Path::new(&entry.file_name())) {
            watcher.watch(&entry.path(), RecursiveMode::Recursive).map_err(cannot)?;
        }
    }
    Ok(watcher)
}

/// Whether a path of the project is a source: editors leave hidden files and copies behind, builders leave locks.
fn is_source(path: &Path) -> bool {
    let is_hidden = |name: &str| name.starts_with('.') || name.ends_with('~') || name.ends_with(".lock");
    let mut names = path.iter().filter_map(|name| name.to_str());
    let first = path.iter().next().and_then(|name| name.to_str()).unwrap_or_default();
    !path.as_os_str().is_empty() && !NOT_SOURCES.contains(&first) && !names.any(is_hidden)
}

#[cfg(test)]
mod tests {
    use super::is_source;
    use std::path::Path;

    #[test]
    fn only_what_an_author_writes_is_a_source() {
        for path in
            ["src/lib.rs", "tool.js", "app.py", "cases.toml", "toolcrib-plugin.toml", "fixtures/two.txt", "src/wit/a"]
        {
            assert!(is_source(Path::new(path)), "{path}");
        }
        for path in [
            "target/x",
            "build/a.wasm",
            "node_modules/a/b.js",
            ".git/index",
            "src/.lib.rs.swp",
            "a~",
            "Cargo.lock",
            "",
            "__pycache__/a",
        ] {
            assert!(!is_source(Path::new(path)), "{path}");
        }
    }
}
