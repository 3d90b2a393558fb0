//! `wit/mail.wit`: the user's mail, read only.

use super::Refusal;
use super::bindings::toolcrib::plugin::{mail, types};
use crate::reach::Reach;
use crate::sandbox::State;
use ::mail::{Access, Address, Content, Found, Header, MessageId, Part, Query, Read, Terms};
use base::envelope::Failure;
use base::text::sanitize;
use kept_output::Captured;
use policy::guard::Exit;
use policy::mail::MailGrant;
use std::sync::Arc;

/// Characters of a text where none are said, and at most.
const TEXT_CHARS: u32 = 24_000;
const MOST_CHARS: u32 = 200_000;
/// Texts and folders of one query.
const MOST_WORDS: usize = 20;
/// Characters of a folder's name that the record has.
const RECORDED: usize = 100;

/// What each function has at hand, once it is granted.
struct Granted {
    grant: MailGrant,
    scope: Arc<Reach>,
}

impl State {
    fn mailing(&mut self) -> Result<Granted, Failure> {
        Ok(Granted { grant: self.grants()?.mail()?.clone(), scope: self.scope.clone() })
    }
}

impl Granted {
    /// An account that may be read; none stands for the only one.
    fn account(&self, account: Option<&str>) -> Result<Access<'_>, Failure> {
        let admitted = self.grant.admit_account(account);
        if let Err(refusal) = &admitted {
            MailGrant::record(format!("read {}", shown(account.unwrap_or("mail"))), Err(refusal), &self.scope);
        }
        admitted.map(|(account, section)| Access {
            account,
            section,
            grant: &self.grant,
            scope: &self.scope.scope,
            egress: &self.scope.services.egress,
        })
    }

    /// Decides on a folder of an account, and writes down what is done there.
    fn folder(&self, access: &Access<'_>, folder: &str, what: &str) -> Result<(), Failure> {
        let admitted = self.grant.admit_folder(access.account, folder);
        access.note(&format!("{what} `{}` of {}", shown(folder), access.account), admitted.as_ref().copied());
        admitted
    }

    /// The message of an id, in a folder that may be read.
    fn message(&self, id: &str, what: &str) -> Result<(Access<'_>, MessageId), Failure> {
        let id = MessageId::parse(id)?;
        let access = self.account(Some(&id.account))?;
        self.folder(&access, &id.folder, &format!("{what} {} in", id.uid))?;
        Ok((access, id))
    }

    fn redacted(&self, text: &str) -> String {
        self.scope.guard.redact(text).into_owned()
    }

    fn header(&self, header: Header) -> mail::Header {
        let address = |Address { name, address }: Address| mail::Address {
            name: self.redacted(&name),
            address: self.redacted(&address),
        };
        mail::Header {
            id: header.id,
            account: header.account,
            folder: header.folder,
            sender: header.sender.map(address),
            recipients: header.recipients.into_iter().map(address).collect(),
            subject: self.redacted(&header.subject),
            date_ms: header.date_ms,
            unread: header.is_unread,
            bytes: header.bytes,
            verified: header.verified,
            snippet: self.redacted(&header.snippet),
            parts: header.parts.into_iter().map(|part| self.part(part)).collect(),
            warnings: header.warnings.iter().map(|warning| self.redacted(warning)).collect(),
        }
    }

    fn part(&self, Part { id, name, media_type, bytes }: Part) -> mail::Part {
        mail::Part { id, name: name.map(|name| self.redacted(&name)), media_type: self.redacted(&media_type), bytes }
    }

    fn notices(&self, notices: &[String]) -> Vec<String> {
        notices.iter().map(|notice| self.redacted(notice)).collect()
    }

    /// A text from an offset on, and of that the beginning; the rest is kept.
    async fn cut(&self, text: &str, offset: u64, chars: u32) -> types::Captured {
        let text = self.scope.guard.redact(text);
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        let begin = text.char_indices().nth(begin).map_or(text.len(), |(begin, _)| begin);
        let chars = if chars == 0 { TEXT_CHARS } else { chars.min(MOST_CHARS) };
        let name = format!("{}.mail", self.scope.id);
        let mut capture = self.scope.output.capture(name, chars as usize, usize::MAX);
        capture.push(text[begin..].as_bytes()).await;
        self.kept(capture.finish().await).into()
    }

    /// Keeps the bytes of an attachment, and says where.
    async fn keep(&self, part: &str, mut bytes: Vec<u8>) -> Result<Option<String>, Failure> {
        let most = self.scope.output.most_bytes();
        if bytes.len() as u64 > most {
            let message = format!("limit: bytes of one kept file {most}, the attachment has {}", bytes.len());
            return Err(Failure::limit(message).hint("`kept_stream_mib` under [limits] bounds what is kept"));
        }
        self.scope.guard.redact_bytes(&mut bytes);
        let mut capture = self.scope.output.capture(format!("{}.part-{part}", self.scope.id), 0, 0);
        capture.push(&bytes).await;
        Ok(self.kept(capture.finish().await).stored)
    }

    fn kept(&self, captured: Captured) -> Captured {
        captured.stored.iter().for_each(|path| self.scope.remember_kept(path));
        captured
    }
}

