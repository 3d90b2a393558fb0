//! `attachment_recall`.

use crate::{meant, shown};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::records::{Item, Query};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Attachments that are listed at most, and that are looked through for an id.
const LISTED: usize = 50;
const KNOWN: u32 = 1000;

pub(crate) struct AttachmentRecall;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// Lists attachments, newest first.
    List,
    /// Returns the path.
    GetPath,
    /// Returns the text.
    GetContent,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecallInput {
    /// What to do.
    action: Action,
    /// Only this channel: its name or a part of it.
    channel: Option<String>,
    /// Attachment id or its start.
    attachment_id: Option<String>,
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct RecallOutput {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
    /// Where the file is, for tools that read files.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Attachment {
    attachment_id: String,
    channel: String,
    name: String,
    media_type: String,
    at: String,
    has_text: bool,
}

/// As it was fed.
#[derive(Clone, Deserialize)]
struct Attached {
    channel: String,
    name: String,
    media_type: String,
    path: Option<String>,
    text: Option<String>,
    at_ms: u64,
}

impl Tool for AttachmentRecall {
    const NAME: &str = "attachment_recall";
    const TITLE: Option<&str> = Some("Find an attachment");
    const SUMMARY: &str = "List files that people sent in channels, or get the path or text of one.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Somebody mentions a file that they sent.",
        when_not_to_use: "",
        disambiguation: "",
        examples: &[r#"{"action":"list","channel":"dev"}"#],
    };
    type Input = RecallInput;
    type Output = RecallOutput;

    fn call(RecallInput { action, channel, attachment_id }: RecallInput) -> Result<RecallOutput> {
        let found = found(channel.as_deref())?;
        let missing = |item: &Item<Attached>, what: &str| {
            Failure::failed(format!("`{}` ({}) has no {what} here", item.key, item.body.name))
        };
        match action {
            Action::List => {
                if found.is_empty() {
                    notice("there are no attachments");
                }
                let attachments = found.into_iter().take(LISTED).map(listed).collect();
                Ok(RecallOutput { attachments, ..RecallOutput::default() })
            }
            Action::GetPath => {
                let item = one(attachment_id, found)?;
                let path = item.body.path.clone().ok_or_else(|| missing(&item, "file"))?;
                Ok(RecallOutput { path: Some(path), ..RecallOutput::default() })
            }
            Action::GetContent => {
                let item = one(attachment_id, found)?;
                let content = item.body.text.clone().ok_or_else(|| missing(&item, "text"))?;
                Ok(RecallOutput { content: Some(content), ..RecallOutput::default() })
            }
        }
    }
}

/// All of a channel, or of all channels, the newest first.
fn found(channel: Option<&str>) -> Result<Vec<Item<Attached>>> {
    let all = Query::new("attachments").order("/at_ms", true).limit(KNOWN).run::<Attached>()?.items;
    let Some(channel) = channel else { return Ok(all) };
    let names: Vec<String> = all.iter().map(|item| item.body.channel.clone()).collect();
    let meant = meant(channel, names.iter().map(String::as_str));
    Ok(all.into_iter().filter(|item| meant.contains(&item.body.channel.as_str())).collect())
}

/// The one with this id, or the only one whose id begins so.
fn one(id: Option<String>, all: Vec<Item<Attached>>) -> Result<Item<Attached>> {
    let id = id.ok_or_else(|| Failure::invalid("`attachment_id` is missing").hint("`list` says which there are"))?;
    let (mut exact, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|item| item.key == id);
    if let Some(item) = exact.pop() {
        return Ok(item);
    }
    let mut begin: Vec<_> = others.into_iter().filter(|item| !id.is_empty() && item.key.starts_with(&id)).collect();
    let shown: String = id.chars().take(64).collect();
    match begin.len() {
        0 => Err(Failure::failed(format!("there is no attachment `{shown}`")).hint("`list` says which there are")),
        1 => Ok(begin.remove(0)),
        several => {
            Err(Failure::invalid(format!("{several} attachments begin with `{shown}`")).hint("give more of the id"))
        }
    }
}

fn listed(item: Item<Attached>) -> Attachment {
    let Attached { channel, name, media_type, text, at_ms, .. } = item.body;
    Attachment { attachment_id: item.key, channel, name, media_type, at: shown(at_ms), has_text: text.is_some() }
}
