//! The thread of the writer: groups while operations wait, and what is due between them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::index::panic_text;
use super::job::Slice;
use super::operation::{Kind, Operation};
use super::options::{Options, Report};
use super::queue::{End, Queue};
use super::writeback::Writeback;
use super::writer::Writer;
use crate::store::StoreError;

/// The index is flushed after this many bytes of the journal, at most once a second.
const FLUSH_AFTER: u64 = 8 << 20;
const SECOND: Duration = Duration::from_secs(1);
/// Rows proved at once.
const PROVED_ROWS: usize = 250;
/// Background work pauses at least this long, and four times as long as it took.
const PAUSE: Duration = Duration::from_millis(2);

/// What the thread works with.
pub(crate) struct Worker {
    pub(crate) writer: Writer,
    pub(crate) queue: Arc<Queue>,
    pub(crate) writeback: Writeback,
    pub(crate) options: Options,
    pub(crate) report: Report,
}

/// When what is due next.
struct Clock {
    written: Instant,
    flushed: Instant,
    looked: Instant,
    background: Instant,
}

impl Worker {
    /// Works until the queue is closed and empty, then stops cleanly. A panic outside of any operation is as fatal as
    /// a failed sync: nobody would be answered any more.
    pub(crate) fn run(self) -> Result<(), StoreError> {
        let (queue, fatal) = (Arc::clone(&self.queue), Arc::clone(&self.options.fatal));
        catch_unwind(AssertUnwindSafe(|| self.work_until_closed())).unwrap_or_else(|payload| {
            queue.close(End::Abandoned);
            let why = format!("the writer panicked: {}", panic_text(&*payload));
            fatal(&why);
            Err(StoreError::Unavailable(why))
        })
    }

    fn work_until_closed(mut self) -> Result<(), StoreError> {
        let mut backlog = VecDeque::new();
        let now = Instant::now();
        let mut clock = Clock { written: now, flushed: now, looked: now, background: now };
        loop {
            let patience = self.patience(&clock);
            let closing = self.queue.take(&mut backlog, patience);
            self.work(&mut backlog, &mut clock);
            if closing.is_some() && backlog.is_empty() || self.writer.is_stopped() {
                break;
            }
            self.attend(backlog.is_empty(), &mut clock);
        }
        self.queue.close(End::Abandoned);
        // After a failure somebody may still wait in the line; dropped, they learn that nothing is known.
        let end = self.queue.take(&mut backlog, None);
        drop((backlog, self.writeback));
        if end == Some(End::Clean) {
            return self.writer.close();
        }
        self.writer.abandon();
        Ok(())
    }

    /// Makes one group of what waits, and of a slice of a job if one is due.
    fn work(&mut self, backlog: &mut VecDeque<Box<dyn Operation>>, clock: &mut Clock) {
        let begun = Instant::now();
        let waiting = backlog.len();
        while !self.writer.is_full() {
            let is_alone = backlog.front().is_some_and(|operation| operation.kind() == Kind::Alone);
            if is_alone && self.writer.has_waiting() {
                break;
            }
            let Some(operation) = backlog.pop_front() else { break };
            self.writer.stage(operation);
            if is_alone {
                break;
            }
        }
        self.queue.give_back(waiting - backlog.len());
        let job = if begun >= clock.background { self.queue.take_job() } else { None };
        let mut spent = job.map(|job| {
            let (begun, rows) = (Instant::now(), self.writer.rows());
            self.writer.stage(Slice::of(job, Arc::clone(&self.queue), Arc::clone(&self.report)));
            (begun.elapsed(), self.writer.rows() - rows)
        });
        if self.writer.has_waiting() {
            let (begun, rows) = (Instant::now(), self.writer.rows().max(1));
            self.writer.commit();
            clock.written = Instant::now();
            self.writeback.touch();
            if let Some((time, own)) = &mut spent {
                *time += begun.elapsed().mul_f64(*own as f64 / rows as f64);
            }
        }
        if let Some((time, _)) = spent {
            clock.spent(time, self.writer.is_short_of_room());
        }
    }

    /// Does what is due between groups.
    fn attend(&mut self, is_idle: bool, clock: &mut Clock) {
        let now = Instant::now();
        if is_idle && self.writer.is_unsealed() && now - clock.written >= self.options.seal_after {
            self.writer.seal();
            clock.written = now;
        }
        if self.writer.unflushed() >= FLUSH_AFTER && now - clock.flushed >= SECOND {
            self.writer.flush();
            clock.flushed = Instant::now();
        }
        if self.writer.is_proving() && now >= clock.background {
            let begun = Instant::now();
            self.writer.prove(PROVED_ROWS);
            clock.spent(begun.elapsed(), false);
        }
        if self.writeback.take_loss() {
            self.writer.replace_index("its file could not be synced for want of room");
        }
        if self.writer.is_short_of_room() && now - clock.looked >= SECOND {
            self.writer.look_at_room();
            clock.looked = now;
        }
        self.writer.prepare_ahead();
    }

    /// How long nothing is due if nobody comes; `None` stands for ever.
    fn patience(&mut self, clock: &Clock) -> Option<Duration> {
        let unsealed = self.writer.is_unsealed().then_some(clock.written + self.options.seal_after);
        let unflushed = (self.writer.unflushed() >= FLUSH_AFTER).then_some(clock.flushed + SECOND);
        let short = self.writer.is_short_of_room().then_some(clock.looked + SECOND);
        let has_background = self.queue.has_jobs() || self.writer.is_proving();
        let background = has_background.then_some(clock.background);
        let next = [unsealed, unflushed, short, background].into_iter().flatten().min();
        next.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

impl Clock {
    /// Keeps background work below a fifth of the time; without room it comes once a second.
    fn spent(&mut self, time: Duration, is_short_of_room: bool) {
        let pause = if is_short_of_room { SECOND } else { PAUSE.max(4 * time) };
        self.background = Instant::now() + pause;
    }
}
