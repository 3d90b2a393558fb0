//! What a model gets of the streams of what has ended: `shell`, `exec` and declared programs.

use serde::Serialize;
use toolcrib_sdk::{Captured, JsonSchema, schemars};

/// Characters of the beginning and of the end of each stream: errors are mostly at the end.
pub(crate) const HEAD_AND_TAIL: (u32, u32) = (25_000, 25_000);
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// -1 when a signal ended it.
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// What happened besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notices: Vec<String>,
}

impl Output {
    /// What a model gets of what has ended, with a notice for each stream that was cut.
    pub(crate) fn of(exit_code: i32, stdout: Captured, stderr: Captured, mut notices: Vec<String>) -> Self {
        for (name, captured) in [("stdout", &stdout), ("stderr", &stderr)] {
            if let (true, Some(place)) = (captured.truncated, &captured.stored) {
                notices.push(format!("{name} has {} bytes; what is kept of it is in `{place}`", captured.bytes));
            }
        }
        Self { exit_code, stdout: stdout.text, stderr: stderr.text, notices }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_was_cut_says_where_more_of_it_is() {
        let whole = Captured { text: "ok".into(), bytes: 2, truncated: false, stored: None };
        let cut = Captured { text: "…".into(), bytes: 90_000, truncated: true, stored: Some("/kept/1".into()) };
        let output = Output::of(0, whole, cut, vec!["left running".into()]);
        assert_eq!(output.notices, ["left running", "stderr has 90000 bytes; what is kept of it is in `/kept/1`"]);
    }
}
