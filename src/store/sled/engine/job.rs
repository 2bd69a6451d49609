//! Long work in slices: a purge of a million rows must not keep anybody waiting.

use std::sync::Arc;

use super::operation::{WriteKind, WriteOperation};
use super::options::{EngineEvent, EventSink};
use super::queue::WriterQueue;
use super::tx::Tx;
use crate::store::StoreError;

/// How far a background job has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Call again.
    More,
    /// Nothing is left to do.
    Done,
}

/// A long job; each call is one slice.
pub(crate) type BackgroundJob = Box<dyn FnMut(&mut Tx<'_>) -> Result<Progress, StoreError> + Send>;

/// One slice of a job as an operation. The job goes back into the queue until it is done.
pub(crate) struct JobSlice {
    job: BackgroundJob,
    progress: Progress,
    queue: Arc<WriterQueue>,
    report: EventSink,
}

impl JobSlice {
    pub(crate) fn of(job: BackgroundJob, queue: Arc<WriterQueue>, report: EventSink) -> Box<JobSlice> {
        Box::new(JobSlice { job, progress: Progress::More, queue, report })
    }
}

impl WriteOperation for JobSlice {
    fn kind(&self) -> WriteKind {
        WriteKind::Reclaim
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        self.progress = (self.job)(tx)?;
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        match (outcome, self.progress) {
            (Ok(()), Progress::Done) => {}
            // The slice has not happened; it is as good later. What is damaged is rebuilt before the job's next turn.
            (Ok(()), Progress::More)
            | (Err(StoreError::Full | StoreError::Busy | StoreError::Damaged(_)), _) => {
                self.queue.push_job(self.job)
            }
            (Err(error), _) => (self.report)(EngineEvent::JobFailed { why: error.to_string() }),
        }
    }
}
