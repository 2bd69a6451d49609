//! Lists of things that can be chosen: the options of a choice, the rows and columns of a matrix.

use std::collections::HashSet;

use super::Fault;
use super::json::object;
use super::text::one_line;
use crate::domain::fields::{Fields, read_text};
use crate::domain::json::Value;
use crate::domain::limits::Limits;
use crate::domain::violation::{Rule, Violation, join};

/// Characters of an option's value or label.
const MAX_LENGTH: usize = 300;

/// Things to choose from, each with a value of its own.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    choices: Vec<Choice>,
    /// The places of the choices, sorted by their values: an answer may choose hundreds out of hundreds.
    by_value: Vec<usize>,
}

#[derive(Debug, Clone)]
struct Choice {
    value: String,
    /// What people read instead of the value.
    label: Option<String>,
}

impl Options {
    /// Reads the list `name`, which must be there, of texts and of objects with a `value` and a `label`.
    pub(super) fn read(fields: &mut Fields<'_, '_>, name: &'static str, limits: &Limits) -> Self {
        let Some(value) = fields.needed(name) else { return Self::default() };
        let pointer = fields.at(name);
        let (rule, message) = match value {
            Value::Array(items) if (1..=limits.options).contains(&items.len()) => {
                let options = Self::read_items(name, items, &pointer, fields.violations());
                fields.normalize(name, options.to_json());
                return options;
            }
            Value::Array(items) if items.is_empty() => (Rule::Empty, format!("`{name}` must not be empty")),
            Value::Array(items) => {
                let message = format!("`{name}` has {} items, {} are allowed", items.len(), limits.options);
                (Rule::TooMany, message)
            }
            other => (Rule::TypeMismatch, format!("`{name}` must be a list, not {}", other.kind())),
        };
        fields.refuse(name, rule, message);
        Self::default()
    }

    fn read_items(name: &str, items: &[Value], pointer: &str, violations: &mut Vec<Violation>) -> Self {
        let (mut choices, mut seen) = (Vec::with_capacity(items.len()), HashSet::new());
        for (place, item) in items.iter().enumerate() {
            let pointer = join(pointer, &place.to_string());
            let Some(choice) = Choice::read(name, item, &pointer, violations) else { continue };
            if !seen.insert(choice.value.clone()) {
                let message = format!("`{}` appears twice in the list", choice.value);
                violations.push(Violation::new(pointer, Rule::DuplicateOption, message));
            }
            choices.push(choice);
        }
        let mut by_value: Vec<_> = (0..choices.len()).collect();
        by_value.sort_by_key(|place| &choices[*place].value);
        Self { choices, by_value }
    }

    pub(super) fn len(&self) -> usize {
        self.choices.len()
    }

    /// The value of the first, if the definition had no fault.
    pub(super) fn first(&self) -> &str {
        self.values().next().unwrap_or_default()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.choices.iter().map(|choice| choice.value.as_str())
    }

    /// The index of `value` in the list.
    pub(super) fn place(&self, value: &str) -> Option<usize> {
        let found = self.by_value.binary_search_by(|place| self.choices[*place].value.as_str().cmp(value));
        found.ok().map(|found| self.by_value[found])
    }

    /// Where in the list the option stands that `answer` names.
    pub(super) fn choose(&self, answer: &Value) -> Result<usize, Fault> {
        if let Value::String(text) = answer
            && let Some(place) = self.place(text)
        {
            return Ok(place);
        }
        one_line(answer)?;
        Err(Fault::new(Rule::NotAnOption, format!("Choose {}", self.listed())))
    }

    /// A few of the values, for messages.
    pub(super) fn listed(&self) -> String {
        const FEW: usize = 10;
        let named: Vec<_> = self.values().take(FEW).map(|value| Value::from(value).said()).collect();
        let rest = if self.len() > FEW { ", …" } else { "" };
        format!("one of {}{rest}", named.join(", "))
    }

    /// The list in canonical form: an option without a label is its value alone.
    fn to_json(&self) -> Value {
        self.choices.iter().map(Choice::to_json).collect()
    }

    /// The schema of one of the values.
    pub(super) fn schema(&self) -> Value {
        object([("enum", Some(self.values().collect()))])
    }
}

impl Choice {
    fn read(name: &str, item: &Value, pointer: &str, violations: &mut Vec<Violation>) -> Option<Self> {
        if !matches!(item, Value::Object(_)) {
            let value = read_text(item, pointer, name, MAX_LENGTH, violations)?;
            return Some(Self { value, label: None });
        }
        let mut fields = Fields::open(item, pointer, format!("an item of `{name}`"), violations)?;
        let value = fields.needed_text("value", MAX_LENGTH);
        let label = fields.text("label", MAX_LENGTH);
        fields.close(&[]);
        Some(Self { value: value?, label })
    }

    fn to_json(&self) -> Value {
        match &self.label {
            None => self.value.as_str().into(),
            Some(label) => {
                object([("value", Some(self.value.as_str().into())), ("label", Some(label.as_str().into()))])
            }
        }
    }
}
