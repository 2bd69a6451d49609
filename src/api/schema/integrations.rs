//! The schemas of integrations: one for each type, their union, and one for changes.

use serde_json::{Map, Value, json};

use super::{Schemas, add_union, extend, make_nullable, reference};
use crate::domain::integration::IntegrationType;
use crate::domain::integration::settings::{MAX_HEADERS, MAX_QUESTION_ID, MAX_URL};
use crate::domain::integration::spec::{Member, MemberValue, Need};

pub(super) fn add(schemas: &mut Schemas) {
    let texts: Value =
        serde_json::from_str(include_str!("integrations.json")).expect("integrations.json is JSON");
    let types = IntegrationType::ALL.into_iter().map(|one| (one.name(), integration(one, &texts)));
    add_union(schemas, "Integration", &texts["description"], types);
    schemas.insert("IntegrationPatch".to_owned(), patch(&texts));
    extend(schemas, &texts["schemas"]);
    let mut redelivery = schemas["DeliverySelection"].clone();
    redelivery["properties"]["rate"] = texts["rate"].clone();
    schemas.insert("RedeliverySelection".to_owned(), redelivery);
}

fn integration(kind: IntegrationType, texts: &Value) -> Value {
    let description = kind.spec();
    let mut properties = Map::new();
    extend(&mut properties, &texts["common"]);
    properties.extend(description.members.iter().map(|member| (member.name.to_owned(), schema_of(member))));
    let needed = description.members.iter().filter(|member| member.need == Need::Required);
    let required: Vec<_> = ["type"].into_iter().chain(needed.map(|member| member.name)).collect();
    make_nullable(&mut properties, &required);
    extend(&mut properties, &texts["state"]);
    json!({
        "type": "object",
        "description": description.about,
        "required": required,
        "properties": properties,
    })
}

/// The schema of a change, which has the members of all types.
fn patch(texts: &Value) -> Value {
    let mut properties = Map::new();
    extend(&mut properties, &texts["common"]);
    for member in IntegrationType::all_members() {
        let schema = schema_of(member);
        // A member that is a secret for one type and text for another is sent as text in both.
        if !properties.contains_key(member.name) || schema["$ref"].is_string() {
            properties.insert(member.name.to_owned(), schema);
        }
    }
    make_nullable(&mut properties, &[]);
    let kind = json!({ "type": "string", "description": "The type, which cannot change." });
    properties.insert("type".to_owned(), kind);
    json!({
        "type": "object",
        "description": texts["patch"],
        "properties": properties,
        "additionalProperties": false,
    })
}

/// The schema of a member, with what it means, its default and its example.
fn schema_of(member: &Member) -> Value {
    let mut schema = match member.value {
        MemberValue::Text { max, .. } | MemberValue::Template(max) => {
            json!({ "type": "string", "maxLength": max })
        }
        MemberValue::Choice(names) => choice(names),
        MemberValue::Number { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        MemberValue::Flag => json!({ "type": "boolean" }),
        MemberValue::Texts { max_items, max, .. } => {
            let items = json!({ "type": "string", "maxLength": max });
            json!({ "type": "array", "minItems": 1, "maxItems": max_items, "uniqueItems": true, "items": items })
        }
        MemberValue::Url => {
            json!({ "type": "string", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://", "maxLength": MAX_URL })
        }
        MemberValue::Secret(_) | MemberValue::SecretUrl(_) | MemberValue::SigningSecret => {
            reference("Secret")
        }
        MemberValue::EmailQuestion => json!({ "type": "string", "maxLength": MAX_QUESTION_ID }),
        MemberValue::Headers => json!({
            "type": "object",
            "maxProperties": MAX_HEADERS,
            "additionalProperties": { "$ref": "#/components/schemas/HeaderValue" },
        }),
    };
    schema["description"] = match member.need {
        Need::Default(value) => format!("{} Default: `{}`.", member.about, value.trim_matches('"')).into(),
        Need::Required | Need::Optional => member.about.into(),
    };
    if let Ok(example) = serde_json::from_str::<Value>(member.example) {
        schema["example"] = example;
    }
    schema
}

/// The schema of one of `names`. Code that is generated from an enum could not name characters, and writes a tab as a space.
fn choice(names: &[&str]) -> Value {
    if names.iter().all(|name| name.starts_with(char::is_alphabetic)) {
        return json!({ "type": "string", "enum": names });
    }
    json!({ "type": "string", "pattern": format!("^[{}]$", names.concat().escape_default()) })
}
