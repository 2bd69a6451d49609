//! Parameters and headers that several operations share: handlers name them, `parameters.json` describes them.

use serde_json::{Map, Value, json};

use crate::http::openapi::{component, members, not_null};

/// Returns the header that all operations of a method have.
pub(super) fn header_of(method: &str, path: &str) -> Option<&'static str> {
    match method {
        // Each is the same however often it is requested.
        "post" if path.starts_with("/api/v1/store/") => None,
        "post" => Some("Idempotency-Key"),
        "patch" | "delete" if path.starts_with("/api/v1/forms/") => Some("If-Match"),
        _ => None,
    }
}

/// Completes the parameters, the body and the response headers of the operation `method` `path`: each name in the path is a
/// parameter, described by `texts`, and so is the header that all operations of a method have. All pages have a `Link`, all
/// creations a `Location`.
pub(super) fn complete(texts: &Value, method: &str, path: &str, operation: &mut Value) {
    let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
    let names = path.split(['{', '}']).skip(1).step_by(2);
    let parameter = |name: &str, place: &str| json!({ "name": name, "in": place });
    let mut parameters: Vec<_> = names.map(|name| parameter(name, "path")).collect();
    if let Some(Value::Array(declared)) = operation.get("parameters").cloned() {
        parameters.extend(declared);
    }
    parameters.extend(header_of(method, path).map(|name| parameter(name, "header")));
    for parameter in &mut parameters {
        not_null(&mut parameter["schema"]);
        parameter["required"] = json!(parameter["in"] == "path");
        let name = parameter["name"].as_str().unwrap_or_default();
        let described = [format!("{id}.{name}"), name.to_owned()];
        for name in described {
            for (member, value) in texts["parameters"][name].as_object().into_iter().flatten() {
                parameter[member] = value.clone();
            }
        }
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.clone().into();
    }
    if let Some(body) = operation.get_mut("requestBody") {
        // Only the body of a rotation may be left out.
        body["required"] = json!(!["rotate_key", "rotate_secret"].contains(&id.as_str()));
        if method == "patch" {
            body["content"]["application/merge-patch+json"] = body["content"]["application/json"].clone();
        }
    }
    let is_page = parameters.iter().any(|parameter| parameter["name"] == "cursor");
    let success = if operation["responses"].get("201").is_some() { "201" } else { "200" };
    for (status, response) in members(&mut operation["responses"]) {
        if response.get("$ref").is_none() {
            let named = response["headers"].as_object().into_iter().flatten();
            let common = [
                ("Idempotency-Replayed", method == "post" && status == success),
                ("Link", is_page && status == "200"),
                ("Location", status == "201"),
                ("X-Request-Id", true),
            ];
            let common = common.into_iter().filter(|(_, applies)| *applies).map(|(name, _)| name);
            let all = named.map(|(name, _)| name.as_str()).chain(common);
            let all = all.map(|name| (name.to_owned(), component("headers", name)));
            response["headers"] = Value::Object(all.collect::<Map<_, _>>());
        }
    }
}
