//! Browsers for tools: started, confined, spoken to and ended by the host.
//!
//! A session has at its `Desk`, for each plugin, one browser a profile; it ends with the session, or when nobody has used it for some time.
//! `program.rs` starts it in a cell of its own, `cdp.rs` speaks its protocol over a pipe, `running.rs` keeps what is known of its tabs and answers
//! at once what would hold a page up, `tree.rs` makes a page text, and `act.rs` acts on elements, with `keys.rs`. What is allowed is decided by
//! `policy/browser.rs`, before, and at each connection by the egress.

mod act;
mod cdp;
mod keys;
mod program;
mod running;
mod tree;

pub(crate) use act::{Action, Filling};
pub(crate) use program::Programs;

use crate::call::scope::Scope;
use crate::egress::{Calling, Target};
use crate::envelope::{Failure, Kind};
use crate::policy::browser::BrowserGrant;
use act::{busy, is_gone};
use base64::Engine;
use cdp::Trouble;
use keys::Key;
use parking_lot::Mutex;
use running::{BLANK, Browser, Ids, SOON, Tab, failed, said};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio_util::task::TaskTracker;
use tree::{Document, Element, Elements, Page, Wanted};

/// How long a page may take to load, a script to come to something, and a wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long a browser is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(600);
/// How often that is looked at.
const IDLE_LOOK: Duration = Duration::from_secs(30);
/// How often a page is looked at for a text that is waited for.
const WAIT_LOOK: Duration = Duration::from_millis(100);
/// How long a page may take to say what it is called.
const TITLE: Duration = Duration::from_secs(1);
/// Bytes of a picture, and how well it is drawn until it has no more.
const PICTURE_BYTES: usize = 960 << 10;
const QUALITIES: [(u32, f64); 5] = [(70, 1.0), (50, 1.0), (40, 0.75), (30, 0.5), (20, 0.25)];
/// Pixels of a page's height that a picture has.
const PICTURE_HEIGHT: f64 = 16_384.0;
/// Lines of an effect.
const CHANGED_LINES: usize = 60;
/// Lines of a page up to which an act says what changed: to look at a larger one takes longer than the act.
const QUICK_LINES: usize = 600;

/// Browsers that are being ended, as their sessions are over.
static ENDS: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);

/// Returns when the browsers of sessions that are over have ended, as far as that takes a bearable time.
pub(crate) async fn ended() {
    ENDS.close();
    let _ = tokio::time::timeout(SOON * 2, ENDS.wait()).await;
}

/// The browsers of a session, by the plugins whose they are.
#[derive(Default)]
pub(crate) struct Desks(Mutex<HashMap<String, Arc<Desk>>>);

impl Desks {
    /// That of a plugin.
    pub(crate) fn of(&self, grant: &BrowserGrant) -> Arc<Desk> {
        self.0.lock().entry(grant.owner()).or_default().clone()
    }
}

/// The browsers of a session and a plugin.
#[derive(Default)]
pub(crate) struct Desk {
    ids: Arc<Ids>,
    table: Arc<tokio::sync::Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    browsers: BTreeMap<Option<String>, Arc<Browser>>,
    active: Option<u64>,
    elements: Elements,
    /// The lines of tabs when they were looked at last, and of which document.
    seen: HashMap<u64, (Document, Vec<String>)>,
    /// Documents that got a secret.
    tainted: Vec<Document>,
}

impl Drop for Table {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        for browser in std::mem::take(&mut self.browsers).into_values() {
            ENDS.spawn_on(async move { browser.close().await }, &runtime);
        }
    }
}

/// A tab, for whoever asks.
pub(crate) struct Shown {
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) title: String,
    pub(crate) is_active: bool,
    pub(crate) profile: Option<String>,
}

/// What became of an act.
pub(crate) struct Effect {
    pub(crate) tab: String,
    pub(crate) url: String,
    pub(crate) title: String,
    pub(crate) notices: Vec<String>,
    pub(crate) changes: Vec<String>,
}

