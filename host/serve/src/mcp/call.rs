//! `tools/call`: a request to the host, with the client as the one who watches, approves and cancels.

use super::approval::{Asked, CannotBeAsked, Deferred, Waiting, answer_among, can_be_asked, has_decided};
use super::in_place::FirstTurn;
use super::progress::{Progress, Sending};
use super::sessions::{is_stateless, principal};
use super::{Inner, Results};
use futures_util::future::{BoxFuture, Fuse, FusedFuture};
use futures_util::{FutureExt, TryFutureExt};
use hyper::http::request::Parts;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, InputRequiredResult, MetaObject,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib::audit::Batch;
use toolcrib::call::session::Session;
use toolcrib::call::{Arguments, Principal, Request};
use toolcrib::envelope::{Envelope, Failure, Kind};
use toolcrib::formats::{Format, ToolResult};
use toolcrib::policy::approval::{Answer, Approver};

/// Said to a client whose answer came after another one.
const LATE: &str = "the answer of this client came too late and does not count";

/// A call, which whoever serves its request drives. It winds down by itself when nobody waits for it any more.
pub(super) struct Running {
    call: Fuse<BoxFuture<'static, Envelope>>,
    /// Knows whether a call that goes on by itself has ended.
    task: Option<AbortHandle>,
    calls: TaskTracker,
    questions: mpsc::Receiver<Asked>,
    progress: Arc<Progress>,
    pub(super) session: Arc<Session>,
    cancel: CancellationToken,
    results: Results,
    /// The answer that its client gave last came too late.
    is_late: bool,
}

impl Running {
    /// The answer, if nothing has to be waited for.
    pub(super) fn ended(&mut self) -> Option<Result<CallToolResponse, ErrorData>> {
        let envelope = (&mut self.call).now_or_never()?;
        Some(finished(envelope, &self.session, self.results))
    }

    /// The outcome, with a word to a client whose answer did not count.
    fn told(&self, mut envelope: Envelope) -> Envelope {
        match &mut envelope.outcome {
            _ if !self.is_late => {}
            Ok(output) => output.notices.push(LATE.to_owned()),
            Err(failure) => failure.message = format!("{}; {LATE}", failure.message),
        }
        envelope
    }

    pub(super) fn has_ended(&self) -> bool {
        self.task.as_ref().is_some_and(AbortHandle::is_finished)
    }

    /// Lets the call go on while no request waits for it.
    fn go_on(&mut self) {
        let task = self.calls.spawn(std::mem::replace(&mut self.call, Fuse::terminated()));
        self.task = Some(task.abort_handle());
        self.call = task.unwrap_or_else(|_| fault()).boxed().fuse();
    }

