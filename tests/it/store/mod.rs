//! The contract of the trait `Store`: one suite, run for each implementation.

mod admission; // idempotency, refusals, rechecks
mod clock_and_ids; // ids and counters when the clock jumps
mod copy; // copies between the stores
pub(crate) mod deliveries; // helpers: forms with integrations, and a runner
mod delivery_changes; // deliveries changed by hand, listed, counted and pruned
mod delivery_events; // events other than completed submissions, and the trash
mod delivery_queue; // queues of deliveries
mod delivery_servers; // queues that several servers share
mod form; // creation, lists, changes, slugs, versions
mod form_edits; // the helper `update_form`
mod form_search; // searches of forms without time, and outdated entries
mod keys; // API keys, and deletion of workspaces
mod model; // random operations compared with a model
mod paging; // lists that are read during concurrent writes
mod purges; // rows of a purged form in PostgreSQL
mod quarantine; // submissions that may be spam: kept apart, released, erased
mod search; // lists with a filter
mod submissions; // submissions: stored, edited, trashed and restored

use std::fmt::Debug;
use std::future::poll_fn;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use forms::clock::Timestamp;
use forms::cpu_pool::CpuPool;
use forms::domain::form::Form;
use forms::domain::form::definition::{Definition, FormPatch};
use forms::domain::json;
use forms::domain::revision::ExpectedRevision;
use forms::domain::submission::edit::EditedContent;
use forms::domain::submission::filter::{Order, SubmissionFilter};
use forms::domain::submission::{Submission, SubmissionStatus};
use forms::domain::validation::limits::Limits;
use forms::domain::workspace::{ApiKey, Workspace};
use forms::id::{FormId, FormRef, Random, SubmissionId, WorkspaceId};
use forms::secret::KeyId;
use forms::store::postgres::PostgresStore;
use forms::store::sled::SledStore;
use forms::store::sled::engine::options::EngineOptions;
use forms::store::{
    CheckedEdit, IdempotencyKey, IdempotentOperation, NewForm, NewSubmission, NewWorkspace, Page, Restored,
    StepResult, Store, SubmissionRows,
};
use futures_util::future::join_all;
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::harness::postgres::{cluster, connect};

pub(crate) use form_edits::{Current, current, update_form};

/// A seeded random source (`SplitMix64`).
pub(crate) struct SeededRandom(AtomicU64);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let mut state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(state ^ (state >> 31)).to_be_bytes()[..chunk.len()]);
        }
    }
}

/// Polls `future` once and returns whether it is complete.
pub(crate) async fn is_ready(future: &mut (impl Future + Unpin)) -> bool {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context).is_ready())).await
}

/// A store under test, which can be reopened.
trait StoreFixture {
    async fn open(&self) -> Arc<dyn Store>;

    /// Deletes, from a closed store, everything that can be rebuilt.
    fn remove_index(&self) {}

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        store.close().await.unwrap();
        drop(store);
        self.open().await
    }

    async fn rebuild(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        store.close().await.unwrap();
        drop(store);
        self.remove_index();
        self.open().await
    }
}

struct Sled(tempfile::TempDir);

impl StoreFixture for Sled {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(open_store(self.0.path()))
    }

    fn remove_index(&self) {
        std::fs::remove_dir_all(self.0.path().join("index")).unwrap();
    }
}

pub(crate) fn open_store(folder: &Path) -> SledStore {
    let (pool, random) = (CpuPool::default(), Arc::new(SeededRandom::new(1)));
    SledStore::open(folder, EngineOptions::default(), pool, random, Arc::new(|_| ())).unwrap()
}

async fn sled() -> Option<impl StoreFixture> {
    Some(Sled(tempfile::tempdir().unwrap()))
}

/// The URL of a schema.
struct Postgres(String);

impl StoreFixture for Postgres {
    async fn open(&self) -> Arc<dyn Store> {
        // Servers of one database never draw the same.
        static SEED: AtomicU64 = AtomicU64::new(1);
        let random = SeededRandom::new(SEED.fetch_add(1, Ordering::Relaxed));
        Arc::new(PostgresStore::open(&self.0, CpuPool::default(), Arc::new(random)).await.unwrap())
    }

