//! What an author sends: a whole form to create, or the changes to one.

use std::collections::{HashMap, HashSet};

use crate::domain::condition::{LintInput, lint_conditions};
use crate::domain::form::settings::Settings;
use crate::domain::form::slug::is_slug;
use crate::domain::form::{FormStatus, assign_ids};
use crate::domain::json::Value;
use crate::domain::question::{MAX_DESCRIPTION, Question, QuestionDraft};
use crate::domain::validation::budget::Budget;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{Rule, Violation, collect_violations, join, shortened};

/// Members of a form that only the server sets.
const READ_ONLY: [&str; 8] = [
    "id",
    "version",
    "response_count",
    "created_at",
    "updated_at",
    "published_at",
    "accepting",
    "accepting_reason",
];

/// A form as its author wrote it.
#[derive(Debug, Clone)]
pub struct Definition {
    pub title: String,
    pub description: Option<String>,
    pub slug: Option<String>,
    pub questions: Vec<Question>,
    pub settings: Settings,
}

impl Definition {
    /// Reads the body of a create request; all problems are reported.
    pub fn read(body: &Value, limits: &Limits) -> Result<Self, Vec<Violation>> {
        collect_violations(|violations| Self::read_into(body, limits, violations))
    }

    fn read_into(body: &Value, limits: &Limits, violations: &mut Vec<Violation>) -> Option<Self> {
        let mut fields = Fields::open(body, "", "the form", violations)?;
        let title = fields.required_text("title", limits.title);
        let description = fields.text("description", MAX_DESCRIPTION);
        let slug = read_slug(&mut fields);
        let questions = fields.value("questions");
        let settings = fields.value("settings");
        let read_only: Vec<_> = READ_ONLY.into_iter().chain(["status"]).collect();
        fields.close(&read_only);
        let settings = match settings {
            Some(settings) => Settings::read(settings, violations),
            None => Some(Settings::default()),
        };
        let questions = match questions {
            Some(questions) => read_questions(questions, limits, violations)?,
            None => Vec::new(),
        };
        Some(Self { title: title?, description, slug, questions, settings: settings? })
    }
}

/// One member of a JSON merge patch (RFC 7396).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldPatch<T> {
    /// Not sent: stays as it is.
    Keep,
    /// Sent as `null`: removed.
    Remove,
    /// Sent with a value: replaced.
    Set(T),
}

/// The changes to a form that an author asks for.
#[derive(Debug, Clone)]
pub struct FormPatch {
    pub title: Option<String>,
    pub description: FieldPatch<String>,
    pub slug: FieldPatch<String>,
    pub status: Option<FormStatus>,
    /// Replaces all questions; those with the id of a present one are that question.
    pub questions: Option<Vec<QuestionDraft>>,
    /// A merge patch of its own: whether it fits depends on what is set already.
    pub settings: Option<Value>,
}

impl<T: Clone> FieldPatch<T> {
    /// What becomes of `value`.
    pub fn apply(&self, value: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Remove => *value = None,
            Self::Set(new) => *value = Some(new.clone()),
        }
    }
}

impl FormPatch {
    /// Reads the body of a PATCH request, a JSON merge patch; all problems are reported.
    pub fn read(body: &Value, limits: &Limits) -> Result<Self, Vec<Violation>> {
        collect_violations(|violations| Self::read_into(body, limits, violations))
    }

    fn read_into(body: &Value, limits: &Limits, violations: &mut Vec<Violation>) -> Option<Self> {
        let mut fields = Fields::open(body, "", "the form", violations)?;
        for name in ["title", "status", "questions"] {
            if fields.raw(name) == Some(&Value::Null) {
                fields.refuse(name, Rule::TypeMismatch, format!("`{name}` cannot be removed"));
            }
        }
        let title = fields.text("title", limits.title);
        let description = match fields.raw("description") {
            Some(Value::Null) => FieldPatch::Remove,
            Some(_) => fields.text("description", MAX_DESCRIPTION).map_or(FieldPatch::Keep, FieldPatch::Set),
            None => FieldPatch::Keep,
        };
        let slug = match fields.raw("slug") {
            Some(Value::Null) => FieldPatch::Remove,
            Some(_) => read_slug(&mut fields).map_or(FieldPatch::Keep, FieldPatch::Set),
            None => FieldPatch::Keep,
        };
        let status = read_status(&mut fields);
        let questions = fields.value("questions");
        let settings = fields.raw("settings");
        fields.close(&READ_ONLY);
        if let Some(settings) = settings.filter(|settings| **settings != Value::Null) {
            // What is wrong with it alone is told together with all else.
            Settings::read(settings, violations);
        }
        let questions = questions.and_then(|questions| {
            let (_, drafts) = read_drafts(questions, limits, violations)?;
            drafts.into_iter().collect()
        });
        Some(Self { title, description, slug, status, questions, settings: settings.cloned() })
    }
}

