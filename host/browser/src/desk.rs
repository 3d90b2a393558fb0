//! A plugin's browsers in a session, and the turns of the calls that use them.

use super::act::busy;
use super::program::Programs;
use super::running::{Browser, Ids, SOON, Tab, failed, said};
use super::tree::{Document, Element, Elements};
use super::{Effect, Shown};
use base::envelope::{Failure, Kind};
use egress::Calling;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use policy::browser::BrowserGrant;
use policy::scope::Scope;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio_util::task::TaskTracker;

/// How long a browser is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(600);
/// How often that is looked at.
const IDLE_LOOK: Duration = Duration::from_secs(30);
/// Characters of a notice.
const NOTICE_CHARS: usize = 400;

/// Browsers that are being ended, as their sessions are over.
static ENDS: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);

/// Returns when the browsers of sessions that are over have ended, as far as that takes a bearable time.
pub fn ended() -> BoxFuture<'static, ()> {
    Box::pin(async move {
        ENDS.close();
        let _ = tokio::time::timeout(SOON * 2, ENDS.wait()).await;
    })
}

/// The browsers of a session, by the plugins whose they are.
#[derive(Default)]
pub struct Desks(Mutex<HashMap<String, Arc<Desk>>>);

impl Desks {
    /// That of a plugin.
    pub fn of(&self, grant: &BrowserGrant) -> Arc<Desk> {
        self.0.lock().entry(grant.owner()).or_default().clone()
    }
}

/// The browsers of a session and a plugin.
#[derive(Default)]
pub struct Desk {
    ids: Arc<Ids>,
    table: Arc<tokio::sync::Mutex<Table>>,
}

/// What is known to whoever has the turn.
#[derive(Default)]
pub(super) struct Table {
    pub(super) browsers: BTreeMap<Option<String>, Arc<Browser>>,
    pub(super) active: Option<u64>,
    pub(super) elements: Elements,
    /// The lines of tabs when they were looked at last, and of which document.
    pub(super) seen: HashMap<u64, (Document, Vec<String>)>,
    /// Documents that got a secret, by their loaders. A browser may show one again that was left, so none is forgotten.
    pub(super) tainted: HashSet<String>,
    /// The document that something was done in last.
    pub(super) acted: Option<Document>,
}

impl Table {
    /// Forgets what is of browsers and tabs that are there no more.
    fn forget(&mut self) {
        self.browsers.retain(|_, browser| !browser.cdp.has_ended());
        let tabs: Vec<Tab> = self.browsers.values().flat_map(|browser| browser.tabs()).collect();
        let is_there = |number: u64| tabs.iter().any(|tab| tab.number == number);
        self.seen.retain(|number, _| is_there(*number));
        self.elements.retain(is_there);
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        for browser in std::mem::take(&mut self.browsers).into_values() {
            ENDS.spawn_on(async move { browser.close().await }, &runtime);
        }
    }
}

/// A call's turn at a desk: one at a time.
pub struct Turn<'t> {
    pub(super) table: OwnedMutexGuard<Table>,
    desk: &'t Desk,
    pub(super) grant: &'t BrowserGrant,
    pub(super) scope: &'t Arc<Scope>,
    programs: &'t Programs,
    /// By whose rules its browsers connect while it lasts.
    pub(super) callings: Vec<Calling>,
}

impl Desk {
    /// Waits for a turn.
    pub fn turn<'t>(
        &'t self,
        grant: &'t BrowserGrant,
        scope: &'t Arc<Scope>,
        programs: &'t Programs,
    ) -> BoxFuture<'t, Turn<'t>> {
        Box::pin(async move {
            let mut table = self.table.clone().lock_owned().await;
            // What has ended since is known by its tabs being gone.
            table.forget();
            let callings: Vec<Calling> = table.browsers.values().map(|browser| browser.called(grant, scope)).collect();
            for browser in table.browsers.values() {
                // One that does not answer any more says so where it is used.
                let _ = browser.keep_downloads(grant.downloads()).await;
            }
            for (server, decided) in callings.iter().flat_map(Calling::before) {
                BrowserGrant::record(
                    format!("connect to {server}, before this call"),
                    decided.as_ref().copied(),
                    scope,
                );
            }
            table.browsers.values().for_each(|browser| browser.touch());
            Turn { table, desk: self, grant, scope, programs, callings }
        })
    }
}

impl Browser {
    fn called(&self, grant: &BrowserGrant, scope: &Arc<Scope>) -> Calling {
        self.kept.network.called(Arc::new(grant.clone()), scope)
    }

