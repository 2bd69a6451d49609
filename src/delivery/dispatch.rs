//! How many sends may be in progress, so that a receiver that does not answer only delays its own deliveries.

use std::collections::HashMap;
use std::hash::Hash;
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
    sends: usize,
    unproven: usize,
    workspaces: HashMap<WorkspaceId, usize>,
    destinations: HashMap<String, usize>,
    /// By what identifies a receiver that takes one request after the other.
    holds: HashMap<String, Hold>,
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
    workspace: WorkspaceId,
    destination: String,
    pace_key: String,
    is_proven: bool,
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
        let (destination, workspace) = (integration.destination(), queue.workspace);
        let is_proven = health.failing_since.is_none() && health.last_success_at.is_some();
        let pace_key = integration.pace_key();
        let mut state = self.lock();
        if let Some(hold) = state.holds.get(&pace_key).filter(|hold| hold.is_active(now)) {
            return Room::After(hold.until);
        }
        let limit = if is_proven { integration.pace().concurrency } else { 1 };
        let free = [
            limit.saturating_sub(state.destinations.get(&destination).copied().unwrap_or(0)),
            MAX_SENDS - state.sends,
            MAX_WORKSPACE_SENDS - state.workspaces.get(&workspace).copied().unwrap_or(0),
            if is_proven { MAX_SENDS } else { MAX_UNPROVEN_SENDS.saturating_sub(state.unproven) },
        ];
        let count = free.into_iter().min().unwrap_or(0);
        if count == 0 {
            return Room::Full;
        }
        state.sends += count;
        state.unproven += if is_proven { 0 } else { count };
        *state.workspaces.entry(workspace).or_default() += count;
        *state.destinations.entry(destination.clone()).or_default() += count;
        drop(state);
        let slot = || {
            let (dispatcher, destination, pace_key) = (self.clone(), destination.clone(), pace_key.clone());
            DispatchSlot { dispatcher, workspace, destination, pace_key, is_proven }
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
        state.sends -= 1;
        state.unproven -= usize::from(!self.is_proven);
        release(&mut state.workspaces, &self.workspace);
        release(&mut state.destinations, &self.destination);
    }
}

/// Counts one less of `key`, and forgets it after the last.
fn release<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
