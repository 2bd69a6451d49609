//! Faults in calls of the model: errors, and crashes of the process within a call.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use super::random::Random;

/// Decides the outcome of each call; shared by the disk and the indexes of one machine.
#[derive(Clone)]
pub(crate) struct FaultInjector(Arc<Mutex<State>>);

struct State {
    random: Random,
    calls: u64,
    crashes_at: Option<u64>,
    fails_at: Option<(u64, io::ErrorKind)>,
    is_crashed: bool,
    has_failed: bool,
}

impl FaultInjector {
    pub(crate) fn new(random: Random) -> FaultInjector {
        let state = State {
            random,
            calls: 0,
            crashes_at: None,
            fails_at: None,
            is_crashed: false,
            has_failed: false,
        };
        FaultInjector(Arc::new(Mutex::new(state)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Counts a call, and fails if it is to fail; the model decides whether it took effect.
    pub(crate) fn next_call(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.calls += 1;
        state.is_crashed |= state.crashes_at == Some(state.calls);
        if state.is_crashed {
            return Err(io::Error::other("the process has crashed"));
        }
        match state.fails_at {
            Some((call, kind)) if call == state.calls => {
                state.has_failed = true;
                Err(kind.into())
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn once_in(&self, times: usize) -> bool {
        self.lock().random.once_in(times)
    }

    pub(crate) fn below(&self, end: usize) -> usize {
        self.lock().random.below(end)
    }

    /// Crashes the process in the n-th call from now.
    pub(crate) fn crash_in(&self, calls: u64) {
        let mut state = self.lock();
        state.crashes_at = Some(state.calls + calls);
    }

    /// Makes the n-th call from now fail.
    pub(crate) fn fail_in(&self, calls: u64, kind: io::ErrorKind) {
        let mut state = self.lock();
        state.fails_at = Some((state.calls + calls, kind));
    }

    /// Whether a fault has occurred since the process started.
    pub(crate) fn has_triggered(&self) -> bool {
        let state = self.lock();
        state.is_crashed || state.has_failed
    }

    pub(crate) fn is_crashed(&self) -> bool {
        self.lock().is_crashed
    }

    /// Cancels faults that have not occurred yet.
    pub(crate) fn disarm(&self) {
        let mut state = self.lock();
        (state.crashes_at, state.fails_at) = (None, None);
    }

    /// Starts the next process without faults.
    pub(crate) fn reset(&self) {
        self.disarm();
        let mut state = self.lock();
        (state.is_crashed, state.has_failed) = (false, false);
    }
}
