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
    sends: usize,
    unproven: usize,
    workspaces: HashMap<WorkspaceId, usize>,
    destinations: HashMap<String, Destination>,
}

#[derive(Default)]
struct Destination {
    sends: usize,
    hold: Option<Hold>,
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
        let mut state = self.lock();
        let receiver = state.destinations.get(&destination);
        if let Some(hold) = receiver.and_then(|receiver| receiver.hold).filter(|hold| hold.is_active(now)) {
            return Room::After(hold.until);
        }
        let limit = if is_proven { integration.max_concurrency() } else { 1 };
        let free = [
            limit.saturating_sub(receiver.map_or(0, |receiver| receiver.sends)),
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
        state.destinations.entry(destination.clone()).or_default().sends += count;
        drop(state);
        let slot = || {
            let (dispatcher, destination) = (self.clone(), destination.clone());
            DispatchSlot { dispatcher, workspace, destination, is_proven }
        };
        slots.extend(std::iter::repeat_with(slot).take(count));
        Room::For(if integration.is_file() { FILE_BATCH } else { count * integration.max_batch() })
    }
}

impl DispatchSlot {
    /// Lets no other send to the same receiver begin within `millis` milliseconds from `now`.
    pub(super) fn hold(&self, now: Timestamp, millis: i64) {
        if millis > 0 {
            let until = Timestamp::from_millis(now.millis().saturating_add(millis));
            let mut state = self.dispatcher.lock();
            let receiver = state.destinations.entry(self.destination.clone()).or_default();
            let later = receiver.hold.filter(|hold| hold.is_active(now) && hold.until > until);
            receiver.hold = later.or(Some(Hold { since: now, until }));
        }
    }
}

impl Drop for DispatchSlot {
    fn drop(&mut self) {
        let mut state = self.dispatcher.lock();
        state.sends -= 1;
        state.unproven -= usize::from(!self.is_proven);
        if let Some(sends) = state.workspaces.get_mut(&self.workspace) {
            *sends -= 1;
        }
        state.workspaces.retain(|_, sends| *sends > 0);
        if let Some(receiver) = state.destinations.get_mut(&self.destination) {
            receiver.sends -= 1;
        }
        state.destinations.retain(|_, receiver| receiver.sends > 0 || receiver.hold.is_some());
    }
}
