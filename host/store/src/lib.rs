//! What stays: JSON documents of agents, in one file of the state directory. It is opened when it is first needed.
//!
//! - `query.rs` is what is looked for, `sqlite.rs` the tables and their SQL;
//! - `vectors.rs` makes vectors of texts in the background, and looks for what is near;
//! - `queue.rs` keeps jobs until they run, and schedules, for the programs of one machine;
//! - `exchange.rs` is a store as a file of JSON lines.
//!
//! A namespace is an agent and a plugin of it; nothing here takes one from a guest. Limits are held in the transaction that would break them.
//!
//! It depends on `embeddings`, which makes vectors, on `policy`, and on `base` and `config`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

pub mod calendar;
pub mod engine;
mod exchange;
pub mod job;
mod query;
pub mod queue;
pub mod schedule;
mod sqlite;
pub mod timing;
mod vectors;

pub use exchange::{Holding, Imported, export, import, list};
pub use query::{Page, Query};
pub use sqlite::Checked;
pub use sqlite::now_ms;
pub use vectors::Embedded;

use base::dirs::Dirs;
use base::disk::OwnDir;
use base::envelope::{Failure, Kind};
use embeddings::Embeddings;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use policy::records::RecordsGrant;
use policy::session::Session;
use serde_json::Value;
use sqlite::Sqlite;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;
use vectors::Background;

/// The file in the state directory.
const FILE: &str = "store.sqlite";
/// Where a plugin keeps texts that its agent is to see all the time.
pub const PINNED: &str = "@pinned";
/// Bytes of a collection's name, and of a key.
const NAME_BYTES: usize = 256;
/// Changes that are made together.
const CHANGES: usize = 100;

/// Whose documents they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    pub agent: String,
    pub plugin: String,
}

impl Namespace {
    /// Those of a session's agent, or of this program's where the session says none.
    pub fn of(grant: &RecordsGrant, session: &Session) -> Self {
        Self { agent: session.agent(grant.agent()), plugin: grant.plugin().to_owned() }
    }
}

/// A document.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub key: String,
    /// JSON.
    pub body: String,
    pub revision: u64,
    pub made_ms: u64,
    pub changed_ms: u64,
    pub rank: f32,
}

/// What a change is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    pub collection: String,
    pub key: String,
}

/// One of several changes that are made together.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Put(Name, String),
    /// 0: there is none.
    Expect(Name, u64),
    Delete(Name),
    /// The text at this JSON pointer is found by its meaning.
    Embed(Name, String),
}

/// The store of a host.
pub struct Store {
    directory: PathBuf,
    limits: config::Store,
    engine: Mutex<Option<Arc<Sqlite>>>,
    /// Told of each change of what is pinned.
    pub pins: watch::Sender<()>,
    embeddings: Embeddings,
    background: Background,
}

impl Store {
    pub fn new(directory: PathBuf, limits: config::Store, embeddings: Embeddings) -> Self {
        let (engine, pins, background) = (Mutex::default(), watch::Sender::default(), Background::default());
        Self { directory, limits, engine, pins, embeddings, background }
    }

    /// Whether anything was ever kept.
    pub fn is_there(&self) -> bool {
        self.engine.lock().is_some() || self.directory.join(FILE).exists()
    }

    /// One document.
    pub fn get(self: &Arc<Self>, of: Namespace, name: Name) -> BoxFuture<'_, Result<Option<Item>, Failure>> {
        Box::pin(async move {
            check_name(&name)?;
            self.with(move |engine, _| engine.get(&of, &name)).await
        })
    }

    /// Makes changes together, or none of them.
    pub fn commit(self: &Arc<Self>, of: Namespace, changes: Vec<Change>) -> BoxFuture<'_, Result<Vec<Item>, Failure>> {
        Box::pin(async move {
            if changes.len() > CHANGES {
                return Err(Failure::limit(format!(
                    "{} changes at once are too many (limit: {CHANGES})",
                    changes.len()
                )));
            }
            for change in &changes {
                match change {
                    Change::Put(name, body) => {
                        check_name(name)?;
                        check_body(name, body, &self.limits)?;
                    }
                    Change::Expect(name, _) | Change::Delete(name) => check_name(name)?,
                    Change::Embed(name, pointer) => {
                        check_name(name)?;
                        query::path(pointer)?;
                    }
                }
            }
            let pins = changes.iter().any(concerns);
            let embeds = changes.iter().any(|change| matches!(change, Change::Embed(..)));
            let made = self.with(move |engine, limits| engine.commit(&of, &changes, limits)).await;
            if embeds && made.is_ok() {
                self.embed_own();
            }
            if pins && made.is_ok() {
                self.pins.send_replace(());
            }
            made
        })
    }

    /// The documents that a query means.
    pub fn find(self: &Arc<Self>, of: Namespace, query: Query) -> BoxFuture<'_, Result<Page, Failure>> {
        Box::pin(async move { self.with(move |engine, _| engine.find(&of, &query)).await })
    }

    /// Does something with the engine, off the threads that serve calls.
    async fn with<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Sqlite, &config::Store) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let store = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&*store.engine()?, &store.limits)).await;
        done.map_err(|error| Failure::new(Kind::Internal, format!("work on the store did not end: {error}")))?
    }

    fn engine(&self) -> Result<Arc<Sqlite>, Failure> {
        let mut engine = self.engine.lock();
        if let Some(engine) = engine.as_ref() {
            return Ok(engine.clone());
        }
        let directory = OwnDir::open(&self.directory).map_err(|error| no_place(&base::disk::told(&error)))?;
        let opened = Arc::new(Sqlite::open(&directory.path().join(FILE), self.limits.sync)?);
        *engine = Some(opened.clone());
        Ok(opened)
    }
}

