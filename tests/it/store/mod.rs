//! What every store promises: one suite, run for each.

mod edits; // edits of submissions, and what they replaced
mod form; // forms: made, listed, changed, named, in versions
mod form_edits; // edits of forms, as the use case makes them
mod form_search; // searches of forms that run out of time, or meet outdated entries
mod form_trash; // forms in the trash and out of it
mod order; // ids and counters, whatever the clock does
mod paging; // lists that are read while others write
mod reading; // submissions come back as they were sent
mod search; // lists of what a filter takes
mod stories; // random lives of submissions, against a model
mod submission_trash; // submissions in the trash, out of it, and gone
mod taking_in; // what is stored once, refused, checked again
mod whole; // workspaces, keys, the end

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use forms::clock::Timestamp;
use forms::cpu_pool::CpuPool;
use forms::domain::form::Form;
use forms::domain::form::definition::{Definition, FormPatch};
use forms::domain::json;
use forms::domain::revision::ExpectedRevision;
use forms::domain::submission::Submission;
use forms::domain::submission::edit::EditedContent;
use forms::domain::submission::filter::{Order, SubmissionFilter};
use forms::domain::validation::limits::Limits;
use forms::id::{FormId, Random, SubmissionId, WorkspaceId};
use forms::secret::KeyId;
use forms::store::sled::SledStore;
use forms::store::sled::engine::options::EngineOptions;
use forms::store::{
    CheckedEdit, IdempotencyKey, IdempotentOperation, NewForm, NewSubmission, StepResult, Store,
    SubmissionRows,
};

pub(crate) use form_edits::{current, update_form};

/// Repeatable randomness: a counter, scrambled.
pub(crate) struct Scrambled(AtomicU64);

impl Scrambled {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Random for Scrambled {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let mut state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(state ^ (state >> 31)).to_be_bytes()[..chunk.len()]);
        }
    }
}

/// Lets `future` go as far as it can at once: whether that is to its end.
pub(crate) async fn is_done(future: &mut (impl Future + Unpin)) -> bool {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context).is_ready())).await
}

/// A kind of store under test: opens the same one again and again, as long as it lives.
trait Bench {
    fn open(&self) -> Arc<dyn Store>;

    /// Takes away, from a store that is closed, all that can be made anew.
    fn strip(&self);
}

struct Sled(tempfile::TempDir);

impl Bench for Sled {
    fn open(&self) -> Arc<dyn Store> {
        let random = Arc::new(Scrambled::new(1));
        let store = SledStore::open(
            self.0.path(),
            EngineOptions::default(),
            CpuPool::default(),
            random,
            Arc::new(|_| ()),
        );
        Arc::new(store.unwrap())
    }

    fn strip(&self) {
        std::fs::remove_dir_all(self.0.path().join("index")).unwrap();
    }
}

fn sled() -> impl Bench {
    Sled(tempfile::tempdir().unwrap())
}

