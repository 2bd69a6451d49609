//! Checks of what integrations refer to: questions, in conditions and selections.

use crate::domain::condition::{Condition, lint_condition};
use crate::domain::integration::spec::MemberValue;
use crate::domain::integration::{FieldSelection, Integration, template};
use crate::domain::json::{self, join};
use crate::domain::question::Question;
use crate::domain::validation::budget::Budget;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{Rule, Violation, shortened};

const WHEN: &str = "when";

impl Integration {
    /// Compiles the condition, whose limits were checked when it was stored.
    pub(in crate::domain::integration) fn condition(&self) -> Option<Condition> {
        let written = json::parse(self.when.as_deref()?).ok()?;
        let mut budget = Budget::new(&Limits::UNLIMITED);
        Some(Condition::parse(&written, String::new(), &mut budget, &mut Vec::new()))
    }
}

/// Reports what `integrations` refer to and `questions` no longer have, at `/integrations/<place>`.
pub fn lint_references(
    integrations: &[Integration],
    questions: &[Question],
    violations: &mut Vec<Violation>,
) {
    for (place, integration) in integrations.iter().enumerate() {
        let mut found = Vec::new();
        let pointer = join("/integrations", &place.to_string());
        if let Some(condition) = integration.condition() {
            lint_condition(&condition, questions, &join(&pointer, WHEN), &mut found);
        }
        if let Some(selection) = &integration.fields {
            lint_fields(selection, questions, &join(&pointer, "fields"), &mut found);
        }
        let settings = &integration.kind.settings;
        for member in integration.kind.integration_type.spec().members {
            let (Some(text), pointer) = (settings.text(member.name), join(&pointer, member.name)) else {
                continue;
            };
            match member.value {
                MemberValue::EmailQuestion => lint_email_question(text, questions, &pointer, &mut found),
                MemberValue::Template(_) => lint_template(text, questions, &pointer, &mut found),
                _ => {}
            }
        }
        let help = format!("change the integration `{}` first, or in the same request", integration.name);
        violations.extend(found.into_iter().map(|violation| violation.help(&help)));
    }
}

/// Reports an `id`, at `pointer`, that is not one of a question of type `email`.
pub(in crate::domain::integration) fn lint_email_question(
    id: &str,
    questions: &[Question],
    pointer: &str,
    violations: &mut Vec<Violation>,
) {
    let of_email = questions.iter().filter(|question| question.kind.name() == "email");
    let known: Vec<&str> = of_email.filter_map(|question| question.id.as_deref()).collect();
    if !known.contains(&id) {
        let message = format!("`{}` is not a question of type `email` of this form", shortened(id));
        let violation = Violation::new(pointer, Rule::UnknownReference, message);
        violations.push(violation.allowed(id, known));
    }
}

/// Reports what the template `source`, at `pointer`, names and is not known: it would always be empty.
pub(in crate::domain::integration) fn lint_template(
    source: &str,
    questions: &[Question],
    pointer: &str,
    violations: &mut Vec<Violation>,
) {
    let answered = questions.iter().filter(|question| question.kind.rules().takes_answer());
    let answers = answered.filter_map(|question| Some(format!("answers.{}", question.id.as_deref()?)));
    let known: Vec<_> = template::NAMES.into_iter().map(str::to_owned).chain(answers).collect();
    for name in template::names(source).iter().filter(|name| !known.contains(name)) {
        let message = format!("`{}` is not known in templates of this form", shortened(name));
        let violation = Violation::new(pointer, Rule::InvalidTemplate, message);
        violations.push(violation.allowed(name, known.iter().map(String::as_str)));
    }
}

/// Reports ids in `selection`, at `pointer`, that are given twice or belong to none of `questions`.
pub(super) fn lint_fields(
    selection: &FieldSelection,
    questions: &[Question],
    pointer: &str,
    violations: &mut Vec<Violation>,
) {
    let (name, ids) = match selection {
        FieldSelection::Only(ids) => ("only", ids),
        FieldSelection::Except(ids) => ("except", ids),
    };
    let answered = questions.iter().filter(|question| question.kind.rules().takes_answer());
    let known: Vec<&str> = answered.filter_map(|question| question.id.as_deref()).collect();
    for (place, id) in ids.iter().enumerate() {
        let at = join(&join(pointer, name), &place.to_string());
        if ids[..place].contains(id) {
            let message = format!("`{}` is given twice", shortened(id));
            violations.push(Violation::new(at, Rule::DuplicateOption, message));
        } else if !known.contains(&id.as_str()) {
            let message = format!("`{}` is not a question of this form that takes an answer", shortened(id));
            let violation = Violation::new(at, Rule::UnknownReference, message);
            violations.push(violation.allowed(id, known.iter().copied()));
        }
    }
}
