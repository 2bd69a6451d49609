//! Writes YAML: any value, and a form as the file it could be created from.

use serde_yaml::{Mapping, Value as Yaml};

use crate::api::FormDetail;
use crate::cli::exit::CliError;
use crate::cli::output::value_of;
use crate::domain::json::{self, Object, Value};

/// `value` as YAML.
pub fn yaml(value: &Value) -> Result<String, CliError> {
    serde_yaml::to_string(&to_yaml(value)).map_err(|error| CliError::Failed {
        what: "cannot write YAML".to_owned(),
        causes: vec![error.to_string()],
    })
}

/// The form as its author would write it: no id, no status, no times, and nothing that is so by default.
pub fn authoring_file(form: &FormDetail) -> Result<String, CliError> {
    let questions = json::parse(form.questions.get()).unwrap_or(Value::Array(Vec::new()));
    let questions = match questions {
        Value::Array(questions) => questions.into_iter().map(without_defaults).collect(),
        _ => Vec::new(),
    };
    let mut members = Object::new();
    if let Some(slug) = &form.slug {
        members.push(("slug".to_owned(), Value::String(slug.clone())));
    }
    members.push(("title".to_owned(), Value::String(form.title.clone())));
    if let Some(description) = &form.description {
        members.push(("description".to_owned(), Value::String(description.clone())));
    }
    members.push(("questions".to_owned(), Value::Array(questions)));
    if !form.settings.is_empty() {
        members.push(("settings".to_owned(), value_of(&form.settings)?));
    }
    yaml(&Value::Object(members))
}

fn without_defaults(question: Value) -> Value {
    match question {
        Value::Object(mut members) => {
            members.retain(|(name, value)| name != "required" || *value == Value::Bool(true));
            Value::Object(members)
        }
        other => other,
    }
}

fn to_yaml(value: &Value) -> Yaml {
    match value {
        Value::Null => Yaml::Null,
        Value::Bool(value) => Yaml::Bool(*value),
        Value::Number(number) => match number.integer() {
            Some(integer) => Yaml::Number(integer.into()),
            None => Yaml::Number(number.value().into()),
        },
        Value::String(text) => Yaml::String(text.clone()),
        Value::Array(items) => Yaml::Sequence(items.iter().map(to_yaml).collect()),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (Yaml::String(key.clone()), to_yaml(value)));
            Yaml::Mapping(Mapping::from_iter(members))
        }
    }
}
