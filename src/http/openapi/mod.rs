//! The OpenAPI document: generated from the handlers, completed with the parts that many operations share.

mod alias;
mod examples;
mod links;
mod parameters;
mod problems;
mod scopes;

use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;

use crate::api::{IntegrationHealth, Problem, schema};

use parameters::Parameters;

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
        schemas.entry(name.as_str()).or_insert_with(|| schema.take());
    }
    let (examples, parameters) = (examples::read(), Parameters::read());
    let mut shared = Map::new();
    for (path, item) in members(&mut document["paths"]) {
        for (method, operation) in members(item) {
            problems::complete(method, path, operation, &mut shared);
            parameters.complete(method, path, operation);
            scopes::describe(method, path, operation);
            examples::add(operation, &examples);
            links::add(operation);
        }
    }
    document["components"] = json!({
        "schemas": schemas,
        "responses": shared,
        "headers": parameters.headers(),
        "securitySchemes": {
            "key": {
                "type": "http",
                "scheme": "bearer",
                "bearerFormat": "fk_…",
                "description": "An API key, `Authorization: Bearer fk_…`",
            },
        },
    });
    alias::add(&mut document["paths"]);
    document["webhooks"] = schema::webhooks();
    format!("{document:#}")
}

/// Removes `null` from the properties that need not be there: an optional one is left out instead.
fn omit_null(schema: &mut Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (_, property) in
        members(&mut schema["properties"]).filter(|(name, _)| !required.contains(&json!(name)))
    {
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
