//! Requests that wait together go to the database together.

use tokio::sync::{mpsc, oneshot};

use crate::store::{Result, StoreError};

/// Requests that may wait.
const QUEUED: usize = 4_096;

/// Most requests that go together.
const BATCH: usize = 256;

type Queued<Q, A> = (Q, oneshot::Sender<Result<A>>);

/// Answers requests by batches: while one is on its way, the next one gathers.
pub(super) struct Batcher<Q, A> {
    queue: mpsc::Sender<Queued<Q, A>>,
}

impl<Q: Send + 'static, A: Send + 'static> Batcher<Q, A> {
    /// Starts a task that answers with `answer`, in the order of the requests, until the batcher is dropped.
    pub(super) fn new<F>(answer: impl Fn(Vec<Q>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<Vec<A>>> + Send,
    {
        let (queue, mut waiting) = mpsc::channel::<Queued<Q, A>>(QUEUED);
        tokio::spawn(async move {
            let mut batch = Vec::new();
            while waiting.recv_many(&mut batch, BATCH).await > 0 {
                let (requests, senders): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
                let answers = answer(requests).await;
                send(answers, senders);
            }
        });
        Self { queue }
    }

    pub(super) async fn ask(&self, request: Q) -> Result<A> {
        let (sender, answer) = oneshot::channel();
        self.queue.try_send((request, sender)).map_err(|_full| StoreError::Busy)?;
        answer.await.unwrap_or_else(|_| Err(StoreError::Panicked("a batch of requests".to_owned())))
    }
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

/// The same failure for another request of the batch.
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
