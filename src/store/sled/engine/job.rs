//! Background jobs: long work in slices, so that a purge of a million rows delays no other operation.

use std::sync::Arc;

use super::operation::{WriteKind, WriteOperation};
use super::options::{EngineEvent, EventSink};
use super::queue::{Message, WriterQueue};
use super::tx::Tx;
use crate::store::{Result, StoreError};

/// Progress of a background job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    More,
    Done,
}

/// A background job, which returns to the queue until it is done. What it has done shows in the rows alone, so a slice
/// without effect is repeated.
pub(crate) struct Job<F> {
    slice: F,
    progress: Progress,
    queue: Arc<WriterQueue>,
    report: EventSink,
}

impl<F> Job<F> {
    pub(crate) fn new(slice: F, queue: Arc<WriterQueue>, report: EventSink) -> Box<Self> {
        Box::new(Job { slice, progress: Progress::More, queue, report })
    }
}

impl<F: Fn(&mut Tx<'_>) -> Result<Progress> + Send + 'static> WriteOperation for Job<F> {
    fn kind(&self) -> WriteKind {
        WriteKind::Reclaim
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        self.progress = (self.slice)(tx)?;
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        match outcome {
            Ok(()) if self.progress == Progress::Done => return,
            // After a failure the slice is repeated. A damaged index is rebuilt before that.
            Ok(()) | Err(StoreError::Full | StoreError::Busy | StoreError::Damaged(_)) => {}
            Err(error) => return (self.report)(EngineEvent::JobFailed { why: error.to_string() }),
        }
        Arc::clone(&self.queue).send(Message::Job(self));
    }
}
