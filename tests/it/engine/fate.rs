//! When a call of the model fails, and when the process dies in the middle of one.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use super::random::Random;

/// Shared by the disk and the indexes of one world.
#[derive(Clone)]
pub(crate) struct Fate(Arc<Mutex<Thread>>);

struct Thread {
    random: Random,
    calls: u64,
    dies_at: Option<u64>,
    fails_at: Option<(u64, io::ErrorKind)>,
    is_dead: bool,
    has_failed: bool,
}

/// What becomes of a call.
pub(crate) enum Lot {
    Works,
    /// It fails and has done nothing, or something, as the model likes.
    Fails(io::Error),
}

impl Fate {
    pub(crate) fn new(random: Random) -> Fate {
        let thread =
            Thread { random, calls: 0, dies_at: None, fails_at: None, is_dead: false, has_failed: false };
        Fate(Arc::new(Mutex::new(thread)))
    }

    fn lock(&self) -> MutexGuard<'_, Thread> {
        self.0.lock().unwrap()
    }

    /// Draws what becomes of the next call.
    pub(crate) fn draw(&self) -> Lot {
        let mut thread = self.lock();
        thread.calls += 1;
        if thread.dies_at == Some(thread.calls) {
            thread.is_dead = true;
        }
        if thread.is_dead {
            return Lot::Fails(io::Error::other("the process is dead"));
        }
        match thread.fails_at {
            Some((call, kind)) if call == thread.calls => {
                thread.has_failed = true;
                Lot::Fails(io::Error::from(kind))
            }
            Some(_) | None => Lot::Works,
        }
    }

    pub(crate) fn once_in(&self, times: usize) -> bool {
        self.lock().random.once_in(times)
    }

    pub(crate) fn below(&self, end: usize) -> usize {
        self.lock().random.below(end)
    }

    /// Lets the process die in the n-th call from now.
    pub(crate) fn die_in(&self, calls: u64) {
        let mut thread = self.lock();
        thread.dies_at = Some(thread.calls + calls);
    }

    /// Lets the n-th call from now fail.
    pub(crate) fn fail_in(&self, calls: u64, kind: io::ErrorKind) {
        let mut thread = self.lock();
        thread.fails_at = Some((thread.calls + calls, kind));
    }

    /// Whether something was made to go wrong since the last life began.
    pub(crate) fn has_struck(&self) -> bool {
        let thread = self.lock();
        thread.is_dead || thread.has_failed
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.lock().is_dead
    }

    /// Lets the rest of this life go undisturbed.
    pub(crate) fn spare(&self) {
        let mut thread = self.lock();
        (thread.dies_at, thread.fails_at) = (None, None);
    }

    /// Begins the life of the next process.
    pub(crate) fn be_born(&self) {
        self.spare();
        let mut thread = self.lock();
        (thread.is_dead, thread.has_failed) = (false, false);
    }
}
