//! A browser that runs: its tabs, and what is done at once when something happens in it.
//!
//! What a page can hold up is answered where it happens, on no call's time: dialogs, tabs that pages open, prompts for passwords.

use super::Answer;
use super::cdp::{Cdp, Event, SessionId, Trouble};
use super::downloads::{Download, Progress};
use super::guard::{SCRIPT, WORLD};
use super::program::{Kept, Programs};
use super::uploads::{Asked, Asks};
use base::envelope::{Failure, Kind};
use base::text::sanitize;
use parking_lot::Mutex;
use policy::scope::Scope;
use secrets::Secrets;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long the browser may take to be there.
const BEGIN: Duration = Duration::from_secs(30);
/// How long a command may take that no page decides on.
pub(super) const SOON: Duration = Duration::from_secs(5);
/// Tabs of a browser. Pages that open more find them closed.
pub(super) const MOST_TABS: usize = 8;
/// Dialogs with which a page does not yet hold up whoever wants to leave it.
const FEW_DIALOGS: u64 = 2;
/// What is noted between two acts; more is like it.
const MOST_NOTICES: usize = 12;
/// Characters that a line shows of what a page says.
const SHOWN: usize = 200;
/// Characters of what a page says that are noted, before secrets are taken out and it is cut to what a line shows: none may be cut in two.
const NOTED: usize = 8_000;
/// Bytes of a title and of an address that are known of a tab. A page makes them as long as it likes.
const TITLE_BYTES: usize = 8 << 10;
const URL_BYTES: usize = 64 << 10;

/// A browser with its tabs.
pub(super) struct Browser {
    pub(super) cdp: Arc<Cdp>,
    pub(super) state: Arc<State>,
    pub(super) kept: Arc<Kept>,
    /// What is taken out of what pages say.
    pub(super) secrets: Arc<Secrets>,
    used: Mutex<Instant>,
}

/// What is known of it, from what happened in it.
pub(super) struct State {
    /// Told by the events, which come before there is a connection to answer by.
    cdp: OnceLock<Weak<Cdp>>,
    pub(super) known: Mutex<Known>,
    /// Something changed that somebody may wait for.
    changed: Notify,
    pub(super) ids: Arc<Ids>,
}

/// The numbers of tabs and elements, each given once a session.
#[derive(Default)]
pub(super) struct Ids {
    pub(super) tabs: std::sync::atomic::AtomicU64,
    pub(super) elements: std::sync::atomic::AtomicU64,
}

impl Ids {
    pub(super) fn next(of: &std::sync::atomic::AtomicU64) -> u64 {
        of.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1
    }
}

#[derive(Default)]
pub(super) struct Known {
    tabs: BTreeMap<u64, Tab>,
    /// Which tab each session is of: its own, and those of frames in other processes.
    sessions: BTreeMap<SessionId, u64>,
    notices: Vec<String>,
    /// How a `confirm` and a `prompt` of these tabs are answered now.
    answers: HashMap<u64, Answer>,
    pub(super) downloads: Vec<Download>,
    pub(super) keeps_downloads: bool,
    /// Where the last one came from that was refused.
    pub(super) refused_download: Option<String>,
    /// The last field for which a page asked for files.
    pub(super) asked: Option<Asked>,
    /// Bytes of the copies that pages were given.
    pub(super) uploaded: u64,
}

/// A tab.
#[derive(Clone, Debug)]
pub(super) struct Tab {
    pub(super) number: u64,
    pub(super) target: String,
    pub(super) session: SessionId,
    /// Those of frames in other processes.
    pub(super) frames: Vec<SessionId>,
    pub(super) url: String,
    pub(super) title: String,
    /// The document of its main frame, and whether it is loaded.
    loader: String,
    is_loaded: bool,
    /// Another document is on its way.
    is_leaving: bool,
    pub(super) has_crashed: bool,
    /// What was asked for last to be its document: where redirects have led.
    pub(super) asked: String,
    /// Dialogs that were answered in it.
    pub(super) dialogs: u64,
}

