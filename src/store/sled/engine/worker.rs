//! The writer thread: commits groups while operations wait, and runs due tasks between them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::index::panic_text;
use super::operation::WriteKind;
use super::options::EngineOptions;
use super::queue::{Backlog, Request, ShutdownMode, WriterQueue};
use super::writeback::Writeback;
use super::writer::Writer;
use crate::store::{Result, StoreError};

/// Bytes of the journal after which the index is flushed, at most once a second.
const FLUSH_AFTER: u64 = 8 << 20;
const SECOND: Duration = Duration::from_secs(1);
/// Longest wait for an operation; each arrival ends it.
const IDLE: Duration = Duration::from_secs(3600);
/// Longest time that a change of the index is not synced.
const SYNC_DELAY: Duration = Duration::from_millis(100);
/// Longest wait for the first compaction after the start: a server may be restarted every day.
const FIRST_ERASURE: Duration = Duration::from_secs(3600);
/// Rows verified per step.
const VERIFIED_ROWS: usize = 250;
/// Minimum pause of background work; at least four times as long as it took.
const PAUSE: Duration = Duration::from_millis(2);

/// Parts of the writer thread.
pub(crate) struct Worker {
    pub(crate) writer: Writer,
    pub(crate) queue: Arc<WriterQueue>,
    pub(crate) backlog: Backlog,
    pub(crate) writeback: Writeback,
    pub(crate) options: EngineOptions,
    /// A compaction was requested and has not begun.
    pub(crate) must_compact: bool,
}

/// Times of the last runs of tasks, and the next time of background work.
struct Schedule {
    written: Instant,
    flushed: Instant,
    space_checked: Instant,
    background: Instant,
    /// When the file of the index is to be synced, if it has changed.
    sync: Option<Instant>,
    /// When a compaction removes what was erased from the journal.
    erasure: Option<Instant>,
    /// When the last compaction ended.
    compacted: Option<Instant>,
}

impl Worker {
    /// Runs until the queue is closed and empty, then stops cleanly. A panic outside of any operation is as fatal as
    /// a failed sync: no operation would be answered any more.
    pub(crate) fn run(self) -> Result<()> {
        let fatal = Arc::clone(&self.options.on_fatal);
        catch_unwind(AssertUnwindSafe(|| self.run_until_closed())).unwrap_or_else(|payload| {
            let why = format!("the writer panicked: {}", panic_text(&*payload));
            fatal(&why);
            Err(StoreError::Unavailable(why))
        })
    }

    fn run_until_closed(mut self) -> Result<()> {
        let now = Instant::now();
        let erasure = self.options.erase_after.map(|after| now + after.min(FIRST_ERASURE));
        let mut schedule = Schedule {
            written: now,
            flushed: now,
            space_checked: now,
            background: now,
            sync: None,
            erasure,
            compacted: None,
        };
        loop {
            let idle_timeout = self.idle_timeout(&schedule);
            self.backlog.receive(idle_timeout);
            let had_jobs = !self.backlog.jobs.is_empty();
            self.run_group(&mut schedule);
            let is_empty = self.backlog.operations.is_empty();
            if self.backlog.closing.is_some() && is_empty || self.writer.is_stopped() {
                break;
            }
            self.run_due_tasks(is_empty, &mut schedule);
            // A job that has more to do is queued again.
            self.compact(had_jobs, &mut schedule);
        }
        let mode = self.backlog.closing;
        // After a failure operations may still be queued; dropping them reports an unknown outcome.
        drop((self.backlog, self.writeback));
        if mode == Some(ShutdownMode::Clean) {
            return self.writer.close();
        }
        self.writer.abandon();
        Ok(())
    }

    /// Commits one group of queued operations, with a slice of a job if one is due.
    fn run_group(&mut self, schedule: &mut Schedule) {
        let begun = Instant::now();
        let Backlog { operations, jobs, closing, .. } = &mut self.backlog;
        let waiting = operations.len();
        while !self.writer.is_full() {
            let is_alone = operations.front().is_some_and(|operation| operation.kind() == WriteKind::Large);
            if is_alone && !self.writer.waiting.is_empty() {
                break;
            }
            let Some(operation) = operations.pop_front() else { break };
            self.writer.stage(operation);
            if is_alone {
                break;
            }
        }
        self.queue.release(waiting - operations.len());
        let is_job_due = begun >= schedule.background && closing.is_none();
        let job = if is_job_due { jobs.pop_front() } else { None };
        let mut spent = job.map(|job| {
            let (begun, rows) = (Instant::now(), self.writer.group.rows());
            self.writer.stage(job);
            (begun.elapsed(), self.writer.group.rows() - rows)
        });
        if !self.writer.waiting.is_empty() {
            let (begun, rows) = (Instant::now(), self.writer.group.rows().max(1));
            self.writer.commit();
            schedule.written = Instant::now();
            schedule.sync.get_or_insert(schedule.written + SYNC_DELAY);
            if let Some((time, own)) = &mut spent {
                *time += begun.elapsed().mul_f64(*own as f64 / rows as f64);
            }
        }
        if let Some((time, _)) = spent {
            schedule.spent(time, self.writer.is_low_on_space());
        }
    }

