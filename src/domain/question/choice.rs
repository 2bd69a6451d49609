//! `single_choice`, `multiple_choice` and `ranking`: one option, several options, and options in order.

use std::mem::replace;

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::question::json::{any_of, object, patterns};
use crate::domain::question::options::OptionList;
use crate::domain::question::text::{Lines, NOT_BLANK, one_line};
use crate::domain::question::typed_text::json_or_text;
use crate::domain::question::{AnswerError, Rules};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{MAX_VIOLATIONS, Rule};

/// Rules of `single_choice`: one of the options, or free text, `{"other":"text"}`, if accepted.
#[derive(Debug, Clone)]
pub(super) struct ChoiceSet {
    pub(super) options: OptionList,
    takes_other: bool,
}

impl ChoiceSet {
    fn read(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let options = OptionList::read(fields, "options", limits);
        Self { options, takes_other: fields.flag("allow_other").unwrap_or(false) }
    }

    pub(super) fn read_single(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let choices = Self::read(fields, limits);
        fields.one_of("display", Rule::InvalidRange, &[("radio", ()), ("dropdown", ())]);
        choices
    }

    pub(super) fn without_other(options: OptionList) -> Self {
        Self { options, takes_other: false }
    }

    /// Maximum number of different items in an answer.
    pub(super) fn len(&self) -> usize {
        self.options.len() + usize::from(self.takes_other)
    }

    /// Returns the index of the option that `answer` chooses; free text has the index after the last.
    pub(super) fn choose(&self, answer: &Value) -> Result<usize, AnswerError> {
        match answer {
            Value::Object(members) if self.takes_other => match members.as_slice() {
                [(name, Value::String(text))] if name == "other" && !text.trim().is_empty() => {
                    one_line(&members[0].1).map(|_| self.options.len())
                }
                _ => Err(AnswerError::new(Rule::TypeMismatch, "Enter other text as {\"other\": \"text\"}")),
            },
            _ => self.options.choose(answer),
        }
    }

    /// Checks a list of choices without duplicates, of `fewest` to `most` items.
    pub(super) fn check_list(&self, answer: &Value, fewest: usize, most: usize) -> Vec<AnswerError> {
        let Some(items) = answer.as_array() else { return vec![AnswerError::wrong_type("a list", answer)] };
        let count = items.len();
        let mut errors = Vec::new();
        if count < fewest {
            errors.push(AnswerError::new(Rule::TooFew, format!("Choose at least {fewest}, not {count}")));
        }
        if count > most {
            errors.push(AnswerError::new(Rule::TooMany, format!("Choose at most {most}, not {count}")));
        }
        self.check_items(items, &mut errors);
        errors
    }

    /// Checks each item; stops once there are more errors than are reported, since there may be very many items.
    fn check_items(&self, items: &[Value], errors: &mut Vec<AnswerError>) {
        let mut chosen = vec![false; self.options.len() + 1];
        for (index, item) in items.iter().enumerate() {
            if errors.len() > MAX_VIOLATIONS {
                return;
            }
            let error = match self.choose(item) {
                Ok(place) if !replace(&mut chosen[place], true) => continue,
                Ok(_) => AnswerError::new(Rule::DuplicateOption, "This is already chosen"),
                Err(error) => error,
            };
            errors.push(error.within(&index.to_string()));
        }
    }

    /// The schema of a list of choices without duplicates.
    pub(super) fn list_schema(&self, fewest: usize, most: usize) -> Value {
        let count = |count: usize| Value::from(count as i64);
        let is_other = object([("type", Some("object".into()))]);
        object([
            ("type", Some("array".into())),
            ("items", Some(self.schema())),
            ("uniqueItems", Some(true.into())),
            ("minItems", Some(count(fewest))),
            ("maxItems", Some(count(most))),
            ("contains", self.takes_other.then_some(is_other)),
            ("minContains", self.takes_other.then(|| 0.into())),
            ("maxContains", self.takes_other.then(|| 1.into())),
        ])
    }
}

fn other_schema() -> Value {
    let text = object([
        ("type", Some("string".into())),
        ("pattern", Some(Lines::One.expression().into())),
        ("allOf", patterns([NOT_BLANK.to_owned()])),
    ]);
    object([
        ("type", Some("object".into())),
        ("properties", Some(object([("other", Some(text))]))),
        ("required", Some(["other"].into_iter().collect())),
        ("additionalProperties", Some(false.into())),
    ])
}

impl Rules for ChoiceSet {
    fn check(&self, answer: &Value, _: Option<Timestamp>) -> Vec<AnswerError> {
        self.choose(answer).err().into_iter().collect()
    }

    fn schema(&self) -> Value {
        match self.takes_other {
            true => any_of([self.options.schema(), other_schema()]),
            false => self.options.schema(),
        }
    }

    fn example(&self) -> Value {
        self.options.first().into()
    }

    fn allowed_values(&self, rule: Rule) -> Vec<&str> {
        if rule == Rule::NotAnOption { self.options.values().collect() } else { Vec::new() }
    }

    fn parse_text(&self, text: &str) -> Value {
        json_or_text(text, |value| self.takes_other && matches!(value, Value::Object(_)))
    }

    fn takes_other(&self) -> bool {
        self.takes_other
    }

    fn expects(&self) -> String {
        self.options.describe()
    }
}

/// Rules of `multiple_choice` and `ranking`: a list without duplicates; a ranking has the most preferred first.
#[derive(Debug, Clone)]
pub(super) struct MultipleChoice {
    choices: ChoiceSet,
    fewest: usize,
    most: usize,
    is_ranking: bool,
}

impl MultipleChoice {
    pub(super) fn read(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let choices = ChoiceSet::read(fields, limits);
        // If the options are not valid, their number is unknown.
        let most = if choices.options.len() == 0 { limits.options } else { choices.len() };
        let min_selected = fields.count("min_selected", 0..=most);
        let max_selected = fields.count("max_selected", 1..=most);
        if let (Some(min), Some(max)) = (min_selected, max_selected)
            && min > max
        {
            let message = format!("`min_selected` ({min}) must not be above `max_selected` ({max})");
            fields.refuse("min_selected", Rule::InvalidRange, message);
        }
        let (fewest, most) = (min_selected.unwrap_or(0), max_selected.unwrap_or(choices.len()));
        Self { choices, fewest, most, is_ranking: false }
    }

    pub(super) fn read_ranking(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let choices = ChoiceSet::without_other(OptionList::read(fields, "options", limits));
        let most = choices.len();
        let fewest = if fields.flag("rank_all") == Some(true) { most } else { 0 };
        Self { choices, fewest, most, is_ranking: true }
    }
}

impl Rules for MultipleChoice {
    fn check(&self, answer: &Value, _: Option<Timestamp>) -> Vec<AnswerError> {
        self.choices.check_list(answer, self.fewest, self.most)
    }

    fn schema(&self) -> Value {
        self.choices.list_schema(self.fewest, self.most)
    }

    fn example(&self) -> Value {
        let count = if self.is_ranking { self.most } else { 1 };
        self.choices.options.values().take(count).collect()
    }

    fn allowed_values(&self, rule: Rule) -> Vec<&str> {
        self.choices.allowed_values(rule)
    }

    fn parse_text(&self, text: &str) -> Value {
        json_or_text(text, |value| matches!(value, Value::Array(_)))
    }

    fn expects(&self) -> String {
        let order = if self.is_ranking { " in order of preference" } else { "" };
        format!("a list{order}, each {}", self.choices.options.describe())
    }

    fn takes_other(&self) -> bool {
        self.choices.takes_other
    }
}
