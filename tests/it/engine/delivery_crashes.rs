//! Random sequences of crashes with deliveries: every acknowledged submission is delivered to every integration that was
//! enabled, however often the process or the machine ends.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use forms::cpu_pool::CpuPool;
use forms::domain::delivery::attempt::Outcome;
use forms::domain::delivery::{Delivery, DeliveryStatus};
use forms::domain::integration::csv_file::{CsvFile, CsvPosition};
use forms::domain::integration::event::Event;
use forms::id::{EventId, FormId, SubmissionId};
use forms::store::sled::SledStore;
use forms::store::sled::engine::options::{EngineEvent, EngineOptions};
use forms::store::{
    AttemptDecision, BegunAttempt, Deliveries, DeliveryFilter, DeliveryPlace, FinishedAttempt, Forms, Keys,
    NewSubmission, QueueId, StepResult, Submissions,
};
use tokio::runtime::{Builder, Runtime};

use super::machine::Machine;
use super::random::{Random, each_seed};
use crate::store::deliveries::{self as runner, LEASE, body, failure, form_with, report};
use crate::store::{SeededRandom, at, new_workspace, workspace};

/// A delivery: an event, and the place of its queue.
type Owed = (EventId, usize);

/// A receiver: how often it got what, and the bytes.
#[derive(Default)]
struct Receiver {
    bodies: BTreeMap<Owed, BTreeSet<Vec<u8>>>,
    sequences: BTreeMap<u64, EventId>,
}

