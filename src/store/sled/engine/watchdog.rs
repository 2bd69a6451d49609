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
/// Slots per cache line: threads should not share one.
const SLOTS_PER_CACHE_LINE: usize = 8;

/// Calls in progress.
pub(super) struct WatchedCalls {
    tick: AtomicU64,
    /// For each call the tick by which it must have progressed; 0 is a free slot.
    slots: [AtomicU64; SLOTS],
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

    /// Extends the deadlines of overdue calls.
    fn extend_overdue(&self) {
        let deadline = self.tick.load(Ordering::Relaxed) + CALL_TICKS;
        for (slot, overdue) in self.overdue() {
            // The call may have ended just now.
            let _ended = slot.compare_exchange(overdue, deadline, Ordering::AcqRel, Ordering::Relaxed);
        }
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
            if wait_until_hung(&calls, &stopped, TICK, waits_for_disk, || report(EngineEvent::DiskStalled)) {
                mark_untrusted(disk);
                fatal("the index does not answer");
            }
        })?;
        Ok(Watchdog { _stop: stop })
    }
}

/// Returns `true` once a call hangs, `false` once the watchdog is dropped.
fn wait_until_hung(
    calls: &WatchedCalls,
    stopped: &mpsc::Receiver<()>,
    tick: Duration,
    waits_for_disk: impl Fn() -> bool,
    stalls: impl Fn(),
) -> bool {
    let mut checks = 0;
    while stopped.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
        calls.tick.fetch_add(1, Ordering::Relaxed);
        if calls.overdue().next().is_none() {
            checks = 0;
        } else if waits_for_disk() {
            checks = 0;
            calls.extend_overdue();
            stalls();
        } else {
            checks += 1;
        }
        if checks == HUNG_CHECKS {
            return true;
        }
    }
    false
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
    use std::sync::atomic::AtomicBool;

    use super::*;

    const SHORT: Duration = Duration::from_millis(1);

    fn no_disk() -> bool {
        false
    }

    #[test]
    fn a_call_that_does_not_come_back_hangs_also_while_others_do() {
        let (calls, (_stop, stopped)) = (&WatchedCalls::new(), mpsc::channel());
        let (release, released) = mpsc::channel::<()>();
        let is_over = &AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(move || {
                let _call = calls.begin(3);
                released.recv()
            });
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    drop(calls.begin(1000));
                    thread::yield_now();
                }
            });
            assert!(wait_until_hung(calls, &stopped, SHORT, no_disk, || ()));
            is_over.store(true, Ordering::Relaxed);
            drop(release);
        });
    }

    #[test]
    fn a_call_that_waits_for_the_disk_is_reported_and_waited_for() {
        let (calls, (_stop, stopped)) = (&WatchedCalls::new(), mpsc::channel());
        let (stalls, is_stalled) = (&AtomicUsize::new(0), &AtomicBool::new(true));
        let call = calls.begin(3);
        let stalls_on = || {
            if stalls.fetch_add(1, Ordering::Relaxed) == 4 {
                is_stalled.store(false, Ordering::Relaxed);
            }
        };
        assert!(wait_until_hung(calls, &stopped, SHORT, || is_stalled.load(Ordering::Relaxed), stalls_on));
        assert_eq!(
            stalls.load(Ordering::Relaxed),
            5,
            "it wait_until_hung once the disk does not stall any more"
        );
        drop(call);
    }

    #[test]
    fn calls_that_come_back_or_get_on_do_not_hang() {
        let (calls, (stop, stopped)) = (&WatchedCalls::new(), mpsc::channel());
        thread::scope(|scope| {
            let watched = scope.spawn(move || wait_until_hung(calls, &stopped, SHORT, no_disk, || ()));
            let long = calls.begin(1000);
            for _ in 0..10_000 {
                drop(calls.begin(1000));
                long.progress();
                thread::yield_now();
            }
            drop(stop);
            assert!(!watched.join().unwrap());
        });
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
