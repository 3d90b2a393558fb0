//! Commands that were left running: what they have printed since somebody looked, and how they ended.
//!
//! The last one of each pane is known, for as long as this program runs: a command outlives the call that started it, and its exit status is
//! told once, by the mark of its end.

use super::names;
use super::pane::{Selector, Target};
use super::{Session, Tmux};
use base::envelope::Failure;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The most bytes of unread output that are kept of a command; older ones are dropped.
const UNSEEN_BYTES: usize = 1 << 20;
/// Panes whose last command is known.
const PANES: usize = 100;

/// The commands of one host that were left running, the last one of each pane; who was left last is last.
#[derive(Default)]
pub(super) struct LeftRunning(Mutex<VecDeque<Arc<Left>>>);

/// A command that was left running.
pub struct Left {
    /// The beginning of its text.
    command: String,
    session: String,
    pane: String,
    /// The id of its pane.
    id: String,
    state: Mutex<State>,
    has_ended: Notify,
}

#[derive(Default)]
struct State {
    unseen: VecDeque<u8>,
    /// Bytes before those, which were not kept.
    dropped: u64,
    end: Option<End>,
}

/// How a command that was left running has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this exit status.
    Exited(i32),
    /// Its pane ended with it, or its shell told nothing.
    Unknown,
}

/// The unread output and the state of a command that was left running.
pub struct Look {
    /// The beginning of its text.
    pub command: String,
    /// What it has printed since the last look; of a line that is not complete nothing, while it runs.
    pub printed: Vec<u8>,
    /// Bytes before those, which were not kept.
    pub dropped: u64,
    /// None while it runs.
    pub end: Option<End>,
}

impl LeftRunning {
    /// Knows one more, which takes the place of an earlier one of its pane.
    pub(super) fn add(&self, session: &Session, pane: (u32, &str), command: &str) -> Arc<Left> {
        let (session_name, id) = (session.name.clone(), session.pane_id(pane.0));
        let (state, has_ended) = (Mutex::default(), Notify::new());
        let (command, pane) = (command.to_owned(), pane.1.to_owned());
        let left = Arc::new(Left { command, session: session_name, pane, id, state, has_ended });
        let mut all = self.0.lock();
        all.retain(|other| other.id != left.id);
        if all.len() == PANES {
            all.pop_front();
        }
        all.push_back(left.clone());
        left
    }

    fn last(&self, is_meant: impl Fn(&Left) -> bool) -> Option<Arc<Left>> {
        self.0.lock().iter().rev().find(|left| is_meant(left)).cloned()
    }
}

impl Left {
    pub(super) fn print(&self, bytes: &[u8]) {
        let mut state = self.state.lock();
        state.unseen.extend(bytes);
        let over = state.unseen.len().saturating_sub(UNSEEN_BYTES);
        state.unseen.drain(..over);
        state.dropped += over as u64;
    }

    pub(super) fn end(&self, end: End) {
        self.state.lock().end = Some(end);
        self.has_ended.notify_waiters();
    }

    /// What it has printed since the last look, and how it ended. Waits for its end, at most so long.
    pub fn look(&self, wait: Duration) -> BoxFuture<'_, Look> {
        Box::pin(async move {
            let ended = self.has_ended.notified();
            if self.state.lock().end.is_none() {
                let _ = tokio::time::timeout(wait, ended).await;
            }
            let state = &mut *self.state.lock();
            let complete = match state.end {
                Some(_) => state.unseen.len(),
                // A secret that is printed in pieces is known once its line is there.
                None => state.unseen.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1),
            };
            let printed = state.unseen.drain(..complete).collect();
            Look { command: self.command.clone(), printed, dropped: std::mem::take(&mut state.dropped), end: state.end }
        })
    }

    /// The id of its pane.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Tmux {
    /// The command that was last left running in a pane; where none is named, the one that was left last.
    ///
    /// # Errors
    ///
    /// When there is none, or the name is not one.
    pub fn left_running<'a>(&'a self, selector: &'a Selector) -> BoxFuture<'a, Result<Arc<Left>, Failure>> {
        Box::pin(async move {
            if *selector == Selector::default() {
                return self.left.last(|_| true).ok_or_else(|| none_left("any pane"));
            }
            let named = match selector.target.as_deref() {
                Some(target) => match Target::of(target)? {
                    Target::Id { number, generation } => {
                        let id = generation.map_or_else(|| format!("%{number}@"), |of| format!("%{number}@{of}"));
                        let is_meant =
                            |left: &Left| if generation.is_some() { left.id == id } else { left.id.starts_with(&id) };
                        return self.left.last(is_meant).ok_or_else(|| none_left(&format!("pane `{target}`")));
                    }
                    Target::Names(names) => names,
                },
                None => selector.clone(),
            };
            let session = self.session_name(named.session.as_deref()).await?;
            let pane = names::pane(named.pane.as_deref())?;
            let is_meant = |left: &Left| left.session == session && left.pane == pane;
            self.left.last(is_meant).ok_or_else(|| none_left(&format!("pane `{pane}` of {session}")))
        })
    }
}

fn none_left(place: &str) -> Failure {
    Failure::failed(format!("no command was left running in {place} since this program started"))
        .hint("see what a pane shows with capture-pane")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left() -> Left {
        let text = String::new;
        Left {
            command: text(),
            session: text(),
            pane: text(),
            id: text(),
            state: Mutex::default(),
            has_ended: Notify::new(),
        }
    }

    #[tokio::test]
    async fn each_look_tells_what_came_since_the_last_one() {
        let left = left();
        left.print(b"one\ntwo\nthr");
        let look = left.look(Duration::ZERO).await;
        assert_eq!((look.printed.as_slice(), look.end), (b"one\ntwo\n".as_slice(), None));
        left.print(b"ee");
        assert_eq!(left.look(Duration::from_millis(1)).await.printed, b"");
        left.end(End::Exited(3));
        let look = left.look(Duration::from_secs(9)).await;
        assert_eq!((look.printed.as_slice(), look.end), (b"three".as_slice(), Some(End::Exited(3))));
        assert_eq!(left.look(Duration::ZERO).await.printed, b"");
    }

    #[tokio::test]
    async fn whoever_waits_is_told_of_the_end_at_once() {
        let left = Arc::new(left());
        let other = left.clone();
        let waiting = tokio::spawn(async move { other.look(Duration::from_secs(600)).await.end });
        tokio::task::yield_now().await;
        left.end(End::Unknown);
        let told = tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("the end is told");
        assert_eq!(told.expect("a look"), Some(End::Unknown));
    }

    #[tokio::test]
    async fn of_much_that_nobody_looks_at_the_end_is_kept() {
        let left = left();
        left.print(b"begin\n");
        left.print(&[b'x'; UNSEEN_BYTES]);
        left.print(b"end\n");
        let look = left.look(Duration::ZERO).await;
        assert_eq!((look.dropped, look.printed.len()), (10, UNSEEN_BYTES));
        assert!(look.printed.ends_with(b"xend\n"));
        assert_eq!(left.look(Duration::ZERO).await.dropped, 0);
    }
}
