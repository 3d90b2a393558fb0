//! `wit/files.wit`: files and directories, by the backend, where the grant admits the resolved path.

mod encodings;
mod texts;

use super::Refusal;
use super::bindings::toolcrib::plugin::{files, types};
use crate::sandbox::State;
use audit::Action;
use backend::search::{Find, FoundFile, FoundLine, Looked, Pattern, Search, Watch, Which};
use backend::{Backend, Before, Entry, EntryKind, FileText, Listing, absolute};
use base::capability::Capability;
use base::envelope::{Failure, Kind};
use base::paths::normal;
use file_access::{FilesGrant, New, ReadPath, ReadTree, Resolved, Wanted, WritePath};
use kept_output::Captured;
use policy::event::Event;
use policy::guard::Exit;
use policy::held;
use policy::scope::Scope;
use policy::writes::confirm;
use sha2::{Digest, Sha256};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// What one `read` returns at most, as `wit/files.wit` promises.
const READ_BYTES: usize = 4 << 20;
/// The largest content that is held against a revision, in bytes.
const COMPARED_BYTES: usize = 8 << 20;
/// The same for entries of a directory.
const LISTED: usize = 10_000;
/// The same for finds of a search, with those that are passed over.
const MOST_FOUND: u32 = 10_000;
/// The same for lines around each find, and for bytes of a line.
const CONTEXT_LINES: u32 = 50;
const LINE_BYTES: u32 = 4 << 10;
/// How often a search says how far it is.
const TOLD_EACH: Duration = Duration::from_millis(500);

impl files::Host for State {
    async fn read(&mut self, path: String, offset: u64, max: u32) -> Result<types::Captured, Refusal> {
        let max_bytes = (max as usize).saturating_mul(char::MAX.len_utf8()).min(READ_BYTES);
        // One sequence more at each end: the first may begin before the offset, the last may be cut.
        let piece = max_bytes + 2 * char::MAX.len_utf8();
        let file = self.piece(&path, offset, piece).await?;
        Ok(text(&path, offset, &file.bytes, file.size, max as usize, max_bytes)?.into())
    }

    async fn read_whole(&mut self, path: String) -> Result<files::Whole, Refusal> {
        let bytes = self.whole_piece(&path).await?;
        let content = text(&path, 0, &bytes, bytes.len() as u64, usize::MAX, READ_BYTES)?.text;
        Ok(files::Whole { content, revision: revision(&bytes) })
    }

    async fn read_encoded(&mut self, path: String, encoding: Option<String>) -> Result<files::Encoded, Refusal> {
        self.encoded(&path, encoding.as_deref()).await
    }

    async fn read_bytes(&mut self, path: String, offset: u64, max: u32) -> Result<Vec<u8>, Refusal> {
        Ok(self.piece(&path, offset, (max as usize).min(READ_BYTES)).await?.bytes)
    }

    async fn write(&mut self, path: String, content: Vec<u8>) -> Result<u64, Refusal> {
        self.write_over(path, content, Over::Anything).await
    }

    async fn replace(&mut self, path: String, content: Vec<u8>, revision: String) -> Result<u64, Refusal> {
        self.write_over(path, content, Over::Revision(revision)).await
    }

    async fn append(&mut self, path: String, content: Vec<u8>) -> Result<u64, Refusal> {
        self.write_over(path, content, Over::Added).await
    }

    async fn write_encoded(
        &mut self,
        path: String,
        content: String,
        how: files::Writing,
    ) -> Result<files::Written, Refusal> {
        self.write_text(path, content, how).await
    }

    async fn notation(&mut self, text: String) -> Result<String, Refusal> {
        self.noted(&text)
    }

    async fn list_directory(&mut self, path: String, max: u32) -> Result<files::Listing, Refusal> {
        let admitted = self.reading("list", &path).await?;
        let Listing { entries, total } = self.scope.backend.list(&admitted, LISTED.min(max as usize)).await?;
        Ok(files::Listing { entries: entries.into_iter().map(files::Entry::from).collect(), total })
    }

