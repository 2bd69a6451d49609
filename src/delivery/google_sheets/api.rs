//! Requests to Google, and what its refusals mean.

use serde::Deserialize;
use tokio::time::{Duration, Instant};
use url::Url;

use super::token;
use crate::delivery::{Answer, DeliveryService, report};
use crate::domain::delivery::DeliveryError;
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::domain::delivery::classify::{HttpAnswer, classify_webhook};
use crate::domain::integration::google_sheets::INTERVAL_MS;
use crate::domain::integration::google_sheets::service_account::ServiceAccount;
use crate::domain::integration::outbound::{HttpRequest, SheetTarget};
use crate::secret::Secret;

/// Time after which a batch begins no other request, so that the last one ends within the lease of the attempts.
const BATCH_TIME: Duration = Duration::from_secs(40);

/// Wait in milliseconds for the rows that a batch had no time for.
const NEXT_BATCH_WAIT: i64 = 1_000;

/// Shortest wait in milliseconds after 429: the limits are those of a minute.
const MIN_QUOTA_WAIT: i64 = 60_000;

/// Maximum bytes of an answer that is not a range of cells.
const MAX_ANSWER: usize = 64 << 10;

/// Maximum characters of Google's message in an error.
const MAX_QUOTED: usize = 300;

/// The report of a failure as the error.
pub(super) type Result<T> = std::result::Result<T, Box<SendReport>>;

/// The requests of a batch.
pub(super) struct Session<'a> {
    service: &'a DeliveryService,
    pub(super) target: &'a SheetTarget,
    account: ServiceAccount,
    started: Instant,
    /// Requests that read, and those that write: Google limits both.
    reads: u32,
    writes: u32,
    /// Status and remote address of the last answer.
    last: Option<(u16, Option<String>)>,
}

/// A request to the Sheets API.
pub(super) struct Call<'c> {
    pub(super) method: &'static str,
    /// The rest of the URL, after the id of the spreadsheet.
    pub(super) path: &'c str,
    pub(super) body: Option<String>,
    pub(super) max_answer: usize,
}

impl<'c> Call<'c> {
    pub(super) fn read(path: &'c str, max_answer: usize) -> Self {
        Self { method: "GET", path, body: None, max_answer }
    }

    pub(super) fn write(method: &'static str, path: &'c str, body: String) -> Self {
        Self { method, path, body: Some(body), max_answer: MAX_ANSWER }
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: i64,
}

impl<'a> Session<'a> {
    pub(super) fn new(service: &'a DeliveryService, target: &'a SheetTarget) -> Result<Self> {
        let account = ServiceAccount::parse(target.service_account.reveal());
        let account = account.map_err(|_invalid| Box::new(report::damaged()))?;
        Ok(Self { service, target, account, started: Instant::now(), reads: 0, writes: 0, last: None })
    }

    /// Sends a request, and returns an answer that reports success.
    pub(super) async fn call(&mut self, call: Call<'_>) -> Result<Answer> {
        if self.started.elapsed() >= BATCH_TIME {
            let error = report::error("batch_time", "the rows before took too long; this one follows");
            return Err(failed(Outcome::Paced { wait_ms: NEXT_BATCH_WAIT, error }));
        }
        let token = self.token().await?;
        let google = &self.service.settings.google;
        let url = format!("{}/{}{}", google.spreadsheets, self.target.spreadsheet_id, call.path);
        let header = |name: &str, text: String| (name.to_owned(), Secret::new(text));
        let request = HttpRequest {
            method: call.method,
            url: Url::parse(&url).map_err(|_invalid| Box::new(report::damaged()))?,
            headers: vec![
                header("authorization", format!("Bearer {}", token.reveal())),
                header("content-type", "application/json".to_owned()),
            ],
            body: call.body.unwrap_or_default().into_bytes(),
            secrets: vec![token],
            classify: classify_webhook,
        };
        let count = if call.method == "GET" { &mut self.reads } else { &mut self.writes };
        *count += 1;
        let answer = self.send(&request, call.max_answer).await?;
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        if answer.status == 401 {
            self.service.tokens.remove(&self.target.service_account);
        }
        Err(self.refusal(&answer, &request, refused_call))
    }

    /// Returns an access token, which is requested unless there is one.
    async fn token(&mut self) -> Result<Secret<String>> {
        let (tokens, key) = (&self.service.tokens, &self.target.service_account);
        let now = self.service.clock.now();
        if let Some(token) = tokens.get(key, now) {
            return Ok(token);
        }
        let assertion = token::assertion(&self.account, now).ok_or_else(|| Box::new(report::damaged()))?;
        let content_type = Secret::new("application/x-www-form-urlencoded".to_owned());
        let request = HttpRequest {
            method: "POST",
            url: self.service.settings.google.token.clone(),
            headers: vec![("content-type".to_owned(), content_type)],
            body: token::form(&assertion).into_bytes(),
            secrets: vec![assertion],
            classify: classify_webhook,
        };
        let answer = self.send(&request, MAX_ANSWER).await?;
        if !(200..300).contains(&answer.status) {
            return Err(self.refusal(&answer, &request, refused_key));
        }
        let TokenAnswer { access_token, expires_in } = parse(&answer)?;
        let is_valid = !access_token.is_empty() && access_token.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_valid {
            return Err(not_understood());
        }
        let token = Secret::new(access_token);
        tokens.put(key, token.clone(), expires_in, now);
        Ok(token)
    }

