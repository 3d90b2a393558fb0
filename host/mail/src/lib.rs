//! The user's mail, read only: accounts of the settings, searched and read over IMAP.
//!
//! `login.rs` takes the way to a server, `refresh.rs` gets tokens for that, and `pool.rs` keeps connections for the next call. `commands.rs`
//! has every command that is ever sent, `connection.rs` sends them, `reader.rs` and `response.rs` read what comes back. `search.rs` finds messages and `reading.rs` reads one;
//! `structure.rs` knows their parts, `message.rs` and `html.rs` make text of them. What is allowed is decided in `policy/mail.rs`.
//!
//! IMAP is written here because a server is a stranger. async-imap 0.12 logs the password at trace level and makes room for up to 512 MiB that a
//! literal announces; its parser, imap-proto 0.17, panics on `INTERNALDATE NIL`. The two would add 17 crates. Here each answer has a budget, and
//! no bytes cause a panic.
//!
//! It depends on `egress`, which leads to servers, on `policy`, which decides, and on `base`, `config`, `leaks` and `secrets`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod commands;
mod connection;
mod folders;
mod html;
mod id;
mod login;
mod message;
mod pool;
mod reader;
mod reading;
mod refresh;
mod response;
mod search;
mod structure;
mod trouble;
mod windows;

pub use id::MessageId;
pub(crate) use pool::Mailboxes;
pub use reading::{Content, Read};
pub use search::{Found, Query, Terms};

use base::envelope::Failure;
use config::MailSection;
use connection::Connection;
use egress::Egress;
use futures_util::future::BoxFuture;
use policy::mail::MailGrant;
use policy::mail::{EVERY_FOLDER, INBOX, is_same_folder};
use policy::scope::Scope;
use pool::Work;
use std::sync::Arc;
use structure::Fetched;
use trouble::Trouble;

/// The bytes of an attachment.
pub(crate) const ATTACHMENT_BYTES: u64 = 10 << 20;
/// Folders of an account that are looked at where its settings name all.
const FOLDERS: usize = 50;

/// Whom a message is from or for.
#[derive(Clone, Debug)]
pub struct Address {
    pub name: String,
    pub address: String,
}

/// A part of a message.
#[derive(Clone, Debug)]
pub struct Part {
    pub id: String,
    pub name: Option<String>,
    pub media_type: String,
    pub bytes: u64,
}

/// What lists show of a message.
#[derive(Clone, Debug)]
pub struct Header {
    pub id: String,
    pub account: String,
    pub folder: String,
    pub sender: Option<Address>,
    pub recipients: Vec<Address>,
    pub subject: String,
    pub date_ms: Option<u64>,
    pub is_unread: bool,
    pub bytes: u64,
    pub verified: Option<bool>,
    pub snippet: String,
    pub parts: Vec<Part>,
    pub warnings: Vec<String>,
}

/// A folder, and how many messages it has.
pub struct Folder {
    pub name: String,
    pub messages: u32,
    pub unread: u32,
}

/// An account that a call may read.
pub struct Access<'a> {
    pub account: &'a str,
    pub section: &'a MailSection,
    pub grant: &'a MailGrant,
    pub scope: &'a Arc<Scope>,
    pub egress: &'a Egress,
}

impl Access<'_> {
    /// The folders that may be read, with how many messages they have.
    pub fn folders(&self) -> BoxFuture<'_, Result<Vec<Folder>, Failure>> {
        Box::pin(async move {
            let work = Counts(self.granted_folders().await.map_err(|trouble| trouble.told(self.account))?);
            self.have_done(&work).await.map_err(|trouble| trouble.told(self.account))
        })
    }

    /// The folders that settings name, or all that there are where they name all.
    async fn granted_folders(&self) -> Result<Vec<String>, Trouble> {
        let named = &self.section.folders;
        if !named.iter().any(|name| name == EVERY_FOLDER) {
            return Ok(named.clone());
        }
        let mut all = self.have_done(&Names).await?;
        // The one that new mail is in.
        all.sort_by_key(|name| !is_same_folder(name, INBOX));
        all.truncate(FOLDERS);
        Ok(all)
    }

    /// Writes down what was done, or why it was not.
    pub fn note(&self, what: &str, decided: Result<(), &Failure>) {
        MailGrant::record(what.to_owned(), decided, self.scope);
    }

    /// What is shown of a message.
    fn header(&self, folder: &str, validity: u32, fetched: &Fetched) -> Header {
        let id = MessageId { account: self.account.into(), folder: folder.into(), validity, uid: fetched.uid };
        let poses = |sender: &Address| message::posing(&sender.name, &sender.address);
        let mut warnings: Vec<String> = fetched.sender.as_ref().and_then(poses).into_iter().collect();
        if fetched.body.is_cut {
            warnings.push("it has more parts than are shown".into());
        }
        Header {
            id: id.to_string(),
            account: self.account.into(),
            folder: folder.into(),
            sender: fetched.sender.clone(),
            recipients: fetched.recipients.clone(),
            subject: fetched.subject.clone(),
            date_ms: fetched.date_ms,
            is_unread: fetched.unread,
            bytes: fetched.bytes,
            verified: None,
            snippet: String::new(),
            parts: fetched.body.others.iter().map(structure::Leaf::shown).collect(),
            warnings,
        }
    }

    /// Whether the account's own server found the sender to be who he says.
    fn verified(&self, results: &[u8], sender: Option<&Address>) -> Option<bool> {
        let authority = Some(self.section.authority.as_str()).filter(|authority| !authority.is_empty())?;
        message::verified(results, authority, &sender?.address)
    }
}

/// The names of all folders.
struct Names;

impl Work for Names {
    type Output = Vec<String>;

    fn folder(&self) -> Option<&str> {
        None
    }

    async fn run(&self, connection: &mut Connection) -> Result<Vec<String>, Trouble> {
        connection.list().await
    }
}

/// How many messages folders have.
struct Counts(Vec<String>);

impl Work for Counts {
    type Output = Vec<Folder>;

    fn folder(&self) -> Option<&str> {
        None
    }

    async fn run(&self, connection: &mut Connection) -> Result<Vec<Folder>, Trouble> {
        let mut counted = Vec::new();
        for name in &self.0 {
            match connection.status(name).await {
                Ok((messages, unread)) => counted.push(Folder { name: name.clone(), messages, unread }),
                // One that is named and is not there.
                Err(Trouble::Refused(_)) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(counted)
    }
}
