//! Random operations on submissions, compared with a model.

use std::collections::BTreeMap;

use forms::domain::form::admission::Refusal;
use forms::domain::submission::filter::{Order, SubmissionFilter};
use forms::domain::submission::{EditInfo, Submission, SubmissionStatus};
use forms::id::{FormId, SubmissionId};
use forms::store::{StepResult, Store};
use futures_util::future::join_all;

use super::{
    COMPLETED, QUARANTINED, StoreFixture, all_pages, at, count, edit_submission, find_submission,
    list_uncounted, published_form, purge_submission, quarantine, release, restore_submission, submit,
    trash_submission, workspace,
};
use crate::engine::random::Random;

/// The submissions, in the trash, quarantined or neither, each with the answers that edits replaced.
type Model = BTreeMap<(FormId, SubmissionId), (Submission, Vec<String>)>;

#[derive(Debug, Clone)]
enum Operation {
    Submit(String),
    Edit(SubmissionId, u32, String),
    Trash(SubmissionId),
    Restore(SubmissionId),
    Purge(SubmissionId),
    Quarantine(String),
    Release(SubmissionId),
}

/// The outcome of an operation.
#[derive(Debug)]
enum Outcome {
    Created(SubmissionId),
    Done,
    Missing,
    NotInTrash,
    NotQuarantined,
}

async fn perform(store: &dyn Store, form: FormId, operation: &Operation, millis: i64) -> Outcome {
    let step = match operation {
        Operation::Submit(text) => return Outcome::Created(submit(store, form, text, millis).await),
        Operation::Quarantine(text) => return Outcome::Created(quarantine(store, form, text, millis).await),
        Operation::Release(id) => release(store, form, *id, millis).await.map(drop),
        Operation::Edit(id, seen, text) => {
            edit_submission(store, form, *id, *seen, text, millis).await.map(drop)
        }
        Operation::Trash(id) => trash_submission(store, form, *id, millis).await,
        Operation::Restore(id) => restore_submission(store, form, *id, millis).await.map(drop),
        Operation::Purge(id) => purge_submission(store, form, *id).await,
    };
    match step {
        StepResult::Done(()) => Outcome::Done,
        StepResult::Missing => Outcome::Missing,
        StepResult::Refused(Refusal::NotInTrash) => Outcome::NotInTrash,
        StepResult::Refused(Refusal::NotQuarantined) => Outcome::NotQuarantined,
        other => panic!("{operation:?}: {other:?}"),
    }
}

