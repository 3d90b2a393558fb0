//! Goes to pages.

use super::cdp::Trouble;
use super::desk::{Turn, no_tab};
use super::looking::crashed;
use super::running::{BLANK, Browser, SOON, Tab, failed, said};
use super::{Destination, Effect, PATIENCE};
use base::envelope::{Failure, Kind};
use base::target::Target;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// How the browser's errors about certificates begin.
const UNTRUSTED: &str = "ERR_CERT_";

impl Browser {
    /// Whether a tab shows the document of this loader; one that does not say so holds it up.
    async fn shows(&self, tab: &Tab, loader: &str) -> bool {
        self.documents(tab).await.is_ok_and(|all| all[0].loader == loader)
    }
}

impl Turn<'_> {
    /// Opens a tab, and goes to a page.
    pub fn open(&mut self, page: Option<Target>, profile: Option<String>) -> BoxFuture<'_, Result<Effect, Failure>> {
        Box::pin(async move {
            let browser = self.browser(profile).await?;
            let number = browser.new_tab().await?;
            self.table.active = Some(number);
            match page {
                Some(page) => self.go_in(&browser, number, Destination::Page(page)).await,
                None => {
                    let tab = browser.tab(number).ok_or_else(no_tab)?;
                    Ok(self.effect(&browser, &tab, Vec::new(), Vec::new()).await)
                }
            }
        })
    }

    /// Goes to another page.
    pub fn go<'a>(&'a mut self, tab: Option<&'a str>, to: Destination) -> BoxFuture<'a, Result<Effect, Failure>> {
        Box::pin(async move {
            if tab.is_none() && self.table.browsers.values().all(|browser| browser.tabs().is_empty()) {
                return match to {
                    Destination::Page(page) => self.open(Some(page), None).await,
                    Destination::Back | Destination::Forward | Destination::Reload => Err(no_tab()),
                };
            }
            let (browser, tab) = self.tab(tab)?;
            self.go_in(&browser, tab.number, to).await
        })
    }

    async fn go_in(&mut self, browser: &Arc<Browser>, number: u64, to: Destination) -> Result<Effect, Failure> {
        let tab = browser.tab(number).ok_or_else(no_tab)?;
        let leaving = browser.leaving(number);
        // The document that is to come.
        let mut loader = None;
        let wanted = match to {
            Destination::Page(target) => {
                #[derive(Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Went {
                    loader_id: Option<String>,
                    error_text: Option<String>,
                }
                self.goes_to(&target);
                let params = json!({ "url": target.url().as_str() });
                let went = browser.cdp.call::<Went>(Some(&tab.session), "Page.navigate", params, PATIENCE).await;
                match went {
                    Ok(Went { error_text: Some(error), .. }) => {
                        match browser.keeps_file(target.url().as_str(), &error).await {
                            // What came is a file: the tab stays where it is.
                            Some(true) => {
                                drop(leaving);
                                return Ok(self.effect(browser, &tab, Vec::new(), Vec::new()).await);
                            }
                            Some(false) => self.grant.admit_download()?,
                            None => {}
                        }
                        return Err(self.why_not(browser, number, &target, &error));
                    }
                    Ok(Went { loader_id: Some(new), .. }) => {
                        loader = Some(new);
                        leaving.goes();
                    }
                    // Within the same document.
                    Ok(Went { .. }) => drop(leaving),
                    // It is not the server that takes its time.
                    Err(Trouble::Slow(_)) if browser.talks_on(&tab) => {
                        return self.go_instead(browser, &tab, target).await;
                    }
                    Err(Trouble::Slow(_)) => {
                        let message = format!("`{target}` gave no answer within {} s", PATIENCE.as_secs());
                        return Err(Failure::new(Kind::TimedOut, message));
                    }
                    Err(trouble) => return Err(failed(trouble)),
                }
                Some(target)
            }
            Destination::Reload => {
                Target::parse(&tab.url, None).iter().for_each(|target| self.goes_to(target));
                browser.order(&tab.session, "Page.reload", json!({})).await.map_err(failed)?;
                leaving.goes();
                None
            }
            Destination::Back | Destination::Forward => {
                self.through_history(browser, &tab, matches!(to, Destination::Back)).await?;
                leaving.goes();
                None
            }
        };
        let is_loaded = self.settled(browser, &tab, PATIENCE).await;
        if let (false, Some(target), Some(loader)) = (is_loaded, &wanted, &loader)
            && tab.has_page()
            && !browser.shows(&tab, loader).await
        {
            return self.go_instead(browser, &tab, target.clone()).await;
        }
        self.table.active = Some(number);
        self.check_shown(browser, number, wanted.as_ref())?;
        let mut notices = Vec::new();
        if !is_loaded {
            let seconds = PATIENCE.as_secs();
            notices.push(format!("the page did not end loading within {seconds} s: this is what is there"));
        }
        Ok(self.effect(browser, &tab, Vec::new(), notices).await)
    }

    /// Closes a tab whose page does not let it go, as by dialogs without an end, and goes to a page in another one.
    async fn go_instead(&mut self, browser: &Arc<Browser>, tab: &Tab, page: Target) -> Result<Effect, Failure> {
        let number = self.replace(browser, tab).await?;
        let notice =
            format!("the page of t{} did not let go of it: it was closed, and t{number} is in its place", tab.number);
        let effect = Box::pin(self.go_in(browser, number, Destination::Page(page))).await?;
        Ok(Effect { notices: [vec![notice], effect.notices].concat(), ..effect })
    }

    /// Closes a tab, and opens an empty one in its place, which is the active one then.
    pub(super) async fn replace(&mut self, browser: &Browser, tab: &Tab) -> Result<u64, Failure> {
        let target = json!({ "targetId": tab.target });
        let _ = browser.cdp.call::<IgnoredAny>(None, "Target.closeTarget", target, SOON).await;
        browser.gone(tab.number).await;
        self.table.active = None;
        let number = browser.new_tab().await?;
        self.table.active = Some(number);
        Ok(number)
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
            return Err(Failure::invalid(format!(
                "there is no page to go {} to",
                if back { "back" } else { "forward" }
            )));
        };
        // What was let through once may be closed by now.
        if entry.url != BLANK {
            let target = Target::parse(&entry.url, None)?;
            let target = self.grant.admit_page(target, &*self.scope.backend).await?;
            self.goes_to(&target);
        }
        browser.order(&tab.session, "Page.navigateToHistoryEntry", json!({ "entryId": entry.id })).await.map_err(failed)
    }

    /// The call itself goes to this server.
    fn goes_to(&self, target: &Target) {
        self.callings.iter().for_each(|calling| calling.goes_to(target));
    }

    /// The refusal of a connection to this server in this call, if there was one.
    fn refused(&self, target: &Target) -> Option<Failure> {
        let server = target.server();
        self.callings.iter().find_map(|calling| calling.refusal(&server))
    }

    /// Why a page is not shown: what was refused, of its server or of the one to which that has led.
    fn why_not(&self, browser: &Browser, number: u64, target: &Target, error: &str) -> Failure {
        let led = browser.tab(number).and_then(|tab| Target::parse(&tab.asked, None).ok());
        let elsewhere = || self.refused(led.as_ref()?).map(|refusal| redirects(target, refusal));
        self.refused(target).or_else(elsewhere).unwrap_or_else(|| unreachable(target, error))
    }

    /// Whether a tab shows what it may, and not a word of the host's own about why it does not.
    fn check_shown(&self, browser: &Browser, number: u64, wanted: Option<&Target>) -> Result<(), Failure> {
        let Some(tab) = browser.tab(number) else { return Err(no_tab()) };
        let shown = Target::parse(&tab.url, None).ok();
        let refusal = shown.as_ref().or(wanted).and_then(|target| self.refused(target));
        match refusal {
            Some(refusal) => Err(match wanted {
                Some(wanted) if shown.as_ref().is_some_and(|shown| shown.server() != wanted.server()) => {
                    redirects(wanted, refusal)
                }
                _ => refusal,
            }),
            None if tab.has_crashed => Err(crashed()),
            None => Ok(()),
        }
    }

    /// Waits until a tab has loaded what it is going to; false where that takes too long.
    pub(super) async fn settled(&self, browser: &Browser, tab: &Tab, most: Duration) -> bool {
        !browser.is_leaving(tab.number) || browser.loaded(tab.number, most).await
    }
}

fn redirects(wanted: &Target, refusal: Failure) -> Failure {
    Failure { message: format!("`{wanted}` redirects: {}", refusal.message), ..refusal }
}

fn unreachable(target: &Target, error: &str) -> Failure {
    let failure = Failure::new(Kind::Unavailable, format!("`{target}` cannot be shown: {}", said(error)));
    if !error.contains(UNTRUSTED) {
        return failure;
    }
    failure.hint(
        "the browser does not trust the server's certificate; `ca_file` under [network] names the authority that signed it, where `certutil` is \
         installed, and the certificate of an authority is never a server's own",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_is_not_trusted_has_its_setting_as_hint() {
        let target = Target::parse("https://localhost/", None).expect("a target");
        let hint = |error: &str| unreachable(&target, error).hint.unwrap_or_default();
        for error in ["net::ERR_CERT_INVALID", "net::ERR_CERT_AUTHORITY_INVALID"] {
            assert!(hint(error).contains("`ca_file` under [network]"), "{error}");
        }
        assert_eq!(hint("net::ERR_CONNECTION_REFUSED"), "");
    }
}
