//! What is returned: where a tab is and what has changed there, with a notice for text that was cut.

use serde::Serialize;
use toolcrib_sdk::browser::{self, Effect};
use toolcrib_sdk::{Captured, Failure, JsonSchema, Kind, Result, notice, schemars};

/// What became of an act.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Shown {
    /// The tab's id.
    tab: String,
    url: String,
    title: String,
    /// Lines of the page that are new or different; absent if there are none, and if another page is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<String>,
}

/// Where a tab is.
#[derive(Serialize, JsonSchema)]
pub(crate) struct At {
    /// The tab's id.
    pub(crate) tab: String,
    pub(crate) url: String,
    pub(crate) title: String,
}

impl Shown {
    /// Returns what a model gets of an effect; what happened besides become notices.
    pub(crate) fn of(effect: Effect) -> Self {
        let Effect { tab, url, title, notices, changes } = effect;
        notices.into_iter().for_each(notice);
        let changes = (!changes.text.is_empty()).then(|| text("`changes`", "", &changes));
        Self { tab, url, title, changes }
    }
}

/// Looks at a tab, or at the active one, and returns where that is as well: scripts may have gone elsewhere since the last action.
pub(crate) fn look_at<T>(tab: Option<&str>, look: impl FnOnce(Option<&str>) -> Result<T>) -> Result<(T, At)> {
    let is_meant = |other: &browser::Tab| tab.map_or(other.active, |tab| tab == other.id);
    let found = browser::tabs()?.into_iter().find(is_meant);
    // By its id from here on: a page can open another tab, which may be the active one then. Where none is found, the host says why.
    let seen = look(found.as_ref().map(|found| found.id.as_str()).or(tab))?;
    match found {
        Some(browser::Tab { id, url, title, .. }) => Ok((seen, At { tab: id, url, title })),
        None => Err(Failure::new(Kind::BUSY, "the tab was opened during the call").hint("call again")),
    }
}

/// Returns a text with a mark where it was cut, and then tells where more of it is; `remedy` says how to see a part.
pub(crate) fn text(what: &str, remedy: &str, captured: &Captured) -> String {
    if captured.truncated {
        let rest = match &captured.stored {
            Some(place) => format!("more of it is kept as `{place}`"),
            None => "the rest was not kept".into(),
        };
        notice(format!("{what} has {} bytes, this is its beginning; {remedy}{rest}", captured.bytes));
    }
    captured.marked()
}
