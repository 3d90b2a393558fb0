//! Calls by which a plugin's author tries it: at a time of their choice, with capabilities that are played, or whose answers are recorded.
//!
//! The border between a plugin and its capabilities is the component's own imports, so a new capability is played and recorded without a line here.

mod border;
mod played;
mod recorded;

pub use played::{Line, Played};
pub use recorded::Recorder;

pub(super) use border::Between;

use super::State;
use super::state::{BEGINNING, CLOCK_STEP};
use engine::meter::to_usize;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wasmtime::Store;
use wasmtime::component::{Component, Linker, Val};
use wasmtime_wasi::{Deterministic, HostMonotonicClock, HostWallClock, WasiCtxBuilder};

/// How a call differs by which somebody tries a plugin.
#[derive(Clone, Default)]
pub struct Trial {
    /// What its capabilities do.
    pub capabilities: Capabilities,
    /// The time that the guest sees, whatever it is here. Then its random numbers are the same in each call, too.
    pub at: Option<SystemTime>,
}

/// What capabilities do in a trial.
#[derive(Clone, Default)]
pub enum Capabilities {
    /// They act.
    #[default]
    Act,
    /// Those of our contract answer as they are played: nothing is decided, and nothing is done. What a component reaches by WASI acts.
    Play(Arc<Played>),
    /// They act, and the answers of those of our contract are kept.
    Record(Arc<Recorder>),
}

impl Trial {
    /// A moment, as RFC 3339 writes it; none before 1970, when the clocks of guests begin.
    #[must_use]
    pub fn time(text: &str) -> Option<SystemTime> {
        let time = SystemTime::from(text.parse::<jiff::Timestamp>().ok()?);
        (time >= UNIX_EPOCH).then_some(time)
    }

    /// A linker for this component; none where all of its capabilities act.
    pub(super) async fn linker(
        &self,
        component: &Component,
        real: &Linker<State>,
        store: &mut Store<State>,
    ) -> wasmtime::Result<Option<Linker<State>>> {
        let by = match &self.capabilities {
            Capabilities::Act => return Ok(None),
            Capabilities::Play(played) => border::By::Played(played.clone()),
            Capabilities::Record(recorder) => {
                let between = Between::new(recorder.component(), real, store).await?;
                border::By::Recorded(recorder.clone(), between)
            }
        };
        // A byte of a list takes 40 where a value is known by its type alone, here for the guest's side and for the host's.
        let limit = store.data().scope.limits.host_call_kib << 10;
        store.set_hostcall_fuel(to_usize(limit.saturating_mul(2 * size_of::<Val>() as u64)));
        border::linker(component, &by).map(Some)
    }

    /// Sets clocks and random numbers where they are fixed.
    pub(super) fn fix(&self, wasi: &mut WasiCtxBuilder) {
        let Some(at) = self.at else { return };
        let random = || {
            Deterministic::new(
                (0..RANDOM_DIGESTS).flat_map(|number: u32| Sha256::digest(number.to_le_bytes())).collect(),
            )
        };
        wasi.wall_clock(Fixed(at.duration_since(UNIX_EPOCH).unwrap_or_default()))
            .monotonic_clock(Counted { began: Instant::now(), now: Mutex::new(BEGINNING) })
            .secure_random(random())
            .insecure_random(random())
            .insecure_random_seed(0);
    }
}

/// Random numbers begin anew after so many bytes, by 32.
const RANDOM_DIGESTS: u32 = 1024;

/// A clock that stands still.
struct Fixed(Duration);

impl HostWallClock for Fixed {
    fn resolution(&self) -> Duration {
        CLOCK_STEP
    }

    fn now(&self) -> Duration {
        self.0
    }
}

/// A clock that goes on by a step each time it is read, so that it shows the same in each call; and by each whole second that has passed, since
/// who sleeps until a moment must see it come.
struct Counted {
    began: Instant,
    now: Mutex<Duration>,
}

impl HostMonotonicClock for Counted {
    fn resolution(&self) -> u64 {
        CLOCK_STEP.as_nanos() as u64
    }

    fn now(&self) -> u64 {
        let passed = BEGINNING + Duration::from_secs(self.began.elapsed().as_secs());
        let mut now = self.now.lock();
        *now = (*now + CLOCK_STEP).max(passed);
        now.as_nanos() as u64
    }
}
