//! Handlers that edit, delete and restore submissions, and list their history.

use axum::extract::Request;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::api::{HistoryList, SubmissionDetail};
use crate::app::ApiError;
use crate::http::routes::forms::PurgeQuery;
use crate::http::routes::submissions::submission_response;
use crate::http::wire::call::Call;
use crate::http::wire::conditional::IfMatch;
use crate::http::wire::extract::{read_empty_body, read_patch};
use crate::http::wire::query::PageQuery;
use crate::http::wire::responses::{json_text, with_dropped_keys, with_next_link, with_replayed};

/// Update a submission
///
/// A JSON merge patch (RFC 7396) of `answers` and `metadata`. The result must be valid for the version of the form that the
/// submission was checked against. The replaced state is kept in the submission's history. Unknown answers are refused or
/// dropped as in a new submission.
#[utoipa::path(
    patch, path = "/api/v1/forms/{form}/submissions/{submission}", tag = "submissions",
    request_body(content = ref("#/components/schemas/SubmissionPatch"), description = "The changes"),
    responses((status = 200, body = SubmissionDetail, description = "The submission",
        headers(("ETag" = String), ("Forms-Dropped" = String))))
)]
pub(crate) async fn edit_submission(
    Call { session, shared, path: (form, submission), .. }: Call<(String, String)>,
    IfMatch(expected): IfMatch,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_patch(request, shared.settings.max_body, &shared).await?;
    let (edited, keys) = session.edit_submission(&form, &submission, body.as_str(), &expected).await?;
    Ok(with_dropped_keys(submission_response(&edited), &keys))
}

/// Delete a submission
///
/// Moves the submission to the trash, where it no longer counts towards `max_responses`; with `purge=true` it is erased,
/// with its history.
#[utoipa::path(
    delete, path = "/api/v1/forms/{form}/submissions/{submission}", tag = "submissions", params(PurgeQuery),
    responses((status = 204, description = "The submission is in the trash, or erased"))
)]
pub(crate) async fn delete_submission(
    Call { session, path: (form, submission), query, .. }: Call<(String, String), PurgeQuery>,
    IfMatch(expected): IfMatch,
) -> Result<Response, ApiError> {
    session.delete_submission(&form, &submission, query.purge, expected).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Restore a submission
///
/// Takes the submission out of the trash, unless the form has reached `max_responses`.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/submissions/{submission}/restore", tag = "submissions",
    responses((status = 200, body = SubmissionDetail, description = "The submission",
        headers(("ETag" = String))))
)]
pub(crate) async fn restore_submission(
    Call { session, shared, path: (form, submission), .. }: Call<(String, String)>,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_empty_body(request, &shared).await?;
    let (restored, again) = session.restore_submission(&form, &submission, body.repeatable()?).await?;
    Ok(with_replayed(submission_response(&restored), again))
}

/// List a submission's history
///
/// The states that edits replaced, newest first. The next page is in the header `Link`.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/submissions/{submission}/history", tag = "submissions", params(PageQuery),
    responses((status = 200, body = HistoryList, description = "A page of replaced states"))
)]
pub(crate) async fn list_submission_history(
    Call { session, path: (form, submission), query, .. }: Call<(String, String), PageQuery>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let PageQuery { limit, cursor } = query;
    let found = session.list_history(&form, &submission, cursor.as_deref(), limit).await?;
    Ok(with_next_link(json_text(HistoryList::json(&found.items)), &uri, limit, found.next.as_deref()))
}
