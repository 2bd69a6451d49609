//! Handlers of submissions. `/responses` is an alias of `/submissions`, with the same handlers.
#![expect(unused_qualifications, reason = "the attribute of utoipa writes them")]

use std::io;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::stream::try_unfold;
use utoipa::IntoParams;

use crate::api::{
    BatchResults, Erasure, FormSummary, HistoryList, SubmissionBody, SubmissionDetail, SubmissionList,
};
use crate::app::Result;
use crate::app::{Accepted, BatchRequest, ErasureRequest, Export, ExportFormat, SubmissionListRequest};
use crate::clock::Timestamp;
use crate::domain::submission::filter::{Order, SubmissionQuery};
use crate::domain::submission::{Submission, SubmissionStatus};
use crate::http::routes::forms::PurgeQuery;
use crate::http::wire::accept::{CSV, preferred};
use crate::http::wire::call::{Call, Sends, SendsExport};
use crate::http::wire::conditional::{IfMatch, with_etag};
use crate::http::wire::extract::{read_batch, read_empty_body, read_json, read_patch};
use crate::http::wire::query::{FromQuery, PageQuery, QueryReader, point_to_where, refuse_parameters};
use crate::http::wire::responses::{
    created_response, json, json_text, replayable, with_dropped_keys, with_header, with_next_link,
    with_replayed,
};

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CreateSubmissionQuery {
    /// Check everything and store nothing.
    dry_run: bool,
    /// Whether the form's integrations are notified; `false` needs the scope `write`.
    #[param(default = true)]
    notify: bool,
}

impl FromQuery for CreateSubmissionQuery {
    fn from_query(query: &mut QueryReader) -> Self {
        let notify = query.one_of("notify", &[("true", true), ("false", false)]).unwrap_or(true);
        Self { dry_run: query.flag("dry_run"), notify }
    }
}

impl FromQuery for SubmissionQuery {
    fn from_query(query: &mut QueryReader) -> Self {
        let [since, until] = query.time_range();
        Self { since, until, status: None, text: query.text("q"), answers: query.filter() }
    }
}

impl FromQuery for SubmissionListRequest {
    fn from_query(query: &mut QueryReader) -> Self {
        let (limit, cursor, trashed) = (query.limit(50), query.text("cursor"), query.flag("trashed"));
        let statuses = SubmissionStatus::ALL.map(|status| (status.name(), status));
        let status = if trashed { None } else { query.one_of("status", &statuses) };
        if trashed || status == Some(SubmissionStatus::Quarantined) {
            query.allow_default("order", "desc");
            query.allow_default("count", "false");
            let query = SubmissionQuery { status, ..SubmissionQuery::default() };
            return Self { trashed, query, cursor, limit, ..Self::default() };
        }
        let order = query.one_of("order", &[("desc", Order::NewestFirst), ("asc", Order::OldestFirst)]);
        let selection = SubmissionQuery { status, ..SubmissionQuery::from_query(query) };
        let count = query.flag("count");
        Self { trashed, query: selection, order: order.unwrap_or_default(), cursor, limit, count }
    }
}

/// Create a submission
///
/// The form must be published and the answers must be valid for it. With `dry_run=true` everything is checked, nothing is
/// stored, and the response is 200 with an id of zeros. If the form is set to drop unknown answers, the header `Forms-Dropped`
/// lists their keys, percent-encoded and separated by commas, as many as fit in 1000 bytes.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/submissions", tag = "submissions", params(CreateSubmissionQuery),
    request_body(
        content = ref("#/components/schemas/NewSubmission"),
        description = "The answers, and optionally metadata"
    ),
    responses(
        (status = 201, body = SubmissionBody, description = "The submission, stored",
            headers(("ETag" = String), ("Forms-Dropped" = String))),
        (status = 200, body = SubmissionBody, headers(("Forms-Dropped" = String)),
            description = "Dry run: the submission as it would be, with an id of zeros")
    )
)]
pub(crate) async fn create_submission(
    Call { session, shared, path: form, query, .. }: Call<String, CreateSubmissionQuery>,
    request: Request,
) -> Result<Response> {
    let CreateSubmissionQuery { dry_run, notify } = query;
    let body = read_json(request, shared.settings.max_body, &shared).await?;
    let repeatable = body.repeatable()?;
    if dry_run {
        let (form, sent, keys) = session.try_submission(&form, body.as_str(), notify).await?;
        let body = SubmissionBody::dry_run_json(form, &sent, session.now());
        return Ok(with_dropped_keys(json_text(body), &keys));
    }
    let Accepted { submission, replayed, dropped: keys } =
        session.create_submission(&form, repeatable, SubmissionStatus::Completed, notify).await?;
    let location = format!("/api/v1/forms/{}/submissions/{}", submission.form, submission.id);
    let response = with_etag(json_text(SubmissionBody::json(&submission)), submission.revision());
    Ok(with_dropped_keys(created_response(response, location, replayed), &keys))
}

