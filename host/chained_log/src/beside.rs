//! What the key beside a trail knows of its seals: how many there were, and the line of the last. A trail that was emptied, or cut back to an
//! earlier seal, is a good chain by itself, and does not agree with it.
//!
//! Whoever can write the trail can mostly write this file too. The number in it can be changed, but not the key: that of an earlier epoch was
//! overwritten, and that of a later one shows with the first key.

use super::chain::Head;
use super::seal::{EpochKey, key_name, parse};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// More than the file has.
const BYTES: u64 = 256;
/// Epochs that are counted through: as many as a century of quarters of an hour.
pub const EPOCHS: u64 = 4_000_000;

/// The key beside a trail, as far as an auditor can look at it.
#[derive(Clone, Copy, Debug, Default)]
pub enum Beside {
    /// Nobody looked, or may.
    #[default]
    Unknown,
    /// There is none.
    Nothing,
    /// What it says.
    Key(Sealing),
}

/// What the file of the key says.
#[derive(Clone, Copy, Debug)]
pub struct Sealing {
    key: EpochKey,
    /// The line of the last seal, or of the last line before sealing began.
    sealed: u64,
}

/// What a check has seen of the seals of a trail.
pub struct Seen {
    /// Its last line.
    pub head: Head,
    /// Whether it was ever sealed: a seal stands in it, or the line that begins sealing.
    pub is_sealed: bool,
    /// The epoch of the last seal.
    pub epoch: Option<u64>,
    /// The first key, where the auditor has it.
    pub first: Option<[u8; 32]>,
}

impl Beside {
    /// Reads the key beside a trail. Read it before the trail: a program may write on meanwhile, and the trail is then ahead of it.
    ///
    /// # Errors
    ///
    /// What the system says of the file, or that it is damaged.
    pub fn of(trail: &Path) -> io::Result<Self> {
        let Some(name) = trail.file_name().and_then(|name| name.to_str()) else { return Ok(Self::Unknown) };
        let file = match File::open(trail.with_file_name(key_name(name))) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Nothing),
            // An auditor need not be the user.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(Self::Unknown),
            opened => opened?,
        };
        let mut text = String::new();
        file.take(BYTES).read_to_string(&mut text)?;
        let broken = || io::Error::new(ErrorKind::InvalidData, "the key that seals the audit trail is damaged");
        let (key, sealed, _) = parse(&text).ok_or_else(broken)?;
        Ok(Self::Key(Sealing { key, sealed }))
    }

    /// Compares it with what stands in the trail.
    pub fn check(&self, seen: &Seen) -> Result<(), String> {
        match self {
            Self::Unknown => Ok(()),
            Self::Nothing if seen.is_sealed => {
                Err("the trail was sealed, and the key that sealed it is no longer beside it".into())
            }
            Self::Nothing => Ok(()),
            Self::Key(sealing) => sealing.check(seen),
        }
    }
}

impl Sealing {
    fn check(&self, Seen { head, epoch, first, .. }: &Seen) -> Result<(), String> {
        let Self { key, sealed } = self;
        if head.n < *sealed {
            let n = head.n;
            return Err(format!(
                "the trail ends with line {n}, and the key beside it has sealed line {sealed}: its end was cut off"
            ));
        }
        // A seal is written before its key is replaced, so the trail may be ahead.
        let seals = epoch.map_or(0, |epoch| epoch + 1);
        if seals < key.epoch {
            return Err(format!(
                "the key beside the trail has made {} seals, and the trail has {seals}: its end was cut off",
                key.epoch
            ));
        }
        if let Some(first) = first
            && !key.comes_from(*first)
        {
            return Err("the key beside the trail does not come from the first key: it was changed".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: [u8; 32] = [7; 32];

    fn seen(n: u64, epoch: Option<u64>, first: Option<[u8; 32]>) -> Seen {
        Seen { head: Head { n, digest: [0; 32] }, is_sealed: true, epoch, first }
    }

    /// After so many seals, the last of which is this line.
    fn after(seals: u64, sealed: u64) -> Beside {
        let key = (0..seals).fold(EpochKey::first(FIRST), |key, _| key.next());
        Beside::Key(Sealing { key, sealed })
    }

    #[test]
    fn a_trail_may_be_ahead_of_its_key_and_never_behind() {
        let key = after(3, 40);
        for (n, epoch) in [(40, Some(2)), (90, Some(2)), (90, Some(3)), (900, Some(20))] {
            assert_eq!(key.check(&seen(n, epoch, Some(FIRST))), Ok(()), "{n} {epoch:?}");
        }
        for (n, epoch) in [(0, None), (39, Some(2)), (50, Some(1)), (50, None)] {
            let told = key.check(&seen(n, epoch, None)).expect_err("it was cut");
            assert!(told.ends_with("its end was cut off"), "{told}");
        }
    }

    #[test]
    fn a_number_that_was_changed_shows_with_the_first_key() {
        let Beside::Key(sealing) = after(3, 20) else { unreachable!("it is a key") };
        let back = Beside::Key(Sealing { key: sealing.key.numbered(2), sealed: 20 });
        let cut = |first| back.check(&seen(20, Some(1), first));
        assert_eq!(cut(None), Ok(()), "without the first key a number is a number");
        assert!(cut(Some(FIRST)).is_err_and(|told| told.contains("it was changed")));
        assert_eq!(after(2, 20).check(&seen(20, Some(1), Some(FIRST))), Ok(()));
    }

    #[test]
    fn a_trail_that_was_sealed_has_its_key_beside_it() {
        assert!(Beside::Nothing.check(&seen(9, Some(0), None)).is_err());
        assert_eq!(Beside::Nothing.check(&Seen { is_sealed: false, ..seen(9, None, None) }), Ok(()));
        assert_eq!(Beside::Unknown.check(&seen(9, Some(0), None)), Ok(()));
    }
}
