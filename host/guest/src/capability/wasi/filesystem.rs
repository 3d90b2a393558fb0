//! `wasi:filesystem`, by `files`: each path is judged as that of `files` is, on the call's backend, and what is not in `files` is not supported here:
//! no links are made or shown, nothing is removed or renamed, no times are set.
//!
//! A guest begins at `.`, the working directory of the call, and at each directory that it was granted, by its path. Links are followed, and what
//! they lead to is judged.

use super::super::Refusal;
use super::super::bindings::toolcrib::plugin::files::{Entry, EntryKind, Host as _};
use super::super::files::{Over, revision};
use super::Reasons;
use super::draft::{Draft, DraftReader, Held, PIECE, TooMuch, Writer, too_much};
use crate::sandbox::State;
use backend::{Backend, PathFault, path_fault};
use base::envelope::{Failure, Kind};
use bindings::wasi::filesystem::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, MetadataHashValue,
    NewTimestamp, OpenFlags, PathFlags,
};
use bindings::wasi::filesystem::{preopens, types};
use bytes::Bytes;
use file_access::ReadPath;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::vec::IntoIter;
use wasmtime::component::{HasSelf, Linker, Resource, ResourceTableError};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::io::error::Error as IoError;
use wasmtime_wasi::p2::bindings::io::streams::{InputStream, OutputStream};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, InputStream as Input, Pollable, StreamError, StreamResult};

/// The largest file that is changed in place: all of it is read for that.
const MOST_CHANGED: usize = 4 << 20;
/// Entries of a directory.
const MOST_ENTRIES: u32 = 10_000;
/// What an entry of a directory takes beside its name, in bytes.
const ENTRY_BYTES: usize = 64;

mod bindings {
    wasmtime::component::bindgen!({
        path: "src/capability/wasi/filesystem.wit",
        world: "toolcrib:wasi/filesystem",
        imports: { default: async | trappable },
        trappable_error_type: { "wasi:filesystem/types.error-code" => super::Fault },
        with: {
            "wasi:io": wasmtime_wasi::p2::bindings::io,
            "wasi:clocks": wasmtime_wasi::p2::bindings::clocks,
            "wasi:filesystem/types.descriptor": super::Descriptor,
            "wasi:filesystem/types.directory-entry-stream": super::Entries,
        },
    });
}

/// A file or directory that a guest has open.
#[expect(unreachable_pub, reason = "the generated bindings name it as public")]
pub struct Descriptor {
    /// As the guest has come to it, from a directory that it begins at.
    path: String,
    open: Open,
}

#[derive(Clone)]
enum Open {
    Directory,
    /// To be read.
    File(ReadPath),
    /// To be written, and read as it will be.
    Draft(Draft),
}

/// What a directory had when it was opened for reading.
#[expect(unreachable_pub, reason = "the generated bindings name it as public")]
pub struct Entries {
    rest: IntoIter<Entry>,
    _held: Held,
}

/// Why a function has no result.
pub(crate) enum Fault {
    Code(ErrorCode),
    Trap(wasmtime::Error),
}

type Answer<T> = Result<T, Fault>;

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasSelf<_>>(linker, |state: &mut State| state)?;
    preopens::add_to_linker::<_, HasSelf<_>>(linker, |state: &mut State| state)
}

impl From<ErrorCode> for Fault {
    fn from(code: ErrorCode) -> Self {
        Self::Code(code)
    }
}

impl From<ResourceTableError> for Fault {
    fn from(error: ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

impl types::Host for State {
    fn convert_error_code(&mut self, fault: Fault) -> wasmtime::Result<ErrorCode> {
        match fault {
            Fault::Code(code) => Ok(code),
            Fault::Trap(error) => Err(error),
        }
    }

    async fn filesystem_error_code(&mut self, _: Resource<IoError>) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(None)
    }
}

impl preopens::Host for State {
    async fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let mut paths = vec![(".".to_owned(), ".".to_owned())];
        // One that was granted nothing learns of that, and of what would change it, when it opens something.
        if let Ok(grant) = self.grants().and_then(|grants| grants.files()) {
            for directory in grant.granted(self.scope.backend.is_this_machine()) {
                if paths.iter().all(|(path, _)| *path != directory) {
                    paths.push((directory.clone(), directory));
                }
            }
        }
        let open = |(path, name)| Ok((self.table.push(Descriptor { path, open: Open::Directory })?, name));
        paths.into_iter().map(open).collect()
    }
}

