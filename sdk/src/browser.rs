//! A browser that the host starts, confines and ends: one for a session and profile.
//!
//! Tabs are named by their ids; none stands for the active one. Elements are named by the ids that [`look`] shows, such as `e17`: each stands for
//! one element as long as it is there, and never for another. Text, titles and URLs of a page are written by whoever made the page.
//!
//! ```
//! use toolcrib_sdk::browser::{self, Action, Destination, Entry, View};
//! use toolcrib_sdk::testing::{Host, json, text};
//! use toolcrib_sdk::{Failure, Result};
//!
//! /// Returns the price that a shop shows for an article.
//! fn price(article: &str) -> Result<String> {
//!     browser::go(None, &Destination::Url("https://shop.example.com/".into()))?;
//!     let page = browser::look(None, &View::default().find("Search"))?;
//!     let (_, id) = page.text.split_once('[').ok_or_else(|| Failure::failed("the page has no field for a search"))?;
//!     let field = id.split(']').next();
//!     browser::act(None, field, &Action::Fill(Entry::Text(article.into())), None)?;
//!     let effect = browser::act(None, field, &Action::Press("Enter".into()), None)?;
//!     let page = browser::look(Some(&effect.tab), &View::default().find("€"))?;
//!     Ok(page.text.trim().to_owned())
//! }
//!
//! // In a test:
//! let effect = json!({ "tab": "t1", "url": "https://shop.example.com/", "title": "Shop", "notices": [], "changes": text("") });
//! let host = Host::new()
//!     .plays("browser.go", effect.clone())
//!     .plays("browser.look", text("[e4] searchbox \"Search\"\n"))
//!     .plays("browser.act", effect.clone()).with(json!({ "element": "e4", "action": { "fill": { "text": "lamp" } } }))
//!     .plays("browser.act", effect).with(json!({ "element": "e4", "action": { "press": "Enter" } }))
//!     .plays("browser.look", text("text \"19 €\"\n"));
//! assert_eq!(host.run(|| price("lamp")), Ok("text \"19 €\"".into()));
//! ```

use crate::duration::milliseconds;
use crate::host::browser;
use crate::{Captured, Failure, Result};
use std::time::Duration;

pub use browser::{Action, Answer, Destination, Effect, Entry, Tab, View};

impl View {
    /// Shows only an element and what lies in it.
    #[must_use]
    pub fn within(self, element: &str) -> Self {
        Self { within: Some(element.into()), ..self }
    }

    /// Shows only lines with this text, and those above them; upper and lower case are alike.
    #[must_use]
    pub fn find(self, text: &str) -> Self {
        Self { find: Some(text.into()), ..self }
    }

    /// Shows only lines that are new or other since the last look or act.
    #[must_use]
    pub fn changes(self) -> Self {
        Self { changes: true, ..self }
    }

    /// Shows at most so many characters; 24,000 by default.
    #[must_use]
    pub fn at_most(self, chars: u32) -> Self {
        Self { chars, ..self }
    }
}

/// Returns the tabs of this session's browsers. Starts none.
///
/// # Errors
/// `denied`.
pub fn tabs() -> Result<Vec<Tab>> {
    browser::tabs().map_err(Failure::from_host)
}

/// Opens a tab, which becomes the active one; without a URL an empty one, without a profile one that goes with the session.
///
/// # Errors
/// `denied` by policy and for schemes that are not the web's; `busy` for a profile that somebody else uses; `invalid_arguments`;
/// `timed_out`; or `unavailable` where no browser can be started or confined.
pub fn open(url: Option<&str>, profile: Option<&str>) -> Result<Effect> {
    browser::open(url, profile).map_err(Failure::from_host)
}

/// Goes to another page, and waits until it is loaded, at most 30 seconds. Without a tab, and with none open, one is opened.
///
/// # Errors
/// As [`open`].
pub fn go(tab: Option<&str>, to: &Destination) -> Result<Effect> {
    browser::go(tab, to).map_err(Failure::from_host)
}

