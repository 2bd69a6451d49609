//! YAML output: any value, and a form as the file it can be created from.

use serde_json::value::RawValue;
use serde_yaml::Value as Yaml;

use crate::api::FormDetail;
use crate::cli::output::exit::CliError;
use crate::cli::output::integrations;
use crate::cli::output::json::escaped;
use crate::cli::output::value_of;
use crate::domain::form::definition::Definition;
use crate::domain::json::{self, Value};
use crate::domain::validation::limits::Limits;

/// Serializes `value` as YAML.
///
/// Where `serde_yaml` would write something else, it gets a placeholder that occurs nowhere in the value, which is then
/// replaced by our own text.
pub fn yaml(value: &Value) -> Result<String, CliError> {
    let json = value.to_string();
    let unused = (0_u64..).map(|number| format!("own{number}x")).find(|word| !json.contains(&**word));
    let placeholder = unused.expect("a text does not contain every number");
    let mut converter = Converter { placeholder, verbatim: Vec::new() };
    let converted = converter.convert(value);
    let written = serde_yaml::to_string(&converted).map_err(|error| CliError::Failed {
        message: "cannot write YAML".to_owned(),
        causes: vec![error.to_string()],
    })?;
    let mut pieces = written.split(&*converter.placeholder);
    let begin = pieces.next().unwrap_or_default().to_owned();
    Ok(converter.verbatim.iter().zip(pieces).fold(begin, |text, (verbatim, piece)| text + verbatim + piece))
}

/// Returns a form as the file it can be created from: without id, status, times and defaults, but with `settings.closed`.
pub fn authoring(form: &FormDetail) -> Result<Value, CliError> {
    let questions = without_defaults(json::parse(form.questions.get()).ok());
    let none = Value::Array(Vec::new());
    let text = |text: &String| Value::String(text.clone());
    let settings = if form.settings.is_empty() { None } else { Some(value_of(&form.settings)?) };
    let members = [
        ("slug", form.slug.as_ref().map(text)),
        ("title", Some(text(&form.title))),
        ("description", form.description.as_ref().map(text)),
        ("questions", Some(questions)),
        ("settings", settings),
        ("notifications", Some(values(&form.notifications)).filter(|list| *list != none)),
        ("integrations", Some(integrations::authoring(&integrations(form))).filter(|list| *list != none)),
    ];
    let present = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(Value::Object(present.collect()))
}

/// Returns a form as the file that `show` prints: as [`authoring`], without its state.
pub fn file(form: &FormDetail) -> Result<Value, CliError> {
    let mut file = authoring(form)?;
    file.remove(&["settings", "closed"]);
    if file.get("settings") == Some(&Value::Object(Vec::new())) {
        file.remove(&["settings"]);
    }
    Ok(file)
}

/// Returns a definition, in authoring form, as the server would return it. One with something that this version does not know
/// is returned unchanged.
pub fn canonical(definition: &Value) -> Value {
    let Ok(read) = Definition::read(definition, &Limits::UNLIMITED) else { return definition.clone() };
    let mut canonical = definition.clone();
    let unnamed: Vec<_> = list(definition, "questions").iter().map(|one| one.get("id").is_none()).collect();
    let mut questions = without_defaults(value_of(&read.questions).ok());
    if let Value::Array(items) = &mut questions {
        // The server chooses the ids of new questions.
        let unnamed = items.iter_mut().zip(unnamed).filter(|(_, is_unnamed)| *is_unnamed);
        unnamed.for_each(|(question, _)| question.remove(&["id"]));
    }
    canonical.set(&["questions"], questions);
    if let (Some(settings), Ok(read)) = (canonical.get_mut("settings"), value_of(&read.settings)) {
        *settings = read;
    }
    if let Value::Object(members) = &mut canonical {
        let is_empty = |value: &Value| value.to_string() == "[]" || value.to_string() == "{}";
        members.retain(|(name, value)| name == "questions" || !(is_empty(value) || *value == Value::Null));
    }
    canonical
}

fn list<'a>(definition: &'a Value, name: &str) -> &'a [Value] {
    definition.get(name).and_then(Value::as_array).unwrap_or_default()
}

/// Returns a list of questions without `required: false`, which is the default.
fn without_defaults(questions: Option<Value>) -> Value {
    let Some(Value::Array(mut questions)) = questions else { return Value::Array(Vec::new()) };
    for question in &mut questions {
        if let Value::Object(members) = question {
            members.retain(|(name, value)| name != "required" || *value == Value::Bool(true));
        }
    }
    Value::Array(questions)
}

/// Returns the integrations of a form as the server shows them.
pub fn integrations(form: &FormDetail) -> Value {
    values(&form.integrations)
}

fn values(texts: &[Box<RawValue>]) -> Value {
    texts.iter().filter_map(|text| json::parse(text.get()).ok()).collect()
}

/// Converts values for `serde_yaml`.
struct Converter {
    placeholder: String,
    /// The texts that replace the placeholders, in order.
    verbatim: Vec<String>,
}

impl Converter {
    fn convert(&mut self, value: &Value) -> Yaml {
        match value {
            Value::Null => Yaml::Null,
            Value::Bool(value) => Yaml::Bool(*value),
            Value::Number(number) => match number.text().parse::<i64>() {
                Ok(integer) if integer.to_string() == number.text() => Yaml::Number(integer.into()),
                // A number keeps its text, such as `1.10`.
                _ => self.verbatim(number.text().to_owned()),
            },
            // YAML 1.1 and 1.2 parsers disagree on line breaks in such a text.
            Value::String(text) if text.contains(['\u{85}', '\u{2028}', '\u{2029}']) => {
                self.verbatim(escaped(value))
            }
            Value::String(text) => Yaml::String(text.clone()),
            Value::Array(items) => Yaml::Sequence(items.iter().map(|item| self.convert(item)).collect()),
            Value::Object(members) => {
                let member =
                    |(key, value): &(String, Value)| (Yaml::String(key.clone()), self.convert(value));
                Yaml::Mapping(members.iter().map(member).collect())
            }
        }
    }

    fn verbatim(&mut self, text: String) -> Yaml {
        self.verbatim.push(text);
        Yaml::String(self.placeholder.clone())
    }
}