impl types::HostDescriptor for State {
    async fn read_via_stream(&mut self, file: Resource<Descriptor>, offset: u64) -> Answer<Resource<InputStream>> {
        let stream: DynInputStream = match self.table.get(&file)?.open.clone() {
            Open::Directory => return Err(ErrorCode::IsDirectory.into()),
            Open::Draft(draft) => Box::new(DraftReader { draft, offset }),
            Open::File(path) => {
                let held = self.drafts.hold(PIECE).map_err(|refusal| self.too_much(refusal))?;
                let (backend, reasons) = (self.scope.backend.clone(), self.reasons.clone());
                Box::new(Reader { backend, path, offset, next: Next::Unread, reasons, _held: held })
            }
        };
        Ok(self.table.push(stream)?)
    }

    async fn write_via_stream(&mut self, file: Resource<Descriptor>, offset: u64) -> Answer<Resource<OutputStream>> {
        self.writer(&file, Some(offset))
    }

    async fn append_via_stream(&mut self, file: Resource<Descriptor>) -> Answer<Resource<OutputStream>> {
        self.writer(&file, None)
    }

    async fn advise(&mut self, _: Resource<Descriptor>, _: u64, _: u64, _: Advice) -> Answer<()> {
        Ok(())
    }

    async fn sync_data(&mut self, file: Resource<Descriptor>) -> Answer<()> {
        self.sync(file).await
    }

    async fn get_flags(&mut self, file: Resource<Descriptor>) -> Answer<DescriptorFlags> {
        Ok(match self.table.get(&file)?.open {
            Open::Directory => DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY,
            Open::File(_) => DescriptorFlags::READ,
            Open::Draft(_) => DescriptorFlags::READ | DescriptorFlags::WRITE,
        })
    }

    async fn get_type(&mut self, file: Resource<Descriptor>) -> Answer<DescriptorType> {
        Ok(match self.table.get(&file)?.open {
            Open::Directory => DescriptorType::Directory,
            Open::File(_) | Open::Draft(_) => DescriptorType::RegularFile,
        })
    }

    async fn set_size(&mut self, file: Resource<Descriptor>, size: u64) -> Answer<()> {
        let draft = self.draft(&file)?;
        draft.set_size(size).map_err(|refusal| self.too_much(refusal))
    }

    async fn set_times(&mut self, _: Resource<Descriptor>, _: NewTimestamp, _: NewTimestamp) -> Answer<()> {
        Err(self.unsupported("set times of files"))
    }

    async fn read(&mut self, file: Resource<Descriptor>, length: u64, offset: u64) -> Answer<(Vec<u8>, bool)> {
        let most = usize::try_from(length).unwrap_or(PIECE).min(PIECE);
        match self.table.get(&file)?.open.clone() {
            Open::Directory => Err(ErrorCode::IsDirectory.into()),
            Open::Draft(draft) => Ok(draft.read(offset, most)),
            Open::File(path) => {
                let read = self.scope.backend.read(&path, offset, most).await;
                let read = read.map_err(|failure| self.fault(failure.into()))?;
                let is_end = offset + read.bytes.len() as u64 >= read.size;
                Ok((read.bytes, is_end))
            }
        }
    }

    async fn write(&mut self, file: Resource<Descriptor>, bytes: Vec<u8>, offset: u64) -> Answer<u64> {
        let draft = self.draft(&file)?;
        draft.write(Some(offset), &bytes).map_err(|refusal| self.too_much(refusal))?;
        Ok(bytes.len() as u64)
    }

    async fn read_directory(&mut self, directory: Resource<Descriptor>) -> Answer<Resource<Entries>> {
        let path = self.directory(&directory)?;
        let listing = self.list_directory(path.clone(), MOST_ENTRIES).await.map_err(|refusal| self.fault(refusal))?;
        if listing.total > u64::from(MOST_ENTRIES) {
            let message =
                format!("`{path}` has {} entries (limit: {MOST_ENTRIES} through `wasi:filesystem`)", listing.total);
            return Err(self.fault(Failure::limit(message).into()));
        }
        let bytes = listing.entries.iter().map(|entry| entry.name.len() + ENTRY_BYTES).sum();
        let held = self.drafts.hold(bytes).map_err(|refusal| self.too_much(refusal))?;
        Ok(self.table.push(Entries { rest: listing.entries.into_iter(), _held: held })?)
    }

