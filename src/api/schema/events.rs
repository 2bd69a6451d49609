//! The bodies that webhooks receive: one schema for each type of event, and the `webhooks` of the document.

use serde_json::{Map, Value, json};

use super::{Schemas, extend, pascal, reference};
use crate::domain::integration::event::EventType;

pub(super) fn add(schemas: &mut Schemas) {
    let texts = texts();
    extend(schemas, &texts["schemas"]);
    for event in EventType::ALL {
        let data = data_of(event);
        let mut schema = texts["envelope"].clone();
        schema["description"] = texts["events"][event.name()].clone();
        schema["properties"]["type"] = json!({ "type": "string", "const": event.name() });
        schema["properties"]["data"] = json!({
            "description": "With `payload: thin`, or where a full body would be larger than 256 KiB, only ids.",
            "anyOf": [reference(data), reference(&format!("Thin{data}"))],
        });
        schemas.insert(schema_name(event), schema);
    }
}

/// Returns the requests that webhooks receive, by type of event.
pub fn webhooks() -> Value {
    let texts = texts();
    let webhook = |event: EventType| {
        let mut request = texts["request"].clone();
        request["operationId"] = format!("on_{}", event.name().replace('.', "_")).into();
        request["summary"] = event.name().into();
        request["description"] = texts["events"][event.name()].clone();
        request["requestBody"]["content"]["application/json"]["schema"] = reference(&schema_name(event));
        (event.name().to_owned(), json!({ "post": request }))
    };
    EventType::ALL.into_iter().map(webhook).collect::<Map<_, _>>().into()
}

fn texts() -> Value {
    serde_json::from_str(include_str!("events.json")).expect("events.json is JSON")
}

fn schema_name(event: EventType) -> String {
    pascal(event.name()) + "Event"
}

/// The schema of what is reported about the subject of an event.
fn data_of(event: EventType) -> &'static str {
    match event {
        EventType::SubmissionCompleted | EventType::SubmissionUpdated | EventType::IntegrationTest => {
            "SubmissionEventData"
        }
        EventType::SubmissionDeleted => "DeletedSubmissionEventData",
        EventType::FormPublished | EventType::FormUnpublished | EventType::FormDeleted => "FormEventData",
        EventType::IntegrationDisabled => "IntegrationEventData",
    }
}
