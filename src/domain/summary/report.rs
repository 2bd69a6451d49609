//! The parts of a summary, as they are in JSON.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::timeline::Timeline;
use crate::clock::Timestamp;
use crate::id::SubmissionId;

/// Counts of the answers to a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    pub totals: Totals,
    /// The submissions by the time when they were accepted.
    pub timeline: Timeline,
    /// The questions that take answers, in order.
    pub questions: Vec<QuestionSummary>,
}

/// The submissions that were counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Totals {
    /// The number of submissions.
    pub responses: u64,
    /// When the first and the last of them were accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Timestamp>,
}

/// The answers to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuestionSummary {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The number of submissions with an answer to it.
    pub answered: u64,
    /// The number of submissions without one.
    pub skipped: u64,
    pub summary: AnswerSummary,
}

/// Counts and averages. What is not known, or too large to be kept, is `null` or an empty list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AnswerSummary {
    Choice {
        /// Whether an answer may be several options.
        multiple: bool,
        /// The options in order, then removed ones. Those of a ranking have a `mean` place.
        options: Vec<ValueCount>,
        /// Texts given instead of an option, the most frequent first, at most 100.
        other: Vec<ValueCount>,
        /// The number of choices that are in neither list.
        unlisted: u64,
    },
    Scale {
        /// The values of the present scale; others are not answers.
        options: Vec<ValueCount>,
        /// The mean.
        mean: Option<f64>,
        /// The median.
        median: Option<f64>,
    },
    Nps {
        /// The values from 0 to 10.
        options: Vec<ValueCount>,
        /// The number of answers of 9 and 10.
        promoters: u64,
        /// The number of answers of 7 and 8.
        passives: u64,
        /// The number of answers up to 6.
        detractors: u64,
        /// 100 × (`promoters` - `detractors`) / answers, rounded half away from zero.
        score: Option<i64>,
    },
    Number {
        /// The smallest.
        min: Option<f64>,
        /// The largest.
        max: Option<f64>,
        /// The mean.
        mean: Option<f64>,
        /// The median.
        median: Option<f64>,
        /// Counts by number if at most ten are different, else by ten intervals; the last one has its end.
        bins: Vec<Bin>,
    },
    Date {
        /// The first date, or time, or both, in UTC.
        min: Option<String>,
        /// The last one.
        max: Option<String>,
        timeline: Timeline,
    },
    Text {
        /// The number of different texts.
        distinct: Option<u64>,
        /// Texts that were given more than once, the most frequent first, at most 100.
        top: Vec<ValueCount>,
        /// The last five texts, newest first. One of over 300 characters is cut, and ends with `…`.
        latest: Vec<LatestText>,
    },
    Matrix {
        /// The rows in order. Those that were removed are not counted.
        rows: Vec<MatrixRow>,
    },
    /// Of a type that a later server has added.
    #[serde(other)]
    Other,
}

/// How often a value was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ValueCount {
    pub value: ChoiceValue,
    /// The label of the value, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How often it was given.
    pub count: u64,
    /// The mean place in a ranking, 1 for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Whether the form no longer has this option.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

impl From<ChoiceValue> for ValueCount {
    fn from(value: ChoiceValue) -> Self {
        Self { value, label: None, count: 0, mean: None, removed: false }
    }
}

/// A text; a number on a scale; or a boolean for the types `boolean` and `consent`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ChoiceValue {
    Text(String),
    Number(i64),
    Flag(bool),
}

/// The numbers from `from` to below `to`, or the number that both are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Bin {
    /// The smallest number that belongs to it.
    pub from: f64,
    /// The smallest number that does not, except at the end.
    pub to: f64,
    /// How many there are.
    pub count: u64,
}

/// A text with the submission that it is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LatestText {
    pub id: SubmissionId,
    pub at: Timestamp,
    /// The text.
    pub value: String,
}

/// A row of a matrix; its count is that of the answers with a choice in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MatrixRow {
    #[serde(flatten)]
    pub row: ValueCount,
    /// The columns in order, then removed ones.
    pub options: Vec<ValueCount>,
    /// The number of choices that are not in the list.
    pub unlisted: u64,
}
