//! A store of git objects: packs with their indexes, as git reads them (gitformat-pack(5)), with SHA-256.
//!
//! Contents are stored as they are, without compression: a command waits for a checkpoint. An object is known by its digest, and what is read is
//! compared with that: nothing is put anywhere that was not kept.

use base::disk::{OwnDir, told};
use base::text::id::random_id;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

/// The name of an object.
pub(crate) type Id = [u8; ID_BYTES];

pub(super) const ID_BYTES: usize = 32;
/// The largest object that is read.
const MOST_BYTES: u64 = 64 << 20;
/// So much is written at once.
const AT_ONCE: usize = 1 << 20;
/// The head of a pack: `PACK`, the version, how many objects there are.
const HEAD: usize = 12;
/// The head of an index: its mark, the version, and how many objects begin with each byte or a lower one.
const INDEX_MARK: [u8; 8] = [0xff, 0x74, 0x4f, 0x63, 0, 0, 0, 2];
const FIRST_BYTES: usize = 256;
const IDS: usize = INDEX_MARK.len() + FIRST_BYTES * 4;
/// The largest pack, in bytes: offsets in its index have 31 bits.
const MOST_PACKED: u64 = i32::MAX as u64;
/// A block of deflate that is not compressed has at most so many bytes (RFC 1951, 3.2.4).
const BLOCK: usize = u16::MAX as usize;

/// What an object is, with its number in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tree = 2,
    Blob = 3,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Blob => "blob",
        }
    }

    /// The digest that begins with the head of an object of so many bytes.
    fn digest(self, bytes: u64) -> Sha256 {
        Sha256::new_with_prefix(format!("{} {bytes}\0", self.name()))
    }

    /// Returns the name of an object with this content.
    pub(crate) fn id(self, content: &[u8]) -> Id {
        self.digest(content.len() as u64).chain_update(content).finalize().into()
    }
}

/// The objects of one workspace.
pub(crate) struct Objects {
    directory: OwnDir,
    packs: Vec<Pack>,
}

struct Pack {
    /// Without its ending.
    name: String,
    pack: File,
    bytes: u64,
    /// The whole index.
    index: Vec<u8>,
    count: usize,
}

impl Pack {
    fn open(directory: &OwnDir, name: &str) -> io::Result<Self> {
        let index = directory.read(&format!("{name}.idx"))?.ok_or(io::ErrorKind::NotFound)?;
        let pack = directory.file(format!("{name}.pack"))?;
        let bytes = pack.metadata()?.len();
        let count =
            number(&index, IDS - 4).filter(|_| index.starts_with(&INDEX_MARK)).ok_or(io::ErrorKind::InvalidData)?;
        let whole = IDS + count * (ID_BYTES + 8) + 2 * ID_BYTES;
        if index.len() != whole {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { name: name.to_owned(), pack, bytes, index, count })
    }

    fn id(&self, at: usize) -> &[u8] {
        &self.index[IDS + at * ID_BYTES..][..ID_BYTES]
    }

    /// Where an object begins.
    fn find(&self, id: &Id) -> Option<u64> {
        let up_to = |byte: usize| number(&self.index, INDEX_MARK.len() + byte * 4).unwrap_or(0).min(self.count);
        let first = usize::from(id[0]);
        let (mut low, mut high) = (if first == 0 { 0 } else { up_to(first - 1) }, up_to(first));
        while low < high {
            let middle = low.midpoint(high);
            match self.id(middle).cmp(id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let offsets = IDS + self.count * (ID_BYTES + 4);
                    return number(&self.index, offsets + middle * 4).map(|offset| offset as u64);
                }
            }
        }
        None
    }

    /// The kind and size of the object that begins here, and where its content does.
    fn head(&self, at: u64) -> io::Result<(Kind, u64, u64)> {
        let mut head = [0; 10];
        let read = self.pack.read_at(&mut head, at)?;
        let mut bytes = head[..read].iter().zip(1..);
        let (first, mut length) = bytes.next().ok_or(io::ErrorKind::UnexpectedEof)?;
        let kind = match (first >> 4) & 7 {
            2 => Kind::Tree,
            3 => Kind::Blob,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        let (mut size, mut shift, mut goes_on) = (u64::from(first & 15), 4, first & 0x80 != 0);
        while goes_on {
            let (byte, read) = bytes.next().ok_or(io::ErrorKind::UnexpectedEof)?;
            size |= u64::from(byte & 0x7f).checked_shl(shift).ok_or(io::ErrorKind::InvalidData)?;
            (shift, length, goes_on) = (shift + 7, read, byte & 0x80 != 0);
        }
        Ok((kind, size, at + length))
    }

    fn read(&self, at: u64) -> io::Result<(Kind, Vec<u8>)> {
        let (kind, size, at) = self.head(at)?;
        if size > MOST_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        flate2::read::ZlibDecoder::new(Onwards { file: &self.pack, at }).take(size).read_to_end(&mut content)?;
        Ok((kind, content))
    }
}

