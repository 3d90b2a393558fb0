//! The file of the trail, which many processes write at once: a chain of lines, each with its number and the digest of the line before.
//!
//! `{"n":41,"prev":"5d0c…","event":"accepted",…}`: number, digest (SHA-256 of the line before, without its newline) and event stand first,
//! so that whoever checks the chain needs no JSON. Numbers never begin anew, also across files: one that is full is renamed to
//! `audit-000001.jsonl` and so on. What is found behind the last line of the chain, such as half a line of a process that was killed, is
//! told by a line `torn`, with its length and digest, and the chain goes on from the last whole line.
//!
//! Whoever writes holds the lock of the file (flock) for that one write. A program that never gives it back holds nobody up.

use super::seal::{Sealer, to_syslog};
use base::disk::{FileId, OwnDir};
use config::trail::{Keeping, SyncAt};
use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// How long the lock is waited for. A line takes microseconds; a hundred processes that all write, milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// How long nobody waits again, after somebody has waited in vain.
const LOCK_PAUSE: Duration = Duration::from_secs(10);
/// The first pause of whoever waits; each is twice the one before, up to a hundred times this.
const LOCK_STEP: Duration = Duration::from_micros(50);
/// How often a file that was rotated away meanwhile is opened again.
const REOPENED: usize = 100;
/// How far back the last line of the chain is looked for: what is longer than that is not of this program.
pub const LOOKED_BACK: u64 = 64 << 20;
/// The first look back; nearly every line is shorter.
const FIRST_LOOK: u64 = 8 << 10;
/// The most that a line has.
pub const LINE_BYTES: usize = 64 << 10;
/// More than what the chain adds to a line: number, digest, newline.
const LINK_BYTES: usize = 128;
/// What is reserved beyond what the calls that run may need.
const RESERVE_BYTES: u64 = 1 << 20;

/// The last line of a chain, or of its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its number; the first is 1.
    pub n: u64,
    /// Its SHA-256.
    pub digest: [u8; 32],
}

impl Head {
    /// The last line of a file of a chain; none where it has none.
    ///
    /// # Errors
    ///
    /// What the system says of the file.
    pub fn of(file: &Path) -> io::Result<Option<Self>> {
        Ok(Tail::of(&File::open(file)?)?.head)
    }
}

/// Before the first line.
pub const NOTHING: Head = Head { n: 0, digest: [0; 32] };

/// A trail that can be written.
pub struct Chain {
    pub directory: OwnDir,
    pub name: String,
    pub keeping: Keeping,
    writer: Mutex<Writer>,
}

/// What this process knows of the file since its last line.
#[derive(Default)]
pub struct Writer {
    file: Option<(Arc<File>, FileId)>,
    /// The last line that this process has seen or written.
    head: Option<Head>,
    /// The length of the file after it: another length means that others have written, none that it has to be looked up.
    length: Option<u64>,
    /// Up to where space is reserved.
    reserved: u64,
    sealer: Option<Sealer>,
    /// Nobody waits for the lock before this.
    no_wait_until: Option<Instant>,
    /// A look has failed to seal what is due: that is tried again after the next line, whose call says why.
    sealing_failed: bool,
}

/// How a file ends.
pub struct Tail {
    /// Its last line that belongs to a chain.
    pub head: Option<Head>,
    /// What stands behind that.
    piece: Option<Piece>,
}

/// Bytes that belong to no chain.
struct Piece {
    bytes: u64,
    sha256: [u8; 32],
    has_end: bool,
}

/// The beginning of a line, as every reader of the chain needs it.
pub struct Link<'l> {
    pub n: u64,
    pub prev: [u8; 32],
    /// What happened.
    pub event: &'l [u8],
}

/// The lock of a file, while this lives.
pub struct Held {
    pub file: Arc<File>,
    /// How long the file was when the lock was taken.
    pub length: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&*self.file, FlockOperation::Unlock);
    }
}

