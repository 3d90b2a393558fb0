//! Command output: read whole, handed out cut, kept for later reading.
//!
//! Memory a stream is bounded by what its reader asked for plus `TAIL`; what is cut goes to a file, whose size is bounded too.
//!
//! It depends on `backend` and `base`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod rewritten;

use backend::FileText;
use base::disk::OwnDir;
use base::envelope::Failure;
use futures_util::future::BoxFuture;
use rewritten::LastStates;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

/// The end of a stream that outgrew its file is kept in memory, so that the last lines are never lost.
const TAIL: usize = 64 << 10;

/// The directory of kept output.
pub struct OutputStore {
    dir: Option<Arc<OwnDir>>,
    stream_bytes: u64,
    total_bytes: u64,
}

/// One stream on its way in.
pub struct Capture<'s> {
    store: &'s OutputStore,
    name: String,
    chars: usize,
    /// The beginning as it came, which a file of kept output begins with.
    beginning: Vec<u8>,
    /// The beginning of what is shown.
    head: Vec<u8>,
    head_bytes: usize,
    bytes: u64,
    /// Bytes of what is shown, if all of it were.
    shown: u64,
    /// Leaves out the earlier states of lines that a command rewrote.
    last_states: Option<LastStates>,
    kept: Option<Kept>,
    /// How many characters of the end are handed out as well, and the end itself.
    tail_chars: usize,
    end: VecDeque<u8>,
}

struct Kept {
    path: PathBuf,
    file: File,
    bytes: u64,
    tail: VecDeque<u8>,
    dropped: u64,
}

/// A file of kept output, open.
pub struct KeptFile {
    path: PathBuf,
    file: File,
}

impl KeptFile {
    /// Reads a piece of it.
    pub fn read(mut self, offset: u64, max_bytes: usize) -> BoxFuture<'static, Result<FileText, Failure>> {
        Box::pin(async move {
            let read = async {
                let size = self.file.metadata().await?.len();
                self.file.seek(SeekFrom::Start(offset)).await?;
                let mut bytes = Vec::new();
                self.file.take(max_bytes as u64).read_to_end(&mut bytes).await?;
                Ok::<_, io::Error>(FileText { bytes, size })
            };
            read.await.map_err(|error| Failure::failed(format!("`{}`: {error}", self.path.display())))
        })
    }
}

/// A stream that has ended, cut for its reader.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    pub text: String,
    pub bytes: u64,
    pub truncated: bool,
    pub stored: Option<String>,
}

impl OutputStore {
    /// Keeps at most `stream_bytes` of each stream and about `total_bytes` in all; older files make room for new ones.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made, or is not this user's own.
    pub fn open(dir: PathBuf, stream_bytes: u64, total_bytes: u64) -> io::Result<Self> {
        Ok(Self { dir: Some(Arc::new(OwnDir::open(&dir)?)), stream_bytes, total_bytes })
    }

    /// Bytes of one stream that are kept at most.
    pub fn most_bytes(&self) -> u64 {
        self.stream_bytes
    }

    /// Keeps nothing.
    #[must_use]
    pub fn none() -> Self {
        Self { dir: None, stream_bytes: 0, total_bytes: 0 }
    }

    /// Begins to take in a stream of which at most `chars` characters and `head_bytes` bytes will be handed out.
    pub fn capture(&self, name: String, chars: usize, head_bytes: usize) -> Capture<'_> {
        // No character takes more than four bytes, so more of the head is never shown.
        let head_bytes = head_bytes.min(chars.saturating_mul(char::MAX.len_utf8()));
        let (beginning, head, end) = (Vec::new(), Vec::new(), VecDeque::new());
        let (last_states, kept) = (None, None);
        Capture {
            store: self,
            name,
            chars,
            beginning,
            head,
            head_bytes,
            bytes: 0,
            shown: 0,
            last_states,
            kept,
            tail_chars: 0,
            end,
        }
    }

    /// A file of kept output, by its path as results name it. Commands can put anything in its place: what is not a file of ours with one
    /// name is none, and is left to those who decide on files in general.
    pub fn kept(&self, path: &str) -> Option<KeptFile> {
        let dir = self.dir.as_ref()?;
        let name = Path::new(path).strip_prefix(dir.path()).ok()?;
        let is_name = name.components().count() == 1 && name.file_name() == Some(name.as_os_str());
        let file = dir.file(Some(name).filter(|_| is_name)?).ok()?;
        Some(KeptFile { path: path.into(), file: File::from_std(file) })
    }

    /// The same, by its name alone.
    pub fn kept_by_name(&self, name: &str) -> Option<KeptFile> {
        let path = self.dir.as_ref()?.path().join(name);
        self.kept(path.to_str()?)
    }

    async fn create(&self, name: &str) -> Option<Kept> {
        let (dir, name) = (self.dir.clone()?, name.to_owned());
        let path = dir.path().join(&name);
        let made = tokio::task::spawn_blocking(move || dir.create(&name)).await;
        let file = File::from_std(made.ok()?.ok()?);
        Some(Kept { path, file, bytes: 0, tail: VecDeque::new(), dropped: 0 })
    }

    async fn forget(&self, name: String) {
        let Some(dir) = self.dir.clone() else { return };
        let _ = tokio::task::spawn_blocking(move || dir.remove(OsStr::new(&name))).await;
    }

    async fn make_room(&self) {
        let (Some(dir), total) = (self.dir.clone(), self.total_bytes) else { return };
        let _ = tokio::task::spawn_blocking(move || remove_oldest(&dir, total)).await;
    }
}

