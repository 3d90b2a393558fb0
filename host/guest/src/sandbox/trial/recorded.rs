//! What capabilities answered in a call, in the form in which an author plays it.

use super::Line;
use parking_lot::Mutex;

/// Keeps the answers of one call of a tool.
pub struct Recorder {
    component: Vec<u8>,
    lines: Mutex<Vec<Line>>,
}

impl Recorder {
    /// Records by `component`, which exports every interface of the contract that it imports, and passes each call on: functions of the host can
    /// be called by their types only where a component exports them.
    #[must_use]
    pub fn new(component: Vec<u8>) -> Self {
        Self { component, lines: Mutex::default() }
    }

    /// What was answered so far, in its order.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        self.lines.lock().clone()
    }

    pub(super) fn component(&self) -> &[u8] {
        &self.component
    }

    pub(super) fn keep(&self, line: Line) {
        self.lines.lock().push(line);
    }
}
