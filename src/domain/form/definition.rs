//! Parsing of what authors send: the definition of a new form, or a patch.

use std::collections::{HashMap, HashSet};

use crate::domain::condition::lint_conditions;
use crate::domain::form::settings::{Settings, check_page_size};
use crate::domain::form::slug::is_slug;
use crate::domain::form::{FormStatus, assign_ids};
use crate::domain::integration::Integration;
use crate::domain::integration::definition::{DefinitionContext, GeneratedSecret, IntegrationLists};
use crate::domain::json::Value;
use crate::domain::question::{MAX_DESCRIPTION, Question};
use crate::domain::validation::budget::Budget;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{Rule, Violation, collect_violations, join, shortened};

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

#[derive(Debug, Clone)]
pub struct Definition {
    pub title: String,
    pub description: Option<String>,
    pub slug: Option<String>,
    pub questions: Vec<Question>,
    pub settings: Settings,
    pub integrations: Vec<Integration>,
    /// The secrets that were generated for the integrations.
    pub generated: Vec<GeneratedSecret>,
}

impl Definition {
    /// Parses a definition as a client does, which can seal no secrets: integrations are checked, except for their addresses
    /// and for missing secrets, and left out. The error lists all violations.
    pub fn read(body: &Value, limits: &Limits) -> Result<Self, Vec<Violation>> {
        collect_violations(|violations| Self::read_into(body, limits, None, violations))
    }

    /// Parses the body of a create request; the error lists all violations.
    pub fn read_on_server(
        body: &Value,
        limits: &Limits,
        context: DefinitionContext<'_>,
    ) -> Result<Self, Vec<Violation>> {
        collect_violations(|violations| Self::read_into(body, limits, Some(context), violations))
    }

    fn read_into(
        body: &Value,
        limits: &Limits,
        context: Option<DefinitionContext<'_>>,
        violations: &mut Vec<Violation>,
    ) -> Option<Self> {
        let mut fields = Fields::open(body, "", "the form", violations)?;
        let title = fields.required_text("title", limits.title);
        let description = fields.text("description", MAX_DESCRIPTION);
        let slug = read_slug(&mut fields);
        let questions = fields.value("questions");
        let settings = fields.value("settings");
        let (integrations, notifications) = (fields.value("integrations"), fields.value("notifications"));
        let lists = IntegrationLists { integrations, notifications };
        let read_only: Vec<_> = READ_ONLY.into_iter().chain(["status"]).collect();
        fields.close(&read_only);
        let settings = match settings {
            Some(settings) => Settings::read(settings, violations),
            None => Some(Settings::default()),
        };
        let questions = match questions {
            Some(questions) => read_questions(questions, limits, violations),
            None => Some(Vec::new()),
        };
        let (integrations, generated) = match (context, &questions) {
            (Some(context), Some(questions)) => {
                Integration::replace_all(&[], lists, questions, context, violations)?
            }
            _ => {
                Integration::lint_lists(lists, questions.as_deref(), violations);
                (Vec::new(), Vec::new())
            }
        };
        let (title, questions, settings) = (title?, questions?, settings?);
        violations.extend(check_page_size(&questions).filter(|_| settings.is_public()));
        Some(Self { title, description, slug, questions, settings, integrations, generated })
    }
}

#[derive(Debug, Clone)]
pub struct FormPatch {
    pub title: Option<String>,
    /// `Some(None)` removes it.
    pub description: Option<Option<String>>,
    /// `Some(None)` removes it.
    pub slug: Option<Option<String>>,
    pub status: Option<FormStatus>,
    /// Replaces all questions; one with the id of an existing question replaces that one.
    pub questions: Option<Vec<Question>>,
    /// A nested merge patch, validated when it is applied: its validity depends on the current settings.
    pub settings: Option<Value>,
    /// The list that replaces all integrations, validated when it is applied: its validity depends on the questions, and on
    /// the secrets that are stored.
    pub integrations: Option<Value>,
    /// The list that replaces all notifications, likewise.
    pub notifications: Option<Value>,
}

