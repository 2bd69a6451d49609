//! What the writer is given to do. It knows no more of an operation than this.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;

use super::index::panic_text;
use super::tx::Tx;
use crate::store::StoreError;

/// Bytes from which on what is written gets a group of its own.
const LARGE: usize = 256 * 1024;

/// How an operation is to be treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// It shares a group with what waits beside it.
    Normal,
    /// It is large and gets a group of its own.
    Large,
    /// It frees room, and may use half of the room that is kept free.
    Reclaim,
}

impl WriteKind {
    /// Of an operation that writes a body of `bytes`.
    pub(crate) fn for_size(bytes: usize) -> WriteKind {
        if bytes > LARGE { WriteKind::Large } else { WriteKind::Normal }
    }
}

/// One unit of work for the writer.
pub trait WriteOperation: Send {
    /// Says how it is to be treated.
    fn kind(&self) -> WriteKind;
    /// Reads, decides and stages changes. Called once.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError>;
    /// Is told, once, that the changes are durable and readable, or why nothing of it has happened. An operation
    /// that is dropped without an answer may have happened or not.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// An operation whose value goes to a waiting task.
pub(crate) struct WriteCall<T, F> {
    kind: WriteKind,
    work: Option<F>,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> WriteCall<T, F> {
    pub(crate) fn new(kind: WriteKind, work: F, reply: oneshot::Sender<Result<T, StoreError>>) -> Box<Self> {
        Box::new(WriteCall { kind, work: Some(work), value: None, reply })
    }
}

impl<T, F> WriteOperation for WriteCall<T, F>
where
    T: Send,
    F: FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send,
{
    fn kind(&self) -> WriteKind {
        self.kind
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let work = self.work.take().expect("an operation runs once");
        self.value = Some(work(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let WriteCall { value, reply, .. } = *self;
        let answer = outcome.map(|()| value.expect("an operation that succeeded has a value"));
        // The caller may have gone; its changes stay.
        drop(reply.send(answer));
    }
}

/// Runs an operation; a panic in it is its own failure and nobody else's.
pub(crate) fn run(operation: &mut dyn WriteOperation, tx: &mut Tx<'_>) -> Result<(), StoreError> {
    catch_unwind(AssertUnwindSafe(|| operation.run(tx)))
        .unwrap_or_else(|payload| Err(StoreError::Panicked(panic_text(&*payload).to_owned())))
}
