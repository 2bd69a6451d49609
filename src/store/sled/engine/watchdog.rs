//! sled can hang for ever. The watchdog sees that a call does not come back, and ends the process.

use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::disk::Disk;
use super::index::{Change, Index, IndexError, OpenIndex};
use super::options::Options;
use super::state::{Identity, State, Trust};
use super::tx::Direction;

/// One look at the pulse a second.
const TICK: Duration = Duration::from_secs(1);
/// Looks without progress after which a call is taken to hang.
const PATIENCE: u64 = 10;
/// Bytes of an index that may cost its opening one more second.
const BYTES_A_TICK: u64 = 20 << 20;

/// Counts the beginnings and ends of calls, and how many are under way: to close an index is also to flush it.
#[derive(Default)]
struct Pulse {
    beats: AtomicU64,
    under_way: AtomicU64,
    patience: AtomicU64,
}

impl Pulse {
    fn during<T>(&self, patience: u64, call: impl FnOnce() -> T) -> T {
        self.patience.store(patience, Ordering::Relaxed);
        self.under_way.fetch_add(1, Ordering::Relaxed);
        self.beats.fetch_add(1, Ordering::Release);
        let value = call();
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        self.beats.fetch_add(1, Ordering::Release);
        value
    }
}

/// Looks at the pulse until it is dropped.
pub(crate) struct Watchdog {
    /// Dropping it ends the thread.
    _stop: mpsc::Sender<()>,
}

/// Puts a watchdog over all indexes of a store.
pub(crate) fn watch(
    disk: Arc<dyn Disk>,
    indexes: Arc<dyn OpenIndex>,
    options: &Options,
) -> io::Result<(Arc<dyn OpenIndex>, Watchdog)> {
    let pulse = Arc::new(Pulse::default());
    let watched = Arc::new(WatchedIndexes { indexes, pulse: Arc::clone(&pulse) });
    let (stop, stopped) = mpsc::channel();
    let fatal = Arc::clone(&options.fatal);
    thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
        if hangs(&pulse, &stopped, TICK) {
            distrust(disk);
            fatal("the index does not answer");
        }
    })?;
    Ok((watched, Watchdog { _stop: stop }))
}

/// Returns `true` once a call hangs, `false` once nobody needs the watchdog any more.
fn hangs(pulse: &Pulse, stopped: &mpsc::Receiver<()>, tick: Duration) -> bool {
    let (mut last, mut looks) = (0, 0);
    while stopped.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
        let beats = pulse.beats.load(Ordering::Acquire);
        let waits = pulse.under_way.load(Ordering::Relaxed) > 0;
        looks = if beats == last && waits { looks + 1 } else { 0 };
        last = beats;
        if looks > 0 && looks >= pulse.patience.load(Ordering::Relaxed) {
            return true;
        }
    }
    false
}

/// Tries for a second to write down that the index is not to be believed.
pub(super) fn distrust(disk: Arc<dyn Disk>) {
    let (done, written) = mpsc::channel();
    let attempt = thread::Builder::new().spawn(move || {
        if let Ok(Some(mut state)) = State::read(&*disk) {
            state.trust = Trust::None;
            drop(state.write(&*disk));
        }
        let _ = done.send(());
    });
    if attempt.is_ok() {
        let _ = written.recv_timeout(TICK);
    }
}

struct WatchedIndexes {
    indexes: Arc<dyn OpenIndex>,
    pulse: Arc<Pulse>,
}

impl OpenIndex for WatchedIndexes {
    fn open(&self, folder: &str) -> Result<Arc<dyn Index>, IndexError> {
        let patience = PATIENCE + self.indexes.size(folder) / BYTES_A_TICK;
        let index = self.pulse.during(patience, || self.indexes.open(folder))?;
        Ok(Arc::new(WatchedIndex { index, pulse: Arc::clone(&self.pulse) }))
    }

    fn close(&self, folder: &str, index: Arc<dyn Index>) -> Result<(), IndexError> {
        self.pulse.during(PATIENCE, || self.indexes.close(folder, index))
    }

    fn peek(&self, folder: &str, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        self.indexes.peek(folder, key)
    }

    fn sync_data(&self, folder: &str) -> io::Result<()> {
        self.indexes.sync_data(folder)
    }

    fn identity(&self, folder: &str) -> Option<Identity> {
        self.indexes.identity(folder)
    }

    fn size(&self, folder: &str) -> u64 {
        self.indexes.size(folder)
    }

    fn remove(&self, folder: &str) -> io::Result<()> {
        self.indexes.remove(folder)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.indexes.rename(from, to)
    }
}

struct WatchedIndex {
    index: Arc<dyn Index>,
    pulse: Arc<Pulse>,
}

impl Index for WatchedIndex {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        self.index.get(key)
    }

    fn range(
        &self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), IndexError> {
        self.index.range(start, end, direction, visit)
    }

    fn apply(&self, changes: &mut dyn Iterator<Item = Change<'_>>) -> Result<(), IndexError> {
        self.pulse.during(PATIENCE, || self.index.apply(changes))
    }

    fn flush(&self) -> Result<(), IndexError> {
        self.pulse.during(PATIENCE, || self.index.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(1);

    #[test]
    fn a_call_that_does_not_come_back_hangs() {
        let (pulse, (_stop, stopped)) = (&Pulse::default(), mpsc::channel());
        let (release, released) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || pulse.during(3, || released.recv()));
            assert!(hangs(pulse, &stopped, SHORT));
            drop(release);
        });
    }

    #[test]
    fn a_call_within_a_call_hangs_as_well() {
        let (pulse, (stop, stopped)) = (&Pulse::default(), mpsc::channel());
        let (release, released) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let watched = scope.spawn(move || hangs(pulse, &stopped, SHORT));
            scope.spawn(move || pulse.during(3, || pulse.during(3, || released.recv())));
            assert!(watched.join().unwrap());
            drop((release, stop));
        });
    }

    #[test]
    fn calls_that_come_back_do_not() {
        let (pulse, (stop, stopped)) = (&Pulse::default(), mpsc::channel());
        thread::scope(|scope| {
            let watched = scope.spawn(move || hangs(pulse, &stopped, SHORT));
            (0..1000).for_each(|_| pulse.during(1000, thread::yield_now));
            drop(stop);
            assert!(!watched.join().unwrap());
        });
    }
}
