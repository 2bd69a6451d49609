//! Long work in slices: a purge of a million rows must not keep anybody waiting.

use std::sync::Arc;

use super::operation::{Kind, Operation};
use super::options::{Event, Report};
use super::queue::Queue;
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
pub(crate) type Job = Box<dyn FnMut(&mut Tx<'_>) -> Result<Progress, StoreError> + Send>;

/// One slice of a job as an operation. The job goes back into the queue until it is done.
pub(crate) struct Slice {
    job: Job,
    progress: Progress,
    queue: Arc<Queue>,
    report: Report,
}

impl Slice {
    pub(crate) fn of(job: Job, queue: Arc<Queue>, report: Report) -> Box<Slice> {
        Box::new(Slice { job, progress: Progress::More, queue, report })
    }
}

impl Operation for Slice {
    fn kind(&self) -> Kind {
        Kind::Freeing
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
            (Err(error), _) => (self.report)(Event::JobFailed { why: error.to_string() }),
        }
    }
}
