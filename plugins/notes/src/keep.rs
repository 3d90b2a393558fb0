//! How notes are kept: each is a document, and one more counts them.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::records::{Batch, Item, Query, again, get};
use toolcrib_sdk::{Failure, Kind, Result};

const NOTES: &str = "notes";
/// Texts of pinned notes, where the host looks for what it shows.
const PINNED: &str = "@pinned";
const COUNTS: &str = "counts";
const ALL: &str = "all";
/// Bytes of a note, notes, and bytes of all that are pinned.
const BYTES: usize = 4096;
const MOST: u64 = 64;
const PINNED_BYTES: u64 = 16 << 10;
/// A note, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) content: String,
    pub(crate) pinned: bool,
}

/// How many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Counts {
    notes: u64,
    pinned_bytes: u64,
}

/// What came of saving.
pub(crate) struct Saved {
    pub(crate) overwrote: bool,
    pub(crate) pinned: bool,
}

pub(crate) fn check_key(key: &str) -> Result<()> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-';
    let begins = key.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit());
    if begins && key.len() <= 64 && key.bytes().all(fits) {
        return Ok(());
    }
    Err(Failure::invalid("`key` is not the key of a note")
        .hint("1 to 64 of a-z, 0-9, `_` and `-`, a letter or digit first, such as `deploy-day`"))
}

pub(crate) fn note(key: &str) -> Result<Option<Item<Note>>> {
    if check_key(key).is_err() {
        return Ok(None);
    }
    get(NOTES, key)
}

/// All notes, those that were changed last first.
pub(crate) fn notes() -> Result<Vec<(String, u64, Note)>> {
    let page = Query::new(NOTES).order("@changed", true).limit(MOST as u32).run::<Note>()?;
    Ok(page.items.into_iter().map(|item| (item.key, item.changed_ms, item.body)).collect())
}

pub(crate) fn save(key: &str, content: String, pin: Option<bool>) -> Result<Saved> {
    if content.len() > BYTES {
        let message = format!("a note of {} bytes is too long (limit: {BYTES})", content.len());
        return Err(Failure::new(Kind::LIMIT, message).hint("say it shorter, or in two notes"));
    }
    change(key, |before| {
        let pinned = pin.unwrap_or(before.is_some_and(|note| note.pinned));
        Some(Note { content: content.clone(), pinned })
    })
    .map(|(before, after)| Saved { overwrote: before.is_some(), pinned: after.is_some_and(|note| note.pinned) })
}

/// Whether there was one.
pub(crate) fn delete(key: &str) -> Result<bool> {
    if check_key(key).is_err() {
        return Ok(false);
    }
    change(key, |_| None).map(|(before, _)| before.is_some())
}

/// Whether there is one.
pub(crate) fn pin(key: &str, pinned: bool) -> Result<bool> {
    if check_key(key).is_err() {
        return Ok(false);
    }
    change(key, |before| before.map(|note| Note { pinned, ..note.clone() })).map(|(before, _)| before.is_some())
}

/// Changes one note together with the counts. What it was and what it is.
fn change(key: &str, after: impl Fn(Option<&Note>) -> Option<Note>) -> Result<(Option<Note>, Option<Note>)> {
    again(|| try_change(key, &after))
}

fn try_change(key: &str, after: &impl Fn(Option<&Note>) -> Option<Note>) -> Result<(Option<Note>, Option<Note>)> {
    let (counted, there) = (get::<Counts>(COUNTS, ALL)?, get::<Note>(NOTES, key)?);
    let before = there.as_ref().map(|item| item.body.clone());
    let next = after(before.as_ref());
    if before.is_none() && next.is_none() {
        return Ok((None, None));
    }
    let counts = counted.as_ref().map(|item| item.body).unwrap_or_default();
    let counts = counts.with(before.as_ref(), next.as_ref());
    counts.check(before.is_none())?;
    let batch = Batch::new().expect(COUNTS, ALL, counted.map_or(0, |item| item.revision));
    let batch = batch.expect(NOTES, key, there.map_or(0, |item| item.revision)).put(COUNTS, ALL, &counts);
    let batch = match &next {
        Some(note) => batch.put(NOTES, key, note),
        None => batch.delete(NOTES, key),
    };
    let batch = match next.as_ref().filter(|note| note.pinned) {
        Some(note) => batch.put(PINNED, key, &note.content),
        None if before.as_ref().is_some_and(|note| note.pinned) => batch.delete(PINNED, key),
        None => batch,
    };
    batch.commit()?;
    Ok((before, next))
}

impl Counts {
    fn with(self, before: Option<&Note>, after: Option<&Note>) -> Self {
        let pinned = |note: Option<&Note>| note.filter(|note| note.pinned).map_or(0, |note| note.content.len() as u64);
        Self {
            // An import may have brought notes that are not counted.
            notes: (self.notes + u64::from(after.is_some())).saturating_sub(u64::from(before.is_some())),
            pinned_bytes: (self.pinned_bytes + pinned(after)).saturating_sub(pinned(before)),
        }
    }

    fn check(self, is_new: bool) -> Result<()> {
        if is_new && self.notes > MOST {
            let message = format!("there are {MOST} notes already (limit: {MOST})");
            return Err(Failure::new(Kind::LIMIT, message).hint("delete one that nobody needs, or add to one"));
        }
        if self.pinned_bytes > PINNED_BYTES {
            let message =
                format!("all pinned notes would have {} bytes together (limit: {PINNED_BYTES})", self.pinned_bytes);
            return Err(Failure::new(Kind::LIMIT, message).hint("unpin one, or say it shorter"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_small_letters_digits_and_dashes() {
        for key in ["a", "0-a_b", &"a".repeat(64)] {
            assert!(check_key(key).is_ok(), "{key}");
        }
        for key in ["", "Abc", "-a", "_a", "a b", "ä", &"a".repeat(65)] {
            assert!(check_key(key).is_err(), "{key}");
        }
    }

    #[test]
    fn counts_follow_what_is_kept() {
        let note = |content: &str, pinned| Note { content: content.into(), pinned };
        let one = Counts::default().with(None, Some(&note("abc", true)));
        assert_eq!(one, Counts { notes: 1, pinned_bytes: 3 });
        let unpinned = one.with(Some(&note("abc", true)), Some(&note("abc", false)));
        assert_eq!(unpinned, Counts { notes: 1, pinned_bytes: 0 });
        assert_eq!(unpinned.with(Some(&note("abc", false)), None), Counts::default());
        assert!(Counts { notes: 65, pinned_bytes: 0 }.check(true).is_err());
        assert!(Counts { notes: 65, pinned_bytes: 0 }.check(false).is_ok());
        assert!(Counts { notes: 1, pinned_bytes: PINNED_BYTES + 1 }.check(false).is_err());
    }
}
