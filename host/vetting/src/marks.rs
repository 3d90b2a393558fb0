//! What a machine has seen: the newest time, and the newest list of each name. A clock that is set back, and a list that was replaced, meet
//! it here. Without a network this is all that there is to go by; `min_sequence` of the policy is what only the operator moves.

use super::Code;
use super::Refused;
use super::checked::{self, Checked};
use base::disk::OwnDir;
use config::{DAY, Signed};
use contract::manifest::PluginId;
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// Their file, and the key of its MAC, in the state directory.
const MARKS: &str = "marks.toml";
const KEY: &str = "marks.key";
/// The newest time is written anew when it has grown by so many seconds.
const STEP: u64 = 60;

/// The marks of this machine, and a clock that does not go back.
pub struct Marks {
    place: Option<(OwnDir, [u8; 32])>,
    seen: Mutex<Seen>,
    checked: Mutex<Checked>,
    /// The names and sequences of statements by which plugins were ever admitted: a new list, or policy, does not hide what takes those
    /// back.
    pub(super) admitted: Mutex<HashMap<PluginId, (String, u64)>>,
    /// The clock when this program started, and the time since the machine did.
    start: (u64, u64),
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    /// The newest time, in seconds since 1970; and the clock when it was written.
    newest: u64,
    clock: u64,
    /// The day on which somebody was last told of what ends soon, in days since 1970.
    #[serde(default)]
    told: u64,
    /// By name and keys of a list: its newest sequence and digest.
    #[serde(default)]
    lists: BTreeMap<String, SeenList>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeenList {
    sequence: u64,
    sha256: String,
}

/// Their file: what was seen as text, and its MAC.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    mac: String,
    seen: String,
}

impl Marks {
    /// The marks in a state directory, or of this program alone. What cannot be read or was changed is as if there were none; returns then why.
    pub fn open(state: io::Result<OwnDir>) -> (Self, Option<String>) {
        let mut told = None;
        let (place, seen) = match state.and_then(|state| key(&state).map(|key| (state, key))) {
            Err(error) => {
                told = Some(format!("what was seen of lists is not kept: {}", base::disk::told(&error)));
                (None, Seen::default())
            }
            Ok((state, key)) => {
                let seen = read(&state, &key).unwrap_or_else(|reason| {
                    told = Some(reason);
                    Some(Seen::default())
                });
                (Some((state, key)), seen.unwrap_or_default())
            }
        };
        let checked = place.as_ref().map(|(state, key)| Checked::read(state, key)).unwrap_or_default();
        (
            Self {
                place,
                seen: Mutex::new(seen),
                checked: Mutex::new(checked),
                admitted: Mutex::default(),
                start: (wall(), since_boot()),
            },
            told,
        )
    }

    /// Those of this program alone, which keeps nothing.
    pub(super) fn of_this_program() -> Self {
        Self {
            place: None,
            seen: Mutex::default(),
            checked: Mutex::default(),
            admitted: Mutex::default(),
            start: (wall(), since_boot()),
        }
    }

    /// Whether a signature holds, which is checked once.
    pub(super) fn know(&self, name: checked::Name, check: impl FnOnce() -> bool) -> bool {
        self.checked.lock().know(name, check)
    }

    /// Has signatures that were checked since the last time known at the next start.
    pub fn keep_checked(&self) {
        if let Some((state, key)) = &self.place {
            self.checked.lock().keep(state, key);
        }
    }

    /// Seconds since 1970: never before what was seen, and as far on as the machine has run, whatever becomes of its clock.
    pub fn now(&self) -> u64 {
        let (wall_then, boot_then) = self.start;
        let ran = wall_then + since_boot().saturating_sub(boot_then);
        wall().max(ran).max(self.seen.lock().newest)
    }

    /// Raises the newest time: by as much as the clock went on, and at most a day at once, so that one wrong year does not stay.
    pub fn raise(&self) {
        let wall = wall();
        let mut seen = self.seen.lock();
        // The first time there is nothing to go on from: what was signed says how late it is at least.
        if wall.abs_diff(seen.clock) < STEP || seen.newest == 0 {
            return;
        }
        let went_on = wall.saturating_sub(seen.clock).min(DAY);
        seen.newest = (seen.newest + went_on).min(wall.max(seen.newest));
        seen.clock = wall;
        self.write(&mut seen);
    }

    /// Whether nobody has asked this on this day before.
    pub fn is_first_of_day(&self) -> bool {
        let today = self.now() / DAY;
        let mut seen = self.seen.lock();
        if let Some((state, key)) = &self.place
            && let Ok(Some(other)) = read(state, key)
        {
            seen.told = other.told;
        }
        let is_first = seen.told != today;
        if is_first {
            seen.told = today;
            self.write(&mut seen);
        }
        is_first
    }