    /// The server ends with the store, and before that it releases its claims.
    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        store.close().await.unwrap();
        drop(store);
        let released = "UPDATE deliveries SET owner = NULL, leased_until = NULL";
        connect(&self.0).await.execute(released, &[]).await.unwrap();
        self.open().await
    }
}

async fn postgres() -> Option<Postgres> {
    Some(Postgres(cluster()?.new_schema().await))
}

/// Makes each case of the suite a test of one store.
macro_rules! tests_of {
    ($fixture:ident: $($module:ident { $($case:ident)* })*) => { $($(
        #[tokio::test]
        async fn $case() {
            let Some(fixture) = super::$fixture().await else { return };
            super::$module::$case(&fixture).await;
        }
    )*)* };
}

/// The suite, for the store of a fixture.
macro_rules! conformance {
    ($fixture:ident) => {
        mod $fixture {
            tests_of! { $fixture:
                keys {
                    an_empty_store_is_bootstrapped_once
                    keys_are_listed_newest_first_within_their_workspace
                    uses_are_recorded_for_existing_keys
                    a_deleted_workspace_is_gone_at_once
                }
                form {
                    the_id_of_a_removed_question_comes_back_only_with_its_type
                    a_change_applies_only_to_the_expected_revision
                    a_form_update_replaces_only_the_revision_it_was_computed_from
                    a_recorded_response_outlives_a_restart
                    a_version_that_takes_most_of_a_cache_is_kept
                    a_form_list_contains_what_matches_its_filter
                    a_slug_belongs_to_one_live_form_of_a_workspace
                }
                paging {
                    every_list_shows_each_unchanged_row_once_during_concurrent_writes
                }
                search {
                    a_search_returns_what_matches_its_filter_in_either_order
                    a_long_search_runs_in_slices_and_can_be_cancelled
                }
                clock_and_ids {
                    submissions_get_the_current_time_when_the_clock_repeats
                    a_clock_that_steps_back_a_minute_is_ignored_and_more_is_followed
                }
                admission {
                    a_repeated_request_is_stored_once
                    an_idempotency_record_expires_after_a_day
                }
                quarantine {
                    a_quarantined_submission_is_kept_apart_until_it_is_released
                    what_is_quarantined_is_erased_like_the_trash
                }
                submissions {
                    answers_and_definitions_are_stored_byte_for_byte
                    an_edit_may_be_larger_than_the_original_row
                            a_submission_after_a_restored_one_sorts_after_it
                    a_submission_after_the_clock_repeats_sorts_last
                    a_submission_id_is_never_reused
                    many_edits_of_a_submission_hide_no_other_from_a_search
                    the_trash_of_a_form_is_trashed_and_restored_with_it
                }
                model {
                    random_operations_agree_with_a_model
                }
                delivery_queue {
                    a_submission_is_delivered_once_to_each_integration
                    a_claimed_delivery_is_claimed_again_once_it_is_released
                    an_outcome_that_comes_too_late_is_dropped
                    a_queue_without_room_waits
                    deliveries_in_order_wait_behind_the_first
                    nothing_waits_longer_after_the_clock_was_set_back
                    a_queue_that_a_later_clock_delayed_is_looked_at_again
                    an_integration_whose_receiver_is_gone_is_paused_and_resumed
                    a_revival_goes_on_after_a_restart
                    a_queue_is_woken_although_the_caller_is_gone
                    only_what_integrations_are_owed_is_recorded
                    a_removed_integration_cancels_what_waits
                    an_address_gets_one_confirmation_a_day
                }
                delivery_events {
                    changes_of_a_form_and_its_submissions_are_delivered
                    a_form_in_the_trash_pauses_all_but_deletions
                    deliveries_of_a_restored_submission_go_on
                    deliveries_of_an_erased_submission_are_canceled
                    nothing_of_an_erased_submission_is_sent_or_shown_meanwhile
                    a_submission_that_was_restored_meanwhile_is_not_paused
                    nothing_is_delivered_of_an_erased_form
                }
                delivery_changes {
                    deliveries_are_listed_newest_first
                    a_list_shows_each_delivery_once_while_they_are_delivered
                    counters_agree_with_a_list_after_random_changes
                    ended_deliveries_are_erased_after_some_days
                }
            }
        }
    };
}

