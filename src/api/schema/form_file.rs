//! The JSON Schema of a form file, for editors: the body of a new form, and what only files have.

use serde_json::{Map, Value, json};

use super::{Schemas, components, extend};

/// Returns the schema in draft-07, the newest that yaml-language-server reads.
pub fn form_file() -> Value {
    let own: Value = serde_json::from_str(include_str!("form_file.json")).expect("form_file.json is JSON");
    let mut schemas = components();
    add_own(&mut schemas, &own);
    let mut root = schemas["NewForm"].take();
    let (mut definitions, mut references) = (Map::new(), Vec::new());
    adapt(&mut root, &mut references);
    while let Some(name) = references.pop() {
        if !definitions.contains_key(&name) {
            let mut schema = schemas[&name].take();
            adapt(&mut schema, &mut references);
            definitions.insert(name, schema);
        }
    }
    root["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    root["title"] = json!("Form file");
    root["definitions"] = Value::Object(definitions);
    root
}

/// Adds the members that only files have.
fn add_own(schemas: &mut Schemas, own: &Value) {
    let others = json!({ "^x-": { "description": "Yours: left out of the form." } });
    for (name, schema) in schemas.iter_mut() {
        let members = match name.as_str() {
            "NewForm" => &own["form"],
            "FormSettings" => &Value::Null,
            name if name.ends_with("Question") && name != "Question" => &own["question"],
            _ => continue,
        };
        schema["patternProperties"] = others.clone();
        schema["properties"].as_object_mut().into_iter().for_each(|properties| extend(properties, members));
    }
    schemas["Theme"]["properties"]["logo"] = own["definitions"]["logo"].clone();
    let confirmation = schemas["Confirmation"]["anyOf"].as_array_mut();
    confirmation.into_iter().for_each(|kinds| kinds.push(own["definitions"]["Confirmation"].clone()));
    schemas.insert("FormTest".to_owned(), own["definitions"]["FormTest"].clone());
}

/// Converts `schema` to draft-07, without what only responses have, and closed: an unknown member is a typo. The names of the
/// schemas that it refers to go to `references`.
fn adapt(schema: &mut Value, references: &mut Vec<String>) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| adapt(item, references)),
        Value::Object(members) => {
            if let Some(Value::String(path)) = members.remove("$ref") {
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                // Draft-07 ignores what is beside a reference.
                members.insert("allOf".to_owned(), json!([{ "$ref": format!("#/definitions/{name}") }]));
                references.push(name);
                return;
            }
            members.retain(|name, member| {
                name != "discriminator" && name != "example" && member["readOnly"] != true
            });
            if members.contains_key("properties") {
                members.entry("additionalProperties").or_insert_with(|| false.into());
            }
            members.values_mut().for_each(|member| adapt(member, references));
        }
        _ => {}
    }
}
