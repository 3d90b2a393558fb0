//! The token that HTTP clients bear: from a file or a text, or made once and kept. Who asks for it is `http.rs`.

use crate::dirs::{Dirs, private_dir};
use crate::envelope::{Failure, Kind};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq;

/// How long a token has to be: what 16 random bytes are in hex.
const LEAST_CHARS: usize = 32;
/// How long it may be; it has to fit into a header.
const MOST_CHARS: usize = 4096;
/// Random bytes of a token that is made.
const MADE_BYTES: usize = 32;

/// A token. Only its digest is kept, and not even that is printed.
#[derive(Clone)]
pub(crate) struct Token([u8; 32]);

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("…")
    }
}

impl Token {
    /// Takes a token that somebody has made; `from` says where it stood.
    ///
    /// # Errors
    /// When it is too short, too long, or cannot stand in a header. The message does not show it.
    pub(crate) fn new(text: &str, from: &str) -> Result<Self, Failure> {
        let fault = if text.len() < LEAST_CHARS {
            format!("is shorter than {LEAST_CHARS} characters")
        } else if text.len() > MOST_CHARS {
            format!("is longer than {MOST_CHARS} characters")
        } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            "has other characters than letters, digits and signs of ASCII".into()
        } else {
            return Ok(Self(Sha256::digest(text).into()));
        };
        Err(usage(format!("the token in {from} {fault}")).hint("make one with `openssl rand -hex 32`"))
    }

    /// Reads the first line of a file that only its owner may read.
    ///
    /// # Errors
    /// When there is no such file, when others may read it, or when it holds no token.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let unreadable = |error: io::Error| usage(format!("the token file `{shown}` cannot be read: {error}"));
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let (kind, mode) = (metadata.file_type(), metadata.permissions().mode());
        // A shell hands a command's output over as a pipe.
        if !kind.is_file() && !kind.is_fifo() {
            return Err(usage(format!("the token file `{shown}` is not a file")));
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
    /// When it can be neither read nor made.
    pub(crate) fn kept(dirs: &Dirs) -> Result<(Self, PathBuf), Failure> {
        let path = dirs.state.join("serve.token");
        if !path.exists() {
            make(&path).map_err(|error| {
                Failure::new(Kind::Unavailable, format!("no token can be kept as `{}`: {error}", path.display()))
                    .hint("give one with `--token-file`, or in the environment as TOOLCRIB_TOKEN")
            })?;
        }
        Self::read(&path).map(|token| (token, path))
    }

    /// Whether a client bears this token. How long the answer takes does not tell how much of it was right.
    pub(crate) fn is(&self, borne: &str) -> bool {
        Sha256::digest(borne).as_slice().ct_eq(&self.0).into()
    }
}

/// Makes a token, unless another process was faster.
fn make(path: &Path) -> io::Result<()> {
    let mut bytes = [0; MADE_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let dir = path.parent().expect("a file has a directory");
    private_dir(dir)?;
    // Temporary files of this library are made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    writeln!(file, "{}", hex::encode(bytes))?;
    file.as_file().sync_data()?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
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
        assert_eq!(refused.message, "the token in a test has other characters than letters, digits and signs of ASCII");
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
        make(&path).unwrap();
        assert!(Token::kept(&dirs).unwrap().0.is(made.trim_end()));
        assert_eq!(std::fs::read_dir(&dirs.state).unwrap().count(), 1);
    }
}
