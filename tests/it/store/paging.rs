//! Pages of every list while others create, edit, delete, restore and purge: what is there all along is seen once.
//!
//! One reader, one law, and a few others who never rest. The others' own things come and go; the rest stays, and is
//! edited at most.

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
    Bench, at, change, edit, erase, form_id, found, make, published, put_back, remove, submit,
    submit_together, trash, update_form, workspace,
};
use crate::engine::random::Random;

/// Things of each sort that stay, and as many that do not.
const MANY: usize = 48;
/// Who changes things while lists are read.
const OTHERS: usize = 6;

/// Ids of forms begin here, so that no number of a version is one.
const FIRST_FORM: u64 = 1 << 40;
/// How often each list is read.
const PASSES: usize = 3;

#[derive(Debug, Clone)]
enum List {
    Submissions(SubmissionFilter, Order),
    SubmissionTrash,
    Forms(FormFilter),
    Versions,
    History,
}

/// Where a row stands in its list, as a cursor gives it, and what it is.
#[derive(Debug, Clone, Copy)]
struct Row {
    place: u128,
    name: u128,
}

impl Row {
    fn submission(id: SubmissionId) -> Self {
        Self { place: name(id), name: name(id) }
    }

    fn number(number: u32) -> Self {
        Self { place: number.into(), name: number.into() }
    }
}

fn name(id: SubmissionId) -> u128 {
    u128::from_be_bytes(id.to_bytes())
}

fn form_name(id: FormId) -> u128 {
    u64::from_be_bytes(id.to_bytes()).into()
}

/// A store that is never at rest.
struct Scene {
    store: Arc<dyn Store>,
    /// Where submissions come and go.
    form: FormId,
    /// What gets one version after another.
    growing: FormId,
    /// What is edited again and again.
    edited: SubmissionId,
    /// What stays, edited or not.
    kept: Vec<SubmissionId>,
    /// What was purged, and is in no list begun since.
    gone: Mutex<BTreeSet<u128>>,
    time: AtomicI64,
    /// How many deeds were done.
    deeds: watch::Sender<u64>,
}

impl Scene {
    /// The time, later than ever before.
    fn now(&self) -> i64 {
        self.time.fetch_add(1, Ordering::Relaxed)
    }

    async fn page(&self, list: &List, after: Option<u128>, limit: usize) -> (Vec<Row>, bool) {
        let (store, ws, form) = (&*self.store, workspace(1), self.form);
        let id = after.map(|place| SubmissionId::from_bytes(place.to_be_bytes()));
        let number = after.map(|place| place as u32);
        match list {
            List::Submissions(filter, order) => {
                let page =
                    store.list_submissions(ws, form, filter, *order, id, limit).await.unwrap().unwrap();
                for row in &page.rows {
                    assert!(row.deleted_at.is_none() && filter.matches(&row.answers), "{list:?}: {row:?}");
                }
                (page.rows.iter().map(|row| Row::submission(row.id)).collect(), page.next.is_some())
            }
            List::SubmissionTrash => {
                let page = store.list_trashed_submissions(ws, form, id, limit).await.unwrap().unwrap();
                assert!(page.rows.iter().all(|row| row.deleted_at.is_some()));
                (page.rows.iter().map(|row| Row::submission(row.id)).collect(), page.next.is_some())
            }
            List::Forms(filter) => {
                let moment = |place: u128| Timestamp::from_millis((place >> 64) as i64);
                let after = after.map(|place| (moment(place), form_id(place as u64)));
                let rows = store.list_forms(ws, filter, after, limit + 1).await.unwrap().rows;
                let row = |form: &Form| {
                    assert!(filter.matches(form), "{list:?}: {form:?}");
                    let name = form_name(form.id);
                    Row { place: (filter.sort_key(form).millis() as u128) << 64 | name, name }
                };
                (rows.iter().take(limit).map(|(form, _)| row(form)).collect(), rows.len() > limit)
            }
            List::Versions => {
                let page = store.list_versions(ws, self.growing, number, limit).await.unwrap().unwrap();
                (page.rows.iter().map(|row| Row::number(row.number)).collect(), page.more)
            }
            List::History => {
                let page = store.list_history(ws, form, self.edited, number, limit).await.unwrap().unwrap();
                (page.rows.iter().map(|row| Row::number(row.number)).collect(), page.more)
            }
        }
    }

