//! What is found by its meaning: vectors are made in the background, once a change is made, and a text's own when something near it is looked
//! for. No change waits for a model, and one that fails loses nothing: what is missing is made later, also by another program.

use super::sqlite::{Made, Waiting};
use super::{Namespace, Page, Query, Store};
use base::envelope::{Failure, duration};
use embeddings::{NoVectors, QUESTION_BYTES, TEXT_BYTES, TEXTS, no_model};
use futures_util::future::BoxFuture;
use policy::scope::Scope;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OnceCell, watch};

/// How long a model that fails is left alone: twice as long each time, up to the most.
const PAUSE: Duration = Duration::from_secs(1);
const MOST_PAUSE: Duration = Duration::from_secs(300);
/// How long a model may think about what is looked for: words are there at once.
const PATIENCE: Duration = Duration::from_secs(15);
/// A text that any model takes. Where it fails, the model is at fault; where it does not, the text before it was.
const PLAIN: &str = "text";
/// How often it is said how far it is.
const TOLD: Duration = Duration::from_secs(2);

/// How many texts are found by their meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Embedded {
    /// Those that have a vector.
    pub made: u64,
    /// Those of which it is not made yet.
    pub missing: u64,
    /// Those that the model does not take.
    pub refused: u64,
    /// Why, of one of these.
    pub why: Option<String>,
}

/// What is made in the background.
#[derive(Default)]
pub(super) struct Background {
    work: watch::Sender<Work>,
    /// The model answers again.
    answers: Notify,
    /// The store has this model's vectors, and no other one's.
    model: OnceCell<()>,
    /// Something was kept here whose vector is missing.
    has_own: AtomicBool,
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Work {
    /// Nothing is missing that was looked for.
    #[default]
    Done,
    /// It is being made; with `again`, more came meanwhile.
    Running { again: bool },
    /// The model does not answer: it is tried again later.
    Failing,
}

impl Store {
    /// The documents whose texts are nearest to this one.
    pub fn nearest<'a>(
        self: &'a Arc<Self>,
        of: Namespace,
        query: Query,
        text: &'a str,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Page, Failure>> {
        Box::pin(async move {
            query.check_near()?;
            if text.trim().is_empty() {
                return Err(Failure::invalid("there is no text to be near to"));
            }
            let model = self.model().await?;
            let asked = tokio::time::timeout(PATIENCE, self.embeddings.vectors(&[text], scope)).await;
            let asked = asked
                .map_err(|_| Failure::failed(format!("the model gave no answer within {}", duration(PATIENCE))))?;
            let vectors = asked.map_err(|none| match none {
                NoVectors::Texts(why) => Failure::failed(why),
                NoVectors::Model(Failure { message, hint, .. }) => {
                    let failure = Failure::failed(message);
                    hint.into_iter().fold(failure, Failure::hint)
                }
            })?;
            let vector = vectors.into_iter().next().unwrap_or_default();
            // What another program has left is made by whoever comes next.
            self.embed_later();
            self.background.answers.notify_waiters();
            self.with(move |engine, _| engine.nearest(&of, &query, &model, &vector)).await
        })
    }

    /// The name of the model, whose vectors the store has from now on.
    async fn model(self: &Arc<Self>) -> Result<String, Failure> {
        let name = self.embeddings.name().ok_or_else(no_model)?.to_owned();
        let used = name.clone();
        let used = || self.with(move |engine, _| engine.use_model(&used));
        self.background.model.get_or_try_init(used).await?;
        Ok(name)
    }

    /// Has what was kept here made in the background.
    pub(super) fn embed_own(self: &Arc<Self>) {
        self.background.has_own.store(true, Ordering::Relaxed);
        self.embed_later();
    }

    /// Has what is missing made in the background.
    fn embed_later(self: &Arc<Self>) {
        if self.embeddings.name().is_none() {
            return;
        }
        let mut is_new = false;
        self.background.work.send_modify(|work| match work {
            Work::Done => (*work, is_new) = (Work::Running { again: false }, true),
            Work::Running { again } => *again = true,
            // It comes to that, too.
            Work::Failing => {}
        });
        if is_new {
            let store = self.clone();
            tokio::spawn(async move { store.embed_all().await });
        }
    }

