//! What the program around the host feeds: what was said in channels, what was attached, what workers did. It is kept for the agent of the session,
//! where the plugin `transcripts` finds it.

use crate::Host;
use crate::call::CallContext;
use base::envelope::{Failure, Kind};
use base::text::sanitize;
use futures_util::future::BoxFuture;
use leaks::Known;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::now_ms;
use store::{Change, Name, Namespace};

/// The plugin that reads it.
const READER: &str = "transcripts";
/// Bytes of what was said, and of an attachment's text.
const TEXT_BYTES: usize = 50_000;
/// Bytes of a channel, a worker, a person or a file's name.
const NAME_BYTES: usize = 200;
/// How often a change that another one came before is begun anew.
const TIMES: u32 = 200;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Feed {
    /// Something was said in a channel.
    Message(Message),
    /// A file came with it.
    Attachment(Attachment),
    /// A worker did something.
    Worker(WorkerStep),
}

impl Feed {
    /// Reads what a line feeds.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` where it is none of these.
    pub fn read(line: Value) -> Result<Self, Failure> {
        serde_json::from_value(line)
            .map_err(|error| Failure::invalid(format!("`feed` is nothing that can be fed: {error}")))
    }
}

/// What was said in a channel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Where.
    pub channel: String,
    /// By whom.
    pub author: String,
    /// What: at most 50,000 bytes.
    pub content: String,
    /// What it is called there; the same one at the same time takes its place.
    pub id: Option<String>,
    /// When, in milliseconds since 1970; without it, now.
    pub at_ms: Option<u64>,
}

/// A file that was sent in a channel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Where.
    pub channel: String,
    /// What it is called there.
    pub id: String,
    /// The file's name.
    pub name: String,
    /// What it is, such as `text/plain`.
    pub media_type: String,
    /// Where tools find it, if they do.
    pub path: Option<String>,
    /// Its text, if it has any: at most 50,000 bytes.
    pub text: Option<String>,
    /// When, in milliseconds since 1970; without it, now.
    pub at_ms: Option<u64>,
}

/// What a worker did.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerStep {
    /// Which worker.
    pub worker: String,
    /// What kind of step it is.
    pub kind: StepKind,
    /// What was called, came back, was said or came of it: at most 50,000 bytes.
    pub content: String,
    /// When, in milliseconds since 1970; without it, now.
    pub at_ms: Option<u64>,
}

/// What kind of step a worker made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// It called a tool.
    Call,
    /// What came back.
    Result,
    /// It said something.
    Text,
    /// What came of its task: it has ended.
    Outcome,
}

/// A document of its own, and the one that sums up what it belongs to.
struct Entry {
    collection: String,
    key: Key,
    body: Value,
    sum: Name,
    /// What the sum says of it last, beside its count and its times.
    last: Value,
    at_ms: u64,
}

/// What a document is called.
enum Key {
    /// By a name of its own.
    Named(String),
    /// By its number among those that it belongs to, so that what happened in one millisecond stays in its order.
    Numbered,
}