impl Tab {
    /// As others name it.
    pub(super) fn id(&self) -> String {
        format!("t{}", self.number)
    }

    /// Whether there is a page in it, which may hold it.
    pub(super) fn has_page(&self) -> bool {
        !self.url.is_empty() && self.url != BLANK
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetInfo {
    target_id: String,
    r#type: String,
    url: String,
    title: String,
    #[serde(default)]
    opener_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attached {
    session_id: String,
    target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detached {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Changed {
    target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Destroyed {
    target_id: String,
}

#[derive(Deserialize)]
struct Navigated {
    frame: Frame,
}

/// What an event says of a frame.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfFrame {
    frame_id: String,
    #[serde(default)]
    url: String,
}

impl OfFrame {
    /// Does something with the tab whose main frame it is.
    fn tab(self, known: &mut Known, session: Option<&str>, then: impl FnOnce(&mut Tab, String)) {
        if let Some(tab) = known.tab_of(session)
            && self.frame_id == tab.target
        {
            then(tab, self.url);
        }
    }
}

/// A request that waits for us.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Paused {
    request_id: String,
    frame_id: String,
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    url: String,
}

impl Paused {
    fn goes_on(self, cdp: &Cdp, session: Option<&str>, how: &'static str, mut params: Value) {
        params["requestId"] = json!(self.request_id);
        let session = session.map(SessionId::from);
        cdp.tell(session.as_ref(), how, params);
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dialog {
    r#type: String,
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    id: String,
    #[serde(default)]
    parent_id: Option<String>,
    loader_id: String,
    url: String,
}

impl Browser {
    /// Starts one.
    pub(super) async fn start(
        profile: Option<&str>,
        programs: &Programs,
        scope: &Scope,
        ids: Arc<Ids>,
    ) -> Result<Self, Failure> {
        let started = programs.start(profile).await?;
        let state = State { cdp: OnceLock::new(), known: Mutex::default(), changed: Notify::new(), ids };
        let state = Arc::new(state);
        let happens = state.clone();
        let kept = Arc::new(started.kept);
        let cdp = Cdp::over(started.process, started.input, kept.clone(), move |event| happens.take(event));
        let cdp = Arc::new(cdp);
        let _ = state.cdp.set(Arc::downgrade(&cdp));
        started.notice.into_iter().for_each(|notice| state.known.lock().note(notice));
        let secrets = scope.secrets.clone();
        let browser = Self { cdp, state, kept, secrets, used: Mutex::new(Instant::now()) };
        browser.prepare().await.map_err(|trouble| {
            Failure::new(
                Kind::Unavailable,
                format!("the browser did not start: {}", sanitize::line(&trouble.to_string())),
            )
        })?;
        Ok(browser)
    }

    async fn prepare(&self) -> Result<(), Trouble> {
        let all = json!({
            "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true,
            "filter": [{ "type": "page" }, { "exclude": true }],
        });
        self.cdp.call::<IgnoredAny>(None, "Target.setAutoAttach", all, BEGIN).await?;
        let deny = json!({ "behavior": "deny", "eventsEnabled": true });
        self.cdp.call::<IgnoredAny>(None, "Browser.setDownloadBehavior", deny, SOON).await?;
        let discover = json!({ "discover": true, "filter": [{ "type": "page" }, { "exclude": true }] });
        self.cdp.call::<IgnoredAny>(None, "Target.setDiscoverTargets", discover, SOON).await?;
        Ok(())
    }

    /// Notes that somebody uses it.
    pub(super) fn touch(&self) {
        *self.used.lock() = Instant::now();
    }

    pub(super) fn idle(&self) -> Duration {
        self.used.lock().elapsed()
    }

    /// Has it write what it keeps, and end.
    pub(super) async fn close(&self) {
        let closed = self.cdp.call::<IgnoredAny>(None, "Browser.close", json!({}), SOON).await;
        if closed.is_ok() {
            let _ = tokio::time::timeout(SOON, self.cdp.ended()).await;
        }
    }

    /// Sends a command to a tab.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        session: &SessionId,
        method: &'static str,
        params: Value,
    ) -> Result<T, Trouble> {
        self.cdp.call(Some(session), method, params, SOON).await
    }

    /// The same where only that it was done is of interest.
    pub(super) async fn order(&self, session: &SessionId, method: &'static str, params: Value) -> Result<(), Trouble> {
        self.ask::<IgnoredAny>(session, method, params).await.map(drop)
    }

    /// Opens an empty tab.
    pub(super) async fn new_tab(&self) -> Result<u64, Failure> {
        let tabs = self.tabs();
        // The one that it has when it starts.
        if let [only] = &tabs[..]
            && only.url == BLANK
            && only.loader.is_empty()
        {
            return Ok(only.number);
        }
        if tabs.len() >= MOST_TABS {
            return Err(Failure::limit(format!("limit: tabs {MOST_TABS}")).hint("close one that you need no more"));
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Made {
            target_id: String,
        }
        let made = self.cdp.call::<Made>(None, "Target.createTarget", json!({ "url": BLANK }), SOON).await;
        let made = made.map_err(failed)?;
        let there = self
            .until(SOON, |known| known.tabs.values().find(|tab| tab.target == made.target_id).map(|tab| tab.number));
        there.await.ok_or_else(|| failed(Trouble::Slow("Target.createTarget")))
    }

    pub(super) fn tabs(&self) -> Vec<Tab> {
        self.state.known.lock().tabs.values().cloned().collect()
    }

    pub(super) fn tab(&self, number: u64) -> Option<Tab> {
        self.state.known.lock().tabs.get(&number).cloned()
    }

    /// Has dialogs of a tab answered so, as long as what this returns is there.
    pub(super) fn answering(&self, number: u64, answer: Option<Answer>) -> Answering<'_> {
        if let Some(answer) = answer {
            self.state.known.lock().answers.insert(number, answer);
        }
        Answering { state: &self.state, number }
    }

    /// What happened since this was asked last.
    pub(super) fn take_notices(&self) -> Vec<String> {
        let mut known = self.state.known.lock();
        if known.asked.take().is_some() {
            known.note("the page asked for a file and got none: upload one to what was clicked".into());
        }
        std::mem::take(&mut known.notices)
    }

    /// A tab is about to go to another document: it stays where it is, unless this says that it goes.
    pub(super) fn leaving(&self, number: u64) -> Leaving<'_> {
        if let Some(tab) = self.state.known.lock().tabs.get_mut(&number) {
            (tab.is_leaving, tab.has_crashed) = (true, false);
        }
        Leaving { state: &self.state, number, goes: false }
    }

    /// Waits until a tab has loaded the document that it is going to; false where that takes too long.
    pub(super) async fn loaded(&self, number: u64, most: Duration) -> bool {
        let is_there = |known: &Known| match known.tabs.get(&number) {
            Some(tab) => (tab.has_crashed || tab.is_loaded && !tab.is_leaving).then_some(()),
            None => Some(()),
        };
        self.until(most, is_there).await.is_some()
    }

    /// Whether a tab is on its way to another document.
    pub(super) fn is_leaving(&self, number: u64) -> bool {
        self.state.known.lock().tabs.get(&number).is_some_and(|tab| tab.is_leaving || !tab.is_loaded)
    }

    /// Whether a tab has had dialogs since, one after the other.
    pub(super) fn talks_on(&self, before: &Tab) -> bool {
        self.tab(before.number).is_some_and(|now| now.dialogs > before.dialogs + FEW_DIALOGS)
    }

    pub(super) async fn until<T>(&self, most: Duration, found: impl Fn(&Known) -> Option<T>) -> Option<T> {
        let wait = async {
            loop {
                let changed = self.state.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(found) = found(&self.state.known.lock()) {
                    return Some(found);
                }
                tokio::select! {
                    () = &mut changed => {}
                    () = self.cdp.ended() => return None,
                }
            }
        };
        tokio::time::timeout(most, wait).await.ok().flatten()
    }
}

/// Until this is dropped, dialogs of a tab are answered as an act says.
pub(super) struct Answering<'b> {
    state: &'b State,
    number: u64,
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.state.known.lock().answers.remove(&self.number);
    }
}

/// A tab that is about to go to another document.
pub(super) struct Leaving<'b> {
    state: &'b State,
    number: u64,
    goes: bool,
}

impl Leaving<'_> {
    /// The document comes about.
    pub(super) fn goes(mut self) {
        self.goes = true;
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if self.goes {
            return;
        }
        if let Some(tab) = self.state.known.lock().tabs.get_mut(&self.number) {
            (tab.is_leaving, tab.is_loaded) = (false, true);
        }
        self.state.changed.notify_waiters();
    }
}

