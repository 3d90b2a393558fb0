//! `tools/list`: what policy lets be called, by name, a page at a time.

use super::Inner;
use rmcp::ErrorData;
use rmcp::model::{self, CacheScope, ListToolsResult};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use std::sync::Arc;
use toolcrib::call::CallContext;
use toolcrib::call::session::Session;
use toolcrib::formats::{Format, Strictness};
use toolcrib::tools::definition::Tool;

/// Tools of a page.
const PAGE: usize = 100;
/// How long a client may keep a list, in milliseconds. Clients that listen are notified of a change.
const FRESH_MS: u64 = 60_000;

impl Inner {
    /// Lists the tools that follow `cursor`, which is the name of the last one of the page before.
    pub(super) async fn list(
        &self,
        cursor: Option<String>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let _turn = self.lists.acquire().await;
        self.client.has_room().await;
        let (context, callable) = self.callable(self.sessions.of(context)?).await;
        let tools = match &self.lazy {
            None => self.definitions(&callable, &context)?,
            Some(_) => self.short_list(&callable, &context)?,
        };
        let begin = cursor.map_or(0, |last| tools.partition_point(|tool| *tool.name <= *last));
        let end = tools.len().min(begin + PAGE);
        let next = (end < tools.len()).then(|| tools[end - 1].name.to_string());
        let mut page = ListToolsResult::with_all_items(tools[begin..end].to_vec());
        page.next_cursor = next;
        Ok(page.with_ttl_ms(FRESH_MS).with_cache_scope(CacheScope::Private))
    }

    /// The tools that can be called in a session, and what they would be called with.
    pub(super) async fn callable(&self, session: Arc<Session>) -> (CallContext, Vec<Arc<Tool>>) {
        let context = self.context.clone().tools(self.catalog.current()).session(session);
        let offered = self.host.offered(&context).await;
        self.catalog.notices().tell(offered.notices);
        let mut tools = offered.tools;
        tools.retain(|tool| self.host.denial(tool, &context).is_none());
        (context, tools)
    }

    /// Tools as clients have them, by name: the same tools give the same bytes.
    pub(super) fn definitions(
        &self,
        tools: &[Arc<Tool>],
        context: &CallContext,
    ) -> Result<Vec<model::Tool>, ErrorData> {
        let offers = tools.iter().map(|tool| self.host.offer(tool, context)).collect();
        let definitions = Format::Mcp.definitions(offers, Strictness::default());
        let list = definitions.map_err(|failure| ErrorData::internal_error(failure.message, None))?.json;
        let listed = list.and_then(|mut list| list.get_mut("tools").map(Value::take)).unwrap_or_default();
        typed(listed)
    }
}

/// Definitions in the types of the protocol, by name.
pub(super) fn typed(listed: Value) -> Result<Vec<model::Tool>, ErrorData> {
    let mut tools: Vec<model::Tool> = serde_json::from_value(listed)
        .map_err(|error| ErrorData::internal_error(format!("a definition is not valid in MCP: {error}"), None))?;
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tools)
}
