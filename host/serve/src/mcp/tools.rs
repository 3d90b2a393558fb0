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
pub(super) const FRESH_MS: u64 = 60_000;

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
        let (tools, next) = page(&tools, cursor, |tool| &tool.name);
        let mut page = ListToolsResult::with_all_items(tools);
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

    /// Likewise what people can ask for by name.
    pub(super) async fn prompts(&self, session: Arc<Session>) -> Vec<Arc<Tool>> {
        if !self.has_prompts() {
            return Vec::new();
        }
        let context = self.context.clone().tools(self.catalog.current()).session(session);
        let mut prompts = self.host.offered(&context).await.prompts;
        prompts.retain(|prompt| self.host.denial(prompt, &context).is_none());
        prompts
    }

    /// Whether there is any, whoever may ask for it.
    pub(super) fn has_prompts(&self) -> bool {
        self.catalog.current().plugins().any(|plugin| !plugin.prompts.is_empty())
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

/// Those of a list in the order of their names that follow `cursor`, as many as a page has, and what names the next one.
pub(super) fn page<T: Clone>(
    list: &[T],
    cursor: Option<String>,
    name: impl Fn(&T) -> &str,
) -> (Vec<T>, Option<String>) {
    let begin = cursor.map_or(0, |last| list.partition_point(|one| name(one) <= last.as_str()));
    let end = list.len().min(begin + PAGE);
    (list[begin..end].to_vec(), (end < list.len()).then(|| name(&list[end - 1]).to_owned()))
}

/// Definitions in the types of the protocol, by name.
pub(super) fn typed(listed: Value) -> Result<Vec<model::Tool>, ErrorData> {
    let mut tools: Vec<model::Tool> = serde_json::from_value(listed)
        .map_err(|error| ErrorData::internal_error(format!("a definition is not valid in MCP: {error}"), None))?;
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tools)
}
