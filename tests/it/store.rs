//! What every store promises: one suite, run for each.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use forms::clock::Timestamp;
use forms::domain::admission::{Refusal, Shut};
use forms::domain::definition::{Change, Definition};
use forms::domain::filter::{FormFilter, Order, SubmissionFilter, SubmissionQuery};
use forms::domain::form::{Form, Status};
use forms::domain::json;
use forms::domain::limits::Limits;
use forms::domain::revision::Expected;
use forms::domain::submission::Submission;
use forms::domain::workspace::{ApiKey, Scope, Workspace};
use forms::id::{FormId, SubmissionId, WorkspaceId};
use forms::secret::{KeyId, KeyText};
use forms::store::sled::SledStore;
use forms::store::sled::engine::options::Options;
use forms::store::{Health, NewForm, NewSubmission, Operation, Page, Retry, Step, Store};

use crate::engine::random::Random;

/// Repeatable randomness: a counter, scrambled.
pub(crate) struct Scrambled(AtomicU64);

impl Scrambled {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl forms::id::Random for Scrambled {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let mut state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(state ^ (state >> 31)).to_be_bytes()[..chunk.len()]);
        }
    }
}

/// A kind of store under test: opens the same one again and again, as long as it lives.
trait Bench {
    fn open(&self) -> Arc<dyn Store>;
}

struct Sled(tempfile::TempDir);

impl Bench for Sled {
    fn open(&self) -> Arc<dyn Store> {
        let random = Arc::new(Scrambled::new(1));
        let store = SledStore::open(self.0.path(), Options::default(), random, Arc::new(|_| ()));
        Arc::new(store.unwrap())
    }
}

fn sled() -> impl Bench {
    Sled(tempfile::tempdir().unwrap())
}

/// Registers a store: each case of the suite becomes a test of its own.
macro_rules! conformance {
    ($bench:ident: $($case:ident)*) => {
        mod $bench {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case(&super::$bench()).await;
                }
            )*
        }
    };
}

conformance! { sled:
    an_empty_store_takes_its_first_workspace_once
    keys_are_found_by_id
    a_form_comes_back_with_every_field
    forms_are_listed_newest_first_by_pages
    a_change_is_seen_at_once_and_after_reopening
    the_id_of_a_removed_question_never_comes_back
    a_change_meets_the_revision_it_was_made_for_or_nothing_happens
    versions_are_paged_newest_first
    a_submission_comes_back_to_the_letter
    large_answers_and_definitions_come_back
    submissions_are_paged_without_gaps_while_others_write
    a_page_of_large_submissions_ends_early
    submissions_that_come_together_are_paged_one_by_one
    a_search_has_what_its_filter_takes_in_either_order
    a_long_search_comes_in_slices_and_can_be_given_up
    times_that_come_again_keep_every_submission
    a_clock_that_jumps_within_a_group_loses_nothing
    ids_rise_and_counters_are_exact_with_many_writers
    a_clock_that_steps_back_is_ridden_out_or_followed
    a_repeated_request_makes_one_thing
    a_memory_ends_after_a_day
    what_was_checked_against_another_revision_is_checked_again
    a_draft_refuses_and_an_unknown_form_is_missing
    the_last_seats_are_taken_once
    nothing_of_a_workspace_is_seen_from_another
    a_trashed_form_is_gone_from_sight
    a_restored_form_is_back_with_all_it_had
    the_trash_is_listed_by_the_time_of_deletion_and_emptied_by_it
    lists_have_what_their_filter_takes
    a_slug_names_one_live_form_of_its_workspace
    a_purged_form_is_gone_for_good
    a_closed_store_serves_no_more
}

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

fn change(text: &str) -> Change {
    Change::read(&json::parse(text).unwrap(), &Limits::default()).unwrap()
}

fn key_id(text: &str) -> KeyId {
    format!("key_{text:0>8}").parse().unwrap()
}

fn retry(operation: Operation, key: u128, body: u128) -> Option<Retry> {
    Some(Retry { caller: key_id("1"), operation, key, body })
}

const FORM: &str = r#"{"title":"Lunch","description":"Soup?","questions":[
    {"type":"short_text","title":"What?","required":true,"max_length":90000000}]}"#;

fn lunch() -> Definition {
    definition(&FORM.replace("90000000", "60000"))
}

pub(crate) fn draft(form: u64) -> NewForm {
    NewForm { id: form_id(form), definition: lunch(), retry: None }
}

async fn make(store: &dyn Store, ws: u64, form: u64, millis: i64) -> FormId {
    let step = store.insert_form(workspace(ws), draft(form), at(millis)).await.unwrap();
    assert!(matches!(step, Step::Done((id, made)) if id == form_id(form) && made == at(millis)));
    form_id(form)
}