    /// Waits for the outcome, or for a question that only another request can answer. Ends the call when the client does not want it
    /// any more.
    async fn turn(&mut self, context: &RequestContext<RoleServer>) -> Turn {
        loop {
            let asked = tokio::select! {
                envelope = &mut self.call => return Turn::Ended(envelope),
                Some(asked) = self.questions.recv() => asked,
                () = context.ct.cancelled() => {
                    self.cancel.cancel();
                    return Turn::Ended((&mut self.call).await);
                }
            };
            if is_stateless(context) {
                return Turn::Asked(Box::new(asked));
            }
            let mut asking = Box::pin(asked.elicit(context));
            let ended = tokio::select! {
                () = &mut asking => continue,
                envelope = &mut self.call => envelope,
                () = context.ct.cancelled() => {
                    self.cancel.cancel();
                    (&mut self.call).await
                }
            };
            // The call has withdrawn its question.
            asking.await;
            return Turn::Ended(ended);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.cancel();
        if self.task.is_none() && !self.call.is_terminated() {
            self.go_on();
        }
    }
}

fn fault() -> Envelope {
    Envelope::new(Err(Failure::new(Kind::Internal, "internal error in the host")))
}

/// What became of a call for now.
pub(super) enum Outcome {
    /// It has ended, in that session.
    Ended(Envelope, Arc<Session>),
    /// It waits for what another request has to bring.
    InputRequired(InputRequiredResult),
}

/// What a request comes to.
enum Turn {
    Ended(Envelope),
    Asked(Box<Asked>),
}

impl Inner {
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let of_request = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<FirstTurn>());
        let first = context.extensions.get::<FirstTurn>().or(of_request).cloned();
        if let Some((first, running)) = first.as_ref().and_then(|first| Some((first, first.again()?))) {
            return first.turn(running, params, context);
        }
        if let Some(lazy) = self.searcher(&params) {
            return Box::pin(self.search(lazy, params.arguments.unwrap_or_default(), &context)).await;
        }
        // Whatever follows is about the tool itself.
        let is_envelope = self.is_envelope(&params);
        let params = match self.opened(params) {
            Ok(params) => params,
            Err(failure) => return self.refused(failure),
        };
        let tools = self.catalog.current();
        if let Err(unknown) = tools.plugin_of(&params.name) {
            // The name of the envelope was right: the model is to hear of what is in it.
            if is_envelope {
                return Box::pin(self.unknown(&params.name, &context)).await;
            }
            return Err(ErrorData::invalid_params(unknown.message, unknown.hint.map(|hint| json!({ "hint": hint }))));
        }
        let principal = self.principal(&context);
        let binding = || binding(&principal, &params);
        let begun = first.as_ref().and_then(FirstTurn::running);
        let running = match (self.resumed(&params, &binding)?, begun) {
            (Some(running), _) | (None, Some(running)) => running,
            (None, None) => {
                let batch = first.as_ref().and_then(|first| first.batch.clone());
                let running = self.begin(principal.clone(), request(&params), &context, batch)?;
                match first {
                    Some(first) => return first.turn(running, params, context),
                    None => running,
                }
            }
        };
        match self.follow(running, binding, &context).await {
            Outcome::Ended(envelope, session) => finished(envelope, &session, self.results),
            Outcome::InputRequired(wanted) => Ok(wanted.into()),
        }
    }

    /// Calls a tool for a request that is answered in another way.
    pub(super) async fn call_for(
        &self,
        params: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Outcome, ErrorData> {
        let principal = self.principal(context);
        let binding = || binding(&principal, &params);
        let running = match self.resumed(&params, &binding)? {
            Some(running) => running,
            None => self.begin(principal.clone(), request(&params), context, None)?,
        };
        Ok(self.follow(running, binding, context).await)
    }

    /// The answer to a call that nothing came of.
    fn refused(&self, failure: Failure) -> Result<CallToolResponse, ErrorData> {
        answered(Envelope::new(Err(failure)), Vec::new(), self.results).map(CallToolResponse::from)
    }

    /// Who calls.
    pub(super) fn principal(&self, context: &RequestContext<RoleServer>) -> Principal {
        principal(context).unwrap_or_else(|| self.context.principal.clone())
    }

    /// The call that a request goes on with, which has the answers that it waits for.
    fn resumed(
        &self,
        params: &CallToolRequestParams,
        binding: &impl Fn() -> Vec<u8>,
    ) -> Result<Option<Running>, ErrorData> {
        let Some(state) = &params.request_state else { return Ok(None) };
        let Some(Waiting { mut running, answer, since }) = self.pending.take(state, &binding()) else {
            return Err(ErrorData::invalid_params(
                "no call waits for this requestState: it was used already, is too old, or was made for another call",
                Some(json!({ "hint": "send the call again without it" })),
            ));
        };
        // This fails if another answer came before, or if the call has given up waiting.
        let is_lost = answer.send(answer_among(params.input_responses.as_ref(), since.elapsed())).is_err();
        // One that comes back for the result alone has not answered.
        running.is_late = is_lost && has_decided(params.input_responses.as_ref());
        Ok(Some(running))
    }

    fn begin(
        &self,
        principal: Principal,
        request: Request,
        context: &RequestContext<RoleServer>,
        batch: Option<Arc<Batch>>,
    ) -> Result<Running, ErrorData> {
        let session = self.sessions.of(context)?;
        let (asking, questions) = mpsc::channel(1);
        let approver: Arc<dyn Approver> = if self.approves_in_advance {
            self.context.approver.clone()
        } else if !can_be_asked(context) {
            Arc::new(CannotBeAsked)
        } else {
            Arc::new(Deferred { asking, is_stateless: is_stateless(context) })
        };
        let progress = Arc::new(Progress::default());
        let cancel = self.context.cancel.child_token();
        let call = self.context.clone().principal(principal).session(session.clone()).tools(self.catalog.current());
        let call = call.events(progress.clone()).approver(approver).cancel(cancel.clone()).batch(batch);
        let (host, roots, ends) = (self.host.clone(), self.roots.clone(), self.calls.token());
        let call = async move {
            let _ends = ends;
            roots.told(host.call(request, &call).await)
        };
        // The request has an answer whatever happens here.
        let call = AssertUnwindSafe(call).catch_unwind().unwrap_or_else(|_| fault());
        let calls = self.calls.clone();
        let (task, results, is_late) = (None, self.results, false);
        Ok(Running { call: call.boxed().fuse(), task, calls, questions, progress, session, cancel, results, is_late })
    }

    /// Serves a call until its outcome, or until it has to wait for another request.
    async fn follow(
        &self,
        mut running: Running,
        binding: impl Fn() -> Vec<u8>,
        context: &RequestContext<RoleServer>,
    ) -> Outcome {
        let token = context.meta.get_progress_token();
        let sending: Option<Sending> = token.map(|token| running.progress.send_to(context.peer.clone(), token));
        let result = loop {
            let asked = match running.turn(context).await {
                Turn::Ended(envelope) => break Outcome::Ended(running.told(envelope), running.session.clone()),
                Turn::Asked(asked) => asked,
            };
            running.go_on();
            match self.pending.park(running, *asked, &binding()) {
                Ok(input_required) => break Outcome::InputRequired(input_required),
                Err(Waiting { running: again, answer, .. }) => {
                    running = again;
                    let _ = answer.send(Answer::Nobody {
                        reason: "too many calls wait for a person".into(),
                        hint: "answer some of them first".into(),
                    });
                }
            }
        };
        // Whatever is sent for a request comes before its result.
        if let Some(sending) = sending {
            sending.stop().await;
        }
        result
    }
}

