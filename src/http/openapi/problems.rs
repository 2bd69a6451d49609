//! Error responses of each operation: the codes that follow from its method, path and body, and its own.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::api::{Code, PROBLEM_TYPE, Problem};
use crate::domain::validation::violation::{Rule, Violation};
use crate::http::openapi::parameters::header_of;
use crate::http::openapi::{component, scopes};

/// Codes of every request.
const EVERY: &[Code] = &[
    Code::InvalidHeader,
    Code::NotAcceptable,
    Code::UriTooLong,
    Code::ExpectationFailed,
    Code::HeadersTooLarge,
    Code::Internal,
];

/// Codes of an operation that needs a key.
const KEYED: &[Code] = &[Code::Unauthorized, Code::RateLimited, Code::StoreUnavailable, Code::Overloaded];

/// Codes of an operation that reads a body, even if only an empty one.
const BODY: &[Code] =
    &[Code::MalformedJson, Code::RequestTimeout, Code::BodyTooLarge, Code::ValidationFailed];

fn codes(method: &str, path: &str, operation: &Value) -> Vec<Code> {
    let is_keyed = operation.get("security").is_none();
    let has_body = ["post", "patch"].contains(&method);
    let id = operation["operationId"].as_str().unwrap_or_default();
    let mut declared = operation.get("parameters").and_then(Value::as_array).into_iter().flatten();
    let is_page = declared.any(|parameter| parameter["name"] == "cursor");
    let groups = [
        (true, EVERY),
        (!matches!(path, "/healthz" | "/readyz"), &[Code::InvalidQuery]),
        (is_keyed, KEYED),
        (scopes::needed(method, path, id).is_some(), &[Code::InsufficientScope]),
        (has_body, BODY),
        (operation.get("requestBody").is_some(), &[Code::UnsupportedMediaType]),
        (method != "get", &[Code::StorageFull]),
        (path.contains("{form}"), &[Code::FormNotFound]),
        (path.contains("{submission}"), &[Code::SubmissionNotFound]),
        (path.contains("{integration}"), &[Code::IntegrationNotFound]),
        (path.contains("{delivery}"), &[Code::DeliveryNotFound]),
        (path.contains("{key}"), &[Code::KeyNotFound]),
        (path.contains("{workspace}"), &[Code::WorkspaceNotFound]),
        (true, own(id)),
        (is_page, &[Code::InvalidCursor]),
        (header_of(method, path) == Some("If-Match"), &[Code::VersionMismatch]),
        (header_of(method, path) == Some("Idempotency-Key"), &[Code::IdempotencyKeyReused]),
    ];
    groups.into_iter().filter(|(applies, _)| *applies).flat_map(|(_, codes)| codes).copied().collect()
}

fn own(operation: &str) -> &'static [Code] {
    match operation {
        "create_form" => &[Code::SlugTaken],
        "update_form" => &[Code::SlugTaken, Code::FormHasNoQuestions],
        "restore_form" => &[Code::NotInTrash, Code::SlugTaken],
        "restore_submission" => &[Code::NotInTrash, Code::FormFull],
        "release_submission" => &[Code::NotQuarantined, Code::FormFull],
        "list_deliveries" | "redeliver_all" | "cancel_deliveries" => {
            &[Code::FormNotFound, Code::IntegrationNotFound]
        }
        "redeliver" => &[Code::DeliveryNotRepeatable],
        "cancel_delivery" => &[Code::DeliveryNotPending],
        "create_key" | "list_keys" => &[Code::WorkspaceNotFound],
        "revoke_key" => &[Code::WorkspaceNotFound, Code::LastKey],
        "delete_workspace" => &[Code::WorkspaceInUse],
        "get_backup" => &[Code::BackupInProgress, Code::RouteNotFound],
        "get_version" => &[Code::VersionNotFound],
        "create_submission" | "create_submissions" => &[
            Code::FormNotPublished,
            Code::FormClosed,
            Code::FormNotOpenYet,
            Code::FormExpired,
            Code::FormFull,
        ],
        "get_openapi" => &[Code::Overloaded],
        "explain_problem" => &[Code::RouteNotFound],
        _ => &[],
    }
}

/// Maximum number of codes of a response that operations share as a component; it is named after the codes.
const MAX_SHARED_CODES: usize = 3;

/// Adds the error responses of the operation `method` `path`; those that operations share go to `shared`.
pub(crate) fn complete(method: &str, path: &str, operation: &mut Value, shared: &mut Map<String, Value>) {
    let mut by_status = BTreeMap::<u16, Vec<Code>>::new();
    for code in codes(method, path, operation) {
        by_status.entry(code.status()).or_default().push(code);
    }
    for (status, codes) in by_status {
        let whole = error_response(&codes);
        operation["responses"][status.to_string()] = if codes.len() > MAX_SHARED_CODES {
            whole
        } else {
            let name = codes.iter().map(|code| format!("{code:?}")).collect::<Vec<_>>().join("Or");
            shared.insert(name.clone(), whole);
            component("responses", &name)
        };
    }
}

fn error_response(codes: &[Code]) -> Value {
    let meanings: Vec<_> = codes.iter().map(|code| format!("`{code}`: {}", code.title())).collect();
    let examples: Map<_, _> = codes.iter().map(|code| (code.name().to_owned(), example(*code))).collect();
    let headers = ["X-Request-Id"].into_iter().chain(codes.iter().flat_map(|code| headers(*code)).copied());
    let headers: Map<_, _> = headers.map(|name| (name.to_owned(), component("headers", name))).collect();
    json!({
        "description": meanings.join("; "),
        "headers": headers,
        "content": {
            PROBLEM_TYPE: { "schema": component("schemas", "Problem"), "examples": examples },
        },
    })
}

/// Returns the headers of an error response besides the common ones.
fn headers(code: Code) -> &'static [&'static str] {
    match code {
        Code::Unauthorized => &["WWW-Authenticate"],
        Code::RateLimited | Code::StoreUnavailable | Code::StorageFull | Code::Overloaded => &["Retry-After"],
        _ => &[],
    }
}

fn example(code: Code) -> Value {
    let mut problem = Problem::new(code);
    problem.request_id = Some("01k3v8m2f4q6s8t0".to_owned());
    if code == Code::ValidationFailed {
        let message = "Enter an email address like name@example.com";
        problem.detail = Some("1 answer needs attention".to_owned());
        problem.errors = vec![Violation::new("/answers/q2", Rule::InvalidEmail, message).question("q2")];
    }
    json!({ "summary": code.title(), "value": problem })
}
