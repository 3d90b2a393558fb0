//! Files that a guest of `wasi:filesystem` writes: held until they are whole, then written as `files` writes, at once or not at all.
//!
//! A person may be asked about a write, and has to see what will be there. So a file is written when the guest closes it, asks for it to be synced,
//! or returns. One that is stopped has written nothing but what it had closed or synced by then.

use crate::capability::files::Over;
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

/// Bytes of all that is held of files for one guest: those that it writes, pieces of those that it reads, and listings of directories.
const MOST_BYTES: usize = 8 << 20;
/// What is read of a file in one go, in bytes.
pub(super) const PIECE: usize = 64 << 10;
/// What a guest may write in one go, in bytes.
const PERMIT: usize = 1 << 20;

/// The files that one guest writes.
#[derive(Default)]
pub(crate) struct Drafts {
    all: Vec<Draft>,
    held: Arc<AtomicUsize>,
}

/// One of them. Clones are the same file.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) path: Arc<str>,
    file: Arc<Mutex<File>>,
    held: Arc<AtomicUsize>,
}

struct File {
    content: Vec<u8>,
    over: Over,
    /// The guest has changed it since it was written, or wants it to be there.
    changed: bool,
    closed: bool,
}

/// Some of the room that there is for one guest. Dropped, it is given back.
pub(super) struct Held {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// More than there is room for.
#[derive(Debug, PartialEq)]
pub(super) struct TooMuch;

impl Drafts {
    /// Opens a file that has `content`, and whose change takes the place of what `over` says.
    pub(super) fn open(&mut self, path: &str, content: Vec<u8>, over: Over, changed: bool) -> Result<Draft, TooMuch> {
        let bytes = content.len();
        let file = File { content: Vec::new(), over, changed, closed: false };
        let draft = Draft { path: path.into(), file: Arc::new(Mutex::new(file)), held: self.held.clone() };
        draft.room(bytes)?;
        draft.file.lock().content = content;
        self.all.retain(|other| !other.file.lock().closed);
        self.all.push(draft.clone());
        Ok(draft)
    }

    /// Takes room for what is read.
    pub(super) fn hold(&self, bytes: usize) -> Result<Held, TooMuch> {
        take(&self.held, bytes)?;
        Ok(Held { all: self.held.clone(), bytes })
    }

    /// Those that the guest has not closed.
    pub(super) fn take(&mut self) -> Vec<Draft> {
        std::mem::take(&mut self.all)
    }
}

fn take(held: &AtomicUsize, bytes: usize) -> Result<(), TooMuch> {
    let before = held.fetch_add(bytes, Ordering::Relaxed);
    if before.saturating_add(bytes) <= MOST_BYTES {
        return Ok(());
    }
    held.fetch_sub(bytes, Ordering::Relaxed);
    Err(TooMuch)
}

impl Draft {
    /// Takes room for so many more bytes.
    fn room(&self, bytes: usize) -> Result<(), TooMuch> {
        take(&self.held, bytes)
    }

    pub(super) fn size(&self) -> u64 {
        self.file.lock().content.len() as u64
    }

    /// A piece of it; whether that is the end.
    pub(super) fn read(&self, offset: u64, most: usize) -> (Vec<u8>, bool) {
        let file = self.file.lock();
        let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(file.content.len());
        let end = begin.saturating_add(most).min(file.content.len());
        (file.content[begin..end].to_vec(), end == file.content.len())
    }

    /// Writes at an offset, or at the end where there is none.
    pub(super) fn write(&self, offset: Option<u64>, bytes: &[u8]) -> Result<(), TooMuch> {
        if bytes.is_empty() {
            return Ok(());
        }
        let begin = offset.unwrap_or_else(|| self.size());
        let end = begin.checked_add(bytes.len() as u64).ok_or(TooMuch)?;
        self.grow(end)?;
        let mut file = self.file.lock();
        let begin = usize::try_from(begin).map_err(|_| TooMuch)?;
        file.content[begin..begin + bytes.len()].copy_from_slice(bytes);
        file.changed = true;
        Ok(())
    }

    /// Cuts it, or adds zeros.
    pub(super) fn set_size(&self, size: u64) -> Result<(), TooMuch> {
        self.grow(size)?;
        let mut file = self.file.lock();
        let size = usize::try_from(size).map_err(|_| TooMuch)?;
        self.held.fetch_sub(file.content.len() - size, Ordering::Relaxed);
        file.content.truncate(size);
        file.changed = true;
        Ok(())
    }

