//! Random sequences of crashes with deliveries: every acknowledged submission is delivered to every integration that was
//! enabled, however often the process or the machine ends.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use forms::cpu_pool::CpuPool;
use forms::domain::delivery::attempt::Outcome;
use forms::domain::delivery::lifecycle::ManualChange;
use forms::domain::delivery::{Delivery, DeliveryStatus};
use forms::id::{DeliveryId, EventId, FormId, SubmissionId};
use forms::store::sled::SledStore;
use forms::store::sled::engine::options::EngineOptions;
use forms::store::{
    AttemptEnd, Deliveries, FinishedAttempt, Forms, Keys, NewSubmission, QueueId, Room, StepResult,
    Submissions,
};
use futures_util::future::join_all;
use tokio::runtime::{Builder, Runtime};

use super::machine::Machine;
use super::random::{Random, each_seed};
use crate::store::deliveries::{
    OWNER, assert_counters, body, failure, form_with, list_all, sent, set_integrations, webhook,
};
use crate::store::{SeededRandom, at, new_submission, new_workspace, workspace};

/// Attempts of a mail after which it is dead.
const MAIL_ATTEMPTS: u32 = 7;

/// What was sent of a delivery.
#[derive(Default)]
struct Received {
    times: u32,
    /// The attempts of which the store may have lost the outcome.
    unacknowledged: u32,
    /// The delivery has ended, as the store has acknowledged.
    is_over: bool,
}

/// A machine with a form that has a webhook, and a mail to two addresses.
struct Simulation {
    seed: u64,
    random: Random,
    machine: Machine,
    runtime: Runtime,
    form: FormId,
    millis: i64,
    /// Acknowledged submissions.
    accepted: BTreeSet<SubmissionId>,
    received: BTreeMap<DeliveryId, Received>,
    /// Deliveries that were asked to be canceled.
    canceled: BTreeSet<DeliveryId>,
    sequences: BTreeMap<u64, EventId>,
}

