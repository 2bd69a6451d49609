//! The scope that a key needs for each operation.

use serde_json::Value;

/// Returns the scope that the operation `id`, `method` `path`, needs; `None` if every key may call it, or it needs no key.
pub(super) fn needed(method: &str, path: &str, id: &str) -> Option<&'static str> {
    let resource = path.strip_prefix("/api/v1/").or(path.strip_prefix('/'))?;
    Some(match (id, resource.split(['/', ':']).next()?) {
        ("get_form" | "get_schema", _) => "`read` or `submit`",
        ("create_submission" | "create_submissions", _) => "`submit`",
        ("erase_submissions", _) => "`admin`",
        (_, "forms" | "deliveries") if method == "get" => "`read`",
        (_, "forms" | "deliveries") => "`write`",
        ("rotate_key", _) => "`admin`",
        (_, "keys") => "`admin`, or for another `workspace` `operator`",
        (_, "workspaces" | "store" | "metrics") => "`operator`",
        _ => return None,
    })
}

/// Adds the scope to the description of the operation `method` `path`.
pub(super) fn describe(method: &str, path: &str, operation: &mut Value) {
    let id = operation["operationId"].as_str().unwrap_or_default();
    let Some(scope) = needed(method, path, id) else { return };
    let description = operation["description"].as_str().unwrap_or_default();
    operation["description"] = format!("{description}\n\nNeeds the scope {scope}.").into();
}
