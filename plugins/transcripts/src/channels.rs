//! `channel_recall`.

use crate::{Sum, TEXT_BYTES, instant, meant, shown, sums};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::records::{Item, Query};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Messages of an answer at most, and where nothing is said.
const MOST: u32 = 100;
const MESSAGES: u32 = 50;

pub(crate) struct ChannelRecall;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecallInput {
    /// Channel name or a part of it; without it: a list of channels.
    channel: Option<String>,
    /// Number of messages: 1 to 100.
    #[serde(default = "messages")]
    limit: u32,
    /// Only messages before this RFC 3339 time: `2026-11-25T09:30:00Z`.
    before: Option<String>,
    /// Only messages after this RFC 3339 time.
    after: Option<String>,
    /// Begin with the oldest.
    #[serde(default)]
    oldest_first: bool,
}

fn messages() -> u32 {
    MESSAGES
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct RecallOutput {
    /// The channel that was meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Message>,
    /// How many there are between these times.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// Channels, where none is meant by the name, or several are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    channels: Vec<Channel>,
}

#[derive(Serialize, JsonSchema)]
struct Message {
    at: String,
    author: String,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Channel {
    channel: String,
    messages: u64,
    last_activity: String,
}

/// As it was fed.
#[derive(Deserialize)]
struct Said {
    id: Option<String>,
    author: String,
    content: String,
    at_ms: u64,
}

impl Tool for ChannelRecall {
    const NAME: &str = "channel_recall";
    const TITLE: Option<&str> = Some("Read a channel");
    const SUMMARY: &str = "Read the messages of a channel, or list the channels.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need what was said elsewhere, or earlier than you can see.",
        when_not_to_use: "It is in this conversation. To find memories: use `memory_recall`.",
        disambiguation: "",
        examples: &[r#"{"channel":"dev","limit":20}"#],
    };
    type Input = RecallInput;
    type Output = RecallOutput;

    fn call(input: RecallInput) -> Result<RecallOutput> {
        if !(1..=MOST).contains(&input.limit) {
            return Err(Failure::invalid(format!("`limit` is {}", input.limit)).hint(format!("it is 1 to {MOST}")));
        }
        let known = sums("channels")?;
        let Some(asked) = &input.channel else {
            return Ok(listed(known));
        };
        match meant(asked, known.iter().map(|item| item.key.as_str()))[..] {
            [channel] => said(channel, &input),
            [] => {
                notice("no channel is called so: these are there");
                Ok(listed(known))
            }
            ref several => {
                notice("several channels are meant: name one of them");
                let several: Vec<Item<Sum>> =
                    known.iter().filter(|item| several.contains(&item.key.as_str())).cloned().collect();
                Ok(listed(several))
            }
        }
    }
}

fn listed(known: Vec<Item<Sum>>) -> RecallOutput {
    let channels = known.into_iter().map(|Item { key, body, .. }| Channel {
        channel: key,
        messages: body.count,
        last_activity: shown(body.last_ms),
    });
    RecallOutput { channel: None, messages: Vec::new(), total: None, channels: channels.collect() }
}

fn said(channel: &str, input: &RecallInput) -> Result<RecallOutput> {
    let bound = |name: &str, text: &Option<String>| text.as_deref().map(|text| instant(name, text)).transpose();
    let (after, before) = (bound("after", &input.after)?, bound("before", &input.before)?);
    let mut query = Query::new(&format!("channel/{channel}")).order("/at_ms", !input.oldest_first).limit(input.limit);
    if after.is_some() || before.is_some() {
        // Neither instant is one of those between them.
        let (low, high) = (after.map_or(0, |after| after + 1), before.map_or(i64::MAX >> 11, |before| before - 1));
        query = query.between("/at_ms", &low, &high);
    }
    let page = query.run::<Said>()?;
    let (mut messages, mut left) = (Vec::new(), TEXT_BYTES);
    let found = page.items.len();
    for Item { body: Said { id, author, content, at_ms }, .. } in page.items {
        let Some(rest) = left.checked_sub(content.len()) else { break };
        left = rest;
        messages.push(Message { at: shown(at_ms), author, content, id });
    }
    if messages.len() < found {
        notice(format!("{} more of them are left out: they are long", found - messages.len()));
    }
    Ok(RecallOutput { channel: Some(channel.to_owned()), messages, total: Some(page.total), channels: Vec::new() })
}