    /// Returns once a tab is gone.
    pub(super) async fn gone(&self, number: u64) {
        for _ in 0..50 {
            if self.tab(number).is_none() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Turn<'_> {
    /// All tabs.
    pub fn tabs(&self) -> BoxFuture<'_, Vec<Shown>> {
        Box::pin(async move {
            let mut all = Vec::new();
            for (profile, browser) in &self.table.browsers {
                for tab in browser.tabs() {
                    let (id, title, profile) = (tab.id(), browser.title(&tab).await, profile.clone());
                    let is_active = self.table.active == Some(tab.number);
                    all.push(Shown { id, url: browser.url(&tab), title, is_active, profile });
                }
            }
            all
        })
    }

    /// Makes a tab the one that is meant where none is named.
    pub fn activate<'a>(&'a mut self, tab: &'a str) -> BoxFuture<'a, Result<Effect, Failure>> {
        Box::pin(async move {
            let (browser, tab) = self.tab(Some(tab))?;
            browser.order(&tab.session, "Page.bringToFront", json!({})).await.map_err(failed)?;
            self.table.active = Some(tab.number);
            Ok(self.effect(&browser, &tab, Vec::new(), Vec::new()).await)
        })
    }

    /// Closes a tab, or all of them with their browsers; returns how many tabs.
    pub fn close<'a>(&'a mut self, tab: Option<&'a str>) -> BoxFuture<'a, Result<u32, Failure>> {
        Box::pin(async move {
            let Some(tab) = tab else {
                let browsers = std::mem::take(&mut self.table.browsers);
                let closed: usize = browsers.values().map(|browser| browser.tabs().len()).sum();
                for browser in browsers.into_values() {
                    browser.close().await;
                }
                self.table.forget();
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
        })
    }

    /// The element of an id, as it was shown.
    pub fn element_of(&self, tab: Option<&str>, id: &str) -> Result<(u64, Element), Failure> {
        let (_, tab) = self.tab(tab)?;
        self.element(&tab, id)
    }

    pub(super) fn element(&self, tab: &Tab, id: &str) -> Result<(u64, Element), Failure> {
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

    /// The tab of an id, or the active one, with its browser.
    pub(super) fn tab(&self, id: Option<&str>) -> Result<(Arc<Browser>, Tab), Failure> {
        let number = match id {
            None => self.table.active.ok_or_else(no_tab)?,
            Some(id) => id.strip_prefix('t').and_then(|digits| digits.parse().ok()).ok_or_else(|| {
                Failure::invalid(format!("`{}` is no id of a tab", said(id)))
                    .hint("tabs are listed with their ids: `t1`")
            })?,
        };
        let mut browsers = self.table.browsers.iter();
        let found = browsers.find_map(|(profile, browser)| Some((profile, browser, browser.tab(number)?)));
        if let Some((profile, browser, tab)) = found {
            // What the call before was granted may be granted no more.
            profile.as_deref().map_or(Ok(()), |profile| self.grant.admit_profile(profile))?;
            return Ok((browser.clone(), tab));
        }
        Err({
            let is_known = number <= self.desk.ids.tabs.load(Ordering::Relaxed);
            match is_known {
                true => Failure::new(Kind::Unavailable, format!("the tab t{number} is there no more"))
                    .hint("open the page again"),
                false => Failure::invalid(format!("there is no tab t{number}")).hint("tabs are listed with their ids"),
            }
        })
    }

    /// The browser of a profile, started where it does not run.
    pub(super) async fn browser(&mut self, profile: Option<String>) -> Result<Arc<Browser>, Failure> {
        if let Some(browser) = self.table.browsers.get(&profile) {
            return Ok(browser.clone());
        }
        let scope = self.scope;
        let browser = Browser::start(profile.as_deref(), self.programs, scope, self.desk.ids.clone()).await?;
        let browser = Arc::new(browser);
        browser.keep_downloads(self.grant.downloads()).await?;
        self.callings.push(browser.called(self.grant, scope));
        self.table.browsers.insert(profile.clone(), browser.clone());
        tokio::spawn(end_when_idle(Arc::downgrade(&browser), Arc::downgrade(&self.desk.table), profile));
        Ok(browser)
    }

    /// What happened since this was asked last.
    pub(super) async fn happened(&self, browser: &Browser) -> Vec<String> {
        let downloads = self.downloads(browser).await;
        let noted = browser.take_notices();
        let refused = self.callings.iter().flat_map(Calling::refusals);
        noted.iter().map(|notice| browser.line(notice, NOTICE_CHARS)).chain(refused).chain(downloads).collect()
    }

    /// What became of an act, as far as its tab is still there.
    pub(super) async fn effect(
        &mut self,
        browser: &Browser,
        tab: &Tab,
        changes: Vec<String>,
        notices: Vec<String>,
    ) -> Effect {
        let happened = self.happened(browser).await;
        let (id, notices) = (tab.id(), [notices, happened].concat());
        match browser.tab(tab.number) {
            Some(tab) => Effect { tab: id, url: browser.url(&tab), title: browser.title(&tab).await, notices, changes },
            None => {
                let notices = [notices, vec![format!("the tab {id} is there no more")]].concat();
                Effect { tab: id, url: String::new(), title: String::new(), notices, changes }
            }
        }
    }
}

/// Ends a browser after some time without a call.
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

pub(super) fn no_tab() -> Failure {
    Failure::new(Kind::Unavailable, "no page is open").hint("open one first")
}
