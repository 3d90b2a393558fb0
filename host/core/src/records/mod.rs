//! What plugins keep, for others than plugins: `pinned.rs` is what an agent sees all the time, `feed.rs` what the embedder gives, `look.rs` what an
//! operator sees.

mod feed;
mod look;
mod pinned;

pub use feed::{Attachment, Feed, Message, StepKind, WorkerStep};
pub use look::{Document, Look};
pub use pinned::{Pinned, Shown};

use crate::Host;
use base::envelope::Failure;
use futures_util::future::BoxFuture;
use store::Embedded;

impl Host {
    /// Makes all vectors that are missing, and says how far it is now and then; none where there is no store.
    ///
    /// # Errors
    ///
    /// `unavailable` where no model is set, or it does not answer.
    pub fn embed<'a>(
        &'a self,
        told: &'a (dyn Fn(&Embedded) + Sync),
    ) -> BoxFuture<'a, Result<Option<Embedded>, Failure>> {
        self.services.store.embed_missing(told)
    }
}