/// Operations that wait for the one writer of the embedded store keep their order.
mod sled_writer {
    tests_of! { sled: submissions { one_group_can_submit_trash_and_restore } }
}

conformance! { sled }
conformance! { postgres }

/// Cases of files, which only the embedded store writes.
mod files {
    tests_of! { sled: delivery_queue { what_a_file_does_not_show_yet_is_claimed } }
}

/// Cases of several servers, which only a database can have.
mod servers {
    tests_of! { postgres: delivery_servers {
        a_delivery_is_claimed_by_one_of_two_servers
        what_a_dead_server_has_claimed_is_claimed_after_its_lease
        a_delivery_in_order_waits_while_another_server_attempts_the_first
        deliveries_are_made_once_by_several_runners
        a_form_permits_as_many_confirmations_from_several_servers
    } }
}

/// The value of a step that was carried out.
#[track_caller]
pub(crate) fn done<T: Debug>(step: StepResult<T>) -> T {
    match step {
        StepResult::Done(value) => value,
        other => panic!("{other:?}"),
    }
}

/// Fails unless there was nothing to change.
#[track_caller]
pub(crate) fn missing<T: Debug>(step: StepResult<T>) {
    assert!(matches!(step, StepResult::Missing), "{step:?}");
}

/// Reads a list page by page.
pub(crate) async fn all_pages<T, P>(read: impl AsyncFn(Option<P>) -> Page<T, P>) -> Vec<T> {
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = read(after.take()).await;
        seen.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return seen;
        }
    }
}

/// Waits until `is_done`, which the store does in the background.
pub(crate) async fn wait_until(is_done: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_done().await {
            yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), waiting).await.expect("it is not done in the background");
}

const COMPLETED: SubmissionStatus = SubmissionStatus::Completed;

const QUARANTINED: SubmissionStatus = SubmissionStatus::Quarantined;

const NOON: i64 = 1_763_640_000_000;

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOON + millis)
}

pub(crate) fn workspace(number: u64) -> WorkspaceId {
    WorkspaceId::from_bytes(number.to_be_bytes())
}

fn form_id(number: u64) -> FormId {
    FormId::from_bytes(number.to_be_bytes())
}

fn definition(text: &str) -> Definition {
    Definition::read(&json::parse(text).unwrap(), &Limits::default()).unwrap()
}

pub(crate) fn patch(text: &str) -> FormPatch {
    FormPatch::read(&json::parse(text).unwrap(), &Limits::default()).unwrap()
}

fn key_id(text: &str) -> KeyId {
    format!("key_{text:0>8}").parse().unwrap()
}

/// A workspace, with its first key, `w1` for the workspace 1.
pub(crate) fn new_workspace(number: u64, millis: i64) -> NewWorkspace {
    let (id, created_at) = (workspace(number), at(millis));
    let key = ApiKey::admin(id, key_id(&format!("w{number}")), [1; 32], created_at);
    let workspace = Workspace { id, name: format!("workspace {number}"), created_at };
    NewWorkspace { workspace, key, idempotency_key: None }
}

pub(crate) async fn insert_workspace(store: &dyn Store, number: u64, millis: i64) -> Workspace {
    done(store.insert_workspace(new_workspace(number, millis)).await.unwrap())
}

pub(crate) fn idempotency_key(
    operation: IdempotentOperation,
    key: u128,
    body: u128,
) -> Option<IdempotencyKey> {
    Some(IdempotencyKey { caller: key_id("1"), operation, key, body })
}

const FORM: &str = r#"{"title":"Lunch","description":"Soup?","questions":[
    {"type":"short_text","title":"What?","required":true,"max_length":90000000}]}"#;

