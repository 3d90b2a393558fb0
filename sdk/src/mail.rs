//! The user's mail, read only: nothing is marked as read, moved, deleted or sent.
//!
//! Accounts are those of the settings that the grant names; `None` stands for the only one. A message is named by its id, which stands for it and
//! no other. Names, subjects and texts are written by whoever sent the message: they are data, whatever they say.
//!
//! ```
//! use toolcrib_sdk::mail::{self, Query};
//! use toolcrib_sdk::testing::{Host, json, text};
//! use toolcrib_sdk::Result;
//!
//! /// Returns the text of the newest unread message of a sender, if there is one.
//! fn newest(sender: &str) -> Result<Option<String>> {
//!     let found = mail::search(None, &Query::default().sender(sender).unread().limit(1))?;
//!     let Some(hit) = found.hits.first() else { return Ok(None) };
//!     Ok(Some(mail::read(&hit.id, 0, 2000)?.text.text))
//! }
//!
//! // In a test:
//! let header = json!({
//!     "id": "work:7:42:INBOX", "account": "work", "folder": "INBOX", "sender": { "name": "Ann", "address": "ann@example.com" },
//!     "recipients": [], "subject": "Lunch", "date-ms": 1700000000000u64, "unread": true, "bytes": 900, "snippet": "At noon", "parts": [],
//!     "warnings": [],
//! });
//! let host = Host::new()
//!     .plays("mail.search", json!({ "hits": [header.clone()], "notices": [] }))
//!     .with(json!({ "query": { "sender": "ann", "unread": true, "limit": 1 } }))
//!     .plays("mail.read", json!({ "header": header, "text": text("At noon?"), "notices": [] }));
//! assert_eq!(host.run(|| newest("ann")), Ok(Some("At noon?".into())));
//! ```

use crate::host::mail;
use crate::{Failure, Result};

pub use mail::{Address, Content, Folder, Found, Header, Message, Part, Query};

impl Query {
    /// Searches this folder; again for more. Without any it is all that settings name.
    #[must_use]
    pub fn folder(mut self, name: &str) -> Self {
        self.folders.push(name.into());
        self
    }

    /// Finds messages that have this text somewhere, headers included; again for more, each of which they have.
    #[must_use]
    pub fn words(mut self, text: &str) -> Self {
        self.words.push(text.into());
        self
    }

    /// Finds messages whose sender's name or address has this in it.
    #[must_use]
    pub fn sender(self, text: &str) -> Self {
        Self { sender: Some(text.into()), ..self }
    }

    /// Finds messages to somebody whose name or address has this in it.
    #[must_use]
    pub fn recipient(self, text: &str) -> Self {
        Self { recipient: Some(text.into()), ..self }
    }

    /// Finds messages whose subject has this in it.
    #[must_use]
    pub fn subject(self, text: &str) -> Self {
        Self { subject: Some(text.into()), ..self }
    }

    /// Finds messages that were received on the day of this time or later, in ms since 1970.
    #[must_use]
    pub fn since_ms(self, ms: u64) -> Self {
        Self { since_ms: Some(ms), ..self }
    }

    /// Finds messages that were received before the day of this time, in ms since 1970.
    #[must_use]
    pub fn before_ms(self, ms: u64) -> Self {
        Self { before_ms: Some(ms), ..self }
    }

    /// Finds unread messages only.
    #[must_use]
    pub fn unread(self) -> Self {
        Self { unread: true, ..self }
    }

    /// Finds messages with attachments only.
    #[must_use]
    pub fn with_attachment(self) -> Self {
        Self { with_attachment: true, ..self }
    }

    /// Finds at most so many messages, and never more than 50; 10 by default.
    #[must_use]
    pub fn limit(self, hits: u32) -> Self {
        Self { limit: hits, ..self }
    }
}

/// Returns the names of the accounts that are granted. Asks no server.
///
/// # Errors
/// `denied`.
pub fn accounts() -> Result<Vec<String>> {
    mail::accounts().map_err(Failure::from_host)
}

/// Returns the folders of an account that may be read.
///
/// # Errors
/// `denied` by policy, and where the server refuses the login; `invalid_arguments` for an account that is not there, and for none where there are
/// several; `timed_out`, or `unavailable`.
pub fn folders(account: Option<&str>) -> Result<Vec<Folder>> {
    mail::folders(account).map_err(Failure::from_host)
}

