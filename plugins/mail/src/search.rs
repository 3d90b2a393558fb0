//! `email_search`.

use crate::shown::{Message, STRANGER, date};
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};
use toolcrib_sdk::mail::{self, Query};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Days that are searched where the model does not say.
const DAYS: u32 = 30;
const DAY_MS: u64 = 86_400_000;
/// Messages where the model does not say, and at most.
const LIMIT: u32 = 10;
const MOST: u32 = 50;

pub(crate) struct EmailSearch;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Words that a message must contain; in double quotes, an exact phrase: `"order 17"`.
    query: Option<String>,
    /// Part of the sender's name or address.
    from: Option<String>,
    /// Part of the subject.
    subject: Option<String>,
    /// Names of folders; default: all that settings allow.
    folders: Option<Vec<String>>,
    /// Find only unread messages.
    #[serde(default)]
    unread_only: bool,
    /// Days to search back; 0 means 30.
    #[serde(default = "days")]
    #[schemars(range(max = 36500))]
    since_days: u32,
    /// Number of messages.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: u32,
    /// Account name, if there are several.
    account: Option<String>,
}

fn days() -> u32 {
    DAYS
}

fn limit() -> u32 {
    LIMIT
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Found {
    /// Newest first.
    hits: Vec<Hit>,
    /// The search ended here: there may be older messages. Absent if all of the time was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    searched_back_to: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Hit {
    #[serde(flatten)]
    message: Message,
    /// The beginning of the text.
    snippet: String,
}

impl Tool for EmailSearch {
    const NAME: &str = "email_search";
    const TITLE: Option<&str> = Some("Search mail");
    const SUMMARY: &str = "Search the user's mail and return the newest matches with the start of each text.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "The user asks about mail.",
        when_not_to_use: "To read a whole message: use `email_read`. No tool sends, moves or deletes mail.",
        disambiguation: "It changes nothing: unread messages stay unread.",
        examples: &[r#"{"query":"invoice \"order 17\"","from":"shop.example.com","since_days":90}"#],
    };
    type Input = Input;
    type Output = Found;

    fn call(input: Input) -> Result<Found> {
        let account = input.account.clone();
        let found = mail::search(account.as_deref(), &query(input, now_ms())?)?;
        found.notices.into_iter().for_each(notice);
        let hits: Vec<Hit> = found.hits.into_iter().map(hit).collect();
        notice(if hits.is_empty() { "no message was found" } else { STRANGER });
        Ok(Found { hits, searched_back_to: found.searched_back_to_ms.and_then(date) })
    }
}

fn hit(header: mail::Header) -> Hit {
    let (message, snippet) = Message::of(header);
    Hit { message, snippet }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn query(input: Input, now_ms: u64) -> Result<Query> {
    let days = if input.since_days == 0 { DAYS } else { input.since_days };
    let text = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    Ok(Query {
        folders: input.folders.unwrap_or_default(),
        words: words(&input.query.unwrap_or_default())?,
        sender: text(input.from),
        subject: text(input.subject),
        unread: input.unread_only,
        since_ms: Some(now_ms.saturating_sub(u64::from(days) * DAY_MS)),
        limit: input.limit.clamp(1, MOST),
        ..Query::default()
    })
}

/// Returns the words of a query; those in quotes are one.
fn words(query: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    for (at, piece) in query.split('"').enumerate() {
        match at % 2 {
            0 => words.extend(piece.split_whitespace().map(str::to_owned)),
            _ => words.extend(Some(piece.trim().to_owned()).filter(|phrase| !phrase.is_empty())),
        }
    }
    if query.matches('"').count() % 2 == 1 {
        return Err(Failure::invalid("`query` has a quote without its end").hint("close the quote, or omit it"));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_sdk::Kind;
    use toolcrib_sdk::testing::{Host, json};

    fn header() -> toolcrib_sdk::testing::Value {
        json!({
            "id": "work:7:42:INBOX", "account": "work", "folder": "INBOX",
            "sender": { "name": "Ann", "address": "ann@example.com" },
            "recipients": [{ "name": "", "address": "bob@example.com" }],
            "subject": "Lunch", "date-ms": 1_700_000_000_000_u64, "unread": true, "bytes": 900, "verified": true,
            "snippet": "At noon?",
            "parts": [{ "id": "2", "name": "menu.pdf", "media-type": "application/pdf", "bytes": 5000 }],
            "warnings": ["odd"],
        })
    }

    #[test]
    fn hits_are_shown_with_the_beginning_of_their_text() {
        let found = json!({ "hits": [header()], "searched-back-to-ms": 1_690_000_000_000_u64, "notices": ["not searched: `x`"] });
        let host = Host::new().plays("mail.search", found);
        let shown = json!({
            "hits": [{
                "id": "work:7:42:INBOX", "account": "work", "folder": "INBOX", "from": "Ann <ann@example.com>", "to": ["bob@example.com"],
                "subject": "Lunch", "date": "2023-11-14T22:13:20Z", "unread": true, "verified": true,
                "attachments": [{ "part": "2", "name": "menu.pdf", "type": "application/pdf", "bytes": 5000 }],
                "warnings": ["odd"], "snippet": "At noon?",
            }],
            "searched_back_to": "2023-07-22T04:26:40Z",
        });
        assert_eq!(host.call::<EmailSearch>(json!({})), Ok(shown));
        assert_eq!(host.notices(), ["not searched: `x`", STRANGER]);
        let query = &host.calls()[0].arguments["query"];
        assert_eq!((&query["limit"], &query["unread"]), (&json!(10), &json!(false)));
    }

    #[test]
    fn nothing_found_is_said() {
        let host = Host::new().plays("mail.search", json!({ "hits": [], "notices": [] }));
        assert_eq!(host.call::<EmailSearch>(json!({ "account": "home" })), Ok(json!({ "hits": [] })));
        assert_eq!(host.notices(), ["no message was found"]);
        assert_eq!(host.calls()[0].arguments["account"], "home");
    }

    #[test]
    fn words_are_each_searched_for_and_phrases_as_they_are() {
        assert_eq!(words(r#"invoice  "order 17" march"#).unwrap(), ["invoice", "order 17", "march"]);
        assert_eq!(words(r#" "" "#).unwrap(), Vec::<String>::new());
        assert_eq!(words(r#"a "b"#).unwrap_err().kind, Kind::INVALID_ARGUMENTS);
    }

    #[test]
    fn zero_days_are_thirty_and_blank_texts_none() {
        let asked = |since_days| {
            let input = Input {
                since_days,
                limit: 99,
                from: Some(" ".into()),
                subject: Some(" x ".into()),
                ..Input::default()
            };
            query(input, 100 * DAY_MS).unwrap()
        };
        assert_eq!(asked(0).since_ms, Some(70 * DAY_MS));
        assert_eq!(asked(1).since_ms, Some(99 * DAY_MS));
        assert_eq!(asked(30_000).since_ms, Some(0));
        assert_eq!((asked(1).limit, asked(1).sender, asked(1).subject.as_deref()), (50, None, Some("x")));
    }

    #[test]
    fn what_the_host_refuses_is_returned() {
        let denied = Failure::denied("the folder `x` may not be read");
        let host = Host::new().fails("mail.search", denied.clone());
        assert_eq!(host.call::<EmailSearch>(json!({ "folders": ["x"] })), Err(denied));
    }
}
