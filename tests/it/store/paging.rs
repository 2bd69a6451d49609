//! Pages of every list during concurrent creation, edits, deletion, restores and purges.
//!
//! A reader pages through each list while writers run. Each writer creates, trashes, restores and purges its own rows;
//! the other rows are at most edited, and the reader must see each of them exactly once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use forms::clock::Timestamp;
use forms::domain::form::filter::FormFilter;
use forms::domain::form::{Form, FormStatus};
use forms::domain::revision::ExpectedRevision;
use forms::domain::submission::filter::{Order, SubmissionFilter, SubmissionQuery};
use forms::id::{FormId, SubmissionId};
use forms::store::{StepResult, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{
    StoreFixture, at, create_draft, edit_submission, find_submission, form_id, patch, published_form,
    purge_submission, restore_submission, submit, submit_concurrently, trash_form, trash_submission,
    update_form, workspace,
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
    Versions,
    History,
}

/// The position of a row in its list, as in a cursor, and its id.
#[derive(Debug, Clone, Copy)]
struct Row {
    position: u128,
    id: u128,
}

impl Row {
    fn submission(id: SubmissionId) -> Self {
        Self { position: submission_key(id), id: submission_key(id) }
    }

    fn number(number: u32) -> Self {
        Self { position: number.into(), id: number.into() }
    }
}

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
    /// A form that gets new versions.
    versioned: FormId,
    /// A submission that is edited repeatedly.
    edited: SubmissionId,
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

    async fn page(&self, list: &List, after: Option<u128>, limit: usize) -> (Vec<Row>, bool) {
        let (store, ws, form) = (&*self.store, workspace(1), self.form);
        let id = after.map(|position| SubmissionId::from_bytes(position.to_be_bytes()));
        let number = after.map(|position| position as u32);
        match list {
            List::Submissions(filter, order) => {
                let page =
                    store.list_submissions(ws.form(form), filter, *order, id, limit).await.unwrap().unwrap();
                for row in &page.rows {
                    assert!(row.deleted_at.is_none() && filter.matches(&row.answers), "{list:?}: {row:?}");
                }
                (page.rows.iter().map(|row| Row::submission(row.id)).collect(), page.next.is_some())
            }
            List::SubmissionTrash => {
                let page = store.list_trashed_submissions(ws.form(form), id, limit).await.unwrap().unwrap();
                assert!(page.rows.iter().all(|row| row.deleted_at.is_some()));
                (page.rows.iter().map(|row| Row::submission(row.id)).collect(), page.next.is_some())
            }
            List::Forms(filter) => {
                let moment = |position: u128| Timestamp::from_millis((position >> 64) as i64);
                let after = after.map(|position| (moment(position), form_id(position as u64)));
                let page = store.list_forms(ws, filter, after, limit).await.unwrap();
                let row = |form: &Form| {
                    assert!(filter.matches(form), "{list:?}: {form:?}");
                    let id = form_key(form.id);
                    let time = form.deleted_at.unwrap_or(form.created_at);
                    Row { position: (time.millis() as u128) << 64 | id, id }
                };
                (page.rows.iter().map(|(form, _)| row(form)).collect(), page.next.is_some())
            }
            List::Versions => {
                let page =
                    store.list_versions(ws.form(self.versioned), number, limit).await.unwrap().unwrap();
                (page.rows.iter().map(|row| Row::number(row.number)).collect(), page.next.is_some())
            }
            List::History => {
                let page = store
                    .list_history(ws.form(form).submission(self.edited), number, limit)
                    .await
                    .unwrap()
                    .unwrap();
                (page.rows.iter().map(|row| Row::number(row.number)).collect(), page.next.is_some())
            }
        }
    }

    /// Reads a list by pages of `limit` during concurrent writes, and fails unless it is sorted and has each row of
    /// `expected` once.
    async fn read(&self, list: &List, expected: &BTreeSet<u128>, limit: usize) {
        let mut writes = self.writes.subscribe();
        let purged = self.purged.lock().unwrap().clone();
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let (rows, more) = self.page(list, after, limit).await;
            assert!(rows.len() <= limit && (!more || !rows.is_empty()), "{list:?}: {rows:?}");
            after = rows.last().map(|last| last.position);
            seen.extend(rows);
            if !more {
                break;
            }
            writes.changed().await.unwrap();
        }
        let positions: Vec<_> = seen.iter().map(|row| row.position).collect();
        let is_in_order = match list {
            List::Submissions(_, Order::OldestFirst) => positions.is_sorted_by(|one, next| one < next),
            _ => positions.is_sorted_by(|one, next| one > next),
        };
        assert!(is_in_order, "{list:?}, pages of {limit}: {positions:x?}");
        let ids: BTreeSet<_> = seen.iter().map(|row| row.id).collect();
        assert_eq!(ids.len(), seen.len(), "{list:?}, pages of {limit}: a row appears twice");
        let missing: Vec<_> = expected.difference(&ids).collect();
        assert!(
            missing.is_empty(),
            "{list:?}, pages of {limit}: {missing:x?} of {} are missing",
            expected.len()
        );
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
            List::Versions,
            List::History,
        ];
        let kept: BTreeSet<_> = submissions
            .iter()
            .map(|id| submission_key(*id))
            .chain(forms.iter().map(|id| form_key(*id)))
            .collect();
        let mut found = Vec::new();
        for list in lists {
            let (rows, more) = self.page(&list, None, 1_000).await;
            let is_numbered = matches!(list, List::Versions | List::History);
            let ids = rows.iter().map(|row| row.id);
            let expected: BTreeSet<_> = ids.filter(|id| is_numbered || kept.contains(id)).collect();
            assert!(!more && expected.len() > 7, "{list:?}: {expected:?}");
            found.push((list, expected));
        }
        found
    }

    /// Writes forever: changes the writer's own submissions and forms, and edits shared ones.
    async fn write_forever(&self, number: usize, mut submissions: Vec<SubmissionId>, mut forms: Vec<FormId>) {
        let mut random = Random::new(number as u64);
        for turn in 0.. {
            self.change_a_submission(&mut random, &mut submissions).await;
            self.change_a_form(&mut random, &mut forms).await;
            match number {
                0 => self.edit(self.edited, turn.to_string()).await,
                1 => self.add_version(turn).await,
                _ => self.edit(*random.pick(&self.kept), "y".repeat(random.below(100))).await,
            }
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
                let step = purge_submission(store, form, id).await;
                assert!(matches!(step, StepResult::Done(())), "{step:?}");
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
            5 => drop(store.restore_form(ws.form(id), None, at(now)).await.unwrap()),
            6 => {
                let text = if random.once_in(2) { r#"{"title":"Tea"}"# } else { r#"{"status":"published"}"# };
                self.update(id, text).await;
            }
            _ => {
                let step = store.purge_form(ws.form(id), ExpectedRevision::Any).await.unwrap();
                assert!(matches!(step, StepResult::Done(())), "{step:?}");
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

    /// Adds a version to the versioned form.
    async fn add_version(&self, number: usize) {
        let text = format!(r#"{{"questions":[{{"id":"q1","type":"short_text","title":"{number}"}}]}}"#);
        self.update(self.versioned, &text).await;
    }

    async fn update(&self, form: FormId, text: &str) {
        let updated =
            update_form(&*self.store, workspace(1), form, patch(text), ExpectedRevision::Any, at(self.now()));
        drop(updated.await);
    }
}

/// Creates submissions, alternately to be kept and to be changed; a third of each is in the trash.
async fn create_submissions(store: &Arc<dyn Store>, form: FormId) -> [Vec<SubmissionId>; 2] {
    let mut ids = Vec::new();
    for round in 0..4 {
        ids.extend(submit_concurrently(store, form, ROWS / 2, round * 10).await);
    }
    for (number, id) in ids.iter().enumerate() {
        if number / 2 % 3 == 0 {
            assert!(matches!(trash_submission(&**store, form, *id, 100).await, StepResult::Done(())));
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
            let edit = patch(r#"{"title":"Tea","status":"published"}"#);
            update_form(store, workspace(1), id, edit, ExpectedRevision::Any, at(200)).await;
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
    let store = fixture.open();
    let (form, versioned) = (published_form(&*store, 1).await, create_draft(&*store, 1, 2, 0).await);
    let edited = submit(&*store, form, r#"{"q1":""}"#, 0).await;
    let [kept, changing] = create_submissions(&store, form).await;
    let [kept_forms, changing_forms] = create_forms(&*store).await;
    let (purged, time) = (Mutex::default(), AtomicI64::new(1_000));
    let workload = Workload {
        store,
        form,
        versioned,
        edited,
        kept: kept.clone(),
        purged,
        time,
        writes: watch::Sender::default(),
    };
    let workload = Arc::new(workload);
    for turn in 0..ROWS {
        workload.add_version(ROWS + turn).await;
        workload.edit(edited, turn.to_string()).await;
    }
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
        workload.read(list, expected, 1 + random.below(20)).await;
    }
    if let Some(ended) = writers.try_join_next() {
        panic!("a writer ended: {ended:?}");
    }
}
