//! Pages of every list during concurrent creation, edits, deletion, restores and purges.
//!
//! A reader pages through each list while writers run. Each writer creates, trashes, restores and purges its own rows;
//! the other rows are at most edited, and the reader must see each of them exactly once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use forms::domain::form::filter::FormFilter;
use forms::domain::form::{Form, FormStatus};
use forms::domain::revision::ExpectedRevision;
use forms::domain::submission::Submission;
use forms::domain::submission::filter::{Order, SubmissionFilter, SubmissionQuery};
use forms::id::{FormId, SubmissionId};
use forms::store::{Page, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{
    COMPLETED, StoreFixture, all_pages, at, change_form, create_draft, done, edit_submission,
    find_submission, published_form, purge_form, purge_submission, restore_form, restore_submission, submit,
    submit_concurrently, trash_form, trash_submission, workspace,
};
use crate::engine::random::Random;

/// Rows of each kind that are kept, and the same number that writers trash, restore and purge.
const ROWS: usize = 48;
/// Concurrent writers.
const WRITERS: usize = 6;

/// The lowest form id, above all version numbers.
const FIRST_FORM: u64 = 1 << 40;
/// Times each list is read.
const PASSES: usize = 3;

#[derive(Debug, Clone)]
enum List {
    Submissions(SubmissionFilter, Order),
    SubmissionTrash,
    Forms(FormFilter),
}

/// The position of a row in its list, as in a cursor, and its id.
type Row = (u128, u128);

fn submission_key(id: SubmissionId) -> u128 {
    u128::from_be_bytes(id.to_bytes())
}

fn form_key(id: FormId) -> u128 {
    u64::from_be_bytes(id.to_bytes()).into()
}

/// A store under concurrent writes.
struct Workload {
    store: Arc<dyn Store>,
    /// The form of all submissions.
    form: FormId,
    /// Submissions that are at most edited.
    kept: Vec<SubmissionId>,
    /// Ids of purged rows, which later lists must not contain.
    purged: Mutex<BTreeSet<u128>>,
    time: AtomicI64,
    /// The number of writes so far.
    writes: watch::Sender<u64>,
}

impl Workload {
    /// Returns a time later than all before.
    fn now(&self) -> i64 {
        self.time.fetch_add(1, Ordering::Relaxed)
    }

    async fn pages<T, P>(&self, is_written: bool, read: impl AsyncFn(Option<P>) -> Page<T, P>) -> Vec<T> {
        let read = async |after| {
            if is_written {
                self.writes.subscribe().changed().await.unwrap();
            }
            read(after).await
        };
        all_pages(read).await
    }

    /// Reads a list by pages of `limit`, with writes before each page if `is_written`.
    async fn rows(&self, list: &List, limit: usize, is_written: bool) -> Vec<Row> {
        let (store, ws, form) = (&*self.store, workspace(1), workspace(1).form(self.form));
        let submission = |row: &Submission| (submission_key(row.id), submission_key(row.id));
        match list {
            List::Submissions(filter, order) => {
                let read = async |after| {
                    store.list_submissions(form, filter, *order, after, limit).await.unwrap().unwrap()
                };
                let rows = self.pages(is_written, read).await;
                assert!(rows.iter().all(|row| row.deleted_at.is_none() && filter.matches(&row.answers)));
                rows.iter().map(submission).collect()
            }
            List::SubmissionTrash => {
                let list = async |after| store.list_trashed_submissions(form, COMPLETED, after, limit).await;
                let read = async |after| list(after).await.unwrap().unwrap();
                let rows = self.pages(is_written, read).await;
                assert!(rows.iter().all(|row| row.deleted_at.is_some()));
                rows.iter().map(submission).collect()
            }
            List::Forms(filter) => {
                let read = async |after| store.list_forms(ws, filter, after, limit).await.unwrap();
                let rows = self.pages(is_written, read).await;
                assert!(rows.iter().all(|(form, _)| filter.matches(form)), "{list:?}: {rows:?}");
                let row = |form: &Form| {
                    let time = form.deleted_at.unwrap_or(form.created_at);
                    ((time.millis() as u128) << 64 | form_key(form.id), form_key(form.id))
                };
                rows.iter().map(|(form, _)| row(form)).collect()
            }
        }
    }

    /// Reads a list during concurrent writes, and fails unless it is sorted and has each row of `expected` once.
    async fn check(&self, list: &List, expected: &BTreeSet<u128>, limit: usize) {
        let purged = self.purged.lock().unwrap().clone();
        let rows = self.rows(list, limit, true).await;
        let is_in_order = match list {
            List::Submissions(_, Order::OldestFirst) => rows.is_sorted_by(|one, next| one.0 < next.0),
            _ => rows.is_sorted_by(|one, next| one.0 > next.0),
        };
        assert!(is_in_order, "{list:?}, pages of {limit}: {rows:x?}");
        let ids: BTreeSet<_> = rows.iter().map(|row| row.1).collect();
        assert_eq!(ids.len(), rows.len(), "{list:?}, pages of {limit}: a row appears twice");
        let missing: Vec<_> = expected.difference(&ids).collect();
        assert_eq!(missing, Vec::<&u128>::new(), "{list:?}, pages of {limit}, of {}", expected.len());
        assert!(ids.is_disjoint(&purged), "{list:?}, pages of {limit}: a purged row appears");
    }

    /// Each list with the ids in it that no writer trashes or purges.
    async fn lists(&self, submissions: &[SubmissionId], forms: &[FormId]) -> Vec<(List, BTreeSet<u128>)> {
        let ones = SubmissionQuery { text: Some("1".to_owned()), ..SubmissionQuery::default() };
        let ones = SubmissionFilter::new(&ones, &[]).unwrap();
        let (all, every) = (SubmissionFilter::default(), FormFilter::default());
        let tea = FormFilter { title: Some("tea".to_owned()), ..every.clone() };
        let lists = [
            List::Submissions(all.clone(), Order::NewestFirst),
            List::Submissions(all, Order::OldestFirst),
            List::Submissions(ones.clone(), Order::NewestFirst),
            List::Submissions(ones, Order::OldestFirst),
            List::SubmissionTrash,
            List::Forms(FormFilter { status: Some(FormStatus::Published), ..every.clone() }),
            List::Forms(FormFilter { trashed: true, ..every.clone() }),
            List::Forms(FormFilter { trashed: true, ..tea.clone() }),
            List::Forms(tea),
            List::Forms(every),
        ];
        let kept: BTreeSet<_> = submissions
            .iter()
            .map(|id| submission_key(*id))
            .chain(forms.iter().map(|id| form_key(*id)))
            .collect();
        let mut found = Vec::new();
        for list in lists {
            let ids = self.rows(&list, 1_000, false).await.into_iter().map(|row| row.1);
            let expected: BTreeSet<_> = ids.filter(|id| kept.contains(id)).collect();
            assert!(expected.len() > 7, "{list:?}: {expected:?}");
            found.push((list, expected));
        }
        found
    }

    /// Writes forever: changes the writer's own submissions and forms, and edits shared ones.
    async fn write_forever(&self, number: usize, mut submissions: Vec<SubmissionId>, mut forms: Vec<FormId>) {
        let mut random = Random::new(number as u64);
        loop {
            self.change_a_submission(&mut random, &mut submissions).await;
            self.change_a_form(&mut random, &mut forms).await;
            self.edit(*random.pick(&self.kept), "y".repeat(random.below(100))).await;
            self.writes.send_modify(|done| *done += 1);
        }
    }

    async fn change_a_submission(&self, random: &mut Random, own: &mut [SubmissionId]) {
        let (store, form, now) = (&*self.store, self.form, self.now());
        let index = random.below(own.len());
        let id = own[index];
        match random.below(8) {
            0..3 => drop(trash_submission(store, form, id, now).await),
            3..6 => drop(restore_submission(store, form, id, now).await),
            6 => self.edit(id, "1".to_owned()).await,
            _ => {
                done(purge_submission(store, form, id).await);
                self.purged.lock().unwrap().insert(submission_key(id));
                own[index] = submit(store, form, r#"{"q1":"2"}"#, now).await;
            }
        }
    }

    async fn change_a_form(&self, random: &mut Random, own: &mut [FormId]) {
        let (store, ws, now) = (&*self.store, workspace(1), self.now());
        let index = random.below(own.len());
        let id = own[index];
        match random.below(8) {
            0..2 => drop(store.trash_form(ws.form(id), ExpectedRevision::Any, at(now)).await.unwrap()),
            // Restored and trashed again concurrently.
            2..5 => {
                let out = store.restore_form(ws.form(id), None, at(now));
                let again = store.trash_form(ws.form(id), ExpectedRevision::Any, at(now));
                let (out, again) = tokio::join!(out, again);
                drop((out.unwrap(), again.unwrap()));
            }
            5 => drop(restore_form(store, id, now).await),
            6 => {
                let text = if random.once_in(2) { r#"{"title":"Tea"}"# } else { r#"{"status":"published"}"# };
                self.update(id, text).await;
            }
            _ => {
                done(purge_form(store, id).await);
                self.purged.lock().unwrap().insert(form_key(id));
                own[index] = create_draft(store, 1, 2 * FIRST_FORM + now as u64, now).await;
            }
        }
    }

    /// Appends `more` to the answer.
    async fn edit(&self, id: SubmissionId, more: String) {
        let Some(known) = find_submission(&*self.store, self.form, id).await else { return };
        let text = known.answers.replace("\"}", &format!("{more}\"}}"));
        edit_submission(&*self.store, self.form, id, known.edits(), &text, self.now()).await;
    }

    async fn update(&self, form: FormId, text: &str) {
        let updated = change_form(&*self.store, form, text, self.now());
        drop(updated.await);
    }
}

/// Creates submissions, alternately to be kept and to be changed; a third of each is in the trash.
async fn create_submissions(store: &dyn Store, form: FormId) -> [Vec<SubmissionId>; 2] {
    let mut ids = Vec::new();
    for round in 0..4 {
        ids.extend(submit_concurrently(store, form, ROWS / 2, round * 10).await);
    }
    for (number, id) in ids.iter().enumerate() {
        if number / 2 % 3 == 0 {
            done(trash_submission(store, form, *id, 100).await);
        }
    }
    split_alternately(ids)
}

/// Creates forms, alternately to be kept and to be changed; of each, half are in the trash, half are published.
async fn create_forms(store: &dyn Store) -> [Vec<FormId>; 2] {
    let mut ids = Vec::new();
    for number in 0..2 * ROWS {
        let id = create_draft(store, 1, FIRST_FORM + number as u64, 100 + number as i64).await;
        if number / 2 % 2 == 0 {
            done(change_form(store, id, r#"{"title":"Tea","status":"published"}"#, 200).await);
        }
        if number / 4 % 2 == 0 {
            trash_form(store, id, 300 + number as i64).await;
        }
        ids.push(id);
    }
    split_alternately(ids)
}

fn split_alternately<T: Copy>(all: Vec<T>) -> [Vec<T>; 2] {
    [0, 1].map(|first| all.iter().skip(first).step_by(2).copied().collect())
}

pub(super) async fn every_list_shows_each_unchanged_row_once_during_concurrent_writes(
    fixture: &impl StoreFixture,
) {
    let store = fixture.open().await;
    let form = published_form(&*store, 1).await;
    let [kept, changing] = create_submissions(&*store, form).await;
    let [kept_forms, changing_forms] = create_forms(&*store).await;
    let (purged, time) = (Mutex::default(), AtomicI64::new(1_000));
    let writes = watch::Sender::default();
    let workload = Arc::new(Workload { store, form, kept: kept.clone(), purged, time, writes });
    let lists = workload.lists(&kept, &kept_forms).await;
    let mut writers = JoinSet::new();
    let chunks =
        changing.chunks(changing.len().div_ceil(WRITERS)).zip(changing_forms.chunks(ROWS.div_ceil(WRITERS)));
    for (number, (submissions, forms)) in chunks.enumerate() {
        let (workload, submissions, forms) = (Arc::clone(&workload), submissions.to_vec(), forms.to_vec());
        writers.spawn(async move { workload.write_forever(number, submissions, forms).await });
    }
    let mut random = Random::new(1);
    for (list, expected) in lists.iter().cycle().take(PASSES * lists.len()) {
        workload.check(list, expected, 1 + random.below(20)).await;
    }
    if let Some(ended) = writers.try_join_next() {
        panic!("a writer ended: {ended:?}");
    }
}
