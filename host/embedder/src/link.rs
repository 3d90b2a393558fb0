//! A link to the embedder in lines of JSON: the events that wait, and the lines about them. How lines are read and written is the door's.
//!
//! Out go `{"ask": {…}}`, which wants an answer, `{"tell": {…}}`, which wants none, and `{"withdrawn": "a1"}`; in come
//! `{"answer": "a1", "result": …}` and `{"answer": "a1", "error": {…}}`. An event has one end: whoever takes it out of the table decides it.

use super::{EmbedderEvent, End, KindPattern};
use base::envelope::{Failure, Kind};
use base64::prelude::{BASE64_STANDARD as BASE64, Engine};
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// One link. `L` is a line as the door writes it.
pub struct Link<L> {
    kinds: Vec<KindPattern>,
    lines: mpsc::Sender<L>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: HashMap<String, oneshot::Sender<End>>,
    /// How many there ever were.
    asked: u64,
    /// Why there will be no more answers.
    closed: Option<String>,
}

/// A line that answers an event.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerLine {
    /// Which event.
    pub answer: String,
    /// Its result, which may be `null`.
    #[serde(default, deserialize_with = "given")]
    pub result: Option<Value>,
    /// Why there is none.
    pub error: Option<ErrorLine>,
}

/// Why the embedder could not do something.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorLine {
    /// A kind of failures; `execution_failed` where none is given, or one that is unknown.
    pub kind: Option<String>,
    /// What happened, for the model.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl AnswerLine {
    fn end(self) -> Result<(String, End), Failure> {
        match (self.result, self.error) {
            (Some(result), None) => Ok((self.answer, End::Answered(result))),
            (None, Some(ErrorLine { kind, message, hint })) => {
                let kind = kind.map_or(Kind::ExecutionFailed, |kind| Kind::from_guest(&kind));
                Ok((self.answer, End::Failed(Failure { kind, message, hint, data: None })))
            }
            (Some(_), Some(_)) | (None, None) => {
                let message = "an answer has either `result` or `error`";
                Err(Failure::invalid(message).hint("write {\"answer\": \"a1\", \"result\": {}}"))
            }
        }
    }
}

impl<L: From<Value> + Send + 'static> Link<L> {
    /// A link whose embedder takes events of these kinds, and reads these lines.
    #[must_use]
    pub fn new(kinds: Vec<KindPattern>, lines: mpsc::Sender<L>) -> Self {
        Self { kinds, lines, table: Mutex::default() }
    }

    /// The kinds of events that it takes.
    #[must_use]
    pub fn kinds(&self) -> &[KindPattern] {
        &self.kinds
    }

    /// Whether there can be answers still.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.table.lock().closed.is_none()
    }

    /// Takes an answer.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` where it answers nothing that waits; nothing changes then.
    pub fn answer(&self, line: AnswerLine) -> Result<(), Failure> {
        let (name, end) = line.end()?;
        let waits = self.table.lock().open.remove(&name);
        // Whoever waited may just have been dropped; the answer then counts as given, to nobody.
        waits.map(|waits| _ = waits.send(end)).ok_or_else(|| {
            let shown: String = name.chars().take(64).collect();
            Failure::invalid(format!("no event `{shown}` waits for an answer"))
                .hint("it may have been answered, withdrawn or given up")
        })
    }

    /// There will be no more answers: what waits has an unknown outcome, and what is asked from now on is not delivered.
    pub fn close(&self, why: &str) {
        let mut table = self.table.lock();
        table.closed = Some(why.to_owned());
        for (_, waits) in table.open.drain() {
            let _ = waits.send(End::Lost(why.to_owned()));
        }
    }

    /// Asks, on lines that begin with `head`; as [`Embedder::ask`](super::Embedder::ask) says.
    pub async fn ask(&self, head: &Map<String, Value>, event: EmbedderEvent, withdrawn: CancellationToken) -> End {
        let (sender, mut receiver) = oneshot::channel();
        let name = match self.open(sender) {
            Ok(name) => name,
            Err(why) => return End::Unavailable(why),
        };
        let mut waits = Waits { link: self, head, name, is_delivered: false };
        let mut asked = described(&event);
        asked["ask"] = json!(waits.name);
        let delivered = tokio::select! {
            biased;
            () = withdrawn.cancelled() => return End::Withdrawn,
            sent = self.lines.send(line(head, "ask", asked).into()) => sent.is_ok(),
        };
        if !delivered {
            return End::Unavailable("nobody reads its lines any more".into());
        }
        waits.is_delivered = true;
        let gone = |_| End::Lost("the link is gone".into());
        tokio::select! {
            biased;
            end = &mut receiver => end.unwrap_or_else(gone),
            () = withdrawn.cancelled() => match waits.withdraw() {
                true => End::Withdrawn,
                // The answer came first.
                false => receiver.await.unwrap_or_else(gone),
            },
        }
    }

    /// Tells, on a line that begins with `head`; as [`Embedder::tell`](super::Embedder::tell) says.
    pub fn tell(&self, head: &Map<String, Value>, event: &EmbedderEvent) -> bool {
        self.lines.try_send(line(head, "tell", described(event)).into()).is_ok()
    }

    fn open(&self, waits: oneshot::Sender<End>) -> Result<String, String> {
        let mut table = self.table.lock();
        if let Some(why) = &table.closed {
            return Err(why.clone());
        }
        table.asked += 1;
        let name = format!("a{}", table.asked);
        table.open.insert(name.clone(), waits);
        Ok(name)
    }
}

