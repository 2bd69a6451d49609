//! Handlers of the store as a whole.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream::poll_fn;

use crate::api::StoreView;
use crate::app::Result;
use crate::http::wire::accept::TAR;
use crate::http::wire::call::{Call, SendsTar};
use crate::http::wire::query::NoParams;
use crate::http::wire::responses::json;

/// Get the store
///
/// Sizes in bytes, whether a compaction or a verification is in progress, and what the last verification has found.
#[utoipa::path(
    get, path = "/api/v1/store", tag = "store",
    responses((status = 200, body = StoreView, description = "The store"))
)]
pub(crate) async fn get_store(Call { session, .. }: Call) -> Result<Response> {
    json(&session.store_view().await?)
}

/// Compact the store
///
/// Frees the space of what was overwritten and deleted, in the background. Once `compacting` is false again, what was erased before
/// is in no file of journal and index: a new index takes the place of the old one, and meanwhile reads get 503 `store_unavailable`
/// for a moment. Erasures cause a compaction by themselves within a day. A request while one is in progress starts no other.
#[utoipa::path(
    post, path = "/api/v1/store/compact", tag = "store",
    responses((status = 202, body = StoreView, description = "The store, as it is now"))
)]
pub(crate) async fn compact(Call { session, .. }: Call) -> Result<Response> {
    Ok((StatusCode::ACCEPTED, json(&session.compact().await?)?).into_response())
}

/// Verify the store
///
/// Reads every write of the journal and compares every row of the index with it, in the background, until `verifying` is false
/// again. Then `verification` has the damage; a wrong index has been rebuilt. A request while one is in progress starts no other.
#[utoipa::path(
    post, path = "/api/v1/store/verify", tag = "store",
    responses((status = 202, body = StoreView, description = "The store, as it is now"))
)]
pub(crate) async fn verify(Call { session, .. }: Call) -> Result<Response> {
    Ok((StatusCode::ACCEPTED, json(&session.verify().await?)?).into_response())
}

/// Back up the store
///
/// A tar archive of the store as it is now, while requests go on: journal, master key and exports. Its last entry is
/// `manifest.json`, which has the size and SHA-256 of every file; an archive without it is not whole. `forms store backup` checks
/// all of it. The master key is not in it if the server reads it from a file elsewhere. 409 `backup_in_progress` while another
/// one is made.
#[utoipa::path(
    get, path = "/api/v1/store/backup", tag = "store",
    responses((
        status = 200, body = ref("#/components/schemas/Archive"), description = "The archive", content_type = "application/x-tar"
    ))
)]
pub(crate) async fn get_backup(Call { session, .. }: Call<(), NoParams, SendsTar>) -> Result<Response> {
    let mut pieces = session.backup().await?;
    tracing::info!(by = %session.caller.id, "a backup begins");
    let mut response = Response::new(Body::from_stream(poll_fn(move |context| pieces.poll_recv(context))));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TAR));
    Ok(response)
}
