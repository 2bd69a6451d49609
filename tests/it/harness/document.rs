//! Checks every response against the golden OpenAPI document.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use axum::http::Method;
use forms::domain::json::{self, Value};
use serde_json::Value as Json;

use super::TestResponse;
use crate::questions::json_schema::accepts_within;

/// Response headers that the document must declare.
const HEADERS: [&str; 8] = [
    "ETag",
    "Link",
    "Location",
    "Forms-Total",
    "Forms-Dropped",
    "Idempotency-Replayed",
    "Retry-After",
    "WWW-Authenticate",
];

/// Headers that every response has.
pub(crate) const FIXED_HEADERS: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("cache-control", "no-store"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("referrer-policy", "no-referrer"),
];

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Panics unless a response has the headers of every response, none that tells of its server, and a documented media type.
#[track_caller]
pub(crate) fn check_headers(answer: &TestResponse) {
    let is_page = answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"))
        || answer.status == 303
        || answer.header("content-type") == Some(SCRIPT);
    for (name, value) in FIXED_HEADERS {
        // Those of pages are checked with them.
        if !is_page || !["cache-control", "content-security-policy"].contains(&name) {
            assert_eq!(answer.header(name), Some(value), "{answer:?}");
        }
    }
    assert!(!answer.header("x-request-id").unwrap().is_empty(), "{answer:?}");
    let stray = ["server", "x-powered-by", "set-cookie"];
    assert!(!stray.iter().any(|name| answer.headers.contains_key(*name)), "{answer:?}");
    let known = "application/json, application/problem+json, application/schema+json, application/x-ndjson, \
                 application/x-tar, text/csv, text/html; charset=utf-8, text/javascript; charset=utf-8, text/plain; charset=utf-8, text/plain; version=0.0.4; charset=utf-8";
    match answer.header("content-type") {
        Some(kind) => assert!(known.split(", ").any(|known| known == kind), "{kind}"),
        None => assert!(answer.body.is_empty(), "{answer:?}"),
    }
}

/// Bytes of the largest body that is validated against its schema.
const MAX_BODY: usize = 64 * 1024;

static GOLDEN: LazyLock<(Json, Value)> = LazyLock::new(|| {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/openapi.json");
    let document = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let converted = convert(&document);
    (document, converted)
});

/// Converts to the server's own JSON type, whose parser would refuse the nesting depth of the document.
pub(crate) fn convert(value: &Json) -> Value {
    match value {
        Json::Array(items) => Value::Array(items.iter().map(convert).collect()),
        Json::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), convert(value))).collect())
        }
        other => json::parse(&other.to_string()).unwrap(),
    }
}

/// Panics unless status, code, headers and body of a response to `method` at `path` match the document.
pub(crate) fn check(method: &Method, path: &str, answer: &TestResponse) {
    if std::env::var_os("FORMS_BLESS").is_some() {
        return;
    }
    let (document, converted) = &*GOLDEN;
    let Some(operation) = operation(document, method, path) else { return };
    let status = answer.status.as_u16();
    let response = resolve(document, &operation["responses"][status.to_string()]);
    let place = format!("{method} {path}: {status} {}", String::from_utf8_lossy(&answer.body));
    assert!(response.is_object(), "not documented: {place}");
    for name in HEADERS.into_iter().filter(|name| answer.headers.contains_key(*name)) {
        assert!(response["headers"][name].is_object(), "header {name} is not documented: {place}");
    }
    let Some(kind) = answer.header("content-type") else { return };
    if ["application/x-ndjson", "text/csv"].contains(&kind) {
        // Documented in words, for the sake of generated clients.
        return;
    }
    let content = &response["content"][kind.split(';').next().unwrap()];
    assert!(content.is_object(), "{kind} is not documented: {place}");
    if answer.body.len() > MAX_BODY
        || !(kind.ends_with("/json") || kind.ends_with("+json"))
        || answer.header("content-encoding").is_some()
    {
        return;
    }
    if status >= 400 && kind == "application/problem+json" {
        assert!(content["examples"][answer.code()].is_object(), "code is not documented: {place}");
    }
    let body = convert(&answer.json());
    assert!(
        accepts_within(converted, &convert(&content["schema"]), &body),
        "does not match its schema: {place}"
    );
}

/// Finds the operation for `method` at `path`.
fn operation<'a>(document: &'a Json, method: &Method, path: &str) -> Option<&'a Json> {
    let method = method.as_str().to_lowercase();
    let paths = document["paths"].as_object().unwrap().iter();
    let mut matching = paths.filter(|(template, _)| matches_template(template, path));
    matching.next().and_then(|(_, item)| item.get(method))
}

fn matches_template(template: &str, path: &str) -> bool {
    let (expected, found): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let is_same = |(expected, found): (&&str, &&str)| {
        expected == found || (expected.starts_with('{') && !found.is_empty())
    };
    expected.len() == found.len() && expected.iter().zip(&found).all(is_same)
}

/// Resolves `$ref` in `value`.
pub(crate) fn resolve<'a>(document: &'a Json, value: &'a Json) -> &'a Json {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
        None => value,
    }
}