/// Applies `operation` to the model and returns whether `outcome` is the expected one.
fn apply(model: &mut Model, form: FormId, operation: Operation, outcome: &Outcome, millis: i64) -> bool {
    let id = match (&operation, outcome) {
        (Operation::Submit(text) | Operation::Quarantine(text), Outcome::Created(id)) => {
            let is_quarantined = matches!(operation, Operation::Quarantine(_));
            let new = Submission {
                id: *id,
                form,
                form_version: 1,
                status: if is_quarantined { QUARANTINED } else { COMPLETED },
                answers: text.as_str().into(),
                metadata: None,
                edited: None,
                deleted_at: is_quarantined.then_some(at(millis)),
            };
            return model.insert((form, *id), (new, Vec::new())).is_none();
        }
        (
            Operation::Edit(id, ..)
            | Operation::Trash(id)
            | Operation::Restore(id)
            | Operation::Purge(id)
            | Operation::Release(id),
            _,
        ) => *id,
        (Operation::Submit(_) | Operation::Quarantine(_), _) => return false,
    };
    let Some((known, replaced)) = model.get_mut(&(form, id)) else {
        return matches!(outcome, Outcome::Missing);
    };
    let (is_live, is_quarantined) = (known.deleted_at.is_none(), known.status == QUARANTINED);
    match operation {
        Operation::Edit(_, seen, text) if is_live => {
            replaced.push(known.answers.to_string());
            known.answers = text.into();
            known.metadata = Some(r#"{"by":"hand"}"#.into());
            known.edited = Some(EditInfo { at: at(millis), count: seen + 1 });
        }
        Operation::Trash(_) if is_live => known.deleted_at = Some(at(millis)),
        Operation::Release(_) if is_quarantined => {
            (known.status, known.deleted_at) = (SubmissionStatus::Completed, None);
        }
        Operation::Release(_) => return matches!(outcome, Outcome::NotQuarantined),
        Operation::Restore(_) if is_live || is_quarantined => return matches!(outcome, Outcome::NotInTrash),
        Operation::Restore(_) => known.deleted_at = None,
        Operation::Purge(_) => drop(model.remove(&(form, id))),
        Operation::Edit(..) | Operation::Trash(_) | Operation::Submit(_) | Operation::Quarantine(_) => {
            return matches!(outcome, Outcome::Missing);
        }
    }
    matches!(outcome, Outcome::Done)
}

struct Run {
    seed: u64,
    random: Random,
    model: Model,
    /// All ids ever assigned.
    assigned: Vec<(FormId, SubmissionId)>,
    millis: i64,
}

impl Run {
    /// Draws operations on different submissions, so that their order does not matter.
    fn operations(&mut self, forms: &[FormId]) -> Vec<(FormId, Operation)> {
        let mut operations = BTreeMap::new();
        for _ in 0..1 + self.random.below(12) {
            let Some((form, id)) = self.random_id() else { continue };
            let seen = self.model.get(&(form, id)).map_or(0, |(known, _)| known.edits());
            let operation = match self.random.below(11) {
                0 | 1 => Operation::Edit(id, seen, self.text()),
                2..5 => Operation::Trash(id),
                5..8 => Operation::Restore(id),
                8 | 9 => Operation::Release(id),
                _ => Operation::Purge(id),
            };
            operations.insert((form, id), operation);
        }
        let mut operations: Vec<_> =
            operations.into_iter().map(|((form, _), operation)| (form, operation)).collect();
        for _ in 0..self.random.below(10) {
            let new = if self.random.once_in(4) { Operation::Quarantine } else { Operation::Submit };
            let operation = (*self.random.pick(forms), new(self.text()));
            operations.insert(self.random.below(operations.len() + 1), operation);
        }
        operations
    }

    /// Draws an assigned id, more often a recent one.
    fn random_id(&mut self) -> Option<(FormId, SubmissionId)> {
        let last = if self.random.once_in(2) { 8 } else { usize::MAX };
        let candidates = self.assigned.len().min(last);
        self.assigned.iter().rev().nth(self.random.below(candidates + 1)).copied()
    }

    fn text(&mut self) -> String {
        let length = match self.random.below(12) {
            0 => 3_000 + self.random.below(3_000),
            _ => self.random.below(30),
        };
        format!("{{ \"q1\":\"{}\"}}", "x".repeat(length))
    }

    async fn step(&mut self, store: &dyn Store, forms: &[FormId]) {
        self.millis += match self.random.below(12) {
            // Back to times before existing submissions.
            0 => -100_000 - self.random.below(50_000) as i64,
            1 => 70_000,
            _ => self.random.below(4) as i64,
        };
        let mut changes = Vec::new();
        for (form, operation) in self.operations(forms) {
            // Within a group the clock may jump as well.
            let jump = if self.random.once_in(8) { -(self.random.below(150_000) as i64) } else { 0 };
            changes.push((form, operation, self.millis + jump));
        }
        let outcomes = changes.iter().map(|(form, change, millis)| perform(store, *form, change, *millis));
        let outcomes = join_all(outcomes).await;
        for ((form, operation, millis), outcome) in changes.into_iter().zip(outcomes) {
            if let Outcome::Created(id) = outcome {
                self.assigned.push((form, id));
            }
            let description = format!("{operation:?}: {outcome:?}");
            let is_expected = apply(&mut self.model, form, operation, &outcome, millis);
            assert!(is_expected, "run {}: {description}", self.seed);
        }
    }

    async fn check(&mut self, store: &dyn Store, forms: &[FormId]) {
        for form in forms {
            let of_form = self.model.iter().rev().filter(|((other, _), _)| other == form);
            let (live, trashed): (Vec<_>, Vec<_>) =
                of_form.map(|(_, known)| known.clone()).partition(|(known, _)| known.deleted_at.is_none());
            let known = |known: &[(Submission, Vec<String>)]| {
                known.iter().map(|(submission, _)| submission.clone()).collect::<Vec<_>>()
            };
            let limit = 1 + self.random.below(30);
            let mut expected = known(&live);
            let newest = read(store, *form, Order::NewestFirst, limit).await;
            assert_eq!(newest, expected, "run {}, pages of {limit}", self.seed);
            expected.reverse();
            let oldest = read(store, *form, Order::OldestFirst, limit).await;
            assert_eq!(oldest, expected, "run {}, pages of {limit}", self.seed);
            for status in SubmissionStatus::ALL {
                let mut expected = known(&trashed);
                expected.retain(|known| known.status == status);
                let trash = list_uncounted(store, *form, status, limit).await;
                assert_eq!(trash, expected, "run {}, {status}, pages of {limit}", self.seed);
            }
            assert_eq!(count(store, *form).await, live.len() as u64);
            for (submission, replaced) in &live {
                assert_eq!(find_submission(store, *form, submission.id).await.as_ref(), Some(submission));
                let id = submission.id;
                let history =
                    store.list_history(workspace(1).form(*form).submission(id), None, 1_000).await.unwrap();
                let texts = history.unwrap().rows.into_iter().rev().map(|row| row.answers.into_string());
                assert_eq!(texts.collect::<Vec<_>>(), *replaced);
            }
        }
        for (form, id) in &self.assigned {
            let known = self.model.get(&(*form, *id));
            let is_found = known.is_some_and(|(known, _)| known.trashed_at().is_none());
            assert_eq!(find_submission(store, *form, *id).await.is_some(), is_found, "{id}");
        }
    }
}

/// All live submissions of a form in one order, read by pages of `limit`.
async fn read(store: &dyn Store, form: FormId, order: Order, limit: usize) -> Vec<Submission> {
    let (form, all) = (workspace(1).form(form), SubmissionFilter::default());
    all_pages(async |after| store.list_submissions(form, &all, order, after, limit).await.unwrap().unwrap())
        .await
}

async fn check_seed(fixture: &impl StoreFixture, seed: u64) {
    let mut run =
        Run { seed, random: Random::new(seed), model: Model::new(), assigned: Vec::new(), millis: 200_000 };
    let mut store = fixture.open().await;
    let mut forms = Vec::new();
    for number in 1..=2 {
        forms.push(published_form(&*store, seed * 10 + number).await);
    }
    for _ in 0..5 {
        for _ in 0..6 {
            run.step(&*store, &forms).await;
        }
        run.check(&*store, &forms).await;
        if run.random.once_in(3) {
            store = match run.random.once_in(2) {
                true => fixture.rebuild(store).await,
                false => fixture.reopen(store).await,
            };
            run.check(&*store, &forms).await;
        }
    }
    store.close().await.unwrap();
}

pub(super) async fn random_operations_agree_with_a_model(fixture: &impl StoreFixture) {
    let count = std::env::var("FORMS_STORIES").map_or(6, |text| text.parse().unwrap());
    for seed in 0..count {
        check_seed(fixture, seed).await;
    }
}
