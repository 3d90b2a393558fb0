//! The tools in force: read anew when a plugin's file comes, changes or goes. Calls in flight keep what they began with.

use crate::config::Limits;
use crate::envelope::{Failure, Kind};
use crate::registry::{BUILTINS, Registry};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long the directories have to be quiet: a file that is being copied changes many times.
const QUIET: Duration = Duration::from_millis(200);

/// The registry in force, and word of its changes.
pub(crate) struct Catalog {
    current: watch::Receiver<Arc<Registry>>,
    _watcher: Option<RecommendedWatcher>,
}

impl Catalog {
    /// Watches the directories from which `registry` was read. What cannot be watched is said in a failure; the tools stay as they are.
    pub(crate) fn watching(
        registry: Arc<Registry>,
        directories: Vec<PathBuf>,
        limits: Limits,
    ) -> (Self, Option<Failure>) {
        let (sender, current) = watch::channel(registry);
        let (touched, touches) = mpsc::channel(1);
        let mut watcher = match notify::recommended_watcher(move |event: notify::Result<Event>| {
            // Reading is what we do ourselves.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                let _ = touched.try_send(());
            }
        }) {
            Ok(watcher) => watcher,
            Err(error) => return (Self { current, _watcher: None }, Some(unwatched(&error))),
        };
        let mut failure = None;
        for directory in &directories {
            // It is watched from the start, so that the first plugin is noticed.
            let _ = std::fs::create_dir_all(directory);
            if let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive) {
                failure = Some(unwatched(&error));
            }
        }
        tokio::spawn(follow(sender, touches, directories, limits));
        (Self { current, _watcher: Some(watcher) }, failure)
    }

    /// The registry in force.
    pub(crate) fn current(&self) -> Arc<Registry> {
        self.current.borrow().clone()
    }

    /// Tells of changes from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<Registry>> {
        let mut changes = self.current.clone();
        changes.mark_unchanged();
        changes
    }
}

async fn follow(
    current: watch::Sender<Arc<Registry>>,
    mut touches: mpsc::Receiver<()>,
    directories: Vec<PathBuf>,
    limits: Limits,
) {
    while touches.recv().await.is_some() {
        while let Ok(Some(())) = tokio::time::timeout(QUIET, touches.recv()).await {}
        let before = current.borrow().clone();
        let (directories, limits) = (directories.clone(), limits.clone());
        let read = tokio::task::spawn_blocking(move || before.reread(BUILTINS, &directories, &limits)).await;
        if let Ok(Some(registry)) = read {
            current.send_replace(Arc::new(registry));
        }
    }
}

fn unwatched(error: &notify::Error) -> Failure {
    Failure::new(Kind::Unavailable, format!("plugins that come or change are not noticed: {error}"))
}
