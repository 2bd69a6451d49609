//! YAML output: any value, and a form as the file it can be created from.

use std::fmt::Write as _;

use serde_yaml::{Mapping, Value as Yaml};

use crate::api::FormDetail;
use crate::cli::output::exit::CliError;
use crate::cli::output::value_of;
use crate::domain::json::{self, Object, Value};

/// Serializes `value` as YAML.
///
/// Where `serde_yaml` would write something else, it gets a placeholder that occurs nowhere in the value, which is then
/// replaced by our own text.
pub fn yaml(value: &Value) -> Result<String, CliError> {
    let json = value.to_string();
    let word = (0_u64..).map(|number| format!("own{number}x")).find(|word| !json.contains(&**word));
    let mut writing = Writing { word: word.expect("a text does not contain every number"), own: Vec::new() };
    let yaml = writing.yaml(value);
    let written = serde_yaml::to_string(&yaml).map_err(|error| CliError::Failed {
        what: "cannot write YAML".to_owned(),
        causes: vec![error.to_string()],
    })?;
    let (mut text, mut own) = (String::with_capacity(written.len()), writing.own.iter());
    for piece in written.split(&*writing.word) {
        text.push_str(piece);
        text.push_str(own.next().map_or("", |own| own));
    }
    Ok(text)
}

/// Serializes a form as the file it can be created from.
pub fn authoring_file(form: &FormDetail) -> Result<String, CliError> {
    yaml(&authoring(form)?)
}

/// Returns a form in authoring form: without id, status, times and defaults.
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

/// Converts a value for `serde_yaml`.
struct Writing {
    /// Placeholder for each text in `own`.
    word: String,
    own: Vec<String>,
}

impl Writing {
    fn yaml(&mut self, value: &Value) -> Yaml {
        match value {
            Value::Null => Yaml::Null,
            Value::Bool(value) => Yaml::Bool(*value),
            Value::Number(number) => match number.text().parse::<i64>() {
                Ok(integer) if integer.to_string() == number.text() => Yaml::Number(integer.into()),
                // A number keeps its text, such as `1.10`.
                _ => self.own(number.text().to_owned()),
            },
            // YAML 1.1 and 1.2 parsers disagree on line breaks in such a text.
            Value::String(text) if text.contains(['\u{85}', '\u{2028}', '\u{2029}']) => {
                self.own(double_quoted(text))
            }
            Value::String(text) => Yaml::String(text.clone()),
            Value::Array(items) => Yaml::Sequence(items.iter().map(|item| self.yaml(item)).collect()),
            Value::Object(members) => {
                let members =
                    members.iter().map(|(key, value)| (Yaml::String(key.clone()), self.yaml(value)));
                Yaml::Mapping(Mapping::from_iter(members))
            }
        }
    }

    fn own(&mut self, text: String) -> Yaml {
        self.own.push(text);
        Yaml::String(self.word.clone())
    }
}

/// Quotes `text` in double quotes, escaping invisible characters.
fn double_quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => escape(&mut quoted, character),
            _ if character.is_control() => escape(&mut quoted, character),
            _ => quoted.push(character),
        }
    }
    quoted + "\""
}

fn escape(text: &mut String, character: char) {
    let _infallible = write!(text, "\\u{:04x}", u32::from(character));
}

#[cfg(test)]
mod tests {
    use super::yaml;
    use crate::domain::json::parse;

    #[test]
    fn numbers_keep_their_text() {
        let json = r#"{"a":1.10,"b":[18446744073709551616,-0,1e5,7],"c":"own0x","d":0.12345678901234567890}"#;
        let expected =
            "a: 1.10\nb:\n- 18446744073709551616\n- -0\n- 1e5\n- 7\nc: own0x\nd: 0.12345678901234567890\n";
        assert_eq!(yaml(&parse(json).unwrap()).unwrap(), expected);
    }

    #[test]
    fn what_not_all_take_for_a_line_break_is_written_as_an_escape() {
        let json = "{\"a\":\"\\n\\\"b\\\\\u{2029}\",\"c\":[\"\u{85}é\u{9b}\"]}";
        let expected = "a: \"\\u000a\\\"b\\\\\\u2029\"\nc:\n- \"\\u0085é\\u009b\"\n";
        assert_eq!(yaml(&parse(json).unwrap()).unwrap(), expected);
    }
}