fn shown(text: &str) -> String {
    sanitize::beginning(text, RECORDED)
}

/// What of a query goes to the server is held against the secrets that must not.
fn query(asked: mail::Query, scope: &Reach) -> Result<Query, Failure> {
    let mail::Query { folders, words, sender, recipient, subject, since_ms, before_ms, unread, with_attachment, limit } =
        asked;
    if words.len() > MOST_WORDS || folders.len() > MOST_WORDS {
        return Err(Failure::limit(format!("limit: words and folders of a search {MOST_WORDS} each")));
    }
    let texts: Vec<&String> = words.iter().chain([&sender, &recipient, &subject].into_iter().flatten()).collect();
    scope.guard.check(Exit::Request, texts.iter().map(|text| text.as_bytes()))?;
    let terms = Terms { words, sender, recipient, subject, since_ms, before_ms, is_unread: unread };
    Query::new(folders, terms, with_attachment, limit)
}

impl mail::Host for State {
    async fn accounts(&mut self) -> Result<Vec<String>, Refusal> {
        Ok(self.mailing()?.grant.accounts())
    }

    async fn folders(&mut self, account: Option<String>) -> Result<Vec<mail::Folder>, Refusal> {
        let granted = self.mailing()?;
        let access = granted.account(account.as_deref())?;
        access.note(&format!("list the folders of {}", access.account), Ok(()));
        let folders = granted.scope.within(access.folders()).await?;
        let folder = |::mail::Folder { name, messages, unread }| mail::Folder { name, messages, unread };
        Ok(folders.into_iter().map(folder).collect())
    }

    async fn search(&mut self, account: Option<String>, asked: mail::Query) -> Result<mail::Found, Refusal> {
        let granted = self.mailing()?;
        let access = granted.account(account.as_deref())?;
        let (mut query, mut notices) = (query(asked, &granted.scope)?, Vec::new());
        let named = query.folders.len();
        let mut refusal = None;
        // One that is not granted becomes a notice beside what others have; without others, the search is refused.
        query.folders.retain(|folder| match granted.folder(&access, folder, "search") {
            Ok(()) => true,
            Err(denied) => {
                notices.push(format!("{}; {}", denied.message, denied.hint.as_deref().unwrap_or_default()));
                refusal = Some(denied);
                false
            }
        });
        if let Some(denied) = refusal.filter(|_| query.folders.is_empty()) {
            return Err(denied.into());
        }
        if named == 0 {
            access.note(&format!("search all folders of {} that may be read", access.account), Ok(()));
        }
        let Found { hits, back_to_ms, notices: told } = granted.scope.within(access.search(&query)).await?;
        notices.extend(told);
        Ok(mail::Found {
            hits: hits.into_iter().map(|hit| granted.header(hit)).collect(),
            searched_back_to_ms: back_to_ms,
            notices: granted.notices(&notices),
        })
    }

    async fn read(&mut self, id: String, offset: u64, chars: u32) -> Result<mail::Message, Refusal> {
        let granted = self.mailing()?;
        let (access, id) = granted.message(&id, "read message")?;
        let read = async {
            let Read { header, text, notices } = access.read(&id).await?;
            Ok((granted.header(header), granted.cut(&text, offset, chars).await, granted.notices(&notices)))
        };
        let (header, text, notices) = granted.scope.within(read).await?;
        Ok(mail::Message { header, text, notices })
    }

    async fn attachment(
        &mut self,
        id: String,
        part: String,
        offset: u64,
        chars: u32,
    ) -> Result<mail::Content, Refusal> {
        let granted = self.mailing()?;
        let (access, id) = granted.message(&id, &format!("read part {} of message", shown(&part)))?;
        let read = async {
            let Content { part, bytes, text, notices } = access.attachment(&id, &part).await?;
            let text = granted.cut(text.as_deref().unwrap_or_default(), offset, chars).await;
            let stored = granted.keep(&part.id, bytes).await?;
            Ok(mail::Content { part: granted.part(part), text, stored, notices: granted.notices(&notices) })
        };
        granted.scope.within(read).await
    }
}
