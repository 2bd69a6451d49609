//! A receiver of integrations that records what it gets.

use std::sync::Mutex;

use async_trait::async_trait;
use forms::delivery::{Answer, Sender};
use forms::domain::delivery::DeliveryError;
use forms::domain::delivery::attempt::{Outcome, SendReport};
use forms::domain::delivery::error_code::ErrorCode;
use forms::domain::integration::outbound::HttpRequest;

/// Records requests, and answers all of them with the same status.
#[derive(Default)]
pub(crate) struct RecordingSender {
    requests: Mutex<Vec<HttpRequest>>,
    /// The status of a failure; 200 without one.
    failure: Mutex<Option<u16>>,
}

impl RecordingSender {
    /// Fails every request from now on with this status; `None` to succeed.
    pub(crate) fn fail_with(&self, status: Option<u16>) {
        *self.failure.lock().unwrap() = status;
    }

    /// Takes the requests received so far.
    pub(crate) fn take(&self) -> Vec<HttpRequest> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

#[async_trait]
impl Sender for RecordingSender {
    async fn send(&self, request: &HttpRequest) -> SendReport {
        self.requests.lock().unwrap().push(request.clone());
        let failure = *self.failure.lock().unwrap();
        let error = |status: u16| DeliveryError {
            http_status: Some(status),
            ..ErrorCode::HttpError.error(format!("the receiver answered {status}"))
        };
        let outcome = match failure {
            None => Outcome::Delivered,
            Some(410) => Outcome::Gone { error: error(410) },
            Some(status @ 400..) => Outcome::Permanent { error: error(status) },
            Some(status) => Outcome::Retryable { error: error(status), is_slow: false },
        };
        SendReport {
            http_status: Some(failure.unwrap_or(200)),
            response: Some("ok".to_owned()),
            remote_address: Some("203.0.113.7:443".to_owned()),
            ..SendReport::new(outcome, 12)
        }
    }

    async fn call(&self, request: &HttpRequest, _max_body: usize) -> Result<Answer, Outcome> {
        let SendReport { outcome, .. } = self.send(request).await;
        if outcome == Outcome::Delivered {
            let body = b"{}".to_vec();
            Ok(Answer { status: 200, headers: Vec::new(), remote_address: None, body, is_complete: true })
        } else {
            Err(outcome)
        }
    }
}

/// Returns the value of a header of `request`.
pub(crate) fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let found = request.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.reveal().as_str())
}