/// The store cannot be used now.
fn unusable(why: &str) -> Failure {
    Failure::new(Kind::Unavailable, format!("the store cannot be used: {why}"))
        .hint("`toolcrib store check` looks at it; what was answered as done is in it")
}

/// The store has no place: nothing is wrong with what is in it.
fn no_place(why: &str) -> Failure {
    Failure::new(Kind::Unavailable, format!("the store cannot be used: {why}"))
        .hint("let this user write there, or set XDG_STATE_HOME to a directory where that is so")
}

fn check_name(Name { collection, key }: &Name) -> Result<(), Failure> {
    let fits = |text: &str| (1..=NAME_BYTES).contains(&text.len()) && !text.contains(char::is_control);
    match fits(collection) && fits(key) {
        true => Ok(()),
        false => {
            Err(Failure::invalid(format!("collections and keys have 1 to {NAME_BYTES} bytes, no control characters")))
        }
    }
}

fn check_body(name: &Name, body: &str, limits: &config::Store) -> Result<(), Failure> {
    if body.len() as u64 > limits.item_kib << 10 {
        let message = format!("`{}` has {} bytes (limit: {} KiB)", name.key, body.len(), limits.item_kib);
        return Err(Failure::limit(message).hint("`item_kib` under [store] raises that"));
    }
    // As a whole: what is nested too deeply for its texts to be read is no document.
    serde_json::from_str::<Value>(body)
        .map(drop)
        .map_err(|error| Failure::invalid(format!("the body of `{}` is not JSON: {error}", name.key)))
}

/// All texts of a document, a line each: by these it is found.
pub fn texts(body: &str) -> String {
    fn add(value: &Value, texts: &mut String) {
        match value {
            Value::String(text) => {
                texts.push_str(text);
                texts.push('\n');
            }
            Value::Array(items) => items.iter().for_each(|item| add(item, texts)),
            Value::Object(members) => members.values().for_each(|member| add(member, texts)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut texts = String::new();
    add(&serde_json::from_str(body).unwrap_or_default(), &mut texts);
    texts
}

/// Looks at all of a store; none where there is none.
///
/// # Errors
///
/// `unavailable` where it cannot be read at all.
pub fn check(dirs: &Dirs) -> Result<Option<Checked>, Failure> {
    existing(dirs)?.map(|engine| engine.check()).transpose()
}

/// Writes a copy of a store to a file that is not there yet, for this user alone; false where there is no store.
///
/// # Errors
///
/// `usage` where the file cannot be made, `unavailable` where the store cannot be read, or the disk is full.
pub fn backup(dirs: &Dirs, to: &Path) -> Result<bool, Failure> {
    let Some(engine) = existing(dirs)? else { return Ok(false) };
    create(to)?;
    let outcome = engine.backup(to).map(|()| true);
    if outcome.is_err() {
        // Half a copy is worth nothing, and would be in the way of the next one.
        let _ = std::fs::remove_file(to);
    }
    outcome
}

/// Makes a file that is not there yet, for this user alone.
fn create(file: &Path) -> Result<File, Failure> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    made.map_err(|error| Failure::new(Kind::Usage, format!("`{}` cannot be written: {error}", file.display())))
}

/// The engine of a store that there is.
fn existing(dirs: &Dirs) -> Result<Option<Sqlite>, Failure> {
    let directory = OwnDir::open(&dirs.state).map_err(|error| no_place(&base::disk::told(&error)))?;
    let file = directory.path().join(FILE);
    file.exists().then(|| Sqlite::open(&file, config::StoreSync::Normal)).transpose()
}

/// Whether a change is one of what is pinned.
fn concerns(change: &Change) -> bool {
    match change {
        Change::Put(name, _) | Change::Delete(name) => name.collection == PINNED,
        Change::Expect(..) | Change::Embed(..) => false,
    }
}
