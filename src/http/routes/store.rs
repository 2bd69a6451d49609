//! Handlers of the store as a whole.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use futures_util::stream::poll_fn;

use crate::app::Result;
use crate::http::wire::accept::TAR;
use crate::http::wire::call::{Call, SendsTar};
use crate::http::wire::query::NoParams;

/// Back up the store
///
/// A tar archive of the store as it is now, while requests go on: journal, master key and exports. Its last entry is
/// `manifest.json`, which has the size and SHA-256 of every file; an archive without it is not whole. `forms store backup` checks
/// all of it. The master key is not in it if the server reads it from a file elsewhere. 409 `backup_in_progress` while another
/// one is made.
#[utoipa::path(
    get, path = "/api/v1/store/backup", tag = "store",
    responses((
        status = 200, body = Vec<u8>, description = "The archive", content_type = "application/x-tar"
    ))
)]
pub(crate) async fn get_backup(Call { session, .. }: Call<(), NoParams, SendsTar>) -> Result<Response> {
    let mut pieces = session.backup().await?;
    tracing::info!(by = %session.caller.id, "a backup begins");
    let mut response = Response::new(Body::from_stream(poll_fn(move |context| pieces.poll_recv(context))));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TAR));
    Ok(response)
}