/// Create a batch of submissions
///
/// At most 1000, as an object with `submissions` or, as `application/x-ndjson`, one on each line. The valid ones are stored together, in one write; each has
/// a result as if it had been sent alone, with numeric HTTP statuses. `dry_run=true` checks them, and stores nothing.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/submissions:batch", tag = "submissions", params(CreateSubmissionQuery),
    // Lines of JSON are documented in words: generated clients cannot write them.
    request_body(content = ref("#/components/schemas/NewBatch"), description = "The submissions"),
    responses((status = 200, body = BatchResults, description = "A result for each submission"))
)]
pub(crate) async fn create_submissions(
    Call { session, shared, path: form, query, .. }: Call<String, CreateSubmissionQuery>,
    request: Request,
) -> Result<Response> {
    let CreateSubmissionQuery { dry_run, notify } = query;
    let (body, format) = read_batch(request, shared.settings.max_batch, &shared).await?;
    let (request, max_submission) = (body.repeatable()?, shared.settings.max_body);
    let batch = BatchRequest { request, format, max_submission, dry_run, notify };
    Ok(replayable(session.create_batch(&form, batch).await?))
}

impl FromQuery for ErasureRequest {
    fn from_query(query: &mut QueryReader) -> Self {
        let (text, answers, dry_run) = (query.text("q"), query.filter(), query.flag("dry_run"));
        Self { query: SubmissionQuery { text, answers, ..SubmissionQuery::default() }, dry_run }
    }
}

/// Erase what a form has of someone
///
/// Finds the text `q`, ignoring case, in answers, numbers and metadata, and answers that satisfy all tests of `where`: in submissions
/// outside and in the trash, quarantined ones too, also of a form in the trash, and in the states that edits replaced. Each submission with a match is
/// erased as a whole, with its history; its deliveries that wait are canceled. With `dry_run=true` nothing is erased. Erased text leaves the files of the store within a day, or when
/// `POST /api/v1/store/compact` is done; backups, and what was delivered, keep it.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/submissions:erase", tag = "submissions",
    params(
        ("q" = Option<String>, Query, description = "The text to find, ignoring case."),
        ("where" = Option<Vec<String>>, Query, style = Form, explode, example = json!(["email.eq=ann@example.com"]),
            description = "Tests of answers, as in the list of submissions."),
        ("filter" = Option<Object>, Query, style = DeepObject, explode, description = "The same tests, as in the list of submissions."),
        ("dry_run" = bool, Query, description = "Find the submissions, and erase nothing.")
    ),
    responses((status = 200, body = Erasure, description = "The submissions that were erased, or would be"))
)]
pub(crate) async fn erase_submissions(
    Call { session, shared, path: form, query: erasure, .. }: Call<String, ErasureRequest>,
    request: Request,
) -> Result<Response> {
    let uri = request.uri().clone();
    let body = read_empty_body(request, &shared).await?;
    let erased = session.erase_submissions(&form, erasure, body.repeatable()?).await;
    Ok(replayable(erased.map_err(|error| point_to_where(error, uri.query().unwrap_or_default()))?))
}