/// The page of a tab that shows none.
pub(super) const BLANK: &str = "about:blank";

/// Trouble as whoever calls sees it.
pub(super) fn failed(trouble: Trouble) -> Failure {
    let text = sanitize::line(&trouble.to_string()).into_owned();
    match trouble {
        Trouble::Ended(_) => {
            Failure::new(Kind::Unavailable, text).hint("open the page again: another browser is started for it")
        }
        Trouble::Slow(_) => Failure::new(Kind::TimedOut, text)
            .hint("the page may be at work without end: close the tab, or go elsewhere"),
        Trouble::Refused { .. } => Failure::failed(text),
    }
}

impl Known {
    pub(super) fn note(&mut self, notice: String) {
        if self.notices.len() < MOST_NOTICES && !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    fn tab_of(&mut self, session: Option<&str>) -> Option<&mut Tab> {
        let number = self.sessions.get(session?)?;
        self.tabs.get_mut(number)
    }
}

impl State {
    /// What becomes of an event. Those that are not among these tell nothing that anybody waits for.
    fn take(&self, event: &Event<'_>) {
        let Some(cdp) = self.cdp() else { return };
        let known = &mut *self.known.lock();
        match event.method {
            "Target.attachedToTarget" => with(event, |attached| self.attached(known, &cdp, event.session, attached)),
            "Target.detachedFromTarget" => with(event, |detached| known.detached(&detached)),
            "Target.targetInfoChanged" => with(event, |changed| known.changed(changed)),
            "Target.targetDestroyed" => with(event, |destroyed| known.destroyed(&destroyed)),
            "Page.fileChooserOpened" => with(event, |asks: Asks| known.asked = asks.of(event.session)),
            "Page.javascriptDialogOpening" => with(event, |dialog| known.answer(&cdp, event.session, &dialog)),
            "Page.frameStartedNavigating" | "Page.frameStartedLoading" | "Page.frameRequestedNavigation" => {
                with(event, |frame: OfFrame| frame.tab(known, event.session, |tab, _| tab.is_loaded = false));
            }
            "Page.frameStoppedLoading" => {
                let stopped = |tab: &mut Tab, _| (tab.is_loaded, tab.is_leaving) = (true, false);
                with(event, |frame: OfFrame| frame.tab(known, event.session, stopped));
            }
            "Page.navigatedWithinDocument" => {
                let moved = |tab: &mut Tab, url| tab.url = cut(url, URL_BYTES);
                with(event, |frame: OfFrame| frame.tab(known, event.session, moved));
            }
            "Page.frameNavigated" => {
                with(event, |Navigated { frame }| known.navigated(&cdp, event.session, frame));
            }
            "Inspector.targetCrashed" => {
                if let Some(tab) = known.tab_of(event.session) {
                    (tab.has_crashed, tab.is_loaded, tab.is_leaving) = (true, true, false);
                }
            }
            "Browser.downloadWillBegin" => with(event, |begins| known.download_begins(&cdp, begins)),
            "Browser.downloadProgress" => with(event, |progress: Progress| {
                if known.download_comes(&progress) {
                    cdp.tell(None, "Browser.cancelDownload", json!({ "guid": progress.guid }));
                }
            }),
            "Fetch.requestPaused" => with(event, |paused: Paused| {
                if let Some(tab) = known.tab_of(event.session)
                    && paused.frame_id == tab.target
                {
                    tab.asked = cut(paused.request.url.clone(), URL_BYTES);
                }
                paused.goes_on(&cdp, event.session, "Fetch.continueRequest", json!({}));
            }),
            "Fetch.authRequired" => with(event, |paused: Paused| {
                let cancel = json!({ "authChallengeResponse": { "response": "CancelAuth" } });
                paused.goes_on(&cdp, event.session, "Fetch.continueWithAuth", cancel);
                known.note("a prompt for a user and a password was dismissed".into());
            }),
            _ => return,
        }
        self.changed.notify_waiters();
    }

