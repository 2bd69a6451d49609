//! The JSON Schema (2020-12) of the answers to a form, for clients that check them before they are sent.
//!
//! The schema accepts all answers that the form accepts, except empty values. It has the rules of each question alone;
//! conditions are described in text, and only the server evaluates them.

use crate::domain::condition::{Condition, Ids};
use crate::domain::form::Version;
use crate::domain::form::settings::UnknownAnswers;
use crate::domain::json::{Object, Value};
use crate::domain::language::ENGLISH;
use crate::domain::question::Question;
use crate::domain::question::json::object_schema;

/// The description of the empty values, which the schema excludes so that each answer has a single type.
const EMPTY_VALUES: &str = "`null`, blank text, `[]` and `{}` count as no answer: the server accepts them wherever an answer may be left out.";

impl Version {
    /// The schema of a submission's `answers`, for the form called `title`.
    pub fn schema(&self, title: &str, unknown_answers: UnknownAnswers) -> Value {
        let (mut properties, mut required) = (Object::new(), Vec::new());
        let mut page_condition = None;
        for question in &self.questions {
            if question.kind.begins_page() {
                page_condition = question.show_if.as_ref().map(describe_condition);
            }
            let Some(id) = question.id.as_deref().filter(|_| question.kind.rules().takes_answer()) else {
                continue;
            };
            let is_conditional = page_condition.is_some() || question.show_if.is_some();
            if question.required && !is_conditional && question.kind.rules().default_answer().is_none() {
                required.push(id);
            }
            let is_required = required.last() == Some(&id);
            properties.push((id.to_owned(), property(question, page_condition.as_deref(), is_required)));
        }
        let mut schema = vec![
            ("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into()),
            ("title".to_owned(), title.into()),
            ("description".to_owned(), EMPTY_VALUES.into()),
        ];
        let is_open = unknown_answers == UnknownAnswers::Drop;
        schema.extend(object_schema(properties, &required, is_open));
        Value::Object(schema)
    }
}

/// The schema of an answer to `question`, on a page that is shown under `page_condition`.
fn property(question: &Question, page_condition: Option<&str>, is_required: bool) -> Value {
    let mut members = vec![("title".to_owned(), question.title.as_str().into())];
    members.extend(
        describe_question(question, page_condition)
            .map(|text| ("description".to_owned(), Value::String(text))),
    );
    match question.kind.rules().schema() {
        Value::Object(rules) => members.extend(rules),
        // `false`, the schema that accepts nothing, cannot have a description.
        other => return other,
    }
    if is_required && question.kind.rules().is_empty(&false.into()) {
        members.push(("const".to_owned(), true.into()));
    }
    Value::Object(members)
}

/// Describes `condition`, truncated: a page's condition is repeated for each of its questions.
fn describe_condition(condition: &Condition) -> String {
    const MOST: usize = 500;
    let words = condition.describe(ENGLISH, &Ids);
    match words.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

/// The description of `question`, and when it is asked and must be answered.
fn describe_question(question: &Question, page_condition: Option<&str>) -> Option<String> {
    let own = question.show_if.as_ref().map(describe_condition);
    let shown =
        page_condition.into_iter().chain(own.as_deref()).map(|words| format!("Asked only if {words}."));
    let needed = question.required_if.as_ref().filter(|_| !question.required);
    let needed = needed.map(|condition| format!("Required if {}.", describe_condition(condition)));
    let parts: Vec<_> = question.description.clone().into_iter().chain(shown).chain(needed).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}
