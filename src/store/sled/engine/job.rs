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

/// A background job; each call does one slice.
pub(crate) type BackgroundJob = Box<dyn FnMut(&mut Tx<'_>) -> Result<Progress> + Send>;

/// One slice of a job as a write operation. The job returns to the queue until it is done.
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

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        self.progress = (self.job)(tx)?;
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        match (outcome, self.progress) {
            (Ok(()), Progress::Done) => {}
            // The slice had no effect and can be repeated. A damaged index is rebuilt before the job's next slice.
            (Ok(()), Progress::More)
            | (Err(StoreError::Full | StoreError::Busy | StoreError::Damaged(_)), _) => {
                self.queue.push_job(self.job)
            }
            (Err(error), _) => (self.report)(EngineEvent::JobFailed { why: error.to_string() }),
        }
    }
}