async fn publish(store: &dyn Store, ws: u64, form: FormId) -> u64 {
    let step = store
        .update_form(workspace(ws), form, change(r#"{"status":"published"}"#), Expected::Any, at(1))
        .await
        .unwrap();
    let Step::Done(current) = step else { panic!("{step:?}") };
    current.form.revision
}

/// A published form in workspace 1.
pub(crate) async fn published(store: &dyn Store, form: u64) -> FormId {
    let id = make(store, 1, form, 0).await;
    assert_eq!(publish(store, 1, id).await, 2);
    id
}

fn answers(form: FormId, text: &str) -> NewSubmission<'_> {
    NewSubmission { form, checked_revision: 2, checked_version: 1, answers: text, retry: None }
}

pub(crate) async fn submit(store: &dyn Store, form: FormId, text: &str, millis: i64) -> SubmissionId {
    match store.accept_submission(workspace(1), answers(form, text), at(millis)).await.unwrap() {
        Step::Done(id) => id,
        other => panic!("{other:?}"),
    }
}

async fn an_empty_store_takes_its_first_workspace_once(bench: &impl Bench) {
    let store = bench.open();
    assert_eq!(store.health(), Health::Ready);
    let key = KeyText::draw(&Scrambled::new(3));
    let first = Workspace { id: workspace(1), name: "default".into(), created_at: at(0) };
    let second = Workspace { id: workspace(2), name: "other".into(), created_at: at(0) };
    let api_key = |ws: &Workspace| ApiKey {
        id: key.id(),
        workspace: ws.id,
        name: "operator".into(),
        hash: key.hash(),
        scopes: vec![Scope::Admin, Scope::Operator],
        created_at: at(0),
        expires_at: None,
    };
    assert!(store.bootstrap(first.clone(), api_key(&first)).await.unwrap());
    assert!(!store.bootstrap(second.clone(), api_key(&second)).await.unwrap());
    assert_eq!(store.find_workspace(first.id).await.unwrap(), Some(first.clone()));
    assert_eq!(store.find_workspace(second.id).await.unwrap(), None);
    let signing_key = store.signing_key().await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let store = bench.open();
    assert_eq!(store.signing_key().await.unwrap(), signing_key);
    assert_eq!(store.find_key(key.id()).await.unwrap().as_deref(), Some(&api_key(&first)));
    assert!(!store.bootstrap(second.clone(), api_key(&second)).await.unwrap());
}

async fn keys_are_found_by_id(bench: &impl Bench) {
    let store = bench.open();
    let key = ApiKey {
        id: key_id("abc"),
        workspace: workspace(5),
        name: "ci".into(),
        hash: [9; 32],
        scopes: vec![Scope::Submit],
        created_at: at(7),
        expires_at: Some(at(8)),
    };
    store.insert_key(key.clone()).await.unwrap();
    assert_eq!(store.find_key(key.id).await.unwrap().as_deref(), Some(&key));
    assert_eq!(store.find_key(key_id("abd")).await.unwrap(), None);
    let other = Workspace { id: workspace(5), name: "five".into(), created_at: at(2) };
    store.insert_workspace(other.clone()).await.unwrap();
    assert_eq!(store.find_workspace(workspace(5)).await.unwrap(), Some(other));
}

async fn a_form_comes_back_with_every_field(bench: &impl Bench) {
    let store = bench.open();
    let id = make(&*store, 1, 11, 5).await;
    let before = store.find_form(workspace(1), id).await.unwrap().unwrap();
    assert_eq!((before.form.title.as_str(), before.form.description.as_deref()), ("Lunch", Some("Soup?")));
    assert_eq!((before.form.status, before.form.revision, before.form.version), (Status::Draft, 1, 1));
    assert_eq!((before.form.created_at, before.form.updated_at), (at(5), at(5)));
    assert_eq!((before.version.questions[0].id.as_deref(), before.version.number), (Some("q1"), 1));
    store.close().await.unwrap();
    drop(store);
    let after = bench.open().find_form(workspace(1), id).await.unwrap().unwrap();
    assert_eq!(after.form, before.form);
    assert_eq!(after.version.created_at, before.version.created_at);
    let canonical = |version| serde_json::to_string(version).unwrap();
    assert_eq!(canonical(&after.version.questions), canonical(&before.version.questions));
}

async fn forms_are_listed_newest_first_by_pages(bench: &impl Bench) {
    let store = bench.open();
    // Two of one millisecond, made in no order of ids.
    for (form, millis) in [(3, 10), (9, 20), (1, 20), (5, 30)] {
        make(&*store, 1, form, millis).await;
    }
    submitted_twice(&*store).await;
    let all = store.list_forms(workspace(1), &FormFilter::default(), None, 10).await.unwrap();
    let listed: Vec<_> = all.iter().map(|(form, count)| (form.id, *count)).collect();
    assert_eq!(listed, [(form_id(5), 2), (form_id(9), 0), (form_id(1), 0), (form_id(3), 0)]);
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let page = store.list_forms(workspace(1), &FormFilter::default(), after, 1).await.unwrap();
        let Some((form, _)) = page.first() else { break };
        after = Some((form.created_at, form.id));
        paged.push(form.id);
    }
    assert_eq!(paged, [form_id(5), form_id(9), form_id(1), form_id(3)]);
}

async fn submitted_twice(store: &dyn Store) {
    publish(store, 1, form_id(5)).await;
    submit(store, form_id(5), "{}", 40).await;
    submit(store, form_id(5), "{}", 41).await;
}

