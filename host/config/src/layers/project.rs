//! A project's file as a layer. If its user has accepted none of that directory, it can only narrow, and one that cannot be used is a notice: any
//! command that ran there can have left it.

use super::super::read::{Author, ConfigError, Leaf, Reader, read_text};
use super::{Draft, MAX_NOTICES};
use base::text::sanitize;
use sha2::{Digest, Sha256};
use std::path::Path;

/// Characters of what is wrong with a file.
const MOST_CHARS: usize = 500;

/// A file that cannot be used.
struct Broken {
    why: ConfigError,
    /// The settings that it names, as far as that can be told.
    named: Vec<String>,
}

impl Draft {
    /// Lays a project's settings over these. `accepted` is the digest that the user has accepted for its directory.
    ///
    /// # Errors
    ///
    /// What is wrong with the file, where the user has accepted one there.
    pub(super) fn lay_project(
        &mut self,
        path: &Path,
        accepted: Option<&str>,
        plain: Reader<'_>,
    ) -> Result<(), ConfigError> {
        match read(path, accepted, Reader { start: path.parent(), ..plain }) {
            Ok(None) => {}
            Ok(Some((leaves, true))) => self.replace_by_project(leaves),
            Ok(Some((leaves, false))) => self.narrow_by_project(leaves),
            Err(broken) if accepted.is_some() => return Err(broken.why),
            Err(broken) => self.notices.push(broken.notice()),
        }
        Ok(())
    }
}

/// What a file says, and whether these are the bytes that the user has accepted; none where there is no file.
fn read(path: &Path, accepted: Option<&str>, reader: Reader<'_>) -> Result<Option<(Vec<Leaf>, bool)>, Broken> {
    let text = read_text(path, false, Author::Anybody).map_err(|why| Broken { why, named: Vec::new() })?;
    let Some(text) = text else { return Ok(None) };
    // The very text that is applied is the one that is compared.
    let is_accepted = accepted == Some(&*hex::encode(Sha256::digest(&text)));
    match reader.text(path, &text) {
        Ok(leaves) => Ok(Some((leaves, is_accepted))),
        Err(why) => Err(Broken { why, named: Reader::named(path, &text) }),
    }
}

impl Broken {
    /// Says what is wrong, and what is not narrowed for that.
    fn notice(&self) -> String {
        let why = sanitize::beginning(&self.why.to_string(), MOST_CHARS);
        let shown: Vec<_> = self.named.iter().take(MAX_NOTICES).map(|key| format!("`{key}`")).collect();
        let more = self.named.len() - shown.len();
        let what = match (shown.as_slice(), more) {
            ([], _) => "anything".to_owned(),
            (shown, 0) => shown.join(", "),
            (shown, more) => format!("{} and {more} more", shown.join(", ")),
        };
        format!("{why}: this project's settings are ignored and do not narrow {what}; mend or remove the file")
    }
}
