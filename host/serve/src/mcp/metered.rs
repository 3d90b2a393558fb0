//! A transport that takes no further message while too many answers are owed, and counts what is on its way: a client that asks but
//! reads slowly, or not at all, costs bounded memory. Code that makes large answers waits for room ([`Client::has_room`]).

use super::stdio::Client;
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::Notify;

/// A transport, and what it owes.
pub(super) struct Metered<T> {
    inner: T,
    owed: Arc<Owed>,
}

struct Owed {
    most: usize,
    /// Requests without an answer; those that the client has cancelled get none.
    requests: Mutex<HashSet<RequestId>>,
    fewer: Notify,
    client: Arc<Client>,
}

/// A message on its way to the client.
struct Sending {
    owed: Arc<Owed>,
    answers: Option<RequestId>,
}

impl<T> Metered<T> {
    /// Takes so many requests at a time, and tells `client` what is on its way.
    pub(super) fn new(inner: T, most: usize, client: Arc<Client>) -> Self {
        Self { inner, owed: Arc::new(Owed { most, requests: Mutex::default(), fewer: Notify::new(), client }) }
    }
}

impl Owed {
    fn requests(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.requests.lock()
    }

    fn settle(&self, id: &RequestId) {
        self.requests().remove(id);
        self.fewer.notify_waiters();
    }

    /// Returns when another message may be taken. Waiting answers do not count: a client that writes all before it reads would wait for ever.
    async fn room(&self) {
        loop {
            let fewer = self.fewer.notified();
            if self.requests().len() < self.most {
                return;
            }
            fewer.await;
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        // In `drop`, so that a message whose write fails or is given up is no longer counted either.
        self.owed.client.sent();
        if let Some(id) = &self.answers {
            self.owed.settle(id);
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Metered<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answers = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        // Counted now: the future may wait for the messages before it without being polled.
        self.owed.client.sends();
        let sending = Sending { owed: self.owed.clone(), answers };
        let sent = self.inner.send(message);
        async move {
            let _sending = sending;
            sent.await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        // Before anything is read: rmcp drops this future when something else happens first, and must lose no message by that.
        self.owed.room().await;
        let message = self.inner.receive().await?;
        match &message {
            JsonRpcMessage::Request(request) => {
                self.owed.requests().insert(request.id.clone());
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.owed.settle(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
