//! What becomes of a submission after it was stored, over HTTP.

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::api::{HistoryList, SubmissionDetail};
use crate::app::IdempotentRequest;
use crate::http::openapi::problems;
use crate::http::routes::forms::Purging;
use crate::http::routes::submissions::shown;
use crate::http::wire::authenticated::Signed;
use crate::http::wire::conditional::IfMatch;
use crate::http::wire::extract::{IdempotencyKey, Segments, read_nothing, read_patch};
use crate::http::wire::problem::Failure;
use crate::http::wire::query::{ListPart, Nothing, Parameters};
use crate::http::wire::responses::{dropped, page, replayed, written};
use crate::http::wire::state::Shared;

problems!(EditSubmissionProblems: EVERY QUERY KEYED SCOPED BODY TYPED WRITE, FormNotFound, SubmissionNotFound, VersionMismatch);

/// Update a submission
///
/// A JSON merge patch (RFC 7396) of `answers` and `metadata`. What comes of it must fit the version of the form that the
/// submission was checked against. What it replaces is kept as the submission's history. Unknown answers
/// are refused or dropped as those of a new submission are.
#[utoipa::path(
    patch, path = "/api/v1/forms/{form}/submissions/{submission}", tag = "submissions",
    params(("form" = String, Path), ("submission" = String, Path), ("If-Match" = Option<String>, Header)),
    request_body(
        content(
            (ref("#/components/schemas/SubmissionPatch") = "application/merge-patch+json"),
            (ref("#/components/schemas/SubmissionPatch") = "application/json")
        ),
        description = "The changes"
    ),
    responses(
        (
            status = 200, body = SubmissionDetail, description = "The submission",
            headers(("ETag" = String), ("Forms-Dropped" = String))
        ),
        EditSubmissionProblems
    )
)]
pub(crate) async fn edit_submission(
    State(shared): State<Shared>,
    Signed(caller): Signed,
    Segments((form, submission)): Segments<(String, String)>,
    Parameters(Nothing {}): Parameters<Nothing>,
    IfMatch(expected): IfMatch,
    request: Request,
) -> Result<Response, Failure> {
    let body = read_patch(request, shared.limits.max_body, &shared).await?;
    let (edited, keys) =
        shared.app.edit_submission(&caller, &form, &submission, body.as_str(), &expected).await?;
    Ok(dropped(shown(&edited), &keys))
}

problems!(DeleteSubmissionProblems: EVERY QUERY KEYED SCOPED WRITE, FormNotFound, SubmissionNotFound, VersionMismatch);

/// Delete a submission
///
/// It goes to the trash, and its seat is free; with `purge=true` it is erased, with all that edits have replaced in it.
#[utoipa::path(
    delete, path = "/api/v1/forms/{form}/submissions/{submission}", tag = "submissions",
    params(("form" = String, Path), ("submission" = String, Path), Purging, ("If-Match" = Option<String>, Header)),
    responses(
        (status = 204, description = "The submission is in the trash, or erased"),
        DeleteSubmissionProblems
    )
)]
pub(crate) async fn delete_submission(
    State(shared): State<Shared>,
    Signed(caller): Signed,
    Segments((form, submission)): Segments<(String, String)>,
    Parameters(Purging { purge }): Parameters<Purging>,
    IfMatch(expected): IfMatch,
) -> Result<Response, Failure> {
    shared.app.delete_submission(&caller, &form, &submission, purge, expected).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

problems!(RestoreSubmissionProblems: EVERY QUERY KEYED SCOPED BODY WRITE, FormNotFound, SubmissionNotFound, NotInTrash, FormFull, IdempotencyKeyReused);

/// Restore a submission
///
/// Takes it out of the trash again, if `max_responses` has a seat for it.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/submissions/{submission}/restore", tag = "submissions",
    params(("form" = String, Path), ("submission" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses(
        (
            status = 200, body = SubmissionDetail, description = "The submission",
            headers(("ETag" = String), ("Idempotency-Replayed" = String))
        ),
        RestoreSubmissionProblems
    )
)]
pub(crate) async fn restore_submission(
    State(shared): State<Shared>,
    Signed(caller): Signed,
    Segments((form, submission)): Segments<(String, String)>,
    Parameters(Nothing {}): Parameters<Nothing>,
    IdempotencyKey(key): IdempotencyKey,
    request: Request,
) -> Result<Response, Failure> {
    let body = read_nothing(request, &shared).await?;
    let attempt = IdempotentRequest { idempotency_key: key.as_deref(), query: "", body: body.as_str() };
    let (restored, again) = shared.app.restore_submission(&caller, &form, &submission, attempt).await?;
    Ok(replayed(shown(&restored), again))
}

problems!(ListSubmissionHistoryProblems: EVERY QUERY KEYED SCOPED, FormNotFound, SubmissionNotFound, InvalidCursor);

/// List what edits have replaced in a submission
///
/// Newest first. The next page is in the header `Link`.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/submissions/{submission}/history", tag = "submissions",
    params(("form" = String, Path), ("submission" = String, Path), ListPart),
    responses(
        (status = 200, body = HistoryList, description = "A page of replaced states", headers(("Link" = String))),
        ListSubmissionHistoryProblems
    )
)]
pub(crate) async fn list_submission_history(
    State(shared): State<Shared>,
    Signed(caller): Signed,
    Segments((form, submission)): Segments<(String, String)>,
    Parameters(ListPart { limit, cursor }): Parameters<ListPart>,
    uri: Uri,
) -> Result<Response, Failure> {
    let found = shared.app.list_history(&caller, &form, &submission, cursor.as_deref(), limit).await?;
    Ok(page(written(HistoryList::json(&found.items)), &uri, limit, found.next.as_deref()))
}