    /// Reads all of a list by pages of `limit` while others go on, and holds it to the law.
    async fn read(&self, list: &List, stays: &BTreeSet<u128>, limit: usize) {
        let mut deeds = self.deeds.subscribe();
        let gone = self.gone.lock().unwrap().clone();
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let (rows, more) = self.page(list, after, limit).await;
            assert!(rows.len() <= limit && (!more || !rows.is_empty()), "{list:?}: {rows:?}");
            after = rows.last().map(|last| last.place);
            seen.extend(rows);
            if !more {
                break;
            }
            deeds.changed().await.unwrap();
        }
        let places: Vec<_> = seen.iter().map(|row| row.place).collect();
        let is_in_order = match list {
            List::Submissions(_, Order::OldestFirst) => places.is_sorted_by(|one, next| one < next),
            _ => places.is_sorted_by(|one, next| one > next),
        };
        assert!(is_in_order, "{list:?} by {limit}: {places:x?}");
        let names: BTreeSet<_> = seen.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), seen.len(), "{list:?} by {limit}: something is there twice");
        let missing: Vec<_> = stays.difference(&names).collect();
        assert!(missing.is_empty(), "{list:?} by {limit}: {missing:x?} of {} are missing", stays.len());
        assert!(names.is_disjoint(&gone), "{list:?} by {limit}: something was purged before");
    }

    /// The lists, and of each what is in it and stays.
    async fn lists(&self, staying: &[SubmissionId], forms: &[FormId]) -> Vec<(List, BTreeSet<u128>)> {
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
        let staying: BTreeSet<_> =
            staying.iter().map(|id| name(*id)).chain(forms.iter().map(|id| form_name(*id))).collect();
        let mut found = Vec::new();
        for list in lists {
            let (rows, more) = self.page(&list, None, 1_000).await;
            let is_numbered = matches!(list, List::Versions | List::History);
            let names = rows.iter().map(|row| row.name);
            let stays: BTreeSet<_> = names.filter(|name| is_numbered || staying.contains(name)).collect();
            assert!(!more && stays.len() > 7, "{list:?}: {stays:?}");
            found.push((list, stays));
        }
        found
    }

    /// Does one thing after another to its own submissions and forms, and to what may be edited.
    async fn never_rest(&self, number: usize, mut submissions: Vec<SubmissionId>, mut forms: Vec<FormId>) {
        let mut random = Random::new(number as u64);
        for turn in 0.. {
            self.to_a_submission(&mut random, &mut submissions).await;
            self.to_a_form(&mut random, &mut forms).await;
            match number {
                0 => self.edit(self.edited, turn.to_string()).await,
                1 => self.ask(turn).await,
                _ => self.edit(*random.pick(&self.kept), "y".repeat(random.below(100))).await,
            }
            self.deeds.send_modify(|done| *done += 1);
        }
    }

    async fn to_a_submission(&self, random: &mut Random, own: &mut [SubmissionId]) {
        let (store, form, now) = (&*self.store, self.form, self.now());
        let place = random.below(own.len());
        let id = own[place];
        match random.below(8) {
            0..3 => drop(remove(store, form, id, now).await),
            3..6 => drop(put_back(store, form, id, now).await),
            6 => self.edit(id, "1".to_owned()).await,
            _ => {
                let step = erase(store, form, id).await;
                assert!(matches!(step, StepResult::Done(())), "{step:?}");
                self.gone.lock().unwrap().insert(name(id));
                own[place] = submit(store, form, r#"{"q1":"2"}"#, now).await;
            }
        }
    }

    async fn to_a_form(&self, random: &mut Random, own: &mut [FormId]) {
        let (store, ws, now) = (&*self.store, workspace(1), self.now());
        let place = random.below(own.len());
        let id = own[place];
        match random.below(8) {
            0..2 => drop(store.trash_form(ws, id, ExpectedRevision::Any, at(now)).await.unwrap()), // Out and in again at once.
            2..5 => {
                let out = store.restore_form(ws, id, None, at(now));
                let again = store.trash_form(ws, id, ExpectedRevision::Any, at(now));
                let (out, again) = tokio::join!(out, again);
                drop((out.unwrap(), again.unwrap()));
            }
            5 => drop(store.restore_form(ws, id, None, at(now)).await.unwrap()),
            6 => {
                let text = if random.once_in(2) { r#"{"title":"Tea"}"# } else { r#"{"status":"published"}"# };
                self.update(id, text).await;
            }
            _ => {
                let step = store.purge_form(ws, id, ExpectedRevision::Any).await.unwrap();
                assert!(matches!(step, StepResult::Done(())), "{step:?}");
                self.gone.lock().unwrap().insert(form_name(id));
                own[place] = make(store, 1, 2 * FIRST_FORM + now as u64, now).await;
            }
        }
    }

    /// Writes `more` behind the answer.
    async fn edit(&self, id: SubmissionId, more: String) {
        let Some(known) = found(&*self.store, self.form, id).await else { return };
        let text = known.answers.replace("\"}", &format!("{more}\"}}"));
        edit(&*self.store, self.form, id, known.edits(), &text, self.now()).await;
    }

    /// Makes a version of what grows.
    async fn ask(&self, number: usize) {
        let text = format!(r#"{{"questions":[{{"id":"q1","type":"short_text","title":"{number}"}}]}}"#);
        self.update(self.growing, &text).await;
    }

    async fn update(&self, form: FormId, text: &str) {
        let updated = update_form(
            &*self.store,
            workspace(1),
            form,
            change(text),
            ExpectedRevision::Any,
            at(self.now()),
        );
        drop(updated.await);
    }
}

/// Submissions that stay and ones that do not, by turns; of either a few in the trash.
async fn many_submissions(store: &Arc<dyn Store>, form: FormId) -> [Vec<SubmissionId>; 2] {
    let mut ids = Vec::new();
    for round in 0..4 {
        ids.extend(submit_together(store, form, MANY / 2, round * 10).await);
    }
    for (number, id) in ids.iter().enumerate() {
        if number / 2 % 3 == 0 {
            assert!(matches!(remove(&**store, form, *id, 100).await, StepResult::Done(())));
        }
    }
    by_turns(ids)
}

/// Forms that stay and ones that do not, by turns; of either some in the trash, some published, some about tea.
async fn many_forms(store: &dyn Store) -> [Vec<FormId>; 2] {
    let mut ids = Vec::new();
    for number in 0..2 * MANY {
        let id = make(store, 1, FIRST_FORM + number as u64, 100 + number as i64).await;
        if number / 2 % 2 == 0 {
            let edit = change(r#"{"title":"Tea","status":"published"}"#);
            update_form(store, workspace(1), id, edit, ExpectedRevision::Any, at(200)).await;
        }
        if number / 4 % 2 == 0 {
            trash(store, id, 300 + number as i64).await;
        }
        ids.push(id);
    }
    by_turns(ids)
}

fn by_turns<T: Copy>(all: Vec<T>) -> [Vec<T>; 2] {
    [0, 1].map(|first| all.iter().skip(first).step_by(2).copied().collect())
}

pub(super) async fn what_stays_is_seen_once_in_every_list_whatever_others_do(bench: &impl Bench) {
    let store = bench.open();
    let (form, growing) = (published(&*store, 1).await, make(&*store, 1, 2, 0).await);
    let edited = submit(&*store, form, r#"{"q1":""}"#, 0).await;
    let [staying, going] = many_submissions(&store, form).await;
    let [staying_forms, going_forms] = many_forms(&*store).await;
    let (gone, time) = (Mutex::default(), AtomicI64::new(1_000));
    let scene = Scene {
        store,
        form,
        growing,
        edited,
        kept: staying.clone(),
        gone,
        time,
        deeds: watch::Sender::default(),
    };
    let scene = Arc::new(scene);
    for turn in 0..MANY {
        scene.ask(MANY + turn).await;
        scene.edit(edited, turn.to_string()).await;
    }
    let lists = scene.lists(&staying, &staying_forms).await;
    let mut others = JoinSet::new();
    let shares = going.chunks(going.len().div_ceil(OTHERS)).zip(going_forms.chunks(MANY.div_ceil(OTHERS)));
    for (number, (submissions, forms)) in shares.enumerate() {
        let (scene, submissions, forms) = (Arc::clone(&scene), submissions.to_vec(), forms.to_vec());
        others.spawn(async move { scene.never_rest(number, submissions, forms).await });
    }
    let mut random = Random::new(1);
    for (list, stays) in lists.iter().cycle().take(PASSES * lists.len()) {
        scene.read(list, stays, 1 + random.below(20)).await;
    }
    if let Some(ended) = others.try_join_next() {
        panic!("{ended:?}, and nobody ever rests");
    }
}
