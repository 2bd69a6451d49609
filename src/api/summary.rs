//! Summaries on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::schema;
use crate::clock::Timestamp;
use crate::domain::form::FormStatus;
use crate::domain::open_enum::OpenEnum;
use crate::domain::submission::filter::SubmissionQuery;
use crate::domain::summary::Summary;
use crate::id::FormId;

/// The summary of the answers to a form.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FormSummary {
    pub form_id: FormId,
    pub title: String,
    #[schema(value_type = schema::FormStatusOrOther)]
    pub status: OpenEnum<FormStatus>,
    pub generated_at: Timestamp,
    /// Which submissions were counted.
    pub filter: SummaryFilter,
    #[serde(flatten)]
    pub summary: Summary,
}

/// The parameters of a summary; `null` or empty if they were not sent.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SummaryFilter {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub q: Option<String>,
    /// The tests of answers, such as `score.gte=4`.
    pub r#where: Vec<String>,
}

impl From<&SubmissionQuery> for SummaryFilter {
    fn from(query: &SubmissionQuery) -> Self {
        let test =
            query.answers.iter().map(|(key, value)| format!("{}.{}={value}", key.question, key.operator));
        Self { since: query.since, until: query.until, q: query.text.clone(), r#where: test.collect() }
    }
}
