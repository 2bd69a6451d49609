//! Hints on how to write an answer as an argument.

use crate::cli::output::shell_quote::shell_quote;
use crate::domain::json::{Object, Value};
use crate::domain::language::ENGLISH;
use crate::domain::question::Question;
use crate::domain::validation::similar::similar;
use crate::domain::validation::violation::{Rule, unescape};

/// An option of a question.
pub struct Choice {
    pub value: String,
    pub label: String,
}

/// Returns a hint for the answer to `question` with this `id`; `invalid` is the value that violates `rule`.
pub fn help(question: &Question, id: &str, rule: Rule, invalid: Option<&Value>) -> String {
    let invalid = invalid.and_then(Value::as_str).filter(|_| rule == Rule::NotAnOption);
    if let Some(near) = invalid.and_then(|text| similar_option(question, text)) {
        return format!("a similar option exists: {}", shell_quote(&format!("{id}={near}")));
    }
    let rules = question.kind.rules();
    let other = invalid.filter(|_| rules.takes_other()).map(|text| other_arg(question, id, text));
    let other = other.unwrap_or_default();
    match rules.example() {
        Value::Array(_) => {
            let order = if question.kind.name() == "ranking" { ", the most preferred first" } else { "" };
            format!("give it once for each{order}: {}{other}", repeated_args(question, id, invalid))
        }
        example @ Value::Object(_) => {
            let line = shell_quote(&format!("{id}:={example}"));
            format!("{id} takes JSON from rows to columns: {line}")
        }
        _ => format!("{id}=… expects {}{other}", rules.expects(ENGLISH)),
    }
}

/// Returns the option with a value or label similar to `text`.
pub fn similar_option(question: &Question, text: &str) -> Option<String> {
    let (lowercase, choices) = (text.to_lowercase(), choices(question, "options"));
    let names = choices.iter().flat_map(|choice| [(&choice.value, choice), (&choice.label, choice)]);
    let names: Vec<_> = names.map(|(name, choice)| (name.to_lowercase(), choice)).collect();
    let near = similar(&lowercase, names.iter().map(|(name, _)| name.as_str()))?;
    names.iter().find(|(name, _)| name == near).map(|(_, choice)| choice.value.clone())
}

/// Resolves `pointer` within its answer, below `/answers`. Returns the position in words, counted from one, and the value
/// there.
pub fn resolve_pointer<'a>(answers: &'a Object, pointer: &str) -> (String, Option<&'a Value>) {
    let mut steps = pointer.split('/').skip(2).map(unescape);
    let id = steps.next().unwrap_or_default();
    let mut value = answers.iter().find(|(key, _)| *key == id).map(|(_, value)| value);
    let mut position = String::new();
    for step in steps {
        if let (Some(Value::Array(items)), Ok(index)) = (value, step.parse::<usize>()) {
            position += &format!(", item {}", index + 1);
            value = items.get(index);
        } else {
            position += &format!(" at {step}");
            value = value.and_then(|value| value.get(&step));
        }
    }
    (position, value)
}

/// Formats an argument for each of the comma-separated options in `invalid`, or else for the first options: two, or as many
/// as the question's limits allow.
fn repeated_args(question: &Question, id: &str, invalid: Option<&str>) -> String {
    let choices = choices(question, "options");
    let is_option = |text: &&str| choices.iter().any(|choice| choice.value == *text);
    let typed: Vec<_> = invalid.unwrap_or_default().split(',').map(str::trim).collect();
    let values: Vec<_> = if typed.iter().all(is_option) {
        typed
    } else {
        let count = item_limit(question, "maxItems").map_or(2, |most| most.min(2));
        let count = count.max(item_limit(question, "minItems").unwrap_or(0));
        choices.iter().map(|choice| choice.value.as_str()).take(count).collect()
    };
    values.iter().map(|value| shell_quote(&format!("{id}={value}"))).collect::<Vec<_>>().join(" ")
}

/// Returns the named limit on the number of items in the question's schema.
fn item_limit(question: &Question, name: &str) -> Option<usize> {
    question.kind.rules().schema().get(name)?.as_number()?.integer()?.try_into().ok()
}

fn other_arg(question: &Question, id: &str, text: &str) -> String {
    let answer = Value::Object(vec![("other".to_owned(), text.into())]);
    let answer = if question.kind.answer_is_list() { Value::Array(vec![answer]) } else { answer };
    format!("; in other words: {}", shell_quote(&format!("{id}:={answer}")))
}

/// Returns the options in the setting `name` of `question`; empty if it has none.
pub fn choices(question: &Question, name: &str) -> Vec<Choice> {
    let Some(Value::Array(options)) = question.setting(name) else { return Vec::new() };
    let choice = |option: &Value| {
        let text = |name| option.get(name).and_then(Value::as_str).map(str::to_owned);
        let value = option.as_str().map(str::to_owned).or_else(|| text("value"))?;
        Some(Choice { label: text("label").unwrap_or_else(|| value.clone()), value })
    };
    options.iter().filter_map(choice).collect()
}
