//! The OpenAPI document: generated from the handlers, completed with the parts that many operations share.

mod parameters;
mod problems;
mod scopes;

use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;

use crate::api::{IntegrationHealth, Problem, schema};

/// The document without its operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "forms",
        description = "Build forms and collect answers.\n\nEvery error is a problem document (RFC 9457) whose `code` is for programs and never changes. `/api/v1` only grows: clients accept members, codes, rules, statuses and question types that they do not know.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    servers(
        (url = "/", description = "The server that this document comes from"),
        (url = "http://127.0.0.1:8787", description = "`forms serve` on this machine"),
    ),
    tags(
        (name = "forms", description = "Forms, their questions and their versions"),
        (name = "submissions", description = "Answers to forms. `/responses` is another name of `/submissions` in every path."),
        (name = "integrations", description = "Where a form sends its events"),
        (name = "deliveries", description = "Events owed to integrations, their attempts and outcomes"),
        (name = "webhooks", description = "The requests that receivers of webhooks get"),
        (name = "keys", description = "API keys of the workspace"),
        (name = "workspaces", description = "The workspaces of the server, for its operator"),
        (name = "store", description = "The store as a whole, for the operator of the server"),
        (name = "server", description = "The server, the caller and the documentation of both"),
    ),
    components(schemas(IntegrationHealth, Problem)),
    security(("key" = [])),
)]
pub(crate) struct Api;

/// URL of the server in the document: the root of wherever the document comes from.
const ROOT: &str = "\"url\": \"/\"";

/// The document's text, rendered on first use: most processes never serve it.
pub(crate) type DocumentText = LazyLock<Bytes, Box<dyn FnOnce() -> Bytes + Send>>;

pub(crate) fn document_text(document: Document) -> DocumentText {
    LazyLock::new(Box::new(move || render(&document).into()))
}

/// Returns the document's `text` for clients that reach the server at `url`.
pub(crate) fn text_at(text: &[u8], url: &str) -> Bytes {
    String::from_utf8_lossy(text).replacen(ROOT, &format!("\"url\": {}", json!(url)), 1).into()
}

fn render(document: &Document) -> String {
    let mut document = serde_json::to_value(document).expect("an OpenAPI document can be written as JSON");
    let mut schemas = schema::components();
    for (name, schema) in members(&mut document["components"]["schemas"]) {
        omit_null(schema);
        for alternative in schema.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(kind) = alternative.pointer_mut("/properties/kind") {
                *kind = json!({ "const": kind["enum"][0] });
            }
        }
        schemas.entry(name.as_str()).or_insert_with(|| schema.take());
    }
    // A test sends the request examples and compares the responses with the response examples.
    let examples: Map<_, _> =
        serde_json::from_str(include_str!("examples.json")).expect("examples.json is an object");
    let texts: Value =
        serde_json::from_str(include_str!("parameters.json")).expect("parameters.json is JSON");
    let mut shared = Map::new();
    for (path, item) in members(&mut document["paths"]) {
        for (method, operation) in members(item) {
            problems::complete(method, path, operation, &mut shared);
            parameters::complete(&texts, method, path, operation);
            scopes::describe(method, path, operation);
            add_examples(operation, &examples);
            add_links(operation);
        }
    }
    document["components"] = json!({
        "schemas": schemas,
        "responses": shared,
        "headers": texts["headers"],
        "securitySchemes": {
            "key": {
                "type": "http",
                "scheme": "bearer",
                "bearerFormat": "fk_…",
                "description": "An API key, `Authorization: Bearer fk_…`",
            },
        },
    });
    add_aliases(&mut document["paths"]);
    document["webhooks"] = schema::webhooks();
    format!("{document:#}")
}

/// Removes `null` from the properties that need not be there: an optional one is left out instead.
fn omit_null(schema: &mut Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema.get_mut("properties").into_iter().flat_map(members);
    for (_, property) in properties.filter(|(name, _)| !required.contains(&json!(name))) {
        not_null(property);
    }
}

/// Removes `null` from what `schema` accepts.
fn not_null(schema: &mut Value) {
    if let Some([kind, _]) = schema["type"].as_array().map(Vec::as_slice) {
        schema["type"] = kind.clone();
    }
    let alternatives = schema["oneOf"].as_array().into_iter().flatten();
    if let Some(other) = alternatives.clone().find(|other| other["type"] != "null").cloned() {
        *schema = other;
    }
}

/// Returns the members of `value`; none if it is not an object.
fn members(value: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    value.as_object_mut().into_iter().flatten()
}

/// Returns a reference to the component `name`.
fn component(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// Adds the operations on submissions under their alias.
fn add_aliases(paths: &mut Value) {
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

/// Adds the `examples` of `operation` to its bodies.
fn add_examples(operation: &mut Value, examples: &Map<String, Value>) {
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
fn add_links(operation: &mut Value) {
    for (id, parameters, next) in LINKS {
        if operation["operationId"] == id {
            let parameters: Map<_, _> =
                parameters.iter().map(|(name, place)| ((*name).to_owned(), json!(place))).collect();
            let link = |id: &&str| ((*id).to_owned(), json!({ "operationId": id, "parameters": parameters }));
            operation["responses"]["201"]["links"] = Value::Object(next.iter().map(link).collect());
        }
    }
}
