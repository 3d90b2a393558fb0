//! What calls leave behind: lines of the audit trail.

use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use toolcrib_tests::Program;

/// How long what was ended may take to go: two seconds, and what a loaded machine takes.
pub(crate) const SOON: Duration = Duration::from_secs(15);

/// The audit trail so far, without a line that is being written.
pub(crate) fn trail(program: &Program) -> Vec<Value> {
    let text = std::fs::read_to_string(program.path("state/toolcrib/audit.jsonl")).unwrap_or_default();
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.map(|line| serde_json::from_str(line).expect("an audit line")).collect()
}

/// Calls that were accepted and have no outcome yet.
pub(crate) fn open_calls(program: &Program) -> usize {
    let trail = trail(program);
    let number = |event: &str| trail.iter().filter(|line| line["event"] == event).count();
    number("accepted").saturating_sub(number("outcome"))
}

/// The outcome of every call of a tool, in order. Every call that was accepted has exactly one.
pub(crate) fn outcomes(program: &Program, tool: &str) -> Vec<String> {
    let mut counts: HashMap<String, (u32, u32)> = HashMap::new();
    let mut outcomes = Vec::new();
    for line in trail(program).iter().filter(|line| line["tool"] == tool) {
        let (accepted, ended) = counts.entry(line["call"].to_string()).or_default();
        if line["event"] == "accepted" {
            *accepted += 1;
        } else {
            *ended += 1;
            outcomes.push(line["outcome"].as_str().expect("a word").to_owned());
        }
    }
    assert!(counts.values().all(|counts| *counts == (1, 1)), "a call without exactly one outcome: {counts:?}");
    outcomes
}