async fn a_change_is_seen_at_once_and_after_reopening(bench: &impl Bench) {
    let store = bench.open();
    let id = make(&*store, 1, 11, 0).await;
    let edit =
        change(r#"{"title":"Dinner","questions":[{"type":"rating","title":"Stars"}],"status":"published"}"#);
    let Step::Done(current) =
        store.update_form(workspace(1), id, edit.clone(), Expected::Any, at(9)).await.unwrap()
    else {
        panic!("not changed")
    };
    assert_eq!((current.form.revision, current.form.version, current.form.updated_at), (2, 2, at(9)));
    assert_eq!(current.version.questions[0].id.as_deref(), Some("q2"));
    let found = store.find_form(workspace(1), id).await.unwrap().unwrap();
    assert_eq!((found.form, found.version.number), (current.form.clone(), 2));
    let again = change(r#"{"title":"Dinner","status":"published"}"#);
    let Step::Done(same) = store.update_form(workspace(1), id, again, Expected::Any, at(99)).await.unwrap()
    else {
        panic!("not the same")
    };
    assert_eq!(same.form, current.form);
    let retired = change(r#"{"questions":[{"id":"q1","type":"rating","title":"Stars"}]}"#);
    let refused = store.update_form(workspace(1), id, retired, Expected::Any, at(99)).await.unwrap();
    assert!(matches!(refused, Step::Refused(Refusal::InvalidDefinition(_))));
    let missing = store.update_form(workspace(1), form_id(12), edit, Expected::Any, at(9)).await.unwrap();
    assert!(matches!(missing, Step::Missing));
    store.close().await.unwrap();
    drop(store);
    assert_eq!(bench.open().find_form(workspace(1), id).await.unwrap().unwrap().form, current.form);
}

async fn the_id_of_a_removed_question_never_comes_back(bench: &impl Bench) {
    let store = bench.open();
    let form = make(&*store, 1, 1, 0).await;
    let asks = |id: &str| change(&format!(r#"{{"questions":[{{"id":"{id}","type":"email","title":"a"}}]}}"#));
    for id in ["second", "third"] {
        let step = store.update_form(workspace(1), form, asks(id), Expected::Any, at(1)).await.unwrap();
        assert!(matches!(step, Step::Done(_)), "{step:?}");
    }
    store.close().await.unwrap();
    drop(store);
    let store = bench.open();
    for id in ["q1", "second"] {
        let step = store.update_form(workspace(1), form, asks(id), Expected::Any, at(2)).await.unwrap();
        assert!(matches!(step, Step::Refused(Refusal::InvalidDefinition(_))), "{step:?}");
    }
    let unnamed = change(r#"{"questions":[{"type":"email","title":"a"}]}"#);
    let Step::Done(current) =
        store.update_form(workspace(1), form, unnamed, Expected::Any, at(3)).await.unwrap()
    else {
        panic!("a new question is welcome")
    };
    assert_eq!(current.version.questions[0].id.as_deref(), Some("q2"));
}

async fn a_change_meets_the_revision_it_was_made_for_or_nothing_happens(bench: &impl Bench) {
    let store = bench.open();
    let id = make(&*store, 1, 11, 0).await;
    let rename = |title: &str| change(&format!(r#"{{"title":"{title}"}}"#));
    let seen = |revisions: &[u64]| Expected::OneOf(revisions.to_vec());
    // Many have seen the same revision: one of them changes it.
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..16 {
        let (store, change, expected) = (Arc::clone(&store), rename(&format!("{number}")), seen(&[1]));
        tasks.spawn(
            async move { store.update_form(workspace(1), id, change, expected, at(1)).await.unwrap() },
        );
    }
    let steps = tasks.join_all().await;
    assert_eq!(steps.iter().filter(|step| matches!(step, Step::Done(_))).count(), 1);
    assert_eq!(steps.iter().filter(|step| matches!(step, Step::Refused(Refusal::Moved))).count(), 15);
    let same = store.update_form(workspace(1), id, rename("new"), seen(&[2, 9]), at(1)).await.unwrap();
    assert!(matches!(same, Step::Done(current) if current.form.revision == 3));
    for stale in [seen(&[2]), seen(&[])] {
        let trashed = store.trash_form(workspace(1), id, stale.clone(), at(2)).await.unwrap();
        assert!(matches!(trashed, Step::Refused(Refusal::Moved)));
        let purged = store.purge_form(workspace(1), id, stale).await.unwrap();
        assert!(matches!(purged, Step::Refused(Refusal::Moved)));
    }
    assert!(store.find_form(workspace(1), id).await.unwrap().is_some());
    let trashed = store.trash_form(workspace(1), id, seen(&[3]), at(2)).await.unwrap();
    assert!(matches!(trashed, Step::Done(())));
    let purged = store.purge_form(workspace(1), id, seen(&[4])).await.unwrap();
    assert!(matches!(purged, Step::Done(())));
}

async fn versions_are_paged_newest_first(bench: &impl Bench) {
    let store = bench.open();
    let id = make(&*store, 1, 11, 0).await;
    for number in 2..=5 {
        let edit = change(&format!(r#"{{"questions":[{{"type":"email","title":"{number}"}}]}}"#));
        let step = store.update_form(workspace(1), id, edit, Expected::Any, at(number)).await.unwrap();
        assert!(matches!(step, Step::Done(_)));
    }
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = store.list_versions(workspace(1), id, before, 2).await.unwrap().unwrap();
        before = page.rows.last().map(|last| last.number);
        for row in page.rows {
            let found = store.find_version(workspace(1), id, row.number).await.unwrap().unwrap();
            assert_eq!((found.number, found.created_at), (row.number, row.created_at));
            seen.push((row.number, row.created_at.millis() - NOON, row.questions[0].title.clone()));
        }
        if !page.more {
            break;
        }
    }
    let expected = [(5, 5, "5"), (4, 4, "4"), (3, 3, "3"), (2, 2, "2"), (1, 0, "What?")];
    assert_eq!(seen, expected.map(|(number, millis, title)| (number, millis, title.to_owned())));
    assert!(store.find_version(workspace(1), id, 6).await.unwrap().is_none());
    assert!(store.find_version(workspace(2), id, 1).await.unwrap().is_none());
    assert!(store.list_versions(workspace(2), id, None, 2).await.unwrap().is_none());
}

async fn a_submission_comes_back_to_the_letter(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let text = "{ \"q1\" : \"caf\\u00e9 😀\", \"n\": 1.10 }";
    let id = submit(&*store, form, text, 123).await;
    for round in 0..2 {
        let found = store.find_submission(workspace(1), form, id).await.unwrap().unwrap();
        assert_eq!(
            (&*found.answers, found.id, found.form, found.form_version),
            (text, id, form, 1),
            "round {round}"
        );
        assert_eq!(found.submitted_at(), at(123));
        let page = newest(&*store, workspace(1), form, None, 10).await.unwrap();
        assert_eq!(page, Page { rows: vec![found], more: false });
    }
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 1);
    store.close().await.unwrap();
    drop(store);
    let store = bench.open();
    assert_eq!(&*store.find_submission(workspace(1), form, id).await.unwrap().unwrap().answers, text);
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 1);
}

async fn large_answers_and_definitions_come_back(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let mut sent = Vec::new();
    for length in [0, 4_050, 4_096, 4_097, 8_191, 60_000, 900_000] {
        let text = format!("{{\"q1\":\"{}\"}}", "é".repeat(length / 2));
        sent.push((submit(&*store, form, &text, 0).await, text));
    }
    let questions: Vec<_> = (0..500)
        .map(|number| {
            format!(r#"{{"type":"short_text","title":"{}","description":"{number}"}}"#, "t".repeat(300))
        })
        .collect();
    let big = NewForm {
        id: form_id(12),
        definition: definition(&format!(r#"{{"title":"Big","questions":[{}]}}"#, questions.join(","))),
        retry: None,
    };
    store.insert_form(workspace(1), big, at(0)).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let store = bench.open();
    for (id, text) in &sent {
        assert_eq!(*store.find_submission(workspace(1), form, *id).await.unwrap().unwrap().answers, **text);
    }
    let page = newest(&*store, workspace(1), form, None, 100).await.unwrap();
    let listed: Vec<_> =
        page.rows.into_iter().rev().map(|found| (found.id, found.answers.into_string())).collect();
    assert_eq!(listed, sent);
    let found = store.find_form(workspace(1), form_id(12)).await.unwrap().unwrap();
    assert_eq!(found.version.questions.len(), 500);
    assert_eq!(found.version.questions[499].description.as_deref(), Some("499"));
}

async fn submissions_are_paged_without_gaps_while_others_write(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let mut expected = Vec::new();
    for number in 0..250 {
        expected.push(submit(&*store, form, &format!("{{\"q1\":\"{number}\"}}"), number).await);
    }
    expected.reverse();
    let mut seen = Vec::new();
    let mut before = None;
    for limit in [1, 7, 120, 200, 10] {
        let page = newest(&*store, workspace(1), form, before, limit).await.unwrap();
        before = page.rows.last().map(|last| last.id).or(before);
        seen.extend(page.rows.into_iter().map(|found| found.id));
        submit(&*store, form, "{}", 1_000).await;
    }
    assert_eq!(seen, expected);
}

async fn a_page_of_large_submissions_ends_early(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let text = format!("{{\"q1\":\"{}\"}}", "x".repeat(1_000_000));
    for number in 0..12 {
        submit(&*store, form, &text, number).await;
    }
    let (mut seen, mut before, mut pages) = (0, None, 0);
    loop {
        let page = newest(&*store, workspace(1), form, before, 1_000).await.unwrap();
        assert!((1..=5).contains(&page.rows.len()), "{}", page.rows.len());
        (seen, pages, before) = (seen + page.rows.len(), pages + 1, page.rows.last().map(|last| last.id));
        if !page.more {
            break;
        }
    }
    assert_eq!(seen, 12);
    assert!(pages > 2);
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
) -> Option<Page<Submission>> {
    let all = SubmissionFilter::default();
    store.list_submissions(workspace, form, &all, Order::NewestFirst, before, limit).await.unwrap()
}

/// All submissions of a form, read by pages of `limit`, newest first; each is there for itself, too.
async fn all(store: &dyn Store, form: FormId, limit: usize) -> Vec<SubmissionId> {
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = newest(store, workspace(1), form, before, limit).await.unwrap();
        assert!(page.rows.len() == limit || !page.more, "only the last page is short");
        before = page.rows.last().map(|last| last.id);
        for row in page.rows {
            let found = store.find_submission(workspace(1), form, row.id).await.unwrap();
            seen.push(row.id);
            assert_eq!(found, Some(row));
        }
        if !page.more {
            return seen;
        }
    }
}

async fn submissions_that_come_together_are_paged_one_by_one(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let mut expected = Vec::new();
    for (round, count) in [1, 90, 3, 128, 1, 17].into_iter().enumerate() {
        expected.extend(submit_together(&store, form, count, round as i64).await);
    }
    expected.reverse();
    for limit in [1, 2, 7, 50, 239, 240, 241] {
        assert_eq!(all(&*store, form, limit).await, expected, "pages of {limit}");
    }
    let unknown = SubmissionId::from_bytes([0xff; 16]);
    assert_eq!(store.find_submission(workspace(1), form, unknown).await.unwrap(), None);
    store.close().await.unwrap();
    let store = bench.open();
    assert_eq!(all(&*store, form, 100).await, expected);
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 240);
}

async fn a_search_has_what_its_filter_takes_in_either_order(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    for turn in 0..4 {
        submit_together(&store, form, 100, NOON + turn * 20).await;
    }
    let stored = newest(&*store, workspace(1), form, None, 1_000).await.unwrap().rows;
    let mut random = Random::new(7);
    for _ in 0..300 {
        let mut moment = || random.once_in(2).then(|| at(NOON - 5 + random.below(120) as i64));
        let (since, until) = (moment(), moment());
        let text = random.once_in(2).then(|| random.below(10).to_string());
        let order = *random.pick(&[Order::NewestFirst, Order::OldestFirst]);
        let takes = |found: &&Submission| {
            since.is_none_or(|since| found.submitted_at() >= since)
                && until.is_none_or(|until| found.submitted_at() < until)
                && text.as_ref().is_none_or(|text| found.answers[6..].contains(text))
        };
        let mut expected: Vec<_> = stored.iter().filter(takes).map(|found| found.id).collect();
        if order == Order::OldestFirst {
            expected.reverse();
        }
        let query = SubmissionQuery { since, until, text: text.clone(), ..SubmissionQuery::default() };
        let filter = SubmissionFilter::new(&query, &[]).unwrap();
        let (mut seen, mut after, limit) = (Vec::new(), None, 1 + random.below(150));
        loop {
            let page = store.list_submissions(workspace(1), form, &filter, order, after, limit).await;
            let page = page.unwrap().unwrap();
            assert!(page.rows.len() == limit || !page.more, "only the last page is short");
            seen.extend(page.rows.iter().map(|row| row.id));
            after = page.rows.last().map(|last| last.id);
            if !page.more {
                break;
            }
        }
        assert_eq!(seen, expected, "{query:?} {order:?} by {limit}");
        assert_eq!(store.count_filtered(workspace(1), form, &filter).await.unwrap(), seen.len() as u64);
    }
}

async fn a_long_search_comes_in_slices_and_can_be_given_up(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let text = format!("{{\"q1\":\"{}\"}}", "x".repeat(500_000));
    for number in 0..12 {
        submit(&*store, form, &text, number).await;
    }
    let query = SubmissionQuery { text: Some("y".to_owned()), ..SubmissionQuery::default() };
    let filter = SubmissionFilter::new(&query, &[]).unwrap();
    let mut polls = 0;
    let mut search = pin!(store.count_filtered(workspace(1), form, &filter));
    let counted = poll_fn(|context| {
        polls += 1;
        search.as_mut().poll(context)
    });
    assert_eq!(counted.await.unwrap(), 0);
    assert!(polls > 3, "6 MB were read in {polls} goes");
    // Whoever gives up gives the turn back.
    for _ in 0..100 {
        let mut search = pin!(store.count_filtered(workspace(1), form, &filter));
        let waits = poll_fn(|context| Poll::Ready(search.as_mut().poll(context).is_pending())).await;
        assert!(waits, "nothing is read on the caller's own thread");
    }
    assert_eq!(store.count_filtered(workspace(1), form, &filter).await.unwrap(), 0);
}

async fn times_that_come_again_keep_every_submission(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let mut expected = Vec::new();
    // The last two rounds are at a time that was there already, then at one that was not.
    for millis in [0, 100_000, 200_000, 0, 100_000, 100_000, 200_000, 300_000] {
        expected.extend(submit_together(&store, form, 20, millis).await);
    }
    expected.sort_unstable();
    expected.reverse();
    for limit in [1, 9, 200] {
        assert_eq!(all(&*store, form, limit).await, expected, "pages of {limit}");
    }
}

async fn a_clock_that_jumps_within_a_group_loses_nothing(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    submit_together(&store, form, 20, 200_000).await;
    for moments in [vec![0], vec![0, 199_999, 200_010], vec![300_000, 0, 300_000, 1, 199_998, 300_010]] {
        let mut tasks = tokio::task::JoinSet::new();
        for millis in moments.into_iter().flat_map(|millis| [millis; 20]) {
            let store = Arc::clone(&store);
            tasks.spawn(async move { submit(&*store, form, "{}", millis).await });
        }
        tasks.join_all().await;
        let count = store.count_submissions(workspace(1), form).await.unwrap();
        for limit in [1, 9, 200] {
            let seen = all(&*store, form, limit).await;
            assert!(seen.is_sorted_by(|one, next| one > next), "pages of {limit}: {seen:?}");
            assert_eq!(seen.len() as u64, count, "pages of {limit}");
        }
    }
}

async fn ids_rise_and_counters_are_exact_with_many_writers(bench: &impl Bench) {
    let store = bench.open();
    let forms = [published(&*store, 11).await, published(&*store, 12).await];
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..64 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut last = None;
            for round in 0..20 {
                let id = submit(&*store, forms[number % 2], "{\"q1\":\"x\"}", round).await;
                assert!(last < Some(id), "ids of one writer rise");
                // What was answered can be read at once.
                assert!(store.find_submission(workspace(1), forms[number % 2], id).await.unwrap().is_some());
                last = Some(id);
            }
        });
    }
    tasks.join_all().await;
    for form in forms {
        assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 640);
        let all = newest(&*store, workspace(1), form, None, 1_000).await.unwrap().rows;
        assert_eq!(all.len(), 640);
        assert!(all.windows(2).all(|pair| pair[0].id > pair[1].id));
    }
}

async fn a_clock_that_steps_back_is_ridden_out_or_followed(bench: &impl Bench) {
    let store = bench.open();
    let key = KeyText::draw(&Scrambled::new(3));
    forms::app::bootstrap(&*store, &key, &Scrambled::new(4), at(0)).await.unwrap();
    let signing_key = store.signing_key().await.unwrap();
    let form = published(&*store, 11).await;
    let first = submit(&*store, form, "{}", 100_000).await;
    let ridden_out = submit(&*store, form, "{}", 40_000).await;
    assert!(ridden_out > first && ridden_out.millis() == first.millis());
    assert_eq!(store.signing_key().await.unwrap(), signing_key);
    let followed = submit(&*store, form, "{}", 39_999).await;
    assert_eq!(followed.millis(), NOON + 39_999);
    assert_ne!(store.signing_key().await.unwrap(), signing_key, "cursors from before must end");
    let next = submit(&*store, form, "{}", 40_000).await;
    assert!(next > followed && next < first);
}

async fn a_repeated_request_makes_one_thing(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let operation = Operation::CreateSubmission(form);
    let attempt = |key, body| NewSubmission { retry: retry(operation, key, body), ..answers(form, "{}") };
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let (store, new) = (Arc::clone(&store), attempt(1, 5));
        tasks.spawn(async move { store.accept_submission(workspace(1), new, at(0)).await.unwrap() });
    }
    let steps = tasks.join_all().await;
    let done: Vec<_> =
        steps.iter().filter_map(|step| if let Step::Done(id) = step { Some(*id) } else { None }).collect();
    assert_eq!(done.len(), 1);
    assert!(steps.iter().all(|step| matches!(step, Step::Done(id) | Step::Replayed(id) if *id == done[0])));
    let other = store.accept_submission(workspace(1), attempt(1, 6), at(1)).await.unwrap();
    assert!(matches!(other, Step::Refused(Refusal::KeyReused)));
    let form_too =
        NewForm { id: form_id(30), definition: lunch(), retry: retry(Operation::CreateForm, 1, 5) };
    let again = NewForm { id: form_id(31), ..form_too.clone() };
    assert!(matches!(store.insert_form(workspace(1), form_too, at(7)).await.unwrap(), Step::Done(_)));
    store.close().await.unwrap();
    drop(store);
    let store = bench.open();
    let replayed = store.insert_form(workspace(1), again, at(8)).await.unwrap();
    assert!(matches!(replayed, Step::Replayed((id, made)) if id == form_id(30) && made == at(7)));
    let replayed = store.accept_submission(workspace(1), attempt(1, 5), at(9)).await.unwrap();
    assert!(matches!(replayed, Step::Replayed(id) if id == done[0]));
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 1);
    let remembered = store.find_remembered(&attempt(1, 5).retry.unwrap()).await.unwrap().unwrap();
    assert_eq!((remembered.body, remembered.at), (5, at(0)));
    assert_eq!(store.find_remembered(&attempt(2, 5).retry.unwrap()).await.unwrap(), None);
}

async fn a_memory_ends_after_a_day(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let attempt = |key| NewSubmission {
        retry: retry(Operation::CreateSubmission(form), key, 5),
        ..answers(form, "{}")
    };
    let day = 24 * 60 * 60 * 1_000;
    for key in 1..=3 {
        store.accept_submission(workspace(1), attempt(key), at(0)).await.unwrap();
    }
    let same = store.accept_submission(workspace(1), attempt(1), at(day - 1)).await.unwrap();
    assert!(matches!(same, Step::Replayed(_)));
    let anew = store.accept_submission(workspace(1), attempt(1), at(day)).await.unwrap();
    assert!(matches!(anew, Step::Done(_)));
    store.accept_submission(workspace(1), attempt(9), at(day + 1)).await.unwrap();
    store.accept_submission(workspace(1), attempt(8), at(day + 2)).await.unwrap();
    for swept in [2, 3] {
        assert_eq!(store.find_remembered(&attempt(swept).retry.unwrap()).await.unwrap(), None, "key {swept}");
    }
    assert!(store.find_remembered(&attempt(1).retry.unwrap()).await.unwrap().is_some(), "used again since");
}

async fn what_was_checked_against_another_revision_is_checked_again(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let stale = NewSubmission { checked_revision: 1, ..answers(form, "{}") };
    assert!(matches!(store.accept_submission(workspace(1), stale, at(0)).await.unwrap(), Step::Recheck));
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 0);
    let taken = NewForm { id: form, definition: lunch(), retry: None };
    assert!(matches!(store.insert_form(workspace(1), taken, at(0)).await.unwrap(), Step::Recheck));
}

async fn a_draft_refuses_and_an_unknown_form_is_missing(bench: &impl Bench) {
    let store = bench.open();
    let draft = make(&*store, 1, 11, 0).await;
    let new = NewSubmission { checked_revision: 1, ..answers(draft, "{}") };
    let refused = store.accept_submission(workspace(1), new, at(0)).await.unwrap();
    assert!(matches!(refused, Step::Refused(Refusal::Shut { why: Shut::Draft, .. })));
    let missing = store.accept_submission(workspace(1), answers(form_id(99), "{}"), at(0)).await.unwrap();
    assert!(matches!(missing, Step::Missing));
    assert!(newest(&*store, workspace(1), form_id(99), None, 5).await.is_none());
    assert_eq!(store.count_submissions(workspace(1), form_id(99)).await.unwrap(), 0);
}

async fn the_last_seats_are_taken_once(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let limited = change(r#"{"settings":{"max_responses":40}}"#);
    store.update_form(workspace(1), form, limited, Expected::Any, at(1)).await.unwrap();
    let send = |number: u128| NewSubmission {
        checked_revision: 3,
        retry: retry(Operation::CreateSubmission(form), number, 5),
        ..answers(form, "{}")
    };
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..64 {
        let (store, new) = (Arc::clone(&store), send(number));
        tasks.spawn(async move { store.accept_submission(workspace(1), new, at(2)).await.unwrap() });
    }
    let steps = tasks.join_all().await;
    assert_eq!(steps.iter().filter(|step| matches!(step, Step::Done(_))).count(), 40);
    assert_eq!(
        steps
            .iter()
            .filter(|step| matches!(step, Step::Refused(Refusal::Shut { why: Shut::Full, .. })))
            .count(),
        24
    );
    store.close().await.unwrap();
    drop(store);
    let store = bench.open();
    let one_more = store.accept_submission(workspace(1), send(99), at(3)).await.unwrap();
    assert!(matches!(one_more, Step::Refused(Refusal::Shut { why: Shut::Full, .. })));
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 40);
    // Who was let in before is told so again, full or not.
    let mut replayed = 0;
    for number in 0..64 {
        let step = store.accept_submission(workspace(1), send(number), at(4)).await.unwrap();
        replayed += usize::from(matches!(step, Step::Replayed(_)));
    }
    assert_eq!(replayed, 40);
}

async fn nothing_of_a_workspace_is_seen_from_another(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let id = submit(&*store, form, "{}", 0).await;
    let other = workspace(2);
    assert!(store.find_form(other, form).await.unwrap().is_none());
    assert!(store.list_forms(other, &FormFilter::default(), None, 10).await.unwrap().is_empty());
    let edit =
        store.update_form(other, form, change(r#"{"title":"x"}"#), Expected::Any, at(0)).await.unwrap();
    assert!(matches!(edit, Step::Missing));
    assert!(matches!(store.trash_form(other, form, Expected::Any, at(0)).await.unwrap(), Step::Missing));
    assert!(matches!(store.purge_form(other, form, Expected::Any).await.unwrap(), Step::Missing));
    let sent = store.accept_submission(other, answers(form, "{}"), at(0)).await.unwrap();
    assert!(matches!(sent, Step::Missing));
    assert_eq!(store.count_submissions(other, form).await.unwrap(), 0);
    assert!(store.find_submission(other, form, id).await.unwrap().is_none());
    assert!(newest(&*store, other, form, None, 10).await.is_none());
    assert!(store.find_submission(workspace(1), form, id).await.unwrap().is_some());
}

async fn a_trashed_form_is_gone_from_sight(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let id = submit(&*store, form, "{}", 0).await;
    assert!(matches!(
        store.trash_form(workspace(1), form, Expected::Any, at(5)).await.unwrap(),
        Step::Done(())
    ));
    assert!(matches!(
        store.trash_form(workspace(1), form, Expected::Any, at(6)).await.unwrap(),
        Step::Missing
    ));
    assert!(store.find_form(workspace(1), form).await.unwrap().is_none());
    assert!(store.list_forms(workspace(1), &FormFilter::default(), None, 10).await.unwrap().is_empty());
    assert!(store.find_submission(workspace(1), form, id).await.unwrap().is_none());
    assert!(newest(&*store, workspace(1), form, None, 10).await.is_none());
    let sent = store.accept_submission(workspace(1), answers(form, "{}"), at(0)).await.unwrap();
    assert!(matches!(sent, Step::Missing));
    let edit = store
        .update_form(workspace(1), form, change(r#"{"title":"x"}"#), Expected::Any, at(0))
        .await
        .unwrap();
    assert!(matches!(edit, Step::Missing));
    assert!(
        matches!(store.purge_form(workspace(1), form, Expected::Any).await.unwrap(), Step::Done(())),
        "the trash can be emptied"
    );
}

async fn trash(store: &dyn Store, form: FormId, millis: i64) {
    let step = store.trash_form(workspace(1), form, Expected::Any, at(millis)).await.unwrap();
    assert!(matches!(step, Step::Done(())), "{step:?}");
}

async fn a_restored_form_is_back_with_all_it_had(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let id = submit(&*store, form, "{}", 0).await;
    let before = store.find_form(workspace(1), form).await.unwrap().unwrap();
    let restore = |key, millis| {
        store.restore_form(workspace(1), form, retry(Operation::RestoreForm(form), key, 5), at(millis))
    };
    assert!(matches!(restore(1, 1).await.unwrap(), Step::Refused(Refusal::NotInTrash)));
    trash(&*store, form, 5).await;
    let Step::Done(back) = restore(2, 6).await.unwrap() else { panic!("not restored") };
    assert_eq!(*back.form, Form { revision: 4, ..Form::clone(&before.form) });
    assert!(matches!(restore(2, 7).await.unwrap(), Step::Replayed(again) if again.form == back.form));
    assert!(matches!(restore(3, 7).await.unwrap(), Step::Refused(Refusal::NotInTrash)));
    let other = store.restore_form(workspace(2), form, None, at(7)).await.unwrap();
    assert!(matches!(other, Step::Missing));
    store.close().await.unwrap();
    drop(store);
    let store = bench.open();
    let found = store.find_form(workspace(1), form).await.unwrap().unwrap();
    assert_eq!((found.form, found.version.number), (back.form, before.version.number));
    assert!(store.find_submission(workspace(1), form, id).await.unwrap().is_some());
    let listed = store.list_forms(workspace(1), &FormFilter::default(), None, 9).await.unwrap();
    assert_eq!(listed.iter().map(|(form, count)| (form.id, *count)).collect::<Vec<_>>(), [(form, 1)]);
    let in_trash = FormFilter { trashed: true, ..FormFilter::default() };
    assert_eq!(store.count_forms(workspace(1), &in_trash).await.unwrap(), 0);
    assert!(matches!(store.purge_form(workspace(1), form, Expected::Any).await.unwrap(), Step::Done(())));
    assert!(matches!(store.restore_form(workspace(1), form, None, at(9)).await.unwrap(), Step::Missing));
}

async fn the_trash_is_listed_by_the_time_of_deletion_and_emptied_by_it(bench: &impl Bench) {
    let store = bench.open();
    for number in 1..=2 {
        let id = workspace(number);
        store.insert_workspace(Workspace { id, name: "w".into(), created_at: at(0) }).await.unwrap();
    }
    for (form, deleted) in [(1, 30), (2, 10), (3, 20), (4, 10)] {
        make(&*store, 1, form, form as i64).await;
        trash(&*store, form_id(form), deleted).await;
    }
    let kept = make(&*store, 1, 5, 0).await;
    let foreign = make(&*store, 2, 6, 0).await;
    store.trash_form(workspace(2), foreign, Expected::Any, at(1)).await.unwrap();
    let in_trash = FormFilter { trashed: true, ..FormFilter::default() };
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_forms(workspace(1), &in_trash, after, 2).await.unwrap();
        let Some((last, _)) = page.last() else { break };
        after = Some((last.deleted_at.unwrap(), last.id));
        listed.extend(page.iter().map(|(form, _)| form.id));
    }
    assert_eq!(listed, [1, 3, 4, 2].map(form_id));
    assert_eq!(store.count_forms(workspace(1), &in_trash).await.unwrap(), 4);
    assert_eq!(store.empty_trash(at(20)).await.unwrap(), 3, "of both workspaces");
    assert_eq!(store.empty_trash(at(20)).await.unwrap(), 0);
    let left = store.list_forms(workspace(1), &in_trash, None, 9).await.unwrap();
    assert_eq!(left.iter().map(|(form, _)| form.id).collect::<Vec<_>>(), [1, 3].map(form_id));
    for gone in [2, 4] {
        let step = store.restore_form(workspace(1), form_id(gone), None, at(40)).await.unwrap();
        assert!(matches!(step, Step::Missing));
    }
    assert!(store.find_form(workspace(1), kept).await.unwrap().is_some());
}

async fn lists_have_what_their_filter_takes(bench: &impl Bench) {
    let store = bench.open();
    for number in 1..=9 {
        let id = make(&*store, 1, number, number as i64).await;
        let edit = match number % 3 {
            0 => r#"{"title":"\u00c9t\u00e9 of lunch","status":"published"}"#,
            1 => r#"{"title":"Dinner"}"#,
            _ => r#"{"status":"published"}"#,
        };
        let step = store.update_form(workspace(1), id, change(edit), Expected::Any, at(20)).await.unwrap();
        assert!(matches!(step, Step::Done(_)));
    }
    let filter =
        |status, title: Option<&str>| FormFilter { trashed: false, status, title: title.map(str::to_owned) };
    let cases = [
        (filter(None, None), &[9, 8, 7, 6, 5, 4, 3, 2, 1][..]),
        (filter(Some(Status::Draft), None), &[7, 4, 1]),
        (filter(Some(Status::Published), None), &[9, 8, 6, 5, 3, 2]),
        (filter(None, Some("LUNCH")), &[9, 8, 6, 5, 3, 2]),
        (filter(Some(Status::Published), Some("été")), &[9, 6, 3]),
        (filter(Some(Status::Draft), Some("lunch")), &[]),
    ];
    for (filter, expected) in cases {
        for limit in [1, 2, 3, 9] {
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let page = store.list_forms(workspace(1), &filter, after, limit).await.unwrap();
                let Some((last, _)) = page.last() else { break };
                assert!(page.len() <= limit);
                after = Some((last.created_at, last.id));
                seen.extend(page.iter().map(|(form, _)| form.id));
            }
            assert_eq!(
                seen,
                expected.iter().copied().map(form_id).collect::<Vec<_>>(),
                "{filter:?} by {limit}"
            );
        }
        assert_eq!(store.count_forms(workspace(1), &filter).await.unwrap(), expected.len() as u64);
    }
    assert_eq!(store.count_forms(workspace(2), &filter(None, None)).await.unwrap(), 0);
}

async fn a_slug_names_one_live_form_of_its_workspace(bench: &impl Bench) {
    let store = bench.open();
    let named = |form, slug: &str| NewForm {
        definition: definition(&format!(r#"{{"title":"F","slug":"{slug}"}}"#)),
        ..draft(form)
    };
    let holder = async |store: &dyn Store, slug: &str| store.find_slug(workspace(1), slug).await.unwrap();
    let taken_by = |refusal: &Refusal, form| matches!(refusal, Refusal::SlugTaken(violation) if violation.message.ends_with(&form_id(form).to_string()));
    // Many want the same: one gets it.
    let mut tasks = tokio::task::JoinSet::new();
    for form in 1..=64 {
        let (store, new) = (Arc::clone(&store), named(form, "tea"));
        tasks.spawn(async move { store.insert_form(workspace(1), new, at(0)).await.unwrap() });
    }
    let steps = tasks.join_all().await;
    let made: Vec<_> = steps
        .iter()
        .filter_map(|step| if let Step::Done((id, _)) = step { Some(*id) } else { None })
        .collect();
    assert_eq!(made.len(), 1);
    assert!(steps.iter().all(|step| matches!(step, Step::Done(_) | Step::Refused(Refusal::SlugTaken(_)))));
    assert_eq!(holder(&*store, "tea").await, Some(made[0]));
    let elsewhere = store.insert_form(workspace(2), named(70, "tea"), at(0)).await.unwrap();
    assert!(matches!(elsewhere, Step::Done(_)));
    // A change gives up the old one for the new one, or nothing happens.
    store.insert_form(workspace(1), named(80, "cake"), at(0)).await.unwrap();
    let slug = |form, slug: &str| {
        store.update_form(workspace(1), form, change(&format!(r#"{{"slug":{slug}}}"#)), Expected::Any, at(1))
    };
    let Step::Refused(refusal) = slug(made[0], "\"cake\"").await.unwrap() else { panic!("not refused") };
    assert!(taken_by(&refusal, 80), "{refusal:?}");
    assert_eq!(holder(&*store, "tea").await, Some(made[0]));
    assert!(matches!(slug(made[0], "\"milk\"").await.unwrap(), Step::Done(_)));
    assert_eq!((holder(&*store, "tea").await, holder(&*store, "milk").await), (None, Some(made[0])));
    assert!(matches!(slug(made[0], "\"milk\"").await.unwrap(), Step::Done(_)));
    assert!(matches!(slug(made[0], "null").await.unwrap(), Step::Done(_)));
    assert_eq!(holder(&*store, "milk").await, None);
    // The trash frees it, and may not give it back.
    trash(&*store, form_id(80), 5).await;
    assert_eq!(holder(&*store, "cake").await, None);
    store.insert_form(workspace(1), named(81, "cake"), at(6)).await.unwrap();
    let Step::Refused(refusal) = store.restore_form(workspace(1), form_id(80), None, at(7)).await.unwrap()
    else {
        panic!("not refused")
    };
    assert!(taken_by(&refusal, 81), "{refusal:?}");
    assert!(matches!(
        store.purge_form(workspace(1), form_id(81), Expected::Any).await.unwrap(),
        Step::Done(())
    ));
    assert_eq!(holder(&*store, "cake").await, None);
    store.close().await.unwrap();
    let store = bench.open();
    let back = store.restore_form(workspace(1), form_id(80), None, at(8)).await.unwrap();
    assert!(matches!(back, Step::Done(current) if current.form.slug.as_deref() == Some("cake")));
    assert_eq!(holder(&*store, "cake").await, Some(form_id(80)));
    // One in the trash that is erased leaves alone whoever has its slug now.
    trash(&*store, form_id(80), 9).await;
    store.insert_form(workspace(1), named(82, "cake"), at(10)).await.unwrap();
    assert!(matches!(
        store.purge_form(workspace(1), form_id(80), Expected::Any).await.unwrap(),
        Step::Done(())
    ));
    assert_eq!(holder(&*store, "cake").await, Some(form_id(82)));
}

async fn a_purged_form_is_gone_for_good(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let kept = published(&*store, 12).await;
    for number in 0..350 {
        submit(&*store, form, "{}", number).await;
    }
    let id = submit(&*store, kept, "{}", 0).await;
    assert!(matches!(store.purge_form(workspace(1), form, Expected::Any).await.unwrap(), Step::Done(())));
    assert!(matches!(store.purge_form(workspace(1), form, Expected::Any).await.unwrap(), Step::Missing));
    assert!(store.find_form(workspace(1), form).await.unwrap().is_none());
    store.close().await.unwrap();
    drop(store);
    let store = bench.open();
    assert!(store.find_form(workspace(1), form).await.unwrap().is_none());
    // The rest goes bit by bit, across the restart too; until it is gone the id is not given again.
    let gone = async {
        let new = NewForm { id: form, definition: lunch(), retry: None };
        while matches!(store.insert_form(workspace(1), new.clone(), at(0)).await.unwrap(), Step::Recheck) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), gone).await.unwrap();
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 0);
    assert!(newest(&*store, workspace(1), form, None, 10).await.unwrap().rows.is_empty());
    assert!(store.find_submission(workspace(1), kept, id).await.unwrap().is_some());
}

async fn a_closed_store_serves_no_more(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    store.close().await.unwrap();
    assert!(matches!(store.health(), Health::Stopped(_)));
    assert!(store.accept_submission(workspace(1), answers(form, "{}"), at(0)).await.is_err());
}