impl<'l> Link<'l> {
    /// Reads the beginning of a line; none of what is no line of a chain.
    pub fn of(line: &'l [u8]) -> Option<Self> {
        let rest = line.strip_prefix(br#"{"n":"#)?;
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        let n = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        let rest = rest[digits..].strip_prefix(br#","prev":""#)?;
        let (prev, rest) = rest.split_at_checked(64)?;
        let event = rest.strip_prefix(br#"","event":""#)?;
        let end = event.iter().position(|byte| *byte == b'"')?;
        let mut digest = [0; 32];
        hex::decode_to_slice(prev, &mut digest).ok()?;
        line.ends_with(b"}").then_some(Self { n, prev: digest, event: &event[..end] })
    }
}

impl Chain {
    /// A trail in a directory of ours, which can be written now, and with `sealed` has a key.
    pub fn open(directory: OwnDir, name: &str, keeping: Keeping, sealed: bool) -> io::Result<Self> {
        directory.append(name)?;
        if sealed && Sealer::open(&directory, name)?.is_none() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "no key seals it yet: make one with `toolcrib audit init`",
            ));
        }
        Ok(Self { directory, name: name.to_owned(), keeping, writer: Mutex::default() })
    }

    /// Adds lines, each a JSON object that begins with its event, in one write. With `reserve`, only where there is room for so many bytes
    /// more.
    pub fn append(&self, lines: &[Vec<u8>], reserve: Option<u64>) -> io::Result<()> {
        self.write(|writer| {
            let held = self.locked(writer)?;
            writer.append(self, held, lines, reserve)
        })
    }

    /// Makes the key of the first epoch, which seals from here on.
    pub fn begin_seals(&self, key: &[u8; 32]) -> io::Result<()> {
        self.write(|writer| {
            let held = self.locked(writer)?;
            let head = Tail::of(&held.file)?.head.unwrap_or(NOTHING);
            Sealer::begin(&self.directory, &self.name, key, head.n)
        })
    }

    /// Seals the trail as it is now, if it has a key.
    pub fn seal(&self) -> io::Result<()> {
        self.write(|writer| {
            let held = self.locked(writer)?;
            writer.seal_end(self, &held, true)
        })
    }

    /// Seals the trail if that is due and nobody else has its lock; else there is time.
    pub fn seal_if_due(&self) -> io::Result<()> {
        self.write(|writer| {
            if writer.sealing_failed {
                return Ok(());
            }
            let Some(held) = self.locked_by(writer, |file, _| lock_now(file))? else { return Ok(()) };
            let done = writer.seal_end(self, &held, false);
            writer.sealing_failed = done.is_err();
            done
        })
    }

    /// Lets the writer work. When that fails, how the file ends is looked up before the next line.
    pub fn write<T>(&self, work: impl FnOnce(&mut Writer) -> io::Result<T>) -> io::Result<T> {
        let mut writer = self.writer.lock();
        let done = work(&mut writer);
        if done.is_err() {
            writer.length = None;
        }
        done
    }

    /// Opens the file, unless it is the one that was opened before, and takes its lock.
    pub fn locked(&self, writer: &mut Writer) -> io::Result<Held> {
        let held = self.locked_by(writer, |file, no_wait_until| lock(file, no_wait_until).map(|()| true))?;
        held.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    /// The same by `take`, which says whether it got the lock.
    fn locked_by(
        &self,
        writer: &mut Writer,
        take: impl Fn(&File, &mut Option<Instant>) -> io::Result<bool>,
    ) -> io::Result<Option<Held>> {
        for _ in 0..REOPENED {
            let (file, id) = match &writer.file {
                Some(opened) => opened.clone(),
                None => writer.begin(self.directory.append(&self.name)?)?,
            };
            if !take(&file, &mut writer.no_wait_until)? {
                return Ok(None);
            }
            // Given back however this ends.
            let mut held = Held { file, length: 0 };
            if let Some(length) = self.directory.still_has(&self.name, id)? {
                held.length = length;
                return Ok(Some(held));
            }
            writer.file = None;
        }
        Err(io::Error::other("the audit trail is renamed again and again"))
    }
}

impl Writer {
    fn begin(&mut self, file: File) -> io::Result<(Arc<File>, FileId)> {
        let id = FileId::of(&file)?;
        let opened = (Arc::new(file), id);
        (self.file, self.length, self.reserved) = (Some(opened.clone()), None, 0);
        Ok(opened)
    }