impl<'o> Capture<'o> {
    /// Hands out so many characters of its end as well.
    pub fn with_tail(self, chars: usize) -> Self {
        Self { tail_chars: chars, ..self }
    }

    /// It is what a command prints: a line that was rewritten is handed out as its last state. What is kept is as it came.
    pub fn of_command(self) -> Self {
        Self { last_states: Some(LastStates::default()), ..self }
    }

    fn keep_end(&mut self, chunk: &[u8]) {
        // No character takes more, and the first may be cut.
        let most = self.tail_chars.saturating_mul(char::MAX.len_utf8()).min(TAIL * 2);
        self.end.extend(&chunk[chunk.len().saturating_sub(most)..]);
        let over = self.end.len().saturating_sub(most);
        self.end.drain(..over);
    }

    /// What is handed out behind a head of so many bytes, and how many bytes it has: all that follows, or the end of it.
    fn tail(&mut self, head: u64) -> (String, u64) {
        let left = self.shown - head;
        let end = self.end.make_contiguous();
        let end = &end[end.len().saturating_sub(usize::try_from(left).unwrap_or(usize::MAX))..];
        let is_all = end.len() as u64 == left;
        let skipped = end.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        let text = String::from_utf8_lossy(if is_all { end } else { &end[skipped..] });
        let over = text.chars().count().saturating_sub(self.tail_chars);
        if is_all && over == 0 {
            return (text.into_owned(), left);
        }
        let from = text.char_indices().nth(over).map_or(text.len(), |(index, _)| index);
        (text[from..].to_owned(), (text.len() - from) as u64)
    }

    pub fn push<'a>(&'a mut self, chunk: &'a [u8]) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.bytes += chunk.len() as u64;
            let (first, rest) = chunk.split_at(chunk.len().min(self.head_bytes - self.beginning.len()));
            self.beginning.extend_from_slice(first);
            let shown = match &mut self.last_states {
                Some(states) => Cow::Owned(states.push(chunk)),
                None => Cow::Borrowed(chunk),
            };
            self.show(&shown);
            if rest.is_empty() {
                return;
            }
            // Only now: most commands print little, and need no file.
            if self.kept.is_none() {
                self.keep_beginning().await;
            }
            if let Some(kept) = &mut self.kept {
                kept.push(rest, self.store.stream_bytes).await;
            }
        })
    }

    fn show(&mut self, bytes: &[u8]) {
        self.shown += bytes.len() as u64;
        self.head.extend_from_slice(&bytes[..bytes.len().min(self.head_bytes - self.head.len())]);
        if self.tail_chars > 0 {
            self.keep_end(bytes);
        }
    }

    async fn keep_beginning(&mut self) {
        self.kept = self.store.create(&self.name).await;
        if let Some(kept) = &mut self.kept {
            kept.push(&self.beginning, self.store.stream_bytes).await;
        }
    }

    pub fn finish(mut self) -> BoxFuture<'o, Captured> {
        Box::pin(async move {
            if let Some(states) = self.last_states.take() {
                self.show(&states.finish());
            }
            let text = String::from_utf8_lossy(&self.head);
            let cut = text.char_indices().nth(self.chars).map(|(index, _)| index);
            let mut truncated = cut.is_some() || self.shown > self.head.len() as u64;
            let mut text = text[..cut.unwrap_or(text.len())].to_owned();
            let mut end = None;
            if truncated && self.tail_chars > 0 {
                // As bytes the head may be shorter: what is not text was replaced in it.
                let head = cut.map_or(self.head.len(), |_| text.len().min(self.head.len())) as u64;
                let (tail, bytes) = self.tail(head);
                truncated = head + bytes < self.shown;
                if truncated {
                    end = Some((tail, self.bytes - head - bytes));
                } else {
                    text += &tail;
                }
            }
            if truncated && self.kept.is_none() {
                self.keep_beginning().await;
            }
            let stored = match self.kept {
                Some(kept) if truncated => kept.close().await,
                // All of it is handed out after all.
                Some(_) => {
                    self.store.forget(self.name).await;
                    None
                }
                None => None,
            };
            if stored.is_some() {
                self.store.make_room().await;
            }
            if let Some((end, out)) = end {
                let place = stored.as_ref().map_or_else(|| "not kept".to_owned(), |path| format!("kept in {path}"));
                text += &format!("\n[{out} bytes left out, {place}]\n{end}");
            }
            Captured { text, bytes: self.bytes, truncated, stored }
        })
    }
}

