//! The schemas of questions: one for each type, and their union.

use serde_json::{Map, Value, json};

use super::{Schemas, add_union, make_nullable};
use crate::domain::question::QuestionKind;

pub(super) fn add(schemas: &mut Schemas) {
    let texts: Value = serde_json::from_str(include_str!("questions.json")).expect("questions.json is JSON");
    let types = QuestionKind::NAMES.into_iter().map(|kind| (kind, question(kind, &texts)));
    add_union(schemas, "Question", &texts["description"], types);
}

fn question(kind: &str, texts: &Value) -> Value {
    let Some((bare, needed)) = QuestionKind::without_settings(kind) else { return Value::Null };
    let (rules, common) = (bare.rules(), &texts["common"]);
    let answerable: &[&str] = if rules.takes_answer() { &["required", "required_if"] } else { &[] };
    let names = ["id", "was", "title", "description", "show_if"].iter().chain(answerable);
    let mut properties: Map<_, _> = names.map(|name| ((*name).to_owned(), common[*name].clone())).collect();
    for name in QuestionKind::settings(kind) {
        let own = &texts["settings"][format!("{kind}.{name}")];
        let schema = if own.is_null() { &texts["settings"][name] } else { own };
        properties.insert(name.to_owned(), schema.clone());
    }
    let title = if rules.is_shown() { &["title"][..] } else { &[] };
    let required: Vec<_> =
        ["type"].iter().chain(title).copied().chain(needed.iter().map(String::as_str)).collect();
    make_nullable(&mut properties, &required);
    json!({
        "type": "object",
        "description": texts["types"][kind],
        "required": required,
        "properties": properties,
    })
}
