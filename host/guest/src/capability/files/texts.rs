//! Text files in any encoding: what a written one keeps of the file that it replaces.

use super::encodings::{self, Text};
use super::{COMPARED_BYTES, READ_BYTES, revision};
use crate::capability::Refusal;
use crate::capability::bindings::toolcrib::plugin::files::{Encoded, Keep, LineEnds, Writing, Written};
use crate::sandbox::State;
use backend::{Backend, Before};
use base::envelope::{Failure, Kind};
use base::text::sanitize;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use file_access::Wanted;

/// How often a file is looked at that others replace meanwhile.
const LOOKS: u32 = 20;

impl State {
    pub(super) async fn encoded(&mut self, path: &str, label: Option<&str>) -> Result<Encoded, Refusal> {
        let encoding = encodings::named(label)?;
        let bytes = self.whole_piece(path).await?;
        if encoding == UTF_8 {
            encodings::no_other(path, &bytes, bytes.len() as u64)?;
        }
        let Text { content, has_mark } = encodings::decode(path, &bytes, encoding)?;
        Ok(Encoded { content, revision: revision(&bytes), encoding: encoding.name().to_owned(), has_mark })
    }

    pub(super) async fn write_text(&mut self, path: String, text: String, how: Writing) -> Result<Written, Refusal> {
        let encoding = encodings::named(how.encoding.as_deref())?;
        let (grant, path, wanted) = self.wanted(&path, text.as_bytes()).await?;
        let made = match wanted {
            Ok(wanted) => made(&*self.scope.backend, wanted, text, encoding, &how).await,
            Err(refusal) => Err(refusal),
        };
        let (wanted, bytes, written) = match made {
            Ok((wanted, bytes, written)) => (Ok(wanted), bytes, Ok(written)),
            Err(refusal) => (Err(refusal.clone()), Vec::new(), Err(refusal)),
        };
        self.put(&path, &grant, wanted, bytes).await?;
        Ok(written?)
    }

    pub(super) fn noted(&mut self, text: &str) -> Result<String, Refusal> {
        self.grants()?.files()?;
        self.meter.charge_bytes(text.len())?;
        Ok(sanitize::notation(text).into_owned())
    }

    /// All bytes of a file of at most 4 MiB.
    pub(super) async fn whole_piece(&mut self, path: &str) -> Result<Vec<u8>, Refusal> {
        let file = self.piece(path, 0, READ_BYTES + 1).await?;
        if file.size > READ_BYTES as u64 || file.bytes.len() > READ_BYTES {
            let message = format!("`{path}` has {} bytes, more than the 4 MiB that are read as a whole", file.size);
            return Err(Failure::limit(message).hint("change it with run_shell, for example by `sed`").into());
        }
        Ok(file.bytes)
    }
}

/// The bytes to write, and what is said of them.
async fn made(
    backend: &dyn Backend,
    wanted: Wanted,
    text: String,
    encoding: &'static Encoding,
    how: &Writing,
) -> Result<(Wanted, Vec<u8>, Written), Failure> {
    let before = match (how.keep, &how.revision) {
        (Keep::Nothing, None) => Before::New,
        (Keep::Mark | Keep::Style, None) => looked_at(backend, &wanted).await?,
        (Keep::Nothing | Keep::Mark | Keep::Style, Some(_)) => backend.look(&wanted, COMPARED_BYTES).await?,
    };
    let wanted = match &how.revision {
        None => wanted,
        Some(revision) => super::as_of(wanted, &before, revision)?,
    };
    let old = match &before {
        Before::There { content: Some(content), .. } => Some(content.as_slice()),
        Before::There { content: None, .. } | Before::New => None,
    };
    if let Some(old) = old
        && how.revision.is_some()
        && encoding != UTF_8
    {
        is_the_same_again(&wanted, old, encoding)?;
    }
    let style = old.map(|old| Style::of(old, encoding));
    let (text, is_marked) = match text.strip_prefix('\u{feff}') {
        Some(rest) if has_marks(encoding) => (rest.to_owned(), true),
        Some(_) | None => (text, false),
    };
    let keeps_mark = match (&style, how.keep) {
        (_, Keep::Nothing) => false,
        (Some(style), Keep::Mark | Keep::Style) => style.has_mark,
        (None, Keep::Mark | Keep::Style) => {
            matches!(before, Before::New) && (encoding == UTF_16LE || encoding == UTF_16BE)
        }
    };
    let line_ends = match how.keep {
        Keep::Style => style.as_ref().and_then(|style| style.line_ends),
        Keep::Nothing | Keep::Mark => None,
    };
    let text = match line_ends {
        Some(LineEnds::Lf) => text.replace("\r\n", "\n"),
        Some(LineEnds::Crlf) => text.replace("\r\n", "\n").replace('\n', "\r\n"),
        Some(LineEnds::Mixed) | None => text,
    };
    let has_mark = keeps_mark || is_marked;
    let bytes = encodings::encode(&text, encoding, has_mark)?;
    let written = Written {
        bytes: bytes.len() as u64,
        encoding: encoding.name().to_owned(),
        has_mark,
        line_ends,
        was: style.and_then(|style| style.was),
    };
    Ok((wanted, bytes, written))
}

