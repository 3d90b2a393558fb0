//! A list of findings, each good or bad: what the doctors and `plugin check` print.

use super::screen::Page;
use anstyle::AnsiColor;
use base::text::sanitize;
use serde_json::{Value, json};
use toolcrib::envelope::Failure;

/// The column in which a finding begins, after its verdict and its subject.
const FINDING: usize = 26;

/// How a check came out.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    Good,
    /// Works, with a drawback that the finding states.
    Note,
    Bad,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "bad",
        }
    }
}

/// What was found, in order.
#[derive(Default)]
pub(super) struct Report(Vec<Finding>);

struct Finding {
    verdict: Verdict,
    what: &'static str,
    found: String,
}

impl Report {
    pub(super) fn line(&mut self, verdict: Verdict, what: &'static str, found: impl AsRef<str>) {
        self.0.push(Finding { verdict, what, found: sanitize::line(found.as_ref()).into_owned() });
    }

    pub(super) fn is_bad(&self) -> bool {
        self.count(Verdict::Bad) > 0
    }

    /// How many came out so.
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.0.iter().filter(|finding| finding.verdict == verdict).count()
    }

    pub(super) fn page(&self) -> Page {
        let mut page = Page::default();
        for Finding { verdict, what, found } in &self.0 {
            let colour = match verdict {
                Verdict::Good => AnsiColor::Green,
                Verdict::Note => AnsiColor::Yellow,
                Verdict::Bad => AnsiColor::Red,
            };
            page.add_in(colour.on_default(), &format!("{:4}", verdict.name()));
            page.add(&format!("  {what:<18}  {found}")).end(FINDING);
        }
        page
    }

    pub(super) fn to_json(&self) -> Value {
        let finding = |Finding { verdict, what, found }: &Finding| json!({ "verdict": verdict.name(), "check": what, "found": found });
        json!({ "ok": !self.is_bad(), "checks": self.0.iter().map(finding).collect::<Vec<_>>() })
    }

    /// What is wrong, and what to do about it.
    pub(super) fn fault(&mut self, what: &'static str, fault: &Failure) {
        let hint = fault.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        self.line(Verdict::Bad, what, format!("{}{hint}", fault.message));
    }
}