    async fn sync(&mut self, file: Resource<Descriptor>) -> Answer<()> {
        match self.table.get(&file)?.open.clone() {
            Open::Directory | Open::File(_) => Ok(()),
            Open::Draft(draft) => self.written(&draft).await.map_err(|refusal| self.fault(refusal)),
        }
    }

    async fn create_directory_at(&mut self, directory: Resource<Descriptor>, path: String) -> Answer<()> {
        let path = self.below(&directory, &path)?;
        match self.make_directory(path).await.map_err(|refusal| self.fault(refusal))? {
            true => Ok(()),
            false => Err(ErrorCode::Exist.into()),
        }
    }

    async fn stat(&mut self, file: Resource<Descriptor>) -> Answer<DescriptorStat> {
        let Descriptor { path, open } = self.table.get(&file)?;
        match (path.clone(), open.clone()) {
            (_, Open::Draft(draft)) => Ok(stat_of(DescriptorType::RegularFile, draft.size(), None)),
            (path, Open::Directory | Open::File(_)) => self.looked_at(path).await,
        }
    }

    async fn stat_at(&mut self, directory: Resource<Descriptor>, _: PathFlags, path: String) -> Answer<DescriptorStat> {
        let path = self.below(&directory, &path)?;
        self.looked_at(path).await
    }

    async fn set_times_at(
        &mut self,
        _: Resource<Descriptor>,
        _: PathFlags,
        _: String,
        _: NewTimestamp,
        _: NewTimestamp,
    ) -> Answer<()> {
        Err(self.unsupported("set times of files"))
    }

    async fn link_at(
        &mut self,
        _: Resource<Descriptor>,
        _: PathFlags,
        _: String,
        _: Resource<Descriptor>,
        _: String,
    ) -> Answer<()> {
        Err(self.unsupported("make links"))
    }

    async fn open_at(
        &mut self,
        directory: Resource<Descriptor>,
        _: PathFlags,
        path: String,
        how: OpenFlags,
        flags: DescriptorFlags,
    ) -> Answer<Resource<Descriptor>> {
        let path = self.below(&directory, &path)?;
        let changes = flags.contains(DescriptorFlags::WRITE) || how.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE);
        let open = match changes {
            true => self.opened_for_writing(&path, how).await?,
            false => self.opened_for_reading(&path, how).await?,
        };
        Ok(self.table.push(Descriptor { path, open })?)
    }

    async fn readlink_at(&mut self, _: Resource<Descriptor>, _: String) -> Answer<String> {
        // What it leads to is what is seen everywhere else.
        Err(ErrorCode::Invalid.into())
    }

    async fn remove_directory_at(&mut self, _: Resource<Descriptor>, _: String) -> Answer<()> {
        Err(self.unsupported("remove directories"))
    }

    async fn rename_at(
        &mut self,
        _: Resource<Descriptor>,
        _: String,
        _: Resource<Descriptor>,
        _: String,
    ) -> Answer<()> {
        Err(self.unsupported("rename files"))
    }

    async fn symlink_at(&mut self, _: Resource<Descriptor>, _: String, _: String) -> Answer<()> {
        Err(self.unsupported("make links"))
    }

    async fn unlink_file_at(&mut self, _: Resource<Descriptor>, _: String) -> Answer<()> {
        Err(self.unsupported("remove files"))
    }

    async fn is_same_object(
        &mut self,
        one: Resource<Descriptor>,
        other: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        let (one, other) = (self.table.get(&one)?, self.table.get(&other)?);
        Ok(match (&one.open, &other.open) {
            (Open::Draft(one), Open::Draft(other)) => one.is_same(other),
            _ => one.path == other.path,
        })
    }

    async fn metadata_hash(&mut self, file: Resource<Descriptor>) -> Answer<MetadataHashValue> {
        let path = self.table.get(&file)?.path.clone();
        let found = types::HostDescriptor::stat(self, file).await?;
        Ok(hash(&path, &found))
    }

    async fn metadata_hash_at(
        &mut self,
        directory: Resource<Descriptor>,
        _: PathFlags,
        path: String,
    ) -> Answer<MetadataHashValue> {
        let path = self.below(&directory, &path)?;
        let found = self.looked_at(path.clone()).await?;
        Ok(hash(&path, &found))
    }

    async fn drop(&mut self, file: Resource<Descriptor>) -> wasmtime::Result<()> {
        if let Open::Draft(draft) = self.table.delete(file)?.open {
            match self.written(&draft).await {
                Ok(()) => {}
                // Closing a file has no result, so the call has none either.
                Err(Refusal::Failure(failure)) => self.unwritten(&draft.path, failure),
                Err(Refusal::Trap(error)) => return Err(error),
            }
            draft.close();
        }
        Ok(())
    }
}

