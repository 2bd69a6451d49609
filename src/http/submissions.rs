//! Submissions over HTTP. `/responses` is another name for `/submissions`, with the same handlers.
#![expect(unused_qualifications, reason = "the attribute of utoipa writes them")]

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use utoipa::IntoParams;

use super::Shared;
use super::answer::{created, page, written};
use super::auth::Signed;
use super::document::AnyProblem;
use super::extract::{AnswersText, IdempotencyKey, Segments};
use super::forms::Trying;
use super::problem::Failure;
use super::query::{FromQuery, Nothing, Parameters, Query};
use crate::api::{SubmissionBody, SubmissionDetail, SubmissionList, SubmissionTried};
use crate::app::{Accepted, Attempt};

/// Which part of the list of submissions.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SubmissionsPage {
    /// How many at most.
    #[param(value_type = u32, required = false, minimum = 1, maximum = 1000, default = 50)]
    limit: usize,
    /// Where to continue: `next_cursor` of the page before.
    cursor: Option<String>,
    /// Those in the trash.
    #[param(required = false)]
    trashed: bool,
}

impl FromQuery for SubmissionsPage {
    fn take(query: &mut Query) -> Result<Self, Failure> {
        Ok(Self { limit: query.limit(50)?, cursor: query.text("cursor")?, trashed: query.flag("trashed")? })
    }
}

/// Create a submission
///
/// The form must be published and the answers must fit it. With `dry_run=true` everything is checked, nothing is
/// stored, and the answer is 200 without an id.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/submissions", tag = "submissions",
    params(("form" = String, Path), Trying, ("Idempotency-Key" = Option<String>, Header)),
    request_body(content = Object, description = "`answers`: an object from question ids to answers; `metadata`: optionally, up to 20 texts by name"),
    responses(
        (status = 201, body = SubmissionBody, description = "the submission, stored"), (status = 200, body = SubmissionTried, description = "dry run: the answers as they would be stored"),
        AnyProblem
    )
)]
pub(super) async fn create_submission(
    State(shared): State<Shared>,
    Signed(caller): Signed,
    Segments(form): Segments<String>,
    Parameters(Trying { dry_run }): Parameters<Trying>,
    IdempotencyKey(key): IdempotencyKey,
    uri: Uri,
    AnswersText(body): AnswersText,
) -> Result<Response, Failure> {
    if dry_run {
        let (form, sent) = shared.app.try_submission(&caller, &form, body.as_str()).await?;
        return Ok(written(SubmissionTried::json(form, &sent)));
    }
    let query = uri.query().unwrap_or_default();
    let attempt = Attempt { idempotency_key: key.as_deref(), query, body: body.as_str() };
    let Accepted { submission, replayed } = shared.app.create_submission(&caller, &form, attempt).await?;
    let location = format!("/api/v1/forms/{}/submissions/{}", submission.form, submission.id);
    Ok(created(written(SubmissionBody::json(&submission)), location, replayed))
}

/// List submissions
///
/// Newest first. `next_cursor` and the header `Link` lead to the next page.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/submissions", tag = "submissions",
    params(("form" = String, Path), SubmissionsPage),
    responses(
        (status = 200, body = SubmissionList, description = "a page of submissions"),
        AnyProblem
    )
)]
pub(super) async fn list_submissions(
    State(shared): State<Shared>,
    Signed(caller): Signed,
    Segments(form): Segments<String>,
    Parameters(SubmissionsPage { limit, cursor, trashed }): Parameters<SubmissionsPage>,
    uri: Uri,
) -> Result<Response, Failure> {
    let (app, cursor) = (&shared.app, cursor.as_deref());
    let found = match trashed {
        true => app.list_trashed_submissions(&caller, &form, cursor, limit).await?,
        false => app.list_submissions(&caller, &form, cursor, limit).await?,
    };
    let next = found.next.as_deref();
    Ok(page(written(SubmissionList::json(&found.submissions, next)), &uri, limit, next))
}

/// Get a submission
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/submissions/{submission}", tag = "submissions",
    params(("form" = String, Path), ("submission" = String, Path)),
    responses(
        (status = 200, body = SubmissionDetail, description = "the submission"),
        AnyProblem
    )
)]
pub(super) async fn get_submission(
    State(shared): State<Shared>,
    Signed(caller): Signed,
    Segments((form, submission)): Segments<(String, String)>,
    Parameters(Nothing {}): Parameters<Nothing>,
) -> Result<Response, Failure> {
    let found = shared.app.get_submission(&caller, &form, &submission).await?;
    Ok(written(SubmissionDetail::json(&found)))
}
