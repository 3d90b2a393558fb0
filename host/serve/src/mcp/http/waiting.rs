//! Connections that have not shown the token yet. When they are too many, the oldest of the address that has most is closed for a new one: who opens
//! many keeps out nobody but itself. Those that have shown it have room of their own.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The room of all connections.
pub(super) struct Room {
    /// For those that have shown the token.
    admitted: Arc<Semaphore>,
    /// How many others there may be.
    most: usize,
    waiting: Mutex<VecDeque<Waiting>>,
    ids: AtomicU64,
}

struct Waiting {
    id: u64,
    peer: IpAddr,
    end: CancellationToken,
}

/// The place of one connection.
pub(super) struct Place {
    room: Arc<Room>,
    id: u64,
    end: CancellationToken,
    permit: OnceCell<OwnedSemaphorePermit>,
}

impl Room {
    pub(super) fn new(admitted: usize, most: usize) -> Self {
        let admitted = Arc::new(Semaphore::new(admitted));
        Self { admitted, most, waiting: Mutex::default(), ids: AtomicU64::new(0) }
    }

    /// Lets a connection in that has shown nothing yet.
    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr) -> Place {
        let (id, end) = (self.ids.fetch_add(1, Ordering::Relaxed), CancellationToken::new());
        let mut waiting = self.waiting.lock();
        if waiting.len() >= self.most
            && let Some(oldest) = oldest_of_most(&waiting).and_then(|place| waiting.remove(place))
        {
            oldest.end.cancel();
        }
        waiting.push_back(Waiting { id, peer, end: end.clone() });
        Place { room: self.clone(), id, end, permit: OnceCell::new() }
    }
}

/// Where the oldest one stands of the peer that has most.
fn oldest_of_most(waiting: &VecDeque<Waiting>) -> Option<usize> {
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    waiting.iter().for_each(|one| *counts.entry(one.peer).or_default() += 1);
    let most = counts.values().max().copied()?;
    waiting.iter().position(|one| counts[&one.peer] == most)
}

impl Place {
    /// Has shown the token: takes room among those that have, once there is some.
    pub(super) async fn admit(&self) {
        let admitted = self.room.admitted.clone();
        let permit = async { admitted.acquire_owned().await.expect("the room is never closed") };
        self.permit.get_or_init(|| permit).await;
        self.leave();
    }

    /// Returns when it has to make room.
    pub(super) async fn made_room(&self) {
        self.end.cancelled().await;
    }

    fn leave(&self) {
        self.room.waiting.lock().retain(|one| one.id != self.id);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[tokio::test]
    async fn who_opens_many_makes_room_itself() {
        let room = Arc::new(Room::new(1, 4));
        let other = room.enter(peer(1));
        let many: Vec<Place> = (0..6).map(|_| room.enter(peer(2))).collect();
        let ended = |place: &Place| place.end.is_cancelled();
        assert!(!ended(&other));
        assert_eq!(many.iter().map(ended).collect::<Vec<_>>(), [true, true, true, false, false, false]);
        // One more of somebody else goes at the expense of those.
        let third = room.enter(peer(3));
        assert!(ended(&many[3]) && !ended(&third) && !ended(&other));
    }

    #[tokio::test]
    async fn one_that_has_shown_the_token_makes_no_room() {
        let room = Arc::new(Room::new(1, 2));
        let admitted = room.enter(peer(1));
        admitted.admit().await;
        let _many: Vec<Place> = (0..5).map(|_| room.enter(peer(1))).collect();
        assert!(!admitted.end.is_cancelled());
        assert_eq!(room.waiting.lock().len(), 2);
        // Another waits until it goes.
        let next = room.enter(peer(2));
        let mut wait = std::pin::pin!(next.admit());
        assert!(futures_util::poll!(&mut wait).is_pending());
        drop(admitted);
        wait.await;
    }
}
