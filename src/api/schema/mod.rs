//! JSON Schemas (2020-12) of the bodies, for the OpenAPI document.
//!
//! The schemas of questions are made from the table that the server reads definitions by, and `questions.json` describes
//! them; `schemas.json` has the other types that are not derived from a struct.

mod integrations;
mod questions;

use serde_json::{Map, Value, json};
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, Ref, RefOr, Schema, Type, schema::AnyOfBuilder};

use super::Code;
use crate::domain::validation::violation::Rule;

pub type Schemas = Map<String, Value>;

/// All schemas that are not derived from a struct.
pub fn components() -> Schemas {
    let mut schemas: Schemas =
        serde_json::from_str(include_str!("schemas.json")).expect("schemas.json is an object");
    let settings = new_settings(&schemas["FormSettings"]);
    schemas.insert("NewFormSettings".to_owned(), settings);
    let codes = Code::ALL.iter().map(|code| code.name());
    schemas.insert("ProblemCode".to_owned(), known(codes, "Why a request failed, for programs."));
    let rules = Rule::ALL.iter().map(|rule| rule.name());
    schemas.insert("RuleCode".to_owned(), known(rules, "The rule that a definition or an answer broke."));
    questions::add(&mut schemas);
    integrations::add(&mut schemas);
    schemas
}

/// The schema of the `names` known so far.
fn known(names: impl Iterator<Item = &'static str>, description: &str) -> Value {
    let description = format!("{description} More may be added; handle an unknown one by the HTTP status.");
    json!({ "type": "string", "enum": names.collect::<Vec<_>>(), "description": description })
}

/// The schema of the settings to create or change a form with.
fn new_settings(settings: &Value) -> Value {
    let mut new = settings.clone();
    for schema in new["properties"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        *schema = nullable(schema);
    }
    new["additionalProperties"] = json!(false);
    new["description"] =
        json!("Settings of the form; in a change, those left out stay and `null` removes one.");
    new
}

/// Returns `schema`, extended to accept `null`, which counts as leaving the member out.
fn nullable(schema: &Value) -> Value {
    let mut nullable = schema.clone();
    match &schema["type"] {
        Value::String(kind) if schema["enum"].is_null() => nullable["type"] = json!([kind, "null"]),
        _ => {
            nullable = json!({ "description": schema["description"], "anyOf": [schema, { "type": "null" }] })
        }
    }
    nullable
}

/// A value of the schema `name`, which lists the values known so far, or another: clients accept what later servers send.
fn open(name: &str, description: &str) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let any = AnyOfBuilder::new().item(Ref::from_schema_name(name)).item(text);
    RefOr::T(Schema::AnyOf(any.description(Some(description)).build()))
}

pub(super) fn form_id() -> RefOr<Schema> {
    id("The id of the form.", "^frm_[0-9a-hjkmnp-tv-z]{12}$", "frm_7k2m9q4x1abz")
}

pub(super) fn submission_id() -> RefOr<Schema> {
    id("The id of the submission.", "^sub_[0-9a-hjkmnp-tv-z]{26}$", "sub_01k3v8m2f4q6s8t0w2y4z6a8bc")
}

pub(super) fn integration_id() -> RefOr<Schema> {
    id("The id of the integration.", "^int_[0-9a-hjkmnp-tv-z]{12}$", "int_5w3n8r1t6y2d")
}

pub(super) fn delivery_id() -> RefOr<Schema> {
    id("The id of the delivery.", "^dlv_[0-9a-hjkmnp-tv-z]{26}$", "dlv_01k3v8m2f4q6s8t0w2y4z6a8bc")
}

pub(super) fn event_id() -> RefOr<Schema> {
    let description = "The id of the event; webhooks receive it as `webhook-id`.";
    id(description, "^evt_[0-9a-hjkmnp-tv-z]{26}$", "evt_01k3v8m2f4q6s8t0w2y4z6a8bc")
}

pub(super) fn key_id() -> RefOr<Schema> {
    id("The id of the key.", "^key_[0-9A-Za-z]{8}$", "key_8Xk2mQ4z")
}

pub(super) fn workspace_id() -> RefOr<Schema> {
    id("The id of the workspace.", "^ws_[0-9a-hjkmnp-tv-z]{12}$", "ws_3f8k2m9q4x1a")
}

pub(super) fn key_text() -> RefOr<Schema> {
    let description = "The text of the key, for `Authorization: Bearer`; left out of a repeated response.";
    let text = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    text.examples(["fk_8Xk2mQ4z…"]).into()
}

pub(super) fn key_forms() -> RefOr<Schema> {
    let description = "The only forms that the key may be used for; left out if it may be used for all.";
    list(form_id(), description)
}

fn id(description: &str, pattern: &str, example: &str) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern));
    text.description(Some(description)).examples([example]).into()
}

pub(super) fn form_status() -> RefOr<Schema> {
    open("FormStatus", "Whether the form is published.")
}

pub(super) fn accepting_reason() -> RefOr<Schema> {
    open("AcceptingReason", "Why the form accepts no answers now; left out while it accepts them.")
}

pub(super) fn submission_status() -> RefOr<Schema> {
    open("SubmissionStatus", "The state of the submission.")
}

pub(super) fn health_state() -> RefOr<Schema> {
    open("HealthState", "Whether the integration works.")
}

pub(super) fn attempt_trigger() -> RefOr<Schema> {
    open("AttemptTrigger", "What caused the attempt.")
}

pub(super) fn attempt_result() -> RefOr<Schema> {
    open("AttemptResult", "How the attempt ended.")
}

pub(super) fn delivery_status() -> RefOr<Schema> {
    open("DeliveryStatus", "The state of the delivery.")
}

pub(super) fn event_type() -> RefOr<Schema> {
    open("EventType", "What happened.")
}

pub(super) fn signing_secret() -> RefOr<Schema> {
    let description = "The new secret; left out of a repeated response.";
    let text = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    text.examples(["whsec_…"]).into()
}

pub(super) fn form_integrations() -> RefOr<Schema> {
    let description =
        "Where the form sends its events; left out if nowhere, or if the key lacks the scope `read`.";
    list(reference("FormIntegration"), description)
}

pub(super) fn form_notifications() -> RefOr<Schema> {
    let description = "Who gets mail with each response, as it was written; left out if nobody, or if the key lacks the scope `read`.";
    list(reference("Notification"), description)
}

pub(super) fn problem_code() -> RefOr<Schema> {
    open("ProblemCode", "Why the request failed, for programs; `/problems/{code}` explains it.")
}

pub(super) fn scopes() -> RefOr<Schema> {
    list(open("Scope", "A permission of the key."), "The scopes of the key.")
}

pub(super) fn questions() -> RefOr<Schema> {
    let description = "The questions in canonical form: `id`, `type`, `title`, `required`, then the settings that were set.";
    list(reference("Question"), description)
}

pub(super) fn violations() -> RefOr<Schema> {
    list(reference("Violation"), "Every broken rule, with `validation_failed` and `slug_taken`; at most 100.")
}

pub(super) fn form_settings() -> RefOr<Schema> {
    reference("FormSettings")
}

pub(super) fn answers() -> RefOr<Schema> {
    reference("Answers")
}

pub(super) fn metadata() -> RefOr<Schema> {
    reference("Metadata")
}

fn reference(name: &str) -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name(name))
}

fn list(items: RefOr<Schema>, description: &str) -> RefOr<Schema> {
    RefOr::T(Schema::Array(ArrayBuilder::new().items(items).description(Some(description)).build()))
}