    async fn stat(&mut self, path: String) -> Result<files::Entry, Refusal> {
        let admitted = self.reading("look at", &path).await?;
        Ok(self.scope.backend.stat(&admitted.place()).await?.into())
    }

    async fn search(&mut self, path: String, query: files::LineQuery) -> Result<files::FoundLines, Refusal> {
        self.meter.charge_bytes(told(&query.files) + query.pattern.text.len())?;
        check_counts(query.skip, query.max)?;
        let search = Search {
            which: query.files.into(),
            pattern: query.pattern.into(),
            before: query.before.min(CONTEXT_LINES),
            after: query.after.min(CONTEXT_LINES),
            skip: query.skip,
            max: query.max,
            line_bytes: query.line_bytes.clamp(1, LINE_BYTES),
        };
        let tree = self.tree("search", &path).await?;
        let (scope, watch) = (&*self.scope.scope, Arc::new(Watch::default()));
        let found = watched(scope, &watch, scope.backend.search(&tree, &search, watch.clone())).await?;
        let files = found.files.into_iter().map(files::FoundFile::from).collect();
        let (more, binary, notices) = (found.more, found.binary, found.notices);
        Ok(files::FoundLines { files, more, binary, looked: found.looked.into(), notices })
    }

    async fn find(&mut self, path: String, query: files::NameQuery) -> Result<files::FoundNames, Refusal> {
        let pattern = query.path.as_ref().map_or(0, |pattern| pattern.text.len());
        self.meter.charge_bytes(told(&query.files) + pattern)?;
        check_counts(query.skip, query.max)?;
        let find = Find {
            which: query.files.into(),
            path: query.path.map(Pattern::from),
            directories: query.directories,
            skip: query.skip,
            max: query.max,
        };
        let tree = self.tree("find below", &path).await?;
        let (scope, watch) = (&*self.scope.scope, Arc::new(Watch::default()));
        let found = watched(scope, &watch, scope.backend.find(&tree, &find, watch.clone())).await?;
        let paths = found.files.into_iter().map(|file| file.path).collect();
        Ok(files::FoundNames { paths, more: found.more, looked: found.looked.into(), notices: found.notices })
    }

    async fn make_directory(&mut self, path: String) -> Result<bool, Refusal> {
        let grant = self.grants()?.files()?.clone();
        self.meter.charge_bytes(path.len())?;
        let path = self.placed(&path, true).await?;
        if let Err(refusal) = self.scope.guard.check(Exit::Write, [path.as_bytes()]) {
            self.record("make", &path, Err((&refusal, None)));
            return Err(refusal.into());
        }
        let resolved = self.scope.backend.resolve(&path, &grant.roots()).await;
        let rules = grant.clone();
        let wanted = judged(resolved, move |resolved| rules.admit_directory(resolved)).await;
        // Nobody has to be asked for what is there.
        if let Ok(wanted) = &wanted
            && let Ok(found) = self.scope.backend.stat(&wanted.place()).await
            && found.kind == EntryKind::Directory
        {
            self.record("make", &path, Ok(None));
            return Ok(false);
        }
        let admitted = self.confirmed("make", &path, &grant, wanted, New::Directory).await?;
        let is_made = self.scope.backend.make_directory(&admitted).await?;
        self.scope.touch_state();
        Ok(is_made)
    }

    async fn undo(&mut self, path: Option<String>) -> Result<Vec<files::Undone>, Refusal> {
        self.put_back(path).await
    }
}

/// What a write takes the place of.
#[derive(Clone)]
pub(super) enum Over {
    Anything,
    /// The content of that revision; none where it is empty.
    Revision(String),
    /// What is there, which stays: it is added to.
    Added,
}

impl From<Entry> for files::Entry {
    fn from(entry: Entry) -> Self {
        let kind = match entry.kind {
            EntryKind::File => files::EntryKind::File,
            EntryKind::Directory => files::EntryKind::Directory,
            EntryKind::Link => files::EntryKind::Link,
            EntryKind::Other => files::EntryKind::Other,
        };
        let name = entry.name.to_string_lossy().into_owned();
        Self { name, kind, size: entry.size, modified_ms: entry.modified_ms }
    }
}