impl types::HostDirectoryEntryStream for State {
    async fn read_directory_entry(&mut self, entries: Resource<Entries>) -> Answer<Option<DirectoryEntry>> {
        let next = self.table.get_mut(&entries)?.rest.next();
        Ok(next.map(|Entry { name, kind, .. }| DirectoryEntry { type_: type_of(kind), name }))
    }

    async fn drop(&mut self, entries: Resource<Entries>) -> wasmtime::Result<()> {
        self.table.delete(entries)?;
        Ok(())
    }
}

impl State {
    /// Writes what the guest has left open. Called when it has returned.
    ///
    /// # Errors
    ///
    /// Why a file of the call is not written, now or when it was closed.
    pub(crate) async fn close_files(&mut self) -> Result<(), Failure> {
        for draft in self.drafts.take() {
            if self.scope.cancel.is_cancelled() {
                return Err(Failure::cancelled());
            }
            let written = self.written(&draft).await;
            draft.close();
            match written {
                Ok(()) => {}
                Err(Refusal::Failure(failure)) => self.unwritten(&draft.path, failure),
                Err(Refusal::Trap(error)) => return Err(Failure::new(Kind::Internal, error.to_string())),
            }
        }
        self.not_written.take().map_or(Ok(()), Err)
    }

    fn unwritten(&mut self, path: &str, failure: Failure) {
        let message = format!("`{path}` was not written: {}", failure.message);
        self.not_written.get_or_insert(Failure { message, ..failure });
    }

