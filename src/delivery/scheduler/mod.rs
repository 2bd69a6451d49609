//! Decides which queue is loaded next and how many sends it may begin: so that a receiver that does not answer only delays
//! its own deliveries.
//!
//! Bounded by the number of queues, not of deliveries. Knows neither time nor the store: both are passed in.

mod entries;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use self::entries::{Destination, FIRST_WINDOW, MAX_DESTINATION_SENDS, Phase, Queue};
use crate::clock::Timestamp;
use crate::domain::delivery::health::Health;
use crate::store::QueueId;

pub(super) use self::entries::Receiver;

/// Sends in progress, in all.
pub(super) const MAX_SENDS: usize = 64;

/// Of these, sends to receivers that fail: they may take long, and the others go on.
const MAX_FAILING_SENDS: usize = MAX_SENDS / 2;

/// Permission for one send, to be given back to [`Scheduler::release`].
#[derive(Debug)]
#[must_use = "a slot that is not released is lost"]
pub(super) struct Slot {
    pub(super) queue: QueueId,
    destination: Arc<str>,
    is_failing: bool,
}

/// A queue that is to be loaded, and the number of sends that may follow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) queue: QueueId,
    pub(super) sends: usize,
    /// Maximum deliveries to load.
    pub(super) limit: usize,
    is_failing: bool,
}

#[derive(Debug, Default)]
pub(super) struct Scheduler {
    queues: HashMap<QueueId, Queue>,
    timers: BTreeSet<(Timestamp, QueueId)>,
    /// Queues that are due, in turn: of receivers that work, and of those that fail.
    ready: [VecDeque<QueueId>; 2],
    /// The list that has the next turn.
    next_list: usize,
    destinations: HashMap<Arc<str>, Destination>,
    sends: usize,
    failing_sends: usize,
}

impl Scheduler {
    /// Makes a queue due at `at`, or at once if it is being loaded.
    pub(super) fn wake(&mut self, queue: QueueId, at: Timestamp) {
        let entry = self.queues.entry(queue).or_default();
        match &mut entry.phase {
            Phase::Idle => self.set_timer(queue, at),
            Phase::Timer(current) if at < *current => {
                self.timers.remove(&(*current, queue));
                self.set_timer(queue, at);
            }
            Phase::Loading { is_due } => *is_due = true,
            Phase::Timer(_) | Phase::Ready | Phase::Full | Phase::Waiting => {}
        }
    }

    /// When the next queue is due that is not yet.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Returns a queue that is due at `now` and may send.
    pub(super) fn next_turn(&mut self, now: Timestamp) -> Option<Turn> {
        while let Some(&(at, queue)) = self.timers.first()
            && at <= now
        {
            self.timers.pop_first();
            self.set_ready(queue);
        }
        for _ in 0..self.ready.len() {
            let list = self.next_list;
            self.next_list = (list + 1) % self.ready.len();
            if let Some(turn) = self.turn_of(list) {
                return Some(turn);
            }
        }
        None
    }

    /// Returns the turn of the first queue in a list that may send.
    fn turn_of(&mut self, list: usize) -> Option<Turn> {
        let is_failing = list == 1;
        let free = MAX_SENDS - self.sends;
        let free = if is_failing { free.min(MAX_FAILING_SENDS - self.failing_sends) } else { free };
        if free == 0 {
            return None;
        }
        while let Some(id) = self.ready[list].pop_front() {
            let waiting = self.ready[list].len();
            let Some(queue) = self.queues.get_mut(&id).filter(|queue| queue.phase == Phase::Ready) else {
                continue;
            };
            let own = queue.free();
            let theirs = match &queue.destination {
                Some(name) => self.destinations.get(name).map_or(MAX_DESTINATION_SENDS, Destination::free),
                None => MAX_DESTINATION_SENDS,
            };
            if own == 0 {
                queue.phase = Phase::Full;
                continue;
            }
            if theirs == 0 {
                queue.phase = Phase::Waiting;
                if let Some(destination) =
                    queue.destination.as_ref().and_then(|name| self.destinations.get_mut(name))
                {
                    destination.waiting.push_back(id);
                }
                continue;
            }
            let sends = own.min(theirs).min((free / (waiting + 1)).max(1));
            queue.phase = Phase::Loading { is_due: false };
            queue.sends += sends;
            self.sends += sends;
            self.failing_sends += if is_failing { sends } else { 0 };
            let limit = sends * queue.max_batch;
            return Some(Turn { queue: id, sends, limit, is_failing });
        }
        None
    }