impl From<files::WhichFiles> for Which {
    fn from(which: files::WhichFiles) -> Self {
        let files::WhichFiles { globs, types, hidden, ignored } = which;
        Self { globs, types, hidden, ignored }
    }
}

impl From<files::Pattern> for Pattern {
    fn from(pattern: files::Pattern) -> Self {
        let files::Pattern { text, literal, ignore_case } = pattern;
        Self { text, literal, ignore_case }
    }
}

impl From<FoundFile> for files::FoundFile {
    fn from(FoundFile { path, lines }: FoundFile) -> Self {
        let line = |FoundLine { number, offset, column, text, before, after }| files::FoundLine {
            number,
            offset,
            column,
            text,
            before,
            after,
        };
        Self { path, lines: lines.into_iter().map(line).collect() }
    }
}

impl From<Looked> for files::Looked {
    fn from(looked: Looked) -> Self {
        let Looked { files, refused, unreadable, binary, long, irregular, links, not_utf8, deep, timed_out } = looked;
        Self { files, refused, unreadable, binary, long, irregular, links, not_utf8, deep, timed_out }
    }
}

/// Bytes that a guest handed over with a query.
fn told(which: &files::WhichFiles) -> usize {
    which.globs.iter().chain(&which.types).map(String::len).sum()
}

fn check_counts(skip: u32, max: u32) -> Result<(), Failure> {
    if max == 0 || skip.saturating_add(max) > MOST_FOUND {
        let message =
            format!("`skip` and `max` are {skip} and {max} (limit: {MOST_FOUND} together, and `max` is not 0)");
        return Err(Failure::invalid(message).hint("search for something rarer, or in fewer files"));
    }
    Ok(())
}

impl State {
    /// A directory or a file that the plugin may search.
    async fn tree(&mut self, verb: &str, path: &str) -> Result<ReadTree, Refusal> {
        let grant = self.grants()?.files()?.clone();
        self.meter.charge_bytes(path.len())?;
        let path = &*self.placed(path, false).await?;
        let resolved = self.scope.backend.resolve(path, &grant.roots()).await;
        let tree = judged(resolved, move |resolved| grant.admit_tree(resolved)).await;
        self.record(verb, path, tree.as_ref().map(|_| None).map_err(|refusal| (refusal, None)));
        Ok(tree?)
    }

    /// A piece of a file that the plugin may read.
    async fn piece(&mut self, path: &str, offset: u64, bytes: usize) -> Result<FileText, Refusal> {
        let grant = self.grants()?.files()?.clone();
        self.meter.charge_bytes(path.len())?;
        match self.scope.output.kept(path).filter(|_| grant.reads_everywhere()) {
            // Kept output lies on this machine, wherever the call lands.
            Some(kept) => {
                self.record("read", path, Ok(None));
                Ok(kept.read(offset, bytes).await?)
            }
            None => {
                let path = &*self.placed(path, false).await?;
                let admitted = self.admitted("read", path, grant).await?;
                Ok(self.scope.backend.read(&admitted, offset, bytes).await?)
            }
        }
    }

    /// A whole file that the plugin may read, of at most so many bytes.
    pub(super) async fn whole_file(&mut self, path: &str, most: usize) -> Result<Vec<u8>, Failure> {
        let grant = self.grants()?.files()?.clone();
        let path = &*self.placed(path, false).await?;
        let admitted = self.admitted("read", path, grant).await?;
        let mut content = Vec::new();
        loop {
            let piece = self.scope.backend.read(&admitted, content.len() as u64, READ_BYTES).await?;
            if piece.size > most as u64 || content.len() + piece.bytes.len() > most {
                let message = format!("`{path}` has {} bytes (limit: {} MiB)", piece.size, most >> 20);
                return Err(Failure::limit(message).hint("send less, or where it is"));
            }
            let is_end = piece.bytes.is_empty();
            content.extend(piece.bytes);
            if is_end || content.len() as u64 >= piece.size {
                return Ok(content);
            }
        }
    }

