//! Error responses of each operation: the codes declared beside its handler, by status.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::response::{Response, ResponseBuilder};

use crate::api::{Code, PROBLEM_TYPE, Problem};
use crate::domain::validation::violation::{Rule, Violation};
use crate::http::openapi::{component, members};

/// Codes of every request.
pub(crate) const EVERY: &[Code] = &[
    Code::InvalidHeader,
    Code::NotAcceptable,
    Code::UriTooLong,
    Code::ExpectationFailed,
    Code::HeadersTooLarge,
    Code::Internal,
];

/// Codes of an operation that checks its query, even if only an empty one.
pub(crate) const QUERY: &[Code] = &[Code::InvalidQuery];

/// Codes of an operation that needs a key.
pub(crate) const KEYED: &[Code] =
    &[Code::Unauthorized, Code::RateLimited, Code::StoreUnavailable, Code::Overloaded];

/// Codes of an operation that needs a scope.
pub(crate) const SCOPED: &[Code] = &[Code::InsufficientScope];

/// Codes of an operation that reads a body, even if only an empty one.
pub(crate) const BODY: &[Code] =
    &[Code::MalformedJson, Code::RequestTimeout, Code::BodyTooLarge, Code::ValidationFailed];

/// Codes of an operation that checks the media type of its body.
pub(crate) const TYPED: &[Code] = &[Code::UnsupportedMediaType];

/// Codes of an operation that writes to the store.
pub(crate) const WRITE: &[Code] = &[Code::StorageFull];

/// Declares the type `$name` with the error codes of an operation, for its `responses`.
macro_rules! problems {
    ($name:ident: $($group:ident)* $(, $code:ident)* $(,)?) => {
        struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses() -> std::collections::BTreeMap<
                String,
                utoipa::openapi::RefOr<utoipa::openapi::response::Response>,
            > {
                $crate::http::openapi::responses(&[
                    $($crate::http::openapi::$group,)*
                    &[$($crate::api::Code::$code),*],
                ])
            }
        }
    };
}
pub(crate) use problems;

/// Returns one response for each status of the codes in `groups`. Its description lists the codes, for [`complete`] to parse.
pub(crate) fn responses(groups: &[&[Code]]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status = BTreeMap::<u16, Vec<&str>>::new();
    for code in groups.iter().copied().flatten() {
        by_status.entry(code.status()).or_default().push(code.name());
    }
    let response = |codes: Vec<&str>| ResponseBuilder::new().description(codes.join(" ")).build().into();
    by_status.into_iter().map(|(status, codes)| (status.to_string(), response(codes))).collect()
}

/// Maximum number of codes of a response that operations share as a component; it is named after the codes.
const MAX_SHARED_CODES: usize = 3;

/// Completes the error responses of `operation`; those that operations share go to `shared`. A response that declares its
/// own content is left unchanged.
pub(crate) fn complete(operation: &mut Value, shared: &mut Map<String, Value>) {
    for (status, response) in members(&mut operation["responses"]) {
        if !status.starts_with(['4', '5']) || response.get("content").is_some() {
            continue;
        }
        let listed = response["description"].as_str().unwrap_or_default();
        let codes = listed.split(' ').map(Code::parse).collect::<Option<Vec<_>>>();
        let codes = codes.expect("the description of a failure lists codes");
        let whole = failure(&codes);
        *response = if codes.len() > MAX_SHARED_CODES {
            whole
        } else {
            let name = codes.iter().map(|code| format!("{code:?}")).collect::<Vec<_>>().join("Or");
            shared.insert(name.clone(), whole);
            component("responses", &name)
        };
    }
}

fn failure(codes: &[Code]) -> Value {
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
