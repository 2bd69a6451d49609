//! Downloads: bodies of any size, received piece by piece.

use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use reqwest::Method;

use super::exchange::Request;
use super::transport::{MAX_RESPONSE_BYTES, RawResponse};
use super::{Client, ReceivedBody, Result, join};
use crate::api::SubmissionDetail;

/// A body that is being received.
pub struct Download<'a> {
    client: &'a Client,
    body: Body,
    /// Maximum wait for a piece.
    timeout: Duration,
}

impl Client {
    /// Begins to receive the body at `path`. It is not tried again; the timeout holds for each piece.
    pub async fn download(&self, path: &[&str]) -> Result<Download<'_>> {
        self.begin(Request::new(Method::GET, join(path)?)).await
    }

    /// Begins to receive all submissions of a form, newest first.
    pub async fn stream_submissions(&self, form: &str) -> Result<SubmissionStream<'_>> {
        let request = Request::new(Method::GET, join(&["forms", form, "submissions"])?);
        let download = self.begin(request.accept("application/x-ndjson")).await?;
        Ok(SubmissionStream { download, unread: BytesMut::new() })
    }

    async fn begin(&self, request: Request) -> Result<Download<'_>> {
        let (started, timeout) = (Instant::now(), self.retry_policy.timeout);
        let response = self.transport.open(&request, &self.headers(&request), timeout).await?;
        let (parts, body) = response.into_parts();
        let (status, headers) = (parts.status, parts.headers);
        let mut answer = RawResponse { status, headers, body: Vec::new(), certificate: None };
        let mut download = Download { client: self, body, timeout };
        if answer.status.is_success() {
            self.observe(&request, &Ok(answer), started);
            return Ok(download);
        }
        while answer.body.len() <= MAX_RESPONSE_BYTES
            && let Some(piece) = download.piece().await?
        {
            answer.body.extend_from_slice(&piece);
        }
        let received = Ok(answer);
        self.observe(&request, &received, started);
        self.classify(&request, received?, false).map(|_success| download).map_err(|failure| failure.error)
    }
}

/// Submissions that are being received.
pub struct SubmissionStream<'a> {
    download: Download<'a>,
    unread: BytesMut,
}

impl SubmissionStream<'_> {
    /// Returns the next submission; `None` after the last.
    ///
    /// # Errors
    /// If the connection was lost before the end, or no piece came in time.
    pub async fn next(&mut self) -> Result<Option<ReceivedBody<SubmissionDetail>>> {
        let (client, mut searched) = (self.download.client, 0);
        loop {
            let found = self.unread[searched..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = found {
                return client.decode(&self.unread.split_to(searched + end + 1)).map(Some);
            }
            searched = self.unread.len();
            let piece = self.download.piece().await?;
            match piece.filter(|_| searched <= MAX_RESPONSE_BYTES) {
                Some(piece) => self.unread.extend_from_slice(&piece),
                None if searched == 0 => return Ok(None),
                None => return Err(client.foreign("its answer has no lines")),
            }
        }
    }
}

impl Download<'_> {
    /// Returns the next piece; `None` at the end.
    ///
    /// # Errors
    /// If the connection was lost before the end, or no piece came in time.
    pub async fn piece(&mut self) -> Result<Option<Bytes>> {
        let lost = |why: String| self.client.transport.unanswered(why, true);
        loop {
            let frame = tokio::time::timeout(self.timeout, self.body.frame()).await;
            let frame = frame.map_err(|_elapsed| lost("the response stopped".to_owned()))?;
            match frame.transpose().map_err(|error| lost(format!("the response was cut: {error}")))? {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(piece) = frame.into_data() {
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }
}
