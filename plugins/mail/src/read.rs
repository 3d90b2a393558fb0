//! `email_read`.

use crate::shown::{Attachment, Message, STRANGER, next_offset};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::mail;
use toolcrib_sdk::{Captured, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Characters where the model does not say.
const CHARS: u32 = 24_000;

pub(crate) struct EmailRead;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Id from `email_search`.
    id: String,
    /// Id of an attachment to save, such as `2`; without it: the text.
    part: Option<String>,
    /// Character to start at, from `next_offset`.
    #[serde(default)]
    offset: u64,
    /// Number of characters.
    #[serde(default = "chars")]
    #[schemars(range(min = 1, max = 100_000))]
    max_chars: u32,
}

fn chars() -> u32 {
    CHARS
}

/// A message, or a part of it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Read {
    /// The message; absent where a part was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
    /// The part, where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    attachment: Option<Attachment>,
    /// The text of the message or of the part; absent where a part has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Where the text goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// The file that holds the part as it was attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<String>,
}

impl Tool for EmailRead {
    const NAME: &str = "email_read";
    const TITLE: Option<&str> = Some("Read mail");
    const SUMMARY: &str = "Read one message, or save one of its attachments as a file.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need a whole text or an attachment.",
        when_not_to_use: "To find messages: use `email_search`.",
        disambiguation: "It changes nothing: unread messages stay unread.",
        examples: &[r#"{"id":"work:1700000000:42:INBOX","part":"2"}"#],
    };
    type Input = Input;
    type Output = Read;

    fn call(Input { id, part, offset, max_chars }: Input) -> Result<Read> {
        notice(STRANGER);
        match part {
            Some(part) => attachment(&id, &part, offset, max_chars),
            None => message(&id, offset, max_chars),
        }
    }
}

fn message(id: &str, offset: u64, chars: u32) -> Result<Read> {
    let mail::Message { header, text, notices } = mail::read(id, offset, chars)?;
    notices.into_iter().for_each(notice);
    let next_offset = next_offset(&text, offset);
    Ok(Read {
        message: Some(Message::of(header).0),
        attachment: None,
        text: Some(shown(text)),
        next_offset,
        stored: None,
    })
}

fn attachment(id: &str, part: &str, offset: u64, chars: u32) -> Result<Read> {
    let mail::Content { part, text, stored, notices } = mail::attachment(id, part, offset, chars)?;
    notices.into_iter().for_each(notice);
    if stored.is_none() {
        notice("the part was not kept as a file");
    }
    let next_offset = next_offset(&text, offset);
    let is_text = part.media_type.starts_with("text/");
    let text = is_text.then(|| shown(text));
    Ok(Read { message: None, attachment: Some(Attachment::of(part)), text, next_offset, stored })
}

/// Returns a text; where it was cut, a notice says where it goes on.
fn shown(text: Captured) -> String {
    if text.truncated {
        notice(format!(
            "the text has {} bytes from there on, this is its beginning: `next_offset` is where it goes on",
            text.bytes
        ));
    }
    text.text
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_sdk::testing::{Host, Value, json, text};
    use toolcrib_sdk::{Failure, Kind};

    const ID: &str = "work:7:42:INBOX";

    fn header() -> Value {
        json!({
            "id": ID, "account": "work", "folder": "INBOX", "recipients": [], "subject": "Lunch", "unread": false, "bytes": 900,
            "snippet": "", "parts": [], "warnings": [],
        })
    }

    #[test]
    fn a_message_is_read_from_an_offset_on() {
        let cut = json!({ "text": "At nöon", "bytes": 50, "truncated": true, "stored": "/kept/1" });
        let host = Host::new()
            .plays("mail.read", json!({ "header": header(), "text": cut, "notices": ["hidden text was marked"] }))
            .with(json!({ "id": ID, "offset": 10, "chars": 7 }));
        let read = host.call::<EmailRead>(json!({ "id": ID, "offset": 10, "max_chars": 7 })).unwrap();
        let message = json!({ "id": ID, "account": "work", "folder": "INBOX", "subject": "Lunch", "unread": false });
        assert_eq!(read, json!({ "message": message, "text": "At nöon", "next_offset": 17 }));
        let cut = "the text has 50 bytes from there on, this is its beginning: `next_offset` is where it goes on";
        assert_eq!(host.notices(), [STRANGER, "hidden text was marked", cut]);
    }

    #[test]
    fn an_attachment_is_kept_and_text_comes_with_it() {
        let part = |media_type: &str| json!({ "id": "2", "name": "a.x", "media-type": media_type, "bytes": 5 });
        let content = |media_type: &str, said: &str| json!({ "part": part(media_type), "text": text(said), "stored": "/kept/2", "notices": [] });
        let host = Host::new().plays("mail.attachment", content("application/pdf", ""));
        let attachment = json!({ "part": "2", "name": "a.x", "type": "application/pdf", "bytes": 5 });
        let read = host.call::<EmailRead>(json!({ "id": ID, "part": "2" })).unwrap();
        assert_eq!(read, json!({ "attachment": attachment, "stored": "/kept/2" }));
        let host = Host::new().plays("mail.attachment", content("text/csv", "a,b"));
        assert_eq!(host.call::<EmailRead>(json!({ "id": ID, "part": "2" })).unwrap()["text"], "a,b");
        let unkept = json!({ "part": part("image/png"), "text": text(""), "notices": [] });
        let host = Host::new().plays("mail.attachment", unkept);
        assert!(host.call::<EmailRead>(json!({ "id": ID, "part": "2" })).is_ok());
        assert_eq!(host.notices(), [STRANGER, "the part was not kept as a file"]);
    }

    #[test]
    fn what_the_host_refuses_is_returned() {
        let gone = Failure::new(Kind::BUSY, "the message is no longer in `INBOX`").hint("search again");
        let host = Host::new().fails("mail.read", gone.clone());
        assert_eq!(host.call::<EmailRead>(json!({ "id": ID })), Err(gone));
    }
}
