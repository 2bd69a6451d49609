//! Problem documents (RFC 9457), and the table of their codes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::schema;
use crate::domain::form::admission::AcceptingReason;
use crate::domain::open_enum::{OpenEnum, named_enum};
use crate::domain::validation::violation::{Rule, Violation};

pub const PROBLEM_TYPE: &str = "application/problem+json";

/// Declares [`Code`] and its table.
macro_rules! codes {
    ($($code:ident $name:literal $status:literal $title:literal $meaning:literal;)*) => {
        named_enum! {
            /// Why a request failed.
            Code { $(#[doc = $title] $code = $name,)* }
        }

        impl Code {
            pub fn status(self) -> u16 {
                match self { $(Self::$code => $status,)* }
            }

            /// A short sentence without a full stop.
            pub fn title(self) -> &'static str {
                match self { $(Self::$code => $title,)* }
            }

            /// An explanation of the code, with the remedy.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$code => $meaning,)* }
            }
        }
    };
}

codes! {
    MalformedJson "malformed_json" 400 "The body is not valid JSON"
        "The body must be one JSON value in UTF-8. Duplicate keys in one object, NUL characters, numbers outside the range of a double and more than 16 levels of nesting are refused, since parsers disagree on them. The detail shows line and column.";
    InvalidQuery "invalid_query" 400 "A query parameter is not valid"
        "A parameter is unknown, its value is not valid, or a filter can never match, such as `filter[score][gte]=9` for a rating from 1 to 5. Each entry of `errors` points to one parameter, such as `/limit`, `/filter/score/gte` or `/where/score.gte`, and shows what was expected.";
    InvalidCursor "invalid_cursor" 400 "The cursor does not belong to this list"
        "A cursor is only valid for the list that returned it. Start again without a cursor.";
    InvalidHeader "invalid_header" 400 "A request header is not valid"
        "Malformed HTTP/1.1 request head, or a header that is not valid: the detail names it and what was expected. `Host` names a host; a header with a single value is given once; `Idempotency-Key` has 1 to 255 printable ASCII characters.";
    Unauthorized "unauthorized" 401 "The API key is missing or not valid"
        "Send `Authorization: Bearer <key>` with a key of this server. Missing, mistyped, unknown, revoked and expired keys get the same response.";
    InsufficientScope "insufficient_scope" 403 "The API key may not do this"
        "The detail names the required scope; use a key that has it. A key that is limited to some forms cannot create forms or manage keys and workspaces.";
    FormNotFound "form_not_found" 404 "There is no such form"
        "The id or slug is wrong, or the form is in the trash, was erased, or belongs to another workspace. `forms list` shows all forms.";
    SubmissionNotFound "submission_not_found" 404 "There is no such submission"
        "The id is wrong, or the submission was deleted or belongs to another form. `forms responses <form>` shows all submissions.";
    VersionNotFound "version_not_found" 404 "The form has no such version"
        "`GET .../versions` lists the versions of the form's questions; their numbers count from 1.";
    IntegrationNotFound "integration_not_found" 404 "The form has no such integration"
        "The name or id is wrong, or the integration was deleted or belongs to another form. `GET .../integrations` lists those of the form.";
    DeliveryNotFound "delivery_not_found" 404 "There is no such delivery"
        "The id is wrong, or the delivery belongs to another workspace or was erased: dead ones are kept for 30 days, others for 7 after their end. `GET /api/v1/deliveries` lists them. The event of a delivery that was skipped, or whose submission or form was erased, cannot be shown.";
    KeyNotFound "key_not_found" 404 "There is no such API key"
        "The id is wrong, or the key was revoked or belongs to another workspace. `GET /api/v1/keys` shows all keys.";
    WorkspaceNotFound "workspace_not_found" 404 "There is no such workspace"
        "The id is wrong, or the workspace was deleted. `GET /api/v1/workspaces` shows all workspaces.";
    RouteNotFound "route_not_found" 404 "There is nothing at this address"
        "The path does not belong to an operation. `GET /api/v1/openapi.json` lists them all.";
    MethodNotAllowed "method_not_allowed" 405 "The method is not allowed here"
        "The header `Allow` lists the supported methods.";
    NotAcceptable "not_acceptable" 406 "The requested media type is not available"
        "The header `Accept` excludes `application/json`, the only media type of this operation.";
    RequestTimeout "request_timeout" 408 "The request timed out"
        "The body did not arrive in time. `GET /api/v1/limits` shows the time limit. Send the request again.";
    FormNotPublished "form_not_published" 409 "The form is a draft and does not accept answers"
        "Publish it first: `forms publish <form>`, or PATCH it with `{\"status\":\"published\"}`.";
    FormClosed "form_closed" 409 "The form is closed"
        "Its author has closed it; `closed_message`, if there is one, is the detail. `forms publish <form>` opens it again, as does PATCH with `{\"settings\":{\"closed\":null}}`.";
    FormNotOpenYet "form_not_open_yet" 409 "The form does not accept answers yet"
        "`settings.opens_at` is the time when it opens.";
    FormExpired "form_expired" 409 "The form does not accept answers any more"
        "The time in `settings.closes_at` has passed. A later time, or none, opens the form again.";
    FormFull "form_full" 409 "The form has reached its response limit"
        "`settings.max_responses` is reached. A higher number, or none, opens the form again; deleting a submission makes room for another. Restored and released submissions count, too.";
    SlugTaken "slug_taken" 409 "Another form has this slug"
        "A slug names one form of the workspace. Choose another, or change the form that has it: `form_id` is its id. A form in the trash does not keep its slug, so restoring it may fail with this code.";
    NotInTrash "not_in_trash" 409 "The form or submission is not in the trash"
        "It was already restored, or never deleted. No action is needed. A quarantined submission is released instead.";
    NotQuarantined "not_quarantined" 409 "The submission is not quarantined"
        "It was already released, or never quarantined. No action is needed.";
    DeliveryNotPending "delivery_not_pending" 409 "The delivery does not wait for an attempt"
        "It was delivered, canceled or skipped, has failed for good, or an attempt is in progress. Read it again: `GET /api/v1/deliveries/{id}`.";
    DeliveryNotRepeatable "delivery_not_repeatable" 409 "The delivery cannot be sent again"
        "Its integration was deleted, or it is a row of a CSV file that was written: each submission is one row.";
    BackupInProgress "backup_in_progress" 409 "Another backup is in progress"
        "A server makes one backup at a time. Try again when the other is complete, or when its client has gone away.";
    WorkspaceInUse "workspace_in_use" 409 "The workspace of the request's own key cannot be deleted"
        "Delete it with an operator's key of another workspace: so a server always has a workspace, and nobody ends the key they are using.";
    LastKey "last_key" 409 "The last key with the scope `admin` cannot be revoked"
        "Without it nobody could manage the keys of the workspace. Create another key with the scope `admin` and for all forms first, or rotate this one. With access to the data directory, `forms keys create --data DIR` replaces a lost one.";
    VersionMismatch "version_mismatch" 412 "The form or submission was changed after you read it"
        "The form or submission is not at the revision in `If-Match`. Read it again, check whether the change still applies, and send it with the new `ETag`.";
    BodyTooLarge "body_too_large" 413 "The body is too large"
        "`GET /api/v1/limits` shows the limits (`max_body`, `max_definition`, `max_batch`).";
    UriTooLong "uri_too_long" 414 "The address is too long"
        "`GET /api/v1/limits` shows the limit (`max_uri`).";
    UnsupportedMediaType "unsupported_media_type" 415 "The body is not declared as JSON"
        "Send the header `Content-Type: application/json` (PATCH also takes `application/merge-patch+json`, a batch `application/x-ndjson`), and no `Content-Encoding`.";
    ExpectationFailed "expectation_failed" 417 "The expectation cannot be met"
        "The only supported value of `Expect` is `100-continue`.";
    ValidationFailed "validation_failed" 422 "The request body is not valid"
        "Each entry of `errors` has a JSON pointer into the body, a code and what was expected. All errors are listed, up to 100. Nothing was stored.";
    IdempotencyKeyReused "idempotency_key_reused" 422 "The idempotency key was used for another request"
        "For 24 hours, an `Idempotency-Key` belongs to one request; a retry must have the same body, byte for byte. Use a new key for a new request.";
    FormHasNoQuestions "form_has_no_questions" 422 "The form has no question to answer"
        "A form needs at least one question before it can be published.";
    RateLimited "rate_limited" 429 "Too many requests"
        "The API key sent more requests than `rate_limit` in `GET /api/v1/limits` allows, or this address sent too many with keys that are not valid (`auth_failures`); valid keys still work from it. `Retry-After` is the number of seconds to wait.";
    HeadersTooLarge "headers_too_large" 431 "The request's headers are too large"
        "`GET /api/v1/limits` shows the limits (`max_head`, `max_headers`).";
    Internal "internal" 500 "Something went wrong in the server"
        "The cause is in the server's log under the request id. The operation may or may not have succeeded: repeat it with the same `Idempotency-Key`, or check.";
    StoreUnavailable "store_unavailable" 503 "The store is not available at the moment"
        "It is starting, being rebuilt, very busy, or stopping. Nothing was stored, unless a retry with the same `Idempotency-Key` shows otherwise. `Retry-After` is the number of seconds to wait.";
    StorageFull "storage_full" 503 "The server's disk is full"
        "The server's disk has less free space than `--min-free` (128 MiB by default). Nothing was stored. Reads still work; writes resume automatically once there is enough space.";
    Overloaded "overloaded" 503 "The server is overloaded"
        "Other requests have used up one of these: the connections, the memory for large bodies, the memory for large responses, or the queue for long work such as searches. Nothing was stored. Send the request again after the seconds in `Retry-After`, and read responses promptly: one key can use at most a quarter of the memory for large bodies, and of that for large responses.";
}

