//! `browser_tab_list`, `browser_tab_open`, `browser_tab_select`, `browser_tab_close` and `browser_close`.

use crate::shown::Shown;
use serde::{Deserialize, Serialize};
use toolcrib_sdk::browser::{self, Tab};
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, notice, schemars};

pub(crate) struct BrowserTabList;

#[derive(Serialize, JsonSchema)]
pub(crate) struct Tabs {
    tabs: Vec<Row>,
}

#[derive(Serialize, JsonSchema)]
struct Row {
    /// The tab's id.
    tab: String,
    url: String,
    title: String,
    /// Whether it is the one that tools act on without an id.
    active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
}

impl Tool for BrowserTabList {
    const NAME: &str = "browser_tab_list";
    const TITLE: Option<&str> = Some("List the tabs");
    const SUMMARY: &str = "List the open tabs with their ids, URLs and titles.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need the id of a tab.",
        when_not_to_use: "To read a page: use `browser_snapshot`.",
        disambiguation: "",
        examples: &[],
    };
    type Input = ();
    type Output = Tabs;

    fn call((): ()) -> Result<Tabs> {
        let tabs: Vec<Row> = browser::tabs()?.into_iter().map(row).collect();
        if tabs.is_empty() {
            notice("no tab is open");
        }
        Ok(Tabs { tabs })
    }
}

fn row(tab: Tab) -> Row {
    let Tab { id, url, title, active, profile } = tab;
    Row { tab: id, url, title, active, profile }
}

pub(crate) struct BrowserTabOpen;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TabOpenInput {
    /// Absolute URL, `https` or `http`; without it the tab is empty.
    pub(crate) url: Option<String>,
    /// Name of a profile that settings allow; it keeps its logins.
    pub(crate) profile: Option<String>,
}

impl Tool for BrowserTabOpen {
    const NAME: &str = "browser_tab_open";
    const TITLE: Option<&str> = Some("Open a tab");
    const SUMMARY: &str = "Open another tab and make it the active one.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A page must stay open, or you need the logins of a profile.",
        when_not_to_use: "To open a page in the active tab: use `browser_navigate`.",
        disambiguation: "",
        examples: &[r#"{"url":"https://example.com/","profile":"work"}"#],
    };
    type Input = TabOpenInput;
    type Output = Shown;

    fn call(TabOpenInput { url, profile }: TabOpenInput) -> Result<Shown> {
        browser::open(url.as_deref(), profile.as_deref()).map(Shown::of)
    }
}

pub(crate) struct BrowserTabSelect;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TabSelectInput {
    /// Tab id.
    pub(crate) tab: String,
}

impl Tool for BrowserTabSelect {
    const NAME: &str = "browser_tab_select";
    const TITLE: Option<&str> = Some("Select a tab");
    const SUMMARY: &str = "Make a tab the active one, which calls without `tab` use.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Several calls are about another tab.",
        when_not_to_use: "",
        disambiguation: "`browser_tab_list` shows the ids.",
        examples: &[r#"{"tab":"t1"}"#],
    };
    type Input = TabSelectInput;
    type Output = Shown;

    fn call(TabSelectInput { tab }: TabSelectInput) -> Result<Shown> {
        browser::activate(&tab).map(Shown::of)
    }
}

pub(crate) struct BrowserTabClose;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TabCloseInput {
    /// Default: the active tab.
    pub(crate) tab: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Closed {
    /// How many were closed.
    closed: u32,
}

impl Tool for BrowserTabClose {
    const NAME: &str = "browser_tab_close";
    const TITLE: Option<&str> = Some("Close a tab");
    const SUMMARY: &str = "Close one tab of the browser.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You no longer need a page.",
        when_not_to_use: "You are done with all pages: use `browser_close`.",
        disambiguation: "",
        examples: &[r#"{"tab":"t2"}"#],
    };
    type Input = TabCloseInput;
    type Output = Closed;