impl FormPatch {
    pub(super) fn integration_lists(&self) -> IntegrationLists<'_> {
        let (integrations, notifications) = (self.integrations.as_ref(), self.notifications.as_ref());
        IntegrationLists { integrations, notifications }
    }

    /// Parses the body of a PATCH request, a JSON merge patch; the error lists all violations.
    pub fn read(body: &Value, limits: &Limits) -> Result<Self, Vec<Violation>> {
        collect_violations(|violations| {
            let mut fields = Fields::open(body, "", "the form", violations)?;
            for name in ["title", "status", "questions"] {
                if fields.raw(name) == Some(&Value::Null) {
                    fields.refuse(name, Rule::TypeMismatch, format!("`{name}` cannot be removed"));
                }
            }
            let title = fields.text("title", limits.title);
            let description = match fields.raw("description") {
                Some(Value::Null) => Some(None),
                _ => fields.text("description", MAX_DESCRIPTION).map(Some),
            };
            let slug = match fields.raw("slug") {
                Some(Value::Null) => Some(None),
                _ => read_slug(&mut fields).map(Some),
            };
            let status = fields.one_of(
                "status",
                Rule::TypeMismatch,
                &FormStatus::ALL.map(|status| (status.name(), status)),
            );
            let questions = fields.value("questions");
            let settings = fields.raw("settings");
            let integrations = fields.raw("integrations").cloned();
            let notifications = fields.raw("notifications").cloned();
            fields.close(&READ_ONLY);
            if let Some(settings) = settings.filter(|settings| **settings != Value::Null) {
                // Reports what is wrong regardless of the current settings together with all other violations.
                Settings::read(settings, violations);
            }
            let lists = IntegrationLists {
                integrations: integrations.as_ref(),
                notifications: notifications.as_ref(),
            };
            Integration::lint_lists(lists, None, violations);
            let questions = questions.and_then(|questions| {
                let (_, drafts) = read_drafts(questions, limits, violations)?;
                drafts.into_iter().collect()
            });
            let settings = settings.cloned();
            Some(Self { title, description, slug, status, questions, settings, integrations, notifications })
        })
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

fn read_questions(value: &Value, limits: &Limits, violations: &mut Vec<Violation>) -> Option<Vec<Question>> {
    let (items, drafts) = read_drafts(value, limits, violations)?;
    let needs_id = drafts.iter().map(|draft| draft.as_ref().is_none_or(Question::takes_answer));
    let wanted: Vec<_> = items.iter().map(raw_id).zip(needs_id).collect();
    let ids = assign_ids(&wanted, &HashSet::new());
    let named = drafts.into_iter().zip(&ids).map(|(draft, id)| Some(draft?.with_id(id.clone())));
    let questions: Vec<_> = named.collect();
    lint_conditions(ids.iter().map(Option::as_deref).zip(questions.iter().map(Option::as_ref)), violations);
    questions.into_iter().collect()
}

/// Parses the list of questions; returns its items, and for each the draft if it could be parsed.
fn read_drafts<'a>(
    value: &'a Value,
    limits: &Limits,
    violations: &mut Vec<Violation>,
) -> Option<(&'a [Value], Vec<Option<Question>>)> {
    let Value::Array(items) = value else {
        violations.push(Violation::wrong_type("/questions", "questions", "a list", value));
        return None;
    };
    if items.len() > limits.questions {
        let message = format!("{} questions are too many, {} are allowed", items.len(), limits.questions);
        violations.push(Violation::new("/questions", Rule::TooMany, message));
        return None;
    }
    let mut budget = Budget::new(limits);
    let read = |(place, item): (usize, &Value)| {
        Question::read(item, &join("/questions", &place.to_string()), place, &mut budget, violations)
    };
    let drafts = items.iter().enumerate().map(read).collect();
    report_duplicate_ids(items, violations);
    Some((items, drafts))
}

fn raw_id(item: &Value) -> Option<&str> {
    item.get("id")?.as_str()
}

/// Reports every duplicate id, also of those that questions had before. Works on the raw items, so that questions with other
/// violations are included.
fn report_duplicate_ids(items: &[Value], violations: &mut Vec<Violation>) {
    let mut first = HashMap::new();
    let ids = items.iter().enumerate().filter_map(|(place, item)| Some((raw_id(item)?, place, "id")));
    let earlier = items.iter().enumerate().flat_map(|(place, item)| {
        let was = item.get("was").map(std::slice::from_ref).unwrap_or_default();
        let was = was.first().and_then(Value::as_array).unwrap_or(was);
        was.iter().filter_map(move |id| Some((id.as_str()?, place, "was")))
    });
    for (id, place, member) in ids.chain(earlier) {
        if let Some(earlier) = first.insert(id, (place, member)) {
            first.insert(id, earlier);
            let message = format!("question id `{}` is used twice", shortened(id));
            let [pointer, related] =
                [(place, member), earlier].map(|(place, member)| format!("/questions/{place}/{member}"));
            let violation = Violation::new(pointer, Rule::DuplicateQuestionId, message).question(id);
            let help = "every question needs its own id: answers are stored under it";
            violations.push(violation.related(related).help(help));
        }
    }
}
