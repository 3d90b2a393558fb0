//! What plugins keep before the eyes of the session's agent, as a resource. A client that subscribes to it is told of changes.

use super::sessions::Sessions;
use super::{Door, Inner, LOOK};
use rmcp::ErrorData;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, RequestContext, RoleServer, SubscriptionContext};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolcrib::call::session::Session;
use toolcrib::records::{Pinned, Shown};

/// How often it is looked whether another program has changed it.
const OTHERS: Duration = Duration::from_secs(2);
/// Its address.
pub(super) const PINNED: &str = "toolcrib://pinned";

impl Inner {
    /// The text as it is now, a section each; empty where nothing is pinned.
    pub(super) async fn pinned(&self, session: Arc<Session>) -> String {
        let context = self.context.clone().tools(self.catalog.current()).session(session);
        let Shown { pinned, notices } = self.host.pinned(&context).await;
        self.catalog.notices().tell(notices);
        let section = |Pinned { key, text, .. }: &Pinned| format!("# {key}\n\n{}\n", text.trim_end());
        pinned.iter().map(section).collect::<Vec<_>>().join("\n")
    }

    /// Waits until the text is another than `last`, and returns it. What other programs change is seen a little later.
    async fn pinned_after(&self, session: &Arc<Session>, last: &str) -> String {
        let mut pins = self.host.pins();
        loop {
            let now = self.pinned(session.clone()).await;
            if now != last {
                return now;
            }
            let _ = tokio::time::timeout(OTHERS, pins.changed()).await;
        }
    }
}

/// What clients of the newer era can subscribe to.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = requested.clone();
    accepted.resource_subscriptions = Some(vec![PINNED.to_owned()]);
    accepted
}

/// Tells a client of the newer era about changes, as long as it listens.
pub(super) async fn listen(door: &Door, context: &SubscriptionContext) -> Result<(), ErrorData> {
    let is_wanted = context.accepted().resource_subscriptions.as_ref().is_some_and(|uris| !uris.is_empty());
    if !is_wanted {
        return std::future::pending().await;
    }
    let session = door.0.sessions.of(context.request_context())?;
    let mut last = door.0.pinned(session.clone()).await;
    loop {
        last = door.0.pinned_after(&session, &last).await;
        if context.sink().notify_resource_updated(PINNED).await.is_err() {
            return Ok(());
        }
    }
}

/// Tells a client of the older eras about changes, until it wants that no more or has gone.
pub(super) async fn subscribe(door: &Door, uri: &str, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
    check(uri)?;
    let session = door.0.sessions.of(&context)?;
    let mut last = door.0.pinned(session.clone()).await;
    let ends = CancellationToken::new();
    door.0.sessions.subscribe(&context, Some(ends.clone()));
    let (door, peer) = (door.clone(), context.peer);
    tokio::spawn(async move {
        loop {
            last = tokio::select! {
                () = ends.cancelled() => break,
                () = door.0.context.cancel.cancelled() => break,
                () = has_gone(&peer) => break,
                now = door.0.pinned_after(&session, &last) => now,
            };
            if peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(PINNED)).await.is_err() {
                break;
            }
        }
        ends.cancel();
    });
    Ok(())
}

async fn has_gone(peer: &Peer<RoleServer>) {
    while !peer.is_transport_closed() {
        tokio::time::sleep(LOOK).await;
    }
}

pub(super) fn unsubscribe(
    sessions: &Sessions,
    uri: &str,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    check(uri)?;
    sessions.subscribe(context, None);
    Ok(())
}

/// Other resources never change.
fn check(uri: &str) -> Result<(), ErrorData> {
    let refused = || {
        let message = format!("only `{PINNED}` changes, and can be subscribed to");
        ErrorData::invalid_params(message, Some(json!({ "uri": uri })))
    };
    (uri == PINNED).then_some(()).ok_or_else(refused)
}
