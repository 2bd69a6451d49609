//! Watchdog over calls of sled, which can hang forever: it ends the process if a call does not return.
//!
//! A stalled disk looks the same, but then some thread of the process waits in the kernel. That is reported and
//! waited for: ending the process cannot make the disk faster, and would require a rebuild of the index.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::disk::Disk;
use super::options::{EngineEvent, EngineOptions, EventSink};
use super::state::{StateFile, Trust};

/// Interval of checks.
const TICK: Duration = Duration::from_secs(1);
/// Ticks without progress after which a call is overdue.
pub(super) const CALL_TICKS: u64 = 10;
/// Consecutive checks with an overdue call, and no thread waiting for the disk, after which the call counts as hung.
const HUNG_CHECKS: u32 = 3;
/// Bytes of an index that add one tick to the time allowed for opening it.
pub(super) const BYTES_PER_TICK: u64 = 20 << 20;
/// Maximum number of calls watched at once. Further calls are not watched: if sled hangs, the watched ones hang, too.
const SLOTS: usize = 256;
/// Slots per cache line: threads that share one slow each other's reads down.
const SLOTS_PER_CACHE_LINE: usize = 8;

/// Calls in progress.
pub(super) struct WatchedCalls {
    tick: AtomicU64,
    /// For each call the tick by which it must have progressed; 0 is a free slot.
    slots: [AtomicU64; SLOTS],
}

/// Result of a check.
#[derive(Debug, PartialEq, Eq)]
enum CallStatus {
    InTime,
    DiskStalled,
    Hung,
}

/// A call in progress; ends when dropped.
pub(super) struct WatchedCall<'a> {
    calls: &'a WatchedCalls,
    slot: Option<&'a AtomicU64>,
    allowed_ticks: u64,
}

impl WatchedCalls {
    pub(super) fn new() -> WatchedCalls {
        WatchedCalls { tick: AtomicU64::new(1), slots: [const { AtomicU64::new(0) }; SLOTS] }
    }

    /// Starts a call that may take `allowed_ticks` between two signs of progress.
    pub(super) fn begin(&self, allowed_ticks: u64) -> WatchedCall<'_> {
        let deadline = self.tick.load(Ordering::Relaxed) + allowed_ticks;
        let take = |slot: &&AtomicU64| {
            slot.load(Ordering::Relaxed) == 0
                && slot.compare_exchange(0, deadline, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let (before, from) = self.slots.split_at(first_slot());
        WatchedCall { calls: self, slot: from.iter().chain(before).find(take), allowed_ticks }
    }

    /// Returns the slots of calls that are overdue, and their deadlines.
    fn overdue(&self) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let tick = self.tick.load(Ordering::Relaxed);
        let deadlines = self.slots.iter().map(|slot| (slot, slot.load(Ordering::Acquire)));
        deadlines.filter(move |(_, deadline)| (1..tick).contains(deadline))
    }

    /// Checks the calls, once a tick. Counts the checks with an overdue call in succession.
    fn check(&self, overdue_checks: &mut u32, waits_for_disk: impl Fn() -> bool) -> CallStatus {
        let tick = self.tick.fetch_add(1, Ordering::Relaxed) + 1;
        if self.overdue().next().is_none() {
            *overdue_checks = 0;
            return CallStatus::InTime;
        }
        if waits_for_disk() {
            *overdue_checks = 0;
            for (slot, overdue) in self.overdue() {
                // The call may have ended just now.
                let _ended =
                    slot.compare_exchange(overdue, tick + CALL_TICKS, Ordering::AcqRel, Ordering::Relaxed);
            }
            return CallStatus::DiskStalled;
        }
        *overdue_checks += 1;
        if *overdue_checks < HUNG_CHECKS { CallStatus::InTime } else { CallStatus::Hung }
    }
}

impl WatchedCall<'_> {
    pub(super) fn progress(&self) {
        if let Some(slot) = self.slot {
            slot.store(self.calls.tick.load(Ordering::Relaxed) + self.allowed_ticks, Ordering::Relaxed);
        }
    }
}

impl Drop for WatchedCall<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            slot.store(0, Ordering::Release);
        }
    }
}

/// Returns the slot at which this thread starts its search: different ones for the first threads.
fn first_slot() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static FIRST: usize = NEXT.fetch_add(1, Ordering::Relaxed) * SLOTS_PER_CACHE_LINE % SLOTS;
    }
    FIRST.with(|first| *first)
}

/// Handle of the watchdog thread, which runs until this is dropped.
pub(crate) struct Watchdog {
    /// Dropping it ends the thread.
    _stop: mpsc::Sender<()>,
}

impl Watchdog {
    /// Starts to watch `calls`.
    pub(crate) fn start(
        calls: Arc<WatchedCalls>,
        disk: Arc<dyn Disk>,
        options: &EngineOptions,
        report: EventSink,
    ) -> io::Result<Watchdog> {
        let (stop, stopped) = mpsc::channel();
        let fatal = Arc::clone(&options.on_fatal);
        thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            let mut overdue_checks = 0;
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                match calls.check(&mut overdue_checks, waits_for_disk) {
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
        let calls = WatchedCalls::new();
        let mut overdue_checks = 0;
        let mut check = |waits_for_disk: bool| {
            // Other calls come and return all the time.
            drop(calls.begin(1));
            calls.check(&mut overdue_checks, || waits_for_disk)
        };
        let call = calls.begin(CALL_TICKS);
        (0..CALL_TICKS).for_each(|_| assert_eq!(check(false), CallStatus::InTime));
        call.progress();
        (0..=CALL_TICKS).for_each(|_| assert_eq!(check(false), CallStatus::InTime));
        assert_eq!(check(true), CallStatus::DiskStalled, "the call has more time");
        (0..CALL_TICKS + 2).for_each(|_| assert_eq!(check(false), CallStatus::InTime));
        assert_eq!(check(false), CallStatus::Hung, "it was overdue three times in succession");
        drop(call);
        assert_eq!(check(false), CallStatus::InTime);
    }

    #[test]
    fn more_calls_than_are_watched_are_let_through() {
        let calls = WatchedCalls::new();
        let all: Vec<_> = (0..SLOTS + 5).map(|_| calls.begin(0)).collect();
        calls.tick.fetch_add(1, Ordering::Relaxed);
        assert_eq!(calls.overdue().count(), SLOTS);
        drop(all);
        assert_eq!(calls.overdue().count(), 0);
    }
}
