//! An embedder whose answers a test decides.

use async_trait::async_trait;
use serde_json::Value;
use std::sync::Mutex;
use tokio_util::sync::CancellationToken;
use toolcrib::embedder::{Embedder, EmbedderEvent, End, KindPattern};

type Answers = Box<dyn Fn(&EmbedderEvent) -> Option<End> + Send + Sync>;

/// Takes events of some kinds, remembers them, and ends each as the test says; one without an end waits until it is withdrawn.
pub struct Played {
    kinds: Vec<KindPattern>,
    answers: Answers,
    /// For those that are told and not asked.
    has_room: bool,
    events: Mutex<Vec<EmbedderEvent>>,
    withdrawn: Mutex<u32>,
}

impl Played {
    /// An embedder that takes these kinds.
    ///
    /// # Panics
    ///
    /// When one of them is no kind.
    #[must_use]
    pub fn new(kinds: &[&str], answers: impl Fn(&EmbedderEvent) -> Option<End> + Send + Sync + 'static) -> Self {
        let kinds = kinds.iter().map(|kind| KindPattern::parse(kind).expect("a kind of events")).collect();
        let (events, withdrawn) = (Mutex::default(), Mutex::default());
        Self { kinds, answers: Box::new(answers), has_room: true, events, withdrawn }
    }

    /// One that answers everything so.
    #[must_use]
    pub fn answering(kinds: &[&str], answer: Value) -> Self {
        Self::new(kinds, move |_| Some(End::Answered(answer.clone())))
    }

    /// The same without room for what is told.
    #[must_use]
    pub fn full(self) -> Self {
        Self { has_room: false, ..self }
    }

    /// What it was handed so far.
    #[must_use]
    pub fn events(&self) -> Vec<EmbedderEvent> {
        self.events.lock().expect("no test panics while it holds the events").clone()
    }

    /// How many events were withdrawn.
    #[must_use]
    pub fn withdrawn(&self) -> u32 {
        *self.withdrawn.lock().expect("no test panics while it holds the count")
    }

    fn keep(&self, event: EmbedderEvent) {
        self.events.lock().expect("no test panics while it holds the events").push(event);
    }
}

#[async_trait]
impl Embedder for Played {
    fn kinds(&self) -> Vec<KindPattern> {
        self.kinds.clone()
    }

    async fn ask(&self, event: EmbedderEvent, withdrawn: CancellationToken) -> End {
        let end = (self.answers)(&event);
        self.keep(event);
        match end {
            Some(end) => end,
            None => {
                withdrawn.cancelled().await;
                *self.withdrawn.lock().expect("no test panics while it holds the count") += 1;
                End::Withdrawn
            }
        }
    }

    fn tell(&self, event: EmbedderEvent) -> bool {
        if self.has_room {
            self.keep(event);
        }
        self.has_room
    }
}