/// A machine with a form that has two integrations.
struct Simulation {
    seed: u64,
    random: Random,
    machine: Machine,
    runtime: Runtime,
    form: FormId,
    queues: Vec<QueueId>,
    millis: i64,
    /// Acknowledged submissions.
    accepted: BTreeSet<SubmissionId>,
    receiver: Receiver,
    /// Deliveries whose success was acknowledged by the store.
    delivered: BTreeSet<Owed>,
    /// Rows that a file has, and how many of them are acknowledged: the second queue is that of a file.
    file: Vec<EventId>,
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
        let (form, queues) = runtime.block_on(async {
            let first = new_workspace(1, 0);
            assert!(store.bootstrap(first.workspace, first.key).await.unwrap());
            form_with(&store, 1, &["one", "two"]).await
        });
        drop(store);
        Self {
            seed,
            random: Random::new(seed),
            machine,
            runtime,
            form,
            queues,
            millis: 100,
            accepted: BTreeSet::new(),
            receiver: Receiver::default(),
            delivered: BTreeSet::new(),
            file: Vec::new(),
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
            0 => LEASE + 1_000 * self.random.below(3_000) as i64,
            _ => self.random.below(500) as i64,
        };
        match self.random.below(3) {
            0 => self.submit(store),
            _ => {
                let place = self.random.below(self.queues.len());
                self.deliver(store, place);
            }
        }
    }

    /// Stores some submissions concurrently.
    fn submit(&mut self, store: &SledStore) {
        let (form, millis, count) = (self.form, self.millis, 1 + self.random.below(9));
        let accepted = self.runtime.block_on(async move {
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..count {
                let store = store.clone();
                tasks.spawn(async move { accept(&store, form, millis).await });
            }
            tasks.join_all().await
        });
        self.accepted.extend(accepted.into_iter().flatten());
    }

    /// Delivers a batch of a queue, or dies on the way.
    fn deliver(&mut self, store: &SledStore, place: usize) {
        let (queue, limit) = (self.queues[place], 1 + self.random.below(12));
        let Ok(Some(batch)) = self.runtime.block_on(store.load_queue(queue, at(self.millis), limit)) else {
            return;
        };
        let attempts: Vec<_> = batch
            .due
            .iter()
            .map(|due| {
                if let Some(stored) = &due.body {
                    assert_eq!(*stored, body(&due.delivery), "another body was stored");
                }
                forms::store::NewAttempt {
                    delivery: due.delivery.clone(),
                    decision: AttemptDecision::Send(body(&due.delivery)),
                }
            })
            .collect();
        if place == 1 {
            // Rows that were written and never acknowledged are cut off.
            self.file.truncate(batch.state.file.map_or(0, |file| file.length as usize));
        }
        let (now, lease) = (at(self.millis), at(self.millis + LEASE));
        let Ok(begun) = self.runtime.block_on(store.begin_attempts(queue, attempts, now, lease)) else {
            return;
        };
        let events: BTreeMap<_, _> =
            batch.due.into_iter().filter_map(|due| Some((due.delivery.event, due.event?))).collect();
        let fails = place == 0 && self.random.once_in(4);
        for attempt in &begun {
            self.receive(place, attempt, &events);
        }
        if !self.random.once_in(8) {
            self.finish(store, place, begun, fails);
        }
    }

    fn receive(&mut self, place: usize, attempt: &BegunAttempt, events: &BTreeMap<EventId, Event>) {
        let event = &events[&attempt.delivery.event];
        let known = self.receiver.sequences.insert(event.sequence, event.id);
        assert!(known.is_none_or(|known| known == event.id), "two events have the same number");
        self.receiver.bodies.entry((event.id, place)).or_default().insert(attempt.body.clone());
        assert!(!self.delivered.contains(&(event.id, place)), "delivered again after its success was stored");
        if place == 1 {
            self.file.push(event.id);
        }
    }

    fn finish(&mut self, store: &SledStore, place: usize, begun: Vec<BegunAttempt>, fails: bool) {
        let events: Vec<_> = begun.iter().map(|one| (one.delivery.event, place)).collect();
        let finished = begun.into_iter().map(|one| FinishedAttempt {
            delivery: one.delivery,
            started_at: at(self.millis),
            report: report(if fails { failure() } else { Outcome::Delivered }),
            jitter: 1.0,
        });
        let length = self.file.len() as u64;
        let file = (place == 1).then_some(CsvPosition {
            settings: CsvFile { path: "a.csv".to_owned(), delimiter: ',' },
            number: 1,
            columns: Vec::new(),
            length,
        });
        let write = store.finish_attempts(self.queues[place], finished.collect(), file, at(self.millis));
        if self.runtime.block_on(write).is_ok() && !fails {
            self.delivered.extend(events);
        }
    }

    /// Delivers all that waits, without faults, and checks that nothing is missing.
    fn check(mut self) {
        self.machine.faults.reset();
        let store = open(&self.machine, self.seed).unwrap();
        self.millis += LEASE;
        while let Some((_, due)) = self.next_queue(&store) {
            self.millis = self.millis.max(due);
            for place in 0..self.queues.len() {
                self.drain(&store, place);
            }
        }
        let stored: BTreeSet<_> = self.runtime.block_on(all_submissions(&store, self.form));
        assert!(stored.is_superset(&self.accepted));
        let owed: BTreeSet<_> = stored.iter().map(|id| EventId::of_completed(*id)).collect();
        for place in 0..self.queues.len() {
            let got: BTreeSet<_> =
                self.receiver.bodies.keys().filter(|(_, at)| *at == place).map(|(event, _)| *event).collect();
            assert_eq!(got, owed, "integration {place}");
        }
        assert!(
            self.receiver.bodies.values().all(|bodies| bodies.len() == 1),
            "attempts had different bodies"
        );
        let count = owed.len() as u64;
        assert!(self.receiver.sequences.keys().copied().eq(1..=count), "numbers of events have gaps");
        let rows: BTreeSet<_> = self.file.iter().copied().collect();
        assert_eq!((self.file.len(), rows), (owed.len(), owed.clone()), "a row is missing or repeated");
        let all = self.runtime.block_on(runner::list_deliveries(&store, &DeliveryFilter::default(), 100));
        assert_eq!(all.len(), 2 * owed.len());
        assert!(all.iter().all(|one| one.status == DeliveryStatus::Delivered));
        self.check_attempts(&store, &all);
        let mismatch = |event: &EngineEvent| matches!(event, EngineEvent::DigestMismatch { .. });
        assert!(!self.machine.event_log.events().iter().any(mismatch));
    }

    fn check_attempts(&self, store: &SledStore, all: &[Delivery]) {
        for delivery in all {
            let log = self
                .runtime
                .block_on(store.list_attempts(workspace(1), DeliveryPlace::of(delivery)))
                .unwrap();
            assert!(log.iter().map(|attempt| attempt.number).eq(1..=delivery.attempts), "{log:?}");
        }
    }

    fn next_queue(&self, store: &SledStore) -> Option<(QueueId, i64)> {
        let waiting = self.runtime.block_on(runner::waiting_queues(store));
        waiting.into_iter().min_by_key(|(_, due)| *due)
    }

    fn drain(&mut self, store: &SledStore, place: usize) {
        let queue = self.queues[place];
        loop {
            let batch = self.runtime.block_on(runner::load(store, queue, self.millis, 20));
            let due = batch.due.len();
            if due == 0 {
                return;
            }
            if place == 1 {
                self.file.truncate(batch.state.file.map_or(0, |file| file.length as usize));
            }
            let begun =
                self.runtime.block_on(runner::begin(store, queue, runner::send(&batch.due), self.millis));
            assert_eq!(begun.len(), due);
            let events = batch.due.into_iter().map(|due| (due.delivery.event, due.event.unwrap())).collect();
            for attempt in &begun {
                self.receive(place, attempt, &events);
            }
            self.finish(store, place, begun, false);
        }
    }
}

async fn accept(store: &SledStore, form: FormId, millis: i64) -> Option<SubmissionId> {
    let revision = store.find_form(workspace(1), form).await.ok()??.revision;
    let new = NewSubmission {
        form,
        checked_revision: revision,
        checked_version: 1,
        answers: r#"{"q1":"soup"}"#,
        metadata: None,
        notify: true,
        idempotency_key: None,
    };
    match store.accept_submission(workspace(1), new, at(millis)).await {
        Ok(StepResult::Done(id)) => Some(id),
        Ok(other) => panic!("{other:?}"),
        Err(_) => None,
    }
}

async fn all_submissions(store: &SledStore, form: FormId) -> BTreeSet<SubmissionId> {
    let page = crate::store::list_newest(store, workspace(1), form, None, 100_000).await.unwrap();
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
    each_seed("FORMS_DELIVERY_SEQUENCES", 200, sequence);
}
