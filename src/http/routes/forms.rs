//! Handlers of forms.
#![expect(unused_qualifications, reason = "the attribute of utoipa writes them")]

use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use utoipa::IntoParams;

use crate::api::{FormCreated, FormDetail, FormEntry, FormList, VersionList, VersionView};
use crate::app::{CreatedForm, FormListRequest, FormView};
use crate::clock::Timestamp;
use crate::domain::form::FormStatus;
use crate::domain::form::admission::AcceptingReason;
use crate::domain::form::filter::FormFilter;
use crate::domain::workspace::{Caller, Scope};
use crate::http::wire::accept::{SCHEMA, accepts};
use crate::http::wire::authenticated::Authenticated;
use crate::http::wire::conditional::{IfMatch, with_etag};
use crate::http::wire::extract::{PathParams, read_empty_body, read_json, read_patch};
use crate::http::wire::problem::ApiError;
use crate::http::wire::query::{FromQuery, NoParams, PageQuery, QueryParams, QueryReader};
use crate::http::wire::responses::{
    created_response, json, json_text, with_header, with_next_link, with_replayed, with_total,
};

/// Query of an operation with a dry run.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DryRunQuery {
    /// Check everything and store nothing.
    pub(crate) dry_run: bool,
}

impl FromQuery for DryRunQuery {
    fn from_query(query: &mut QueryReader) -> Self {
        Self { dry_run: query.flag("dry_run") }
    }
}

impl FromQuery for FormListRequest {
    fn from_query(query: &mut QueryReader) -> Self {
        let PageQuery { limit, cursor } = PageQuery::from_query(query);
        let status =
            query.one_of("status", &[("draft", FormStatus::Draft), ("published", FormStatus::Published)]);
        let reasons = AcceptingReason::ALL.map(|reason| (reason.name(), reason));
        let accepting_reason = query.one_of("accepting_reason", &reasons);
        let title = query.text("q");
        let trashed = query.flag("trashed");
        let filter = FormFilter { trashed, status, title, ..FormFilter::default() };
        Self { filter, accepting_reason, cursor, limit, count: query.flag("count") }
    }
}

/// Query of a deletion.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PurgeQuery {
    /// Erase at once instead of moving to the trash; needs the scope `admin`.
    pub(crate) purge: bool,
}

impl FromQuery for PurgeQuery {
    fn from_query(query: &mut QueryReader) -> Self {
        Self { purge: query.flag("purge") }
    }
}

/// Create a form
///
/// The form starts as a draft. With `dry_run=true` everything is checked, nothing is stored, and the response is 200 with
/// the form as it would be, with an id of zeros. A signing secret that the server makes for one of the `integrations` is shown
/// only here.
#[utoipa::path(
    post, path = "/api/v1/forms", tag = "forms", params(DryRunQuery),
    request_body(content = ref("#/components/schemas/NewForm"), description = "The form"),
    responses(
        (status = 201, body = FormCreated, description = "The draft",
            headers(("Location" = String), ("ETag" = String), ("Idempotency-Replayed" = String))),
        (status = 200, body = FormCreated, description = "Dry run: the form as it would be, with an id of zeros")
    )
)]
pub(crate) async fn create_form(
    Authenticated { caller, shared }: Authenticated,
    QueryParams(DryRunQuery { dry_run }): QueryParams<DryRunQuery>,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_json(request, shared.settings.max_definition, &shared).await?;
    let repeatable = body.repeatable()?;
    if dry_run {
        let CreatedForm { form, version, .. } = shared.app.try_form(&caller, body.as_str()).await?;
        return json(&FormCreated::dry_run(&form, &version)?);
    }
    let CreatedForm { form, version, generated, replayed } =
        shared.app.create_form(&caller, repeatable).await?;
    let secrets = if replayed { &[] } else { &*generated };
    let response = with_etag(json(&FormCreated::new(&form, &version, secrets)?)?, form.revision);
    Ok(created_response(response, format!("/api/v1/forms/{}", form.id), replayed))
}

