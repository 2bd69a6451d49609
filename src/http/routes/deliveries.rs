//! Handlers of deliveries.
#![expect(unused_qualifications, reason = "the attribute of utoipa writes them")]

use axum::extract::Request;
use axum::http::Uri;
use axum::response::Response;
use utoipa::IntoParams;

use crate::api::{
    AttemptList, AttemptView, DeliveryCount, DeliveryDetail, DeliveryList, DeliveryStats, DeliveryTypeStats,
};
use crate::app::{BulkCount, DeliveryListRequest, DeliveryView, IdempotentRequest};
use crate::clock::Timestamp;
use crate::domain::delivery::DeliveryStatus;
use crate::domain::delivery::selection::DeliverySelection;
use crate::http::routes::integrations::{idempotent_response, to_json};
use crate::http::wire::authenticated::Authenticated;
use crate::http::wire::extract::{IdempotencyHeader, PathParams, read_empty_body, read_json};
use crate::http::wire::problem::ApiError;
use crate::http::wire::query::{FromQuery, NoParams, QueryParams, QueryReader};
use crate::http::wire::responses::{json, json_text, with_next_link};
use crate::id::SubmissionId;
use crate::store::{DEFAULT_PAGE, TypeStats};

/// Query of `list_deliveries`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListDeliveriesQuery {
    /// Maximum number to return. A page ends earlier when a search has taken 2 seconds.
    #[param(value_type = u32, required = false, minimum = 1, maximum = 1000, default = 100)]
    limit: usize,
    /// Where to continue: `next_cursor` of the page before.
    cursor: Option<String>,
    /// Only deliveries of this form, by id or slug.
    form: Option<String>,
    /// Only deliveries to this integration, by id or, with `form`, by name.
    integration: Option<String>,
    /// Only deliveries of this submission, by id.
    submission: Option<SubmissionId>,
    /// Only deliveries with one of these statuses, separated by commas.
    #[param(value_type = Option<String>)]
    status: Vec<DeliveryStatus>,
    /// Only events at or after this time (RFC 3339).
    since: Option<Timestamp>,
    /// Only events before this time (RFC 3339).
    until: Option<Timestamp>,
}

impl FromQuery for ListDeliveriesQuery {
    fn from_query(query: &mut QueryReader) -> Self {
        let [since, until] = query.time_range();
        Self {
            limit: query.limit(DEFAULT_PAGE),
            cursor: query.text("cursor"),
            form: query.text("form"),
            integration: query.text("integration"),
            submission: query.id("submission", "the id of a submission"),
            status: query.list_of("status", &DeliveryStatus::ALL.map(|status| (status.name(), status))),
            since,
            until,
        }
    }
}

/// List deliveries
///
/// Those of all forms, newest event first. `next_cursor` and the header `Link` lead to the next page. A delivery is one event
/// that is owed to one integration.
#[utoipa::path(
    get, path = "/api/v1/deliveries", tag = "deliveries", params(ListDeliveriesQuery),
    responses((status = 200, body = DeliveryList, description = "A page of deliveries",
        headers(("Link" = String))))
)]
pub(crate) async fn list_deliveries(
    Authenticated { caller, shared }: Authenticated,
    QueryParams(asked): QueryParams<ListDeliveriesQuery>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let ListDeliveriesQuery { limit, cursor, form, integration, submission, status, since, until } = asked;
    let selection = DeliverySelection { form, integration, submission, status, since, until };
    let request = DeliveryListRequest { selection, cursor, limit };
    let found = shared.app.list_deliveries(&caller, request).await?;
    let deliveries = found.items.iter().map(detail).collect();
    let page = json(&DeliveryList { deliveries, next_cursor: found.next.clone() })?;
    Ok(with_next_link(page, &uri, limit, found.next.as_deref()))
}

/// Get statistics of deliveries
///
/// By type of integration, over all forms of the workspace.
#[utoipa::path(
    get, path = "/api/v1/deliveries/stats", tag = "deliveries",
    responses((status = 200, body = DeliveryStats, description = "The statistics"))
)]
pub(crate) async fn get_delivery_stats(
    Authenticated { caller, shared }: Authenticated,
    _: QueryParams<NoParams>,
) -> Result<Response, ApiError> {
    let types = shared.app.delivery_stats(&caller).await?;
    json(&DeliveryStats { types: types.into_iter().map(|(kind, stats)| type_stats(kind, &stats)).collect() })
}

/// Get a delivery
///
/// With its state, the number of attempts, and why the last one failed.
#[utoipa::path(
    get, path = "/api/v1/deliveries/{delivery}", tag = "deliveries",
    responses((status = 200, body = DeliveryDetail, description = "The delivery"))
)]
pub(crate) async fn get_delivery(
    Authenticated { caller, shared }: Authenticated,
    PathParams(delivery): PathParams<String>,
    _: QueryParams<NoParams>,
) -> Result<Response, ApiError> {
    json(&detail(&shared.app.get_delivery(&caller, &delivery).await?))
}

/// List the attempts of a delivery
///
/// Oldest first, with the beginning of what the receiver answered.
#[utoipa::path(
    get, path = "/api/v1/deliveries/{delivery}/attempts", tag = "deliveries",
    responses((status = 200, body = AttemptList, description = "The attempts"))
)]
pub(crate) async fn list_attempts(
    Authenticated { caller, shared }: Authenticated,
    PathParams(delivery): PathParams<String>,
    _: QueryParams<NoParams>,
) -> Result<Response, ApiError> {
    let attempts = shared.app.list_attempts(&caller, &delivery).await?;
    json(&AttemptList { attempts: attempts.into_iter().map(AttemptView::from).collect() })
}

