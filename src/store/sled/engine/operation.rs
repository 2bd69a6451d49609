//! Write operations: the interface between the writer and its callers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::index::panic_text;
use super::tx::Tx;
use crate::store::{Result, StoreError};

/// Size of a body in bytes above which an operation gets a group of its own.
const LARGE: usize = 256 * 1024;

/// Scheduling class of a write operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// Shares a group with other operations.
    Normal,
    /// Large: gets a group of its own.
    Large,
    /// Frees space, so it may use half of the space that is kept free.
    Reclaim,
}

impl WriteKind {
    /// Returns the kind of an operation that writes a body of `bytes`.
    pub(crate) fn for_size(bytes: usize) -> WriteKind {
        if bytes > LARGE { WriteKind::Large } else { WriteKind::Normal }
    }
}

/// A unit of work for the writer.
pub trait WriteOperation: Send {
    fn kind(&self) -> WriteKind;
    /// Reads, decides and stages changes. Called once for each time it is queued.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<()>;
    /// Receives the outcome, once: the changes are durable and visible, or have no effect. An operation that is
    /// dropped without an outcome may or may not have been applied.
    fn answer(self: Box<Self>, outcome: Result<()>);
}

/// A write operation with a result, which `reply` receives.
pub(crate) struct WriteCall<T, F, R> {
    kind: WriteKind,
    work: Option<F>,
    value: Option<T>,
    reply: R,
}

impl<T, F, R> WriteCall<T, F, R> {
    pub(crate) fn new(kind: WriteKind, work: F, reply: R) -> Box<Self> {
        Box::new(WriteCall { kind, work: Some(work), value: None, reply })
    }
}

impl<T, F, R> WriteOperation for WriteCall<T, F, R>
where
    T: Send,
    F: FnOnce(&mut Tx<'_>) -> Result<T> + Send,
    R: FnOnce(Result<T>) + Send,
{
    fn kind(&self) -> WriteKind {
        self.kind
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        let work = self.work.take().expect("an operation runs once");
        self.value = Some(work(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let WriteCall { value, reply, .. } = *self;
        reply(outcome.map(|()| value.expect("an operation that succeeded has a value")));
    }
}

/// Runs an operation; a panic fails this operation only.
pub(crate) fn run(operation: &mut dyn WriteOperation, tx: &mut Tx<'_>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(|| operation.run(tx)))
        .unwrap_or_else(|payload| Err(StoreError::Panicked(panic_text(&*payload).to_owned())))
}