    /// A path that the plugin may read, for what is not the content of a file.
    pub(super) async fn reading(&mut self, verb: &str, path: &str) -> Result<ReadPath, Refusal> {
        let grant = self.grants()?.files()?.clone();
        self.meter.charge_bytes(path.len())?;
        let path = &*self.placed(path, false).await?;
        Ok(self.admitted(verb, path, grant).await?)
    }

    /// A path as this machine has it, where it lies in a mount of the session's toolset. Nothing is decided by it but whether that is written.
    pub(super) async fn placed(&mut self, path: &str, writes: bool) -> Result<String, Failure> {
        let Some(toolset) = self.scope.session.toolset().filter(|toolset| toolset.mounts().next().is_some()) else {
            return Ok(path.to_owned());
        };
        let facts = self.scope.backend.facts().await?;
        let whole = normal(&absolute(path, &facts.directory, &facts.home)?);
        let Some((placed, mount)) = toolset.mounted(&whole) else { return Ok(path.to_owned()) };
        let refusal = match (self.scope.backend.is_this_machine(), mount.read_only && writes) {
            (true, false) => return Ok(placed.display().to_string()),
            (true, true) => Failure::denied(format!("`{path}` lies in a mount that is only for reading")),
            (false, _) => {
                Failure::new(Kind::Unavailable, format!("`{path}` lies in a mount, which only this machine has"))
            }
        };
        self.record(if writes { "write" } else { "read" }, path, Err((&refusal, None)));
        Err(refusal.hint("`mount_list` has the mounts"))
    }

    async fn admitted(&mut self, verb: &str, path: &str, grant: FilesGrant) -> Result<ReadPath, Failure> {
        let resolved = self.scope.backend.resolve(path, &grant.roots()).await;
        let admitted = judged(resolved, move |resolved| grant.admit_read(resolved)).await;
        self.record(verb, path, admitted.as_ref().map(|_| None).map_err(|refusal| (refusal, None)));
        admitted
    }

    /// Writes a file, if it still has what it is to take the place of. Returns its new size.
    pub(super) async fn write_over(&mut self, path: String, mut content: Vec<u8>, over: Over) -> Result<u64, Refusal> {
        let (grant, path, wanted) = self.wanted(&path, &content).await?;
        let backend = &*self.scope.backend;
        let wanted = match (wanted, over) {
            (Ok(wanted), Over::Revision(revision)) => still(backend, wanted, &revision).await,
            (Ok(wanted), Over::Added) => added(backend, wanted, &mut content).await,
            (wanted, _) => wanted,
        };
        self.put(&path, &grant, wanted, content).await
    }

    /// The path that a content is to be written to, if nothing forbids it. A refusal for the content was written down; one for the path is yet to be.
    async fn wanted(
        &mut self,
        path: &str,
        content: &[u8],
    ) -> Result<(FilesGrant, String, Result<Wanted, Failure>), Refusal> {
        let grant = self.grants()?.files()?.clone();
        self.meter.charge_bytes(path.len() + content.len())?;
        let path = self.placed(path, true).await?;
        if let Err(refusal) = self.scope.guard.check(Exit::Write, [path.as_bytes(), content]) {
            self.record("write", &path, Err((&refusal, None)));
            return Err(refusal.into());
        }
        let resolved = self.scope.backend.resolve(&path, &grant.roots()).await;
        let rules = grant.clone();
        let wanted = judged(resolved, move |resolved| rules.admit_write(resolved)).await;
        Ok((grant, path, wanted))
    }

    /// Has a write confirmed, and writes. Returns the new size.
    async fn put(
        &mut self,
        path: &str,
        grant: &FilesGrant,
        wanted: Result<Wanted, Failure>,
        content: Vec<u8>,
    ) -> Result<u64, Refusal> {
        let admitted = self.confirmed("write", path, grant, wanted, New::Content(&content)).await?;
        let bytes = content.len() as u64;
        held::admit(&*self.scope.backend, admitted.as_path(), &content).await;
        let left = Sha256::digest(&content).into();
        let replaced = self.scope.backend.write(&admitted, content).await?;
        self.scope.touch_state();
        self.keep_for_undo(admitted.as_path(), replaced, left).await;
        Ok(bytes)
    }

