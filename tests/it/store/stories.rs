//! Random lives of submissions, held against a model of a dozen lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use forms::domain::form::admission::Refusal;
use forms::domain::submission::filter::{Order, SubmissionFilter};
use forms::domain::submission::{EditInfo, Submission, SubmissionStatus};
use forms::id::{FormId, SubmissionId};
use forms::store::{StepResult, Store};

use super::{Bench, at, edit, erase, found, in_trash, published, put_back, remove, submit, workspace};
use crate::engine::random::Random;

/// What there is, in the trash or not, each with the texts that edits replaced.
type Model = BTreeMap<(FormId, SubmissionId), (Submission, Vec<String>)>;

/// What happens to one submission, or makes one.
#[derive(Debug, Clone)]
enum Deed {
    Submit(String),
    Edit(SubmissionId, u32, String),
    Remove(SubmissionId),
    PutBack(SubmissionId),
    Erase(SubmissionId),
}

/// What became of a deed.
#[derive(Debug)]
enum Outcome {
    Made(SubmissionId),
    Done,
    Missing,
    NotInTrash,
}

async fn happen(store: &dyn Store, form: FormId, deed: &Deed, millis: i64) -> Outcome {
    let step = match deed {
        Deed::Submit(text) => return Outcome::Made(submit(store, form, text, millis).await),
        Deed::Edit(id, seen, text) => edit(store, form, *id, *seen, text, millis).await.map(drop),
        Deed::Remove(id) => remove(store, form, *id, millis).await,
        Deed::PutBack(id) => put_back(store, form, *id, millis).await.map(drop),
        Deed::Erase(id) => erase(store, form, *id).await,
    };
    match step {
        StepResult::Done(()) => Outcome::Done,
        StepResult::Missing => Outcome::Missing,
        StepResult::Refused(Refusal::NotInTrash) => Outcome::NotInTrash,
        other => panic!("{deed:?}: {other:?}"),
    }
}

