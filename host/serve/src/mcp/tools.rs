//! `tools/list`: what policy lets be called, by name, a page at a time.

use super::Inner;
use rmcp::ErrorData;
use rmcp::model::{CacheScope, ListToolsResult, Tool};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use std::sync::Arc;
use toolcrib::call::session::Session;
use toolcrib::formats::{Format, Strictness};

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
        let tools = self.tools(self.sessions.of(context)?).await?;
        let begin = cursor.map_or(0, |last| tools.partition_point(|tool| *tool.name <= *last));
        let end = tools.len().min(begin + PAGE);
        let next = (end < tools.len()).then(|| tools[end - 1].name.to_string());
        let mut page = ListToolsResult::with_all_items(tools[begin..end].to_vec());
        page.next_cursor = next;
        Ok(page.with_ttl_ms(FRESH_MS).with_cache_scope(CacheScope::Private))
    }

    /// All tools that can be called, by name: the same tools give the same bytes.
    async fn tools(&self, session: Arc<Session>) -> Result<Vec<Tool>, ErrorData> {
        let context = self.context.clone().tools(self.catalog.current()).session(session);
        let offered = self.host.offered(&context).await;
        self.catalog.notices().tell(offered.notices);
        let callable = offered.tools.iter().filter(|tool| self.host.denial(tool, &context).is_none());
        let offers = callable.map(|tool| self.host.offer(tool, &context)).collect();
        let definitions = Format::Mcp.definitions(offers, Strictness::default());
        let list = definitions.map_err(|failure| ErrorData::internal_error(failure.message, None))?.json;
        let listed = list.and_then(|mut list| list.get_mut("tools").map(Value::take)).unwrap_or_default();
        let mut tools: Vec<Tool> = serde_json::from_value(listed)
            .map_err(|error| ErrorData::internal_error(format!("a definition is not valid in MCP: {error}"), None))?;
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(tools)
    }
}
