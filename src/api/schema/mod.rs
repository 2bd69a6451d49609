//! JSON Schemas (2020-12) of the bodies, for the OpenAPI document.
//!
//! A type of question or integration has one schema for requests and responses. `questions.json` and `integrations.json`
//! describe them, `schemas.json` the other types that are not derived from a struct.

mod events;
mod form_file;
mod integrations;
mod questions;

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::Code;
use crate::clock::Timestamp;
use crate::domain::delivery::DeliveryError as DeliveryFailure;
use crate::domain::delivery::attempt::Attempt as AttemptView;
use crate::domain::form::FormStatus;
use crate::domain::form::admission::AcceptingReason;
use crate::domain::submission::SubmissionStatus;
use crate::domain::validation::violation::{Rule, Violation};
use crate::id::{DeliveryId, EventId, FormId, IntegrationId, SubmissionId, WorkspaceId};
use crate::secret::KeyId;

pub use events::webhooks;
pub use form_file::form_file;

pub type Schemas = Map<String, Value>;

/// Lets structs whose schemas are derived refer to a schema of [`components`] by the name of the type.
macro_rules! refer {
    ($($type:ident)*) => {$(
        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                Ref::from_schema_name(stringify!($type)).into()
            }
        }

        impl ToSchema for $type {
            fn name() -> Cow<'static, str> {
                stringify!($type).into()
            }
        }
    )*};
}

/// Declares types by which derived schemas refer to a schema of [`components`] that no Rust type has: that of raw JSON, or of
/// an enum that later servers may extend.
macro_rules! stand_in {
    ($($type:ident)*) => {
        $(pub(super) struct $type;)*
        refer! { $($type)* }
    };
}

refer! {
    AcceptingReason AttemptView DeliveryFailure DeliveryId EventId FormId FormStatus IntegrationId KeyId SubmissionId SubmissionStatus Timestamp
    Violation WorkspaceId
}

stand_in! {
    AcceptingReasonOrOther Answers DeliveryStatusOrOther ErrorCodeOrOther
    EventTypeOrOther FormSettings FormStatusOrOther HealthStateOrOther Integration Metadata Notification Question
    ScopeOrOther SubmissionStatusOrOther
}

/// Returns all schemas that are not derived from a struct.
pub fn components() -> Schemas {
    let mut schemas: Schemas =
        serde_json::from_str(include_str!("schemas.json")).expect("schemas.json is an object");
    let codes = Code::ALL.iter().map(|code| code.name());
    schemas.insert("ErrorCode".to_owned(), known(codes, "Why a request failed, for programs."));
    let rules = Rule::ALL.iter().map(|rule| rule.name());
    schemas.insert("RuleCode".to_owned(), known(rules, "The rule that a definition or an answer broke."));
    questions::add(&mut schemas);
    integrations::add(&mut schemas);
    events::add(&mut schemas);
    let enums = schemas.iter().filter(|(_, schema)| schema["enum"].is_array());
    let open: Vec<_> = enums.map(|(name, _)| (format!("{name}OrOther"), open(name))).collect();
    schemas.extend(open);
    schemas
}

/// The schema of the `names` known so far.
fn known(names: impl Iterator<Item = &'static str>, description: &str) -> Value {
    let description = format!("{description} More may be added; handle an unknown one by the HTTP status.");
    json!({ "type": "string", "enum": names.collect::<Vec<_>>(), "description": description })
}

/// The schema of a value of the enum `name`, or of one that a later server adds.
fn open(name: &str) -> Value {
    json!({
        "description": format!("A value of `{name}`, or one that a later server has added."),
        "anyOf": [reference(name), { "type": "string" }],
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Adds the schema of each type of a `noun`, `types` by name, and their union.
fn add_union<'a>(
    schemas: &mut Schemas,
    noun: &str,
    description: &Value,
    types: impl Iterator<Item = (&'a str, Value)>,
) {
    let (mut members, mut mapping) = (Vec::new(), Map::new());
    for (kind, mut schema) in types {
        schema["properties"]["type"] = json!({ "type": "string", "const": kind });
        let name = format!("{}{noun}", pascal(kind));
        mapping.insert(kind.to_owned(), reference(&name)["$ref"].take());
        members.push(reference(&name));
        schemas.insert(name, schema);
    }
    let union = json!({
        "description": description,
        "oneOf": members,
        "discriminator": { "propertyName": "type", "mapping": mapping },
    });
    schemas.insert(noun.to_owned(), union);
}

/// Extends the properties that are not `required` to accept `null`, which counts as leaving them out.
fn make_nullable(properties: &mut Map<String, Value>, required: &[&str]) {
    let optional = properties.iter_mut().filter(|(name, _)| !required.contains(&name.as_str()));
    for (_, schema) in optional {
        *schema = match &schema["type"] {
            Value::String(kind) if schema["enum"].is_null() => {
                let kind = json!([kind, "null"]);
                let mut nullable = schema.take();
                nullable["type"] = kind;
                nullable
            }
            _ => json!({ "description": schema["description"], "anyOf": [schema, { "type": "null" }] }),
        };
    }
}

/// Adds the members of `more` to `target`.
fn extend(target: &mut Map<String, Value>, more: &Value) {
    target.extend(more.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
}

/// Converts `short_text` and `form.deleted` to `ShortText` and `FormDeleted`.
fn pascal(name: &str) -> String {
    name.split(['_', '.']).map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}