    /// Takes a list that was seen, or says why it is older than one before.
    pub(super) fn take(&self, signed: &Signed, sequence: u64, issued: u64, bytes: &[u8]) -> Result<(), Refused> {
        let (name, sha256) = (name(signed), hex::encode(Sha256::digest(bytes)));
        let mut seen = self.seen.lock();
        // Other programs may have seen more since.
        self.merge(&mut seen);
        match seen.lists.get(&name) {
            Some(known) if known.sequence > sequence => Err(Refused::new(
                Code::RolledBack,
                format!("the list is number {sequence}, and number {} was in force here", known.sequence),
            )),
            Some(known) if known.sequence == sequence && known.sha256 != sha256 => Err(Refused::new(
                Code::Forked,
                format!("two lists are number {sequence}: {} and {sha256}", known.sha256),
            )),
            known => {
                let is_new = known.is_none_or(|known| known.sequence < sequence);
                let (wall, is_late) = (wall(), seen.newest < issued);
                if is_late {
                    // Signed, and so no clock of this machine alone: it is at least so late, and the clock counts from here on.
                    (seen.newest, seen.clock) = (issued.min(wall.max(seen.newest)), wall);
                }
                if is_new || is_late {
                    seen.lists.insert(name, SeenList { sequence, sha256 });
                    self.write(&mut seen);
                }
                Ok(())
            }
        }
    }

    /// Takes over what other programs have seen since.
    fn merge(&self, seen: &mut Seen) {
        let Some((state, key)) = &self.place else { return };
        let Ok(Some(other)) = read(state, key) else { return };
        if other.newest > seen.newest {
            (seen.newest, seen.clock) = (other.newest, other.clock);
        }
        for (name, list) in other.lists {
            if seen.lists.get(&name).is_none_or(|known| known.sequence < list.sequence) {
                seen.lists.insert(name, list);
            }
        }
    }

    /// A mark that cannot be written is made again by the next program; nothing is refused for it.
    fn write(&self, seen: &mut Seen) {
        self.merge(seen);
        let Some((state, key)) = &self.place else { return };
        let seen = toml::to_string(seen).expect("marks are TOML");
        let sealed = Sealed { mac: hex::encode(mac(key, &[seen.as_bytes()]).finalize().into_bytes()), seen };
        let _ = state.replace(MARKS, toml::to_string(&sealed).expect("text is TOML").as_bytes());
    }
}

/// A list is known by its name for the keys that sign it: what a stolen key has signed is forgotten with the key.
fn name(signed: &Signed) -> String {
    let mut keys: Vec<_> = signed.keys.values().filter(|key| key.roles.contains(&super::Role::List)).collect();
    keys.sort_by_key(|key| key.bytes);
    let digest = keys.into_iter().fold(Sha256::new(), |digest, key| digest.chain_update(key.bytes));
    format!("{} {}", signed.name, hex::encode(&digest.finalize()[..8]))
}

fn read(state: &OwnDir, key: &[u8; 32]) -> Result<Option<Seen>, String> {
    let bytes = state.read(MARKS).map_err(|error| base::disk::told(&error))?;
    let Some(bytes) = bytes else { return Ok(None) };
    let changed = || format!("{} was changed by something else: what it says of lists that were seen is lost", MARKS);
    let sealed: Sealed = toml::from_slice(&bytes).map_err(|_| changed())?;
    let digest = hex::decode(&sealed.mac).map_err(|_| changed())?;
    mac(key, &[sealed.seen.as_bytes()]).verify_slice(&digest).map_err(|_| changed())?;
    toml::from_str(&sealed.seen).map(Some).map_err(|_| changed())
}

pub(super) fn mac(key: &[u8; 32], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("a MAC key may have any length");
    parts.iter().fold(mac, Mac::chain_update)
}

fn key(state: &OwnDir) -> io::Result<[u8; 32]> {
    if let Some(key) = state.read(KEY)?
        && let Ok(key) = key.try_into()
    {
        return Ok(key);
    }
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    state.make(KEY, &key)?;
    state.read(KEY)?.and_then(|key| key.try_into().ok()).ok_or_else(|| io::Error::other("its key cannot be read"))
}

fn wall() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Goes on while the machine sleeps, and nobody sets it.
fn since_boot() -> u64 {
    u64::try_from(clock_gettime(ClockId::Boottime).tv_sec).unwrap_or(0)
}
