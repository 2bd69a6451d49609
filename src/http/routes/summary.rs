//! The handler of summaries.

use axum::http::Uri;
use axum::response::Response;

use crate::api::FormSummary;
use crate::app::Result;
use crate::clock::Timestamp;
use crate::domain::submission::filter::SubmissionQuery;
use crate::http::wire::call::Call;
use crate::http::wire::query::{FromQuery, QueryReader, point_to_where};
use crate::http::wire::responses::json;

impl FromQuery for SubmissionQuery {
    fn from_query(query: &mut QueryReader) -> Self {
        let [since, until] = query.time_range();
        Self { since, until, status: None, text: query.text("q"), answers: query.filter() }
    }
}

/// Get the summary of a form
///
/// Counts of options, averages and latest texts of each question of the current version, and of submissions by time. The filters are
/// those of the list of submissions. Answers to removed questions do not count, nor do answers of another type than the question has
/// now; those with an option that was removed do. Counts are exact. A median, or a list of texts, is left out if there are too many
/// different ones to keep: 16 MiB for all questions.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/summary", tag = "submissions",
    params(
        ("since" = Option<Timestamp>, Query, description = "Only submissions at or after this time (RFC 3339)."),
        ("until" = Option<Timestamp>, Query, description = "Only submissions before this time (RFC 3339)."),
        ("q" = Option<String>, Query, description = "Only submissions with this text in a text answer, ignoring case."),
        ("filter" = Option<Object>, Query, style = DeepObject, explode,
            description = "Only submissions whose answers satisfy all tests, as in the list of submissions."),
        ("where" = Option<Vec<String>>, Query, style = Form, explode, example = json!(["score.gte=4"]),
            description = "The same tests, each a question, an operator and a value.")
    ),
    responses((status = 200, body = FormSummary, description = "The summary"))
)]
pub(crate) async fn get_summary(
    Call { session, path: form, query, .. }: Call<String, SubmissionQuery>,
    uri: Uri,
) -> Result<Response> {
    let summary = session.summarize(&form, query).await;
    json(&summary.map_err(|error| point_to_where(error, uri.query().unwrap_or_default()))?)
}