    /// Runs the tasks that are due between groups.
    fn run_due_tasks(&mut self, is_idle: bool, schedule: &mut Schedule) {
        self.answer_requests(schedule);
        let now = Instant::now();
        if is_idle && self.writer.is_unsealed() && now - schedule.written >= self.options.seal_after {
            self.writer.seal();
            schedule.written = now;
        }
        if self.writer.unflushed >= FLUSH_AFTER && now - schedule.flushed >= SECOND {
            self.writer.flush();
            schedule.flushed = Instant::now();
        }
        if self.writer.is_verifying() && now >= schedule.background {
            let begun = Instant::now();
            self.writer.verify(VERIFIED_ROWS);
            schedule.spent(begun.elapsed(), false);
        }
        if schedule.sync.take_if(|at| *at <= now).is_some() {
            self.writeback.sync();
        }
        if self.writeback.take_failed_sync() {
            self.writer.replace_index("its file could not be synced for want of room");
        }
        if self.writer.is_low_on_space() && now - schedule.space_checked >= SECOND {
            self.writer.check_free_space();
            schedule.space_checked = now;
        }
        self.writer.journal.preallocate();
    }

    fn answer_requests(&mut self, schedule: &Schedule) {
        // The caller may have stopped waiting.
        for request in self.backlog.requests.drain(..) {
            match request {
                Request::Snapshot(reply) => drop(reply.send(self.writer.snapshot())),
                Request::Compact => self.must_compact = true,
                Request::Verify(reply) => self.writer.begin_verification(reply),
                Request::Usage(reply) => {
                    let mut usage = self.writer.usage();
                    usage.is_compacting |= self.must_compact;
                    let erasure = schedule.erasure.filter(|_| self.writer.has_erased());
                    usage.erasure_due_in = erasure.map(|at| at.saturating_duration_since(Instant::now()));
                    usage.compacted_ago = schedule.compacted.map(|at| at.elapsed());
                    let _unread = reply.send(usage);
                }
            }
        }
    }

    /// Begins a compaction that is due, once no job is left that erases rows, or goes on with one.
    fn compact(&mut self, has_jobs: bool, schedule: &mut Schedule) {
        let now = Instant::now();
        if self.writer.is_compacting() {
            if now >= schedule.background {
                let (begun, before) = (Instant::now(), self.writer.compacted());
                self.writer.compact(VERIFIED_ROWS);
                if self.writer.compacted() > before {
                    schedule.compacted = Some(begun);
                }
                schedule.sync.get_or_insert(begun + SYNC_DELAY);
                schedule.spent(begun.elapsed(), self.writer.is_low_on_space());
            }
            return;
        }
        let has_erased = self.writer.has_erased() && schedule.erasure.is_some_and(|at| at <= now);
        let is_due = self.must_compact || has_erased || self.writer.is_compaction_due();
        if is_due && !has_jobs && self.backlog.jobs.is_empty() && !self.writer.is_verifying() {
            self.writer.begin_compaction();
            self.must_compact = false;
            schedule.erasure = self.options.erase_after.map(|after| now + after);
        }
    }

    /// Returns the time until the next task is due, or a long time if there is none.
    fn idle_timeout(&mut self, schedule: &Schedule) -> Duration {
        let unsealed = self.writer.is_unsealed().then_some(schedule.written + self.options.seal_after);
        let unflushed = (self.writer.unflushed >= FLUSH_AFTER).then_some(schedule.flushed + SECOND);
        let short = self.writer.is_low_on_space().then_some(schedule.space_checked + SECOND);
        let is_reading = self.writer.is_verifying() || self.writer.is_compacting();
        let has_background = !self.backlog.jobs.is_empty() || is_reading;
        let background = has_background.then_some(schedule.background);
        // What a compaction waits for is background work itself.
        let erasure = schedule.erasure.filter(|_| self.writer.has_erased());
        let requested = self.must_compact.then(Instant::now);
        let compaction = requested.or(erasure).filter(|_| !has_background);
        let next = [unsealed, unflushed, short, background, schedule.sync, compaction];
        let next = next.into_iter().flatten().min();
        next.map_or(IDLE, |at| at.saturating_duration_since(Instant::now()))
    }
}

impl Schedule {
    /// Schedules the next background work, at most a fifth of the time; once a second while space is low.
    fn spent(&mut self, time: Duration, is_low_on_space: bool) {
        let pause = if is_low_on_space { SECOND } else { PAUSE.max(4 * time) };
        self.background = Instant::now() + pause;
    }
}
