//! Watchdog over calls of sled, which can hang forever: it ends the process if a call does not return.
//!
//! A stalled disk looks the same, but then some thread of the process waits in the kernel. That is reported and
//! waited for: ending the process cannot make the disk faster, and would require a rebuild of the index.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::disk::Disk;
use super::options::{EngineEvent, EngineOptions, EventSink};
use super::state::{StateFile, Trust};

const TICK: Duration = Duration::from_secs(1);
/// Ticks without progress after which a call is overdue.
pub(super) const CALL_TICKS: u64 = 10;
/// Ticks that a call must be overdue, while no thread waits for the disk, before it counts as hung.
const HUNG_TICKS: u64 = 3;
/// Returns the ticks allowed for opening an index of `bytes` bytes: one more for each 20 MiB.
pub(super) fn open_ticks(bytes: u64) -> u64 {
    CALL_TICKS + bytes / (20 << 20)
}

/// Calls in progress.
#[derive(Default)]
pub(super) struct WatchedCalls {
    tick: AtomicU64,
    /// Number of calls by the tick by which they must have progressed.
    deadlines: Mutex<BTreeMap<u64, usize>>,
}

#[derive(Debug, PartialEq, Eq)]
enum CallStatus {
    InTime,
    DiskStalled,
    Hung,
}

/// A call in progress; ends when dropped.
pub(super) struct WatchedCall<'a> {
    calls: &'a WatchedCalls,
    allowed_ticks: u64,
    deadline: Cell<u64>,
}

impl WatchedCalls {
    /// Starts a call that may take `allowed_ticks` between two signs of progress.
    pub(super) fn begin(&self, allowed_ticks: u64) -> WatchedCall<'_> {
        let deadline = self.tick.load(Ordering::Relaxed) + allowed_ticks;
        *self.lock().entry(deadline).or_default() += 1;
        WatchedCall { calls: self, allowed_ticks, deadline: Cell::new(deadline) }
    }

    fn end(&self, deadline: u64) {
        if let Entry::Occupied(mut count) = self.lock().entry(deadline) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a tick and checks the calls.
    fn check(&self, waits_for_disk: impl Fn() -> bool) -> CallStatus {
        let tick = self.tick.fetch_add(1, Ordering::Relaxed) + 1;
        let first = self.lock().keys().next().copied();
        match tick.saturating_sub(first.unwrap_or(tick)) {
            0 => CallStatus::InTime,
            overdue if waits_for_disk() => {
                // All calls have that much more time.
                self.tick.fetch_sub(overdue + CALL_TICKS, Ordering::Relaxed);
                CallStatus::DiskStalled
            }
            overdue if overdue < HUNG_TICKS => CallStatus::InTime,
            _ => CallStatus::Hung,
        }
    }
}

impl WatchedCall<'_> {
    pub(super) fn progress(&self) {
        let deadline = self.calls.tick.load(Ordering::Relaxed) + self.allowed_ticks;
        let earlier = self.deadline.replace(deadline);
        if earlier != deadline {
            *self.calls.lock().entry(deadline).or_default() += 1;
            self.calls.end(earlier);
        }
    }
}

impl Drop for WatchedCall<'_> {
    fn drop(&mut self) {
        self.calls.end(self.deadline.get());
    }
}

/// Handle of the watchdog thread, which runs until this is dropped.
pub(crate) struct Watchdog {
    /// Dropping it ends the thread.
    _stop: mpsc::Sender<()>,
}

impl Watchdog {
    pub(crate) fn start(
        calls: Arc<WatchedCalls>,
        disk: Arc<dyn Disk>,
        options: &EngineOptions,
        report: EventSink,
    ) -> io::Result<Watchdog> {
        let (stop, stopped) = mpsc::channel();
        let fatal = Arc::clone(&options.on_fatal);
        thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                match calls.check(waits_for_disk) {
                    CallStatus::InTime => {}
                    CallStatus::DiskStalled => report(EngineEvent::DiskStalled),
                    CallStatus::Hung => {
                        mark_untrusted(disk);
                        return fatal("the index does not answer");
                    }
                }
            }
        })?;
        Ok(Watchdog { _stop: stop })
    }
}

/// Whether a thread of this process is in an uninterruptible sleep, as threads that wait for a disk are.
fn waits_for_disk() -> bool {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return false };
    let states = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("stat")).ok());
    // The state follows the name, which is in parentheses and may contain anything.
    states
        .into_iter()
        .any(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('D')))
}

/// Marks the index as untrusted in the file `state`, giving up after a second.
pub(super) fn mark_untrusted(disk: Arc<dyn Disk>) {
    let (done, written) = mpsc::channel();
    let attempt = thread::Builder::new().spawn(move || {
        if let Ok(Some(mut state)) = StateFile::read(&*disk) {
            state.trust = Trust::None;
            drop(state.write(&*disk));
        }
        let _ = done.send(());
    });
    if attempt.is_ok() {
        let _ = written.recv_timeout(TICK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_call_that_neither_returns_nor_progresses_nor_waits_for_the_disk_hangs() {
        let calls = WatchedCalls::default();
        let check = |waits_for_disk: bool| {
            // Other calls come and return all the time.
            drop(calls.begin(1));
            calls.check(|| waits_for_disk)
        };
        let call = calls.begin(CALL_TICKS);
        (0..CALL_TICKS).for_each(|_| assert_eq!(check(false), CallStatus::InTime));
        call.progress();
        (0..=CALL_TICKS).for_each(|_| assert_eq!(check(false), CallStatus::InTime));
        assert_eq!(check(true), CallStatus::DiskStalled, "the call has more time");
        (0..CALL_TICKS + 2).for_each(|_| assert_eq!(check(false), CallStatus::InTime));
        assert_eq!(check(false), CallStatus::Hung, "it is overdue by three ticks");
        drop(call);
        assert_eq!(check(false), CallStatus::InTime);
    }
}
