//! `read_file`: returns the text of one file, as much as a model wants to read at once.

use serde::Deserialize;
use toolcrib_sdk::{Captured, Content, Failure, Guidance, JsonSchema, Result, Tool, attach, files, notice, schemars};

const HEAD_CHARS: u32 = 8_000;
/// An image of that size: what a result holds, with room for the rest of it. Model interfaces accept at least as much.
const IMAGE_BYTES: u32 = 1_000 << 10;

struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// File to read: absolute, `~/…`, or relative to the working directory.
    path: String,
    /// Byte to start at; the notice of a truncated result names the next one.
    offset: Option<u64>,
    /// Encoding of the file, such as `utf-16le` or `windows-1252`; UTF-8 without it. Then `offset` counts bytes of the text as UTF-8.
    encoding: Option<String>,
}

impl Tool for ReadFile {
    const NAME: &str = "read_file";
    const TITLE: Option<&str> = Some("Read a file");
    const SUMMARY: &str = "Read a text file, up to 8,000 characters at a time, or look at an image.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need the content of a file, also of an image.",
        when_not_to_use: "To search: use `file_search`.",
        disambiguation: "`offset` counts bytes; `file_read` counts lines. Hidden characters are shown as `\\u{200b}`.",
        examples: &[r#"{"path":"build.log","offset":8000}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(Input { path, offset, encoding }: Input) -> Result<String> {
        if path.trim().is_empty() {
            return Err(Failure::invalid("`path` is blank"));
        }
        let offset = offset.unwrap_or(0);
        let captured = match &encoding {
            None => match files::read(&path, offset, HEAD_CHARS) {
                Ok(captured) => captured,
                Err(failure) => return image(&path, failure),
            },
            Some(encoding) => piece(files::read_encoded(&path, Some(encoding))?.content, offset),
        };
        if let Some(text) = remark(&path, offset, &captured) {
            notice(text);
        }
        let mut marked = captured.marked();
        // A byte order mark is no part of the text.
        if offset == 0 && marked.starts_with('\u{feff}') {
            marked.drain(..'\u{feff}'.len_utf8());
        }
        files::show(&path, &marked)
    }
}

/// What a failed read says of the file.
#[derive(Deserialize)]
struct NotText {
    bytes: u64,
    media_type: String,
}

/// Shows a file that turned out to be an image; else the read has failed.
fn image(path: &str, failure: Failure) -> Result<String> {
    let known = failure.data.as_deref().and_then(|data| serde_json::from_str::<NotText>(data).ok());
    let Some(NotText { bytes: size, media_type }) = known.filter(|known| known.media_type.starts_with("image/")) else {
        return Err(failure);
    };
    if size > IMAGE_BYTES.into() {
        let message =
            format!("`{path}` is an image of {size} bytes, more than the {} KiB that are shown", IMAGE_BYTES >> 10);
        return Err(Failure::limit(message)
            .hint("make it smaller with run_shell, for example by ImageMagick's `convert -resize`"));
    }
    let bytes = files::read_bytes(path, 0, IMAGE_BYTES)?;
    attach(Content::Image { media_type: media_type.clone(), bytes });
    Ok(format!("`{path}` is an image, {media_type}, {size} bytes"))
}

/// The part of a text that begins at an offset.
fn piece(text: String, offset: u64) -> Captured {
    let start = text.ceil_char_boundary(usize::try_from(offset).unwrap_or(usize::MAX).min(text.len()));
    let rest = &text[start..];
    let end = rest.char_indices().nth(HEAD_CHARS as usize).map_or(rest.len(), |(end, _)| end);
    Captured { text: rest[..end].to_owned(), bytes: text.len() as u64, truncated: end < rest.len(), stored: None }
}

/// Returns what the text itself does not say: how to go on, or why there is none.
fn remark(path: &str, offset: u64, captured: &Captured) -> Option<String> {
    let Captured { text, bytes, truncated, .. } = captured;
    if *truncated {
        let next = offset + text.len() as u64;
        return Some(format!("`{path}` has {bytes} bytes; set `offset` to {next} to read on"));
    }
    (offset > 0 && text.is_empty())
        .then(|| format!("`offset` {offset} is at or past the end: `{path}` has {bytes} bytes"))
}

toolcrib_sdk::export!(ReadFile);

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(text: &str, bytes: u64, truncated: bool) -> Captured {
        Captured { text: text.into(), bytes, truncated, stored: None }
    }

    #[test]
    fn a_text_is_cut_by_characters_and_read_on_by_bytes() {
        let cut = |text: &str, offset| piece(text.into(), offset);
        assert_eq!((cut("🙂b", 1).text, cut("🙂b", 1).bytes), ("b".to_owned(), 5));
        assert_eq!((cut("ab", 9).text, cut("ab", 9).truncated), (String::new(), false));
        let long = piece("é".repeat(9_000), 0);
        assert_eq!((long.text.chars().count(), long.truncated), (8_000, true));
        assert_eq!(piece("é".repeat(9_000), long.text.len() as u64).text.len(), 2_000);
    }

    #[test]
    fn a_cut_text_says_how_to_go_on() {
        let remark = remark("a.txt", 10, &captured("🙂b", 20, true));
        assert_eq!(remark.unwrap(), "`a.txt` has 20 bytes; set `offset` to 15 to read on");
    }

    #[test]
    fn an_offset_behind_the_end_is_remarked() {
        let behind = remark("a.txt", 30, &captured("", 20, false));
        assert_eq!(behind.unwrap(), "`offset` 30 is at or past the end: `a.txt` has 20 bytes");
    }

    #[test]
    fn a_whole_or_empty_file_needs_no_remark() {
        assert_eq!(remark("a.txt", 0, &captured("ab", 2, false)), None);
        assert_eq!(remark("a.txt", 0, &captured("", 0, false)), None);
    }
}
