//! The kept OpenAPI document, which every answer is held against.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use axum::http::Method;
use forms::domain::json::{self, Value};
use serde_json::Value as Json;

use super::Answer;
use crate::questions::schema::takes_within;

/// Headers that an operation must declare.
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

/// Bytes of the largest body that is held against its schema.
const MOST: usize = 64 * 1024;

static KEPT: LazyLock<(Json, Value)> = LazyLock::new(|| {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/openapi.json");
    let document = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let converted = convert(&document);
    (document, converted)
});

/// The value that the server's own types hold; its parser would refuse to nest as deep as the document does.
pub(crate) fn convert(value: &Json) -> Value {
    match value {
        Json::Array(items) => Value::Array(items.iter().map(convert).collect()),
        Json::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), convert(value))).collect())
        }
        other => json::parse(&other.to_string()).unwrap(),
    }
}

/// Panics if an answer to `method` at `path` is not as the document says: its status, code, headers or body.
pub(crate) fn check(method: &Method, path: &str, answer: &Answer) {
    if std::env::var_os("FORMS_BLESS").is_some() {
        return;
    }
    let (document, converted) = &*KEPT;
    let Some(operation) = operation(document, method, path) else { return };
    let status = answer.status.as_u16();
    let response = resolve(document, &operation["responses"][status.to_string()]);
    let place = format!("{method} {path}: {status} {}", String::from_utf8_lossy(&answer.body));
    assert!(response.is_object(), "not documented: {place}");
    for name in HEADERS.into_iter().filter(|name| answer.headers.contains_key(*name)) {
        assert!(response["headers"][name].is_object(), "header {name} is not documented: {place}");
    }
    let Some(kind) = answer.header("content-type") else { return };
    let content = &response["content"][kind.split(';').next().unwrap()];
    assert!(content.is_object(), "{kind} is not documented: {place}");
    if answer.body.len() > MOST || !kind.ends_with("json") || answer.header("content-encoding").is_some() {
        return;
    }
    if status >= 400 && kind == "application/problem+json" {
        assert!(content["examples"][answer.code()].is_object(), "code is not documented: {place}");
    }
    let body = convert(&answer.json());
    assert!(takes_within(converted, &convert(&content["schema"]), &body), "not of its schema: {place}");
}

/// The operation of the document that `method` at `path` is.
fn operation<'a>(document: &'a Json, method: &Method, path: &str) -> Option<&'a Json> {
    let method = method.as_str().to_lowercase();
    let paths = document["paths"].as_object().unwrap().iter();
    let mut matching = paths.filter(|(template, _)| is_at(template, path));
    matching.next().and_then(|(_, item)| item.get(method))
}

fn is_at(template: &str, path: &str) -> bool {
    let (wanted, found): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let is_same =
        |(wanted, found): (&&str, &&str)| wanted == found || (wanted.starts_with('{') && !found.is_empty());
    wanted.len() == found.len() && wanted.iter().zip(&found).all(is_same)
}

/// `value`, or what it refers to.
pub(crate) fn resolve<'a>(document: &'a Json, value: &'a Json) -> &'a Json {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
        None => value,
    }
}