/// A file from a place on.
struct Onwards<'f> {
    file: &'f File,
    at: u64,
}

impl Read for Onwards<'_> {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(piece, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 4)?;
    usize::try_from(u32::from_be_bytes(bytes.try_into().ok()?)).ok()
}

impl Objects {
    /// Opens the packs of a directory. One that is not whole is passed over.
    pub(crate) fn open(directory: OwnDir) -> io::Result<Self> {
        let names = directory.files()?.into_iter().filter_map(|(name, _)| name.into_string().ok());
        let names: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".idx")?.to_owned())).collect();
        let packs = names.iter().filter_map(|name| Pack::open(&directory, name).ok()).collect();
        Ok(Self { directory, packs })
    }

    /// The packs, by name and size.
    pub(super) fn packs(&self) -> impl Iterator<Item = (&str, u64)> {
        self.packs.iter().map(|pack| (pack.name.as_str(), pack.bytes))
    }

    /// How many bytes all packs have.
    pub(super) fn bytes(&self) -> u64 {
        self.packs.iter().map(|pack| pack.bytes).sum()
    }

    pub(super) fn has(&self, id: &Id) -> bool {
        self.packs.iter().any(|pack| pack.find(id).is_some())
    }

    /// Returns the size of an object.
    pub(super) fn size(&self, id: &Id) -> Option<u64> {
        self.packs.iter().find_map(|pack| Some(pack.head(pack.find(id)?).ok()?.1))
    }

    /// Returns an object, if what is kept under its name still is that.
    ///
    /// # Errors
    ///
    /// `NotFound`, `InvalidData` for other bytes, or what the system says.
    pub(crate) fn read(&self, id: &Id, kind: Kind) -> io::Result<Vec<u8>> {
        let (pack, at) =
            self.packs.iter().find_map(|pack| Some((pack, pack.find(id)?))).ok_or(io::ErrorKind::NotFound)?;
        let (found, content) = pack.read(at)?;
        if found != kind || kind.id(&content) != *id {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(content)
    }

    /// Begins a pack.
    pub(super) fn writer(&self) -> Writer<'_> {
        Writer { objects: self, had: true, seen: Mutex::default(), to: Mutex::default() }
    }

    /// Begins a pack that takes the place of all others.
    pub(super) fn rewriter(&self) -> Writer<'_> {
        Writer { objects: self, had: false, seen: Mutex::default(), to: Mutex::default() }
    }

    /// Removes all packs but this one, and what writers left that were killed.
    pub(super) fn keep_only(&self, kept: Option<&str>) -> io::Result<()> {
        for (name, _) in self.directory.files()? {
            let is_kept = name.to_str().and_then(|name| name.rsplit_once('.')).map(|(name, _)| name) == kept;
            if !is_kept || kept.is_none() {
                self.directory.remove(&name)?;
            }
        }
        Ok(())
    }
}

/// Objects of one thread that are not yet in the pack.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// With the check sum and the offset of each.
    entries: Vec<(Id, u32, usize)>,
}

impl Batch {
    fn add(&mut self, id: Id, kind: Kind, content: &[u8]) {
        let from = self.bytes.len();
        let (mut size, kind) = (content.len() >> 4, (kind as u8) << 4);
        let more = |size: usize| if size > 0 { 0x80 } else { 0 };
        self.bytes.push(kind | (content.len() & 15) as u8 | more(size));
        while size > 0 {
            let low = (size & 0x7f) as u8;
            size >>= 7;
            self.bytes.push(low | more(size));
        }
        stored(content, &mut self.bytes);
        let mut sum = flate2::Crc::new();
        sum.update(&self.bytes[from..]);
        self.entries.push((id, sum.sum(), from));
    }
}

/// Appends a content as a stream of zlib that is not compressed (RFC 1950).
fn stored(content: &[u8], to: &mut Vec<u8>) {
    to.reserve(content.len() + (content.len() / BLOCK + 1) * 5 + 6);
    to.extend([0x78, 0x01]);
    let mut rest = content;
    loop {
        let (block, after) = rest.split_at(rest.len().min(BLOCK));
        let length = block.len() as u16;
        to.push(u8::from(after.is_empty()));
        to.extend(length.to_le_bytes());
        to.extend((!length).to_le_bytes());
        to.extend(block);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    to.extend(simd_adler32::adler32(&content).to_be_bytes());
}

/// A pack that is being written. What it does not come to the end with is removed.
pub(super) struct Writer<'o> {
    objects: &'o Objects,
    /// Whether objects that other packs have are left out.
    had: bool,
    seen: Mutex<HashSet<Id>>,
    to: Mutex<Option<Written>>,
}