/// Get the body of a delivery
///
/// The exact bytes that every attempt sends, or for a CSV file what its row is made from. There are none if the delivery was
/// skipped, or if its submission, form or integration was erased.
#[utoipa::path(
    get, path = "/api/v1/deliveries/{delivery}/event", tag = "deliveries",
    responses((status = 200, description = "The body",
        content((HashMap<String, Value> = "application/json"))))
)]
pub(crate) async fn get_delivery_event(
    Authenticated { caller, shared }: Authenticated,
    PathParams(delivery): PathParams<String>,
    _: QueryParams<NoParams>,
) -> Result<Response, ApiError> {
    Ok(json_text(shared.app.get_delivery_event(&caller, &delivery).await?))
}

/// Deliver again
///
/// Makes the delivery due at once. One that has ended begins its schedule of attempts anew. Receivers get the same `webhook-id`.
#[utoipa::path(
    post, path = "/api/v1/deliveries/{delivery}/redeliver", tag = "deliveries",
    responses((status = 200, body = DeliveryDetail, description = "The delivery",
        headers(("Idempotency-Replayed" = String))))
)]
pub(crate) async fn redeliver(
    Authenticated { caller, shared }: Authenticated,
    PathParams(delivery): PathParams<String>,
    _: QueryParams<NoParams>,
    IdempotencyHeader(key): IdempotencyHeader,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_empty_body(request, &shared).await?;
    let attempt = IdempotentRequest { idempotency_key: key.as_deref(), query: "", body: body.as_str() };
    let redelivered = shared.app.redeliver(&caller, &delivery, attempt, detail_json).await?;
    Ok(idempotent_response(redelivered, detail_json))
}

/// Cancel a delivery
///
/// Only a delivery that waits can be canceled.
#[utoipa::path(
    post, path = "/api/v1/deliveries/{delivery}/cancel", tag = "deliveries",
    responses((status = 200, body = DeliveryDetail, description = "The delivery",
        headers(("Idempotency-Replayed" = String))))
)]
pub(crate) async fn cancel_delivery(
    Authenticated { caller, shared }: Authenticated,
    PathParams(delivery): PathParams<String>,
    _: QueryParams<NoParams>,
    IdempotencyHeader(key): IdempotencyHeader,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_empty_body(request, &shared).await?;
    let attempt = IdempotentRequest { idempotency_key: key.as_deref(), query: "", body: body.as_str() };
    let canceled = shared.app.cancel_delivery(&caller, &delivery, attempt, detail_json).await?;
    Ok(idempotent_response(canceled, detail_json))
}

/// Deliver all that match again
///
/// By default those that failed for good. Oldest event first, at once or at the `rate`. One request changes at most
/// 10000, the newest. With `dry_run` they are only counted.
#[utoipa::path(
    post, path = "/api/v1/deliveries:redeliver", tag = "deliveries",
    request_body(content = ref("#/components/schemas/RedeliverySelection"), description = "Which deliveries"),
    responses((status = 200, body = DeliveryCount, description = "How many are due now or later",
        headers(("Idempotency-Replayed" = String))))
)]
pub(crate) async fn redeliver_all(
    Authenticated { caller, shared }: Authenticated,
    _: QueryParams<NoParams>,
    IdempotencyHeader(key): IdempotencyHeader,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_json(request, shared.settings.max_body, &shared).await?;
    let attempt = IdempotentRequest { idempotency_key: key.as_deref(), query: "", body: body.as_str() };
    let redelivered = shared.app.redeliver_all(&caller, attempt, count_json).await?;
    Ok(idempotent_response(redelivered, count_json))
}

/// Cancel all deliveries that match
///
/// Of those that wait. One request changes at most 10000, the newest. With `dry_run` they are only counted.
#[utoipa::path(
    post, path = "/api/v1/deliveries:cancel", tag = "deliveries",
    request_body(content = ref("#/components/schemas/DeliverySelection"), description = "Which deliveries"),
    responses((status = 200, body = DeliveryCount, description = "How many were canceled",
        headers(("Idempotency-Replayed" = String))))
)]
pub(crate) async fn cancel_deliveries(
    Authenticated { caller, shared }: Authenticated,
    _: QueryParams<NoParams>,
    IdempotencyHeader(key): IdempotencyHeader,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_json(request, shared.settings.max_body, &shared).await?;
    let attempt = IdempotentRequest { idempotency_key: key.as_deref(), query: "", body: body.as_str() };
    let canceled = shared.app.cancel_deliveries(&caller, attempt, count_json).await?;
    Ok(idempotent_response(canceled, count_json))
}

fn detail(view: &DeliveryView) -> DeliveryDetail {
    DeliveryDetail::new(&view.delivery, view.integration(), view.to())
}

fn detail_json(view: &DeliveryView) -> String {
    to_json(&detail(view))
}

fn count_json(BulkCount { count, has_more }: &BulkCount) -> String {
    to_json(&DeliveryCount { count: *count, has_more: *has_more })
}

fn type_stats(kind: &str, stats: &TypeStats) -> DeliveryTypeStats {
    DeliveryTypeStats {
        kind: kind.to_owned(),
        pending: stats.pending,
        in_flight: stats.in_flight,
        paused: stats.paused,
        dead: stats.dead,
        oldest_due_at: stats.oldest_due_at,
        delivered_24h: stats.delivered,
    }
}
