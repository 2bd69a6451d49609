//! Example bodies by operation. A test sends the request examples and compares the responses with the response examples.

use serde_json::{Map, Value};

use crate::http::openapi::members;

/// Returns all examples by operation id, then by `request` or response status.
pub(crate) fn read() -> Map<String, Value> {
    serde_json::from_str(include_str!("examples.json")).expect("examples.json is an object")
}

/// Adds the `examples` of `operation` to its bodies.
pub(crate) fn add(operation: &mut Value, examples: &Map<String, Value>) {
    let own = &examples.get(operation["operationId"].as_str().unwrap_or_default()).cloned();
    let Some(Value::Object(own)) = own else { return };
    for (place, example) in own {
        let body = match place.as_str() {
            "request" => &mut operation["requestBody"],
            status => &mut operation["responses"][status],
        };
        for (_, content) in members(&mut body["content"]) {
            content["example"] = example.clone();
        }
    }
}