    /// The path of something below a directory, which a guest cannot leave upwards.
    fn below(&self, directory: &Resource<Descriptor>, path: &str) -> Answer<String> {
        let root = self.directory(directory)?;
        let mut parts: Vec<&str> = Vec::new();
        if path.starts_with('/') {
            return Err(ErrorCode::NotPermitted.into());
        }
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.pop().is_none() => return Err(ErrorCode::NotPermitted.into()),
                ".." => {}
                part => parts.push(part),
            }
        }
        Ok(parts.iter().fold(root, |path, part| match path.as_str() {
            // `~` at the beginning of a path is a home; here it is a name.
            "." => format!("./{part}"),
            path => format!("{}/{part}", path.trim_end_matches('/')),
        }))
    }

    fn directory(&self, directory: &Resource<Descriptor>) -> Answer<String> {
        let Descriptor { path, open } = self.table.get(directory)?;
        match open {
            Open::Directory => Ok(path.clone()),
            Open::File(_) | Open::Draft(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    fn draft(&self, file: &Resource<Descriptor>) -> Answer<Draft> {
        match &self.table.get(file)?.open {
            Open::Directory => Err(ErrorCode::IsDirectory.into()),
            Open::File(_) => Err(ErrorCode::BadDescriptor.into()),
            Open::Draft(draft) => Ok(draft.clone()),
        }
    }

    fn writer(&mut self, file: &Resource<Descriptor>, offset: Option<u64>) -> Answer<Resource<OutputStream>> {
        let draft = self.draft(file)?;
        let stream: DynOutputStream = Box::new(Writer { draft, offset });
        Ok(self.table.push(stream)?)
    }

    async fn opened_for_reading(&mut self, path: &str, how: OpenFlags) -> Answer<Open> {
        let path = self.reading("open", path).await.map_err(|refusal| self.fault(refusal))?;
        let found = self.scope.backend.stat(&path.place()).await;
        let kind = Entry::from(found.map_err(|failure| self.fault(failure.into()))?).kind;
        match (kind, how.contains(OpenFlags::DIRECTORY)) {
            (EntryKind::Directory, _) => Ok(Open::Directory),
            (_, true) => Err(ErrorCode::NotDirectory.into()),
            (EntryKind::File, false) => Ok(Open::File(path)),
            // To open a device or a pipe does something to it.
            (EntryKind::Link | EntryKind::Other, false) => Err(ErrorCode::Unsupported.into()),
        }
    }

    async fn opened_for_writing(&mut self, path: &str, how: OpenFlags) -> Answer<Open> {
        if how.contains(OpenFlags::DIRECTORY) {
            return Err(ErrorCode::Invalid.into());
        }
        self.may_write(path).await.map_err(|refusal| self.fault(refusal))?;
        let (creates, truncates) = (how.contains(OpenFlags::CREATE), how.contains(OpenFlags::TRUNCATE));
        // Whoever may only write does not learn what is there, and need not for a file that is to be new or to lose what it has.
        let found = self.look(path).await?;
        let is_new = Over::Revision(String::new());
        let (content, over, changed) = match (found, creates, truncates) {
            (Found::Other(kind), ..) => {
                let code = if kind == EntryKind::Directory { ErrorCode::IsDirectory } else { ErrorCode::Unsupported };
                return Err(code.into());
            }
            (Found::File, true, _) if how.contains(OpenFlags::EXCLUSIVE) => return Err(ErrorCode::Exist.into()),
            (_, true, _) if how.contains(OpenFlags::EXCLUSIVE) => (Vec::new(), is_new, true),
            (Found::Nothing, false, _) => return Err(ErrorCode::NoEntry.into()),
            (Found::File | Found::Unknown(_), _, true) => (Vec::new(), Over::Anything, true),
            (Found::Nothing, true, true) => (Vec::new(), Over::Anything, true),
            (Found::Nothing, true, false) => (Vec::new(), is_new, true),
            (Found::Unknown(refusal), _, false) => return Err(self.fault(refusal.into())),
            (Found::File, _, false) => {
                let read = self.whole_file(path, MOST_CHANGED).await;
                let content = read.map_err(|failure| self.fault(failure.into()))?;
                let over = Over::Revision(revision(&content));
                (content, over, false)
            }
        };
        let draft = self.drafts.open(path, content, over, changed);
        draft.map(Open::Draft).map_err(|refusal| self.too_much(refusal))
    }

    /// What is at the path of a file that is to be written.
    async fn look(&mut self, path: &str) -> Answer<Found> {
        match super::super::bindings::toolcrib::plugin::files::Host::stat(self, path.to_owned()).await {
            Ok(Entry { kind: EntryKind::File, .. }) => Ok(Found::File),
            Ok(Entry { kind, .. }) => Ok(Found::Other(kind)),
            Err(Refusal::Trap(error)) => Err(Fault::Trap(error)),
            Err(Refusal::Failure(failure)) => match path_fault(&failure) {
                Some(PathFault::Missing) => Ok(Found::Nothing),
                Some(PathFault::IsDirectory) => Ok(Found::Other(EntryKind::Directory)),
                _ if failure.kind == Kind::Denied => Ok(Found::Unknown(failure)),
                _ => Err(self.fault(failure.into())),
            },
        }
    }

    async fn looked_at(&mut self, path: String) -> Answer<DescriptorStat> {
        let found = super::super::bindings::toolcrib::plugin::files::Host::stat(self, path).await;
        let Entry { kind, size, modified_ms, .. } = found.map_err(|refusal| self.fault(refusal))?;
        Ok(stat_of(type_of(kind), size, modified_ms))
    }

    /// Writes what a guest has changed since it was written last.
    async fn written(&mut self, draft: &Draft) -> Result<(), Refusal> {
        let Some((content, over)) = draft.unwritten() else { return Ok(()) };
        let next = match &over {
            Over::Anything | Over::Added => over.clone(),
            Over::Revision(_) => Over::Revision(revision(&content)),
        };
        self.write_over(draft.path.to_string(), content, over).await?;
        draft.written(next);
        Ok(())
    }

    /// The word that WASI has for a failure. The reason is kept.
    fn fault(&self, refusal: Refusal) -> Fault {
        let failure = match refusal {
            Refusal::Failure(failure) => failure,
            Refusal::Trap(error) => return Fault::Trap(error),
        };
        self.reasons.keep(&failure);
        Fault::Code(match path_fault(&failure) {
            Some(PathFault::Missing) => ErrorCode::NoEntry,
            Some(PathFault::NotDirectory) => ErrorCode::NotDirectory,
            Some(PathFault::IsDirectory) => ErrorCode::IsDirectory,
            Some(PathFault::NameTooLong) => ErrorCode::NameTooLong,
            Some(PathFault::Closed) => ErrorCode::Access,
            None => match failure.kind {
                Kind::Denied => ErrorCode::Access,
                Kind::InvalidArguments => ErrorCode::Invalid,
                Kind::Limit => ErrorCode::FileTooLarge,
                Kind::Busy => ErrorCode::Busy,
                Kind::Cancelled => ErrorCode::Interrupted,
                Kind::Unavailable
                | Kind::OutcomeUnknown
                | Kind::TimedOut
                | Kind::ExecutionFailed
                | Kind::Usage
                | Kind::UnknownTool
                | Kind::Internal => ErrorCode::Io,
            },
        })
    }

    fn unsupported(&self, what: &str) -> Fault {
        self.reasons.keep(&Failure::new(Kind::Unavailable, format!("a component cannot {what} here")));
        ErrorCode::Unsupported.into()
    }

    fn too_much(&self, TooMuch: TooMuch) -> Fault {
        self.reasons.keep(&Failure::limit(too_much()));
        ErrorCode::InsufficientSpace.into()
    }
}

enum Found {
    Nothing,
    File,
    Other(EntryKind),
    /// The guest may not know.
    Unknown(Failure),
}

fn type_of(kind: EntryKind) -> DescriptorType {
    match kind {
        EntryKind::File => DescriptorType::RegularFile,
        EntryKind::Directory => DescriptorType::Directory,
        EntryKind::Link => DescriptorType::SymbolicLink,
        EntryKind::Other => DescriptorType::Unknown,
    }
}

fn stat_of(type_: DescriptorType, size: u64, modified_ms: Option<u64>) -> DescriptorStat {
    let modified = modified_ms
        .map(|ms| Datetime { seconds: ms / 1000, nanoseconds: u32::try_from(ms % 1000).unwrap_or(0) * 1_000_000 });
    DescriptorStat {
        type_,
        link_count: 1,
        size,
        data_access_timestamp: None,
        data_modification_timestamp: modified,
        status_change_timestamp: None,
    }
}

/// Tells files apart, and a file from what it was before.
fn hash(path: &str, found: &DescriptorStat) -> MetadataHashValue {
    let modified = found.data_modification_timestamp.map(|time| (time.seconds, time.nanoseconds));
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, Path::new(path), found.size, modified).hash(&mut hasher);
        hasher.finish()
    };
    MetadataHashValue { lower: half(0), upper: half(1) }
}