struct Written {
    passing: String,
    file: File,
    bytes: u64,
    entries: Vec<(Id, u32, u64)>,
}

impl Writer<'_> {
    /// Adds an object, unless it is there; returns its name.
    pub(super) fn add(&self, batch: &mut Batch, kind: Kind, content: &[u8]) -> io::Result<Id> {
        let id = kind.id(content);
        if !self.seen.lock().insert(id) || self.had && self.objects.has(&id) {
            return Ok(id);
        }
        batch.add(id, kind, content);
        if batch.bytes.len() >= AT_ONCE {
            self.flush(batch)?;
        }
        Ok(id)
    }

    /// Adds an object that another pack has.
    pub(super) fn copy(&self, batch: &mut Batch, kind: Kind, id: &Id) -> io::Result<()> {
        let content = self.objects.read(id, kind)?;
        self.add(batch, kind, &content).map(drop)
    }

    /// Writes what a thread has.
    pub(super) fn flush(&self, batch: &mut Batch) -> io::Result<()> {
        if batch.entries.is_empty() {
            return Ok(());
        }
        let mut to = self.to.lock();
        if to.is_none() {
            let passing = format!("{}.tmp", random_id());
            let mut file = self.objects.directory.create(&passing)?;
            file.write_all(&[0; HEAD])?;
            *to = Some(Written { passing, file, bytes: HEAD as u64, entries: Vec::new() });
        }
        let to = to.as_mut().expect("it was opened");
        if to.bytes + batch.bytes.len() as u64 > MOST_PACKED {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        to.file.write_all(&batch.bytes)?;
        to.entries.extend(batch.entries.drain(..).map(|(id, sum, at)| (id, sum, to.bytes + at as u64)));
        to.bytes += batch.bytes.len() as u64;
        batch.bytes.clear();
        Ok(())
    }

    /// Ends the pack, after all was flushed; returns its name, none where it would hold nothing.
    pub(super) fn finish(&self) -> io::Result<Option<String>> {
        let mut to = self.to.lock();
        let Some(Written { passing, file, entries, .. }) = to.as_mut() else { return Ok(None) };
        let count = u32::try_from(entries.len()).map_err(|_| io::ErrorKind::FileTooLarge)?.to_be_bytes();
        let head = [*b"PACK", [0, 0, 0, 2], count].concat();
        file.write_all_at(&head, 0)?;
        let sum = base::disk::sha256(Onwards { file: &*file, at: 0 })?;
        file.write_all(&sum)?;
        entries.sort_unstable_by_key(|(id, ..)| *id);
        let mut index = Vec::with_capacity(IDS + entries.len() * (ID_BYTES + 8) + 2 * ID_BYTES);
        index.extend(INDEX_MARK);
        for byte in 0..FIRST_BYTES {
            let up_to = entries.partition_point(|(id, ..)| usize::from(id[0]) <= byte);
            index.extend((up_to as u32).to_be_bytes());
        }
        index.extend(entries.iter().flat_map(|(id, ..)| id));
        index.extend(entries.iter().flat_map(|(_, sum, _)| sum.to_be_bytes()));
        index.extend(entries.iter().flat_map(|(.., at)| (*at as u32).to_be_bytes()));
        index.extend(sum);
        index.extend(<[u8; ID_BYTES]>::from(Sha256::digest(&index)));
        let (directory, name) = (&self.objects.directory, format!("pack-{}", hex::encode(sum)));
        // One of that name has the same objects.
        let _ = directory.remove(format!("{name}.idx").as_ref());
        let _ = directory.remove(format!("{name}.pack").as_ref());
        directory.rename(passing, &format!("{name}.pack"))?;
        *to = None;
        // A pack counts from when its index is there.
        let passing = format!("{}.tmp", random_id());
        let written = directory.create(&passing).and_then(|mut file| file.write_all(&index));
        written.and_then(|()| directory.rename(&passing, &format!("{name}.idx"))).inspect_err(|_| {
            let _ = directory.remove(passing.as_ref());
            let _ = directory.remove(format!("{name}.pack").as_ref());
        })?;
        Ok(Some(name))
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if let Some(to) = self.to.lock().take() {
            let _ = self.objects.directory.remove(to.passing.as_ref());
        }
    }
}

/// What the system says of the store.
pub(super) fn shown(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it is no longer kept".into(),
        io::ErrorKind::InvalidData => "what is kept of it has changed, and is not used".into(),
        _ => told(error),
    }
}
