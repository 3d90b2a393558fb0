//! Events as progress: the last thing that was said, at most ten times a second, to clients that asked for it.

use super::LAST_WORD;
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolcrib::event::{Event, EventSink, Level};

/// The least time between two notifications.
const INTERVAL: Duration = Duration::from_millis(100);
/// Characters of a message.
const MESSAGE_CHARS: usize = 200;
/// What a notification without a number of the plugin's adds to the last one: too little to be taken for a step of the work.
const A_LITTLE: f64 = 1e-6;

/// Takes the events of a call. Whoever resumes a call that waited may watch it, whether or not who began it did.
#[derive(Default)]
pub(super) struct Progress {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    /// What was said last. Grows with every notification, as the protocol demands; nothing was said at first.
    progress: Option<f64>,
    total: Option<f64>,
    message: Option<String>,
    /// There is something that was not sent.
    is_fresh: bool,
    /// Clients to which it is sent.
    watchers: usize,
}

/// Sends until it is stopped or dropped.
pub(super) struct Sending {
    task: JoinHandle<()>,
    stop: DropGuard,
}

/// One client that gets notifications, for as long as this lives.
struct Watching(Arc<Progress>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.state().watchers -= 1;
    }
}

impl Sending {
    /// Returns when nothing more will be sent, or when the client does not take it.
    pub(super) async fn stop(self) {
        let Self { mut task, stop } = self;
        drop(stop);
        if timeout(LAST_WORD, &mut task).await.is_err() {
            // What is not on its way by now would come after the result.
            task.abort();
        }
    }
}

impl Progress {
    /// Sends what is new to the client, under the token that it gave.
    pub(super) fn send_to(self: &Arc<Self>, peer: Peer<RoleServer>, token: ProgressToken) -> Sending {
        self.state().watchers += 1;
        let (watching, stopped) = (Watching(self.clone()), CancellationToken::new());
        let stop = stopped.clone().drop_guard();
        let task = tokio::spawn(async move {
            let Watching(progress) = &watching;
            while stopped.run_until_cancelled(progress.news.notified()).await.is_some() {
                let Some(news) = progress.take(&token) else { continue };
                if peer.notify_progress(news).await.is_err() {
                    return;
                }
                let _ = stopped.run_until_cancelled(tokio::time::sleep(INTERVAL)).await;
            }
            // The plugin's last progress: clients show it until the result arrives.
            if let Some(news) = progress.take(&token) {
                let _ = peer.notify_progress(news).await;
            }
        });
        Sending { task, stop }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn take(&self, token: &ProgressToken) -> Option<ProgressNotificationParam> {
        let mut state = self.state();
        if !std::mem::take(&mut state.is_fresh) {
            return None;
        }
        let mut news = ProgressNotificationParam::new(token.clone(), state.progress.unwrap_or_default());
        news.total = state.total;
        news.message.clone_from(&state.message);
        Some(news)
    }
}

impl EventSink for Progress {
    fn emit(&self, event: Event) {
        let (done, total, message) = match event {
            Event::Started { detail } => (None, None, Some(detail)),
            Event::Log { level: Level::Debug, .. } | Event::Completed { .. } => return,
            Event::Stdout { text } | Event::Stderr { text } | Event::Log { text, .. } => (None, None, last_line(&text)),
            Event::Progress { done, total, message } => (Some(done as f64), total.map(|total| total as f64), message),
        };
        let mut state = self.state();
        let last = state.progress;
        // A plugin's own number is sent as it is; what cannot be, as it does not grow, and what is said beside is a little more.
        let is_more = |done: &f64| last.is_none_or(|last| *done > last);
        let little = || last.map_or(0.0, |last| (last + A_LITTLE).max(last.next_up()));
        state.progress = Some(done.filter(is_more).unwrap_or_else(little));
        state.total = total.or(state.total);
        state.message = message.map(|text| text.chars().take(MESSAGE_CHARS).collect()).or(state.message.take());
        state.is_fresh = true;
        self.news.notify_one();
    }

    fn is_watched(&self) -> bool {
        self.state().watchers > 0
    }
}

fn last_line(text: &str) -> Option<String> {
    text.lines().rev().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;

    #[test]
    fn the_numbers_of_a_plugin_are_sent_as_they_are() {
        let (progress, token) = (Progress::default(), ProgressToken(NumberOrString::Number(1)));
        for done in [0, 1, 2, 5, 1 << 60] {
            progress.emit(Event::Progress { done, total: Some(1 << 60), message: None });
            let news = progress.take(&token).expect("news");
            assert_eq!((news.progress, news.total), (done as f64, Some((1u64 << 60) as f64)));
        }
        // The same again still has to grow, however large it is.
        progress.emit(Event::Progress { done: 1 << 60, total: None, message: Some("nearly".into()) });
        assert!(progress.take(&token).expect("news").progress > (1u64 << 60) as f64);
    }

    #[test]
    fn what_is_said_between_two_counts_is_no_step_of_its_own() {
        let (progress, token) = (Progress::default(), ProgressToken(NumberOrString::Number(1)));
        let say = |event| {
            progress.emit(event);
            progress.take(&token).expect("news").progress
        };
        say(Event::Started { detail: "make".into() });
        let begun = say(Event::Progress { done: 0, total: Some(5), message: None });
        assert!(begun > 0.0 && begun < 0.001, "{begun}");
        say(Event::Stdout { text: "a line\n".into() });
        assert_eq!(say(Event::Progress { done: 1, total: Some(5), message: None }), 1.0);
    }

    #[test]
    fn progress_grows_and_only_the_last_word_is_sent() {
        let (progress, token) = (Progress::default(), ProgressToken(NumberOrString::Number(1)));
        let mut last = -1.0;
        let said = [
            Event::Started { detail: "make".into() },
            Event::Stdout { text: "one\ntwo\n\n".into() },
            Event::Progress { done: 5, total: Some(10), message: None },
            Event::Progress { done: 5, total: Some(10), message: Some("again".into()) },
            Event::Stdout { text: "more".into() },
            Event::Progress { done: 1, total: None, message: Some("back".into()) },
        ];
        for event in said {
            progress.emit(event);
            let news = progress.take(&token).expect("news");
            assert!(news.progress > last, "{} after {last}", news.progress);
            last = news.progress;
        }
        assert!(progress.take(&token).is_none());
        progress.emit(Event::Stdout { text: "a\n".into() });
        progress.emit(Event::Stdout { text: "b\n".into() });
        assert_eq!(progress.take(&token).and_then(|news| news.message).as_deref(), Some("b"));
        assert!(progress.take(&token).is_none());
    }
}
