//! The loop that carries out deliveries. Its steps are tasks; it alone decides what is started.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{self, AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};

use super::attempt::{Batch, Outcomes};
use super::scheduler::{Receiver, Scheduler, Slot, Turn};
use super::steps::{Loaded, LoadedBatch};
use super::{DeliveryService, report};
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::store::{AttemptDecision, BegunAttempt, NewAttempt, QueueId, QueueState, Result};

/// Wait after a failure of the store.
pub(super) const STORE_BACKOFF: Duration = Duration::from_secs(1);

/// Time to record the outcomes of sends that were cut off.
const RECORD_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest sleep: due times are those of the wall clock, which may be set.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// How often all queues are listed: at the start, and then in case that a queue was not woken, because a listing panicked, for
/// example.
const LIST_INTERVAL: Duration = Duration::from_secs(600);

impl DeliveryService {
    /// Carries out deliveries until `stop` resolves. Then waits up to `grace` for the sends in progress, and records those
    /// cut off as interrupted, within two more seconds. Only one call may run at a time.
    pub async fn run(self: Arc<Self>, stop: impl Future<Output = ()>, grace: Duration) {
        let mut runner = Runner::new(self);
        let mut stop = pin!(stop);
        let mut listing = interval(LIST_INTERVAL);
        listing.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            runner.start_turns();
            let sleep_time = runner.time_to_next_due();
            tokio::select! {
                () = &mut stop => break,
                Some(ended) = runner.tasks.join_next_with_id() => runner.handle(ended),
                _ = listing.tick() => runner.list(),
                queues = runner.service.store.changed_queues() => runner.wake(queues),
                () = sleep(sleep_time) => {}
            }
        }
        runner.stop(grace).await;
    }

    /// Carries out what is due now, and returns once nothing is left that is due.
    pub async fn run_due(self: Arc<Self>) {
        let mut runner = Runner::new(self);
        runner.list();
        while let Some(ended) = runner.tasks.join_next_with_id().await {
            runner.handle(ended);
            runner.start_turns();
        }
    }
}

struct Runner {
    service: Arc<DeliveryService>,
    scheduler: Scheduler,
    tasks: JoinSet<Done>,
    running: HashMap<task::Id, (Running, AbortHandle)>,
    /// Outcomes of queues that are being recorded; those that come in meanwhile are recorded together.
    recording: HashMap<QueueId, Vec<Ended>>,
    /// Whether sends are cut off.
    is_cut: bool,
}

/// A task, and what must not be lost if it fails.
enum Running {
    Listing,
    Loading(Turn),
    Beginning { queue: QueueId, batch: LoadedBatch, slots: Vec<Slot> },
    Sending { slot: Slot, batch: Arc<Batch>, started_at: Timestamp },
    Recording { queue: QueueId, slots: Vec<(Slot, bool)> },
}

/// The result of a task.
enum Done {
    Listed(Vec<(QueueId, Timestamp)>),
    Loaded(Result<Loaded>),
    Begun(Result<Vec<BegunAttempt>>),
    Sent(Outcomes),
    Recorded(QueueState),
}

/// A batch that was sent.
struct Ended {
    slot: Slot,
    batch: Arc<Batch>,
    outcomes: Outcomes,
}

impl Runner {
    fn new(service: Arc<DeliveryService>) -> Self {
        Self {
            service,
            scheduler: Scheduler::default(),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            recording: HashMap::new(),
            is_cut: false,
        }
    }

    fn spawn(&mut self, running: Running, task: impl Future<Output = Done> + Send + 'static) {
        let handle = self.tasks.spawn(task);
        self.running.insert(handle.id(), (running, handle));
    }

    fn list(&mut self) {
        let listing = self.service.clone().list_queues();
        self.spawn(Running::Listing, async { Done::Listed(listing.await) });
    }

    fn wake(&mut self, queues: Vec<QueueId>) {
        let now = self.now();
        queues.into_iter().for_each(|queue| self.scheduler.wake(queue, now));
    }

    fn now(&self) -> Timestamp {
        self.service.clock.now()
    }

    fn time_to_next_due(&self) -> Duration {
        let Some(due) = self.scheduler.next_due() else { return MAX_SLEEP };
        let millis = due.millis().saturating_sub(self.now().millis());
        Duration::from_millis(u64::try_from(millis).unwrap_or(0)).min(MAX_SLEEP)
    }

    /// Loads all queues that are due and may send.
    fn start_turns(&mut self) {
        while let Some(turn) = self.scheduler.next_turn(self.now()) {
            let load = self.service.clone().load(turn.queue, turn.limit);
            self.spawn(Running::Loading(turn), async { Done::Loaded(load.await) });
        }
    }

