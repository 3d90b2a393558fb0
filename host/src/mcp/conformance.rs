//! What the protocol's conformance suite calls by fixed names: tools, prompts and resources that do what its scenarios
//! ask for and reach nothing of this machine. Only with the feature `conformance`, never in a normal build.
//!
//! Names and texts are those of `@modelcontextprotocol/conformance`; `tests/mcp/conformance/run` runs it.

#![expect(deprecated, reason = "the sets still ask for sampling, roots, logging and the older subscriptions")]

mod ask;
mod catalog;
mod content;
mod input;
mod prompts;
mod resources;
mod schemas;
mod server_asks;
mod signals;
mod tasks;

use catalog::Call;
use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
    ErrorData, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, RequestStateCodec, ServerCapabilities,
    ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use signals::Change;
use tokio::sync::broadcast;

/// How long a client may keep what never changes.
const FRESH_MS: u64 = 60_000;

/// The server that the suite talks to; clones share their tasks, their subscribers and the key of `requestState`.
#[derive(Clone)]
pub(crate) struct Fixture {
    seal: RequestStateCodec,
    tasks: TaskManager,
    changes: broadcast::Sender<Change>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let mut key = [0; RequestStateCodec::MIN_KEY_LENGTH];
        getrandom::fill(&mut key).expect("the system has random numbers");
        let seal = RequestStateCodec::try_new(key).expect("the key is as long as it has to be");
        Self { seal, tasks: TaskManager::new(), changes: broadcast::channel(16).0 }
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        let server = Implementation::new("toolcrib-conformance", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(server)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = catalog::all().map(catalog::Entry::definition).collect();
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(FRESH_MS).with_cache_scope(CacheScope::Public))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        catalog::find(name).map(catalog::Entry::definition)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match catalog::find(&request.name) {
            Some(entry) => (entry.call)(Call { fixture: self.clone(), request, context }).await,
            None => Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None)),
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = prompts::all();
        Ok(ListPromptsResult::with_all_items(prompts).with_ttl_ms(FRESH_MS).with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request, &context)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(prompts::complete(&request))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = resources::all();
        Ok(ListResourcesResult::with_all_items(resources).with_ttl_ms(FRESH_MS).with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let list = ListResourceTemplatesResult::with_all_items(resources::templates());
        Ok(list.with_ttl_ms(FRESH_MS).with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = ReadResourceResult::new(vec![resources::read(&request.uri)?]);
        Ok(contents.with_ttl_ms(FRESH_MS).with_cache_scope(CacheScope::Public).into())
    }

    /// The watched resource never changes, so nothing has to be remembered.
    async fn subscribe(&self, request: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        resources::read(&request.uri).map(drop)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        resources::read(&request.uri).map(drop)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        signals::listen(self.changes.subscribe(), context).await;
        Ok(())
    }

    /// Every level is answered alike: the messages of the fixture are few.
    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }
}
