//! The schemas of questions: one for each type as it is sent, one as it is returned, and the unions of both.

use serde_json::{Map, Value, json};

use super::{Schemas, nullable};
use crate::domain::question::QuestionKind;

/// How the schemas of a type of question differ between requests and responses.
struct Direction {
    /// The prefix of its schemas' names.
    prefix: &'static str,
    description: &'static str,
    is_response: bool,
}

const DIRECTIONS: [Direction; 2] = [
    Direction {
        prefix: "New",
        description: "A question to create or change; `type` decides which settings it has.",
        is_response: false,
    },
    Direction {
        prefix: "",
        description: "A question in canonical form; `type` decides which settings it has. More types may be added.",
        is_response: true,
    },
];

pub(super) fn add(schemas: &mut Schemas) {
    let texts = serde_json::from_str(include_str!("questions.json")).expect("questions.json is JSON");
    for direction in &DIRECTIONS {
        let (mut members, mut mapping) = (Vec::new(), Map::new());
        for kind in QuestionKind::NAMES {
            let name = format!("{}{}Question", direction.prefix, pascal(kind));
            let path = format!("#/components/schemas/{name}");
            members.push(json!({ "$ref": path }));
            mapping.insert(kind.to_owned(), path.into());
            schemas.insert(name, question(kind, direction, &texts));
        }
        let union = json!({
            "description": direction.description,
            "oneOf": members,
            "discriminator": { "propertyName": "type", "mapping": mapping },
        });
        schemas.insert(format!("{}Question", direction.prefix), union);
    }
}

fn question(kind: &str, direction: &Direction, texts: &Value) -> Value {
    let Some((bare, needed)) = QuestionKind::without_settings(kind) else { return Value::Null };
    let (rules, common) = (bare.rules(), &texts["common"]);
    let mut properties = Map::new();
    properties.insert("type".to_owned(), json!({ "type": "string", "const": kind }));
    let answerable: &[&str] = if rules.takes_answer() { &["required", "required_if"] } else { &[] };
    for name in ["id", "title", "description", "show_if"].iter().chain(answerable) {
        properties.insert((*name).to_owned(), common[*name].clone());
    }
    for name in QuestionKind::settings(kind) {
        let own = &texts["settings"][format!("{kind}.{name}")];
        let schema = if own.is_null() { &texts["settings"][name] } else { own };
        properties.insert(name.to_owned(), schema.clone());
    }
    let mut required = vec!["type"];
    if rules.is_shown() || direction.is_response {
        required.push("title");
    }
    if rules.takes_answer() && direction.is_response {
        required.extend(["id", "required"]);
    }
    required.extend(needed.iter().map(String::as_str));
    if !direction.is_response {
        let optional = properties.iter_mut().filter(|(name, _)| !required.contains(&name.as_str()));
        optional.for_each(|(_, schema)| *schema = nullable(schema));
    }
    let mut schema = json!({
        "type": "object",
        "description": texts["types"][kind],
        "required": required,
        "properties": properties,
    });
    if !direction.is_response {
        schema["additionalProperties"] = json!(false);
    }
    schema
}

pub(super) fn pascal(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(capital).collect()
}