/// List forms
///
/// Newest first. The next page is in the header `Link`.
#[utoipa::path(
    get, path = "/api/v1/forms", tag = "forms",
    params(
        PageQuery,
        ("status" = Option<FormStatus>, Query, description = "Only forms with this status."),
        ("accepting_reason" = Option<AcceptingReason>, Query,
            description = "Only forms that do not accept answers now, for this reason."),
        ("q" = Option<String>, Query, description = "Only forms with this text in the title, ignoring case."),
        ("trashed" = bool, Query, description = "Only forms in the trash, in the order of their deletion."),
        ("count" = bool, Query, description = "Count the forms on all pages, in the header `Forms-Total`.")
    ),
    responses((status = 200, body = FormList, description = "A page of forms",
        headers(("Link" = String), ("Forms-Total" = u64))))
)]
pub(crate) async fn list_forms(
    Authenticated { caller, shared }: Authenticated,
    QueryParams(wanted): QueryParams<FormListRequest>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let limit = wanted.limit;
    let found = shared.app.list_forms(&caller, wanted).await?;
    let now = shared.app.now();
    let forms = found.items.iter().map(|(form, count)| FormEntry::new(form, *count, now)).collect();
    let page = with_next_link(json(&FormList { forms })?, &uri, limit, found.next.as_deref());
    Ok(with_total(page, found.total))
}

/// Get a form
///
/// By id or slug, with its questions and settings, and whether it accepts answers now.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}", tag = "forms",
    responses((status = 200, body = FormDetail, description = "The form", headers(("ETag" = String))))
)]
pub(crate) async fn get_form(
    Authenticated { caller, shared }: Authenticated,
    PathParams(form): PathParams<String>,
    _: QueryParams<NoParams>,
) -> Result<Response, ApiError> {
    form_response(&caller, shared.app.get_form(&caller, &form).await?, shared.app.now())
}

/// Update a form
///
/// A JSON merge patch (RFC 7396) of `title`, `description`, `slug`, `status`, `settings`, `questions` and `integrations`.
/// `{"status":"published"}` publishes. `questions` replaces the whole list; a question that keeps its id stays the same
/// question, and so does an integration that keeps its name and type. With `dry_run=true` everything is checked, nothing is
/// stored, and the response is the form as it would be.
#[utoipa::path(
    patch, path = "/api/v1/forms/{form}", tag = "forms", params(DryRunQuery),
    request_body(content = ref("#/components/schemas/FormPatch"), description = "The changes"),
    responses((status = 200, body = FormDetail, description = "The form; in a dry run without `ETag`",
        headers(("ETag" = String))))
)]
pub(crate) async fn update_form(
    Authenticated { caller, shared }: Authenticated,
    PathParams(form): PathParams<String>,
    QueryParams(DryRunQuery { dry_run }): QueryParams<DryRunQuery>,
    IfMatch(expected): IfMatch,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_patch(request, shared.settings.max_definition, &shared).await?;
    let updated = shared.app.update_form(&caller, &form, body.as_str(), expected, dry_run).await?;
    if dry_run {
        // The stored form does not have the revision that the tag would name.
        return form_detail(&caller, updated, shared.app.now(), false);
    }
    form_response(&caller, updated, shared.app.now())
}

