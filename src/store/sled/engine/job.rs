//! Background jobs: long work in slices, so that a purge of a million rows delays no other operation.

use std::sync::Arc;

use super::operation::{WriteKind, WriteOperation};
use super::options::{EngineEvent, EventSink};
use super::queue::WriterQueue;
use super::tx::Tx;
use crate::store::{Result, StoreError};

/// Progress of a background job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There is more to do.
    More,
    /// The job is complete.
    Done,
}

/// A background job, which returns to the queue until it is done. Each slice works on a copy of the job's state, which
/// replaces the state once the slice is durable: a slice without effect is repeated from where it began.
pub(crate) struct Job<S, F> {
    state: S,
    slice: F,
    /// Result of the slice that was run last.
    next: Option<(S, Progress)>,
    queue: Arc<WriterQueue>,
    report: EventSink,
}

impl<S, F> Job<S, F> {
    pub(crate) fn new(state: S, slice: F, queue: Arc<WriterQueue>, report: EventSink) -> Box<Self> {
        Box::new(Job { state, slice, next: None, queue, report })
    }
}

impl<S, F> WriteOperation for Job<S, F>
where
    S: Clone + Send + 'static,
    F: Fn(&mut S, &mut Tx<'_>) -> Result<Progress> + Send + 'static,
{
    fn kind(&self) -> WriteKind {
        WriteKind::Reclaim
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        let mut state = self.state.clone();
        let progress = (self.slice)(&mut state, tx)?;
        self.next = Some((state, progress));
        Ok(())
    }

    fn answer(mut self: Box<Self>, outcome: Result<()>) {
        match (outcome, self.next.take()) {
            (Ok(()), Some((_, Progress::Done))) => return,
            (Ok(()), Some((state, Progress::More))) => self.state = state,
            // The slice is repeated. A damaged index is rebuilt before that.
            (Ok(()), None) | (Err(StoreError::Full | StoreError::Busy | StoreError::Damaged(_)), _) => {}
            (Err(error), _) => return (self.report)(EngineEvent::JobFailed { why: error.to_string() }),
        }
        Arc::clone(&self.queue).push_job(self);
    }
}
