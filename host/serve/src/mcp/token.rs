//! The token that HTTP clients send: from a file or a text, or made once and kept. `http.rs` checks it.

use base::disk::{Foreign, OwnDir};
use config::TOKEN_VARIABLE;
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq;
use toolcrib::dirs::Dirs;
use toolcrib::envelope::{Failure, Kind};

/// How long a token has to be: what 16 random bytes are in hex.
const LEAST_CHARS: usize = 32;
/// How long it may be; it has to fit into a header.
const MOST_CHARS: usize = 4096;
/// The file of the token that is kept, in the state directory.
const KEPT: &str = "serve.token";
/// Random bytes of a token that is made.
const MADE_BYTES: usize = 32;

/// A token. Only its digest is kept, and not even that is printed.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("…")
    }
}

impl Token {
    /// Takes a token that somebody has made; `from` says where it came from.
    ///
    /// # Errors
    /// When it is too short, too long, or cannot appear in a header. The message does not show it.
    pub fn new(text: &str, from: &str) -> Result<Self, Failure> {
        let fault = if text.len() < LEAST_CHARS {
            format!("is shorter than {LEAST_CHARS} characters")
        } else if text.len() > MOST_CHARS {
            format!("is longer than {MOST_CHARS} characters")
        } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            "has characters other than ASCII letters, digits and punctuation".into()
        } else {
            return Ok(Self(Sha256::digest(text).into()));
        };
        Err(usage(format!("the token in {from} {fault}")).hint("make one with `openssl rand -hex 32`"))
    }

    /// Reads the first line of a file that only its owner may read.
    ///
    /// # Errors
    /// When there is no such file, when others may read it, or when it holds no token.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let unreadable = |error: io::Error| usage(format!("the token file `{shown}` cannot be read: {error}"));
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let (kind, mode) = (metadata.file_type(), metadata.permissions().mode());
        // A shell hands a command's output over as a pipe.
        if !kind.is_file() && !kind.is_fifo() {
            return Err(usage(format!("the token file `{shown}` is not a file")));
        }
        let (owner, own) = (metadata.uid(), rustix::process::geteuid().as_raw());
        if ![own, 0].contains(&owner) {
            return Err(usage(format!("the token file `{shown}` belongs to uid {owner}, who knows it"))
                .hint(format!("give a file of your own: chown {own} '{shown}'")));
        }
        if mode & 0o077 != 0 {
            return Err(usage(format!("the token file `{shown}` is open to others (mode {:04o})", mode & 0o7777))
                .hint(format!("chmod 600 '{shown}'")));
        }
        let mut text = String::new();
        file.take(MOST_CHARS as u64 + 2).read_to_string(&mut text).map_err(unreadable)?;
        Self::new(text.lines().next().unwrap_or_default(), &format!("`{shown}`"))
    }

    /// The token of this user, made the first time; and the file in which it is.
    ///
    /// # Errors
    /// When it can be neither read nor made, or when another user may know it.
    pub fn kept(dirs: &Dirs) -> Result<(Self, PathBuf), Failure> {
        let read = || {
            let state = OwnDir::open(&dirs.state)?;
            match state.read(KEPT)? {
                Some(text) => Ok((text, state.path().join(KEPT))),
                None => {
                    // Another process may be faster: its token counts.
                    state.make(KEPT, &made()?)?;
                    Ok((state.read(KEPT)?.unwrap_or_default(), state.path().join(KEPT)))
                }
            }
        };
        let (text, path) = read().map_err(|error: io::Error| {
            let elsewhere = || format!("give one with `--token-file`, or in the environment as {TOKEN_VARIABLE}");
            let hint = Foreign::of(&error).map_or_else(elsewhere, Foreign::hint);
            Failure::new(Kind::Unavailable, format!("no token can be kept: {error}")).hint(hint)
        })?;
        let text = String::from_utf8_lossy(&text);
        let token = Self::new(text.lines().next().unwrap_or_default(), &format!("`{}`", path.display()))?;
        Ok((token, path))
    }

    /// Whether a client sent this token. How long the answer takes does not show how much of it was right.
    pub(crate) fn is(&self, borne: &str) -> bool {
        Sha256::digest(borne).as_slice().ct_eq(&self.0).into()
    }
}