/// A file as a stream.
struct Reader {
    backend: Arc<dyn Backend>,
    path: ReadPath,
    offset: u64,
    next: Next,
    reasons: Reasons,
    _held: Held,
}

/// What comes next of it.
enum Next {
    Unread,
    Bytes(Bytes),
    End,
    Failed(Failure),
}

#[async_trait::async_trait]
impl Pollable for Reader {
    async fn ready(&mut self) {
        if !matches!(self.next, Next::Unread) {
            return;
        }
        self.next = match self.backend.read(&self.path, self.offset, PIECE).await {
            Ok(read) if read.bytes.is_empty() => Next::End,
            Ok(read) => {
                self.offset += read.bytes.len() as u64;
                Next::Bytes(read.bytes.into())
            }
            Err(failure) => {
                self.reasons.keep(&failure);
                Next::Failed(failure)
            }
        };
    }
}

#[async_trait::async_trait]
impl Input for Reader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        match std::mem::replace(&mut self.next, Next::Unread) {
            // Whoever polls has it read.
            Next::Unread => Ok(Bytes::new()),
            Next::Bytes(mut bytes) => {
                let piece = bytes.split_to(size.min(bytes.len()));
                if !bytes.is_empty() {
                    self.next = Next::Bytes(bytes);
                }
                Ok(piece)
            }
            Next::End => {
                self.next = Next::End;
                Err(StreamError::Closed)
            }
            Next::Failed(failure) => {
                self.next = Next::End;
                Err(StreamError::LastOperationFailed(wasmtime::Error::msg(failure.message)))
            }
        }
    }
}
