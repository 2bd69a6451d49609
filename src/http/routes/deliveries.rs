//! Handlers of deliveries.

use axum::extract::Request;
use axum::http::Uri;
use axum::response::Response;

use crate::api::{AttemptList, DeliveryCount, DeliveryDetail, DeliveryList, DeliveryStats};
use crate::app::Result;
use crate::clock::Timestamp;
use crate::domain::delivery::lifecycle::ManualChange;
use crate::domain::delivery::selection::DeliverySelection;
use crate::http::wire::call::Call;
use crate::http::wire::extract::{read_empty_body, read_json};
use crate::http::wire::query::{FromQuery, PageQuery, QueryReader};
use crate::http::wire::responses::{json, json_text, replayable, with_next_link};
use crate::id::SubmissionId;

const REDELIVER: ManualChange = ManualChange::Redeliver { wait_ms: 0 };

pub(crate) struct ListDeliveriesQuery {
    page: PageQuery,
    selection: DeliverySelection,
}

impl FromQuery for ListDeliveriesQuery {
    fn from_query(query: &mut QueryReader) -> Self {
        let names = ["form", "integration", "submission", "status", "since", "until"];
        let page = PageQuery::from_query(query);
        Self { page, selection: query.object(&names, |query| DeliverySelection::read(query, false)) }
    }
}

/// List deliveries
///
/// Those of all forms, newest event first. `next_cursor` and the header `Link` lead to the next page; a page ends earlier when
/// a search has taken 2 seconds. A delivery is one event that is owed to one integration.
#[utoipa::path(
    get, path = "/api/v1/deliveries", tag = "deliveries",
    params(
        PageQuery,
        ("form" = Option<String>, Query, description = "Only deliveries of this form, by id or slug."),
        ("integration" = Option<String>, Query,
            description = "Only deliveries to this integration, by id or, with `form`, by name."),
        ("submission" = Option<SubmissionId>, Query, description = "Only deliveries of this submission, by id."),
        ("status" = Option<String>, Query,
            description = "Only deliveries with one of these statuses, separated by commas."),
        ("since" = Option<Timestamp>, Query, description = "Only events at or after this time (RFC 3339)."),
        ("until" = Option<Timestamp>, Query, description = "Only events before this time (RFC 3339).")
    ),
    responses((status = 200, body = DeliveryList, description = "A page of deliveries"))
)]
pub(crate) async fn list_deliveries(
    Call { session, query: ListDeliveriesQuery { page, selection }, .. }: Call<(), ListDeliveriesQuery>,
    uri: Uri,
) -> Result<Response> {
    let PageQuery { limit, cursor } = page;
    let found = session.list_deliveries(selection, cursor.as_deref(), limit).await?;
    Ok(with_next_link(json(&found)?, &uri, limit, found.next_cursor.as_deref()))
}

/// Get statistics of deliveries
///
/// By type of integration, over all forms of the workspace.
#[utoipa::path(
    get, path = "/api/v1/deliveries/stats", tag = "deliveries",
    responses((status = 200, body = DeliveryStats, description = "The statistics"))
)]
pub(crate) async fn get_delivery_stats(Call { session, .. }: Call) -> Result<Response> {
    json(&session.delivery_stats().await?)
}

/// Get a delivery
///
/// With its state, the number of attempts, and why the last one failed.
#[utoipa::path(
    get, path = "/api/v1/deliveries/{delivery}", tag = "deliveries",
    responses((status = 200, body = DeliveryDetail, description = "The delivery"))
)]
pub(crate) async fn get_delivery(Call { session, path: delivery, .. }: Call<String>) -> Result<Response> {
    json(&session.get_delivery(&delivery).await?)
}

/// List the attempts of a delivery
///
/// Oldest first, with the beginning of what the receiver answered.
#[utoipa::path(
    get, path = "/api/v1/deliveries/{delivery}/attempts", tag = "deliveries",
    responses((status = 200, body = AttemptList, description = "The attempts"))
)]
pub(crate) async fn list_attempts(Call { session, path: delivery, .. }: Call<String>) -> Result<Response> {
    json(&AttemptList { attempts: session.list_attempts(&delivery).await? })
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
    Call { session, path: delivery, .. }: Call<String>,
) -> Result<Response> {
    Ok(json_text(session.get_delivery_event(&delivery).await?))
}

/// Deliver again
///
/// Makes the delivery due at once. One that has ended begins its schedule of attempts anew. Receivers get the same `webhook-id`.
#[utoipa::path(
    post, path = "/api/v1/deliveries/{delivery}/redeliver", tag = "deliveries",
    responses((status = 200, body = DeliveryDetail, description = "The delivery"))
)]
pub(crate) async fn redeliver(
    Call { session, shared, path: delivery, .. }: Call<String>,
    request: Request,
) -> Result<Response> {
    let body = read_empty_body(request, &shared).await?;
    Ok(replayable(session.change_delivery(&delivery, REDELIVER, body.repeatable()?).await?))
}

/// Cancel a delivery
///
/// Only a delivery that waits can be canceled.
#[utoipa::path(
    post, path = "/api/v1/deliveries/{delivery}/cancel", tag = "deliveries",
    responses((status = 200, body = DeliveryDetail, description = "The delivery"))
)]
pub(crate) async fn cancel_delivery(
    Call { session, shared, path: delivery, .. }: Call<String>,
    request: Request,
) -> Result<Response> {
    let body = read_empty_body(request, &shared).await?;
    Ok(replayable(session.change_delivery(&delivery, ManualChange::Cancel, body.repeatable()?).await?))
}

/// Deliver all that match again
///
/// By default those that failed for good. Oldest event first, at once or at the `rate`. One request changes at most
/// 10000, the newest. With `dry_run` they are only counted.
#[utoipa::path(
    post, path = "/api/v1/deliveries:redeliver", tag = "deliveries",
    request_body(content = ref("#/components/schemas/RedeliverySelection"), description = "Which deliveries"),
    responses((status = 200, body = DeliveryCount, description = "How many are due now or later"))
)]
pub(crate) async fn redeliver_all(Call { session, shared, .. }: Call, request: Request) -> Result<Response> {
    let body = read_json(request, shared.settings.max_body, &shared).await?;
    Ok(replayable(session.change_deliveries(REDELIVER, body.repeatable()?).await?))
}

/// Cancel all deliveries that match
///
/// Of those that wait. One request changes at most 10000, the newest. With `dry_run` they are only counted.
#[utoipa::path(
    post, path = "/api/v1/deliveries:cancel", tag = "deliveries",
    request_body(content = ref("#/components/schemas/DeliverySelection"), description = "Which deliveries"),
    responses((status = 200, body = DeliveryCount, description = "How many were canceled"))
)]
pub(crate) async fn cancel_deliveries(
    Call { session, shared, .. }: Call,
    request: Request,
) -> Result<Response> {
    let body = read_json(request, shared.settings.max_body, &shared).await?;
    Ok(replayable(session.change_deliveries(ManualChange::Cancel, body.repeatable()?).await?))
}
