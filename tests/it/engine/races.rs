//! Requests between whose reads other requests are carried out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use forms::app::{App, IdempotentRequest, Session};
use forms::clock::SystemClock;
use forms::cpu_pool::CpuPool;
use forms::delivery::{DeliveryService, DeliverySettings};
use forms::domain::submission::SubmissionStatus;
use forms::domain::validation::limits::Limits;
use forms::domain::workspace::ApiKey;
use forms::id::{FormId, SubmissionId};
use forms::store::sled::SledStore;

use super::machine::open_store;
use super::model_index::Observer;
use crate::harness::{RecordingSender, VAULT};
use crate::store::{
    SeededRandom, all_pages, change_form, done, find_form, insert_workspace, list_newest, list_trash,
    published_form, purge_submission, submit, trash_submission, workspace,
};

/// Calls `other` in another thread before the next read of a key that begins with `prefix`.
pub(super) struct Interruption<T> {
    prefix: &'static [u8],
    is_armed: AtomicBool,
    pub(super) state: OnceLock<T>,
}

impl<T: Send + Sync + 'static> Interruption<T> {
    /// Opens a store that is interrupted.
    pub(super) fn open<F: Future<Output = ()>>(
        prefix: &'static [u8],
        other: impl Fn(Arc<Self>) -> F + Clone + Send + Sync + 'static,
    ) -> (SledStore, Arc<Self>) {
        let this = Arc::new(Self { prefix, is_armed: AtomicBool::new(false), state: OnceLock::new() });
        let shared = Arc::clone(&this);
        let store = open_store(Observer::of_reads(move |key: &[u8]| {
            if key.starts_with(prefix) && shared.is_armed.swap(false, Ordering::Relaxed) {
                let (other, shared) = (other.clone(), Arc::clone(&shared));
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                thread::spawn(move || runtime.block_on(other(shared))).join().unwrap();
            }
        }));
        (store, this)
    }

    pub(super) fn arm(&self) {
        self.is_armed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_armed(&self) -> bool {
        self.is_armed.load(Ordering::Relaxed)
    }

    fn assert_happened(&self) {
        assert!(!self.is_armed(), "nothing was read below {:?}", self.prefix);
    }
}

/// A form with six submissions that are stored in pieces, of which the three newest are purged while they are read.
async fn purged_while_read(prefix: &'static [u8], is_trash: bool) -> Vec<SubmissionId> {
    let purge = |this: Arc<Interruption<(SledStore, FormId, Vec<SubmissionId>)>>| async move {
        let (store, form, newest) = this.state.get().unwrap();
        for id in newest {
            done(purge_submission(store, *form, *id).await);
        }
    };
    let (store, interruption) = Interruption::open(prefix, purge);
    let form = published_form(&store, 1).await;
    let mut ids = Vec::new();
    for number in 0..6 {
        let answers = format!(r#"{{"q1":"{}"}}"#, "x".repeat(10_000));
        ids.push(submit(&store, form, &answers, 10 + number).await);
        if is_trash {
            done(trash_submission(&store, form, ids[ids.len() - 1], 100).await);
        }
    }
    ids.reverse();
    interruption.state.set((store.clone(), form, ids.drain(..3).collect())).ok().unwrap();
    interruption.arm();
    let rows = match is_trash {
        true => list_trash(&store, form, 2).await,
        false => all_pages(async |before| list_newest(&store, form, before, 2).await.unwrap()).await,
    };
    let seen: Vec<_> = rows.into_iter().map(|submission| submission.id).collect();
    interruption.assert_happened();
    assert_eq!(seen, ids, "the older ones are missing");
    seen
}

#[tokio::test]
async fn a_list_whose_newest_submissions_are_purged_while_it_is_read_goes_on() {
    assert_eq!(purged_while_read(b"PS", false).await.len(), 3);
    assert_eq!(purged_while_read(b"PT", true).await.len(), 3);
}

#[tokio::test]
async fn a_repeated_submission_that_takes_the_last_place_is_replayed() {
    let request =
        IdempotentRequest { idempotency_key: Some("once"), query: "", body: r#"{"answers":{"q1":"x"}}"# };
    let twin = move |this: Arc<Interruption<(Arc<App>, String)>>| async move {
        let (app, form) = this.state.get().unwrap();
        let session = Session { app: Arc::clone(app), caller: ApiKey::local_operator(workspace(1)) };
        assert!(
            !session
                .create_submission(form, request, SubmissionStatus::Completed, true)
                .await
                .unwrap()
                .replayed
        );
    };
    // The counters are read to see whether the form is full.
    let (store, interruption) = Interruption::open(b"C", twin);
    insert_workspace(&store, 1, 0).await;
    let form = published_form(&store, 1).await;
    done(change_form(&store, form, r#"{"settings":{"max_responses":1}}"#, 5).await);
    let store = Arc::new(store);
    let (clock, random) = (Arc::new(SystemClock), Arc::new(SeededRandom::new(2)));
    let (sender, settings) = (Arc::new(RecordingSender::default()), DeliverySettings::default());
    let deliveries =
        DeliveryService::new(store.clone(), VAULT.clone(), sender, clock.clone(), random.clone(), settings);
    let app = App::new(store, CpuPool::default(), clock, random, Limits::default(), Arc::new(deliveries));
    let app = Arc::new(app);
    interruption.state.set((Arc::clone(&app), form.to_string())).ok().unwrap();
    interruption.arm();
    let session = Session { app, caller: ApiKey::local_operator(workspace(1)) };
    let accepted =
        session.create_submission(&form.to_string(), request, SubmissionStatus::Completed, true).await;
    interruption.assert_happened();
    assert!(accepted.is_ok_and(|accepted| accepted.replayed));
}

#[tokio::test]
async fn a_write_of_a_form_leaves_other_forms_in_the_cache() {
    let store = open_store(Observer::none());
    let [one, other] = [published_form(&store, 1).await, published_form(&store, 2).await];
    let find = async |form| find_form(&store, form).await.unwrap();
    let (found, changed) = (find(one).await, find(other).await);
    done(change_form(&store, other, r#"{"title":"New"}"#, 5).await);
    assert!(Arc::ptr_eq(&found, &find(one).await), "it was decoded again");
    assert_eq!((changed.title.as_str(), find(other).await.title.as_str()), ("Lunch", "New"));
}