/// Where a tab goes.
pub(crate) enum Destination {
    Page(Target),
    Back,
    Forward,
    Reload,
}

/// What of a page is wanted.
pub(crate) struct View {
    pub(crate) within: Option<String>,
    pub(crate) find: Option<String>,
    pub(crate) changes: bool,
}

/// How dialogs are answered that an act brings about.
pub(crate) struct Answer {
    pub(crate) accept: bool,
    pub(crate) text: Option<String>,
}

/// A call's turn at a desk: one at a time.
pub(crate) struct Turn<'t> {
    table: OwnedMutexGuard<Table>,
    desk: &'t Desk,
    grant: &'t BrowserGrant,
    scope: &'t Arc<Scope>,
    /// By whose rules its browsers connect while it lasts.
    callings: Vec<Calling>,
}

impl Desk {
    /// Waits for a turn.
    pub(crate) async fn turn<'t>(&'t self, grant: &'t BrowserGrant, scope: &'t Arc<Scope>) -> Turn<'t> {
        let mut table = self.table.clone().lock_owned().await;
        // What has ended since is known by its tabs being gone.
        table.browsers.retain(|_, browser| !browser.cdp.has_ended());
        let callings = table.browsers.values().map(|browser| browser.called(grant, scope)).collect();
        table.browsers.values().for_each(|browser| browser.touch());
        Turn { table, desk: self, grant, scope, callings }
    }
}

impl Browser {
    fn called(&self, grant: &BrowserGrant, scope: &Arc<Scope>) -> Calling {
        self.kept.network.called(Arc::new(grant.clone()), scope)
    }
}