fn read_slug(fields: &mut Fields<'_, '_>) -> Option<String> {
    let slug = fields.string("slug")?;
    if !is_slug(slug) {
        let message = "`slug` has lower-case letters, digits and single hyphens, 64 at most";
        fields.refuse("slug", Rule::InvalidSlug, message);
        return None;
    }
    Some(slug.to_owned())
}

fn read_status(fields: &mut Fields<'_, '_>) -> Option<FormStatus> {
    let text = fields.string("status")?;
    let status = FormStatus::parse(text);
    if status.is_none() {
        let message = format!("`{}` is not a valid `status`", shortened(text));
        let violation = Violation::new(fields.pointer_to("status"), Rule::TypeMismatch, message);
        fields.report(violation.allowed(text, FormStatus::ALL.map(FormStatus::name)));
    }
    status
}

/// Reads the questions of a new form.
fn read_questions(value: &Value, limits: &Limits, violations: &mut Vec<Violation>) -> Option<Vec<Question>> {
    let (items, drafts) = read_drafts(value, limits, violations)?;
    let needs_id = drafts.iter().map(|draft| draft.as_ref().is_none_or(QuestionDraft::takes_answer));
    let wanted: Vec<_> = items.iter().map(raw_id).zip(needs_id).collect();
    let ids = assign_ids(&wanted, &HashSet::new());
    let named = drafts.into_iter().zip(&ids).map(|(draft, id)| Some(draft?.with_id(id.clone())));
    let questions: Vec<_> = named.collect();
    // Whoever names a question that cannot be read is not to be told that there is none.
    let unread = |id| LintInput { id, kind: None, conditions: Vec::new() };
    let asked = questions
        .iter()
        .zip(&ids)
        .map(|(question, id)| question.as_ref().map_or_else(|| unread(id.as_deref()), Question::lint_input));
    lint_conditions(asked, violations);
    questions.into_iter().collect()
}

/// The items of the list of questions, and each as far as it can be read.
fn read_drafts<'a>(
    value: &'a Value,
    limits: &Limits,
    violations: &mut Vec<Violation>,
) -> Option<(&'a [Value], Vec<Option<QuestionDraft>>)> {
    let Value::Array(items) = value else {
        let message = format!("`questions` must be a list, not {}", value.kind());
        violations.push(Violation::new("/questions", Rule::TypeMismatch, message));
        return None;
    };
    if items.len() > limits.questions {
        let message = format!("{} questions are too many, {} are allowed", items.len(), limits.questions);
        violations.push(Violation::new("/questions", Rule::TooMany, message));
        return None;
    }
    let mut budget = Budget::new(limits);
    let read = |(place, item): (usize, &Value)| {
        QuestionDraft::read(item, &join("/questions", &place.to_string()), place, &mut budget, violations)
    };
    let drafts = items.iter().enumerate().map(read).collect();
    report_duplicate_ids(items, violations);
    Some((items, drafts))
}

/// The id as its author wrote it, fit or not.
fn raw_id(item: &Value) -> Option<&str> {
    item.get("id")?.as_str()
}

/// Reports every id that an earlier question has already, on what was sent, so that a question with other problems
/// takes part.
fn report_duplicate_ids(items: &[Value], violations: &mut Vec<Violation>) {
    let mut first = HashMap::new();
    for (place, item) in items.iter().enumerate() {
        let Some(id) = raw_id(item) else { continue };
        if let Some(earlier) = first.insert(id, place) {
            first.insert(id, earlier);
            let message = format!("question id `{}` is used twice", shortened(id));
            let [pointer, related] = [place, earlier].map(|place| format!("/questions/{place}/id"));
            let violation = Violation::new(pointer, Rule::DuplicateQuestionId, message).question(id);
            let help = "every question needs its own id: answers are stored under it";
            violations.push(violation.related(related).help(help));
        }
    }
}
