//! The types of question: their names, and the rules of each.

use std::sync::Arc;

use crate::domain::json::{Value, parse};
use crate::domain::question::Rules;
use crate::domain::question::boolean::Boolean;
use crate::domain::question::calendar::{Calendar, DATE, DATETIME, TIME};
use crate::domain::question::choice::Choice;
use crate::domain::question::display_only::DisplayOnly;
use crate::domain::question::email::Email;
use crate::domain::question::hidden::Hidden;
use crate::domain::question::matrix::Matrix;
use crate::domain::question::number::Quantity;
use crate::domain::question::phone::Phone;
use crate::domain::question::text::{Lines, Text};
use crate::domain::question::url::Url;
use crate::domain::validation::budget::Budget;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{Rule, Violation};

/// The type of a question with its settings: `type` in JSON. Cheap to clone.
#[derive(Debug, Clone)]
pub struct QuestionKind {
    name: &'static str,
    rules: Arc<dyn Rules>,
}

/// Parses the settings of a type of question, within the budget.
type ReadSettings = fn(&mut Fields<'_, '_>, &mut Budget) -> Arc<dyn Rules>;

/// The type that starts a page.
const PAGE: &str = "page";

const KINDS: [(&str, ReadSettings); 20] = [
    ("short_text", |fields, budget| Arc::new(Text::read(fields, Lines::One, budget))),
    ("long_text", |fields, budget| Arc::new(Text::read(fields, Lines::Many, budget))),
    ("email", |fields, _| Arc::new(Email::read(fields))),
    ("url", |fields, _| Arc::new(Url::read(fields))),
    ("phone", |fields, _| Arc::new(Phone::read(fields))),
    ("number", |fields, _| Arc::new(Quantity::read(fields))),
    ("rating", |fields, _| Arc::new(Quantity::read_rating(fields))),
    ("opinion_scale", |fields, _| Arc::new(Quantity::read_opinion(fields))),
    ("boolean", |fields, _| Arc::new(Boolean::read(fields))),
    ("consent", |fields, _| Arc::new(Boolean::read_consent(fields))),
    ("single_choice", |fields, budget| Arc::new(Choice::read_single(fields, &budget.limits))),
    ("multiple_choice", |fields, budget| Arc::new(Choice::read_multiple(fields, &budget.limits))),
    ("ranking", |fields, budget| Arc::new(Choice::read_ranking(fields, &budget.limits))),
    ("matrix", |fields, budget| Arc::new(Matrix::read(fields, &budget.limits))),
    ("date", |fields, _| Arc::new(Calendar::read(fields, &DATE))),
    ("time", |fields, _| Arc::new(Calendar::read(fields, &TIME))),
    ("datetime", |fields, _| Arc::new(Calendar::read(fields, &DATETIME))),
    ("hidden", |fields, budget| Arc::new(Hidden::read(fields, budget))),
    ("statement", |_, _| Arc::new(DisplayOnly { begins_page: false })),
    (PAGE, |_, _| Arc::new(DisplayOnly { begins_page: true })),
];

impl QuestionKind {
    pub const NAMES: [&str; KINDS.len()] = {
        let (mut names, mut index) = ([""; KINDS.len()], 0);
        while index < names.len() {
            names[index] = KINDS[index].0;
            index += 1;
        }
        names
    };

    /// Parses the settings of the type `name`, within `budget`; `None` if there is no such type.
    pub fn read(name: &str, fields: &mut Fields<'_, '_>, budget: &mut Budget) -> Option<Self> {
        let (name, read) = KINDS.iter().find(|(known, _)| *known == name)?;
        Some(Self { name, rules: read(fields, budget) })
    }

    /// Returns the type `name` without settings, and the names of its required settings; `None` if there is no such type.
    pub fn without_settings(name: &str) -> Option<(Self, Vec<String>)> {
        let (kind, _, violations) = Self::read_from(name, &Value::Object(Vec::new()))?;
        let missing = violations.into_iter().filter(|violation| violation.code == Rule::MissingField);
        Some((kind, missing.map(|violation| violation.last_step()).collect()))
    }

    /// Returns the type `name` with sample values for its required settings, for documentation; `None` if there is no
    /// such type.
    pub fn example(name: &str) -> Option<Self> {
        const SETTINGS: &str =
            r#"{"options":["red","green"],"rows":["taste","price"],"columns":["good","bad"]}"#;
        Self::read_from(name, &parse(SETTINGS).ok()?).map(|(kind, ..)| kind)
    }

    /// Returns the names of the settings of the type `name`; empty if there is no such type.
    pub fn settings(name: &str) -> Vec<&'static str> {
        Self::read_from(name, &Value::Object(Vec::new())).map(|(_, names, _)| names).unwrap_or_default()
    }

    /// Parses `settings` of the type `name`; also returns the names of all its settings, and the violations.
    fn read_from(name: &str, settings: &Value) -> Option<(Self, Vec<&'static str>, Vec<Violation>)> {
        let mut violations = Vec::new();
        let mut fields = Fields::open(settings, "", name, &mut violations)?;
        let kind = Self::read(name, &mut fields, &mut Budget::new(&Limits::UNLIMITED))?;
        let names = fields.known;
        Some((kind, names, violations))
    }

    /// Whether the question starts a page; its `show_if` applies to all questions up to the next page.
    pub fn begins_page(&self) -> bool {
        self.name == PAGE
    }

    pub fn answer_is_list(&self) -> bool {
        matches!(self.rules().example(), Value::Array(_))
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn rules(&self) -> &dyn Rules {
        &*self.rules
    }
}
