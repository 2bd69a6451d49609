//! OpenAPI links from an operation that creates something to those that use it.

use serde_json::{Map, Value, json};

/// The creating operation, its response members by parameter name, and the operations that take those parameters.
type Links = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const LINKS: [Links; 5] = [
    (
        "create_form",
        &[("form", "$response.body#/id")],
        &[
            "get_form",
            "update_form",
            "delete_form",
            "list_versions",
            "get_schema",
            "create_submission",
            "list_submissions",
        ],
    ),
    (
        "create_submission",
        &[("form", "$response.body#/form_id"), ("submission", "$response.body#/id")],
        &["get_submission", "edit_submission", "delete_submission", "list_submission_history"],
    ),
    (
        "create_integration",
        &[("form", "$request.path.form"), ("integration", "$response.body#/id")],
        &["get_integration", "update_integration", "delete_integration", "test_integration", "rotate_secret"],
    ),
    ("create_key", &[("key", "$response.body#/id")], &["revoke_key", "rotate_key"]),
    ("create_workspace", &[("workspace", "$response.body#/id")], &["delete_workspace"]),
];

/// Adds the links of `operation` to its response 201.
pub(crate) fn add(operation: &mut Value) {
    for (id, parameters, next) in LINKS {
        if operation["operationId"] == id {
            let parameters: Map<_, _> =
                parameters.iter().map(|(name, place)| ((*name).to_owned(), json!(place))).collect();
            let link = |id: &&str| ((*id).to_owned(), json!({ "operationId": id, "parameters": parameters }));
            operation["responses"]["201"]["links"] = Value::Object(next.iter().map(link).collect());
        }
    }
}