    /// Another file is the trail now, and goes on from this line.
    pub fn goes_on_from(&mut self, head: Head) {
        (self.head, self.length, self.file) = (Some(head), None, None);
    }

    /// Returns the last line of the chain, and the length of the file. Where there is something behind that line, the line that tells so
    /// goes to `text`.
    pub fn end(&mut self, chain: &Chain, held: &Held, text: &mut Vec<u8>) -> io::Result<(Head, u64)> {
        let length = held.length;
        if let Some(head) = self.head.filter(|_| self.length == Some(length)) {
            return Ok((head, length));
        }
        self.length = None;
        self.sealer = Sealer::open(&chain.directory, &chain.name)?;
        let tail = Tail::of(&held.file)?;
        let found = tail.head.map_or_else(|| chain.last_rotated(), Ok)?;
        // Who cuts the file, or changes its last line, does not make us forget what stood there.
        let head = self.head.filter(|known| known.n >= found.n).unwrap_or(found);
        match tail.piece {
            // It is not the end that the next line goes on from, until its own line is written.
            Some(piece) => Ok((piece.tell(head, text), length)),
            None => {
                (self.head, self.length) = (Some(head), Some(length));
                Ok((head, length))
            }
        }
    }

    fn append(&mut self, chain: &Chain, mut held: Held, lines: &[Vec<u8>], reserve: Option<u64>) -> io::Result<()> {
        let mut text = Vec::new();
        let (mut head, mut length) = self.end(chain, &held, &mut text)?;
        let bytes: usize = lines.iter().map(|line| line.len() + LINK_BYTES).sum();
        let is_full = length > 0 && length + bytes as u64 > chain.keeping.rotate_bytes;
        if is_full && text.is_empty() {
            held = match chain.rotate(held, head)? {
                Ok(last) => {
                    self.goes_on_from(last);
                    // Others may have filled and renamed the next file, too, before its lock is ours.
                    let held = chain.locked(self)?;
                    (head, length) = self.end(chain, &held, &mut text)?;
                    held
                }
                Err(held) => held,
            };
        }
        for line in lines {
            head = link(head, line, &mut text);
        }
        let after = length + text.len() as u64;
        if let Some(more) = reserve {
            self.reserve(&held.file, length, after + more)?;
        }
        write_whole(&held.file, &text)?;
        if chain.keeping.sync == SyncAt::Line {
            held.file.sync_data()?;
        }
        (self.head, self.length, self.sealing_failed) = (Some(head), Some(after), false);
        self.seal(chain, &held, (head, after), false)
    }

    /// Keeps room for the file to grow from its length up to `wanted`, where its file system can.
    fn reserve(&mut self, file: &File, from: u64, wanted: u64) -> io::Result<()> {
        if wanted <= self.reserved {
            return Ok(());
        }
        let until = wanted + RESERVE_BYTES;
        self.reserved = match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, from, until - from) {
            Ok(()) => until,
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => u64::MAX,
            Err(error) => return Err(error.into()),
        };
        Ok(())
    }

    /// Seals the chain as it ends now, where that is due or `at_once`. Behind half a line nothing is sealed: the next line says what it is,
    /// and both are sealed then.
    fn seal_end(&mut self, chain: &Chain, held: &Held, at_once: bool) -> io::Result<()> {
        let mut text = Vec::new();
        let end = self.end(chain, held, &mut text)?;
        if text.is_empty() { self.seal(chain, held, end, at_once) } else { Ok(()) }
    }

    /// Seals the chain up to `head`, where that is due or `at_once`.
    fn seal(&mut self, chain: &Chain, held: &Held, (head, length): (Head, u64), at_once: bool) -> io::Result<()> {
        let Some(sealer) = &mut self.sealer else { return Ok(()) };
        let Some(seal) = sealer.seal(head, at_once)? else { return Ok(()) };
        let anchored = chain.keeping.syslog.then(|| to_syslog(head).is_ok());
        let mut text = Vec::new();
        let sealed = link(head, &seal.line(&now(), anchored), &mut text);
        write_whole(&held.file, &text)?;
        (self.head, self.length) = (Some(sealed), Some(length + text.len() as u64));
        // The seal has to be on the disk before its key is gone, whatever else is forced there.
        held.file.sync_data()?;
        // A crash between these two leaves two seals of one epoch, which `verify` reports; the other order would leave an epoch without a seal.
        sealer.next(&seal, sealed.n)?;
        Ok(())
    }
}

