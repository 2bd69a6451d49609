//! `/responses`, the alias of `/submissions`.

use serde_json::{Value, json};

use crate::http::openapi::{members, scopes};

/// Adds the operations on submissions under their alias.
pub(crate) fn add(paths: &mut Value) {
    let Value::Object(paths) = paths else { return };
    let aliases: Vec<_> = paths
        .iter()
        .filter(|(path, _)| path.contains("/submissions"))
        .map(|(path, item)| (path.replace("/submissions", "/responses"), alias(path, item.clone())))
        .collect();
    paths.extend(aliases);
}

fn alias(path: &str, mut item: Value) -> Value {
    for (method, operation) in members(&mut item) {
        let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
        let summary = operation["summary"].as_str().unwrap_or_default().to_owned();
        operation["summary"] = json!(format!("{summary} (alias)"));
        operation["description"] = json!(format!("Another name of `{id}`."));
        scopes::describe(method, path, operation);
        operation["operationId"] = json!(id.replace("submission", "response"));
    }
    item
}