    /// Ends a turn that loaded deliveries for `wanted` sends, and returns the slots that they may use. The queue stays due.
    pub(super) fn loaded(&mut self, turn: &Turn, receiver: &Receiver, wanted: usize) -> Vec<Slot> {
        let name: Arc<str> = receiver.destination.as_str().into();
        let max_sends = receiver.max_sends.clamp(1, MAX_DESTINATION_SENDS);
        let destination =
            self.destinations.entry(Arc::clone(&name)).or_insert_with(|| Destination::new(max_sends));
        let is_known_now = receiver.is_failing && !turn.is_failing;
        let allowed = if is_known_now { MAX_FAILING_SENDS - self.failing_sends } else { turn.sends };
        let count = wanted.min(turn.sends).min(destination.free()).min(allowed);
        let waits = wanted > 0 && destination.free() == 0;
        destination.sends += count;
        if waits {
            destination.waiting.push_back(turn.queue);
        }
        let queue = self.queues.entry(turn.queue).or_default();
        queue.learn(receiver, Arc::clone(&name));
        if waits {
            queue.phase = Phase::Waiting;
        }
        self.give_back(turn, turn.sends - count);
        self.failing_sends += if is_known_now { count } else { 0 };
        if wanted > 0 && count == 0 && !waits {
            self.set_ready(turn.queue);
        }
        self.wake_destination(&name);
        let is_failing = receiver.is_failing || turn.is_failing;
        let slot = || Slot { queue: turn.queue, destination: Arc::clone(&name), is_failing };
        std::iter::repeat_with(slot).take(count).collect()
    }

    /// Makes the queue due again once its loaded deliveries are begun.
    pub(super) fn begun(&mut self, queue: QueueId) {
        if self.queues.get(&queue).is_some_and(|queue| matches!(queue.phase, Phase::Loading { .. })) {
            self.set_ready(queue);
        }
    }

    /// Ends a turn that found nothing to send. The queue is due again at `next`.
    pub(super) fn loaded_none(&mut self, turn: &Turn, next: Option<Timestamp>) {
        self.give_back(turn, turn.sends);
        let Some(queue) = self.queues.get_mut(&turn.queue) else { return };
        let is_due = queue.phase == (Phase::Loading { is_due: true });
        queue.phase = Phase::Idle;
        let destination = queue.destination.clone();
        match next {
            _ if is_due => self.set_ready(turn.queue),
            Some(next) => self.set_timer(turn.queue, next),
            None => self.forget_idle(turn.queue),
        }
        if let Some(destination) = destination {
            self.wake_destination(&destination);
        }
    }

    /// Makes a queue due again at `at` whose loaded deliveries could not be begun.
    pub(super) fn postpone(&mut self, queue: QueueId, at: Timestamp) {
        if self.queues.get(&queue).is_some_and(|queue| matches!(queue.phase, Phase::Loading { .. })) {
            self.set_timer(queue, at);
        }
    }

    /// Gives a slot back: after a send, with whether it succeeded, or unused.
    pub(super) fn release(&mut self, slot: Slot, is_success: Option<bool>) {
        self.sends -= 1;
        self.failing_sends -= usize::from(slot.is_failing);
        if let Some(destination) = self.destinations.get_mut(&slot.destination) {
            destination.sends -= 1;
        }
        if let Some(queue) = self.queues.get_mut(&slot.queue) {
            queue.sends -= 1;
            queue.window = match is_success {
                Some(true) => (queue.window * 2).min(MAX_SENDS),
                Some(false) => FIRST_WINDOW,
                None => queue.window,
            };
            // Several at a time: loading one by one would cost as many writes as deliveries.
            if queue.phase == Phase::Full && queue.free() * 4 >= queue.limit() {
                self.set_ready(slot.queue);
            }
        }
        self.wake_destination(&slot.destination);
        self.forget_idle(slot.queue);
    }

