//! Writes YAML: any value, and a form as the file it could be created from.

use serde_yaml::{Mapping, Value as Yaml};

use crate::api::FormDetail;
use crate::cli::exit::CliError;
use crate::cli::output::value_of;
use crate::domain::json::{self, Object, Value};

/// `value` as YAML. Numbers keep their text, which `serde_yaml` would not: in the places of those that it would write
/// otherwise it gets a word that stands nowhere else.
pub fn yaml(value: &Value) -> Result<String, CliError> {
    let json = value.to_string();
    let word = (0_u64..).map(|number| format!("number{number}x")).find(|word| !json.contains(&**word));
    let word = word.expect("a text does not contain every number");
    let mut numbers = Vec::new();
    let written = serde_yaml::to_string(&to_yaml(value, &word, &mut numbers));
    let written = written.map_err(|error| CliError::Failed {
        what: "cannot write YAML".to_owned(),
        causes: vec![error.to_string()],
    })?;
    let (mut text, mut numbers) = (String::with_capacity(written.len()), numbers.into_iter());
    for piece in written.split(&*word) {
        text.push_str(piece);
        text.push_str(numbers.next().unwrap_or_default());
    }
    Ok(text)
}

/// The form as a file it could be created from.
pub fn authoring_file(form: &FormDetail) -> Result<String, CliError> {
    yaml(&authoring(form)?)
}

/// The form as its author would write it: no id, no status, no times, and nothing that is so by default.
pub fn authoring(form: &FormDetail) -> Result<Value, CliError> {
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
    Ok(Value::Object(members))
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

/// `value` with `word` in the place of each of the `numbers` that are to be written as they are.
fn to_yaml<'a>(value: &'a Value, word: &str, numbers: &mut Vec<&'a str>) -> Yaml {
    match value {
        Value::Null => Yaml::Null,
        Value::Bool(value) => Yaml::Bool(*value),
        Value::Number(number) => match number.text().parse::<i64>() {
            Ok(integer) if integer.to_string() == number.text() => Yaml::Number(integer.into()),
            _ => {
                numbers.push(number.text());
                Yaml::String(word.to_owned())
            }
        },
        Value::String(text) => Yaml::String(text.clone()),
        Value::Array(items) => {
            Yaml::Sequence(items.iter().map(|item| to_yaml(item, word, numbers)).collect())
        }
        Value::Object(members) => {
            let member = |(key, value): &'a (String, Value)| {
                (Yaml::String(key.clone()), to_yaml(value, word, numbers))
            };
            Yaml::Mapping(Mapping::from_iter(members.iter().map(member)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::yaml;
    use crate::domain::json::parse;

    #[test]
    fn numbers_keep_their_text() {
        let json =
            r#"{"a":1.10,"b":[18446744073709551616,-0,1e5,7],"c":"number0x","d":0.12345678901234567890}"#;
        let expected =
            "a: 1.10\nb:\n- 18446744073709551616\n- -0\n- 1e5\n- 7\nc: number0x\nd: 0.12345678901234567890\n";
        assert_eq!(yaml(&parse(json).unwrap()).unwrap(), expected);
    }
}