impl Tail {
    /// Reads how a file ends.
    pub fn of(file: &File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let mut look = FIRST_LOOK;
        loop {
            let begin = length.saturating_sub(look);
            let mut bytes = vec![0; usize::try_from(length - begin).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut bytes, begin)?;
            if let Some(tail) = Self::within(&bytes, begin == 0) {
                return Ok(tail);
            }
            if look >= LOOKED_BACK {
                let message = format!(
                    "its last {} MiB were not written by this program: move it away, and the next call begins another",
                    LOOKED_BACK >> 20
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            look = (look * 8).min(LOOKED_BACK);
        }
    }

    /// How these bytes end, if their last line of a chain is whole. `all`: they are the whole file.
    fn within(bytes: &[u8], all: bool) -> Option<Self> {
        let mut end = bytes.len();
        while let Some(newline) = memchr::memrchr(b'\n', &bytes[..end]) {
            let begin = memchr::memrchr(b'\n', &bytes[..newline]).map(|before| before + 1);
            let line = &bytes[begin.or(all.then_some(0))?..newline];
            if let Some(link) = Link::of(line) {
                let head = Head { n: link.n, digest: Sha256::digest(line).into() };
                return Some(Self { head: Some(head), piece: Piece::of(&bytes[newline + 1..]) });
            }
            end = newline;
        }
        all.then(|| Self { head: None, piece: Piece::of(bytes) })
    }
}

impl Piece {
    fn of(bytes: &[u8]) -> Option<Self> {
        let end = bytes.strip_suffix(b"\n");
        let content = end.unwrap_or(bytes);
        let piece =
            Self { bytes: content.len() as u64, sha256: Sha256::digest(content).into(), has_end: end.is_some() };
        (!bytes.is_empty()).then_some(piece)
    }

    /// Adds the line that tells of this piece.
    fn tell(&self, head: Head, text: &mut Vec<u8>) -> Head {
        if !self.has_end {
            text.push(b'\n');
        }
        let entry = json!({ "event": "torn", "time": now(), "bytes": self.bytes, "sha256": hex::encode(self.sha256) });
        link(head, entry.to_string().as_bytes(), text)
    }
}

/// Adds a line to the chain. `entry` is an object that begins with its event.
pub fn link(head: Head, entry: &[u8], text: &mut Vec<u8>) -> Head {
    debug_assert!(entry.starts_with(br#"{"event":""#), "readers look for the event first");
    let (begin, n) = (text.len(), head.n + 1);
    text.extend_from_slice(format!(r#"{{"n":{n},"prev":"{}","#, hex::encode(head.digest)).as_bytes());
    text.extend_from_slice(&entry[1..]);
    let digest = Sha256::digest(&text[begin..]).into();
    text.push(b'\n');
    Head { n, digest }
}

/// Now, as lines have it.
pub fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

/// Takes the lock of a file, if whoever has it gives it back in time.
fn lock(file: &File, no_wait_until: &mut Option<Instant>) -> io::Result<()> {
    let begin = Instant::now();
    let waits = no_wait_until.is_none_or(|until| until <= begin);
    let mut step = LOCK_STEP;
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                *no_wait_until = None;
                return Ok(());
            }
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if waits && begin.elapsed() < LOCK_WAIT => {
                sleep(step);
                step = (step * 2).min(LOCK_STEP * 100);
            }
            Err(Errno::WOULDBLOCK) => {
                if waits {
                    *no_wait_until = Some(Instant::now() + LOCK_PAUSE);
                }
                let message = "another program holds the lock of the audit trail, and does not give it back";
                return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Takes the lock of a file, if nobody has it.
fn lock_now(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes lines at once. To write the rest of a line would be a second write: the next line tells of what is torn.
pub fn write_whole(mut file: &File, lines: &[u8]) -> io::Result<()> {
    loop {
        match file.write(lines) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(written) if written < lines.len() => return Err(io::ErrorKind::StorageFull.into()),
            done => return done.map(drop),
        }
    }
}
