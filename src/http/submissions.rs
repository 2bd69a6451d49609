//! Submissions over HTTP. `/responses` is another name for `/submissions`, with the same handlers.
#![expect(unused_qualifications, reason = "the attribute of utoipa writes them")]

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::http::Uri;
use axum::response::Response;
use utoipa::IntoParams;

use super::Shared;
use super::answer::{created, dropped, page, written};
use super::auth::Signed;
use super::conditional::tagged;
use super::document::AnyProblem;
use super::extract::{IdempotencyKey, Segments, read_json};
use super::forms::Trying;
use super::problem::Failure;
use super::query::{FromQuery, Nothing, Parameters, Query};
use crate::api::{SubmissionBody, SubmissionDetail, SubmissionList, SubmissionTried};
use crate::app::{Accepted, Attempt, SubmissionsWanted, Tried};
use crate::clock::Timestamp;
use crate::domain::condition::FilterKey;
use crate::domain::filter::{Order, SubmissionQuery};
use crate::domain::submission::{Submission, SubmissionStatus};

/// Which part of the list of submissions.
#[derive(Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SubmissionsPage {
    /// Maximum number to return. A page ends earlier at 1 MiB, and where a search has taken 2 seconds.
    #[param(value_type = u32, required = false, minimum = 1, maximum = 1000, default = 50)]
    limit: usize,
    /// Where to continue: `next_cursor` of the page before.
    cursor: Option<String>,
    /// Those in the trash; then only `limit` and `cursor` are taken besides.
    #[param(required = false)]
    trashed: bool,
    /// `asc` begins with the oldest, `desc` with the newest.
    #[param(value_type = Option<String>, default = "desc")]
    order: Order,
    /// Those of this moment and later, in RFC 3339.
    #[param(value_type = Option<String>)]
    since: Option<Timestamp>,
    /// Those before this moment, in RFC 3339.
    #[param(value_type = Option<String>)]
    until: Option<Timestamp>,
    /// Those that are `completed`.
    #[param(value_type = Option<String>)]
    status: Option<SubmissionStatus>,
    /// Those with this in a text of the answers, in capitals or not.
    q: Option<String>,
    /// Those whose answers hold: `filter[q3]=4`, `filter[q3][gte]=4`, `filter[q3][in]=4,5`. The operators are those of
    /// conditions: `eq`, `ne`, `lt`, `lte`, `gt`, `gte`, `in`, `includes`, `matches`, `answered`. All must hold.
    #[param(value_type = Option<Object>, style = DeepObject)]
    filter: BTreeMap<FilterKey, String>,
    /// Count all of the list: the member `total`, left out where counting takes longer than 2 seconds.
    #[param(required = false)]
    count: bool,
}

impl FromQuery for SubmissionsPage {
    fn take(query: &mut Query) -> Self {
        let (limit, cursor) = (query.limit(50), query.text("cursor"));
        if query.flag("trashed") {
            query.default_only("order", "desc");
            query.default_only("count", "false");
            return Self { limit, cursor, trashed: true, ..Self::default() };
        }
        let order = query.one_of("order", &[("desc", Order::NewestFirst), ("asc", Order::OldestFirst)]);
        let [since, until] = query.span();
        Self {
            limit,
            cursor,
            trashed: false,
            order: order.unwrap_or_default(),
            since,
            until,
            status: query.one_of("status", &[("completed", SubmissionStatus::Completed)]),
            q: query.text("q"),
            filter: query.filter(),
            count: query.flag("count"),
        }
    }
}

impl From<SubmissionsPage> for SubmissionsWanted {
    fn from(page: SubmissionsPage) -> Self {
        let SubmissionsPage { limit, cursor, trashed: _, order, since, until, status, q, filter, count } =
            page;
        let query = SubmissionQuery { since, until, status, text: q, answers: filter };
        Self { query, order, cursor, limit, count }
    }
}

/// Create a submission
///
/// The form must be published and the answers must fit it. With `dry_run=true` everything is checked, nothing is
/// stored, and the answer is 200 without an id. Where the form is set to drop unknown answers, their keys are in the
/// header `Forms-Dropped`, separated by commas, in percent and two digits where they are no token, as many as fit in 1000 bytes.
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
    request: Request,
) -> Result<Response, Failure> {
    let body = read_json(request, shared.limits.max_body, &shared).await?;
    if dry_run {
        let Tried { form, sent, dropped: keys } =
            shared.app.try_submission(&caller, &form, body.as_str()).await?;
        return Ok(dropped(written(SubmissionTried::json(form, &sent)), &keys));
    }
    let query = uri.query().unwrap_or_default();
    let attempt = Attempt { idempotency_key: key.as_deref(), query, body: body.as_str() };
    let Accepted { submission, replayed, dropped: keys } =
        shared.app.create_submission(&caller, &form, attempt).await?;
    let location = format!("/api/v1/forms/{}/submissions/{}", submission.form, submission.id);
    let response = tagged(written(SubmissionBody::json(&submission)), submission.revision());
    Ok(dropped(created(response, location, replayed), &keys))
}

/// List submissions
///
/// Newest first. `next_cursor` and the header `Link` lead to the next page. A filter names questions of the form's present
/// version and compares stored answers by their present type: one of another type does not match.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/submissions", tag = "submissions",
    params(
        ("form" = String, Path), SubmissionsPage,
        ("where" = Option<Vec<String>>, Query, description = "The tests of `filter`, written as `score.gte=4`; can be repeated."),
    ),
    responses(
        (status = 200, body = SubmissionList, description = "a page of submissions"),
        AnyProblem
    )
)]
pub(super) async fn list_submissions(
    State(shared): State<Shared>,
    Signed(caller): Signed,
    Segments(form): Segments<String>,
    Parameters(asked): Parameters<SubmissionsPage>,
    uri: Uri,
) -> Result<Response, Failure> {
    let (app, limit) = (&shared.app, asked.limit);
    let found = match asked.trashed {
        true => app.list_trashed_submissions(&caller, &form, asked.cursor.as_deref(), limit).await?,
        false => app.list_submissions(&caller, &form, asked.into()).await?,
    };
    let next = found.next.as_deref();
    Ok(page(written(SubmissionList::json(&found.items, next, found.total)), &uri, limit, next))
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
    Ok(shown(&shared.app.get_submission(&caller, &form, &submission).await?))
}

/// One submission, with the tag of its revision.
pub(super) fn shown(submission: &Submission) -> Response {
    tagged(written(SubmissionDetail::json(submission)), submission.revision())
}
