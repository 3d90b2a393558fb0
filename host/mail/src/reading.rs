//! One message: its text, or a part of it. Each is found by its id, which stands for it and no other.

use super::commands::{Items, PartNumber, Uids};
use super::connection::Connection;
use super::id::MessageId;
use super::pool::Work;
use super::search::{Looking, RESULTS, open};
use super::structure::{self, Fetched, Leaf};
use super::trouble::Trouble;
use super::{ATTACHMENT_BYTES, Access, Header, Part, message};
use base::envelope::{Failure, Kind};
use base::text::sanitize;
use futures_util::future::BoxFuture;

/// Bytes of a message's texts that are read, encoded as they are.
const TEXT_BYTES: u32 = 2 << 20;
/// Bytes that a part may have beyond what its server announced.
const SLACK: u64 = 64 << 10;

/// A message that was read.
pub struct Read {
    pub header: Header,
    pub text: String,
    pub notices: Vec<String>,
}

/// A part that was read.
pub struct Content {
    pub part: Part,
    /// As it was attached.
    pub bytes: Vec<u8>,
    /// None for what is no text.
    pub text: Option<String>,
    pub notices: Vec<String>,
}

/// The bytes of a part, with the lines that say how it is written.
struct Bytes {
    head: Vec<u8>,
    body: Vec<u8>,
}

/// Fetches parts of a message, each so many bytes at most.
struct Fetching<'f> {
    id: &'f MessageId,
    parts: Vec<(&'f PartNumber, u32)>,
    with_results: bool,
}

impl Work for Fetching<'_> {
    type Output = (Vec<Bytes>, Vec<u8>);

    fn folder(&self) -> Option<&str> {
        Some(&self.id.folder)
    }

    async fn run(&self, connection: &mut Connection) -> Result<Self::Output, Trouble> {
        open(connection, &self.id.folder, self.id.validity).await?;
        let uids = Uids::These(vec![self.id.uid]);
        let mut parts = Vec::new();
        for (number, most) in &self.parts {
            let most_bytes = usize::try_from(*most).unwrap_or(usize::MAX);
            let fetched = connection.fetch(&uids, Items::Part(number, *most), most_bytes).await?;
            let found = fetched.iter().find_map(|response| {
                let items = structure::Items::of(response).filter(|items| items.uid() == Some(self.id.uid))?;
                let head = items.section(&number.head()).unwrap_or_default().to_vec();
                Some(Bytes { head, body: items.section(&number.to_string())?.to_vec() })
            });
            parts.push(found.ok_or_else(|| Trouble::Own(gone(self.id)))?);
        }
        let mut results = Vec::new();
        if self.with_results {
            let fetched = connection.fetch(&uids, Items::Results, 0).await?;
            let found = fetched.iter().find_map(|response| structure::Items::of(response)?.section(RESULTS));
            results = found.unwrap_or_default().to_vec();
        }
        Ok((parts, results))
    }
}

impl Access<'_> {
    /// Reads the text of a message.
    pub fn read<'a>(&'a self, id: &'a MessageId) -> BoxFuture<'a, Result<Read, Failure>> {
        Box::pin(async move {
            let fetched = self.found(id).await?;
            let mut header = self.header(&id.folder, id.validity, &fetched);
            let mut left = TEXT_BYTES;
            let mut parts = Vec::new();
            let mut notices = Vec::new();
            for leaf in &fetched.body.texts {
                let most = u32::try_from(leaf.bytes.saturating_add(SLACK)).unwrap_or(u32::MAX).min(left);
                if leaf.bytes > u64::from(most) {
                    notices.push(format!(
                        "part {} of the text has {} bytes; {most} of them were read",
                        leaf.number, leaf.bytes
                    ));
                }
                left -= most;
                parts.push((&leaf.number, most));
            }
            let work = Fetching { id, parts, with_results: !self.section.authority.is_empty() };
            let (parts, results) = self.have_done(&work).await.map_err(|trouble| trouble.told(self.account))?;
            header.verified = self.verified(&results, header.sender.as_ref());
            let texts = parts.iter().map(|part| message::text(&part.head, &part.body));
            let texts: Vec<String> = texts
                .map(|message::Text { text, notices: told }| {
                    notices.extend(told);
                    text
                })
                .collect();
            if texts.is_empty() {
                notices.push("the message has no text".into());
            }
            Ok(Read { header, text: texts.join("\n\n"), notices })
        })
    }

    /// Reads a part of a message.
    pub fn attachment<'a>(&'a self, id: &'a MessageId, part: &'a str) -> BoxFuture<'a, Result<Content, Failure>> {
        Box::pin(async move {
            let numbers = PartNumber::parse(part);
            let fetched = self.found(id).await?;
            let Some(leaf) = numbers.and_then(|numbers| fetched.body.leaf(&numbers)) else {
                let all: Vec<_> = fetched.body.others.iter().map(|leaf| leaf.number.to_string()).collect();
                let part = sanitize::beginning(part, 40);
                let hint = if all.is_empty() {
                    "it has no attachments".into()
                } else {
                    format!("its parts are: {}", all.join(", "))
                };
                return Err(Failure::invalid(format!("the message has no part `{part}`")).hint(hint));
            };
            check_size(leaf.decoded_bytes())?;
            let most = u32::try_from(leaf.bytes.saturating_add(SLACK)).unwrap_or(u32::MAX);
            let work = Fetching { id, parts: vec![(&leaf.number, most)], with_results: false };
            let (parts, _) = self.have_done(&work).await.map_err(|trouble| trouble.told(self.account))?;
            let Bytes { head, body } = parts.into_iter().next().ok_or_else(|| gone(id))?;
            content(leaf, &head, &body)
        })
    }

    /// What is known of a message.
    async fn found(&self, id: &MessageId) -> Result<Fetched, Failure> {
        let looking = Looking { folder: &id.folder, validity: id.validity, uids: vec![id.uid], are_old: true };
        let found = self.have_done(&looking).await.map_err(|trouble| trouble.told(self.account))?;
        found.into_iter().next().ok_or_else(|| gone(id))
    }
}

fn content(leaf: &Leaf, head: &[u8], body: &[u8]) -> Result<Content, Failure> {
    let bytes = message::decoded(head, body);
    check_size(bytes.len() as u64)?;
    let mut notices = Vec::new();
    let text = leaf.is_text().then(|| {
        let message::Text { text, notices: told } = message::text(head, body);
        notices = told;
        text
    });
    Ok(Content { part: leaf.shown(), bytes, text, notices })
}

fn check_size(bytes: u64) -> Result<(), Failure> {
    if bytes <= ATTACHMENT_BYTES {
        return Ok(());
    }
    Err(Failure::limit(format!("limit: bytes of an attachment {ATTACHMENT_BYTES}, this one has about {bytes}")))
}

fn gone(id: &MessageId) -> Failure {
    let folder = sanitize::line(&id.folder);
    Failure::new(Kind::Busy, format!("the message is no longer in `{folder}`")).hint("search again")
}