    fn handle(&mut self, ended: Result<(task::Id, Done), JoinError>) {
        let (id, done) = match ended {
            Ok((id, done)) => (id, Some(done)),
            Err(error) => (error.id(), None),
        };
        // Tasks that were cut off are not known any more.
        let Some((running, _)) = self.running.remove(&id) else { return };
        match (running, done) {
            (Running::Listing, Some(Done::Listed(queues))) => {
                queues.into_iter().for_each(|(queue, due)| self.scheduler.wake(queue, due));
            }
            (Running::Loading(turn), Some(Done::Loaded(loaded))) => self.loaded(turn, loaded),
            (Running::Beginning { queue, batch, slots }, Some(Done::Begun(begun))) => {
                self.begun(queue, batch, slots, begun);
            }
            (Running::Sending { slot, batch, .. }, Some(Done::Sent(outcomes))) => {
                self.record(Ended { slot, batch, outcomes });
            }
            (Running::Recording { queue, slots }, Some(Done::Recorded(state))) => {
                self.recorded(queue, slots, Some(&state));
            }
            (running, _) => self.panicked(running),
        }
    }

    fn loaded(&mut self, turn: Turn, loaded: Result<Loaded>) {
        let batch = match loaded {
            Ok(Loaded::Batch(batch)) => batch,
            Ok(Loaded::Nothing(next_due)) => return self.scheduler.loaded_none(&turn, next_due),
            Err(error) => {
                tracing::warn!(queue = %turn.queue.integration, %error, "deliveries cannot be loaded");
                return self.scheduler.loaded_none(&turn, Some(self.service.after_backoff()));
            }
        };
        let max_batch = batch.integration.max_batch().max(1);
        let receiver = Receiver {
            destination: batch.integration.destination(),
            max_sends: batch.integration.max_concurrency(),
            max_batch,
            is_failing: batch.state.health.failing_since.is_some(),
        };
        let is_send = |attempt: &NewAttempt| matches!(attempt.decision, AttemptDecision::Send(_));
        let sends = batch.attempts.iter().filter(|attempt| is_send(attempt)).count();
        let slots = self.scheduler.loaded(&turn, &receiver, sends.div_ceil(max_batch));
        let mut batch = *batch;
        let mut allowed = slots.len() * max_batch;
        batch.attempts.retain(|attempt| {
            let keeps = !is_send(attempt) || allowed > 0;
            allowed = allowed.saturating_sub(usize::from(is_send(attempt)));
            keeps
        });
        if batch.attempts.is_empty() {
            return;
        }
        let begin = self.service.clone().begin(turn.queue, std::mem::take(&mut batch.attempts));
        let beginning = Running::Beginning { queue: turn.queue, batch, slots };
        self.spawn(beginning, async { Done::Begun(begin.await) });
    }

    fn begun(
        &mut self,
        queue: QueueId,
        loaded: LoadedBatch,
        slots: Vec<Slot>,
        begun: Result<Vec<BegunAttempt>>,
    ) {
        let begun = begun.unwrap_or_else(|error| {
            tracing::warn!(queue = %queue.integration, %error, "deliveries cannot be begun");
            self.scheduler.postpone(queue, self.service.after_backoff());
            Vec::new()
        });
        self.scheduler.begun(queue);
        let mut batches = begun.chunks(loaded.integration.max_batch().max(1));
        for slot in slots {
            let Some(attempts) = batches.next() else {
                self.scheduler.release(slot, None);
                continue;
            };
            let batch = Batch {
                queue,
                form: Arc::clone(&loaded.form),
                integration: Arc::clone(&loaded.integration),
                attempts: attempts.to_vec(),
                file: loaded.state.file.clone(),
            };
            self.send(slot, batch);
        }
    }

    fn send(&mut self, slot: Slot, batch: Batch) {
        let (batch, started_at) = (Arc::new(batch), self.now());
        let (service, sent) = (self.service.clone(), Arc::clone(&batch));
        let sending = Running::Sending { slot, batch, started_at };
        self.spawn(sending, async move { Done::Sent(service.carry_out(&sent, started_at).await) });
        if self.is_cut {
            self.cut_off();
        }
    }

    /// Records outcomes at once, or together with others of their queue that come in while some are recorded.
    fn record(&mut self, ended: Ended) {
        let queue = ended.slot.queue;
        match self.recording.get_mut(&queue) {
            Some(waiting) => waiting.push(ended),
            None => {
                self.recording.insert(queue, Vec::new());
                self.start_recording(queue, vec![ended]);
            }
        }
    }

