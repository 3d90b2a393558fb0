//! A project's file as a layer. If its user has accepted none of that directory, it can only narrow, and one that cannot be used is a notice: any
//! command that ran there can have left it.

use super::super::read::{Author, ConfigError, Document, Leaf, Reader, read_text};
use super::super::rules;
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
            Ok(Some(File { leaves, rules, is_accepted })) => {
                self.notices.extend(rules);
                if is_accepted { self.replace_by_project(leaves) } else { self.narrow_by_project(leaves) }
            }
            Err(broken) if accepted.is_some() => return Err(broken.why),
            Err(broken) => self.notices.push(broken.notice()),
        }
        Ok(())
    }
}

/// What a file says.
struct File {
    leaves: Vec<Leaf>,
    /// What is to be said of its rules, which count for nothing.
    rules: Vec<String>,
    /// These are the bytes that the user has accepted.
    is_accepted: bool,
}

/// What a file says; none where there is none.
fn read(path: &Path, accepted: Option<&str>, reader: Reader<'_>) -> Result<Option<File>, Broken> {
    let text = read_text(path, false, Author::Anybody).map_err(|why| Broken { why, named: Vec::new() })?;
    let Some(text) = text else { return Ok(None) };
    // The very text that is applied is the one that is compared.
    let is_accepted = accepted == Some(&*hex::encode(Sha256::digest(&text)));
    let said = Document::parse(path, &text).and_then(|mut document| {
        let notice = |(place, key)| format!("{place}: `{key}` is ignored: rules are in your own settings alone");
        let rules = rules::strip(&mut document).into_iter().map(notice).collect();
        Ok(File { leaves: reader.leaves(&document)?, rules, is_accepted })
    });
    match said {
        Ok(file) => Ok(Some(file)),
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