impl From<AcceptingReason> for Code {
    fn from(why: AcceptingReason) -> Self {
        match why {
            AcceptingReason::Draft => Self::FormNotPublished,
            AcceptingReason::Closed => Self::FormClosed,
            AcceptingReason::NotOpenYet => Self::FormNotOpenYet,
            AcceptingReason::Expired => Self::FormExpired,
            AcceptingReason::Full => Self::FormFull,
        }
    }
}

/// Returns the explanation of the code or rule called `name`.
pub fn explain(name: &str) -> Option<&'static str> {
    match Code::parse(name) {
        Some(code) => Some(code.meaning()),
        None => Rule::parse(name).map(Rule::meaning),
    }
}

/// A problem document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `/problems/` and the code, after the server's URL if it is known.
    #[serde(rename = "type")]
    pub kind: String,
    /// A summary of the kind of problem, the same for each `code`.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    #[schema(value_type = schema::ErrorCodeOrOther)]
    pub code: OpenEnum<Code>,
    /// An explanation of this occurrence of the problem, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The id of this request in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Path and query of the request, as its client knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub instance: Option<String>,
    /// The id of the form that already has the slug; only with `slug_taken`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "frm_7k2m9q4x1abz")]
    pub form_id: Option<String>,
    /// Every broken rule, with `validation_failed`, `slug_taken` and `invalid_query`; pointers of the last lead into an
    /// object of the query's parameters: `/limit`, `/filter/score/gte`, `/where/score.gte`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Violation>,
    /// Unknown members sent by a newer server (RFC 9457 §3.2).
    #[serde(flatten)]
    #[schema(ignore)]
    pub extensions: BTreeMap<String, Value>,
}

impl Problem {
    /// Parses the problem document in `body`, which came with `status`; `None` if it is none.
    pub fn read(body: &[u8], status: u16) -> Option<Self> {
        Some(Self { status, ..serde_json::from_slice(body).ok()? })
    }

    /// A problem of the kind `code`, with that kind's title.
    pub fn new(code: Code) -> Self {
        Self {
            kind: format!("/problems/{code}"),
            title: code.title().to_owned(),
            status: code.status(),
            code: code.into(),
            detail: None,
            request_id: None,
            instance: None,
            form_id: None,
            errors: Vec::new(),
            extensions: BTreeMap::new(),
        }
    }

    /// Sets the detail, which explains this occurrence.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}