/// Searches, newest first, 8 seconds a folder and 20 seconds in all. A folder that fails is a notice as long as another one does not.
///
/// # Errors
/// As [`folders`].
pub fn search(account: Option<&str>, query: &Query) -> Result<Found> {
    mail::search(account, query).map_err(Failure::from_host)
}

/// Returns a message: its header, and at most so many characters of its text from an offset on; 24,000 for 0.
///
/// # Errors
/// `busy` where the message is gone, or its folder was rebuilt; else as [`folders`].
pub fn read(id: &str, offset: u64, chars: u32) -> Result<Message> {
    mail::read(id, offset, chars).map_err(Failure::from_host)
}

/// Returns a part of a message, which the host keeps as a file; text comes with it, as [`read`] gives it.
///
/// # Errors
/// `limit` for more than 10 MiB; `invalid_arguments` where there is no such part; else as [`read`].
pub fn attachment(id: &str, part: &str, offset: u64, chars: u32) -> Result<Content> {
    mail::attachment(id, part, offset, chars).map_err(Failure::from_host)
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub use contract::mail::{Address, Content, Folder, Found, Header, Message, Part, Query};

    pub(crate) const CALLS: &[&[Signature]] = &[SIGNATURES];

    functions! { "mail":
        accounts() -> Vec<String>;
        folders(account: Option<&str>) -> Vec<Folder>;
        search(account: Option<&str>, query: &Query) -> Found;
        read(id: &str, offset: u64, chars: u32) -> Message;
        attachment(id: &str, part: &str, offset: u64, chars: u32) -> Content;
    }

    written! {
        Query {
            folders, words, sender, recipient, subject, since_ms, before_ms, unread, with_attachment, limit
        }
    }

    read! {
        Folder { name, messages, unread }
        Address { name, address }
        Part { id, name, media_type, bytes }
        Header {
            id, account, folder, sender, recipients, subject, date_ms, unread, bytes, verified, snippet, parts, warnings
        }
        Found { hits, searched_back_to_ms, notices }
        Message { header, text, notices }
        Content { part, text, stored, notices }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Host, json, text};

    #[test]
    fn a_query_says_what_it_wants_in_the_words_of_the_contract() {
        let host =
            Host::new().plays("mail.search", json!({ "hits": [], "searched-back-to-ms": 5, "notices": ["late"] }));
        let query =
            Query::default().folder("INBOX").words("a").words("b c").sender("ann").recipient("bob").subject("x");
        let query = query.since_ms(1).before_ms(2).unread().with_attachment().limit(3);
        let found = host.run(|| search(Some("work"), &query)).expect("what was played");
        assert_eq!((found.hits.len(), found.searched_back_to_ms, found.notices), (0, Some(5), vec!["late".into()]));
        let wanted = json!({ "account": "work", "query": {
            "folders": ["INBOX"], "words": ["a", "b c"], "sender": "ann", "recipient": "bob", "subject": "x", "since-ms": 1, "before-ms": 2,
            "unread": true, "with-attachment": true, "limit": 3,
        } });
        assert_eq!(host.calls()[0].arguments, wanted);
    }

    #[test]
    fn what_is_not_said_is_left_to_the_host() {
        let part = json!({ "id": "2", "name": "a.pdf", "media-type": "application/pdf", "bytes": 5 });
        let host = Host::new()
            .plays("mail.accounts", json!(["work"]))
            .plays("mail.folders", json!([{ "name": "INBOX", "messages": 2, "unread": 1 }]))
            .plays("mail.attachment", json!({ "part": part, "text": text(""), "stored": "/kept/1", "notices": [] }));
        host.run(|| {
            assert_eq!(accounts(), Ok(vec!["work".into()]));
            assert_eq!(folders(None).map(|folders| folders[0].unread), Ok(1));
            let content = attachment("work:7:42:INBOX", "2", 0, 0).expect("what was played");
            assert_eq!((content.part.name.as_deref(), content.stored.as_deref()), (Some("a.pdf"), Some("/kept/1")));
        });
        let given: Vec<_> = host.calls().into_iter().map(|call| call.arguments).collect();
        let id = "work:7:42:INBOX";
        assert_eq!(given, [json!({}), json!({}), json!({ "id": id, "part": "2", "offset": 0, "chars": 0 })]);
    }
}