/// Returns the page as text: a line for each heading, link, button, field and piece of text, indented by what it lies in. What can be acted on
/// has an id, such as `[e17]`.
///
/// # Errors
/// `busy` for an element that is gone; `invalid_arguments`, `denied`, `timed_out` or `unavailable`.
pub fn look(tab: Option<&str>, view: &View) -> Result<Captured> {
    browser::look(tab, view).map_err(Failure::from_host)
}

/// Acts on an element, which must be the one that was shown; only a key can be pressed without one. `dialogs` answers `confirm` and `prompt` that
/// the act brings about; without it they are dismissed.
///
/// # Errors
/// `busy` for an element that is gone, covered, or another one by now: nothing was done, and another look shows what is there. `denied`, also for
/// a secret in a field or on a site that may not have it; `invalid_arguments`, `timed_out` or `unavailable`.
pub fn act(tab: Option<&str>, element: Option<&str>, action: &Action, dialogs: Option<&Answer>) -> Result<Effect> {
    browser::act(tab, element, action, dialogs).map_err(Failure::from_host)
}

/// Waits until the page has this text, or has it no more, at most 30 seconds.
///
/// # Errors
/// `timed_out` where that does not come about; else as [`look`].
pub fn wait(tab: Option<&str>, text: &str, gone: bool, time: Duration) -> Result<Effect> {
    let ms = u32::try_from(milliseconds(time)).unwrap_or(u32::MAX);
    browser::wait(tab, text, gone, ms).map_err(Failure::from_host)
}

/// Returns a picture of what is seen, of the whole page, or of an element: JPEG, at most 1 MiB.
///
/// # Errors
/// `denied` where the page got a secret; else as [`look`].
pub fn image(tab: Option<&str>, element: Option<&str>, full_page: bool) -> Result<Vec<u8>> {
    browser::image(tab, element, full_page).map_err(Failure::from_host)
}

/// Returns what an expression of JavaScript comes to, as JSON. Waits for a promise, at most 30 seconds.
///
/// # Errors
/// `denied` unless settings allow scripts, and where the page got a secret; else as [`look`].
pub fn evaluate(tab: Option<&str>, script: &str) -> Result<Captured> {
    browser::evaluate(tab, script).map_err(Failure::from_host)
}

/// Makes a tab the active one.
///
/// # Errors
/// `invalid_arguments` where there is no such tab.
pub fn activate(tab: &str) -> Result<Effect> {
    browser::activate(tab).map_err(Failure::from_host)
}

/// Closes a tab.
///
/// # Errors
/// As [`activate`].
pub fn close(tab: &str) -> Result<u32> {
    browser::close(Some(tab)).map_err(Failure::from_host)
}