/// Registers a store: each case of the suite becomes a test of its own.
macro_rules! conformance { ($bench:ident: $($room:ident { $($case:ident)* })*) => { mod $bench { $($( #[tokio::test] async fn $case() { super::$room::$case(&super::$bench()).await; } )*)* } }; }

conformance! { sled: whole { an_empty_store_takes_its_first_workspace_once keys_are_found_by_id nothing_of_a_workspace_is_seen_from_another a_closed_store_serves_no_more } form { a_form_comes_back_with_every_field a_form_of_old_is_read_though_it_would_be_refused_now forms_are_listed_newest_first_by_pages a_change_is_seen_at_once_and_after_reopening the_id_of_a_removed_question_never_comes_back a_change_meets_the_revision_it_was_made_for_or_nothing_happens an_update_replaces_only_the_revision_it_was_computed_from versions_are_paged_newest_first lists_have_what_their_filter_takes a_slug_names_one_live_form_of_its_workspace } reading { a_submission_comes_back_to_the_letter large_answers_and_definitions_come_back submissions_are_paged_without_gaps_while_others_write a_page_of_large_submissions_ends_early submissions_that_come_together_are_paged_one_by_one } paging { what_stays_is_seen_once_in_every_list_whatever_others_do } search { a_search_has_what_its_filter_takes_in_either_order a_search_finds_answers_as_they_were_edited a_long_search_comes_in_slices_and_can_be_given_up } order { times_that_come_again_keep_every_submission a_clock_that_jumps_within_a_group_loses_nothing times_that_come_again_are_the_times_of_what_comes ids_rise_and_counters_are_exact_with_many_writers a_clock_that_steps_back_is_ridden_out_or_followed } taking_in { a_repeated_request_makes_one_thing a_memory_ends_after_a_day what_was_checked_against_another_revision_is_checked_again a_draft_refuses_and_an_unknown_form_is_missing the_last_capacity_is_taken_once } edits { an_edit_replaces_what_was_there_and_keeps_it of_many_edits_at_once_each_meets_what_it_was_checked_against edits_that_outgrow_their_row_come_back history_is_paged_newest_first } submission_trash { a_trashed_submission_is_gone_from_sight_and_comes_back a_purged_submission_is_gone_for_good one_group_may_hold_the_whole_life_of_a_submission what_comes_after_a_submission_that_is_back_stands_behind_it what_comes_after_times_that_came_again_stands_behind_them an_id_that_was_given_is_not_given_again capacity_is_exact_while_many_come_go_and_return pages_have_all_that_stays_while_others_delete trashed_submissions_are_swept_by_the_time_of_deletion a_forms_trash_goes_and_comes_with_it } stories { random_lives_agree_with_a_model } form_trash { a_trashed_form_is_gone_from_sight a_restored_form_is_back_with_all_it_had the_trash_is_listed_by_the_time_of_deletion_and_emptied_by_it a_purged_form_is_gone_for_good } }

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

pub(crate) fn change(text: &str) -> FormPatch {
    FormPatch::read(&json::parse(text).unwrap(), &Limits::default()).unwrap()
}

fn key_id(text: &str) -> KeyId {
    format!("key_{text:0>8}").parse().unwrap()
}

pub(crate) fn retry(operation: IdempotentOperation, key: u128, body: u128) -> Option<IdempotencyKey> {
    Some(IdempotencyKey { caller: key_id("1"), operation, key, body })
}

const FORM: &str = r#"{"title":"Lunch","description":"Soup?","questions":[
    {"type":"short_text","title":"What?","required":true,"max_length":90000000}]}"#;

fn lunch() -> Definition {
    definition(&FORM.replace("90000000", "60000"))
}

/// A draft as it is given to the store.
fn new_form(ws: u64, form: u64, definition: Definition, millis: i64) -> NewForm {
    let (form, version) = Form::create(form_id(form), workspace(ws), definition, at(millis));
    NewForm { form, version: version.to_stored(), idempotency_key: None }
}

pub(crate) fn draft(ws: u64, form: u64, millis: i64) -> NewForm {
    new_form(ws, form, lunch(), millis)
}

pub(crate) async fn make(store: &dyn Store, ws: u64, form: u64, millis: i64) -> FormId {
    let step = store.insert_form(draft(ws, form, millis)).await.unwrap();
    assert!(matches!(step, StepResult::Done((id, made)) if id == form_id(form) && made == at(millis)));
    form_id(form)
}

async fn publish(store: &dyn Store, ws: u64, form: FormId) -> u64 {
    let published = change(r#"{"status":"published"}"#);
    let step = update_form(store, workspace(ws), form, published, ExpectedRevision::Any, at(1)).await;
    let StepResult::Done(current) = step else { panic!("{step:?}") };
    current.form.revision
}

/// A published form in workspace 1.
pub(crate) async fn published(store: &dyn Store, form: u64) -> FormId {
    let id = make(store, 1, form, 0).await;
    assert_eq!(publish(store, 1, id).await, 2);
    id
}

fn answers(form: FormId, text: &str) -> NewSubmission<'_> {
    NewSubmission {
        form,
        checked_revision: 2,
        checked_version: 1,
        answers: text,
        metadata: None,
        idempotency_key: None,
    }
}

pub(crate) async fn submit(store: &dyn Store, form: FormId, text: &str, millis: i64) -> SubmissionId {
    match store.accept_submission(workspace(1), answers(form, text), at(millis)).await.unwrap() {
        StepResult::Done(id) => id,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn remove(store: &dyn Store, form: FormId, id: SubmissionId, millis: i64) -> StepResult<()> {
    store.trash_submission(workspace(1), form, id, ExpectedRevision::Any, at(millis)).await.unwrap()
}

pub(crate) async fn put_back(
    store: &dyn Store,
    form: FormId,
    id: SubmissionId,
    millis: i64,
) -> StepResult<Submission> {
    store.restore_submission(workspace(1), form, id, None, at(millis)).await.unwrap()
}

async fn erase(store: &dyn Store, form: FormId, id: SubmissionId) -> StepResult<()> {
    store.purge_submission(workspace(1), form, id, ExpectedRevision::Any).await.unwrap()
}

/// Puts `text` in place of the answers of a submission that was edited `seen` times.
pub(crate) async fn edit(
    store: &dyn Store,
    form: FormId,
    id: SubmissionId,
    seen: u32,
    text: &str,
    millis: i64,
) -> StepResult<Submission> {
    let edit = EditedContent { answers: text.into(), metadata: Some(r#"{"by":"hand"}"#.into()) };
    let checked = CheckedEdit { form, submission: id, seen_edits: seen, edit };
    store.edit_submission(workspace(1), checked, at(millis)).await.unwrap()
}

pub(crate) async fn found(store: &dyn Store, form: FormId, id: SubmissionId) -> Option<Submission> {
    store.find_submission(workspace(1), form, id).await.unwrap()
}

/// The trash of a form, read by pages of `limit`.
pub(crate) async fn in_trash(store: &dyn Store, form: FormId, limit: usize) -> Vec<Submission> {
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = store.list_trashed_submissions(workspace(1), form, before, limit).await.unwrap().unwrap();
        seen.extend(page.rows);
        before = page.next;
        if before.is_none() {
            return seen;
        }
    }
}

pub(crate) async fn trash(store: &dyn Store, form: FormId, millis: i64) {
    let step = store.trash_form(workspace(1), form, ExpectedRevision::Any, at(millis)).await.unwrap();
    assert!(matches!(step, StepResult::Done(())), "{step:?}");
}

/// Makes `count` submissions at once, so that they become durable together, over some milliseconds.
async fn submit_together(
    store: &Arc<dyn Store>,
    form: FormId,
    count: usize,
    millis: i64,
) -> Vec<SubmissionId> {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..count {
        let store = Arc::clone(store);
        let millis = millis + number as i64 / 4;
        tasks.spawn(async move { submit(&*store, form, &format!("{{\"q1\":\"{number}\"}}"), millis).await });
    }
    let mut ids = tasks.join_all().await;
    ids.sort_unstable();
    ids
}

/// A page of all submissions of a form, newest first.
pub(crate) async fn newest(
    store: &dyn Store,
    workspace: WorkspaceId,
    form: FormId,
    before: Option<SubmissionId>,
    limit: usize,
) -> Option<SubmissionRows> {
    let all = SubmissionFilter::default();
    store.list_submissions(workspace, form, &all, Order::NewestFirst, before, limit).await.unwrap()
}

/// All submissions of a form, read by pages of `limit`, newest first; each is there for itself, too.
async fn all(store: &dyn Store, form: FormId, limit: usize) -> Vec<SubmissionId> {
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = newest(store, workspace(1), form, before, limit).await.unwrap();
        assert!(page.rows.len() == limit || page.next.is_none(), "only the last page is short");
        before = page.next;
        for row in page.rows {
            let found = store.find_submission(workspace(1), form, row.id).await.unwrap();
            seen.push(row.id);
            assert_eq!(found, Some(row));
        }
        if before.is_none() {
            return seen;
        }
    }
}