/// What `deed` does to the model, and whether `outcome` is what it should have come to.
fn agrees(model: &mut Model, form: FormId, deed: Deed, outcome: &Outcome, millis: i64) -> bool {
    let id = match (&deed, outcome) {
        (Deed::Submit(text), Outcome::Made(id)) => {
            let new = Submission {
                id: *id,
                form,
                form_version: 1,
                status: SubmissionStatus::Completed,
                answers: text.as_str().into(),
                metadata: None,
                edited: None,
                deleted_at: None,
            };
            return model.insert((form, *id), (new, Vec::new())).is_none();
        }
        (Deed::Edit(id, ..) | Deed::Remove(id) | Deed::PutBack(id) | Deed::Erase(id), _) => *id,
        (Deed::Submit(_), _) => return false,
    };
    let Some((known, replaced)) = model.get_mut(&(form, id)) else {
        return matches!(outcome, Outcome::Missing);
    };
    let is_live = known.deleted_at.is_none();
    match deed {
        Deed::Edit(_, seen, text) if is_live => {
            replaced.push(known.answers.to_string());
            known.answers = text.into();
            known.metadata = Some(r#"{"by":"hand"}"#.into());
            known.edited = Some(EditInfo { at: at(millis), count: seen + 1 });
        }
        Deed::Remove(_) if is_live => known.deleted_at = Some(at(millis)),
        Deed::PutBack(_) if is_live => return matches!(outcome, Outcome::NotInTrash),
        Deed::PutBack(_) => known.deleted_at = None,
        Deed::Erase(_) => drop(model.remove(&(form, id))),
        Deed::Edit(..) | Deed::Remove(_) | Deed::Submit(_) => return matches!(outcome, Outcome::Missing),
    }
    matches!(outcome, Outcome::Done)
}

struct Story {
    seed: u64,
    random: Random,
    model: Model,
    /// All ids that were ever given.
    given: Vec<(FormId, SubmissionId)>,
    millis: i64,
}

impl Story {
    /// Deeds of submissions that have nothing to do with each other, so that their order does not matter.
    fn deeds(&mut self, forms: &[FormId]) -> Vec<(FormId, Deed)> {
        let mut deeds = BTreeMap::new();
        for _ in 0..1 + self.random.below(12) {
            let Some((form, id)) = self.some_id() else { continue };
            let seen = self.model.get(&(form, id)).map_or(0, |(known, _)| known.edits());
            let deed = match self.random.below(9) {
                0 | 1 => Deed::Edit(id, seen, self.text()),
                2..5 => Deed::Remove(id),
                5..8 => Deed::PutBack(id),
                _ => Deed::Erase(id),
            };
            deeds.insert((form, id), deed);
        }
        let mut deeds: Vec<_> = deeds.into_iter().map(|((form, _), deed)| (form, deed)).collect();
        for _ in 0..self.random.below(10) {
            let deed = (*self.random.pick(forms), Deed::Submit(self.text()));
            deeds.insert(self.random.below(deeds.len() + 1), deed);
        }
        deeds
    }

    /// One of those that were given, the last ones rather than others.
    fn some_id(&mut self) -> Option<(FormId, SubmissionId)> {
        let last = if self.random.once_in(2) { 8 } else { usize::MAX };
        let among = self.given.len().min(last);
        self.given.iter().rev().nth(self.random.below(among + 1)).copied()
    }

    fn text(&mut self) -> String {
        let length = match self.random.below(12) {
            0 => 3_000 + self.random.below(3_000),
            _ => self.random.below(30),
        };
        format!("{{ \"q1\":\"{}\"}}", "x".repeat(length))
    }

    async fn go_on(&mut self, store: &Arc<dyn Store>, forms: &[FormId]) {
        self.millis += match self.random.below(12) {
            // Back to times that have submissions.
            0 => -100_000 - self.random.below(50_000) as i64,
            1 => 70_000,
            _ => self.random.below(4) as i64,
        };
        let mut tasks = tokio::task::JoinSet::new();
        for (form, deed) in self.deeds(forms) {
            let (store, millis) = (Arc::clone(store), self.millis);
            tasks.spawn(async move {
                let outcome = happen(&*store, form, &deed, millis).await;
                (form, deed, outcome)
            });
        }
        for (form, deed, outcome) in tasks.join_all().await {
            if let Outcome::Made(id) = outcome {
                self.given.push((form, id));
            }
            let told = format!("{deed:?}: {outcome:?}");
            assert!(
                agrees(&mut self.model, form, deed, &outcome, self.millis),
                "story {}: {told}",
                self.seed
            );
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
            assert_eq!(newest, expected, "story {}, pages of {limit}", self.seed);
            expected.reverse();
            let oldest = read(store, *form, Order::OldestFirst, limit).await;
            assert_eq!(oldest, expected, "story {}, pages of {limit}", self.seed);
            assert_eq!(
                in_trash(store, *form, limit).await,
                known(&trashed),
                "story {}, pages of {limit}",
                self.seed
            );
            let count = store.count_submissions(workspace(1), *form).await.unwrap();
            assert_eq!(count, live.len() as u64);
            for (submission, replaced) in &live {
                assert_eq!(found(store, *form, submission.id).await.as_ref(), Some(submission));
                let id = submission.id;
                let history = store.list_history(workspace(1), *form, id, None, 1_000).await.unwrap();
                let texts = history.unwrap().rows.into_iter().rev().map(|row| row.answers.into_string());
                assert_eq!(texts.collect::<Vec<_>>(), *replaced);
            }
        }
        for (form, id) in &self.given {
            let is_live = self.model.get(&(*form, *id)).is_some_and(|(known, _)| known.deleted_at.is_none());
            assert_eq!(found(store, *form, *id).await.is_some(), is_live, "{id}");
        }
    }
}

/// All live submissions of a form in one order, read by pages of `limit`.
async fn read(store: &dyn Store, form: FormId, order: Order, limit: usize) -> Vec<Submission> {
    let all = SubmissionFilter::default();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page =
            store.list_submissions(workspace(1), form, &all, order, after, limit).await.unwrap().unwrap();
        after = page.next;
        seen.extend(page.rows);
        if after.is_none() {
            return seen;
        }
    }
}

async fn tell(bench: &impl Bench, seed: u64) {
    let mut story =
        Story { seed, random: Random::new(seed), model: Model::new(), given: Vec::new(), millis: 200_000 };
    let mut store = bench.open();
    let mut forms = Vec::new();
    for number in 1..=2 {
        forms.push(published(&*store, seed * 10 + number).await);
    }
    for _ in 0..5 {
        for _ in 0..6 {
            story.go_on(&store, &forms).await;
        }
        story.check(&*store, &forms).await;
        if story.random.once_in(3) {
            store.close().await.unwrap();
            if story.random.once_in(2) {
                bench.strip();
            }
            store = bench.open();
            story.check(&*store, &forms).await;
        }
    }
    store.close().await.unwrap();
}

pub(super) async fn random_lives_agree_with_a_model(bench: &impl Bench) {
    let count = std::env::var("FORMS_STORIES").map_or(12, |text| text.parse().unwrap());
    for seed in 0..count {
        tell(bench, seed).await;
    }
}