    fn start_recording(&mut self, queue: QueueId, ended: Vec<Ended>) {
        let Some(integration) = ended.last().map(|ended| Arc::clone(&ended.batch.integration)) else {
            return;
        };
        let (mut all, mut slots) = (Outcomes::default(), Vec::new());
        for Ended { slot, outcomes, .. } in ended {
            slots.push((slot, outcomes.is_success()));
            all.finished.extend(outcomes.finished);
            all.file = outcomes.file.or(all.file);
        }
        let finish = self.service.clone().finish(queue, integration, all);
        self.spawn(Running::Recording { queue, slots }, async { Done::Recorded(finish.await) });
    }

    /// Gives the slots back after outcomes were recorded; `state` is `None` if that failed.
    fn recorded(&mut self, queue: QueueId, slots: Vec<(Slot, bool)>, state: Option<&QueueState>) {
        if let Some(state) = state
            && self.scheduler.set_health(queue, &state.health)
        {
            let reason = state.health.paused.as_deref().unwrap_or_default();
            let (form, integration) = (queue.form, queue.integration);
            tracing::warn!(%form, %integration, reason, "the integration is paused");
        }
        let has_failed = slots.iter().any(|(_, is_success)| !is_success);
        slots.into_iter().for_each(|(slot, is_success)| self.scheduler.release(slot, Some(is_success)));
        if has_failed {
            // To learn when the next attempt is due.
            self.scheduler.wake(queue, self.now());
        }
        match self.recording.remove(&queue) {
            Some(waiting) if !waiting.is_empty() => {
                self.recording.insert(queue, Vec::new());
                self.start_recording(queue, waiting);
            }
            Some(_) | None => {}
        }
    }

    /// Goes on after a panic in a task.
    fn panicked(&mut self, running: Running) {
        tracing::error!("a step of the deliveries panicked");
        match running {
            // All queues are listed again later.
            Running::Listing => {}
            Running::Loading(turn) => {
                self.scheduler.loaded_none(&turn, Some(self.service.after_backoff()));
            }
            Running::Beginning { queue, slots, .. } => {
                self.scheduler.postpone(queue, self.service.after_backoff());
                slots.into_iter().for_each(|slot| self.scheduler.release(slot, None));
            }
            Running::Sending { slot, batch, started_at } => {
                self.record_all(slot, batch, started_at, &report::panicked());
            }
            Running::Recording { queue, slots } => self.recorded(queue, slots, None),
        }
    }

    /// Records the same outcome for all attempts of a batch.
    fn record_all(&mut self, slot: Slot, batch: Arc<Batch>, started_at: Timestamp, report: &SendReport) {
        let finish = |attempt| self.service.finished(attempt, started_at, report.clone());
        let finished = batch.attempts.iter().map(finish).collect();
        self.record(Ended { slot, batch, outcomes: Outcomes { finished, file: None } });
    }

    /// Waits for the sends in progress, cuts off those that take too long, and records all outcomes.
    async fn stop(mut self, grace: Duration) {
        self.abort(|running| matches!(running, Running::Listing | Running::Loading(_)));
        let deadline = Instant::now() + grace;
        self.finish_until(deadline).await;
        self.is_cut = true;
        self.cut_off();
        self.finish_until(deadline + RECORD_TIMEOUT).await;
    }

    /// Handles the ends of tasks until none runs, or until `deadline`.
    async fn finish_until(&mut self, deadline: Instant) {
        while let Ok(Some(ended)) = timeout_at(deadline, self.tasks.join_next_with_id()).await {
            self.handle(ended);
        }
    }

    /// Cuts off the sends in progress: their attempts end as interrupted.
    fn cut_off(&mut self) {
        for running in self.abort(|running| matches!(running, Running::Sending { .. })) {
            if let Running::Sending { slot, batch, started_at } = running {
                let millis = self.now().millis() - started_at.millis();
                let duration_ms = u64::try_from(millis).unwrap_or(0);
                let report = SendReport::new(Outcome::Interrupted, duration_ms);
                self.record_all(slot, batch, started_at, &report);
            }
        }
    }

    /// Aborts the tasks that match, and returns what they were for.
    fn abort(&mut self, matches: impl Fn(&Running) -> bool) -> Vec<Running> {
        let aborted = self.running.extract_if(|_, (running, _)| matches(running));
        let abort = |(_, (running, handle)): (_, (_, AbortHandle))| {
            handle.abort();
            running
        };
        aborted.map(abort).collect()
    }
}
