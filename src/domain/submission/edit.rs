//! Editing a submission: a merge patch of its answers and its metadata.
//!
//! The result is checked against the version of the questions, and the time, that the submission was first checked
//! against: an old answer can be corrected even if the form has changed since.

use crate::domain::form::Version;
use crate::domain::json::{self, Value};
use crate::domain::language::Texts;
use crate::domain::submission::{Answers, Body, BodyError, Submission, check_metadata};
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Violation;

/// Why parsing the result of a merge cannot fail.
const MERGED: &str = "merging two JSON texts gives a JSON text, not nested deeper than they are";

/// A merge patch (RFC 7396) of a submission, as sent.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmissionPatch {
    answers: Option<Answers>,
    /// A JSON object or `null`.
    metadata: Option<Box<str>>,
    /// Violations outside the answers and metadata.
    violations: Vec<Violation>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedContent {
    pub answers: Box<str>,
    pub metadata: Option<Box<str>>,
}

impl SubmissionPatch {
    /// Parses the body of an edit: an object with the optional members `answers` and `metadata`. Other members are reported
    /// by [`apply`](Self::apply), together with all other violations.
    pub fn read(body: &str) -> Result<Self, BodyError> {
        let Body { answers, metadata, mut violations } = Body::read(body)?;
        let metadata = match metadata {
            Some((Value::Object(_) | Value::Null, text)) => Some(text.into()),
            Some((other, _)) => {
                violations.push(Violation::wrong_type("/metadata", "metadata", "an object", &other));
                None
            }
            None => None,
        };
        Ok(Self { answers, metadata, violations })
    }

    /// Removes the answers whose keys are not questions of `version`, and returns these keys.
    pub fn split_unknown(&mut self, version: &Version) -> Vec<String> {
        let Some(answers) = self.answers.take() else { return Vec::new() };
        let (answers, dropped) = version.split_unknown(answers);
        self.answers = Some(answers);
        dropped
    }

    /// Whether the patch has answers, which must be checked again.
    pub fn has_answers(&self) -> bool {
        self.answers.is_some()
    }

    pub fn size(&self) -> usize {
        let answers = self.answers.as_ref().map_or(0, |answers| answers.text().len());
        answers + self.metadata.as_ref().map_or(0, |metadata| metadata.len())
    }

    /// Applies the patch to `submission`, which was checked against `version`; `None` if nothing changes. Messages about
    /// answers are made of `texts`.
    ///
    /// # Errors
    /// All violations.
    pub fn apply(
        &self,
        submission: &Submission,
        version: &Version,
        limits: &Limits,
        texts: &Texts,
    ) -> Result<Option<EditedContent>, Vec<Violation>> {
        let mut violations = self.violations.clone();
        // The merge ignores `null` for an unknown question.
        let removed =
            self.answers.iter().flat_map(Answers::values).filter(|(_, value)| *value == Value::Null);
        version.refuse_unknown(removed.map(|(key, _)| key.as_str()), &mut violations);
        let answers = self.answers.as_ref().and_then(|patch| json::merge(&submission.answers, patch.text()));
        let kept = submission.metadata.as_deref();
        let metadata = self.metadata.as_ref().and_then(|patch| json::merge(kept.unwrap_or("null"), patch));
        if answers.is_none() && metadata.is_none() && violations.is_empty() {
            return Ok(None);
        }
        let mut edited =
            EditedContent { answers: submission.answers.clone(), metadata: submission.metadata.clone() };
        if let Some(merged) = answers {
            let (answers, at) = (Answers::read(&merged).expect(MERGED), submission.submitted_at());
            // In a patch, leaving out an answer keeps the stored one.
            match version.check_with_help(answers.values(), limits, at, texts, "send `null` for it") {
                Ok(defaults) => edited.answers = answers.with_defaults(defaults).into_text(),
                Err(more) => violations.extend(more),
            }
        }
        if let Some(merged) = metadata {
            let value = json::parse(&merged).expect(MERGED);
            let is_removed = value == Value::Null;
            if !is_removed {
                check_metadata(&value, limits, &mut violations);
            }
            edited.metadata = (!is_removed).then(|| merged.into());
        }
        if violations.is_empty() { Ok(Some(edited)) } else { Err(violations) }
    }
}
