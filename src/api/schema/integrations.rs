//! The schemas of integrations: for each type one as it is sent, one as it is in the body of its form, and one as it is
//! returned on its own; and the unions of each.

use serde_json::{Map, Value, json};

use super::questions::pascal;
use super::{Schemas, nullable};
use crate::domain::integration::IntegrationType;
use crate::domain::integration::settings::{MAX_HEADERS, MAX_QUESTION_ID, MAX_URL};
use crate::domain::integration::spec::{IntegrationSpec, Member, MemberValue, Need};

/// The prefix of the schemas of integrations to create.
const SENT: &str = "New";

/// The prefix of the schemas of integrations in the body of their form.
const IN_FORM: &str = "Form";

/// Adds the schemas.
pub(super) fn add(schemas: &mut Schemas) {
    let texts: Value =
        serde_json::from_str(include_str!("integrations.json")).expect("integrations.json is JSON");
    let types: Map<_, _> =
        IntegrationType::ALL.into_iter().map(|one| (one.name().to_owned(), own(one.spec()))).collect();
    for prefix in [SENT, IN_FORM, ""] {
        let (mut members, mut mapping) = (Vec::new(), Map::new());
        for (kind, own) in &types {
            let name = format!("{prefix}{}Integration", pascal(kind));
            let path = format!("#/components/schemas/{name}");
            members.push(json!({ "$ref": path }));
            mapping.insert(kind.clone(), path.into());
            let schema = if prefix == SENT {
                sent(kind, own, &texts)
            } else {
                shown(kind, own, &texts, prefix != IN_FORM)
            };
            schemas.insert(name, schema);
        }
        let union = json!({
            "description": texts["unions"][format!("{prefix}Integration")],
            "oneOf": members,
            "discriminator": { "propertyName": "type", "mapping": mapping },
        });
        schemas.insert(format!("{prefix}Integration"), union);
    }
    schemas.insert("IntegrationPatch".to_owned(), patch(&types, &texts));
    let mut redelivery = texts["schemas"]["DeliverySelection"].clone();
    extend(&mut redelivery["properties"], &json!({ "rate": texts["rate"] }));
    schemas.insert("RedeliverySelection".to_owned(), redelivery);
    for (name, schema) in texts["schemas"].as_object().into_iter().flatten() {
        schemas.insert(name.clone(), schema.clone());
    }
}

/// The schemas of a type's own members, as sent and as shown.
fn own(description: &IntegrationSpec) -> Value {
    let (mut settings, mut shown) = (Map::new(), Map::new());
    for member in description.members {
        let (as_sent, as_shown) = schemas_of(member);
        settings.insert(member.name.to_owned(), described(as_sent, member));
        shown.extend(as_shown.map(|schema| (member.name.to_owned(), schema)));
    }
    let names = |is_included: fn(&Member) -> bool| -> Value {
        description.members.iter().filter(|member| is_included(member)).map(|member| member.name).collect()
    };
    json!({
        "description": description.about,
        "required": names(|member| member.need == Need::Required),
        "always": names(|member| member.need != Need::Optional),
        "settings": settings,
        "shown": shown,
    })
}