    /// Refuses a path that the plugin may not write, before it has made what it would write.
    pub(super) async fn may_write(&mut self, path: &str) -> Result<(), Refusal> {
        let grant = self.grants()?.files()?.clone();
        self.meter.charge_bytes(path.len())?;
        let path = self.placed(path, true).await?;
        let resolved = self.scope.backend.resolve(&path, &grant.roots()).await;
        let admitted = judged(resolved, move |resolved| grant.admit_write(resolved)).await;
        if let Err(refusal) = &admitted {
            self.record("write", &path, Err((refusal, None)));
        }
        Ok(admitted.map(drop)?)
    }

    /// Has a person admit it where settings ask for that, and writes down what was decided.
    pub(super) async fn confirmed(
        &mut self,
        verb: &str,
        path: &str,
        grant: &FilesGrant,
        wanted: Result<Wanted, Failure>,
        new: New<'_>,
    ) -> Result<WritePath, Refusal> {
        let admitted = match wanted {
            Ok(wanted) => confirm(grant, wanted, new, &self.scope).await,
            Err(refusal) => Err((refusal, None)),
        };
        let decided = admitted.as_ref().map(|(_, by)| by.as_deref()).map_err(|(refusal, by)| (refusal, by.as_deref()));
        self.record(verb, path, decided);
        Ok(admitted.map_err(|(refusal, _)| refusal)?.0)
    }

    /// Writes down what was decided, and by whom where somebody was asked.
    fn record(&self, verb: &str, path: &str, decided: Result<Option<&str>, (&Failure, Option<&str>)>) {
        let decision = match decided {
            Ok(None) => "allowed".to_owned(),
            Ok(Some(by)) => format!("allowed by {by}"),
            Err((refusal, None)) => format!("{}: {}", refusal.kind.name(), refusal.message),
            Err((_, Some(by))) => format!("denied by {by}"),
        };
        let what = format!("{verb} {path}");
        self.scope.record(Action {
            capability: Capability::Files,
            what,
            confinement: None,
            declaration: None,
            decision,
        });
    }
}

/// Waits for a search, which ends with the call, and says now and then how far it is.
async fn watched<T>(
    scope: &Scope,
    watch: &Arc<Watch>,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let _leash = watch.leash();
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            () = scope.cancel.cancelled() => return Err(Failure::cancelled()),
            done = &mut work => return done,
            () = tokio::time::sleep(TOLD_EACH) => scope.emit_for_guest(0, || {
                Event::Progress { done: watch.files(), total: None, message: Some("files searched".into()) }
            }),
        }
    }
}

/// Refuses a file that has another content than that of a revision; what it has must be there until it is replaced.
async fn still(backend: &dyn Backend, wanted: Wanted, revision: &str) -> Result<Wanted, Failure> {
    let before = backend.look(&wanted, COMPARED_BYTES).await?;
    as_of(wanted, &before, revision)
}

/// As [`still`], of a file that was looked at.
fn as_of(wanted: Wanted, before: &Before, revision: &str) -> Result<Wanted, Failure> {
    let found = match before {
        Before::New => Some(String::new()),
        Before::There { content, .. } => content.as_deref().map(self::revision),
    };
    if found.as_deref() == Some(revision) {
        return Ok(wanted.expecting(before.expected()));
    }
    let message = format!("`{}` is another than it was when it was read; nothing was written", wanted.shown());
    Err(Failure::new(Kind::Busy, message).hint("read it again, then change it again"))
}