impl Kept {
    async fn push(&mut self, chunk: &[u8], limit: u64) {
        let room = usize::try_from(limit - self.bytes).unwrap_or(usize::MAX).min(chunk.len());
        let (fits, rest) = chunk.split_at(room);
        if self.file.write_all(fits).await.is_ok() {
            self.bytes += fits.len() as u64;
        }
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }

    async fn close(mut self) -> Option<String> {
        if self.dropped > 0 {
            self.file.write_all(format!("\n[{} bytes were not kept]\n", self.dropped).as_bytes()).await.ok()?;
        }
        self.file.write_all(self.tail.make_contiguous()).await.ok()?;
        self.file.flush().await.ok()?;
        Some(self.path.display().to_string())
    }
}

fn remove_oldest(dir: &OwnDir, total_bytes: u64) -> io::Result<()> {
    let files = dir.files()?;
    let mut bytes: u64 = files.iter().map(|file| file.1).sum();
    // The newest stays whatever its size: it was just promised to a caller.
    for (name, length) in files.iter().take(files.len().saturating_sub(1)) {
        if bytes <= total_bytes {
            break;
        }
        // Somebody else may have removed it.
        let _ = dir.remove(name);
        bytes -= length;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn capture(stream_bytes: u64, chars: usize, chunks: &[&[u8]]) -> (tempfile::TempDir, Captured) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = OutputStore::open(dir.path().into(), stream_bytes, 1 << 30).expect("a store");
        let mut capture = store.capture("call-stdout".into(), chars, 1 << 20);
        for chunk in chunks {
            capture.push(chunk).await;
        }
        let captured = capture.finish().await;
        (dir, captured)
    }

    fn stored(captured: &Captured) -> Vec<u8> {
        std::fs::read(captured.stored.as_ref().expect("a kept file")).expect("a readable file")
    }

    #[tokio::test]
    async fn output_of_exactly_the_wanted_length_is_not_cut() {
        let (_dir, captured) = capture(1 << 20, 5, &["🙂🙂".as_bytes(), "abc".as_bytes()]).await;
        assert_eq!((captured.text.as_str(), captured.truncated, captured.stored), ("🙂🙂abc", false, None));
    }

    #[tokio::test]
    async fn longer_output_is_cut_at_a_character_and_kept_whole() {
        let (_dir, captured) = capture(1 << 20, 5, &["🙂🙂🙂".as_bytes(), "abcdef".as_bytes(), &[b'x'; 100]]).await;
        assert_eq!((captured.text.as_str(), captured.bytes, captured.truncated), ("🙂🙂🙂ab", 118, true));
        assert_eq!(
            stored(&captured),
            [b"\xf0\x9f\x99\x82\xf0\x9f\x99\x82\xf0\x9f\x99\x82abcdef".as_slice(), &[b'x'; 100]].concat()
        );
    }

    #[tokio::test]
    async fn the_end_is_handed_out_as_well() {
        let with_tail = async |chars: usize, tail: usize, bytes: &[u8]| {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let store = OutputStore::open(dir.path().into(), 1 << 20, 1 << 30).expect("a store");
            let mut capture = store.capture("call-stdout".into(), chars, 1 << 20).with_tail(tail);
            for piece in bytes.chunks(3) {
                capture.push(piece).await;
            }
            let captured = capture.finish().await;
            let kept = std::fs::read_dir(dir.path()).expect("the directory").count();
            let text = captured.text.replace(&dir.path().display().to_string(), "DIR");
            (text, captured.truncated, captured.stored.is_some(), kept)
        };
        let whole = |text: &str| (text.to_owned(), false, false, 0);
        assert_eq!(with_tail(4, 4, b"abcdefgh").await, whole("abcdefgh"));
        assert_eq!(with_tail(4, 9, b"abcdefgh").await, whole("abcdefgh"));
        assert_eq!(with_tail(4, 4, "ääääöööö".as_bytes()).await, whole("ääääöööö"));
        let cut = |text: &str| (text.to_owned(), true, true, 1);
        assert_eq!(with_tail(4, 3, b"abcdefgh").await, cut("abcd\n[1 bytes left out, kept in DIR/call-stdout]\nfgh"));
        assert_eq!(
            with_tail(2, 2, "ääääöööö".as_bytes()).await,
            cut("ää\n[8 bytes left out, kept in DIR/call-stdout]\nöö")
        );
        assert_eq!(
            with_tail(2, 2, b"ab\xff\xff\xffyz").await,
            cut("ab\n[3 bytes left out, kept in DIR/call-stdout]\nyz")
        );
    }

    #[tokio::test]
    async fn without_a_store_it_is_said_that_the_middle_is_not_kept() {
        let store = OutputStore::none();
        let mut capture = store.capture("call-stdout".into(), 2, 1 << 20).with_tail(2);
        capture.push(b"abcdef").await;
        assert_eq!(capture.finish().await.text, "ab\n[2 bytes left out, not kept]\nef");
    }

    #[tokio::test]
    async fn of_lines_that_a_command_rewrites_both_ends_have_the_last_state_and_the_file_has_all() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = OutputStore::open(dir.path().into(), 1 << 20, 1 << 30).expect("a store");
        let progress: String = (0..=100).map(|percent| format!("\rdownloading {percent}%")).collect();
        let printed = format!("{progress}\r\nmiddle\n{}{progress}", "x".repeat(50));
        let of_command = async |head: usize, tail: usize| {
            let mut capture = store.capture("call-stdout".into(), head, 1 << 20).with_tail(tail).of_command();
            for piece in printed.as_bytes().chunks(7) {
                capture.push(piece).await;
            }
            capture.finish().await
        };
        let cut = of_command(20, 5).await;
        let path = cut.stored.as_deref().expect("a kept file");
        let out = printed.len() - "downloading 100%\r\nmi".len() - " 100%".len();
        let shown = format!("downloading 100%\r\nmi\n[{out} bytes left out, kept in {path}]\n 100%");
        assert_eq!((cut.text, cut.bytes), (shown, printed.len() as u64));
        assert_eq!(std::fs::read_to_string(path).expect("a readable file"), printed);
        std::fs::remove_file(path).expect("the file");
        let whole = of_command(40, 5).await;
        let text = "downloading 100%\r\nmiddle\ndownloading 100%";
        assert_eq!((whole.text.as_str(), whole.truncated, whole.stored), (text, false, None));
        assert_eq!(std::fs::read_dir(dir.path()).expect("the directory").count(), 0);
    }

    #[tokio::test]
    async fn output_beyond_the_file_keeps_its_beginning_and_its_end() {
        let middle = vec![b'm'; 1 << 20];
        let (_dir, captured) = capture(1000, 10, &[b"begin", &middle, b"the end"]).await;
        let kept = String::from_utf8(stored(&captured)).expect("text");
        assert!(kept.starts_with("beginmmm") && kept.ends_with("mmmthe end"));
        assert!(kept.contains("bytes were not kept]") && kept.len() < 1000 + TAIL + 64);
    }

    #[tokio::test]
    async fn a_store_over_its_bound_gives_up_the_oldest() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = OutputStore::open(dir.path().into(), 1 << 20, 2500).expect("a store");
        for name in ["a", "b", "c"] {
            let mut capture = store.capture(name.into(), 10, 1 << 20);
            capture.push(&[b'x'; 1000]).await;
            capture.finish().await;
        }
        let left = std::fs::read_dir(dir.path()).expect("the directory").count();
        assert_eq!((left, dir.path().join("c").exists()), (2, true));
    }

    #[tokio::test]
    async fn what_others_put_among_kept_output_does_not_stop_its_clean_up() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = OutputStore::open(dir.path().into(), 1 << 20, 2500).expect("a store");
        std::fs::create_dir(dir.path().join("0-directory")).expect("a directory");
        std::os::unix::fs::symlink("nowhere", dir.path().join("0-link")).expect("a link");
        for name in ["a", "b", "c"] {
            let mut capture = store.capture(name.into(), 10, 1 << 20);
            capture.push(&[b'x'; 1000]).await;
            capture.finish().await;
        }
        let left = ["0-directory", "a", "b", "c"].map(|name| dir.path().join(name).exists());
        assert_eq!(left, [true, false, true, true]);
    }
}