impl Turn<'_> {
    /// All tabs.
    pub(crate) async fn tabs(&self) -> Vec<Shown> {
        let mut all = Vec::new();
        for (profile, browser) in &self.table.browsers {
            for tab in browser.tabs() {
                let (id, title, profile) = (tab.id(), browser.title(&tab).await, profile.clone());
                let is_active = self.table.active == Some(tab.number);
                all.push(Shown { id, url: tab.url, title, is_active, profile });
            }
        }
        all
    }

    /// Opens a tab, and goes to a page.
    pub(crate) async fn open(&mut self, page: Option<Target>, profile: Option<String>) -> Result<Effect, Failure> {
        let browser = self.browser(profile).await?;
        let number = browser.new_tab().await?;
        self.table.active = Some(number);
        match page {
            Some(page) => self.go_in(&browser, number, Destination::Page(page)).await,
            None => self.effect(&browser, number, Vec::new()).await,
        }
    }

    /// Goes to another page.
    pub(crate) async fn go(&mut self, tab: Option<&str>, to: Destination) -> Result<Effect, Failure> {
        if tab.is_none() && self.table.browsers.values().all(|browser| browser.tabs().is_empty()) {
            return match to {
                Destination::Page(page) => self.open(Some(page), None).await,
                Destination::Back | Destination::Forward | Destination::Reload => Err(no_tab()),
            };
        }
        let (browser, tab) = self.tab(tab)?;
        self.go_in(&browser, tab.number, to).await
    }

    /// What a page says.
    pub(crate) async fn look(&mut self, tab: Option<&str>, view: &View) -> Result<(Vec<String>, Vec<String>), Failure> {
        let (browser, tab) = self.tab(tab)?;
        self.check_alive(&tab)?;
        let is_tainted = self.is_tainted(&browser, &tab).await?;
        if is_tainted && view.find.is_some() {
            return Err(asks_about_a_secret());
        }
        let within = view.within.as_deref().map(|id| self.element(&tab, id)).transpose()?;
        let before = self.table.seen.get(&tab.number).map(|(_, lines)| lines.clone()).unwrap_or_default();
        let page = self.page(&browser, &tab, within.as_ref().map(|(_, element)| element)).await?;
        let wanted = Wanted {
            within: within.as_ref().map(|(number, _)| *number),
            find: view.find.as_deref(),
            before: view.changes.then_some(&before[..]),
        };
        let lines = match (page.wanted(&wanted), &within) {
            (Some(lines), _) => lines,
            (None, Some((_, element))) => return Err(is_gone(element)),
            (None, None) => Vec::new(),
        };
        let mut notices = page.notices;
        notices.extend(self.happened(&browser));
        if is_tainted {
            notices.push("a secret was put into this page: no script and no picture until it shows another".into());
        }
        Ok((lines, notices))
    }

    /// Does something with an element, or with the whole page.
    pub(crate) async fn act(
        &mut self,
        tab: Option<&str>,
        element: Option<(u64, Element)>,
        action: &Action,
        answer: Option<Answer>,
    ) -> Result<Effect, Failure> {
        let (browser, tab) = self.tab(tab)?;
        self.check_alive(&tab)?;
        // Input to a tab behind another is never answered.
        browser.order(&tab.session, "Page.bringToFront", json!({})).await.map_err(failed)?;
        browser.answer_dialogs(answer.map(|Answer { accept, text }| (accept, text)));
        // Before: the secret may be there though nobody hears of it.
        if let (Some((_, element)), Action::Fill(Filling::Secret(_))) = (&element, action) {
            self.table.tainted.push(element.document.clone());
        }
        let done = match (&element, action) {
            (Some((_, element)), action) => browser.act(element, action).await,
            (None, Action::Press(key)) => browser.press(&tab.session, &Key::parse(key)?).await,
            (None, Action::Click { .. } | Action::Hover | Action::Fill(_) | Action::Select(_) | Action::Check(_)) => {
                Err(Failure::invalid("say which element").hint("give its id, as a look at the page shows it: `e17`"))
            }
        };
        let done = self.unless_stuck(&browser, &tab, done).await;
        browser.answer_dialogs(None);
        done?;
        // What the act has set going has begun once the page answers.
        let _ = browser.order(&tab.session, "Runtime.evaluate", json!({ "expression": "1" })).await;
        self.settled(&browser, &tab, PATIENCE).await;
        let changes = self.changes(&browser, tab.number).await?;
        self.effect(&browser, tab.number, changes).await
    }

    /// Waits until a page says something, or says it no more.
    pub(crate) async fn wait(
        &mut self,
        tab: Option<&str>,
        text: &str,
        gone: bool,
        most: Duration,
    ) -> Result<Effect, Failure> {
        let (browser, tab) = self.tab(tab)?;
        self.check_alive(&tab)?;
        if self.is_tainted(&browser, &tab).await? {
            return Err(asks_about_a_secret());
        }
        let begin = std::time::Instant::now();
        loop {
            let says = self.says(&browser, &tab, text).await?;
            if says != gone {
                let changes = self.changes(&browser, tab.number).await?;
                return self.effect(&browser, tab.number, changes).await;
            }
            if begin.elapsed() >= most {
                let (what, still) = (said(text), if gone { "still" } else { "not" });
                return Err(Failure::new(
                    Kind::TimedOut,
                    format!("the page does {still} say `{what}` after {} ms", most.as_millis()),
                ));
            }
            tokio::time::sleep(WAIT_LOOK).await;
        }
    }

    /// A picture, as JPEG.
    pub(crate) async fn image(
        &mut self,
        tab: Option<&str>,
        element: Option<&(u64, Element)>,
        whole: bool,
    ) -> Result<Vec<u8>, Failure> {
        let (browser, tab) = self.tab(tab)?;
        self.check_alive(&tab)?;
        self.check_untainted(&browser, &tab, "no picture is taken").await?;
        browser.order(&tab.session, "Page.bringToFront", json!({})).await.map_err(failed)?;
        let clip = match element {
            Some((_, element)) => Some(browser.place(element).await?),
            None if whole => Some(browser.size_of_page(&tab).await.map_err(failed)?),
            None => None,
        };
        for (quality, scale) in QUALITIES {
            #[derive(Deserialize)]
            struct Picture {
                data: String,
            }
            let mut params = json!({ "format": "jpeg", "quality": quality, "captureBeyondViewport": clip.is_some() });
            match &clip {
                Some([x, y, width, height]) => {
                    params["clip"] = json!({ "x": x, "y": y, "width": width, "height": height, "scale": scale });
                }
                None if scale < 1.0 => {
                    params["clip"] = json!({ "x": 0, "y": 0, "width": 1280, "height": 900, "scale": scale })
                }
                None => {}
            }
            let taken =
                browser.cdp.call::<Picture>(Some(&tab.session), "Page.captureScreenshot", params, SOON * 2).await;
            let Picture { data } = self.unless_stuck(&browser, &tab, taken.map_err(failed)).await?;
            let bytes = base64::engine::general_purpose::STANDARD.decode(data);
            let bytes = bytes.map_err(|error| Failure::failed(format!("the browser draws no picture: {error}")))?;
            if bytes.len() <= PICTURE_BYTES {
                return Ok(bytes);
            }
        }
        Err(Failure::limit(format!("limit: bytes of a picture {PICTURE_BYTES}")).hint("take one of an element"))
    }

    /// What a script comes to.
    pub(crate) async fn evaluate(&mut self, tab: Option<&str>, script: &str) -> Result<String, Failure> {
        let (browser, tab) = self.tab(tab)?;
        self.check_alive(&tab)?;
        self.check_untainted(&browser, &tab, "no script is run").await?;
        let params = json!({ "expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true });
        let evaluated = browser.cdp.call::<Value>(Some(&tab.session), "Runtime.evaluate", params, PATIENCE).await;
        let answer = self.unless_stuck(&browser, &tab, evaluated.map_err(failed)).await?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            let text = thrown["exception"]["description"].as_str().or(thrown["text"].as_str()).unwrap_or("it throws");
            return Err(Failure::failed(format!("the script throws: {}", said(text))));
        }
        Ok(answer["result"].get("value").unwrap_or(&Value::Null).to_string())
    }

    /// Makes a tab the one that is meant where none is named.
    pub(crate) async fn activate(&mut self, tab: &str) -> Result<Effect, Failure> {
        let (browser, tab) = self.tab(Some(tab))?;
        browser.order(&tab.session, "Page.bringToFront", json!({})).await.map_err(failed)?;
        self.table.active = Some(tab.number);
        self.effect(&browser, tab.number, Vec::new()).await
    }

    /// Closes a tab, or all of them with their browsers; returns how many tabs.
    pub(crate) async fn close(&mut self, tab: Option<&str>) -> Result<u32, Failure> {
        let Some(tab) = tab else {
            let browsers = std::mem::take(&mut self.table.browsers);
            let closed: usize = browsers.values().map(|browser| browser.tabs().len()).sum();
            for browser in browsers.into_values() {
                browser.close().await;
            }
            self.table.active = None;
            return Ok(u32::try_from(closed).unwrap_or(u32::MAX));
        };
        let (browser, tab) = self.tab(Some(tab))?;
        browser
            .cdp
            .call::<Value>(None, "Target.closeTarget", json!({ "targetId": tab.target }), SOON)
            .await
            .map_err(failed)?;
        browser.gone(tab.number).await;
        if self.table.active == Some(tab.number) {
            self.table.active = browser.tabs().last().map(|tab| tab.number);
        }
        Ok(1)
    }

    /// The element of an id, as it was shown.
    pub(crate) fn element_of(&self, tab: Option<&str>, id: &str) -> Result<(u64, Element), Failure> {
        let (_, tab) = self.tab(tab)?;
        self.element(&tab, id)
    }

    fn element(&self, tab: &Tab, id: &str) -> Result<(u64, Element), Failure> {
        let wrong = || {
            Failure::invalid(format!("`{}` is no id of an element", said(id)))
                .hint("a look at the page shows them: `e17`")
        };
        let number: u64 =
            id.trim_matches(['[', ']']).strip_prefix('e').and_then(|digits| digits.parse().ok()).ok_or_else(wrong)?;
        match self.table.elements.get(number) {
            Some(element) if element.tab == tab.number => Ok((number, element.clone())),
            Some(element) => {
                Err(Failure::invalid(format!("`e{number}` is of the tab t{}", element.tab)).hint("name that tab"))
            }
            None => Err(busy(format!("`e{number}` is of a page that is not shown any more, or of none"))),
        }
    }

    /// The URL of the document that an element is in.
    pub(crate) async fn document_of(&self, element: &Element) -> Result<String, Failure> {
        let (browser, tab) = self.tab(Some(&format!("t{}", element.tab)))?;
        let documents = browser.documents(&tab).await.map_err(failed)?;
        let document = documents.into_iter().find(|document| {
            (&document.session, &document.frame, &document.loader)
                == (&element.document.session, &element.document.frame, &element.document.loader)
        });
        document.map(|document| document.url).ok_or_else(|| is_gone(element))
    }

    /// The tab of an id, or the active one, with its browser.
    fn tab(&self, id: Option<&str>) -> Result<(Arc<Browser>, Tab), Failure> {
        let number = match id {
            None => self.table.active.ok_or_else(no_tab)?,
            Some(id) => id.strip_prefix('t').and_then(|digits| digits.parse().ok()).ok_or_else(|| {
                Failure::invalid(format!("`{}` is no id of a tab", said(id)))
                    .hint("tabs are listed with their ids: `t1`")
            })?,
        };
        let found = self.table.browsers.values().find_map(|browser| Some((browser.clone(), browser.tab(number)?)));
        found.ok_or_else(|| {
            let is_known = number <= self.desk.ids.tabs.load(std::sync::atomic::Ordering::Relaxed);
            match is_known {
                true => Failure::new(Kind::Unavailable, format!("the tab t{number} is there no more"))
                    .hint("open the page again"),
                false => Failure::invalid(format!("there is no tab t{number}")).hint("tabs are listed with their ids"),
            }
        })
    }

    /// The browser of a profile, started where it does not run.
    async fn browser(&mut self, profile: Option<String>) -> Result<Arc<Browser>, Failure> {
        if let Some(browser) = self.table.browsers.get(&profile) {
            return Ok(browser.clone());
        }
        let scope = self.scope;
        let browser = Browser::start(&scope.browsers, profile.as_deref(), &scope.egress, self.desk.ids.clone()).await?;
        let browser = Arc::new(browser);
        self.callings.push(browser.called(self.grant, scope));
        self.table.browsers.insert(profile.clone(), browser.clone());
        tokio::spawn(end_when_idle(Arc::downgrade(&browser), Arc::downgrade(&self.desk.table), profile));
        Ok(browser)
    }

    async fn go_in(&mut self, browser: &Arc<Browser>, number: u64, to: Destination) -> Result<Effect, Failure> {
        let tab = browser.tab(number).ok_or_else(no_tab)?;
        browser.expect(number);
        let wanted = match to {
            Destination::Page(target) => {
                #[derive(Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Went {
                    loader_id: Option<String>,
                    error_text: Option<String>,
                }
                let params = json!({ "url": target.url().as_str() });
                let went = browser.cdp.call::<Went>(Some(&tab.session), "Page.navigate", params, PATIENCE).await;
                match went {
                    Ok(Went { error_text: Some(error), .. }) => {
                        browser.stays(number);
                        return Err(self.refused(&target).unwrap_or_else(|| unreachable(&target, &error)));
                    }
                    Ok(Went { loader_id: Some(_), .. }) => {}
                    // Within the same document.
                    Ok(Went { .. }) => browser.stays(number),
                    Err(Trouble::Slow(_)) => {
                        browser.stays(number);
                        let message = format!("`{target}` gave no answer within {} s", PATIENCE.as_secs());
                        return Err(Failure::new(Kind::TimedOut, message));
                    }
                    Err(trouble) => return Err(failed(trouble)),
                }
                Some(target)
            }
            Destination::Reload => {
                browser.order(&tab.session, "Page.reload", json!({})).await.map_err(failed)?;
                None
            }
            Destination::Back | Destination::Forward => {
                self.through_history(browser, &tab, matches!(to, Destination::Back)).await?;
                None
            }
        };
        let is_loaded = self.settled(browser, &tab, PATIENCE).await;
        self.table.active = Some(number);
        self.check_shown(browser, number, wanted.as_ref())?;
        let mut effect = self.effect(browser, number, Vec::new()).await?;
        if !is_loaded {
            effect
                .notices
                .push(format!("the page did not end loading within {} s: this is what is there", PATIENCE.as_secs()));
        }
        Ok(effect)
    }

    async fn through_history(&self, browser: &Browser, tab: &Tab, back: bool) -> Result<(), Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct History {
            current_index: i64,
            entries: Vec<Entry>,
        }
        #[derive(Deserialize)]
        struct Entry {
            id: i64,
            url: String,
        }
        let History { current_index, entries } =
            browser.ask(&tab.session, "Page.getNavigationHistory", json!({})).await.map_err(failed)?;
        let wanted = if back { current_index - 1 } else { current_index + 1 };
        let entry = usize::try_from(wanted).ok().and_then(|place| entries.get(place));
        let Some(entry) = entry else {
            browser.stays(tab.number);
            return Err(Failure::invalid(format!(
                "there is no page to go {} to",
                if back { "back" } else { "forward" }
            )));
        };
        // What was let through once may be closed by now.
        if entry.url != BLANK {
            let target = Target::parse(&entry.url, None)?;
            self.grant.admit_page(&target).inspect_err(|_| browser.stays(tab.number))?;
        }
        browser.order(&tab.session, "Page.navigateToHistoryEntry", json!({ "entryId": entry.id })).await.map_err(failed)
    }

    /// The refusal of a connection to this server in this call, if there was one.
    fn refused(&self, target: &Target) -> Option<Failure> {
        let server = target.server();
        self.callings.iter().find_map(|calling| calling.refusal(&server))
    }

    /// Whether a tab shows what it may, and not a word of the host's own about why it does not.
    fn check_shown(&self, browser: &Browser, number: u64, wanted: Option<&Target>) -> Result<(), Failure> {
        let Some(tab) = browser.tab(number) else { return Err(no_tab()) };
        let shown = Target::parse(&tab.url, None).ok();
        let refusal = shown.as_ref().or(wanted).and_then(|target| self.refused(target));
        match refusal {
            Some(refusal) => Err(match wanted {
                Some(wanted) if shown.as_ref().is_some_and(|shown| shown.server() != wanted.server()) => {
                    Failure { message: format!("`{wanted}` redirects: {}", refusal.message), ..refusal }
                }
                _ => refusal,
            }),
            None if tab.has_crashed => Err(crashed()),
            None => Ok(()),
        }
    }

    /// Waits until a tab has loaded what it is going to; false where that takes too long.
    async fn settled(&self, browser: &Browser, tab: &Tab, most: Duration) -> bool {
        !browser.is_leaving(tab.number) || browser.loaded(tab.number, most).await
    }

    async fn effect(&mut self, browser: &Browser, number: u64, changes: Vec<String>) -> Result<Effect, Failure> {
        let tab = browser.tab(number).ok_or_else(|| {
            Failure::new(Kind::Unavailable, format!("the tab t{number} is there no more")).hint("list the tabs")
        })?;
        let notices = self.happened(browser);
        let title = browser.title(&tab).await;
        Ok(Effect { tab: tab.id(), url: tab.url, title, notices, changes })
    }

    /// What happened since this was asked last.
    fn happened(&self, browser: &Browser) -> Vec<String> {
        let mut notices = browser.take_notices();
        notices.extend(self.callings.iter().flat_map(Calling::refusals));
        notices
    }

    /// Looks at a page, and remembers what it says.
    async fn page(&mut self, browser: &Arc<Browser>, tab: &Tab, within: Option<&Element>) -> Result<Page, Failure> {
        let Table { elements, .. } = &mut *self.table;
        let page = browser.look(tab, within, elements).await.map_err(failed);
        let page = self.unless_stuck(browser, tab, page).await?;
        if within.is_none() {
            let document = browser.documents(tab).await.map_err(failed)?.swap_remove(0);
            self.table.seen.insert(tab.number, (document, page.written()));
        }
        Ok(page)
    }

    /// The lines that an act has changed; none of a page that nobody has looked at, or that is another one.
    async fn changes(&mut self, browser: &Arc<Browser>, number: u64) -> Result<Vec<String>, Failure> {
        let Some(tab) = browser.tab(number) else { return Ok(Vec::new()) };
        let Some((document, before)) = self.table.seen.get(&number).cloned() else { return Ok(Vec::new()) };
        if before.len() > QUICK_LINES {
            return Ok(Vec::new());
        }
        let is_same = browser.documents(&tab).await.is_ok_and(|documents| documents.first() == Some(&document));
        if !is_same {
            return Ok(Vec::new());
        }
        let page = self.page(browser, &tab, None).await?;
        let mut lines = page.wanted(&Wanted { within: None, find: None, before: Some(&before) }).unwrap_or_default();
        if lines.len() > CHANGED_LINES {
            let more = lines.len() - CHANGED_LINES;
            lines.truncate(CHANGED_LINES);
            lines.push(format!("… {more} more lines"));
        }
        Ok(lines)
    }

    fn check_alive(&self, tab: &Tab) -> Result<(), Failure> {
        if tab.has_crashed { Err(crashed()) } else { Ok(()) }
    }

    /// Whether a document that a tab shows got a secret.
    async fn is_tainted(&mut self, browser: &Browser, tab: &Tab) -> Result<bool, Failure> {
        let documents = browser.documents(tab).await.map_err(failed)?;
        let is = |tainted: &Document, document: &Document| {
            (&tainted.session, &tainted.loader) == (&document.session, &document.loader)
        };
        Ok(self.table.tainted.iter().any(|tainted| documents.iter().any(|document| is(tainted, document))))
    }

    async fn check_untainted(&mut self, browser: &Browser, tab: &Tab, what: &str) -> Result<(), Failure> {
        match self.is_tainted(browser, tab).await? {
            true => {
                Err(Failure::denied(format!("a secret was put into this page: {what} of it until it shows another")))
            }
            false => Ok(()),
        }
    }

    async fn says(&self, browser: &Browser, tab: &Tab, text: &str) -> Result<bool, Failure> {
        for document in browser.documents(tab).await.map_err(failed)? {
            let Ok(world) = browser.world(&document).await else { continue };
            let expression = format!("!!document.body && document.body.innerText.includes({})", json!(text));
            let params = json!({ "expression": expression, "contextId": world, "returnByValue": true });
            let said = browser.ask::<Value>(&document.session, "Runtime.evaluate", params).await;
            if said.is_ok_and(|said| said["result"]["value"] == json!(true)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A page that does not answer any more loses its tab to an empty one, so that others go on.
    async fn unless_stuck<T>(
        &mut self,
        browser: &Arc<Browser>,
        tab: &Tab,
        done: Result<T, Failure>,
    ) -> Result<T, Failure> {
        match done {
            Err(failure) if failure.kind == Kind::TimedOut => {
                let _ = browser.order(&tab.session, "Runtime.terminateExecution", json!({})).await;
                let answers = browser.cdp.call::<Value>(
                    Some(&tab.session),
                    "Runtime.evaluate",
                    json!({ "expression": "1" }),
                    Duration::from_secs(1),
                );
                if answers.await.is_ok() {
                    return Err(failure);
                }
                let _ = browser
                    .cdp
                    .call::<Value>(None, "Target.closeTarget", json!({ "targetId": tab.target }), SOON)
                    .await;
                browser.gone(tab.number).await;
                self.table.active = browser.new_tab().await.ok();
                let instead =
                    self.table.active.map(|number| format!("; t{number} is an empty one")).unwrap_or_default();
                Err(Failure {
                    message: format!("{}: the tab t{} was closed{instead}", failure.message, tab.number),
                    ..failure
                })
            }
            done => done,
        }
    }
}

/// Ends a browser that nobody has used for some time.
async fn end_when_idle(browser: Weak<Browser>, table: Weak<tokio::sync::Mutex<Table>>, profile: Option<String>) {
    loop {
        tokio::time::sleep(IDLE_LOOK).await;
        let (Some(idle), Some(table)) = (browser.upgrade(), table.upgrade()) else { return };
        if idle.idle() < IDLE {
            continue;
        }
        let mut table = table.lock().await;
        let is_it = table.browsers.get(&profile).is_some_and(|other| Arc::ptr_eq(other, &idle));
        if idle.idle() >= IDLE && is_it {
            table.browsers.remove(&profile);
            idle.close().await;
            return;
        }
    }
}

impl Browser {
    /// Returns once a tab is gone.
    async fn gone(&self, number: u64) {
        for _ in 0..50 {
            if self.tab(number).is_none() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The title of a page: as it says itself, since the browser hears of another one later; as that knows it where it does not answer.
    async fn title(&self, tab: &Tab) -> String {
        let said = async {
            let params = json!({ "expression": "document.title", "returnByValue": true });
            let said = self.cdp.call::<Value>(Some(&tab.session), "Runtime.evaluate", params, TITLE).await.ok()?;
            Some(said["result"]["value"].as_str()?.to_owned())
        };
        let said = if tab.has_crashed { None } else { said.await };
        said.unwrap_or_else(|| tab.title.clone())
    }

    /// Where an element is on its page: x, y, width, height.
    async fn place(&self, element: &Element) -> Result<[f64; 4], Failure> {
        #[derive(Deserialize)]
        struct Model {
            model: Box_,
        }
        #[derive(Deserialize)]
        struct Box_ {
            border: [f64; 8],
        }
        let session = &element.document.session;
        let node = json!({ "backendNodeId": element.node });
        let unseen = |_: Trouble| busy(format!("{} has no place on the page", element.shown()));
        let Model { model } = self.ask(session, "DOM.getBoxModel", node).await.map_err(unseen)?;
        let scrolled = self.scrolled(session).await.map_err(failed)?;
        let [left, top, right, _, _, bottom, ..] = model.border;
        let (width, height) = (right - left, bottom - top);
        if width < 1.0 || height < 1.0 {
            return Err(busy(format!("{} has no place on the page", element.shown())));
        }
        Ok([left + scrolled[0], top + scrolled[1], width, height.min(PICTURE_HEIGHT)])
    }

    /// How far a page is scrolled.
    async fn scrolled(&self, session: &cdp::SessionId) -> Result<[f64; 2], Trouble> {
        let metrics: Value = self.ask(session, "Page.getLayoutMetrics", json!({})).await?;
        let view = &metrics["cssVisualViewport"];
        Ok([view["pageX"].as_f64().unwrap_or(0.0), view["pageY"].as_f64().unwrap_or(0.0)])
    }

    async fn size_of_page(&self, tab: &Tab) -> Result<[f64; 4], Trouble> {
        let metrics: Value = self.ask(&tab.session, "Page.getLayoutMetrics", json!({})).await?;
        let size = &metrics["cssContentSize"];
        let of = |name: &str| size[name].as_f64().unwrap_or(1.0).max(1.0);
        Ok([0.0, 0.0, of("width"), of("height").min(PICTURE_HEIGHT)])
    }
}

/// What a page says is found by pieces, and so would be a secret in it.
fn asks_about_a_secret() -> Failure {
    Failure::denied("a secret was put into this page: nothing is looked for in it until it shows another")
        .hint("look at the whole page")
}

fn no_tab() -> Failure {
    Failure::new(Kind::Unavailable, "no page is open").hint("open one first")
}

fn crashed() -> Failure {
    Failure::new(Kind::Unavailable, "the page has crashed").hint("go to it again, or elsewhere")
}

fn unreachable(target: &Target, error: &str) -> Failure {
    Failure::new(Kind::Unavailable, format!("`{target}` cannot be shown: {}", said(error)))
}
