//! The current tools: read again when a plugin's file appears, changes or disappears. Calls in flight keep the tools they began with.

use crate::notices::Notices;
use base::disk::OwnDir;
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use toolcrib::tools::registry::Registry;
use toolcrib::tools::source::PluginSource;

/// How long the directories have to be quiet: a file that is being copied changes many times.
const QUIET: Duration = Duration::from_millis(200);
/// How long they may go on changing before they are read all the same.
const UNQUIET: Duration = Duration::from_secs(2);

/// The current registry, and notice of its changes.
pub struct Catalog {
    current: watch::Receiver<Arc<Registry>>,
    notices: Arc<Notices>,
}

impl Catalog {
    /// Watches the source from which `registry` was read. Where that cannot be done, the tools stay as they are. What is refused,
    /// or not watched, becomes a notice.
    ///
    /// `also` tells of other reasons for which what is offered may be another than before.
    pub fn watching(
        registry: Arc<Registry>,
        source: PluginSource,
        notices: Notices,
        also: Option<watch::Receiver<()>>,
    ) -> Self {
        let notices = Arc::new(notices);
        notices.tell(refused(&registry));
        let (sender, current) = watch::channel(registry);
        also.into_iter().for_each(|also| drop(tokio::spawn(tell_anew(sender.clone(), also))));
        let (touched, touches) = mpsc::channel(1);
        let watcher = match notify::recommended_watcher(move |event: notify::Result<Event>| {
            // We read the files ourselves, which must not count as a change.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                let _ = touched.try_send(());
            }
        }) {
            Ok(watcher) => watcher,
            Err(error) => {
                notices.tell([unwatched(&error)]);
                return Self { current, notices };
            }
        };
        let mut watched = Watched { watcher, source };
        notices.tell(watched.watch());
        tokio::spawn(follow(sender, touches, watched, notices.clone()));
        Self { current, notices }
    }

    /// Follows a registry that somebody else changes, who also says what is refused. No directory is watched.
    #[must_use]
    pub fn following(current: watch::Receiver<Arc<Registry>>, notices: Notices) -> Self {
        Self { current, notices: Arc::new(notices) }
    }

    /// Notices for the person who started the server.
    pub(crate) fn notices(&self) -> &Notices {
        &self.notices
    }

    /// The current registry.
    #[must_use]
    pub fn current(&self) -> Arc<Registry> {
        self.current.borrow().clone()
    }

    /// Gives the current registry, whenever it is asked.
    pub fn now(&self) -> impl Fn() -> Arc<Registry> + Send + Sync + 'static {
        let current = self.current.clone();
        move || current.borrow().clone()
    }

    /// Reports changes from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<Registry>> {
        let mut changes = self.current.clone();
        changes.mark_unchanged();
        changes
    }
}

/// The directories of plugins, and who notices what happens in them.
struct Watched {
    watcher: RecommendedWatcher,
    source: PluginSource,
}

impl Watched {
    /// Watches each directory, also after it was removed or recreated. A missing one is made, so that its first plugin is noticed.
    fn watch(&mut self) -> Vec<String> {
        let mut failed = Vec::new();
        for directory in self.source.directories() {
            let _ = OwnDir::open(&directory);
            failed.extend(self.watcher.watch(&directory, RecursiveMode::NonRecursive).err());
        }
        for directory in self.source.deciding_directories() {
            failed.extend(self.watcher.watch(&directory, RecursiveMode::NonRecursive).err());
        }
        failed.iter().map(unwatched).collect()
    }
}

async fn follow(
    current: watch::Sender<Arc<Registry>>,
    mut touches: mpsc::Receiver<()>,
    mut watched: Watched,
    notices: Arc<Notices>,
) {
    let mut policies = watched.source.policy_changes();
    // Ends when nobody uses the registry any more.
    while tokio::select! {
        touch = touches.recv() => touch.is_some(),
        change = policies.changed() => change.is_ok(),
        () = current.closed() => false,
    } {
        let quiet = async { while let Ok(Some(())) = timeout(QUIET, touches.recv()).await {} };
        let _ = timeout(UNQUIET, quiet).await;
        notices.tell(watched.watch());
        let before = current.borrow().clone();
        let source = watched.source.clone();
        let read = tokio::task::spawn_blocking(move || source.reload(&before)).await;
        if let Ok(Some(registry)) = read {
            notices.tell(refused(&registry));
            current.send_replace(Arc::new(registry));
        }
    }
}

/// Tells of the same registry anew, as something else of it is offered.
async fn tell_anew(current: watch::Sender<Arc<Registry>>, mut also: watch::Receiver<()>) {
    while tokio::select! { change = also.changed() => change.is_ok(), () = current.closed() => false } {
        current.send_modify(|_| {});
    }
}

fn refused(registry: &Registry) -> impl Iterator<Item = String> {
    registry.refused().iter().map(ToString::to_string)
}

fn unwatched(error: &notify::Error) -> String {
    format!("plugins that are added or changed are not noticed: {error}")
}