/// Ends all browsers of this session, with their tabs.
///
/// # Errors
/// `denied`.
pub fn close_all() -> Result<u32> {
    browser::close(None).map_err(Failure::from_host)
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub use contract::browser::{Action, Answer, Destination, Effect, Entry, Tab, View};
    use contract::types::Captured;

    pub(crate) const CALLS: &[&[Signature]] = &[SIGNATURES];

    functions! { "browser":
        tabs() -> Vec<Tab>;
        open(url: Option<&str>, profile: Option<&str>) -> Effect;
        go(tab: Option<&str>, to: &Destination) -> Effect;
        look(tab: Option<&str>, view: &View) -> Captured;
        act(tab: Option<&str>, element: Option<&str>, action: &Action, dialogs: Option<&Answer>) -> Effect;
        wait(tab: Option<&str>, text: &str, gone: bool, ms: u32) -> Effect;
        image(tab: Option<&str>, element: Option<&str>, full_page: bool) -> Vec<u8>;
        evaluate(tab: Option<&str>, script: &str) -> Captured;
        activate(tab: &str) -> Effect;
        close(tab: Option<&str>) -> u32;
    }

    written! {
        Answer { accept, text }
        View { within, find, changes, chars }
    }

    read! {
        Effect { tab, url, title, notices, changes }
        Tab { id, url, title, active, profile }
    }

    impl Write for Destination {
        fn write(&self) -> Value {
            match self {
                Self::Url(url) => json!({ "url": url }),
                Self::Back => "back".into(),
                Self::Forward => "forward".into(),
                Self::Reload => "reload".into(),
            }
        }
    }

    impl Write for Entry {
        fn write(&self) -> Value {
            match self {
                Self::Text(text) => json!({ "text": text }),
                Self::Secret(name) => json!({ "secret": name }),
            }
        }
    }

    impl Write for Action {
        fn write(&self) -> Value {
            match self {
                Self::Click => "click".into(),
                Self::DoubleClick => "double-click".into(),
                Self::Hover => "hover".into(),
                Self::Fill(entry) => json!({ "fill": entry.write() }),
                Self::Select(options) => json!({ "select": options }),
                Self::Check(on) => json!({ "check": on }),
                Self::Press(key) => json!({ "press": key }),
                Self::Upload(files) => json!({ "upload": files }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Host, Value, bytes, json, text};

    fn effect() -> Value {
        json!({ "tab": "t1", "url": "", "title": "", "notices": [], "changes": text("") })
    }

    /// What each call is given when `test` runs.
    fn given(host: &Host, test: impl FnOnce()) -> Vec<Value> {
        host.run(test);
        host.calls().into_iter().map(|call| call.arguments).collect()
    }

    #[test]
    fn an_act_says_what_it_does_in_the_words_of_the_contract() {
        let actions = [
            (Action::Click, json!("click")),
            (Action::DoubleClick, json!("double-click")),
            (Action::Hover, json!("hover")),
            (Action::Fill(Entry::Text("a".into())), json!({ "fill": { "text": "a" } })),
            (Action::Fill(Entry::Secret("SHOP".into())), json!({ "fill": { "secret": "SHOP" } })),
            (Action::Select(vec!["a".into(), "b".into()]), json!({ "select": ["a", "b"] })),
            (Action::Check(true), json!({ "check": true })),
            (Action::Press("Control+a".into()), json!({ "press": "Control+a" })),
            (Action::Upload(vec!["a.txt".into()]), json!({ "upload": ["a.txt"] })),
        ];
        for (action, written) in actions {
            let host = Host::new().plays("browser.act", effect());
            let answer = Answer { accept: true, text: Some("5".into()) };
            let given = given(&host, || drop(act(Some("t2"), Some("e7"), &action, Some(&answer))));
            let dialogs = json!({ "accept": true, "text": "5" });
            assert_eq!(given, [json!({ "tab": "t2", "element": "e7", "action": written, "dialogs": dialogs })]);
        }
    }

    #[test]
    fn what_is_not_said_is_left_to_the_host() {
        let host = Host::new()
            .plays("browser.open", effect())
            .plays("browser.go", effect())
            .plays("browser.look", text(""))
            .plays("browser.wait", effect())
            .plays("browser.image", bytes("jpeg"))
            .plays("browser.close", json!(2));
        let given = given(&host, || {
            assert_eq!(open(None, None).map(|effect| effect.tab), Ok("t1".into()));
            drop(go(None, &Destination::Back));
            drop(look(None, &View::default().within("e2").changes().at_most(500)));
            drop(wait(None, "Paid", true, Duration::from_secs(5_000_000)));
            assert_eq!(image(None, None, false), Ok(b"jpeg".to_vec()));
            assert_eq!(close_all(), Ok(2));
        });
        let wanted = [
            json!({}),
            json!({ "to": "back" }),
            json!({ "view": { "within": "e2", "changes": true, "chars": 500 } }),
            json!({ "text": "Paid", "gone": true, "ms": u32::MAX }),
            json!({ "full-page": false }),
            json!({}),
        ];
        assert_eq!(given, wanted);
    }
}
