//! How many sends may be in progress, so that a receiver that does not answer only delays its own deliveries.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Timestamp;
use crate::domain::delivery::health::Health;
use crate::domain::integration::Integration;
use crate::id::WorkspaceId;
use crate::store::{QueueId, Room};

/// Sends in progress, in all.
const MAX_SENDS: usize = 256;

/// Of these, sends of one workspace.
const MAX_WORKSPACE_SENDS: usize = 208;

/// Of all sends, those to receivers that fail or have not answered yet: they may take long, and the others go on.
const MAX_UNPROVEN_SENDS: usize = MAX_SENDS - MAX_SENDS / 10;

/// Deliveries of a file that are carried out together.
const FILE_BATCH: usize = 10_000;

/// The sends in progress, and when receivers take the next.
#[derive(Clone, Default)]
pub(super) struct Dispatcher {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    sends: HashMap<Share, usize>,
    /// By what identifies a receiver that takes one request after the other.
    holds: HashMap<String, Hold>,
}

/// Sends that have a limit together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Share {
    All,
    Unproven,
    Workspace(WorkspaceId),
    Destination(String),
    UnprovenDestination(String),
}

/// A time before which a receiver takes no other request.
#[derive(Clone, Copy)]
struct Hold {
    since: Timestamp,
    until: Timestamp,
}

impl Hold {
    /// Whether it holds at `now`; not if the clock was set back since.
    fn is_active(self, now: Timestamp) -> bool {
        (self.since..self.until).contains(&now)
    }
}

/// Permission for one send, given back when it is dropped.
pub(super) struct DispatchSlot {
    dispatcher: Dispatcher,
    shares: Arc<[Share]>,
    pace_key: String,
}

impl Dispatcher {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all slots that sends of a queue may use now, and returns how many deliveries they carry. A receiver that fails or
    /// has not answered yet gets one send at a time.
    pub(super) fn reserve(
        &self,
        queue: QueueId,
        integration: &Integration,
        health: &Health,
        now: Timestamp,
        slots: &mut Vec<DispatchSlot>,
    ) -> Room {
        let pace_key = integration.pace_key();
        let mut state = self.lock();
        if let Some(hold) = state.holds.get(&pace_key).filter(|hold| hold.is_active(now)) {
            return Room::After(hold.until);
        }
        let (destination, concurrency) = (integration.destination(), integration.pace().concurrency);
        let mut limits =
            vec![(Share::All, MAX_SENDS), (Share::Workspace(queue.workspace), MAX_WORKSPACE_SENDS)];
        if health.failing_since.is_none() && health.last_success_at.is_some() {
            limits.push((Share::Destination(destination), concurrency));
        } else {
            // Beside what the destination takes of others, unless it takes one after the other.
            let share = if concurrency == 1 { Share::Destination } else { Share::UnprovenDestination };
            limits.extend([(share(destination), 1), (Share::Unproven, MAX_UNPROVEN_SENDS)]);
        }
        let free = |(share, limit): &(Share, usize)| {
            limit.saturating_sub(state.sends.get(share).copied().unwrap_or_default())
        };
        let count = limits.iter().map(free).min().unwrap_or_default();
        if count == 0 {
            return Room::Full;
        }
        let shares: Arc<[_]> = limits.into_iter().map(|(share, _)| share).collect();
        shares.iter().for_each(|share| *state.sends.entry(share.clone()).or_default() += count);
        drop(state);
        let slot = || {
            let (dispatcher, shares, pace_key) = (self.clone(), Arc::clone(&shares), pace_key.clone());
            DispatchSlot { dispatcher, shares, pace_key }
        };
        slots.extend(std::iter::repeat_with(slot).take(count));
        Room::For(if integration.is_file() { FILE_BATCH } else { count * integration.pace().batch })
    }
}

impl DispatchSlot {
    /// Lets no other send to the same receiver begin within `millis` milliseconds from `now`.
    pub(super) fn hold(&self, now: Timestamp, millis: i64) {
        if millis > 0 {
            let until = Timestamp::from_millis(now.millis().saturating_add(millis));
            let mut state = self.dispatcher.lock();
            state.holds.retain(|_, hold| hold.is_active(now));
            let hold = state.holds.entry(self.pace_key.clone()).or_insert(Hold { since: now, until });
            hold.until = hold.until.max(until);
        }
    }
}

impl Drop for DispatchSlot {
    fn drop(&mut self) {
        let mut state = self.dispatcher.lock();
        for share in &*self.shares {
            match state.sends.get_mut(share) {
                Some(count @ 2..) => *count -= 1,
                _ => {
                    state.sends.remove(share);
                }
            }
        }
    }
}