/// Looks at a file whose style is to be kept. Others may replace it meanwhile: the last to write wins, and none of them fails for that.
async fn looked_at(backend: &dyn Backend, wanted: &Wanted) -> Result<Before, Failure> {
    let mut looked = backend.look(wanted, COMPARED_BYTES).await;
    for _ in 1..LOOKS {
        if looked.is_ok() {
            break;
        }
        looked = backend.look(wanted, COMPARED_BYTES).await;
    }
    looked
}

fn has_marks(encoding: &'static Encoding) -> bool {
    [UTF_8, UTF_16LE, UTF_16BE].contains(&encoding)
}

/// Refuses a file of which more would change than what is edited: some encodings have two forms of one character.
fn is_the_same_again(wanted: &Wanted, old: &[u8], encoding: &'static Encoding) -> Result<(), Failure> {
    let shown = wanted.shown();
    let Text { content, has_mark } = encodings::decode(&shown, old, encoding)?;
    if encodings::encode(&content, encoding, has_mark).is_ok_and(|bytes| bytes == old) {
        return Ok(());
    }
    let message = format!("`{shown}` has bytes that would be others if it was written as {}", encoding.name());
    Err(Failure::new(Kind::ExecutionFailed, message).hint("change it with run_shell, for example by `sed`"))
}

/// How a file is written that is there already.
struct Style {
    has_mark: bool,
    /// None where it has no line that ends.
    line_ends: Option<LineEnds>,
    /// Its encoding, if that is another.
    was: Option<String>,
}

impl Style {
    fn of(bytes: &[u8], encoding: &'static Encoding) -> Self {
        let marked = Encoding::for_bom(bytes).map(|(marked, _)| marked);
        let has_mark = marked == Some(encoding);
        let (ends, was) = match encodings::other_mark(bytes, encoding) {
            Some(other) => (line_ends(encodings::roughly(bytes, other).as_bytes()), Some(other.name().to_owned())),
            None if encoding == UTF_8 => {
                let guess = || encodings::guessed(bytes).map(|guess| format!("{} (a guess)", guess.name()));
                let is_text = std::str::from_utf8(bytes).is_ok();
                (line_ends(bytes), if is_text { None } else { guess() })
            }
            None => (line_ends(encodings::roughly(bytes, encoding).as_bytes()), None),
        };
        Self { has_mark, line_ends: ends, was }
    }
}

fn line_ends(bytes: &[u8]) -> Option<LineEnds> {
    let (mut lf, mut crlf) = (false, false);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match line {
            [.., b'\r', b'\n'] => crlf = true,
            [.., b'\n'] => lf = true,
            _ => {}
        }
    }
    match (lf, crlf) {
        (false, false) => None,
        (true, false) => Some(LineEnds::Lf),
        (false, true) => Some(LineEnds::Crlf),
        (true, true) => Some(LineEnds::Mixed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_of_a_file_is_found() {
        let style = |bytes: &[u8], encoding| {
            let Style { has_mark, line_ends, was } = Style::of(bytes, encoding);
            (has_mark, line_ends, was)
        };
        assert_eq!(style(b"a\nb", UTF_8), (false, Some(LineEnds::Lf), None));
        assert_eq!(style(b"\xef\xbb\xbfa\r\nb\r\n", UTF_8), (true, Some(LineEnds::Crlf), None));
        assert_eq!(style(b"a\r\nb\nc", UTF_8), (false, Some(LineEnds::Mixed), None));
        assert_eq!(style(b"a\rb", UTF_8), (false, None, None));
        assert_eq!(style(b"\xff\xfea\0\r\0\n\0", UTF_16LE), (true, Some(LineEnds::Crlf), None));
        assert_eq!(style(b"\xff\xfea\0\r\0\n\0", UTF_8), (false, Some(LineEnds::Crlf), Some("UTF-16LE".into())));
        let guess = Some("windows-1252 (a guess)".into());
        assert_eq!(style(b"caf\xe9 cr\xe8me\r\n", UTF_8), (false, Some(LineEnds::Crlf), guess));
    }
}
