//! Room for guests: places in the engine's pool and memory, for all of them together and with a share for each plugin.
//!
//! How much there is in all is settled in `engine.rs` and by `limits.total_memory_mib`. What one call may use is in `meter.rs`.

use crate::CallSize;
use config::Limits;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// All the room there is.
pub struct Room {
    total: Amount,
    used: Mutex<Used>,
}

#[derive(Clone, Copy, Default, PartialEq)]
struct Amount {
    places: u64,
    bytes: u64,
}

#[derive(Default)]
struct Used {
    in_all: Amount,
    by_plugin: HashMap<Arc<str>, Amount>,
}

/// Whose guest it is.
#[derive(Clone)]
pub struct Owner {
    pub sha256: Arc<str>,
    pub is_builtin: bool,
}

/// What one guest has taken; dropping it gives everything back.
pub struct Taken {
    room: Arc<Room>,
    owner: Owner,
    amount: Amount,
}

impl Room {
    pub fn new(limits: &Limits) -> Arc<Self> {
        let total = Amount { places: CallSize::places_in_all(limits), bytes: limits.total_memory_mib << 20 };
        Arc::new(Self { total, used: Mutex::default() })
    }

    /// Takes the places of one guest, or nothing where the plugin has its share already.
    pub fn take(self: &Arc<Self>, owner: &Owner, places: u64) -> Option<Taken> {
        let mut taken = Taken { room: self.clone(), owner: owner.clone(), amount: Amount::default() };
        taken.take(Amount { places, bytes: 0 }).then_some(taken)
    }
}

impl Taken {
    /// Takes memory, unless the plugin has its share already.
    pub fn grow(&mut self, bytes: usize) -> bool {
        self.take(Amount { places: 0, bytes: bytes as u64 })
    }

    fn take(&mut self, more: Amount) -> bool {
        let mut used = self.room.used.lock();
        let mine = used.by_plugin.get(&self.owner.sha256).copied().unwrap_or_default();
        let (total, in_all) = (self.room.total, used.in_all);
        let is_free = self.owner.is_builtin;
        let fits = fits(total.places, in_all.places, mine.places, more.places, is_free)
            && fits(total.bytes, in_all.bytes, mine.bytes, more.bytes, is_free);
        if fits {
            used.in_all.add(more);
            used.by_plugin.entry(self.owner.sha256.clone()).or_default().add(more);
            self.amount.add(more);
        }
        fits
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut used = self.room.used.lock();
        used.in_all.subtract(self.amount);
        if let Some(mine) = used.by_plugin.get_mut(&self.owner.sha256) {
            mine.subtract(self.amount);
            if *mine == Amount::default() {
                used.by_plugin.remove(&self.owner.sha256);
            }
        }
    }
}

impl Amount {
    fn add(&mut self, more: Self) {
        self.places += more.places;
        self.bytes += more.bytes;
    }

    fn subtract(&mut self, less: Self) {
        self.places -= less.places;
        self.bytes -= less.bytes;
    }
}

/// A plugin may have all that others leave as long as it has nothing, and half of that from then on: however many plugins take their
/// share, there is room for one more. Those of this binary are not bound: they do not hoard, and serve everybody.
fn fits(total: u64, in_all: u64, mine: u64, more: u64, is_free: bool) -> bool {
    let left_by_others = total - (in_all - mine);
    let share = if is_free || mine == 0 { left_by_others } else { left_by_others / 2 };
    // Another plugin's share may have become smaller than what it has by now.
    more == 0 || mine + more <= share
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(places: u64) -> Arc<Room> {
        Arc::new(Room { total: Amount { places, bytes: 100 }, used: Mutex::default() })
    }

    fn owner(name: &str, is_builtin: bool) -> Owner {
        Owner { sha256: name.into(), is_builtin }
    }

    /// Takes a place at a time until there is no more.
    fn hoard(room: &Arc<Room>, owner: &Owner) -> Vec<Taken> {
        std::iter::from_fn(|| room.take(owner, 1)).collect()
    }

    #[test]
    fn each_plugin_that_hoards_gets_half_of_what_is_left() {
        let room = room(64);
        let hoards: Vec<_> = ["a", "b", "c", "d"].iter().map(|name| hoard(&room, &owner(name, false))).collect();
        assert_eq!(hoards.iter().map(Vec::len).collect::<Vec<_>>(), [32, 16, 8, 4]);
        assert_eq!(hoard(&room, &owner("built in", true)).len(), 4);
    }

    #[test]
    fn a_plugin_that_has_nothing_gets_all_that_it_needs_for_one_guest() {
        let room = room(64);
        let large = room.take(&owner("large", false), 60).expect("room for one");
        assert!(room.take(&owner("large", false), 1).is_none(), "room for two");
        assert!(room.take(&owner("small", false), 5).is_none(), "more than there is");
        drop(large);
        assert_eq!(hoard(&room, &owner("small", false)).len(), 32);
    }

    #[test]
    fn what_is_given_back_is_there_again() {
        let room = room(64);
        for _ in 0..3 {
            let mut taken = room.take(&owner("a", false), 10).expect("room");
            assert!(taken.grow(50) && !taken.grow(1), "half of the memory, once it has some");
            drop(taken);
        }
        assert!(room.used.lock().by_plugin.is_empty());
        assert!(room.used.lock().in_all == Amount::default());
    }
}
