//! Claims of deliveries, and when queues are due. Both are kept in memory: a claim ends with the process, and the next one
//! finds what is due in the index.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::id::EventId;
use crate::store::{Owner, QueueId};

#[derive(Default)]
pub(super) struct DeliveryClaims {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Queues with deliveries that wait, each with a time before which none is due.
    due: HashMap<QueueId, Timestamp>,
    by_time: BTreeSet<(Timestamp, QueueId)>,
    claimed: HashMap<QueueId, HashMap<Claim, Owner>>,
}

/// A claimed delivery of a queue.
type Claim = (EventId, u8);

fn claim_of(delivery: &Delivery) -> Claim {
    (delivery.event, delivery.target.recipient)
}

impl State {
    fn set_due(&mut self, queue: QueueId, at: Timestamp) {
        match self.due.get(&queue) {
            Some(earlier) if *earlier <= at => return,
            Some(later) => {
                self.by_time.remove(&(*later, queue));
            }
            None => {}
        }
        self.due.insert(queue, at);
        self.by_time.insert((at, queue));
    }
}

impl DeliveryClaims {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a delivery of the queue is due at `at`, or may be, and wakes whoever waits for that.
    pub(super) fn wake(&self, queue: QueueId, at: Timestamp) {
        self.set_due(queue, at);
        self.changed.notify_one();
    }

    pub(super) fn set_due(&self, queue: QueueId, at: Timestamp) {
        self.lock().set_due(queue, at);
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes the queues that are due at `now`, the one that waits longest first.
    pub(super) fn take_due(&self, now: Timestamp) -> Vec<(Timestamp, QueueId)> {
        let mut state = self.lock();
        let mut taken = Vec::new();
        while let Some((at, queue)) = state.by_time.first().copied().filter(|(at, _)| *at <= now) {
            state.by_time.pop_first();
            state.due.remove(&queue);
            taken.push((at, queue));
        }
        taken
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.lock().by_time.first().map(|(at, _)| *at)
    }

    pub(super) fn is_claimed(&self, queue: QueueId, delivery: &Delivery) -> bool {
        self.lock().claimed.get(&queue).is_some_and(|claims| claims.contains_key(&claim_of(delivery)))
    }

    /// The number of claimed deliveries of a queue.
    pub(super) fn count(&self, queue: QueueId) -> usize {
        self.lock().claimed.get(&queue).map_or(0, HashMap::len)
    }

    pub(super) fn claim(&self, owner: Owner, queue: QueueId, deliveries: &[Delivery]) {
        if !deliveries.is_empty() {
            let claims = deliveries.iter().map(|delivery| (claim_of(delivery), owner));
            self.lock().claimed.entry(queue).or_default().extend(claims);
        }
    }

    pub(super) fn end<'a>(&self, queue: QueueId, deliveries: impl IntoIterator<Item = &'a Delivery>) {
        let mut state = self.lock();
        let Some(claims) = state.claimed.get_mut(&queue) else { return };
        for delivery in deliveries {
            claims.remove(&claim_of(delivery));
        }
        if claims.is_empty() {
            state.claimed.remove(&queue);
        }
    }

    pub(super) fn release(&self, owner: Owner) {
        let mut state = self.lock();
        let State { claimed, .. } = &mut *state;
        let mut released = Vec::new();
        claimed.retain(|queue, claims| {
            let before = claims.len();
            claims.retain(|_, claimant| *claimant != owner);
            if claims.len() < before {
                released.push(*queue);
            }
            !claims.is_empty()
        });
        for queue in released {
            state.set_due(queue, Timestamp::from_millis(0));
        }
        drop(state);
        self.changed.notify_one();
    }
}