fn sample_definition() -> Definition {
    definition(&FORM.replace("90000000", "60000"))
}

/// A draft for `insert_form`.
fn new_form(ws: u64, form: u64, definition: Definition, millis: i64) -> NewForm {
    let (form, version) = Form::create(form_id(form), workspace(ws), definition, at(millis));
    NewForm { form, version: version.to_stored(), idempotency_key: None }
}

pub(crate) fn new_draft(ws: u64, form: u64, millis: i64) -> NewForm {
    new_form(ws, form, sample_definition(), millis)
}

pub(crate) async fn create_draft(store: &dyn Store, ws: u64, form: u64, millis: i64) -> FormId {
    let step = store.insert_form(new_draft(ws, form, millis)).await.unwrap();
    assert!(matches!(step, StepResult::Done((id, made)) if id == form_id(form) && made == at(millis)));
    form_id(form)
}

async fn publish(store: &dyn Store, ws: u64, form: FormId) -> u64 {
    let published = patch(r#"{"status":"published"}"#);
    done(update_form(store, workspace(ws), form, published, ExpectedRevision::Any, at(1)).await).form.revision
}

/// A published form in workspace 1.
pub(crate) async fn published_form(store: &dyn Store, form: u64) -> FormId {
    let id = create_draft(store, 1, form, 0).await;
    assert_eq!(publish(store, 1, id).await, 2);
    id
}

pub(crate) fn new_submission(form: FormId, text: &str) -> NewSubmission<'_> {
    NewSubmission {
        form: workspace(1).form(form),
        checked_revision: 2,
        checked_version: 1,
        answers: text,
        metadata: None,
        status: COMPLETED,
        idempotency_key: None,
        notify: true,
    }
}

pub(crate) async fn submit(store: &dyn Store, form: FormId, text: &str, millis: i64) -> SubmissionId {
    done(store.accept_submission(new_submission(form, text), at(millis)).await.unwrap())
}

pub(crate) async fn trash_submission(
    store: &dyn Store,
    form: FormId,
    id: SubmissionId,
    millis: i64,
) -> StepResult<()> {
    store
        .trash_submission(workspace(1).form(form).submission(id), ExpectedRevision::Any, at(millis))
        .await
        .unwrap()
}

pub(crate) async fn restore_submission(
    store: &dyn Store,
    form: FormId,
    id: SubmissionId,
    millis: i64,
) -> StepResult<Submission> {
    let submission = workspace(1).form(form).submission(id);
    store.restore_submission(submission, COMPLETED, None, at(millis)).await.unwrap()
}

async fn release(store: &dyn Store, form: FormId, id: SubmissionId, millis: i64) -> StepResult<Submission> {
    let submission = workspace(1).form(form).submission(id);
    store.restore_submission(submission, QUARANTINED, None, at(millis)).await.unwrap()
}

pub(crate) async fn quarantine(store: &dyn Store, form: FormId, text: &str, millis: i64) -> SubmissionId {
    quarantine_in(store, workspace(1).form(form), text, at(millis)).await
}

/// Stores a quarantined submission to a form of any workspace.
pub(crate) async fn quarantine_in(
    store: &dyn Store,
    form: FormRef,
    text: &str,
    now: Timestamp,
) -> SubmissionId {
    let checked_revision = store.find_form(form).await.unwrap().unwrap().revision;
    let new = NewSubmission { form, checked_revision, status: QUARANTINED, ..new_submission(form.id, text) };
    done(store.accept_submission(new, now).await.unwrap())
}

pub(crate) async fn purge_submission(store: &dyn Store, form: FormId, id: SubmissionId) -> StepResult<()> {
    store
        .purge_submission(workspace(1).form(form).submission(id), ExpectedRevision::Any, at(1_000))
        .await
        .unwrap()
}

