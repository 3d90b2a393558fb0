//! Calls that are begun where they are read. Most end at their first turn, in which nothing is waited for, and are answered there, without a
//! task or a channel. One that goes on becomes a request like all others, with what was begun, so cancelling, questions and progress are the
//! same for each.

use super::Door;
use super::call::Running;
use futures_util::FutureExt;
use parking_lot::Mutex;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, ClientRequest, ErrorData, Extensions, GetExtensions,
    GetMeta, JsonRpcMessage, RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{Peer, RequestContext, RoleServer, RxJsonRpcMessage, Service, TxJsonRpcMessage};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use toolcrib::audit::Batch;

/// A request for a tool, as it was read.
pub struct Called {
    pub(super) id: RequestId,
    pub(super) params: CallToolRequestParams,
    pub(super) meta: RequestMetaObject,
    pub(super) extensions: Extensions,
}

impl Called {
    /// What was asked, where a message is such a request; else the message.
    pub(super) fn of(message: RxJsonRpcMessage<RoleServer>) -> Result<Self, Box<RxJsonRpcMessage<RoleServer>>> {
        let JsonRpcMessage::Request(mut request) = message else { return Err(Box::new(message)) };
        // It is kept among the extensions.
        let meta = std::mem::take(request.request.get_meta_mut());
        let extensions = std::mem::take(request.request.extensions_mut());
        match request.request {
            ClientRequest::CallToolRequest(call) => Ok(Self { id: request.id, params: call.params, meta, extensions }),
            mut other => {
                *other.extensions_mut() = extensions;
                *other.get_meta_mut() = meta;
                Err(Box::new(JsonRpcMessage::request(other, request.id)))
            }
        }
    }

    /// The same as any other request.
    pub(super) fn into_message(self) -> RxJsonRpcMessage<RoleServer> {
        let mut request = CallToolRequest::new(self.params);
        *request.extensions_mut() = self.extensions;
        let mut request = ClientRequest::CallToolRequest(request);
        *request.get_meta_mut() = self.meta;
        JsonRpcMessage::request(request, self.id)
    }
}

/// What became of a call at its first turn.
pub enum Begun {
    /// It has ended: with this answer.
    Answered(Box<TxJsonRpcMessage<RoleServer>>),
    /// It is a request like others from here on.
    GoesOn(Box<Called>),
}

/// A handler that may begin calls where they are read.
pub trait InPlace: ServerHandler + Clone {
    /// Has a call take its first turn. The peer is who asked; where there is none, the session of the request knows it. With a batch it is
    /// recorded with others.
    fn begin(&self, called: Called, _peer: Option<&Peer<RoleServer>>, _batch: Option<&Arc<Batch>>) -> Begun {
        Begun::GoesOn(Box::new(called))
    }

    /// A client has ended its session.
    fn closed(&self, _session: &str) {}
}

impl InPlace for Door {
    fn closed(&self, session: &str) {
        if let Some(closed) = self.0.sessions.forget(session) {
            let door = self.clone();
            tokio::spawn(async move { door.0.host.close_session(&closed).await });
        }
    }

    fn begin(&self, called: Called, peer: Option<&Peer<RoleServer>>, batch: Option<&Arc<Batch>>) -> Begun {
        let Called { id, params, meta, extensions } = called;
        // Who wants progress gets it from a task of its own, what resumes a call was begun before, and a search waits for a list.
        let is_resumed = params.request_state.is_some();
        let is_plain = meta.get_progress_token().is_none() && !is_resumed && !self.0.waits_for_list(&params);
        let peer = match peer.filter(|_| is_plain) {
            None if is_plain => self.0.sessions.peer_in_use(&extensions),
            known => known.cloned(),
        };
        let Some(peer) = peer else {
            return Begun::GoesOn(Box::new(Called { id, params, meta, extensions }));
        };
        // One that had its first turn has another one.
        let known = extensions.get::<FirstTurn>().cloned();
        let first = known.unwrap_or_else(|| FirstTurn { batch: batch.cloned(), ..FirstTurn::default() });
        first.taken.lock().is_turn = true;
        let mut context = RequestContext::new(id.clone(), peer);
        (context.meta, context.extensions) = (meta, extensions);
        context.extensions.insert(first.clone());
        let called = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        // A fault here must not end the loop that all calls go through.
        let ended = AssertUnwindSafe(self.handle_request(called, context)).catch_unwind().now_or_never();
        if let Some((params, meta, mut extensions)) = first.goes_on() {
            extensions.insert(first);
            return Begun::GoesOn(Box::new(Called { id, params, meta, extensions }));
        }
        Begun::Answered(Box::new(answer(ended.and_then(Result::ok), id)))
    }
}

/// What came of a request; none where that is a fault of the host.
pub(super) fn answer(outcome: Option<Result<ServerResult, ErrorData>>, id: RequestId) -> TxJsonRpcMessage<RoleServer> {
    let outcome = outcome.unwrap_or_else(|| Err(ErrorData::internal_error("internal error in the host", None)));
    match outcome {
        Ok(result) => TxJsonRpcMessage::<RoleServer>::response(result, id),
        Err(error) => JsonRpcMessage::error(error, Some(id)),
    }
}

/// The first turn of a call, in which nothing is waited for, and another one where it waits for its record alone: an extension of its request. If
/// the call goes on, the request does as well, as any other, and takes it from here.
#[derive(Clone, Default)]
pub(super) struct FirstTurn {
    taken: Arc<Mutex<Taken>>,
    /// The calls that are answered with this one.
    pub(super) batch: Option<Arc<Batch>>,
}

#[derive(Default)]
struct Taken {
    /// Nothing is waited for now.
    is_turn: bool,
    running: Option<Running>,
    request: Option<(CallToolRequestParams, RequestMetaObject, Extensions)>,
}

impl FirstTurn {
    /// What the request consists of, if the call has not ended.
    fn goes_on(&self) -> Option<(CallToolRequestParams, RequestMetaObject, Extensions)> {
        let mut taken = self.taken.lock();
        taken.is_turn = false;
        taken.request.take()
    }

    /// The call that was begun, for the request that waits for it.
    pub(super) fn running(&self) -> Option<Running> {
        self.taken.lock().running.take()
    }

    /// The call that was begun, where it only has another turn.
    pub(super) fn again(&self) -> Option<Running> {
        let mut taken = self.taken.lock();
        if taken.is_turn { taken.running.take() } else { None }
    }

    /// Has the call take its turn. The error is for nobody: whoever asked for the first turn sees that the call goes on.
    pub(super) fn turn(
        &self,
        mut running: Running,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(ended) = running.ended() {
            return ended;
        }
        let mut taken = self.taken.lock();
        (taken.running, taken.request) = (Some(running), Some((params, context.meta, context.extensions)));
        Err(ErrorData::internal_error("the call goes on", None))
    }
}