fn request(params: &CallToolRequestParams) -> Request {
    let arguments = Value::Object(params.arguments.clone().unwrap_or_default());
    Request { tool: params.name.to_string(), arguments: Arguments::Json(arguments) }
}

/// What a `requestState` is good for: this caller, tool and arguments.
fn binding(principal: &Principal, params: &CallToolRequestParams) -> Vec<u8> {
    let mut arguments = Value::Object(params.arguments.clone().unwrap_or_default());
    arguments.sort_all_objects();
    Sha256::digest(json!([principal, params.name, arguments]).to_string()).to_vec()
}

/// The outcome as the protocol has it, with the output that was kept as links.
fn finished(mut envelope: Envelope, session: &Session, results: Results) -> Result<CallToolResponse, ErrorData> {
    let links = super::resources::links(&std::mem::take(&mut envelope.kept), session);
    answered(envelope, links, results).map(CallToolResponse::from)
}

/// The failure of a call that answers a request of another kind.
pub(super) fn refused(failure: Failure) -> ErrorData {
    let code = match failure.kind {
        Kind::UnknownTool | Kind::InvalidArguments | Kind::Denied | Kind::Usage => ErrorCode::INVALID_PARAMS,
        Kind::Internal
        | Kind::Limit
        | Kind::TimedOut
        | Kind::Cancelled
        | Kind::Busy
        | Kind::Unavailable
        | Kind::OutcomeUnknown
        | Kind::ExecutionFailed => ErrorCode::INTERNAL_ERROR,
    };
    let said = failure.to_json();
    ErrorData::new(code, failure.message, Some(said))
}

/// The outcome of whatever was called, with links beside it.
pub(super) fn answered(envelope: Envelope, links: Vec<Value>, results: Results) -> Result<CallToolResult, ErrorData> {
    let ToolResult { text, parts, structured, meta, is_error, .. } = match results {
        Results::Text => Format::Mcp.result(envelope),
        Results::Envelope => Format::Mcp.enveloped(envelope),
    };
    let others = parts.into_iter().chain(links).map(serde_json::from_value);
    let content = [Ok(ContentBlock::text(text))].into_iter().chain(others).collect::<Result<_, _>>();
    let content = content
        .map_err(|error| ErrorData::internal_error(format!("the content is not valid in MCP: {error}"), None))?;
    let mut result = CallToolResult::success(content);
    result.structured_content = structured;
    result.is_error = Some(is_error);
    result.meta = meta.map(MetaObject);
    Ok(result)
}
