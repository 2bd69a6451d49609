//! Requests that wait together go to the database together.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};

use super::Database;
use crate::store::{Result, StoreError};

/// Requests that may wait.
const QUEUED: usize = 4_096;

/// Most requests that go together.
const BATCH: usize = 256;

/// A batch ends once it has as many bytes.
const BATCH_BYTES: usize = 8 << 20;

type Queued<Q, A> = (Q, oneshot::Sender<Result<A>>);

/// Answers requests by batches: while one is on its way, the next one gathers.
pub(super) struct Batcher<Q, A> {
    queue: mpsc::Sender<Queued<Q, A>>,
}

impl<Q: Send + 'static, A: Send + 'static> Batcher<Q, A> {
    /// Starts a task that answers with `answer`, in the order of the requests, until the batcher is dropped. `size` is about the
    /// bytes of a request.
    pub(super) fn new<F>(
        database: &Database,
        size: fn(&Q) -> usize,
        answer: fn(Database, Vec<Q>) -> F,
    ) -> Self
    where
        F: Future<Output = Result<Vec<A>>> + Send + 'static,
    {
        let database = database.clone();
        let (queue, mut waiting) = mpsc::channel::<Queued<Q, A>>(QUEUED);
        tokio::spawn(async move {
            while let Some(first) = waiting.recv().await {
                let mut bytes = size(&first.0);
                let mut batch = vec![first];
                while batch.len() < BATCH && bytes < BATCH_BYTES {
                    let Ok(next) = waiting.try_recv() else { break };
                    bytes += size(&next.0);
                    batch.push(next);
                }
                let (requests, senders): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
                let answers = AssertUnwindSafe(answer(database.clone(), requests)).catch_unwind().await;
                send(answers.unwrap_or_else(|_panic| Err(panicked())), senders);
            }
        });
        Self { queue }
    }

    pub(super) async fn ask(&self, request: Q) -> Result<A> {
        let (sender, answer) = oneshot::channel();
        self.queue.try_send((request, sender)).map_err(|_full| StoreError::Busy)?;
        answer.await.unwrap_or_else(|_| Err(panicked()))
    }
}

fn panicked() -> StoreError {
    StoreError::Panicked("a batch of requests".to_owned())
}

/// Sends each answer to who waits for it, who may be gone.
fn send<A>(answers: Result<Vec<A>>, senders: Vec<oneshot::Sender<Result<A>>>) {
    match answers {
        Ok(answers) => {
            senders.into_iter().zip(answers).for_each(|(sender, answer)| drop(sender.send(Ok(answer))))
        }
        Err(error) => senders.into_iter().for_each(|sender| drop(sender.send(Err(copy(&error))))),
    }
}

/// Copies an error, which each request of a batch gets.
fn copy(error: &StoreError) -> StoreError {
    match error {
        StoreError::Busy => StoreError::Busy,
        StoreError::Overloaded => StoreError::Overloaded,
        StoreError::Full => StoreError::Full,
        StoreError::Unavailable(why) | StoreError::Interrupted(why) => StoreError::Unavailable(why.clone()),
        StoreError::Undecodable(what) => StoreError::Undecodable(what.clone()),
        other => StoreError::Io(std::io::Error::other(super::transaction::with_causes(other))),
    }
}