/// The schemas of a member as sent, and as shown if that differs.
fn schemas_of(member: &Member) -> (Value, Option<Value>) {
    let schema = match member.value {
        MemberValue::Text { max, .. } | MemberValue::Template(max) => {
            json!({ "type": "string", "maxLength": max })
        }
        MemberValue::Choice(names) => json!({ "type": "string", "enum": names }),
        MemberValue::Number { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        MemberValue::Flag => json!({ "type": "boolean" }),
        MemberValue::Texts { max_items, max, .. } => {
            let items = json!({ "type": "string", "maxLength": max });
            json!({ "type": "array", "minItems": 1, "maxItems": max_items, "uniqueItems": true, "items": items })
        }
        MemberValue::Url => {
            json!({ "type": "string", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://", "maxLength": MAX_URL })
        }
        MemberValue::Secret(_) | MemberValue::SecretUrl => {
            let state = json!({ "$ref": "#/components/schemas/SecretState", "description": member.about });
            return (json!({ "$ref": "#/components/schemas/NewSecret" }), Some(state));
        }
        MemberValue::EmailQuestion => json!({ "type": "string", "maxLength": MAX_QUESTION_ID }),
        MemberValue::SigningSecret => {
            let shown =
                json!({ "$ref": "#/components/schemas/SigningSecret", "description": "The signing secret." });
            return (json!({ "$ref": "#/components/schemas/NewSecret" }), Some(shown));
        }
        MemberValue::Headers => {
            let headers = |schema: &str| json!({ "type": "object", "additionalProperties": { "$ref": format!("#/components/schemas/{schema}") } });
            let (mut sent, mut shown) = (headers("NewHeader"), headers("Header"));
            extend(&mut sent, &json!({ "maxProperties": MAX_HEADERS }));
            extend(&mut shown, &json!({ "description": member.about }));
            return (sent, Some(shown));
        }
    };
    (schema, None)
}

/// Adds what a member means, its default and its example.
fn described(mut schema: Value, member: &Member) -> Value {
    let about = match member.need {
        Need::Default(value) => format!("{} Default: `{}`.", member.about, value.trim_matches('"')),
        Need::Required | Need::Optional => member.about.to_owned(),
    };
    extend(&mut schema, &json!({ "description": about }));
    if let Ok(example) = serde_json::from_str::<Value>(member.example) {
        extend(&mut schema, &json!({ "example": example }));
    }
    schema
}

/// The schema of an integration to create.
fn sent(kind: &str, own: &Value, texts: &Value) -> Value {
    let mut properties = properties(kind, own, texts);
    let mut required = vec![json!("type")];
    required.extend(items(&own["required"]));
    let all = properties.as_object_mut().into_iter().flatten();
    let optional = all.filter(|(name, _)| !required.contains(&json!(name)));
    optional.for_each(|(_, schema)| *schema = nullable(schema));
    json!({
        "type": "object",
        "description": own["description"],
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}

/// The schema of an integration in a response, on its own with its id and health.
fn shown(kind: &str, own: &Value, texts: &Value, has_state: bool) -> Value {
    let mut properties = properties(kind, own, texts);
    extend(&mut properties, &own["shown"]);
    let mut required = vec![json!("type")];
    required.extend(items(&texts["always"]).chain(items(&own["always"])));
    if has_state {
        extend(&mut properties, &texts["state"]);
        let state = texts["state"].as_object().into_iter().flat_map(Map::keys);
        required.extend(state.map(|name| json!(name)));
    }
    json!({
        "type": "object",
        "description": own["description"],
        "required": required,
        "properties": properties,
    })
}

/// The members of an integration as they are sent.
fn properties(kind: &str, own: &Value, texts: &Value) -> Value {
    let mut properties = json!({ "type": { "type": "string", "const": kind } });
    extend(&mut properties, &texts["common"]);
    extend(&mut properties, &own["settings"]);
    properties
}

/// The schema of a change, which has the members of all types.
fn patch(types: &Map<String, Value>, texts: &Value) -> Value {
    let mut properties = texts["common"].clone();
    properties.as_object_mut().into_iter().flatten().for_each(|(_, schema)| *schema = nullable(schema));
    for name in IntegrationType::all_members().map(|member| member.name) {
        let of_type =
            |one: IntegrationType| Some((one.name(), types.get(one.name())?["settings"].get(name)?));
        let schemas: Vec<_> = IntegrationType::ALL.into_iter().filter_map(of_type).collect();
        extend(&mut properties, &json!({ name: union_of(&schemas) }));
    }
    let kind = json!({ "type": { "type": "string", "description": "The type, which cannot change." } });
    extend(&mut properties, &kind);
    json!({
        "type": "object",
        "description": texts["unions"]["IntegrationPatch"],
        "properties": properties,
        "additionalProperties": false,
    })
}

/// The schema of a member in a change: what any of the types that have it accepts, or `null`. `schemas` has them by type.
fn union_of(schemas: &[(&str, &Value)]) -> Value {
    let mut alternatives: Vec<Value> = Vec::new();
    let mut descriptions: Vec<(&Value, Vec<String>)> = Vec::new();
    for (kind, schema) in schemas {
        let mut bare = (*schema).clone();
        let texts = bare.as_object_mut();
        texts
            .into_iter()
            .for_each(|texts| texts.retain(|name, _| name != "description" && name != "example"));
        if !alternatives.contains(&bare) {
            alternatives.push(bare);
        }
        let (text, kind) = (&schema["description"], format!("`{kind}`"));
        match descriptions.iter_mut().find(|(known, _)| *known == text) {
            Some((_, kinds)) => kinds.push(kind),
            None => descriptions.push((text, vec![kind])),
        }
    }
    let mut schema = schemas.first().map(|(_, schema)| (*schema).clone()).unwrap_or_default();
    if let [_, _, ..] = &*descriptions {
        let text = |(text, kinds): &(&Value, Vec<String>)| {
            format!("{}: {}", kinds.join(", "), text.as_str().unwrap_or_default())
        };
        schema["description"] = descriptions.iter().map(text).collect::<Vec<_>>().join(" ").into();
    }
    if alternatives.len() == 1 {
        return nullable(&schema);
    }
    alternatives.push(json!({ "type": "null" }));
    json!({ "description": schema["description"], "anyOf": alternatives })
}

fn items(list: &Value) -> impl Iterator<Item = Value> {
    list.as_array().into_iter().flatten().cloned()
}

/// Adds the members of `more` to the object `target`; one of the same name is replaced.
fn extend(target: &mut Value, more: &Value) {
    if let (Some(target), Some(more)) = (target.as_object_mut(), more.as_object()) {
        target.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}
