//! Which commits a remote has, as the user's own git hears from it.

use super::Keyring;
use super::password::QUIET;
use base::envelope::{Failure, Kind};
use base::text::sanitize;
use futures_util::future::BoxFuture;
use gix_hash::ObjectId;

/// Nobody is there to be asked by ssh, and git starts no other program for a remote.
const ALONE: [(&str, &str); 2] =
    [("GIT_SSH_COMMAND", "ssh -o BatchMode=yes"), ("GIT_ALLOW_PROTOCOL", "https:http:ssh:git:file")];

impl Keyring {
    /// The commits of its branches and tags.
    pub fn commits_of<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<ObjectId>, Failure>> {
        Box::pin(async move {
            let variables = [&QUIET[..], &ALONE].concat();
            let asked = self.run(&["git", "ls-remote", "--heads", "--tags", "--", url], b"", &variables).await?;
            if asked.status != 0 {
                let why = sanitize::visible_line(&String::from_utf8_lossy(&asked.stderr));
                return Err(Failure::new(Kind::Unavailable, format!("the remote does not answer: {why}")));
            }
            let said = String::from_utf8_lossy(&asked.stdout);
            Ok(said.lines().filter_map(|line| ObjectId::from_hex(line.split('\t').next()?.as_bytes()).ok()).collect())
        })
    }
}
