//! Handlers of forms.
#![expect(unused_qualifications, reason = "the attribute of utoipa writes them")]

use axum::extract::{Extension, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use utoipa::IntoParams;

use crate::api::{FormCreated, FormDetail, FormList, PageLinks, VersionList, VersionView};
use crate::app::FormListRequest;
use crate::app::Result;
use crate::domain::form::FormStatus;
use crate::domain::form::admission::AcceptingReason;
use crate::domain::form::filter::FormFilter;
use crate::http::server::base_url::RequestBase;
use crate::http::wire::accept::{SCHEMA, accepts};
use crate::http::wire::call::{Call, SendsSchema};
use crate::http::wire::conditional::{IfMatch, with_etag};
use crate::http::wire::extract::{read_empty_body, read_json, read_patch};
use crate::http::wire::query::{FromQuery, NoParams, PageQuery, QueryReader};
use crate::http::wire::responses::{
    created_response, json, json_text, with_header, with_next_link, with_replayed,
};

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
        (status = 201, body = FormCreated, description = "The draft", headers(("ETag" = String))),
        (status = 200, body = FormCreated, description = "Dry run: the form as it would be, with an id of zeros")
    )
)]
pub(crate) async fn create_form(
    Call { session, shared, query: DryRunQuery { dry_run }, .. }: Call<(), DryRunQuery>,
    request: Request,
) -> Result<Response> {
    let body = read_json(request, shared.settings.max_definition, &shared).await?;
    let repeatable = body.repeatable()?;
    if dry_run {
        return json(&session.try_form(body.as_str()).await?);
    }
    let (form, revision, replayed) = session.create_form(repeatable).await?;
    let response = with_etag(json(&form)?, revision);
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
        headers(("Forms-Total" = u64))))
)]
pub(crate) async fn list_forms(
    Call { session, query: wanted, .. }: Call<(), FormListRequest>,
    uri: Uri,
) -> Result<Response> {
    let limit = wanted.limit;
    let found = session.list_forms(wanted).await?;
    let page = with_next_link(json(&FormList { forms: found.items })?, &uri, limit, found.next.as_deref());
    let Some(total) = found.total else { return Ok(page) };
    Ok(with_header(page, HeaderName::from_static("forms-total"), total))
}

/// Get a form
///
/// By id or slug, with its questions and settings, and whether it accepts answers now.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}", tag = "forms",
    responses((status = 200, body = FormDetail, description = "The form", headers(("ETag" = String))))
)]
pub(crate) async fn get_form(Call { session, path: form, .. }: Call<String>) -> Result<Response> {
    let (form, revision) = session.get_form(&form).await?;
    Ok(with_etag(json(&form)?, revision))
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
    Call { session, shared, path: form, query: DryRunQuery { dry_run }, .. }: Call<String, DryRunQuery>,
    IfMatch(expected): IfMatch,
    request: Request,
) -> Result<Response> {
    let body = read_patch(request, shared.settings.max_definition, &shared).await?;
    let (form, revision) = session.update_form(&form, body.as_str(), expected, dry_run).await?;
    let response = json(&form)?;
    // After a dry run, the stored form does not have the revision that the tag would name.
    Ok(if dry_run { response } else { with_etag(response, revision) })
}

/// Delete a form
///
/// Moves the form and its submissions to the trash; with `purge=true` they are erased.
#[utoipa::path(
    delete, path = "/api/v1/forms/{form}", tag = "forms", params(PurgeQuery),
    responses((status = 204, description = "The form is in the trash, or erased"))
)]
pub(crate) async fn delete_form(
    Call { session, path: form, query: PurgeQuery { purge }, .. }: Call<String, PurgeQuery>,
    IfMatch(expected): IfMatch,
) -> Result<Response> {
    session.delete_form(&form, purge, expected).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Restore a form
///
/// Takes the form and its submissions out of the trash.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/restore", tag = "forms",
    responses((status = 200, body = FormDetail, description = "The form",
        headers(("ETag" = String))))
)]
pub(crate) async fn restore_form(
    Call { session, shared, path: form, .. }: Call<String>,
    request: Request,
) -> Result<Response> {
    let body = read_empty_body(request, &shared).await?;
    let ((form, revision), replayed) = session.restore_form(&form, body.repeatable()?).await?;
    Ok(with_replayed(with_etag(json(&form)?, revision), replayed))
}

/// List a form's versions
///
/// Every edit of the questions creates a new version; each submission names the one it was checked against. Newest
/// first. The next page is in the header `Link`.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/versions", tag = "forms", params(PageQuery),
    responses((status = 200, body = VersionList, description = "A page of versions"))
)]
pub(crate) async fn list_versions(
    Call { session, path: form, query: PageQuery { limit, cursor }, .. }: Call<String, PageQuery>,
    uri: Uri,
) -> Result<Response> {
    let found = session.list_versions(&form, cursor.as_deref(), limit).await?;
    let page = json(&VersionList { versions: found.items })?;
    Ok(with_next_link(page, &uri, limit, found.next.as_deref()))
}

/// Get one version of a form
///
/// The questions as they were in that version.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/versions/{version}", tag = "forms",
    responses((status = 200, body = VersionView, description = "The version"))
)]
pub(crate) async fn get_version(
    Call { session, path: (form, version), .. }: Call<(String, String)>,
) -> Result<Response> {
    json(&session.get_version(&form, &version).await?)
}

/// Get the addresses of a form's page
///
/// The page where people answer, at `/f/{slug}` or `/f/{id}`, and a link to its preview, which shows a draft, too, and works for
/// a day.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/page", tag = "forms",
    responses((status = 200, body = PageLinks, description = "The addresses"))
)]
pub(crate) async fn get_page_links(
    Call { session, path: form, .. }: Call<String>,
    base: Option<Extension<RequestBase>>,
) -> Result<Response> {
    let base = base.map(|Extension(RequestBase(base))| base).unwrap_or_default();
    json(&session.page_links(&form, &base).await?)
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
    Call { session, path: form, .. }: Call<String, NoParams, SendsSchema>,
    headers: HeaderMap,
) -> Result<Response> {
    let response = json_text(session.get_schema(&form).await?);
    if !accepts(&headers, SCHEMA) {
        return Ok(response);
    }
    Ok(with_header(response, CONTENT_TYPE, SCHEMA))
}