    async fn send(&mut self, request: &HttpRequest, max_body: usize) -> Result<Answer> {
        let answer = self.service.sender.call(request, max_body).await.map_err(failed)?;
        let remote_address = answer.remote_address.map(|address| address.to_string());
        self.last = Some((answer.status, remote_address));
        Ok(answer)
    }

    /// Returns the report of a refused request, `refused` for one that would be refused again.
    fn refusal(
        &self,
        answer: &Answer,
        request: &HttpRequest,
        refused: fn(&Refusal<'_>) -> Outcome,
    ) -> Box<SendReport> {
        let body = report::redact(&answer.body, &request.secrets);
        let (status, headers, now) = (answer.status, &*answer.headers, self.service.clock.now());
        let standard = HttpAnswer { status, headers, body: &body, now }.standard_verdict(None).outcome;
        let outcome = match standard {
            Outcome::Paced { wait_ms, error } if status == 429 => {
                Outcome::Paced { wait_ms: wait_ms.max(MIN_QUOTA_WAIT), error }
            }
            standard if matches!(status, 408 | 425 | 500..) => standard,
            _ => refused(&Refusal { status, message: &message_of(&body), account: &self.account.email }),
        };
        let report = SendReport { response: report::excerpt(&body), ..self.report(outcome) };
        Box::new(report)
    }

    /// The report of a row that is in the spreadsheet.
    pub(super) fn delivered(&self) -> SendReport {
        self.report(Outcome::Delivered)
    }

    fn report(&self, outcome: Outcome) -> SendReport {
        let (http_status, remote_address) =
            self.last.clone().map_or((None, None), |(status, address)| (Some(status), address));
        SendReport { http_status, remote_address, ..SendReport::new(outcome, 0) }
    }

    /// Completes a report with the time that the batch took and the wait before the next one.
    pub(super) fn finish(&self, report: SendReport) -> SendReport {
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let hold_ms = report.hold_ms.max(INTERVAL_MS * i64::from(self.reads.max(self.writes)));
        SendReport { duration_ms, hold_ms, ..report }
    }
}

/// A request that was refused for a reason that stays.
struct Refusal<'a> {
    status: u16,
    /// Google's message.
    message: &'a str,
    /// The address of the service account.
    account: &'a str,
}

/// The outcome of a refused request to the Sheets API.
fn refused_call(refusal: &Refusal<'_>) -> Outcome {
    let Refusal { status, message, account } = refusal;
    let error = |code: &str, text: String| DeliveryError {
        code: code.to_owned(),
        message: text,
        http_status: Some(*status),
    };
    match status {
        401 => {
            let text = format!("Google did not accept the access token{message}");
            Outcome::Retryable { error: error("unauthorized", text), is_slow: false }
        }
        403 => {
            let remedy = format!(
                "share the spreadsheet with {account} as an editor, and enable the Google Sheets API in its project"
            );
            Outcome::Permanent { error: error("access_denied", format!("{remedy}{message}")) }
        }
        404 => {
            let remedy = "there is no spreadsheet with this `spreadsheet_id`, or it was deleted";
            Outcome::Permanent { error: error("spreadsheet_not_found", format!("{remedy}{message}")) }
        }
        _ => {
            let text = format!("Google refused the request with status {status}{message}");
            Outcome::Permanent { error: error("refused", text) }
        }
    }
}

/// The outcome of a refused request for a token. The owner may replace the key, and the operator may set the clock.
fn refused_key(refusal: &Refusal<'_>) -> Outcome {
    let Refusal { status, message, account } = refusal;
    let text =
        format!("Google refused the key of {account}: create another, or set the server's clock{message}");
    let error = DeliveryError { code: "key_refused".to_owned(), message: text, http_status: Some(*status) };
    Outcome::Retryable { error, is_slow: false }
}

/// Returns Google's message in the body of a refusal for the end of an error: `: Requested entity was not found.`
fn message_of(body: &str) -> String {
    let parsed: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let found = ["/error/message", "/error_description", "/error"];
    let text = found.iter().find_map(|pointer| parsed.pointer(pointer)?.as_str()).unwrap_or_default();
    let text: String = text.chars().filter(|found| !found.is_control()).take(MAX_QUOTED).collect();
    if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) }
}

/// Parses the body of a successful answer.
pub(super) fn parse<T: for<'de> Deserialize<'de>>(answer: &Answer) -> Result<T> {
    if !answer.is_complete {
        return Err(failed(report::timed_out()));
    }
    serde_json::from_slice(&answer.body).map_err(|_unexpected| not_understood())
}

fn not_understood() -> Box<SendReport> {
    let text = "the answer is not one of the Google Sheets API";
    Box::new(report::retryable("invalid_response", text))
}

pub(super) fn failed(outcome: Outcome) -> Box<SendReport> {
    Box::new(SendReport::new(outcome, 0))
}
