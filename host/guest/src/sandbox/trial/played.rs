//! What an author has played: answers, each for one call.

use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// The answers for one call of a tool.
#[derive(Default)]
pub struct Played {
    lines: Mutex<Vec<(Line, Used)>>,
    /// Calls that no line answers.
    missing: Mutex<Vec<String>>,
}

type Used = bool;

/// One answer of a capability.
#[derive(Clone, Debug)]
pub struct Line {
    /// Interface and function: `http.send`.
    pub call: String,
    /// Arguments that the call must have; it may have others. All of them where it was recorded.
    pub with: Map<String, Value>,
    /// Its result, or a failure as the contract has it.
    pub answer: Result<Value, Map<String, Value>>,
}

impl Played {
    /// Plays these answers: each for one call, the first that fits.
    #[must_use]
    pub fn new(lines: Vec<Line>) -> Self {
        let lines = lines.into_iter().map(|line| (line, false)).collect();
        Self { lines: Mutex::new(lines), missing: Mutex::default() }
    }

    /// What was called and not played, and what was played and not called, a sentence each.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let missing = self.missing.lock().clone().into_iter();
        let lines = self.lines.lock();
        let unused = lines.iter().filter(|(_, used)| !used);
        missing.chain(unused.map(|(line, _)| format!("`{}` was played, and not called so", line.call))).collect()
    }

    pub(super) fn answer(&self, call: &str, given: &Map<String, Value>) -> Option<Result<Value, Map<String, Value>>> {
        let mut lines = self.lines.lock();
        let fits = |(line, used): &&mut (Line, Used)| {
            !*used && line.call == call && line.with.iter().all(|(name, wanted)| given.get(name) == Some(wanted))
        };
        let (line, used) = lines.iter_mut().find(fits)?;
        *used = true;
        Some(line.answer.clone())
    }

    pub(super) fn miss(&self, call: &str, given: &Map<String, Value>, gives: &Value) {
        let line = json!({ "call": call, "with": given, "gives": gives });
        // TOML has no null.
        let line = toml::Value::try_from(&line).map_or_else(|_| line.to_string(), |line| line.to_string());
        self.missing.lock().push(format!("`{call}` was called, and not played; in `host`: {line}"));
    }

    pub(super) fn misfit(&self, why: String) {
        self.missing.lock().push(why);
    }
}
