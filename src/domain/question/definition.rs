//! Parsing of a question definition: the members that all types of question have.

use crate::domain::condition::Condition;
use crate::domain::json::Value;
use crate::domain::question::{Question, QuestionKind, QuestionSettings};
use crate::domain::validation::budget::Budget;
use crate::domain::validation::fields::{Fields, no_help};
use crate::domain::validation::similar::nearest_first;
use crate::domain::validation::violation::{Rule, Violation, shortened};

impl Question {
    /// Parses the question at `pointer`, with the index `place` in its form, within `budget`, and reports every violation.
    /// `None` if its type is unknown. Its id may be missing, and its title be empty; see [`with_id`](Self::with_id).
    pub fn read(
        value: &Value,
        pointer: &str,
        place: usize,
        budget: &mut Budget,
        violations: &mut Vec<Violation>,
    ) -> Option<Self> {
        let mut fields = Fields::open(value, pointer, format!("question {}", place + 1), violations)?;
        let id = read_id(&mut fields);
        let was = read_earlier_ids(&mut fields);
        let kind = read_kind(&mut fields, budget);
        let title = match kind.as_ref().is_none_or(|(kind, _)| kind.rules().is_shown()) {
            true => fields.required_text("title", budget.limits.title),
            false => fields.text("title", budget.limits.title),
        };
        let description = fields.text("description", MAX_DESCRIPTION);
        let show_if = Condition::read(&mut fields, "show_if", budget);
        let (mut required, mut required_if) = (None, None);
        if kind.as_ref().is_none_or(|(kind, _)| kind.rules().takes_answer()) {
            required = fields.flag("required");
            required_if = Condition::read(&mut fields, "required_if", budget);
        }
        if kind.is_none() {
            // The valid settings are unknown, but a member that no type has is certainly wrong.
            for name in QuestionKind::NAMES.into_iter().flat_map(QuestionKind::settings) {
                fields.raw(name);
            }
        }
        fields.close(&[]);
        let ((kind, settings), title, required) =
            (kind?, title.unwrap_or_default(), required.unwrap_or(false));
        Some(Self { id, was, kind, title, description, required, show_if, required_if, settings })
    }

    /// Returns the question under its final id, which is also the title if that is empty.
    pub fn with_id(mut self, id: Option<String>) -> Self {
        if self.title.is_empty() {
            self.title = id.clone().unwrap_or_default();
        }
        Self { id, ..self }
    }
}

pub const MAX_DESCRIPTION: usize = 10_000;

/// Parses the type, with the settings of that type.
fn read_kind(fields: &mut Fields<'_, '_>, budget: &mut Budget) -> Option<(QuestionKind, QuestionSettings)> {
    let Value::String(name) = fields.required("type")? else {
        fields.refuse("type", Rule::TypeMismatch, "`type` must be text");
        return None;
    };
    let common = fields.known.len();
    let kind = QuestionKind::read(name, fields, budget);
    if kind.is_none() {
        let message = format!("unknown question type `{}`", shortened(name));
        let violation = fields.refuse("type", Rule::UnknownQuestionType, message);
        violation.allowed = nearest_first(name, QuestionKind::NAMES);
    }
    Some((kind?, fields.canonical(common)))
}

fn read_id(fields: &mut Fields<'_, '_>) -> Option<String> {
    let id = fields.typed("id", "text", Value::as_str, no_help)?;
    if is_id(id) {
        return Some(id.to_owned());
    }
    let message = if RESERVED.contains(&id) {
        format!("`{id}` is reserved for conditions and cannot be a question id")
    } else {
        format!(
            "`{}` is not a valid question id: use lower-case letters, digits and _, starting with a letter, 64 at most",
            shortened(id)
        )
    };
    fields.refuse("id", Rule::InvalidQuestionId, message);
    None
}

/// Maximum number of earlier ids.
const MAX_EARLIER_IDS: usize = 10;

/// Parses `was`, an id or a list of ids.
fn read_earlier_ids(fields: &mut Fields<'_, '_>) -> Vec<String> {
    let ids = match fields.value("was") {
        Some(Value::String(id)) => vec![id.clone()],
        _ => fields.texts("was", MAX_EARLIER_IDS).unwrap_or_default(),
    };
    if let Some(id) = ids.iter().find(|id| !is_id(id)) {
        let message = format!("`{}` is not a valid question id", shortened(id));
        fields.refuse("was", Rule::InvalidQuestionId, message);
    }
    ids
}

/// Reserved ids: the combinators of conditions.
const RESERVED: [&str; 3] = ["any", "all", "not"];

fn is_id(text: &str) -> bool {
    let has_valid_start = text.starts_with(|first: char| first.is_ascii_lowercase());
    let has_valid_characters = text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    has_valid_start && has_valid_characters && text.len() <= 64 && !RESERVED.contains(&text)
}
