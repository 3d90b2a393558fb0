//! The list of fixture tools: what each is called, takes and does. The tools themselves are the modules' beside it.

use super::Fixture;
use super::{content, input, schemas, server_asks, signals, tasks};
use futures_util::future::BoxFuture;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Tool, object};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use std::future::ready;

/// A fixture tool.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) input: fn() -> Value,
    pub(super) call: fn(Call) -> Answer,
}

/// One call of a tool.
pub(super) struct Call {
    pub(super) fixture: Fixture,
    pub(super) request: CallToolRequestParams,
    pub(super) context: RequestContext<RoleServer>,
}

pub(super) type Answer = BoxFuture<'static, Result<CallToolResponse, ErrorData>>;

/// Every tool, in the order in which they are listed. The first can be called without arguments, as the suite does.
pub(super) fn all() -> impl Iterator<Item = &'static Entry> {
    [content::TOOLS, signals::TOOLS, server_asks::TOOLS, input::TOOLS, tasks::TOOLS, schemas::TOOLS]
        .into_iter()
        .flatten()
}

pub(super) fn find(name: &str) -> Option<&'static Entry> {
    all().find(|entry| entry.name == name)
}

impl Entry {
    /// A tool without arguments.
    pub(super) const fn plain(name: &'static str, summary: &'static str, call: fn(Call) -> Answer) -> Self {
        Self { name, summary, input: || json!({"type": "object", "additionalProperties": false}), call }
    }

    pub(super) fn definition(&self) -> Tool {
        Tool::new(self.name, self.summary, object((self.input)()))
    }
}

impl Call {
    pub(super) fn argument(&self, name: &str) -> Option<&Value> {
        self.request.arguments.as_ref()?.get(name)
    }

    /// A text argument; empty when there is none.
    pub(super) fn text(&self, name: &str) -> String {
        self.argument(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

/// The answer of a tool that has nothing to wait for.
pub(super) fn done(answer: Result<CallToolResponse, ErrorData>) -> Answer {
    Box::pin(ready(answer))
}

/// A result of one text.
pub(super) fn said(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}