    /// Makes what is missing, however long that takes.
    async fn embed_all(self: Arc<Self>) {
        let mut pause = PAUSE;
        loop {
            match self.embed_some().await {
                Ok(true) => pause = PAUSE,
                Ok(false) => {
                    let mut is_done = false;
                    self.background.work.send_modify(|work| {
                        is_done = *work != Work::Running { again: true };
                        *work = if is_done { Work::Done } else { Work::Running { again: false } };
                    });
                    if is_done {
                        return;
                    }
                }
                Err(_) => {
                    // The reason is in the answer to whoever looks for something near.
                    self.background.work.send_replace(Work::Failing);
                    let _ = tokio::time::timeout(pause, self.background.answers.notified()).await;
                    pause = (pause * 2).min(MOST_PAUSE);
                    self.background.work.send_replace(Work::Running { again: false });
                }
            }
        }
    }

    /// Makes the first vectors that are missing; false where none is.
    async fn embed_some(self: &Arc<Self>) -> Result<bool, Failure> {
        let model = self.model().await?;
        let scope = self.embeddings.scope().ok_or_else(no_model)?;
        let used = model.clone();
        let mut waiting = self.with(move |engine, _| engine.waiting(&used, TEXTS)).await?;
        if waiting.is_empty() {
            return Ok(false);
        }
        let mut bytes = 0;
        let mut fits = |waits: &Waiting| {
            bytes += waits.text.as_ref().map_or(0, |text| text.len().min(TEXT_BYTES));
            bytes <= QUESTION_BYTES
        };
        let fitting = waiting.iter().take_while(|waits| fits(waits)).count();
        waiting.truncate(fitting.max(1));
        let made = self.ask(waiting, &scope).await?;
        self.with(move |engine, _| engine.keep_vectors(&model, &made)).await?;
        Ok(true)
    }

    /// Asks for the vectors of these texts, or of the first ones where that does not succeed, down to a single one: so one keeps no other back.
    async fn ask(&self, waiting: Vec<Waiting>, scope: &Scope) -> Result<Vec<(Waiting, Made)>, Failure> {
        let (mut there, missing): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|waits| waits.text.is_some());
        let nothing = |waits| (waits, Made::Refused("there is no text at its pointer".into()));
        let mut made: Vec<(Waiting, Made)> = missing.into_iter().map(nothing).collect();
        while !there.is_empty() {
            let texts: Vec<&str> = there.iter().filter_map(|waits| waits.text.as_deref()).collect();
            match self.embeddings.vectors(&texts, scope).await {
                Ok(vectors) => {
                    made.extend(there.into_iter().zip(vectors.into_iter().map(Made::Vector)));
                    break;
                }
                Err(_) if there.len() > 1 => there.truncate(there.len() / 2),
                Err(none) => {
                    // Is it this text, or does the model take none?
                    let plain = self.embeddings.vectors(&[PLAIN], scope).await;
                    let outcome = match (none, plain) {
                        (NoVectors::Texts(why), Ok(_)) => Made::Refused(why),
                        (NoVectors::Model(failure), Ok(_)) => Made::Failed(failure.message),
                        (_, Err(NoVectors::Model(failure))) => return Err(failure),
                        (_, Err(NoVectors::Texts(why))) => return Err(Failure::failed(why)),
                    };
                    made.extend(there.pop().map(|waits| (waits, outcome)));
                }
            }
        }
        Ok(made)
    }

    /// Returns when what was kept here has its vectors, or the model does not answer, or the time is over.
    pub fn settled(&self, most: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if !self.background.has_own.load(Ordering::Relaxed) {
                return;
            }
            let mut work = self.background.work.subscribe();
            let settled = work.wait_for(|work| !matches!(work, Work::Running { .. }));
            let _ = tokio::time::timeout(most, settled).await;
        })
    }
}

impl Store {
    /// Makes all vectors that are missing, and says how far it is now and then; none where there is no self.
    ///
    /// # Errors
    ///
    /// `unavailable` where no model is set, or it does not answer.
    pub fn embed_missing<'a>(
        self: &'a Arc<Self>,
        told: &'a (dyn Fn(&Embedded) + Sync),
    ) -> BoxFuture<'a, Result<Option<Embedded>, Failure>> {
        Box::pin(async move {
            if !self.is_there() {
                return Ok(None);
            }
            self.model().await?;
            self.with(|engine, _| engine.retry_refused()).await?;
            let mut said = Instant::now();
            while self.embed_some().await? {
                // Counting takes longer than making some.
                if said.elapsed() >= TOLD {
                    told(&self.with(|engine, _| engine.embedded()).await?);
                    said = Instant::now();
                }
            }
            self.with(|engine, _| engine.embedded()).await.map(Some)
        })
    }
}