    fn cdp(&self) -> Option<Arc<Cdp>> {
        self.cdp.get()?.upgrade()
    }

    /// A tab, or a frame in a process of its own, was attached. It is paused until `Runtime.runIfWaitingForDebugger`.
    fn attached(&self, known: &mut Known, cdp: &Arc<Cdp>, parent: Option<&str>, attached: Attached) {
        let (session, target) = (SessionId::from(attached.session_id), attached.target_info);
        let more = json!({
            "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true,
            "filter": [{ "type": "iframe" }, { "exclude": true }],
        });
        let is_frame = target.r#type == "iframe";
        if target.r#type == "page" {
            if known.tabs.len() >= MOST_TABS {
                // As long as it stands still, so does the page that opened it.
                cdp.tell(Some(&session), "Runtime.runIfWaitingForDebugger", json!({}));
                cdp.tell(None, "Target.closeTarget", json!({ "targetId": target.target_id }));
                known.note(format!("a page wanted to open another tab, which was closed: there are {MOST_TABS}"));
                return;
            }
            let number = Ids::next(&self.ids.tabs);
            if target.opener_id.is_some() {
                known.note(format!("a page opened the tab t{number}"));
            }
            known.sessions.insert(session.clone(), number);
            let tab = Tab {
                number,
                target: target.target_id,
                session: session.clone(),
                frames: Vec::new(),
                url: cut(target.url, URL_BYTES),
                title: cut(target.title, TITLE_BYTES),
                loader: String::new(),
                is_loaded: true,
                is_leaving: false,
                has_crashed: false,
                asked: String::new(),
                dialogs: 0,
            };
            known.tabs.insert(number, tab);
        } else if let Some(number) = parent.and_then(|parent| known.sessions.get(parent).copied()).filter(|_| is_frame)
        {
            known.sessions.insert(session.clone(), number);
            if let Some(tab) = known.tabs.get_mut(&number) {
                tab.frames.push(session.clone());
            }
        }
        let tell = |method, params| cdp.tell(Some(&session), method, params);
        tell("Page.enable", json!({}));
        tell("Page.setInterceptFileChooserDialog", json!({ "enabled": true }));
        tell("Page.addScriptToEvaluateOnNewDocument", json!({ "source": SCRIPT, "worldName": WORLD }));
        // `Fetch.authRequired` comes only where requests are paused. Those for documents are, and are continued at once.
        let documents = json!([{ "urlPattern": "*", "resourceType": "Document" }]);
        tell("Fetch.enable", json!({ "handleAuthRequests": true, "patterns": documents }));
        tell("Target.setAutoAttach", more);
        tell("Runtime.runIfWaitingForDebugger", json!({}));
    }
}

