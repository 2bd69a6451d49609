//! The loop that carries out deliveries, when something happens at a moment that is not expected.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use forms::clock::SystemClock;
use forms::delivery::{DeliveryService, DeliverySettings};
use forms::store::sled::SledStore;
use forms::store::{Deliveries, Forms, StepResult};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{advance, pause, resume, sleep, timeout};

use super::machine::Machine;
use super::observed_index::open_observed;
use crate::harness::{RecordingSender, VAULT};
use crate::store::deliveries::{form_with, set_integrations, submit_with, webhook};
use crate::store::{SeededRandom, at, is_ready, trash_form, workspace};

/// Longer than anything here takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The first byte of the keys of submissions.
const SUBMISSIONS: u8 = b'S';

#[tokio::test]
async fn a_queue_goes_on_if_its_form_was_in_the_trash_while_it_was_loaded() {
    let opened = Arc::new(OnceLock::<SledStore>::new());
    let form = Arc::new(OnceLock::new());
    let is_armed = Arc::new(AtomicBool::new(false));
    let on_read = {
        let (opened, form, is_armed) = (Arc::clone(&opened), Arc::clone(&form), Arc::clone(&is_armed));
        move |key: &[u8]| {
            if key.first() == Some(&SUBMISSIONS) && is_armed.swap(false, Ordering::Relaxed) {
                let (store, form) = (opened.get().unwrap().clone(), *form.get().unwrap());
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                thread::spawn(move || runtime.block_on(trash_form(&store, form, 6))).join().unwrap();
            }
        }
    };
    let store = open_observed(&Machine::new(1), on_read);
    opened.set(store.clone()).ok().unwrap();
    let (id, _) = form_with(&store, 1, &["one"]).await;
    form.set(id).unwrap();
    set_integrations(&store, id, &[webhook("one", true, &["submission.completed"])], 2).await;
    submit_with(&store, id, 5, true).await;

    let sender = Arc::new(RecordingSender::default());
    is_armed.store(true, Ordering::Relaxed);
    let running = Running::start(&store, &sender);
    while is_armed.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(1)).await;
    }
    let restored = store.restore_form(workspace(1), id, None, at(7)).await.unwrap();
    assert!(matches!(restored, StepResult::Done(_)), "{restored:?}");
    wait_for_request(&sender).await;
    running.stop().await;
}

#[tokio::test]
async fn a_queue_that_was_not_woken_goes_on_after_some_minutes() {
    let store = open_observed(&Machine::new(1), |_| ());
    let (form, queues) = form_with(&store, 1, &["one"]).await;
    set_integrations(&store, form, &[webhook("one", true, &["submission.completed"])], 2).await;
    let sender = Arc::new(RecordingSender::default());
    let running = Running::start(&store, &sender);
    sleep(Duration::from_millis(50)).await;
    // Takes the wakeup of the loop, whose task does not run until this one waits.
    let mut submitted = Box::pin(submit_with(&store, form, 5, true));
    while !is_ready(&mut submitted).await {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(store.changed_queues().await, queues);
    sleep(Duration::from_millis(50)).await;
    assert!(sender.take().is_empty());
    pause();
    advance(Duration::from_secs(600)).await;
    resume();
    wait_for_request(&sender).await;
    running.stop().await;
}

/// Carries out deliveries until it is stopped.
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(store: &SledStore, sender: &Arc<RecordingSender>) -> Self {
        let service = DeliveryService::new(
            Arc::new(store.clone()),
            VAULT.clone(),
            sender.clone(),
            Arc::new(SystemClock),
            Arc::new(SeededRandom::new(2)),
            DeliverySettings::default(),
        );
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(Arc::new(service).run(async move { drop(stopped.await) }, TIMEOUT));
        Self { stop, task }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        timeout(TIMEOUT, self.task).await.unwrap().unwrap();
    }
}

async fn wait_for_request(sender: &RecordingSender) {
    let received = async {
        while sender.take().is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(TIMEOUT, received).await.unwrap();
}