/// List submissions
///
/// Newest first. `next_cursor` and the header `Link` lead to the next page. A filter names questions of the form's current
/// version and compares stored answers by their current type: an answer of another type does not match.
///
/// With `Accept: application/x-ndjson` or `text/csv`, all that match are sent as one body, without `limit`, `cursor` and `count`:
/// the same objects, one a line, or a table with the columns `id`, `submitted_at` and one for each question, those of removed
/// questions at the end. In a cell, several options are joined with `; `, and a text that a spreadsheet would run as a formula
/// gets a leading `'`. The table is without submissions to a version of the form that was made since it began. A body that cannot
/// be completed is cut: over HTTP/1.1 without the last chunk, over HTTP/2 by a reset.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/submissions", tag = "submissions",
    params(
        PageQuery,
        ("trashed" = bool, Query,
            description = "Only submissions in the trash; combines with `limit` and `cursor` only."),
        ("order" = Option<String>, Query, description = "`asc`: oldest first. `desc`: newest first."),
        ("since" = Option<Timestamp>, Query, description = "Only submissions at or after this time (RFC 3339)."),
        ("until" = Option<Timestamp>, Query, description = "Only submissions before this time (RFC 3339)."),
        ("status" = Option<SubmissionStatus>, Query, description = "`completed`, the default, or only quarantined \
            submissions, which no other list has; that combines with `limit` and `cursor` only."),
        ("q" = Option<String>, Query,
            description = "Only submissions with this text in a text answer, ignoring case."),
        ("filter" = Option<Object>, Query, style = DeepObject, explode,
            description = "Only submissions whose answers satisfy all tests: `filter[q3]=4` (equals), \
                `filter[q3][gte]=4`, `filter[q3][in]=4,5`. The operators are those of conditions: `eq`, `ne`, `lt`, \
                `lte`, `gt`, `gte`, `in`, `includes`, `matches`, `answered`. OpenAPI can only describe \
                `filter[q3]=4`; generated clients send operators with `where`."),
        ("count" = bool, Query, description = "Count the submissions on all pages, in the member `total`; omitted \
            if counting takes longer than 2 seconds."),
        ("where" = Option<Vec<String>>, Query, style = Form, explode, example = json!(["score.gte=4"]),
            description = "Only submissions whose answers satisfy all tests, each a question, an operator of \
                `filter` and a value: `score.gte=4`, `q3=yes`.")
    ),
    // The other media types are documented in words: as contents they would make the type of a generated client a union.
    responses((status = 200, body = SubmissionList, description = "A page of submissions"))
)]
pub(crate) async fn list_submissions(
    Call { session, path: form, query: request, .. }: Call<String, SubmissionListRequest, SendsExport>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response> {
    let (limit, query) = (request.limit, uri.query().unwrap_or_default());
    if let Some(media_type) = preferred(&headers, SendsExport::OTHERS) {
        refuse_parameters(query, &["limit", "cursor", "count"])?;
        let format = if media_type == CSV { ExportFormat::Csv } else { ExportFormat::JsonLines };
        let export = session.export(&form, request, format).await;
        let export = export.map_err(|error| point_to_where(error, query))?;
        return Ok(with_header(Response::new(export_body(export)), CONTENT_TYPE, media_type));
    }
    let found = session.list_submissions(&form, request).await;
    let found = found.map_err(|error| point_to_where(error, query))?;
    let next = found.next.as_deref();
    Ok(with_next_link(json_text(SubmissionList::json(&found.items, next, found.total)), &uri, limit, next))
}

/// Get the summary of a form
///
/// Counts, averages and latest texts of the questions of the current version. The filters are those of the list of submissions. An
/// answer of another type than the question has now is none; an option that was removed counts. What is not `null` is exact.
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

/// Get a submission
///
/// With its answers as sent, and the version of the form they were checked against.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/submissions/{submission}", tag = "submissions",
    responses((status = 200, body = SubmissionDetail, description = "The submission",
        headers(("ETag" = String))))
)]
pub(crate) async fn get_submission(
    Call { session, path: (form, submission), .. }: Call<(String, String)>,
) -> Result<Response> {
    Ok(submission_response(&session.get_submission(&form, &submission).await?))
}

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
) -> Result<Response> {
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
) -> Result<Response> {
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
) -> Result<Response> {
    let body = read_empty_body(request, &shared).await?;
    let (request, status) = (body.repeatable()?, SubmissionStatus::Completed);
    let (restored, again) = session.restore_submission(&form, &submission, status, request).await?;
    Ok(with_replayed(submission_response(&restored), again))
}

/// Release a submission
///
/// Takes the submission out of quarantine, unless the form has reached `max_responses`: it is listed, counts, and is delivered to
/// integrations as if it had just arrived. It keeps its id and `submitted_at`.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/submissions/{submission}/release", tag = "submissions",
    responses((status = 200, body = SubmissionDetail, description = "The submission",
        headers(("ETag" = String))))
)]
pub(crate) async fn release_submission(
    Call { session, shared, path: (form, submission), .. }: Call<(String, String)>,
    request: Request,
) -> Result<Response> {
    let body = read_empty_body(request, &shared).await?;
    let (request, status) = (body.repeatable()?, SubmissionStatus::Quarantined);
    let (released, again) = session.restore_submission(&form, &submission, status, request).await?;
    Ok(with_replayed(submission_response(&released), again))
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
) -> Result<Response> {
    let PageQuery { limit, cursor } = query;
    let found = session.list_history(&form, &submission, cursor.as_deref(), limit).await?;
    Ok(with_next_link(json_text(HistoryList::json(&found.items)), &uri, limit, found.next.as_deref()))
}

/// Returns the text of `export` as a body, which reads the next page when the client has received the one before.
fn export_body(export: Export) -> Body {
    Body::from_stream(try_unfold(export, |mut export| async move {
        let part = export.next().await.map_err(|error| {
            let code = error.problem.code;
            tracing::warn!(%code, cause = ?error.cause, "an export cannot be completed");
            io::Error::other("the export cannot be completed")
        });
        Ok::<_, io::Error>(part?.map(|part| (part, export)))
    }))
}

/// Returns one submission, with the `ETag` of its revision.
fn submission_response(submission: &Submission) -> Response {
    with_etag(json_text(SubmissionDetail::json(submission)), submission.revision())
}