    /// Makes it at least so large.
    fn grow(&self, size: u64) -> Result<(), TooMuch> {
        let size = usize::try_from(size).map_err(|_| TooMuch)?;
        let present = self.file.lock().content.len();
        if let Some(more) = size.checked_sub(present) {
            self.room(more)?;
            self.file.lock().content.resize(size, 0);
        }
        Ok(())
    }

    /// What is to be written now, if something is. It counts as written: nobody is asked about it a second time.
    pub(super) fn unwritten(&self) -> Option<(Vec<u8>, Over)> {
        let mut file = self.file.lock();
        let over = file.over.clone();
        std::mem::take(&mut file.changed).then(|| (file.content.clone(), over))
    }

    /// From now on a change takes the place of this.
    pub(super) fn written(&self, over: Over) {
        self.file.lock().over = over;
    }

    /// Nothing is written to it from now on.
    pub(super) fn close(&self) {
        let mut file = self.file.lock();
        file.closed = true;
        self.held.fetch_sub(file.content.len(), Ordering::Relaxed);
        file.content = Vec::new();
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
    }
}

/// A stream out of a file that is being written.
pub(super) struct DraftReader {
    pub(super) draft: Draft,
    pub(super) offset: u64,
}

#[async_trait::async_trait]
impl Pollable for DraftReader {
    async fn ready(&mut self) {}
}

#[async_trait::async_trait]
impl InputStream for DraftReader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let (piece, _) = self.draft.read(self.offset, size.min(PIECE));
        if piece.is_empty() && size > 0 {
            return Err(StreamError::Closed);
        }
        self.offset += piece.len() as u64;
        Ok(piece.into())
    }
}

/// A stream into a file.
pub(super) struct Writer {
    pub(super) draft: Draft,
    /// Where the next bytes go; at the end where there is none.
    pub(super) offset: Option<u64>,
}

#[async_trait::async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {}
}

impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > PERMIT {
            return Err(StreamError::Trap(wasmtime::Error::msg("a guest wrote more than it was permitted")));
        }
        if self.draft.file.lock().closed {
            return Err(StreamError::Closed);
        }
        let written = self.draft.write(self.offset, &bytes);
        written.map_err(|TooMuch| StreamError::LastOperationFailed(wasmtime::Error::msg(too_much())))?;
        self.offset = self.offset.map(|offset| offset + bytes.len() as u64);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        if self.draft.file.lock().closed { Err(StreamError::Closed) } else { Ok(PERMIT) }
    }
}

pub(super) fn too_much() -> String {
    format!("what is held of files is more than {} MiB", MOST_BYTES >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(drafts: &mut Drafts, content: &[u8]) -> Draft {
        drafts.open("a.txt", content.to_vec(), Over::Anything, false).unwrap()
    }

    #[test]
    fn what_is_written_anywhere_is_there_and_holes_are_zeros() {
        let mut drafts = Drafts::default();
        let draft = draft(&mut drafts, b"abc");
        assert!(draft.unwritten().is_none());
        draft.write(Some(1), b"XY").unwrap();
        draft.write(None, b"!").unwrap();
        draft.write(Some(6), b"z").unwrap();
        assert_eq!(draft.read(0, 100), (b"aXY!\0\0z".to_vec(), true));
        assert_eq!(draft.read(1, 2), (b"XY".to_vec(), false));
        assert_eq!(draft.read(u64::MAX, 2), (Vec::new(), true));
        draft.set_size(2).unwrap();
        assert_eq!(draft.unwritten().unwrap().0, b"aX");
        assert!(draft.unwritten().is_none());
    }

    #[test]
    fn all_files_together_have_one_bound() {
        let mut drafts = Drafts::default();
        let (one, other) = (draft(&mut drafts, b""), draft(&mut drafts, b""));
        one.set_size(MOST_BYTES as u64 - 10).unwrap();
        assert_eq!(other.write(None, &[0; 11]), Err(TooMuch));
        assert_eq!(other.write(Some(u64::MAX), b"x"), Err(TooMuch));
        assert_eq!(other.set_size(u64::MAX), Err(TooMuch));
        other.write(None, &[0; 10]).unwrap();
        one.close();
        other.set_size(MOST_BYTES as u64).unwrap();
        other.set_size(0).unwrap();
        other.close();
        assert_eq!(drafts.held.load(Ordering::Relaxed), 0);
    }
}
