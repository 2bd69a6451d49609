//! The parts of a summary, as they are in JSON.

use serde::{Deserialize, Deserializer, Serialize};
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
    /// When the first of them was accepted; `null` without any.
    pub first_at: Option<Timestamp>,
    /// When the last of them was accepted; `null` without any.
    pub last_at: Option<Timestamp>,
}

/// The answers to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuestionSummary {
    pub id: String,
    pub title: String,
    /// The type of the question.
    #[serde(rename = "type")]
    pub kind: String,
    /// The number of submissions with an answer to it.
    pub answered: u64,
    /// The number of submissions without one.
    pub skipped: u64,
    // `None` for a kind that a newer server has added.
    #[serde(deserialize_with = "if_known")]
    #[schema(value_type = AnswerSummary)]
    pub summary: Option<AnswerSummary>,
}

fn if_known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AnswerSummary>, D::Error> {
    Ok(serde_json::from_value(serde_json::Value::deserialize(deserializer)?).ok())
}

/// Counts and averages; their kind follows from the type of the question. What is not known, or too large to be kept, is `null`
/// or an empty list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AnswerSummary {
    Choice {
        /// Whether an answer may be several options.
        multiple: bool,
        /// The options in order, then removed ones.
        options: Vec<ValueCount>,
        /// Texts given instead of an option, the most frequent first, at most 100.
        other: Vec<ValueCount>,
        /// The number of choices that are in neither list.
        unlisted: u64,
    },
    Ranking {
        /// The options in order, with their `mean` position, then removed ones.
        options: Vec<ValueCount>,
        unlisted: u64,
    },
    Scale {
        /// The values in order. Those beyond the present scale are not answers.
        options: Vec<ValueCount>,
        mean: Option<f64>,
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
        min: Option<f64>,
        max: Option<f64>,
        mean: Option<f64>,
        /// The median; like the quartiles it is interpolated.
        median: Option<f64>,
        p25: Option<f64>,
        p75: Option<f64>,
        /// Counts by number if at most ten are different, else by interval.
        bins: Vec<Bin>,
    },
    Date {
        /// The earliest answer, as it was sent.
        min: Option<String>,
        /// The latest answer, as it was sent.
        max: Option<String>,
        timeline: Timeline,
    },
    Text {
        /// The number of different texts, if none has over 200 characters.
        distinct: Option<u64>,
        /// Texts of at most 200 characters that were given more than once, the most frequent first, at most 100.
        top: Vec<ValueCount>,
        /// The last five texts, newest first. One of over 200 characters is cut, and ends with `…`.
        latest: Vec<LatestText>,
    },
    Matrix {
        /// The rows in order. Those that were removed are not counted.
        rows: Vec<MatrixRow>,
    },
}

impl AnswerSummary {
    /// The counts of options, if it has some.
    pub(super) fn options_mut(&mut self) -> Option<&mut Vec<ValueCount>> {
        match self {
            Self::Choice { options, .. }
            | Self::Ranking { options, .. }
            | Self::Scale { options, .. }
            | Self::Nps { options, .. } => Some(options),
            _ => None,
        }
    }
}

/// How often a value was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ValueCount {
    pub value: ChoiceValue,
    /// What is shown for the value, if it is something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub count: u64,
    /// The mean position in a ranking, 1 for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Whether the form no longer has this option.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

impl ValueCount {
    pub(super) fn new(value: ChoiceValue, label: Option<&str>) -> Self {
        Self { value, label: label.map(str::to_owned), count: 0, mean: None, removed: false }
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
    pub from: f64,
    pub to: f64,
    pub count: u64,
}

/// A text with the submission that it is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LatestText {
    pub id: SubmissionId,
    /// When the submission was accepted.
    pub at: Timestamp,
    pub value: String,
}

/// A row of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MatrixRow {
    pub value: ChoiceValue,
    /// What is shown for the value, if it is something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The number of answers with a choice in this row.
    pub answered: u64,
    /// The columns in order, then removed ones.
    pub options: Vec<ValueCount>,
    /// The number of choices that are not in the list.
    pub unlisted: u64,
}
