//! The summary of the answers to a form: counts, averages and a timeline, by one pass over its submissions.
//!
//! Memory is bounded whatever was answered: [`MEMORY`] for the different texts and numbers of all questions together. What needs
//! values that did not fit, such as a median, is left out; what is reported is exact.

mod answers;
mod numbers;
pub mod report;
mod tally;
pub mod timeline;

use std::collections::{HashMap, HashSet};

use crate::domain::json::{self, Value};
use crate::domain::question::Question;
use crate::domain::submission::Submission;

use answers::AnswerCounts;
use report::{QuestionSummary, Summary, Totals};
use timeline::Timeline;

/// Bytes for the different values of all questions together; twice as many if they are options.
const MEMORY: usize = 8 << 20;

/// A [`Summary`] in the making.
#[derive(Debug)]
pub struct Summarizer {
    responses: u64,
    timeline: Timeline,
    answers: Vec<AnswerCounts>,
    /// The indices into `answers` by the ids that questions have, and by those that they had.
    places: [HashMap<String, usize>; 2],
}

impl Summarizer {
    /// Begins a summary of the answers to `questions`.
    pub fn new(questions: &[Question]) -> Self {
        let memory = MEMORY / questions.len().max(1);
        let answers = asked(questions).map(|(_, question)| AnswerCounts::new(question, memory)).collect();
        let present = asked(questions).zip(0..).map(|((id, _), place)| (id.clone(), place)).collect();
        let was = |(place, question): (usize, &Question)| {
            question.was.iter().map(|id| (id.clone(), place)).collect::<Vec<_>>()
        };
        let earlier = asked(questions).map(|(_, question)| question).enumerate().flat_map(was).collect();
        Self { responses: 0, timeline: Timeline::by("hour"), answers, places: [present, earlier] }
    }

    /// Adds a submission; the newest must come first. Answers to other questions do not count, nor do those that the present
    /// types of the questions cannot have.
    pub fn add(&mut self, submission: &Submission) {
        self.responses += 1;
        self.timeline.add(submission.submitted_at());
        let Ok(Value::Object(answers)) = json::parse(&submission.answers) else { return };
        let mut counted = HashSet::new();
        for places in &self.places {
            for (id, answer) in &answers {
                // A question can have an answer under each of its ids: the present one counts.
                if let Some(place) = places.get(id)
                    && counted.insert(*place)
                {
                    self.answers[*place].add(answer, submission);
                }
            }
        }
    }

    /// Ends the summary of the answers to `questions`.
    pub fn finish(self, questions: &[Question]) -> Summary {
        let finish = |((id, question), counts): ((&String, &Question), AnswerCounts)| QuestionSummary {
            id: id.clone(),
            title: question.title.clone(),
            kind: question.kind.name().to_owned(),
            answered: counts.answered,
            skipped: self.responses - counts.answered,
            summary: counts.finish(),
        };
        let questions = asked(questions).zip(self.answers).map(finish).collect();
        let (first_at, last_at) = self.timeline.span.unzip();
        let totals = Totals { responses: self.responses, first_at, last_at };
        Summary { totals, timeline: self.timeline, questions }
    }
}

/// Returns the questions that take answers, with their ids.
fn asked(questions: &[Question]) -> impl Iterator<Item = (&String, &Question)> {
    let asked = questions.iter().filter(|question| question.takes_answer());
    asked.filter_map(|question| Some((question.id.as_ref()?, question)))
}