impl Known {
    fn detached(&mut self, gone: &Detached) {
        if let Some(tab) = self.tab_of(Some(&gone.session_id)) {
            tab.frames.retain(|session| **session != *gone.session_id);
        }
        self.sessions.remove(&*gone.session_id);
    }

    fn changed(&mut self, Changed { target_info }: Changed) {
        if let Some(tab) = self.tabs.values_mut().find(|tab| tab.target == target_info.target_id) {
            (tab.url, tab.title) = (cut(target_info.url, URL_BYTES), cut(target_info.title, TITLE_BYTES));
        }
    }

    fn destroyed(&mut self, gone: &Destroyed) {
        self.tabs.retain(|_, tab| tab.target != gone.target_id);
        let Self { tabs, sessions, .. } = self;
        sessions.retain(|_, number| tabs.contains_key(number));
    }

    /// Answers a dialog, which holds its page up until then.
    fn answer(&mut self, cdp: &Arc<Cdp>, session: Option<&str>, dialog: &Dialog) {
        let tab = self.tab_of(session).map(|tab| {
            tab.dialogs += 1;
            tab.number
        });
        let (accept, text) = match (dialog.r#type.as_str(), tab.and_then(|number| self.answers.get(&number))) {
            ("alert" | "beforeunload", _) => (true, None),
            (_, Some(Answer { accept, text })) => (*accept, text.clone()),
            (_, None) => (false, None),
        };
        let mut params = json!({ "accept": accept });
        if let Some(text) = text {
            params["promptText"] = json!(text);
        }
        cdp.tell(session.map(SessionId::from).as_ref(), "Page.handleJavaScriptDialog", params);
        let how = if accept { "accepted" } else { "dismissed" };
        self.note(format!("a dialog ({}, {how}) says: {}", said(&dialog.r#type), noted(&dialog.message)));
    }

    /// A frame shows another document. What is no page of the web is left at once.
    fn navigated(&mut self, cdp: &Arc<Cdp>, session: Option<&str>, frame: Frame) {
        let is_main = frame.parent_id.is_none();
        let Some(tab) = self.tab_of(session) else { return };
        let is_own = is_main && frame.id == tab.target;
        if is_own {
            (tab.url, tab.loader) = (cut(frame.url.clone(), URL_BYTES), frame.loader_id);
            (tab.is_leaving, tab.is_loaded) = (false, false);
        }
        if !may_be_shown(&frame.url, is_main) {
            let (number, session) = (tab.number, tab.session.clone());
            cdp.tell(Some(&session), "Page.navigate", json!({ "url": BLANK }));
            self.note(format!(
                "the tab t{number} came to `{}`, which is no page of the web, and was emptied",
                said(&frame.url)
            ));
        }
    }
}

/// Whether a document is one that pages of the web consist of.
fn may_be_shown(url: &str, is_main: bool) -> bool {
    let scheme = url.split(':').next().unwrap_or_default().to_ascii_lowercase();
    match scheme.as_str() {
        "http" | "https" => true,
        // The page that says that there is none.
        "chrome-error" => true,
        // With what is behind `#` where the browser itself has refused another one.
        "about" => url.split('#').next() == Some(BLANK) || !is_main && url.starts_with("about:srcdoc"),
        "data" | "blob" => !is_main,
        _ => false,
    }
}

/// Does something with what is known of an event.
fn with<T: DeserializeOwned>(event: &Event<'_>, then: impl FnOnce(T)) {
    if let Some(params) = event.params() {
        then(params);
    }
}

/// What a page says, fit for a line.
pub(super) fn said(text: &str) -> String {
    first(&sanitize::line(text), SHOWN)
}

/// The same before secrets are taken out of it.
pub(super) fn noted(text: &str) -> String {
    first(&sanitize::line(text), NOTED)
}

/// The first characters.
pub(crate) fn first(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn cut(mut text: String, bytes: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_web_consists_of_is_shown() {
        for (url, is_main, expected) in [
            ("https://a.example/", true, true),
            ("HTTP://a.example/", true, true),
            ("about:blank", true, true),
            ("about:blank#blocked", true, true),
            ("about:blanks", true, false),
            ("about:srcdoc", false, true),
            ("about:srcdoc", true, false),
            ("data:text/html,x", true, false),
            ("data:text/html,x", false, true),
            ("blob:https://a.example/1", false, true),
            ("blob:https://a.example/1", true, false),
            ("file:///etc/passwd", true, false),
            ("file:///etc/passwd", false, false),
            ("chrome://version", true, false),
            ("devtools://devtools/x", true, false),
            ("view-source:https://a.example/", true, false),
            ("chrome-error://chromewebdata/", true, true),
            ("", true, false),
        ] {
            assert_eq!(may_be_shown(url, is_main), expected, "{url} {is_main}");
        }
    }
}
