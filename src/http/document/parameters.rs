//! Parameters and headers, which mean the same in every operation: handlers name them, and this file describes them.

use serde_json::{Map, Value, json};

use super::{component, members};

/// A header of responses: its name, its description, its type and an example.
type Header = (&'static str, &'static str, &'static str, &'static str);

const HEADERS: [Header; 9] = [
    (
        "X-Request-Id",
        "The id of this request in the server's log: the client's own, if it sent a usable one.",
        "string",
        "01k3v8m2f4q6s8t0",
    ),
    ("ETag", "The revision, for `If-Match`; every change of the object moves it.", "string", "\"r1\""),
    ("Location", "The path of what was created.", "string", "/api/v1/forms/frm_7k2m9q4x1abz"),
    (
        "Link",
        "The next page, with `rel=\"next\"` (RFC 8288); left out on the last.",
        "string",
        "</api/v1/forms?limit=100&cursor=c1>; rel=\"next\"",
    ),
    ("Forms-Total", "The number of items on all pages, with `count=true`.", "integer", "60"),
    (
        "Forms-Dropped",
        "The keys of answers that were left out, separated by commas and percent-encoded where they are not tokens; left out if there are none.",
        "string",
        "nickname",
    ),
    (
        "Idempotency-Replayed",
        "`true` if an earlier request with the same `Idempotency-Key` had done it; else left out.",
        "string",
        "true",
    ),
    ("Retry-After", "The seconds to wait before trying again.", "integer", "1"),
    ("WWW-Authenticate", "The scheme of authentication.", "string", "Bearer"),
];

/// All headers, as components.
pub(super) fn headers() -> Value {
    let header = |(name, description, kind, example): &Header| {
        let example = serde_json::from_str(example).ok().filter(Value::is_u64).unwrap_or(json!(example));
        (
            name.to_string(),
            json!({ "description": description, "schema": { "type": kind }, "example": example }),
        )
    };
    Value::Object(HEADERS.iter().map(header).collect())
}

/// The schema of the query parameter `name` of the operation `id`, if its handler cannot say it.
fn schema(id: &str, name: &str) -> Option<Value> {
    Some(match (id, name) {
        ("list_forms", "status") => component("schemas", "FormStatus"),
        ("list_submissions", "status") => component("schemas", "SubmissionStatus"),
        (_, "order") => json!({ "type": "string", "enum": ["asc", "desc"], "default": "desc" }),
        (_, "filter") => {
            let operators = json!({ "type": "object", "additionalProperties": { "type": "string" } });
            json!({ "type": "object", "additionalProperties": { "anyOf": [{ "type": "string" }, operators] } })
        }
        _ => return None,
    })
}

/// The description, the schema and an example of the parameter `name`, if it is described here.
fn described(name: &str) -> Option<(&'static str, Value, &'static str)> {
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    Some(match name {
        "form" => (
            "The form's id or slug.",
            text("^(frm_[0-9a-hjkmnp-tv-z]{12}|[a-z0-9]+(-[a-z0-9]+)*)$"),
            "frm_7k2m9q4x1abz",
        ),
        "submission" => {
            ("The submission's id.", text("^sub_[0-9a-hjkmnp-tv-z]{26}$"), "sub_01k3v8m2f4q6s8t0w2y4z6a8bc")
        }
        "version" => ("The number of the version.", json!({ "type": "integer", "minimum": 1 }), "1"),
        "code" => ("The code of a problem or of a rule.", text("^[a-z_]+$"), "form_not_found"),
        "Idempotency-Key" => (
            "A key of your choice for this request. Sent again within 24 hours with the same body, it returns the first response instead of doing it again.",
            json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$" }),
            "0b1e7c52-6f0e-4a6e-9a57-4f3f0f0b8f6d",
        ),
        "If-Match" => (
            "Do it only at this revision: an `ETag` that was read before.",
            json!({ "type": "string" }),
            "\"r1\"",
        ),
        _ => return None,
    })
}

/// Completes the parameters and the body of `operation`, and the headers of its successes.
pub(super) fn complete(operation: &mut Value) {
    let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
        if let Some(schema) = schema(&id, &name) {
            parameter["schema"] = schema;
        }
        if let Some((description, schema, example)) = described(&name) {
            let is_number = schema["type"] == "integer";
            let number = serde_json::from_str(example).ok().filter(|_| is_number);
            parameter["description"] = json!(description);
            parameter["schema"] = schema;
            parameter["example"] = number.unwrap_or(json!(example));
        }
    }
    if let Some(body) = operation.get_mut("requestBody") {
        body["required"] = json!(true);
    }
    for (_, response) in members(&mut operation["responses"]) {
        if response.get("$ref").is_some() {
            continue;
        }
        let named = response["headers"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let all = named.chain(["X-Request-Id"]).map(|name| (name.to_owned(), component("headers", name)));
        response["headers"] = Value::Object(all.collect::<Map<_, _>>());
    }
}