    /// Records the health of a queue with sends in progress; returns whether it is paused only now.
    pub(super) fn set_health(&mut self, queue: QueueId, health: &Health) -> bool {
        let Some(queue) = self.queues.get_mut(&queue) else { return false };
        queue.is_failing = health.failing_since.is_some();
        !std::mem::replace(&mut queue.is_paused, health.paused.is_some()) && queue.is_paused
    }

    fn give_back(&mut self, turn: &Turn, sends: usize) {
        self.sends -= sends;
        self.failing_sends -= if turn.is_failing { sends } else { 0 };
        if let Some(queue) = self.queues.get_mut(&turn.queue) {
            queue.sends -= sends;
        }
    }

    fn set_timer(&mut self, id: QueueId, at: Timestamp) {
        self.timers.insert((at, id));
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.phase = Phase::Timer(at);
        }
    }

    fn set_ready(&mut self, id: QueueId) {
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.phase = Phase::Ready;
            self.ready[usize::from(queue.is_failing)].push_back(id);
        }
    }

    /// Lets the queue that waits longest for a destination try again, if that has a free slot. If it does not need the slot, it
    /// passes it on.
    fn wake_destination(&mut self, name: &Arc<str>) {
        let Some(destination) = self.destinations.get_mut(name) else { return };
        while destination.free() > 0
            && let Some(id) = destination.waiting.pop_front()
        {
            if self.queues.get(&id).is_some_and(|queue| queue.phase == Phase::Waiting) {
                return self.set_ready(id);
            }
        }
        if destination.sends == 0 && destination.waiting.is_empty() {
            self.destinations.remove(name);
        }
    }

    fn forget_idle(&mut self, id: QueueId) {
        if self.queues.get(&id).is_some_and(|queue| queue.phase == Phase::Idle && queue.sends == 0) {
            self.queues.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_DESTINATION_SENDS, MAX_FAILING_SENDS, Receiver, Scheduler, Slot};
    use crate::clock::Timestamp;
    use crate::domain::delivery::health::Health;
    use crate::id::{FormId, IntegrationId, WorkspaceId};
    use crate::store::QueueId;

    fn now() -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn queue(number: u64) -> QueueId {
        let integration = IntegrationId::from_bytes(number.to_be_bytes());
        QueueId { workspace: WorkspaceId::ZERO, form: FormId::ZERO, integration }
    }

    fn receiver(destination: &str, is_failing: bool) -> Receiver {
        Receiver { destination: destination.to_owned(), max_sends: 16, max_batch: 1, is_failing }
    }

    /// Takes all turns that are possible, of queues with more deliveries than can be sent, and returns their slots.
    fn fill(scheduler: &mut Scheduler, receiver_of: impl Fn(QueueId) -> Receiver) -> Vec<Slot> {
        let mut slots = Vec::new();
        while let Some(turn) = scheduler.next_turn(now()) {
            let wanted = turn.sends;
            slots.extend(scheduler.loaded(&turn, &receiver_of(turn.queue), wanted));
            scheduler.begun(turn.queue);
        }
        slots
    }

    fn count(slots: &[Slot], queue: QueueId) -> usize {
        slots.iter().filter(|slot| slot.queue == queue).count()
    }

    #[test]
    fn a_queue_sends_more_at_a_time_with_each_success() {
        let mut scheduler = Scheduler::default();
        scheduler.wake(queue(1), now());
        let mut counts = Vec::new();
        for is_success in [true, true, true, true, false, true] {
            let slots = fill(&mut scheduler, |_| receiver("a", false));
            counts.push(slots.len());
            let mut slots = slots.into_iter();
            scheduler.release(slots.next().unwrap(), Some(is_success));
            slots.for_each(|slot| scheduler.release(slot, None));
        }
        assert_eq!(counts, [2, 4, 8, MAX_DESTINATION_SENDS, MAX_DESTINATION_SENDS, 2]);
    }

    #[test]
    fn receivers_that_fail_leave_half_of_the_sends_to_others() {
        let mut scheduler = Scheduler::default();
        (0..100).for_each(|number| scheduler.wake(queue(number), now()));
        let is_failing = |id: QueueId| id != queue(99);
        let of = |id: QueueId| receiver(&id.integration.to_string(), is_failing(id));
        let slots = fill(&mut scheduler, of);
        let failing: Vec<usize> = (0..99).map(|number| count(&slots, queue(number))).collect();
        assert!(failing.iter().all(|count| *count <= 2), "{failing:?}");
        assert_eq!(failing.iter().sum::<usize>(), MAX_FAILING_SENDS);
        assert!(count(&slots, queue(99)) > 0);
    }

    #[test]
    fn a_destination_is_shared_by_the_queues_that_send_there() {
        let mut scheduler = Scheduler::default();
        (0..20).for_each(|number| scheduler.wake(queue(number), now()));
        let mut sent = [0; 20];
        let mut slots = fill(&mut scheduler, |_| receiver("shared", false));
        for _ in 0..200 {
            assert_eq!(slots.len(), MAX_DESTINATION_SENDS);
            let slot = slots.remove(0);
            sent[usize::from(slot.queue.integration.to_bytes()[7])] += 1;
            scheduler.release(slot, Some(true));
            slots.extend(fill(&mut scheduler, |_| receiver("shared", false)));
        }
        assert!(sent.iter().all(|count| (5..=15).contains(count)), "{sent:?}");
    }

    #[test]
    fn a_queue_that_is_woken_while_it_is_loaded_is_loaded_again() {
        let mut scheduler = Scheduler::default();
        scheduler.wake(queue(1), now());
        let turn = scheduler.next_turn(now()).unwrap();
        scheduler.wake(queue(1), now());
        assert_eq!(scheduler.next_turn(now()), None);
        scheduler.loaded_none(&turn, None);
        let turn = scheduler.next_turn(now()).unwrap();
        scheduler.loaded_none(&turn, None);
        assert_eq!(scheduler.next_turn(now()), None);
        assert!(scheduler.queues.is_empty());
    }

    #[test]
    fn a_paced_queue_is_loaded_when_it_is_woken_and_when_its_time_has_come() {
        let (mut scheduler, later) = (Scheduler::default(), Timestamp::from_millis(5_000));
        for _ in 0..2 {
            scheduler.wake(queue(1), now());
            // The store finds nothing to send before that time.
            let turn = scheduler.next_turn(now()).unwrap();
            scheduler.loaded_none(&turn, Some(later));
            assert_eq!((scheduler.next_turn(now()), scheduler.next_due()), (None, Some(later)));
        }
        assert_eq!(scheduler.next_turn(later).map(|turn| turn.queue), Some(queue(1)));
    }

    #[test]
    fn a_pause_is_reported_once() {
        let mut scheduler = Scheduler::default();
        scheduler.wake(queue(1), now());
        let slots = fill(&mut scheduler, |_| receiver("a", false));
        let paused = Health { paused: Some("gone".to_owned()), ..Health::default() };
        let reported = slots.iter().map(|slot| scheduler.set_health(slot.queue, &paused));
        assert_eq!(reported.collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn every_slot_is_given_back() {
        let mut scheduler = Scheduler::default();
        for round in 0..50 {
            (0..30).for_each(|number| scheduler.wake(queue(number), now()));
            let of = |id: QueueId| {
                let number = id.integration.to_bytes()[7];
                receiver(&(number % 3).to_string(), (number + round).is_multiple_of(4))
            };
            let slots = fill(&mut scheduler, of);
            assert!(!slots.is_empty());
            slots.into_iter().for_each(|slot| scheduler.release(slot, Some(round % 5 > 0)));
        }
        while let Some(turn) = scheduler.next_turn(now()) {
            scheduler.loaded_none(&turn, None);
        }
        assert_eq!((scheduler.sends, scheduler.failing_sends), (0, 0));
        assert!(scheduler.queues.is_empty() && scheduler.destinations.is_empty(), "{scheduler:?}");
    }
}
