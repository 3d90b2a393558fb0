//! Looks at pages: what they say, what changed, and whether they may be looked at.

use super::act::is_gone;
use super::desk::{Table, Turn};
use super::running::{Browser, Tab, failed, said};
use super::tree::{Element, Page, Wanted};
use super::{Effect, View};
use base::envelope::{Failure, Kind};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How often a page is looked at for a text that is waited for.
const WAIT_LOOK: Duration = Duration::from_millis(100);
/// How long a page may take to say what it is called.
const TITLE: Duration = Duration::from_secs(1);
/// Characters of a title and of an address that are shown.
const TITLE_CHARS: usize = 300;
const URL_CHARS: usize = 2_000;
/// Lines of an effect.
const CHANGED_LINES: usize = 60;
/// Lines of a page up to which an act says what changed: to look at a larger one takes longer than the act.
const QUICK_LINES: usize = 600;

/// The lines of a page, and what is to be said beside them.
pub(crate) type Looked = (Vec<String>, Vec<String>);

impl Turn<'_> {
    /// What a page says.
    pub fn look<'a>(&'a mut self, tab: Option<&'a str>, view: &'a View) -> BoxFuture<'a, Result<Looked, Failure>> {
        Box::pin(async move {
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
            notices.extend(self.happened(&browser).await);
            if is_tainted {
                notices.push("a secret was put into this page: no script and no picture until it shows another".into());
            }
            Ok((lines, notices))
        })
    }

    /// Waits until a page says something, or says it no more.
    pub fn wait<'a>(
        &'a mut self,
        tab: Option<&'a str>,
        text: &'a str,
        gone: bool,
        most: Duration,
    ) -> BoxFuture<'a, Result<Effect, Failure>> {
        Box::pin(async move {
            let (browser, tab) = self.tab(tab)?;
            self.check_alive(&tab)?;
            if self.is_tainted(&browser, &tab).await? {
                return Err(asks_about_a_secret());
            }
            let begin = std::time::Instant::now();
            loop {
                let says = self.says(&browser, &tab, text).await;
                let says = self.unless_stuck(&browser, &tab, says).await?;
                if says != gone {
                    return Ok(self.changed(&browser, &tab).await);
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
        })
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

    /// What became of something that was done: a look that fails afterwards does not undo it.
    pub(super) async fn changed(&mut self, browser: &Arc<Browser>, tab: &Tab) -> Effect {
        let (changes, notices) = match self.changes(browser, tab.number).await {
            Ok(changes) => (changes, Vec::new()),
            Err(failure) => (Vec::new(), vec![format!("what changed is not known: {}", failure.message)]),
        };
        self.effect(browser, tab, changes, notices).await
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

    /// The URL of the document that an element is in.
    pub fn document_of<'a>(&'a self, element: &'a Element) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            let (browser, tab) = self.tab(Some(&format!("t{}", element.tab)))?;
            let documents = browser.documents(&tab).await.map_err(failed)?;
            let document = documents.into_iter().find(|document| {
                (&document.session, &document.frame, &document.loader)
                    == (&element.document.session, &element.document.frame, &element.document.loader)
            });
            document.map(|document| document.url).ok_or_else(|| is_gone(element))
        })
    }

    pub(super) fn check_alive(&self, tab: &Tab) -> Result<(), Failure> {
        if tab.has_crashed { Err(crashed()) } else { Ok(()) }
    }

    /// Whether a document that a tab shows got a secret.
    pub(super) async fn is_tainted(&mut self, browser: &Browser, tab: &Tab) -> Result<bool, Failure> {
        let documents = browser.documents(tab).await.map_err(failed)?;
        Ok(documents.iter().any(|document| self.table.tainted.contains(&document.loader)))
    }

    pub(super) async fn check_untainted(&mut self, browser: &Browser, tab: &Tab, what: &str) -> Result<(), Failure> {
        match self.is_tainted(browser, tab).await? {
            true => {
                Err(Failure::denied(format!("a secret was put into this page: {what} of it until it shows another")))
            }
            false => Ok(()),
        }
    }
}

impl Browser {
    /// The title of a page: as it says itself, since the browser hears of another one later; as that knows it where it does not answer.
    pub(super) async fn title(&self, tab: &Tab) -> String {
        let said = async {
            // More than is shown: what is cut first may cut a secret.
            let title = format!("String(document.title).slice(0, {})", TITLE_CHARS * 10);
            let params = json!({ "expression": title, "returnByValue": true });
            let said = self.cdp.call::<Value>(Some(&tab.session), "Runtime.evaluate", params, TITLE).await.ok()?;
            Some(said["result"]["value"].as_str()?.to_owned())
        };
        let said = if tab.has_crashed { None } else { said.await };
        self.line(said.as_ref().unwrap_or(&tab.title), TITLE_CHARS)
    }

    /// The address of a page.
    pub(super) fn url(&self, tab: &Tab) -> String {
        self.line(&tab.url, URL_CHARS)
    }
}

/// What a page says is found by pieces, and so would be a secret in it.
fn asks_about_a_secret() -> Failure {
    Failure::denied("a secret was put into this page: nothing is looked for in it until it shows another")
        .hint("look at the whole page")
}

pub(super) fn crashed() -> Failure {
    Failure::new(Kind::Unavailable, "the page has crashed").hint("go to it again, or elsewhere")
}
