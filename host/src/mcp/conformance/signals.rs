//! Tools that send notifications, and the streams of those that wait for them.

use super::catalog::{Call, Entry, done, said};
use rmcp::model::{
    CallToolResponse, ErrorData, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::sleep;

pub(super) const TOOLS: &[Entry] = &[
    Entry::plain("test_tool_with_logging", "Sends three log messages.", |call| Box::pin(with_logging(call))),
    Entry::plain("test_logging_tool", "Sends a log message when the request allows it.", |call| {
        Box::pin(with_one_message(call))
    }),
    Entry::plain("test_tool_with_progress", "Reports its progress three times.", |call| Box::pin(with_progress(call))),
    // rmcp closes streams from its session manager alone; this one stays open, which the suite takes as well.
    Entry::plain("test_reconnection", "Answers on the stream on which it was called.", |_| {
        done(Ok(said("The stream was not closed.").into()))
    }),
    Entry::plain("test_trigger_tool_change", "Says that the list of tools has changed.", |call| {
        announce(&call, Change::Tools);
        done(Ok(said("The list of tools is said to have changed.").into()))
    }),
    Entry::plain("test_trigger_prompt_change", "Says that the list of prompts has changed.", |call| {
        announce(&call, Change::Prompts);
        done(Ok(said("The list of prompts is said to have changed.").into()))
    }),
];

/// The suite wants its messages to be apart in time.
const PAUSE: Duration = Duration::from_millis(50);

/// A list that is said to have changed. It stays as it is: what the suite looks at is the notification.
#[derive(Clone, Copy)]
pub(super) enum Change {
    Tools,
    Prompts,
}

fn announce(call: &Call, change: Change) {
    // Nobody has to be listening.
    let _ = call.fixture.changes.send(change);
}

/// Passes changes on until the client has enough; the sink sends only those that it asked for.
pub(super) async fn listen(mut changes: broadcast::Receiver<Change>, context: SubscriptionContext) {
    loop {
        let change = tokio::select! {
            () = context.cancelled() => return,
            change = changes.recv() => change,
        };
        let sink = context.sink();
        let _ = match change {
            Ok(Change::Tools) => sink.notify_tool_list_changed().await,
            Ok(Change::Prompts) => sink.notify_prompt_list_changed().await,
            Err(broadcast::error::RecvError::Lagged(_)) => Ok(()),
            Err(broadcast::error::RecvError::Closed) => return,
        };
    }
}

async fn with_logging(call: Call) -> Result<CallToolResponse, ErrorData> {
    log(&call.context, "Tool execution started").await;
    sleep(PAUSE).await;
    log(&call.context, "Tool processing data").await;
    sleep(PAUSE).await;
    log(&call.context, "Tool execution completed").await;
    Ok(said("Three messages were logged.").into())
}

async fn with_one_message(call: Call) -> Result<CallToolResponse, ErrorData> {
    log(&call.context, "Tool execution started").await;
    Ok(said("One message was logged, if the request allowed it.").into())
}

/// From 2026-07-28 on a request has to ask for messages; before, `logging/setLevel` did for the whole session.
async fn log(context: &RequestContext<RoleServer>, text: &str) {
    let in_session = context.protocol_version().is_some_and(|version| version.has_initialize());
    if in_session || context.meta.log_level().is_some() {
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, text.into());
        let _ = context.peer.notify_logging_message(message).await;
    }
}

async fn with_progress(call: Call) -> Result<CallToolResponse, ErrorData> {
    for percent in [0.0, 50.0, 100.0] {
        if let Some(token) = call.context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, percent).with_total(100.0);
            let _ = call.context.peer.notify_progress(progress).await;
        }
        if percent < 100.0 {
            sleep(PAUSE).await;
        }
    }
    Ok(said("All of it is done.").into())
}
