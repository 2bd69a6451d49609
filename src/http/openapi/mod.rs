//! The OpenAPI document: generated from the handlers, completed with the parts that many operations share.

mod alias;
mod examples;
mod links;
mod parameters;
mod problems;

use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use crate::api::{Problem, schema};

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
        (name = "server", description = "The server, the caller and the documentation of both"),
    ),
    components(schemas(Problem)),
    security(("key" = [])),
    modifiers(&Bearer),
)]
pub(crate) struct Api;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("fk_…")
            .description(Some("An API key, `Authorization: Bearer fk_…`"))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(scheme));
    }
}

/// The document's text, rendered on first use: most processes never serve it.
pub(crate) struct DocumentText {
    document: Document,
    text: OnceLock<Bytes>,
}

impl DocumentText {
    pub(crate) fn new(document: Document) -> Self {
        Self { document, text: OnceLock::new() }
    }

    pub(crate) fn get(&self) -> Bytes {
        self.text.get_or_init(|| render(&self.document).into()).clone()
    }
}

fn render(document: &Document) -> String {
    let mut document = serde_json::to_value(document).expect("an OpenAPI document can be written as JSON");
    let mut schemas = schema::components();
    take(&mut document["components"]["schemas"]).into_iter().for_each(|(name, schema)| {
        schemas.insert(name, schema);
    });
    document["components"]["schemas"] = schemas.into();
    let (examples, parameters) = (examples::read(), Parameters::read());
    let mut shared = Map::new();
    for (path, item) in members(&mut document["paths"]) {
        for (method, operation) in members(item) {
            problems::complete(method, path, operation, &mut shared);
            parameters.complete(method, path, operation);
            examples::add(operation, &examples);
            links::add(operation);
        }
    }
    document["components"]["responses"] = shared.into();
    document["components"]["headers"] = parameters.headers();
    alias::add(&mut document["paths"]);
    format!("{document:#}")
}

/// Returns the members of `value`; none if it is not an object.
fn members(value: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    value.as_object_mut().into_iter().flatten()
}

/// Takes the members out of `value`, leaving null.
fn take(value: &mut Value) -> Map<String, Value> {
    match value.take() {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Returns a reference to the component `name`.
fn component(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}
