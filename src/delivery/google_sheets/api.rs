//! Requests to Google, and what its refusals mean.

use serde::Deserialize;
use serde_json::Value as Json;
use url::Url;

use super::token;
use crate::delivery::redact::redact;
use crate::delivery::{Answer, DeliveryService, report};
use crate::domain::delivery::DeliveryError;
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::domain::delivery::classify::HttpAnswer;
use crate::domain::delivery::error_code::ErrorCode;
use crate::domain::integration::google_sheets::service_account::ServiceAccount;
use crate::domain::integration::outbound::{HttpRequest, SheetTarget, bearer};
use crate::secret::Secret;

/// Shortest wait in milliseconds after 429: the limits are those of a minute.
const MIN_QUOTA_WAIT: i64 = 60_000;

/// Maximum bytes of an answer: the ids of some 500,000 rows.
const MAX_ANSWER: usize = 16 << 20;

/// Maximum characters of Google's message in an error.
const MAX_QUOTED: usize = 300;

/// The report of a failure as the error.
pub(super) type Result<T> = std::result::Result<T, Box<SendReport>>;

/// A spreadsheet, and the account with which it is called.
pub(super) struct Spreadsheet<'a> {
    service: &'a DeliveryService,
    target: &'a SheetTarget,
    account: ServiceAccount,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: i64,
}

impl<'a> Spreadsheet<'a> {
    pub(super) fn new(service: &'a DeliveryService, target: &'a SheetTarget) -> Result<Self> {
        let account = ServiceAccount::parse(target.service_account.reveal());
        Ok(Self { service, target, account: account.map_err(|_invalid| damaged())? })
    }

    /// The name of the tab; `None` for the first one.
    pub(super) fn tab(&self) -> Option<&str> {
        self.target.sheet.as_deref()
    }

    /// Sends a request, and returns an answer that reports success. `path` is the rest of the URL, after the id.
    pub(super) async fn call(&self, method: &'static str, path: &str, body: Option<&Json>) -> Result<Answer> {
        let token = self.token().await?;
        let url =
            format!("{}/{}{path}", self.service.settings.google.spreadsheets, self.target.spreadsheet_id);
        let url = Url::parse(&url).map_err(|_invalid| damaged())?;
        let body = body.map(Json::to_string).unwrap_or_default().into_bytes();
        let headers = vec![bearer(&token), content_type("application/json")];
        let request = HttpRequest { headers, secrets: vec![token], ..HttpRequest::new(method, url, body) };
        let answer = self.send(&request).await?;
        if answer.status == 401 {
            self.service.tokens.remove(&self.target.service_account);
        }
        self.accepted(answer, &request)
    }

    /// Returns an access token, which is requested unless there is one.
    async fn token(&self) -> Result<Secret<String>> {
        let (tokens, key) = (&self.service.tokens, &self.target.service_account);
        let now = self.service.clock.now();
        if let Some(token) = tokens.get(key, now) {
            return Ok(token);
        }
        let assertion = token::assertion(&self.account, now).ok_or_else(damaged)?;
        let (url, body) = (self.service.settings.google.token.clone(), token::form(&assertion).into_bytes());
        let headers = vec![content_type("application/x-www-form-urlencoded")];
        let request =
            HttpRequest { headers, secrets: vec![assertion], ..HttpRequest::new("POST", url, body) };
        let answer = self.accepted(self.send(&request).await?, &request)?;
        let TokenAnswer { access_token, expires_in } = parse(&answer)?;
        let is_valid = !access_token.is_empty() && access_token.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_valid {
            return Err(not_understood());
        }
        let token = Secret::new(access_token);
        tokens.put(key, token.clone(), expires_in, now);
        Ok(token)
    }

    async fn send(&self, request: &HttpRequest) -> Result<Answer> {
        Ok(self.service.sender.call(request, MAX_ANSWER).await.map_err(SendReport::from)?)
    }

    /// Returns an answer that reports success; the report of a refusal otherwise.
    fn accepted(&self, answer: Answer, request: &HttpRequest) -> Result<Answer> {
        let (status, headers, now) = (answer.status, &*answer.headers, self.service.clock.now());
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let body = redact(&answer.body, &request.secrets);
        let standard = HttpAnswer { status, headers, body: &body, now }.standard_classification(None);
        let outcome = match standard.outcome {
            Outcome::Paced { wait_ms, error } if status == 429 => {
                Outcome::Paced { wait_ms: wait_ms.max(MIN_QUOTA_WAIT), error }
            }
            outcome if matches!(status, 408 | 425 | 500..) => outcome,
            _ => self.refusal(status, &body, request.url == self.service.settings.google.token),
        };
        Err(Box::new(SendReport {
            response: report::excerpt(&body),
            ..report::with_answer(&answer, outcome)
        }))
    }

    /// The outcome of a request that is refused for a reason that stays until somebody mends it.
    fn refusal(&self, status: u16, body: &str, is_of_key: bool) -> Outcome {
        let account = &self.account.email;
        let (code, text) = match status {
            // The owner may replace the key, and the operator may set the clock.
            _ if is_of_key => {
                let text = "create another, or set the server's clock";
                (ErrorCode::KeyRefused, format!("Google refused the key of {account}: {text}"))
            }
            401 => (ErrorCode::Unauthorized, "Google did not accept the access token".to_owned()),
            403 => {
                let text = "as an editor, and enable the Google Sheets API in its project";
                (ErrorCode::AccessDenied, format!("share the spreadsheet with {account} {text}"))
            }
            404 => {
                let text = "there is no spreadsheet with this `spreadsheet_id`, or it was deleted; correct the id, then redeliver";
                (ErrorCode::SpreadsheetNotFound, text.to_owned())
            }
            _ => (ErrorCode::Refused, format!("Google refused the request with status {status}")),
        };
        let error = code.error(text + &message_of(body));
        let error = DeliveryError { http_status: Some(status), ..error };
        match code {
            ErrorCode::KeyRefused | ErrorCode::Unauthorized => Outcome::Retryable { error, is_slow: false },
            _ => Outcome::Permanent { error },
        }
    }
}

/// Returns Google's message in the body of a refusal for the end of an error: `: Requested entity was not found.`
fn message_of(body: &str) -> String {
    let parsed: Json = serde_json::from_str(body).unwrap_or_default();
    let found = ["/error/message", "/error_description", "/error"];
    let text = found.iter().find_map(|pointer| parsed.pointer(pointer)?.as_str()).unwrap_or_default();
    let text: String = text.chars().filter(|found| !found.is_control()).take(MAX_QUOTED).collect();
    if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) }
}

/// Parses the body of a successful answer.
pub(super) fn parse<T: for<'de> Deserialize<'de>>(answer: &Answer) -> Result<T> {
    if answer.is_complete {
        serde_json::from_slice(&answer.body).map_err(|_unexpected| not_understood())
    } else if answer.body.len() < MAX_ANSWER {
        Err(Box::new(report::timed_out().into()))
    } else {
        let text =
            "the spreadsheet has too many rows to search them for an id: begin another tab, with `sheet`";
        Err(Box::new(report::retry(ErrorCode::SpreadsheetTooLarge, text).into()))
    }
}

fn content_type(name: &str) -> (String, Secret<String>) {
    ("content-type".to_owned(), Secret::new(name.to_owned()))
}

fn not_understood() -> Box<SendReport> {
    let text = "the answer is not one of the Google Sheets API";
    Box::new(report::retry(ErrorCode::InvalidResponse, text).into())
}

fn damaged() -> Box<SendReport> {
    Box::new(report::damaged().into())
}
