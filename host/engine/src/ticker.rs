//! The clock of guest CPU time: a thread that advances the engine's epoch every [`TICK`] while a guest runs.
//!
//! It sleeps while nothing runs, so an idle host uses no CPU. What a tick costs a guest is decided in `meter.rs`.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;
use wasmtime::{Engine, EngineWeak};

/// How often a running guest is looked at. A stop is late by at most a few of these.
pub const TICK: Duration = Duration::from_millis(10);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    closed: bool,
    /// The thread waits to be woken. While it sleeps from tick to tick it looks for itself.
    is_waiting: bool,
}

/// Owns the thread; dropping it ends the thread.
pub struct Ticker(Arc<Shared>);

/// Keeps the ticker ticking while it lives.
pub struct Running(Arc<Shared>);

impl Ticker {
    pub fn start(engine: &Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (engine, seen) = (engine.weak(), shared.clone());
        std::thread::Builder::new().name("toolcrib-ticker".into()).spawn(move || tick(&engine, &seen))?;
        Ok(Self(shared))
    }

    pub fn running(&self) -> Running {
        self.0.update(|state| state.running += 1);
        Running(self.0.clone())
    }
}

impl Shared {
    fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        let is_wanted = state.is_waiting && (state.running > 0 || state.closed);
        if is_wanted {
            state.is_waiting = false;
            drop(state);
            self.woken.notify_one();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.update(|state| state.running -= 1);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.update(|state| state.closed = true);
    }
}

fn tick(engine: &EngineWeak, shared: &Shared) {
    loop {
        {
            let mut state = shared.state.lock();
            while state.running == 0 && !state.closed {
                state.is_waiting = true;
                shared.woken.wait(&mut state);
            }
            if state.closed {
                return;
            }
        }
        std::thread::sleep(TICK);
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => return,
        }
    }
}
