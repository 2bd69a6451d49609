//! The summary of the answers to a form: counts, averages and a timeline, by one pass over its submissions.
//!
//! Memory is bounded whatever was answered: [`MEMORY`] for the different texts and numbers of all questions together. What needs
//! values that did not fit, such as a median, is left out; what is reported is exact.

mod answers;
mod numbers;
mod report;
mod tally;
mod timeline;

use std::collections::HashMap;

use crate::domain::json::{self, Value};
use crate::domain::question::Question;
use crate::domain::submission::Submission;

pub use report::{
    AnswerSummary, Bin, ChoiceValue, LatestText, MatrixRow, QuestionSummary, Summary, Totals, ValueCount,
};
pub use timeline::{Point, Timeline};

use answers::AnswerCounts;
use timeline::TimeCounts;

/// Bytes for the different values of all questions together.
const MEMORY: usize = 16 << 20;

/// A [`Summary`] in the making.
#[derive(Debug)]
pub struct Summarizer {
    totals: Totals,
    timeline: TimeCounts,
    answers: HashMap<String, AnswerCounts>,
    /// The present id for each that a question had before.
    renamed: HashMap<String, String>,
}

impl Summarizer {
    /// Begins a summary of the answers to `questions`.
    pub fn new(questions: &[Question]) -> Self {
        let memory = MEMORY / questions.len().max(1);
        let counts = |question: &Question| Some((question.id.clone()?, AnswerCounts::new(question, memory)));
        let answers =
            questions.iter().filter(|question| question.takes_answer()).filter_map(counts).collect();
        let renamed = |question: &Question| {
            let id = question.id.clone().unwrap_or_default();
            question.was.iter().map(|was| (was.clone(), id.clone())).collect::<Vec<_>>()
        };
        let renamed = questions.iter().flat_map(renamed).collect();
        Self { totals: Totals::default(), timeline: TimeCounts::default(), answers, renamed }
    }

    /// Adds a submission; the newest must come first. Answers to other questions do not count, nor do those that the present
    /// types of the questions cannot have.
    pub fn add(&mut self, submission: &Submission) {
        let at = submission.submitted_at();
        self.totals.responses += 1;
        self.totals.first_at = Some(at);
        self.totals.last_at.get_or_insert(at);
        self.timeline.add(at.millis());
        let Ok(Value::Object(answers)) = json::parse(&submission.answers) else { return };
        for (key, answer) in &answers {
            let id = self.renamed.get(key).unwrap_or(key);
            if let Some(counts) = self.answers.get_mut(id) {
                counts.add(answer, submission);
            }
        }
    }

    /// Ends the summary, with the `questions` in order.
    pub fn finish(mut self, questions: &[Question]) -> Summary {
        let finish = |question: &Question| {
            let (id, counts) = self.answers.remove_entry(question.id.as_ref()?)?;
            let (answered, summary) = counts.finish();
            let (title, kind) = (question.title.clone(), question.kind.name().to_owned());
            let skipped = self.totals.responses - answered;
            Some(QuestionSummary { id, title, kind, answered, skipped, summary: Some(summary) })
        };
        let questions = questions.iter().filter_map(finish).collect();
        Summary { totals: self.totals, timeline: self.timeline.finish(false), questions }
    }
}