/// Replaces the answers of a submission that was edited `seen` times.
pub(crate) async fn edit_submission(
    store: &dyn Store,
    form: FormId,
    id: SubmissionId,
    seen: u32,
    text: &str,
    millis: i64,
) -> StepResult<Submission> {
    let edit = EditedContent { answers: text.into(), metadata: Some(r#"{"by":"hand"}"#.into()) };
    let checked = CheckedEdit { submission: workspace(1).form(form).submission(id), seen_edits: seen, edit };
    store.edit_submission(checked, at(millis)).await.unwrap()
}

pub(crate) async fn find_submission(store: &dyn Store, form: FormId, id: SubmissionId) -> Option<Submission> {
    store.find_submission(workspace(1).form(form).submission(id)).await.unwrap()
}

/// The number of submissions outside the trash.
pub(crate) async fn count(store: &dyn Store, form: FormId) -> u64 {
    store.count_submissions(workspace(1).form(form)).await.unwrap()
}

/// Lists the trash of a form by pages of `limit`.
pub(crate) async fn list_trash(store: &dyn Store, form: FormId, limit: usize) -> Vec<Submission> {
    list_uncounted(store, form, COMPLETED, limit).await
}

/// Lists the trash, or the quarantine, of a form by pages of `limit`.
async fn list_uncounted(
    store: &dyn Store,
    form: FormId,
    status: SubmissionStatus,
    limit: usize,
) -> Vec<Submission> {
    let form = workspace(1).form(form);
    let page =
        async |after| store.list_trashed_submissions(form, status, after, limit).await.unwrap().unwrap();
    all_pages(page).await
}

pub(crate) async fn find_form(store: &dyn Store, form: FormId) -> Option<Arc<Form>> {
    store.find_form(workspace(1).form(form)).await.unwrap()
}

/// Changes a form of the workspace 1, whatever its revision.
pub(crate) async fn change_form(
    store: &dyn Store,
    form: FormId,
    change: &str,
    millis: i64,
) -> StepResult<Current> {
    update_form(store, workspace(1), form, patch(change), ExpectedRevision::Any, at(millis)).await
}

pub(crate) async fn restore_form(store: &dyn Store, form: FormId, millis: i64) -> StepResult<Restored> {
    store.restore_form(workspace(1).form(form), None, at(millis)).await.unwrap()
}

pub(crate) async fn purge_form(store: &dyn Store, form: FormId) -> StepResult<()> {
    store.purge_form(workspace(1).form(form), ExpectedRevision::Any).await.unwrap()
}

pub(crate) async fn trash_form(store: &dyn Store, form: FormId, millis: i64) {
    done(store.trash_form(workspace(1).form(form), ExpectedRevision::Any, at(millis)).await.unwrap());
}

/// Stores `count` submissions concurrently, so that they share a sync, over some milliseconds.
async fn submit_concurrently(
    store: &dyn Store,
    form: FormId,
    count: usize,
    millis: i64,
) -> Vec<SubmissionId> {
    let one = async |number| {
        let text = format!("{{\"q1\":\"{number}\"}}");
        submit(store, form, &text, millis + number as i64 / 4).await
    };
    let mut ids = join_all((0..count).map(one)).await;
    ids.sort_unstable();
    ids
}

/// Lists a page of all submissions of a form, newest first.
pub(crate) async fn list_newest(
    store: &dyn Store,
    form: FormId,
    before: Option<SubmissionId>,
    limit: usize,
) -> Option<SubmissionRows> {
    let all = SubmissionFilter::default();
    store.list_submissions(workspace(1).form(form), &all, Order::NewestFirst, before, limit).await.unwrap()
}

/// Lists all submissions of a form by pages of `limit`, newest first, and checks that each is found by its id.
async fn list_all(store: &dyn Store, form: FormId, limit: usize) -> Vec<SubmissionId> {
    let pages = async |before| {
        let page = list_newest(store, form, before, limit).await.unwrap();
        assert!(page.rows.len() == limit || page.next.is_none(), "a page before the last one is short");
        page
    };
    let mut seen = Vec::new();
    for row in all_pages(pages).await {
        seen.push(row.id);
        assert_eq!(find_submission(store, form, row.id).await, Some(row));
    }
    seen
}