fn open(machine: &Machine, seed: u64) -> Option<SledStore> {
    let options = EngineOptions { seal_after: Duration::from_millis(1), ..machine.options() };
    let (disk, indexes) = (Arc::new(machine.disk.clone()), Arc::new(machine.indexes.clone()));
    let random = Arc::new(SeededRandom::new(seed));
    SledStore::open_disk(disk, indexes, options, CpuPool::default(), random, machine.event_log.report()).ok()
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let machine = Machine::new(!seed);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let store = open(&machine, seed).unwrap();
        let form = runtime.block_on(async {
            let first = new_workspace(1, 0);
            assert!(store.bootstrap(first.workspace, first.key).await.unwrap());
            let (form, _) = form_with(&store, 1, &["one"]).await;
            let mail = r#"{"name":"mail","type":"email","to":["a@example.com","b@example.com"]}"#;
            let both = [webhook("one", true, &["submission.completed"]), mail.to_owned()];
            set_integrations(&store, form, &both, 2).await;
            form
        });
        drop(store);
        Self {
            seed,
            random: Random::new(seed),
            machine,
            runtime,
            form,
            millis: 100,
            accepted: BTreeSet::new(),
            received: BTreeMap::new(),
            canceled: BTreeSet::new(),
            sequences: BTreeMap::new(),
        }
    }

    /// Runs one process until a fault ends it, or it is killed.
    fn run_process(&mut self) {
        if self.random.once_in(3) {
            self.arm_fault(200);
        }
        if let Some(store) = open(&self.machine, self.seed + self.millis as u64) {
            if !self.machine.faults.has_triggered() {
                self.machine.faults.disarm();
                if self.random.once_in(2) {
                    self.arm_fault(600);
                }
            }
            for _ in 0..1 + self.random.below(12) {
                self.step(&store);
                if self.machine.faults.has_triggered() {
                    break;
                }
            }
            drop(store);
        }
        match self.random.once_in(2) {
            true => self.machine.crash_machine(),
            false => self.machine.crash_process(),
        }
    }

    fn arm_fault(&mut self, calls: usize) {
        let calls = 1 + self.random.below(calls) as u64;
        match self.random.below(3) {
            0 => self.machine.faults.fail_in(calls, io::ErrorKind::Other),
            _ => self.machine.faults.crash_in(calls),
        }
    }

    fn step(&mut self, store: &SledStore) {
        self.millis += match self.random.below(5) {
            0 => 1_000 * self.random.below(3_000) as i64,
            _ => self.random.below(500) as i64,
        };
        match self.random.below(8) {
            0..3 => self.submit(store),
            3 => self.cancel(store),
            _ => self.deliver(store),
        }
    }

    /// Stores some submissions concurrently.
    fn submit(&mut self, store: &SledStore) {
        let (form, millis, count) = (self.form, self.millis, 1 + self.random.below(9));
        let accepting = join_all((0..count).map(|_| accept(store, form, millis)));
        let accepted = self.runtime.block_on(accepting);
        self.accepted.extend(accepted.into_iter().flatten());
    }

    /// Cancels a delivery that may wait.
    fn cancel(&mut self, store: &SledStore) {
        let filter = Default::default();
        let list = store.list_deliveries(workspace(1), &filter, None, 20);
        let Ok(found) = self.runtime.block_on(list) else { return };
        let all = found.rows.iter().map(|(_, delivery)| delivery);
        let waiting: Vec<_> = all.filter(|one| one.status == DeliveryStatus::Pending).collect();
        if waiting.is_empty() {
            return;
        }
        let id = self.random.pick(&waiting).id();
        self.canceled.insert(id);
        let cancel = store.change_delivery(workspace(1), id, ManualChange::Cancel, at(self.millis));
        if let Ok(StepResult::Done(_)) = self.runtime.block_on(cancel) {
            self.received.entry(id).or_default().is_over = true;
        }
    }

    /// Delivers some of what is due, or dies on the way.
    fn deliver(&mut self, store: &SledStore) {
        let limit = 1 + self.random.below(12);
        let mut room = |_: QueueId, _: &_, _: &_| Room::For(limit);
        let now = at(self.millis);
        let Ok(claims) = self.runtime.block_on(store.claim_due(OWNER, now, &mut room)) else { return };
        for batch in claims.batches {
            let fails = self.random.once_in(4);
            if !batch.deliveries.iter().all(|delivery| self.receive(store, delivery)) {
                return;
            }
            match self.random.below(8) {
                // It is sent and its outcome is not recorded before the process ends, or before it is claimed again.
                0 => {}
                1 => self.give_back(store, batch.queue, batch.deliveries),
                _ => self.finish(store, batch.queue, batch.deliveries, fails),
            }
        }
    }

    /// Sends a delivery, unless the store fails.
    fn receive(&mut self, store: &SledStore, delivery: &Delivery) -> bool {
        let Ok(loaded) = self.runtime.block_on(store.load_claimed(delivery)) else { return false };
        assert!(loaded.body.is_none_or(|stored| stored == body(delivery)), "another body was stored");
        assert_eq!(loaded.event.unwrap().id, delivery.event);
        let known = self.sequences.insert(delivery.sequence, delivery.event);
        assert!(known.is_none_or(|known| known == delivery.event), "two events have the same number");
        let received = self.received.entry(delivery.id()).or_default();
        assert!(!received.is_over, "it was sent although its end was acknowledged");
        assert!(delivery.attempts <= received.times, "an attempt was counted that was not made");
        assert!(delivery.attempts >= received.times - received.unacknowledged, "an attempt was forgotten");
        received.times += 1;
        received.unacknowledged += 1;
        true
    }

    /// Ends the claims of deliveries: nothing was sent.
    fn give_back(&self, store: &SledStore, queue: QueueId, claimed: Vec<Delivery>) {
        let result = AttemptEnd::NotSent;
        let finished =
            claimed.into_iter().map(|delivery| FinishedAttempt { result: result.clone(), delivery });
        let _failed = self.runtime.block_on(store.finish(queue, finished.collect(), None, at(self.millis)));
    }

    fn finish(&mut self, store: &SledStore, queue: QueueId, claimed: Vec<Delivery>, fails: bool) {
        let ids: Vec<_> = claimed.iter().map(Delivery::id).collect();
        let outcome = if fails { failure() } else { Outcome::Delivered };
        let finished = claimed.into_iter().map(|delivery| FinishedAttempt {
            result: sent(&delivery, outcome.clone(), self.millis),
            delivery,
        });
        let write = store.finish(queue, finished.collect(), None, at(self.millis));
        if self.runtime.block_on(write).is_ok() {
            for id in ids {
                let received = self.received.entry(id).or_default();
                received.unacknowledged -= 1;
                received.is_over = !fails;
            }
        }
    }

    /// Delivers all that waits, without faults, and checks that nothing is missing.
    fn check(mut self) {
        self.machine.faults.reset();
        let store = open(&self.machine, self.seed).unwrap();
        self.runtime.block_on(assert_counters(&store, self.form, at(self.millis)));
        while self.is_waiting(&store) {
            self.millis += 3_600_000;
            self.deliver(&store);
        }
        let stored: BTreeSet<_> = self.runtime.block_on(all_submissions(&store, self.form));
        assert!(stored.is_superset(&self.accepted));
        let all = self.runtime.block_on(list_all(&store));
        let deliveries: BTreeSet<_> = all.iter().map(|one| (one.event, one.target)).collect();
        assert_eq!((all.len(), deliveries.len()), (3 * stored.len(), 3 * stored.len()));
        assert!(all.iter().all(|one| stored.contains(&one.event.completed_submission())));
        for one in &all {
            match one.status {
                DeliveryStatus::Delivered => assert!(self.received[&one.id()].times >= one.attempts),
                DeliveryStatus::Canceled => assert!(self.canceled.contains(&one.id())),
                // Chance may fail every attempt that the schedule of mail, the shorter one, allows.
                DeliveryStatus::Dead => assert!(one.attempts >= MAIL_ATTEMPTS, "{one:?}"),
                other => panic!("{other:?}"),
            }
            let log = self.runtime.block_on(store.list_attempts(one)).unwrap();
            assert!(log.iter().map(|attempt| attempt.number).eq(1..=one.attempts), "{log:?}");
        }
        let numbers: BTreeSet<_> = all.iter().map(|one| one.sequence).collect();
        assert!(numbers.into_iter().eq(1..=stored.len() as u64), "numbers of events have gaps");
        self.runtime.block_on(assert_counters(&store, self.form, at(self.millis)));
        assert_eq!(self.machine.mismatches(), 0);
    }

    fn is_waiting(&self, store: &SledStore) -> bool {
        let totals = self.runtime.block_on(store.queue_totals(workspace(1).form(self.form))).unwrap();
        if totals.iter().any(|queue| queue.pending > 0) {
            // Claims of attempts whose outcome is not recorded end with their owner.
            self.runtime.block_on(store.release(OWNER));
            return true;
        }
        false
    }
}

async fn accept(store: &SledStore, form: FormId, millis: i64) -> Option<SubmissionId> {
    let revision = store.find_form(workspace(1).form(form)).await.ok()??.revision;
    let new = NewSubmission { checked_revision: revision, ..new_submission(form, r#"{"q1":"soup"}"#) };
    match store.accept_submission(new, at(millis)).await {
        Ok(StepResult::Done(id)) => Some(id),
        Ok(other) => panic!("{other:?}"),
        Err(_) => None,
    }
}

async fn all_submissions(store: &SledStore, form: FormId) -> BTreeSet<SubmissionId> {
    let page = crate::store::list_newest(store, form, None, 100_000).await.unwrap();
    assert_eq!(page.next, None);
    page.rows.into_iter().map(|row| row.id).collect()
}

fn sequence(seed: u64) {
    let mut simulation = Simulation::new(seed);
    for _ in 0..1 + simulation.random.below(6) {
        simulation.run_process();
    }
    simulation.check();
}

#[test]
fn no_sequence_of_crashes_loses_or_repeats_a_delivery() {
    each_seed("FORMS_DELIVERY_SEQUENCES", 80, sequence);
}
