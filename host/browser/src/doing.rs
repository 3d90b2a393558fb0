//! Does something in pages: acts, and scripts.

use super::act::{Action, Filling, busy};
use super::desk::Turn;
use super::keys::Key;
use super::running::{Browser, Tab, failed};
use super::tree::{Document, Element};
use super::{Answer, Effect, PATIENCE};
use base::envelope::{Failure, Kind};
use base::target::Target;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Characters of what a script throws.
const THROWN_CHARS: usize = 400;
/// How long a page that left a command without an answer may take to show that it answers at all.
const ALIVE: Duration = Duration::from_secs(3);

impl Turn<'_> {
    /// Does something with an element, or with the whole page.
    pub fn act<'a>(
        &'a mut self,
        tab: Option<&'a str>,
        element: Option<(u64, Element)>,
        action: &'a Action,
        answer: Option<Answer>,
    ) -> BoxFuture<'a, Result<Effect, Failure>> {
        Box::pin(async move {
            let (browser, tab) = self.tab(tab)?;
            self.check_alive(&tab)?;
            // Input to a tab behind another is never answered.
            browser.order(&tab.session, "Page.bringToFront", json!({})).await.map_err(failed)?;
            let answering = browser.answering(tab.number, answer);
            // Before: the secret may be there though nobody hears of it.
            if let (Some((_, element)), Action::Fill(Filling::Secret(_))) = (&element, action) {
                self.table.tainted.insert(element.document.loader.clone());
            }
            let done =
                match (&element, action) {
                    (Some((_, element)), action) => browser.act(element, action).await,
                    (None, Action::Press(key)) => self.press(&browser, &tab, key).await,
                    (
                        None,
                        Action::Click { .. }
                        | Action::Hover
                        | Action::Fill(_)
                        | Action::Select(_)
                        | Action::Check(_)
                        | Action::Upload(_),
                    ) => Err(Failure::invalid("say which element")
                        .hint("give its id, as a look at the page shows it: `e17`")),
                };
            let done = self.unless_stuck(&browser, &tab, done).await;
            done?;
            // What the act has set going has begun once the page answers.
            let _ = browser.order(&tab.session, "Runtime.evaluate", json!({ "expression": "1" })).await;
            self.settled(&browser, &tab, PATIENCE).await;
            drop(answering);
            self.table.acted = element.map(|(_, element)| element.document).or(self.table.acted.take());
            Ok(self.changed(&browser, &tab).await)
        })
    }

    /// Presses a key where the focus is: in the page itself, or where something was done before. A page may have moved it to another site.
    async fn press(&mut self, browser: &Browser, tab: &Tab, key: &str) -> Result<(), Failure> {
        let key = Key::parse(key)?;
        let documents = browser.documents(tab).await.map_err(failed)?;
        let mut focused = documents[0].clone();
        for document in &documents {
            if browser.has_focus(document).await {
                focused = document.clone();
            }
        }
        let site = |document: &Document| Target::parse(&document.url, None).ok().map(|target| target.server());
        let is_own =
            focused == documents[0] || site(&focused).is_some_and(|site_of| site(&documents[0]) == Some(site_of));
        if !is_own && self.table.acted.as_ref() != Some(&focused) {
            let whose = site(&focused).unwrap_or_else(|| "no address".into());
            return Err(busy(format!("the focus is in a frame of {whose}, where nothing was done before"))
                .hint("say which element gets the key"));
        }
        let world = browser.world(&focused).await.map_err(failed)?;
        browser.press(&focused, world, None, &key).await
    }

    /// What a script comes to.
    pub fn evaluate<'a>(&'a mut self, tab: Option<&'a str>, script: &'a str) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            let (browser, tab) = self.tab(tab)?;
            self.check_alive(&tab)?;
            self.check_untainted(&browser, &tab, "no script is run").await?;
            let params =
                json!({ "expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true });
            let evaluated = browser.cdp.call::<Value>(Some(&tab.session), "Runtime.evaluate", params, PATIENCE).await;
            let answer = self.unless_stuck(&browser, &tab, evaluated.map_err(failed)).await?;
            if let Some(thrown) = answer.get("exceptionDetails") {
                let text =
                    thrown["exception"]["description"].as_str().or(thrown["text"].as_str()).unwrap_or("it throws");
                return Err(Failure::failed(format!("the script throws: {}", browser.line(text, THROWN_CHARS))));
            }
            Ok(answer["result"].get("value").unwrap_or(&Value::Null).to_string())
        })
    }

    /// A page that does not answer any more loses its tab to an empty one, so that others go on.
    pub(super) async fn unless_stuck<T>(
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
                    ALIVE,
                );
                if answers.await.is_ok() {
                    return Err(failure);
                }
                let empty = self.replace(browser, tab).await.ok();
                let instead = empty.map(|number| format!("; t{number} is an empty one")).unwrap_or_default();
                Err(Failure {
                    message: format!("{}: the tab t{} was closed{instead}", failure.message, tab.number),
                    ..failure
                })
            }
            done => done,
        }
    }
}

impl Browser {
    /// Whether the focus is in a document, and not in a frame within it.
    async fn has_focus(&self, document: &Document) -> bool {
        // By the getters themselves: names of elements take the place of others.
        const FOCUSED: &str = "Document.prototype.hasFocus.call(document) && \
            !(Object.getOwnPropertyDescriptor(Document.prototype, 'activeElement').get.call(document) instanceof HTMLIFrameElement)";
        let asked = async {
            let world = self.world(document).await?;
            let params = json!({ "expression": FOCUSED, "contextId": world, "returnByValue": true });
            self.ask::<Value>(&document.session, "Runtime.evaluate", params).await
        };
        asked.await.is_ok_and(|said| said["result"]["value"] == json!(true))
    }
}