impl Host {
    /// Keeps what happened for the agent of this session, without secrets.
    ///
    /// # Errors
    ///
    /// `unavailable` where the plugin that reads it is not there or may keep nothing, `invalid_arguments`, `limit`, `denied` where a name has a secret.
    pub fn feed<'a>(&'a self, context: &'a CallContext, feed: Feed) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move { self.feed_of(None, context, feed).await })
    }

    /// The same for another agent than that of the session: whoever speaks for all of them says whose it is.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn feed_of<'a>(
        &'a self,
        agent: Option<String>,
        context: &'a CallContext,
        feed: Feed,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let reader =
                self.keepers(context)?.into_iter().find(|keeper| keeper.plugin == READER).ok_or_else(|| {
                    Failure::new(Kind::Unavailable, "nothing reads what is fed in this session").hint(format!(
                        "`{READER}` does, where the policy lets it keep documents and the toolset has a tool of it"
                    ))
                })?;
            let of = Namespace { agent: agent.unwrap_or(reader.agent), plugin: reader.plugin };
            check_names(&[("agent", &of.agent)], &self.secrets.known())?;
            let entry = self.entry(feed)?;
            let mut times = 0;
            loop {
                match self.keep(&of, &entry).await {
                    // Another change came before it; where another program writes all the time, it was waited for already.
                    Err(failure) if failure.kind == Kind::Busy && failure.data.is_some() && times < TIMES => times += 1,
                    outcome => return outcome,
                }
            }
        })
    }

    fn entry(&self, feed: Feed) -> Result<Entry, Failure> {
        let (now, known) = (now_ms().cast_unsigned(), self.secrets.known());
        // Whatever settings say of results: it is kept, and who feeds it cannot know which secrets there are.
        let clean = |text: &str| known.redact(&sanitize::text(text)).into_owned();
        let check_names = |names: &[(&str, &str)]| check_names(names, &known);
        let name = |collection: String, key: String| Name { collection, key };
        match feed {
            Feed::Message(Message { channel, author, content, id, at_ms }) => {
                let at_ms = at_ms.unwrap_or(now);
                check_names(&[("channel", &channel), ("author", &author), ("id", id.as_deref().unwrap_or("-"))])?;
                check_text("content", &content)?;
                Ok(Entry {
                    body: json!({ "id": id, "author": clean(&author), "content": clean(&content), "at_ms": at_ms }),
                    collection: format!("channel/{channel}"),
                    key: id.map_or(Key::Numbered, |id| Key::Named(format!("{at_ms:013}/{id}"))),
                    sum: name("channels".into(), channel),
                    last: json!({}),
                    at_ms,
                })
            }
            Feed::Attachment(Attachment { channel, id, name: file, media_type, path, text, at_ms }) => {
                let at_ms = at_ms.unwrap_or(now);
                check_names(&[("channel", &channel), ("id", &id), ("name", &file), ("media_type", &media_type)])?;
                check_text("text", text.as_deref().unwrap_or_default())?;
                check_text("path", path.as_deref().unwrap_or_default())?;
                let (path, text) = (path.as_deref().map(clean), text.as_deref().map(clean));
                Ok(Entry {
                    body: json!({
                        "channel": channel, "name": clean(&file), "media_type": clean(&media_type),
                        "path": path, "text": text, "at_ms": at_ms,
                    }),
                    collection: "attachments".into(),
                    key: Key::Named(id),
                    sum: name("attached".into(), channel),
                    last: json!({}),
                    at_ms,
                })
            }
            Feed::Worker(WorkerStep { worker, kind, content, at_ms }) => {
                let at_ms = at_ms.unwrap_or(now);
                check_names(&[("worker", &worker)])?;
                check_text("content", &content)?;
                Ok(Entry {
                    body: json!({ "kind": kind, "content": clean(&content), "at_ms": at_ms }),
                    collection: format!("worker/{worker}"),
                    key: Key::Numbered,
                    sum: name("workers".into(), worker),
                    last: json!({ "ended": kind == StepKind::Outcome }),
                    at_ms,
                })
            }
        }
    }

    /// Keeps one thing together with what sums it up.
    async fn keep(&self, of: &Namespace, entry: &Entry) -> Result<(), Failure> {
        let sum = self.services.store.get(of.clone(), entry.sum.clone()).await?;
        let revision = sum.as_ref().map_or(0, |item| item.revision);
        let before: Value = sum.and_then(|item| serde_json::from_str(&item.body).ok()).unwrap_or_default();
        let count = before["count"].as_u64().unwrap_or_default();
        let key = match &entry.key {
            Key::Named(key) => key.clone(),
            Key::Numbered => format!("{:013}/#{count:010}", entry.at_ms),
        };
        let name = Name { collection: entry.collection.clone(), key };
        let count = count + u64::from(self.services.store.get(of.clone(), name.clone()).await?.is_none());
        let last_ms = before["last_ms"].as_u64().unwrap_or_default().max(entry.at_ms);
        let mut sum = json!({ "count": count, "last_ms": last_ms });
        for (key, value) in entry.last.as_object().into_iter().flatten() {
            // What has ended stays so, in whatever order its steps come.
            sum[key] = json!(before[key] == true || *value == true);
        }
        let changes = vec![
            Change::Expect(entry.sum.clone(), revision),
            Change::Put(entry.sum.clone(), sum.to_string()),
            Change::Put(name, entry.body.to_string()),
        ];
        self.services.store.commit(of.clone(), changes).await.map(drop)
    }
}

/// What things are called is found by as it is, so a secret in it has no name that could take its place.
fn check_names(names: &[(&str, &str)], known: &Known) -> Result<(), Failure> {
    for (what, name) in names {
        if known.redact(name) != *name {
            return Err(Failure::denied(format!("`{what}` has a secret in it")));
        }
        if name.trim().is_empty() || name.len() > NAME_BYTES || name.contains(char::is_control) {
            return Err(Failure::invalid(format!("`{what}` has 1 to {NAME_BYTES} bytes, in one line")));
        }
    }
    Ok(())
}

fn check_text(what: &str, text: &str) -> Result<(), Failure> {
    match text.len() > TEXT_BYTES {
        true => Err(Failure::limit(format!("`{what}` has {} bytes (limit: {TEXT_BYTES})", text.len()))),
        false => Ok(()),
    }
}
