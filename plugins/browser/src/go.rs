//! `browser_navigate` and `browser_wait`: to another page, and to what a page shows later.

use crate::shown::Shown;
use serde::Deserialize;
use std::time::Duration;
use toolcrib_sdk::browser::{self, Destination};
use toolcrib_sdk::duration::Span;
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

/// How long `browser_wait` waits: where it is not told, at least, and at most.
const USUAL: Duration = Duration::from_secs(10);
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(30);

pub(crate) struct BrowserNavigate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NavigateInput {
    /// Absolute URL, `https` or `http`.
    pub(crate) url: Option<String>,
    /// Instead of `url`: go back, go forward or reload.
    pub(crate) to: Option<To>,
    /// Default: the active tab.
    pub(crate) tab: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum To {
    Back,
    Forward,
    Reload,
}

impl Tool for BrowserNavigate {
    const NAME: &str = "browser_navigate";
    const TITLE: Option<&str> = Some("Open a page");
    const SUMMARY: &str = "Open a web page in the browser, or go back, go forward or reload.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A page needs scripts, clicks or a login.",
        when_not_to_use: "To read a plain page or call an HTTP API: use `fetch_url`.",
        disambiguation: "`browser_snapshot` shows the page.",
        examples: &[r#"{"url":"https://example.com/login"}"#, r#"{"to":"back"}"#],
    };
    type Input = NavigateInput;
    type Output = Shown;

    fn call(NavigateInput { url, to, tab }: NavigateInput) -> Result<Shown> {
        let to = match (url, to) {
            (Some(url), None) => Destination::Url(url),
            (None, Some(To::Back)) => Destination::Back,
            (None, Some(To::Forward)) => Destination::Forward,
            (None, Some(To::Reload)) => Destination::Reload,
            (Some(_), Some(_)) => {
                return Err(Failure::invalid("both `url` and `to` are given").hint("omit one of them"));
            }
            (None, None) => {
                return Err(Failure::invalid("neither `url` nor `to` is given")
                    .hint("give a `url`, or `back`, `forward` or `reload` as `to`"));
            }
        };
        browser::go(tab.as_deref(), &to).map(Shown::of)
    }
}

pub(crate) struct BrowserWait;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitInput {
    /// Text on the page.
    pub(crate) text: String,
    /// Wait until it is gone.
    pub(crate) gone: Option<bool>,
    /// Maximum wait: 1 to 30 seconds, or `5s`; default: 10.
    pub(crate) timeout: Option<Span>,
    /// Default: the active tab.
    pub(crate) tab: Option<String>,
}

impl Tool for BrowserWait {
    const NAME: &str = "browser_wait";
    const TITLE: Option<&str> = Some("Wait for a text");
    const SUMMARY: &str = "Wait until a page shows a text or no longer shows it.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "The page loads, saves or searches after a click.",
        when_not_to_use: "",
        disambiguation: "The call fails as `timed_out` if the text does not come in time.",
        examples: &[r#"{"text":"Loading","gone":true,"timeout":"30s"}"#],
    };
    type Input = WaitInput;
    type Output = Shown;

    fn call(WaitInput { text, gone, timeout, tab }: WaitInput) -> Result<Shown> {
        if text.trim().is_empty() {
            return Err(Failure::invalid("`text` is blank").hint("give a text that the page is to show"));
        }
        let time = timeout.as_ref().map_or(Ok(USUAL), |timeout| timeout.of("timeout"))?;
        if !(LEAST..=MOST).contains(&time) {
            return Err(Failure::invalid(format!("`timeout` is {time:?}; use 1s to 30s")));
        }
        browser::wait(tab.as_deref(), &text, gone.unwrap_or(false), time).map(Shown::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::played::{effect, refused};
    use toolcrib_sdk::Kind;
    use toolcrib_sdk::testing::{Host, json};

    #[test]
    fn a_tab_goes_to_a_page_or_from_it() {
        let there = effect("https://example.com/", "");
        for (arguments, called) in [
            (json!({ "url": "https://example.com/" }), json!({ "to": { "url": "https://example.com/" } })),
            (json!({ "to": "back", "tab": "t2" }), json!({ "to": "back", "tab": "t2" })),
            (json!({ "to": "forward" }), json!({ "to": "forward" })),
            (json!({ "to": "reload" }), json!({ "to": "reload" })),
        ] {
            let host = Host::new().plays("browser.go", there.clone());
            let shown = json!({ "tab": "t1", "url": "https://example.com/", "title": "Shop" });
            assert_eq!(host.call::<BrowserNavigate>(arguments), Ok(shown));
            assert_eq!(host.calls()[0].arguments, called);
            assert_eq!(host.notices(), ["a dialog was dismissed"]);
        }
        refused::<BrowserNavigate>(json!({ "url": "https://example.com/", "to": "back" }), "omit one of them");
        refused::<BrowserNavigate>(json!({}), "give a `url`, or `back`, `forward` or `reload` as `to`");
    }

    #[test]
    fn a_failure_of_the_host_comes_as_it_is() {
        let denied = Failure::denied("`10.0.0.1` is not public").hint("`browser.hosts`");
        let host = Host::new().fails("browser.go", denied.clone());
        assert_eq!(host.call::<BrowserNavigate>(json!({ "url": "http://10.0.0.1/" })), Err(denied));
    }

    #[test]
    fn a_text_is_waited_for_ten_seconds_unless_told_otherwise() {
        for (arguments, called) in [
            (json!({ "text": "Paid" }), json!({ "text": "Paid", "gone": false, "ms": 10_000 })),
            (
                json!({ "text": "Wait", "gone": true, "timeout": "30s", "tab": "t2" }),
                json!({ "text": "Wait", "gone": true, "ms": 30_000, "tab": "t2" }),
            ),
        ] {
            let host = Host::new().plays("browser.wait", effect("", "text \"Paid\""));
            let shown = json!({ "tab": "t1", "url": "", "title": "Shop", "changes": "text \"Paid\"" });
            assert_eq!(host.call::<BrowserWait>(arguments), Ok(shown));
            assert_eq!(host.calls()[0].arguments, called);
        }
        refused::<BrowserWait>(json!({ "text": " " }), "give a text that the page is to show");
        let late = Failure::new(Kind::TIMED_OUT, "`Paid` did not appear within 10 s");
        let host = Host::new().fails("browser.wait", late.clone());
        assert_eq!(host.call::<BrowserWait>(json!({ "text": "Paid" })), Err(late));
    }

    #[test]
    fn a_wait_has_one_second_to_thirty() {
        for time in [json!(0), json!(31), json!("999ms"), json!("1m")] {
            let failure = Host::new().call::<BrowserWait>(json!({ "text": "a", "timeout": time })).unwrap_err();
            assert_eq!(failure.kind, Kind::INVALID_ARGUMENTS);
            assert!(failure.message.ends_with("; use 1s to 30s"), "{}", failure.message);
        }
    }
}
