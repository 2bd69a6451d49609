//! Problem documents as responses, and the only place that logs the cause of an error.

use std::error::Error;

use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::api::{Code, PROBLEM_TYPE};
use crate::app::ApiError;

impl ApiError {
    /// Renders the problem document for the request `request_id`, whose URLs begin with `base`. Logs failures of the server.
    pub(crate) fn render(mut self, request_id: &str, base: &str) -> Response<Vec<u8>> {
        self.log(request_id);
        self.problem.kind.insert_str(0, base);
        self.problem.request_id = Some(request_id.to_owned());
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(serde_json::to_vec(&self.problem).unwrap_or_default());
        *response.status_mut() = status;
        let length = response.body().len();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_TYPE));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.problem.code == Code::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }

    /// Logs the cause of a failure of the server.
    pub(crate) fn log(&self, request_id: &str) {
        // Overload, a full disk and a database that is away would fill the log with a line per request; the store reports both once.
        let frequent = [Code::Overloaded, Code::StorageFull, Code::StoreUnavailable];
        let is_frequent = frequent.iter().any(|code| self.problem.code == *code);
        if self.problem.status < 500 || is_frequent {
            return;
        }
        let code = self.problem.code.to_string();
        let cause = self.cause.as_deref().map(error_chain).unwrap_or_default();
        if self.problem.code == Code::Internal {
            tracing::error!(request_id, code, cause, "a request failed");
        } else {
            tracing::warn!(request_id, code, cause, "a request could not be served");
        }
    }
}

/// Returns the messages of an error and its sources, outermost first.
fn error_chain(error: &(dyn Error + Send + Sync + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// Passes through the router inside a response, and is rendered once the request id is known.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// A response body could not be read.
impl From<axum::Error> for ApiError {
    fn from(error: axum::Error) -> Self {
        Self::new(Code::Internal).caused_by(error)
    }
}