    fn call(TabCloseInput { tab }: TabCloseInput) -> Result<Closed> {
        // Without an id the host would close all of them.
        let tab = match tab {
            Some(tab) => Some(tab),
            None => browser::tabs()?.into_iter().find(|tab| tab.active).map(|tab| tab.id),
        };
        match tab {
            Some(tab) => Ok(Closed { closed: browser::close(&tab)? }),
            None => {
                notice("no tab is open");
                Ok(Closed { closed: 0 })
            }
        }
    }
}

pub(crate) struct BrowserClose;

impl Tool for BrowserClose {
    const NAME: &str = "browser_close";
    const TITLE: Option<&str> = Some("Close the browser");
    const SUMMARY: &str = "Close the browser of this session with all its tabs.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You are done with web pages.",
        when_not_to_use: "To close one tab: use `browser_tab_close`.",
        disambiguation: "",
        examples: &[],
    };
    type Input = ();
    type Output = Closed;

    fn call((): ()) -> Result<Closed> {
        Ok(Closed { closed: browser::close_all()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::played::{effect, tabs};
    use toolcrib_sdk::Failure;
    use toolcrib_sdk::testing::{Host, json};

    #[test]
    fn tabs_are_listed() {
        let host = Host::new().plays("browser.tabs", tabs());
        let listed = json!({ "tabs": [
            { "tab": "t1", "url": "https://example.com/", "title": "Shop", "active": false },
            { "tab": "t2", "url": "https://example.com/cart", "title": "Cart", "active": true, "profile": "work" },
        ] });
        assert_eq!(host.call::<BrowserTabList>(json!({})), Ok(listed));
        let host = Host::new().plays("browser.tabs", json!([]));
        assert_eq!(host.call::<BrowserTabList>(json!({})), Ok(json!({ "tabs": [] })));
        assert_eq!(host.notices(), ["no tab is open"]);
    }

    #[test]
    fn a_tab_is_opened_empty_or_with_a_page_and_a_profile() {
        let shown = json!({ "tab": "t1", "url": "about:blank", "title": "Shop" });
        for (arguments, called) in [
            (json!({}), json!({})),
            (
                json!({ "url": "https://example.com/", "profile": "work" }),
                json!({ "url": "https://example.com/", "profile": "work" }),
            ),
        ] {
            let host = Host::new().plays("browser.open", effect("about:blank", ""));
            assert_eq!(host.call::<BrowserTabOpen>(arguments), Ok(shown.clone()));
            assert_eq!(host.calls()[0].arguments, called);
        }
        let denied = Failure::denied("profile `home` is not granted");
        let host = Host::new().fails("browser.open", denied.clone());
        assert_eq!(host.call::<BrowserTabOpen>(json!({ "profile": "home" })), Err(denied));
    }

    #[test]
    fn a_tab_is_selected() {
        let host = Host::new().plays("browser.activate", effect("", "")).with(json!({ "tab": "t2" }));
        assert_eq!(host.call::<BrowserTabSelect>(json!({ "tab": "t2" })).unwrap()["tab"], "t1");
    }

    #[test]
    fn one_tab_is_closed_and_never_all_of_them() {
        let host = Host::new().plays("browser.close", json!(1)).with(json!({ "tab": "t1" }));
        assert_eq!(host.call::<BrowserTabClose>(json!({ "tab": "t1" })), Ok(json!({ "closed": 1 })));
        let host =
            Host::new().plays("browser.tabs", tabs()).plays("browser.close", json!(1)).with(json!({ "tab": "t2" }));
        assert_eq!(host.call::<BrowserTabClose>(json!({})), Ok(json!({ "closed": 1 })));
        let host = Host::new().plays("browser.tabs", json!([]));
        assert_eq!(host.call::<BrowserTabClose>(json!({})), Ok(json!({ "closed": 0 })));
        assert_eq!(host.notices(), ["no tab is open"]);
        let unknown = Failure::invalid("there is no tab `t9`");
        let host = Host::new().fails("browser.close", unknown.clone());
        assert_eq!(host.call::<BrowserTabClose>(json!({ "tab": "t9" })), Err(unknown));
    }

    #[test]
    fn the_browser_is_closed_with_all_tabs() {
        let host = Host::new().plays("browser.close", json!(2));
        assert_eq!(host.call::<BrowserClose>(json!({})), Ok(json!({ "closed": 2 })));
        assert_eq!(host.calls()[0].arguments, json!({}));
    }
}