/// A new token, as its file has it.
fn made() -> io::Result<Vec<u8>> {
    let mut bytes = [0; MADE_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{}\n", hex::encode(bytes)).into_bytes())
}

fn usage(message: String) -> Failure {
    Failure::new(Kind::Usage, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "0123456789abcdef0123456789ABCDEF";

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (directory, path)
    }

    #[test]
    fn only_the_token_itself_is_the_token() {
        let token = Token::new(GOOD, "a test").unwrap();
        assert!(token.is(GOOD));
        let others = [&GOOD[1..], &GOOD[..31], &format!("{GOOD} "), &format!("{GOOD}0"), &GOOD.to_lowercase(), ""];
        assert!(!others.into_iter().any(|other| token.is(other)));
    }

    #[test]
    fn it_is_never_printed() {
        let token = Token::new(GOOD, "a test").unwrap();
        assert_eq!(format!("{token:?} {:#?}", Some(&token)), "… Some(\n    …,\n)");
        let refused = Token::new(&GOOD[..31], "a test").unwrap_err();
        assert_eq!(refused.message, "the token in a test is shorter than 32 characters");
        let refused = Token::new(&format!("{GOOD} {GOOD}"), "a test").unwrap_err();
        assert_eq!(
            refused.message,
            "the token in a test has characters other than ASCII letters, digits and punctuation"
        );
    }

    #[test]
    fn the_first_line_of_a_file_counts() {
        for text in [GOOD.to_owned(), format!("{GOOD}\n"), format!("{GOOD}\r\n"), format!("{GOOD}\na comment\n")] {
            let (_directory, path) = file(&text, 0o600);
            assert!(Token::read(&path).unwrap().is(GOOD), "{text:?}");
        }
        for text in ["", "\n", "short\n", &format!("\n{GOOD}\n"), &format!(" {GOOD}\n"), &"x".repeat(10_000)] {
            let (_directory, path) = file(text, 0o600);
            assert!(Token::read(&path).unwrap_err().message.starts_with("the token in `"), "{text:?}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        for mode in [0o640, 0o604, 0o620, 0o601, 0o666] {
            let (_directory, path) = file(GOOD, mode);
            let refused = Token::read(&path).unwrap_err();
            let told = format!("the token file `{}` is open to others (mode {mode:04o})", path.display());
            assert_eq!((refused.kind, refused.message), (Kind::Usage, told));
            assert_eq!(refused.hint, Some(format!("chmod 600 '{}'", path.display())));
        }
        let (directory, path) = file(GOOD, 0o400);
        assert!(Token::read(&path).is_ok());
        for place in [directory.path(), Path::new("/dev/null")] {
            assert!(Token::read(place).unwrap_err().message.ends_with("is not a file"), "{}", place.display());
        }
    }

    #[test]
    fn one_is_made_once_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let dirs = Dirs::below(directory.path());
        let (_, path) = Token::kept(&dirs).unwrap();
        let made = std::fs::read_to_string(&path).unwrap();
        assert_eq!(made.trim_end().len(), 2 * MADE_BYTES);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(Token::kept(&dirs).unwrap().0.is(made.trim_end()));
        assert_eq!(std::fs::read_dir(&dirs.state).unwrap().count(), 1);
    }

    #[test]
    fn one_that_others_may_know_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let dirs = Dirs::below(directory.path());
        let (_, path) = Token::kept(&dirs).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let refused = Token::kept(&dirs).unwrap_err();
        let told = format!("no token can be kept: `{}` is open to others (mode 0640)", path.display());
        assert_eq!((refused.kind, refused.message), (Kind::Unavailable, told));
        assert_eq!(refused.hint, Some(format!("chmod go-rwx '{}'", path.display())));
    }
}