/// An event that is in the table.
struct Waits<'l, L: From<Value> + Send + 'static> {
    link: &'l Link<L>,
    head: &'l Map<String, Value>,
    name: String,
    is_delivered: bool,
}

impl<L: From<Value> + Send + 'static> Waits<'_, L> {
    /// Takes it out, and tells the embedder so; false where it had ended before.
    fn withdraw(&mut self) -> bool {
        let was_there = self.link.table.lock().open.remove(&self.name).is_some();
        if was_there && std::mem::take(&mut self.is_delivered) {
            let line: L = line(self.head, "withdrawn", json!(self.name)).into();
            if let Err(mpsc::error::TrySendError::Full(line)) = self.link.lines.try_send(line) {
                let lines = self.link.lines.clone();
                // It has to come, whenever there is room for it.
                tokio::spawn(async move { lines.send(line).await });
            }
        }
        was_there
    }
}

impl<L: From<Value> + Send + 'static> Drop for Waits<'_, L> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

fn line(head: &Map<String, Value>, what: &str, said: Value) -> Value {
    let mut line = head.clone();
    line.insert(what.to_owned(), said);
    line.into()
}

/// An event as lines have it.
fn described(event: &EmbedderEvent) -> Value {
    let EmbedderEvent { call, principal, tool, kind, payload, bindings, files, deadline } = event;
    let mut described = json!({
        "kind": kind, "payload": payload, "bindings": bindings, "tool": tool, "call": call, "principal": principal,
    });
    if let Some(deadline) = deadline {
        described["deadline_ms"] = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX).into();
    }
    if !files.is_empty() {
        let file = |file: &super::AttachedFile| {
            json!({
                "name": file.name,
                "media_type": file.media_type,
                "bytes": file.content.len(),
                "content_base64": BASE64.encode(&file.content),
            })
        };
        described["files"] = files.iter().map(file).collect();
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    fn event() -> EmbedderEvent {
        EmbedderEvent {
            call: "c".into(),
            principal: "p".into(),
            tool: "reply".into(),
            kind: "message.send".into(),
            payload: json!({ "content": "hi" }),
            bindings: Map::new(),
            files: Vec::new(),
            deadline: Some(Duration::from_secs(1)),
        }
    }

    fn answer(text: &str) -> AnswerLine {
        serde_json::from_str(text).expect("an answer")
    }

    struct Rig {
        link: Arc<Link<Value>>,
        lines: mpsc::Receiver<Value>,
    }

    fn rig(room: usize) -> Rig {
        let (sender, lines) = mpsc::channel(room);
        Rig { link: Arc::new(Link::new(vec![KindPattern::All], sender)), lines }
    }

    impl Rig {
        fn asks(&self, withdrawn: &CancellationToken) -> tokio::task::JoinHandle<End> {
            let (link, withdrawn) = (self.link.clone(), withdrawn.clone());
            tokio::spawn(async move { link.ask(&Map::new(), event(), withdrawn).await })
        }
    }

    #[tokio::test]
    async fn an_event_is_answered_once() {
        let mut rig = rig(8);
        let asked = rig.asks(&CancellationToken::new());
        let line = rig.lines.recv().await.expect("a line");
        assert_eq!((&line["ask"]["ask"], &line["ask"]["deadline_ms"]), (&json!("a1"), &json!(1000)));
        rig.link.answer(answer(r#"{"answer":"a1","result":null}"#)).expect("the first answer");
        assert_eq!(asked.await.expect("an end"), End::Answered(Value::Null));
        let second = rig.link.answer(answer(r#"{"answer":"a1","result":1}"#)).expect_err("the second answer");
        assert_eq!(second.message, "no event `a1` waits for an answer");
        for odd in [r#"{"answer":"a1"}"#, r#"{"answer":"a1","result":1,"error":{"message":"x"}}"#] {
            assert_eq!(
                rig.link.answer(answer(odd)).expect_err("odd").message,
                "an answer has either `result` or `error`"
            );
        }
    }

    #[tokio::test]
    async fn an_error_has_the_kind_that_it_names() {
        let mut rig = rig(8);
        for (kind, expected) in
            [(r#""kind":"busy","#, Kind::Busy), ("", Kind::ExecutionFailed), (r#""kind":"x","#, Kind::ExecutionFailed)]
        {
            let asked = rig.asks(&CancellationToken::new());
            let name = rig.lines.recv().await.expect("a line")["ask"]["ask"].clone();
            let line = format!(r#"{{"answer":{name},"error":{{{kind}"message":"no"}}}}"#);
            rig.link.answer(answer(&line)).expect("an answer");
            assert_eq!(asked.await.expect("an end"), End::Failed(Failure::new(expected, "no")));
        }
    }

    #[tokio::test]
    async fn what_is_withdrawn_is_told_and_takes_no_answer() {
        let mut rig = rig(1);
        let withdrawn = CancellationToken::new();
        let asked = rig.asks(&withdrawn);
        while rig.link.lines.capacity() > 0 {
            tokio::task::yield_now().await;
        }
        withdrawn.cancel();
        assert_eq!(asked.await.expect("an end"), End::Withdrawn);
        assert!(rig.link.answer(answer(r#"{"answer":"a1","result":1}"#)).is_err());
        assert_eq!(rig.lines.recv().await.expect("the event")["ask"]["ask"], "a1");
        // There was no room for it when it was withdrawn.
        assert_eq!(rig.lines.recv().await.expect("a line"), json!({ "withdrawn": "a1" }));
        // Before it was delivered nothing has to be told.
        let full = rig.link.lines.clone().reserve_owned().await.expect("room");
        let withdrawn = CancellationToken::new();
        let asked = rig.asks(&withdrawn);
        withdrawn.cancel();
        assert_eq!(asked.await.expect("an end"), End::Withdrawn);
        drop(full);
        assert!(rig.lines.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_dropped_question_is_withdrawn() {
        let mut rig = rig(8);
        let asked = rig.asks(&CancellationToken::new());
        rig.lines.recv().await.expect("the event");
        asked.abort();
        assert_eq!(rig.lines.recv().await.expect("a line"), json!({ "withdrawn": "a1" }));
    }

    #[tokio::test]
    async fn a_link_that_breaks_leaves_outcomes_unknown_and_delivers_nothing_more() {
        let mut rig = rig(8);
        let asked = rig.asks(&CancellationToken::new());
        rig.lines.recv().await.expect("the event");
        rig.link.close("it hung up");
        assert_eq!(asked.await.expect("an end"), End::Lost("it hung up".into()));
        let later = rig.asks(&CancellationToken::new());
        assert_eq!(later.await.expect("an end"), End::Unavailable("it hung up".into()));
        assert!(rig.lines.try_recv().is_err());
    }

    #[tokio::test]
    async fn what_is_told_waits_for_nothing() {
        let mut rig = rig(1);
        assert!(rig.link.tell(&Map::new(), &EmbedderEvent { deadline: None, ..event() }));
        assert!(!rig.link.tell(&Map::new(), &event()));
        let line = rig.lines.recv().await.expect("a line");
        assert!(line["tell"].get("deadline_ms").is_none() && line["tell"].get("ask").is_none(), "{line}");
    }
}
