//! Seals: from time to time a line of the trail says, by a key that is forgotten at once, how the chain stood.
//!
//! The key of an epoch seals once, then the next is made of it and takes its place: `K_(e+1) = HMAC(K_e, "next")`. Whoever takes the
//! machine over finds a key that seals what follows, and none that seals other lines in the place of earlier ones. Who keeps the first key
//! elsewhere (`toolcrib audit init` prints it once) can check them all. (As journald's forward-secure sealing.)

use super::beside::EPOCHS;
use super::chain::Head;
use base::disk::OwnDir;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixDatagram;
use std::time::{SystemTime, UNIX_EPOCH};

/// A seal after so many lines, or after so much time, whichever comes first; looked at with each line, and each minute without one.
pub const LINES: u64 = 1000;
const SECONDS: u64 = 15 * 60;
/// Where the system's log listens.
const SYSLOG: &str = "/dev/log";
/// Facility 10 (security), severity 6 (informational), as RFC 5424 counts them.
const PRIORITY: u8 = 10 * 8 + 6;

/// The key of an epoch.
#[derive(Clone, Copy, Debug)]
pub struct EpochKey {
    pub epoch: u64,
    key: [u8; 32],
}

/// The key in use, in its file beside the trail.
pub struct Sealer {
    file: File,
    key: EpochKey,
    /// The line of the last seal, and when it was made.
    sealed: u64,
    at: u64,
}

/// A seal that is not written yet.
pub struct Seal {
    epoch: u64,
    lines: u64,
    mac: [u8; 32],
}

impl EpochKey {
    pub fn first(key: [u8; 32]) -> Self {
        Self { epoch: 0, key }
    }

    /// The key of the next epoch.
    pub fn next(&self) -> Self {
        Self { epoch: self.epoch + 1, key: self.mac(&[b"next"]) }
    }

    /// Whether it is the one of its epoch that a first key leads to.
    pub fn comes_from(&self, first: [u8; 32]) -> bool {
        if self.epoch >= EPOCHS {
            return false;
        }
        let own = (0..self.epoch).fold(Self::first(first), |key, _| key.next());
        own.key == self.key
    }

    /// The same key with another number.
    #[cfg(test)]
    pub fn numbered(&self, epoch: u64) -> Self {
        Self { epoch, ..*self }
    }

    /// What a seal says of a chain that ends so.
    pub fn seal(&self, head: Head) -> [u8; 32] {
        self.mac(&[&self.epoch.to_be_bytes(), &head.n.to_be_bytes(), &head.digest])
    }

    fn mac(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a MAC key may have any length");
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }
}

impl Sealer {
    /// The key beside a trail; none where nothing is sealed.
    pub fn open(directory: &OwnDir, trail: &str) -> io::Result<Option<Self>> {
        let file = match directory.update(&key_name(trail)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut sealer = Self { file, key: EpochKey::first([0; 32]), sealed: 0, at: 0 };
        sealer.read()?;
        Ok(Some(sealer))
    }

    /// Makes the first key of a trail whose last line has this number.
    pub fn begin(directory: &OwnDir, trail: &str, key: &[u8; 32], n: u64) -> io::Result<()> {
        let file = directory.create(key_name(trail))?;
        let sealer = Self { file, key: EpochKey::first(*key), sealed: n, at: now() };
        sealer.write()
    }

    /// The seal of a chain that ends so, if it is due or wanted `at_once` and anything is there to seal.
    pub fn seal(&mut self, head: Head, at_once: bool) -> io::Result<Option<Seal>> {
        // Another process may have sealed since: the file has the key in use.
        self.read()?;
        let lines = head.n.saturating_sub(self.sealed);
        // Somebody cut the trail: the seals do not go on as they should, and whoever checks them sees it.
        let is_cut = head.n < self.sealed;
        let is_due = lines >= LINES || (lines > 0 && (at_once || now().saturating_sub(self.at) >= SECONDS));
        let seal = || Seal { epoch: self.key.epoch, lines, mac: self.key.seal(head) };
        Ok((is_due || is_cut).then(seal))
    }

    /// Forgets the key of a seal that stands in the trail, as its line `n`.
    pub fn next(&mut self, seal: &Seal, n: u64) -> io::Result<()> {
        debug_assert_eq!(seal.epoch, self.key.epoch, "one seal an epoch");
        self.key = self.key.next();
        (self.sealed, self.at) = (n, now());
        self.write()
    }

    /// Its file is one line of fixed length, written over: a file beside it would leave the old key on the disk.
    fn write(&self) -> io::Result<()> {
        let EpochKey { epoch, key } = &self.key;
        let text = format!("{} {epoch:020} {:020} {:020}\n", hex::encode(key), self.sealed, self.at);
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.sync_data()
    }

    fn read(&mut self) -> io::Result<()> {
        let mut text = [0; 128];
        let length = self.file.read_at(&mut text, 0)?;
        let fields = std::str::from_utf8(&text[..length]).ok().and_then(parse);
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "the key that seals the audit trail is damaged");
        (self.key, self.sealed, self.at) = fields.ok_or_else(broken)?;
        Ok(())
    }
}

impl Seal {
    /// Its line, without what the chain adds.
    pub fn line(&self, time: &str, anchored: Option<bool>) -> Vec<u8> {
        let Self { epoch, lines, mac } = self;
        let mut line =
            json!({ "event": "seal", "time": time, "epoch": epoch, "lines": lines, "mac": hex::encode(mac) });
        if let Some(anchored) = anchored {
            line["syslog"] = anchored.into();
        }
        line.to_string().into_bytes()
    }
}

/// Tells the system's log how the chain stands: what is cut off later can be missed there.
pub fn to_syslog(head: Head) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    let text = format!("<{PRIORITY}>toolcrib: audit line {} sha256 {}", head.n, hex::encode(head.digest));
    socket.send_to(text.as_bytes(), SYSLOG).map(|_| ())
}

pub fn parse(text: &str) -> Option<(EpochKey, u64, u64)> {
    let mut fields = text.trim_end().split(' ');
    let mut key = [0; 32];
    hex::decode_to_slice(fields.next()?, &mut key).ok()?;
    let mut number = || fields.next()?.parse().ok();
    Some((EpochKey { epoch: number()?, key }, number()?, number()?))
}

pub fn key_name(trail: &str) -> String {
    format!("{trail}.key")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
