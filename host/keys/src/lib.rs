//! Keys and passwords of the user's, for commands in a cell: what has them stays outside, and is asked for a signature or a password here.
//!
//! A cell has sockets of this process for that (`backend/cell/listeners.rs`). `ssh.rs` speaks the protocol of ssh-agent; `git.rs` serves the
//! program that git calls in a cell, for signatures of gpg (`gpg.rs`) and for passwords (`password.rs`). `remotes.rs` asks what a remote has.
//! Whether a key is used a person decides (`policy/keys.rs`).
//!
//! It depends on `backend`, `base` and `leaks`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod git;
mod gpg;
mod password;
mod remotes;
mod ssh;

use backend::cell::Asked;
use backend::own::OwnPrograms;
use backend::{Finished, finish};
use base::dirs::Dirs;
use base::envelope::{Failure, Kind, duration};
use base::target::Target;
use futures_util::future::BoxFuture;
use leaks::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

/// How long a program of the user's may take: a person may have to type a passphrase, or to touch a key.
const PATIENCE: Duration = Duration::from_mins(2);

/// What has the keys of a user.
#[derive(Clone)]
pub struct Keyring {
    runner: Arc<OwnPrograms>,
    /// The socket of the user's ssh-agent.
    ssh: Option<PathBuf>,
    /// Where ssh keeps the keys of servers.
    known_hosts: PathBuf,
}

impl Keyring {
    pub fn new(dirs: &Dirs) -> Self {
        let variable = |name: &str| dirs.environment.get(name).filter(|value| !value.is_empty());
        Self {
            runner: Arc::new(OwnPrograms::new(dirs)),
            ssh: variable("SSH_AUTH_SOCK").map(PathBuf::from).filter(|socket| socket.is_absolute()),
            known_hosts: dirs.home.join(".ssh/known_hosts"),
        }
    }

    /// Whether the user has an ssh-agent.
    pub fn has_ssh(&self) -> bool {
        self.ssh.is_some()
    }

    /// Runs a program of the user's to its end, with this on its standard input.
    async fn run(&self, argv: &[&str], input: &[u8], variables: &[(&str, &str)]) -> Result<Finished, Failure> {
        let unavailable = |why: String| Failure::new(Kind::Unavailable, format!("`{}` {why}", argv[0]));
        let words = argv.iter().map(Into::into).collect();
        let (process, mut to) = self.runner.open_with(words, variables).await?;
        let run = async {
            // One that ends before it has read all says why by its status.
            let _ = to.write_all(input).await;
            drop(to);
            finish(process).await
        };
        let ended = tokio::time::timeout(PATIENCE, run).await;
        let ended = ended.map_err(|_| unavailable(format!("took more than {}", duration(PATIENCE))))?;
        ended.map_err(|error| unavailable(format!("was lost: {error}")))
    }
}

/// What is asked for.
pub struct Wanted {
    pub what: What,
    /// What it is for, as people read it.
    pub action: String,
    /// What is signed, where that can be read.
    pub details: Option<String>,
    /// What an answer for the session covers: a key, and what it is used for.
    pub covers: String,
}

/// What a command gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Signature,
    Password,
}

/// The commands of a cell, as who asks for them.
pub trait Asker: Send + Sync {
    /// The keys that may be used.
    ///
    /// # Errors
    ///
    /// When no call is there whose person could be asked.
    fn keyring(&self) -> Result<Keyring, Failure>;

    /// Asks a person.
    fn ask<'a>(&'a self, wanted: &'a Wanted) -> BoxFuture<'a, Result<(), Failure>>;

    /// Has the call told why a program did not get what it asked for.
    fn refuse(&self, refusal: &Failure);

    /// The commands have a password of this server from here on.
    ///
    /// # Errors
    ///
    /// When no call is there any more whose bounds would hold: then they do not get it.
    fn lent(&self, server: &Target, password: &Value) -> Result<(), Failure>;
}

/// Serves one connection of a program in a cell.
pub fn serve(asker: Box<dyn Asker>, by: Asked, program: UnixStream) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        match by {
            Asked::BySsh => ssh::serve(&*asker, program).await,
            Asked::ByGit => git::serve(&*asker, program).await,
        }
    })
}