/// Delete a form
///
/// Moves the form and its submissions to the trash; with `purge=true` they are erased.
#[utoipa::path(
    delete, path = "/api/v1/forms/{form}", tag = "forms", params(PurgeQuery),
    responses((status = 204, description = "The form is in the trash, or erased"))
)]
pub(crate) async fn delete_form(
    Authenticated { caller, shared }: Authenticated,
    PathParams(form): PathParams<String>,
    QueryParams(PurgeQuery { purge }): QueryParams<PurgeQuery>,
    IfMatch(expected): IfMatch,
) -> Result<Response, ApiError> {
    shared.app.delete_form(&caller, &form, purge, expected).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Restore a form
///
/// Takes the form and its submissions out of the trash.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/restore", tag = "forms",
    responses((status = 200, body = FormDetail, description = "The form",
        headers(("ETag" = String), ("Idempotency-Replayed" = String))))
)]
pub(crate) async fn restore_form(
    Authenticated { caller, shared }: Authenticated,
    PathParams(form): PathParams<String>,
    _: QueryParams<NoParams>,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_empty_body(request, &shared).await?;
    let (restored, at, again) = shared.app.restore_form(&caller, &form, body.repeatable()?).await?;
    Ok(with_replayed(form_response(&caller, restored, at)?, again))
}

/// List a form's versions
///
/// Every edit of the questions creates a new version; each submission names the one it was checked against. Newest
/// first. The next page is in the header `Link`.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/versions", tag = "forms", params(PageQuery),
    responses((status = 200, body = VersionList, description = "A page of versions",
        headers(("Link" = String))))
)]
pub(crate) async fn list_versions(
    Authenticated { caller, shared }: Authenticated,
    PathParams(form): PathParams<String>,
    QueryParams(PageQuery { limit, cursor }): QueryParams<PageQuery>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let found = shared.app.list_versions(&caller, &form, cursor.as_deref(), limit).await?;
    let versions = found.items.into_iter().map(VersionView::from).collect();
    Ok(with_next_link(json(&VersionList { versions })?, &uri, limit, found.next.as_deref()))
}

/// Get one version of a form
///
/// The questions as they were in that version.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/versions/{version}", tag = "forms",
    responses((status = 200, body = VersionView, description = "The version"))
)]
pub(crate) async fn get_version(
    Authenticated { caller, shared }: Authenticated,
    PathParams((form, version)): PathParams<(String, String)>,
    _: QueryParams<NoParams>,
) -> Result<Response, ApiError> {
    json(&VersionView::from(shared.app.get_version(&caller, &form, &version).await?))
}

/// Get the JSON Schema of a form's answers
///
/// The schema accepts all answers that the form accepts, except empty values, and rejects others as far as JSON Schema
/// (2020-12) can express it: not conditions, rules that depend on the date, phone numbers, or patterns without an ECMA-262
/// equivalent.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/schema", tag = "forms",
    responses((status = 200, description = "The schema of the member `answers` of a submission",
        content(
            (HashMap<String, Value> = "application/json"),
            (HashMap<String, Value> = "application/schema+json")
        )))
)]
pub(crate) async fn get_schema(
    Authenticated { caller, shared }: Authenticated<true>,
    PathParams(form): PathParams<String>,
    _: QueryParams<NoParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let response = json_text(shared.app.get_schema(&caller, &form).await?);
    if !accepts(&headers, SCHEMA) {
        return Ok(response);
    }
    Ok(with_header(response, CONTENT_TYPE, SCHEMA))
}

/// Returns a form as it was `at` a time, with the `ETag` of its revision.
fn form_response(caller: &Caller, view: FormView, at: Timestamp) -> Result<Response, ApiError> {
    let revision = view.form.revision;
    Ok(with_etag(form_detail(caller, view, at, true)?, revision))
}

/// Returns a form, with its integrations if the caller may read them, and the texts of generated secrets if they were stored.
fn form_detail(
    caller: &Caller,
    view: FormView,
    at: Timestamp,
    is_stored: bool,
) -> Result<Response, ApiError> {
    let FormView { form, version, responses, generated } = view;
    let detail = FormDetail::new(&form, version, responses, at);
    let secrets = if is_stored { &*generated } else { &[] };
    match caller.has_scope(Scope::Read) {
        true => json(&detail.with_integrations(&form, secrets)),
        false => json(&detail),
    }
}