/// Puts what a file has before what is added to it; it must be there until it is replaced.
async fn added(backend: &dyn Backend, wanted: Wanted, content: &mut Vec<u8>) -> Result<Wanted, Failure> {
    let before = backend.look(&wanted, READ_BYTES).await?;
    match &before {
        Before::New => {}
        Before::There { content: Some(present), .. } => *content = [present, content.as_slice()].concat(),
        Before::There { size, content: None, .. } if *size > READ_BYTES as u64 => {
            let message = format!("`{}` has {size} bytes, more than the 4 MiB that can be added to", wanted.shown());
            return Err(Failure::limit(message).hint("add to it with run_shell, by `>>`"));
        }
        Before::There { content: None, .. } => {
            return Err(Failure::denied(format!("`{}` is closed to tools, or cannot be read", wanted.shown())));
        }
    }
    Ok(wanted.expecting(before.expected()))
}

/// What tells a content from all others.
pub(super) fn revision(content: &[u8]) -> String {
    hex::encode(&Sha256::digest(content)[..16])
}

/// Judges a path on a thread that serves no other call: this reads from the disk, which may be slow.
pub(super) async fn judged<A: Send + 'static>(
    resolved: Result<Resolved, Failure>,
    judge: impl FnOnce(&Resolved) -> Result<A, Failure> + Send + 'static,
) -> Result<A, Failure> {
    let resolved = resolved?;
    let judged = tokio::task::spawn_blocking(move || judge(&resolved)).await;
    judged.unwrap_or_else(|error| Err(Failure::new(Kind::Internal, format!("the path was not checked: {error}"))))
}

/// Cuts the text at the offset; refuses what is not text.
fn text(path: &str, offset: u64, bytes: &[u8], size: u64, max: usize, max_bytes: usize) -> Result<Captured, Failure> {
    let head = if offset == 0 { bytes } else { &[] };
    encodings::no_other(path, head, size)?;
    // After an offset the first bytes may be the rest of a sequence.
    let skipped = if offset == 0 { 0 } else { bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count() };
    let bytes = &bytes[skipped..];
    let readable = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The last sequence was cut by the piece's end, not by the file's.
        Err(error) if error.error_len().is_none() && offset + ((skipped + bytes.len()) as u64) < size => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).expect("valid up to here")
        }
        Err(error) => {
            return Err(encodings::not_text(path, head, offset + (skipped + error.valid_up_to()) as u64, size));
        }
    };
    let end = readable.char_indices().map(|(index, _)| index).chain([readable.len()]);
    let end = end.take_while(|end| *end <= max_bytes).take(max.saturating_add(1)).last().unwrap_or(0);
    let truncated = offset + ((skipped + end) as u64) < size;
    Ok(Captured { text: readable[..end].to_owned(), bytes: size, truncated, stored: None })
}

#[cfg(test)]
mod tests {
    fn cut(text: &str, offset: usize, max: usize) -> (String, bool) {
        let bytes = text.as_bytes();
        let piece = &bytes[offset.min(bytes.len())..];
        let captured = super::text("f", offset as u64, piece, bytes.len() as u64, max, max * 4).expect("text");
        (captured.text, captured.truncated)
    }

    #[test]
    fn text_of_exactly_the_length_is_not_cut() {
        assert_eq!(cut("🙂🙂🙂", 0, 3), ("🙂🙂🙂".into(), false));
        assert_eq!(cut("🙂🙂🙂", 0, 2), ("🙂🙂".into(), true));
    }

    #[test]
    fn an_offset_inside_a_sequence_moves_to_the_next_character() {
        assert_eq!(cut("🙂ab", 1, 9), ("ab".into(), false));
    }

    #[test]
    fn an_offset_behind_the_end_reads_nothing() {
        assert_eq!(cut("ab", 7, 9), (String::new(), false));
    }

    #[test]
    fn bytes_that_are_not_text_are_refused_with_their_place() {
        let failure = super::text("f", 0, b"ab\xff\x00c", 5, 9, 99).expect_err("binary");
        assert_eq!(failure.message, "`f` is not text: byte 2 of 5 is not valid UTF-8");
    }

    #[test]
    fn a_file_that_ends_within_a_sequence_is_refused() {
        assert!(super::text("f", 0, b"ab\xf0\x9f", 4, 9, 99).is_err());
    }
}
