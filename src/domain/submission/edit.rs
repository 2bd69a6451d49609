//! Editing a submission: a merge patch of its answers and its metadata.
//!
//! What comes of it is held against the questions that the submission was checked against, at the time it was sent:
//! an old answer can be put right whatever the form has become since.

use crate::domain::form::Version;
use crate::domain::json::{self, Value};
use crate::domain::submission::metadata;
use crate::domain::submission::{Answers, BodyError, Submission, members, not_an_object, unknown_field};
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Violation;

/// Why the outcome of a merge can be read.
const MERGED: &str = "what two texts of JSON merge to is one, no deeper than they are";

/// A merge patch (RFC 7396) of a submission, as it was sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SubmissionPatch {
    answers: Option<Answers>,
    /// A JSON object or `null`.
    metadata: Option<Box<str>>,
    /// What else it has, or has instead.
    violations: Vec<Violation>,
}

/// What a submission holds once it is edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedContent {
    pub answers: Box<str>,
    pub metadata: Option<Box<str>>,
}

impl SubmissionPatch {
    /// Reads the body of an edit: an object with the members `answers` and `metadata`, or one of them, or none. What
    /// else it has is told where it is applied, with whatever is wrong there.
    pub fn read(body: &str) -> Result<Self, BodyError> {
        let mut patch = Self::default();
        for (key, value, range) in members(body)? {
            match (key.as_str(), value) {
                ("answers", Value::Object(values)) => {
                    patch.answers = Some(Answers::new(&body[range], values));
                }
                ("metadata", Value::Object(_) | Value::Null) => patch.metadata = Some(body[range].into()),
                (name @ ("answers" | "metadata"), other) => {
                    patch.violations.push(not_an_object(name, &other))
                }
                (name, _) => patch.violations.push(unknown_field(name)),
            }
        }
        Ok(patch)
    }

    /// Takes the answers out whose keys are no ids of questions of `version`, and gives these keys.
    pub fn split_unknown(&mut self, version: &Version) -> Vec<String> {
        let Some(answers) = self.answers.take() else { return Vec::new() };
        let (answers, dropped) = version.split_unknown(answers);
        self.answers = Some(answers);
        dropped
    }

    /// Whether answers are to be checked again.
    pub fn has_answers(&self) -> bool {
        self.answers.is_some()
    }

    /// Bytes of its texts.
    pub fn size(&self) -> usize {
        let answers = self.answers.as_ref().map_or(0, |answers| answers.text().len());
        answers + self.metadata.as_ref().map_or(0, |metadata| metadata.len())
    }

    /// What it makes of `submission`, which was checked against `version`; `None` if the submission is that way
    /// already.
    pub fn apply(
        &self,
        submission: &Submission,
        version: &Version,
        limits: &Limits,
    ) -> Result<Option<EditedContent>, Vec<Violation>> {
        let mut violations = self.violations.clone();
        self.refuse_unknown_removals(version, &mut violations);
        let answers = self.answers.as_ref().and_then(|patch| json::merge(&submission.answers, patch.text()));
        let kept = submission.metadata.as_deref();
        let metadata = self.metadata.as_ref().and_then(|patch| json::merge(kept.unwrap_or("null"), patch));
        if answers.is_none() && metadata.is_none() && violations.is_empty() {
            return Ok(None);
        }
        let answers = match answers {
            Some(merged) => check_answers(&merged, submission, version, limits, &mut violations),
            None => submission.answers.clone(),
        };
        let metadata = match metadata {
            Some(merged) => check_metadata(merged, limits, &mut violations),
            None => submission.metadata.clone(),
        };
        if violations.is_empty() { Ok(Some(EditedContent { answers, metadata })) } else { Err(violations) }
    }

    /// Refuses to take away answers to what is no question of `version`: the merge would pass them over.
    fn refuse_unknown_removals(&self, version: &Version, violations: &mut Vec<Violation>) {
        let members = self.answers.iter().flat_map(Answers::values);
        let taken_away = members.filter(|(_, value)| *value == Value::Null);
        version.refuse_unknown(taken_away.map(|(key, _)| key.as_str()), violations);
    }
}

/// The answers `merged` as they are kept.
fn check_answers(
    merged: &str,
    submission: &Submission,
    version: &Version,
    limits: &Limits,
    violations: &mut Vec<Violation>,
) -> Box<str> {
    let answers = Answers::read(merged).expect(MERGED);
    // Leaving an answer out keeps what there is.
    match version.check_with_help(answers.values(), limits, submission.submitted_at(), "send `null` for it") {
        Ok(defaults) => answers.with_defaults(defaults).into_text(),
        Err(more) => {
            violations.extend(more);
            merged.into()
        }
    }
}

/// The metadata `merged` as it is kept: none, if it was taken away.
fn check_metadata(merged: String, limits: &Limits, violations: &mut Vec<Violation>) -> Option<Box<str>> {
    let value = json::parse(&merged).expect(MERGED);
    if value == Value::Null {
        return None;
    }
    metadata::check(&value, limits, violations);
    Some(merged.into())
}
