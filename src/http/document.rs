//! The OpenAPI document: what the routes do not say themselves.

use std::collections::BTreeMap;

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi as Document, Ref, RefOr};
use utoipa::{IntoResponses, Modify, OpenApi};

use crate::api::{PROBLEM_TYPE, Problem};

/// The document without its operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "forms",
        description = "Build forms and collect answers.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    components(schemas(Problem)),
    security(("key" = [])),
    modifiers(&Bearer),
)]
pub(super) struct Api;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("fk_…").build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(scheme));
    }
}

/// Every way an operation can fail.
pub(super) struct AnyProblem;

impl IntoResponses for AnyProblem {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let response = ResponseBuilder::new()
            .description("A problem document (RFC 9457); `/problems/{code}` explains each code")
            .content(PROBLEM_TYPE, content)
            .build();
        BTreeMap::from([("default".to_owned(), response.into())])
    }
}

/// The text of `document`, with the operations on submissions listed under their other name too.
pub(super) fn text(mut document: Document) -> String {
    let paths = &mut document.paths.paths;
    let others: Vec<_> = paths
        .iter()
        .filter(|(path, _)| path.contains("/submissions"))
        .map(|(path, item)| (path.replace("/submissions", "/responses"), alias(item.clone())))
        .collect();
    paths.extend(others);
    document.to_pretty_json().expect("an OpenAPI document can be written as JSON")
}

fn alias(mut item: PathItem) -> PathItem {
    for operation in [&mut item.get, &mut item.post, &mut item.patch, &mut item.delete].into_iter().flatten()
    {
        rename(operation);
    }
    item
}

fn rename(operation: &mut Operation) {
    let id = operation.operation_id.take().unwrap_or_default();
    operation.description = Some(format!("Another name of `{id}`."));
    operation.operation_id = Some(id.replace("submission", "response"));
}
