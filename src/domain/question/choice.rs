//! `single_choice`, `multiple_choice` and `ranking`: one option, several options, and options in order.

use std::mem::replace;

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::language::{Texts, fill};
use crate::domain::question::control::Control;
use crate::domain::question::json::{any_of, object, patterns};
use crate::domain::question::options::OptionList;
use crate::domain::question::text::{Lines, NOT_BLANK, one_line};
use crate::domain::question::{AnswerError, Rules, json_or_text};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{MAX_VIOLATIONS, Rule};

/// Rules of `single_choice`, `multiple_choice` and `ranking`: one of the options, or a list of them without duplicates.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    options: OptionList,
    is_dropdown: bool,
    /// Whether free text, `{"other":"text"}`, is accepted.
    takes_other: bool,
    /// `None` for one choice.
    list: Option<ListRules>,
}

#[derive(Debug, Clone)]
struct ListRules {
    fewest: usize,
    most: usize,
    /// Whether the most preferred comes first.
    is_ranking: bool,
}

impl Choice {
    pub(super) fn read_single(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let options = OptionList::read(fields, "options", limits);
        let display = fields.one_of("display", Rule::InvalidRange, &[("radio", false), ("dropdown", true)]);
        let is_dropdown = display.unwrap_or(false);
        Self { options, is_dropdown, takes_other: fields.flag("allow_other").unwrap_or(false), list: None }
    }

    pub(super) fn read_multiple(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let options = OptionList::read(fields, "options", limits);
        // They depend on `allow_other`, and are stored before it.
        for name in ["min_selected", "max_selected"] {
            fields.raw(name);
        }
        let takes_other = fields.flag("allow_other").unwrap_or(false);
        let different = options.len() + usize::from(takes_other);
        // If the options are not valid, their number is unknown.
        let most = if options.len() == 0 { limits.options } else { different };
        let min_selected = fields.count("min_selected", 0..=most);
        let max_selected = fields.count("max_selected", 1..=most);
        if let (Some(min), Some(max)) = (min_selected, max_selected)
            && min > max
        {
            let message = format!("`min_selected` ({min}) must not be above `max_selected` ({max})");
            fields.refuse("min_selected", Rule::InvalidRange, message);
        }
        let (fewest, most) = (min_selected.unwrap_or(0), max_selected.unwrap_or(different));
        let list = Some(ListRules { fewest, most, is_ranking: false });
        Self { options, is_dropdown: false, takes_other, list }
    }

    pub(super) fn read_ranking(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let options = OptionList::read(fields, "options", limits);
        let most = options.len();
        let fewest = if fields.flag("rank_all") == Some(true) { most } else { 0 };
        let list = Some(ListRules { fewest, most, is_ranking: true });
        Self { options, is_dropdown: false, takes_other: false, list }
    }

    /// Parses the columns of a matrix: for each row one is chosen, or if `takes_several` at least one.
    pub(super) fn read_columns(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let options = OptionList::read(fields, "columns", limits);
        let takes_several = fields.flag("multiple").unwrap_or(false);
        let list = ListRules { fewest: 1, most: options.len(), is_ranking: false };
        Self { options, is_dropdown: false, takes_other: false, list: takes_several.then_some(list) }
    }

    /// Returns the options, and whether several may be chosen.
    pub(super) fn columns(&self) -> (&OptionList, bool) {
        (&self.options, self.list.is_some())
    }

    /// Returns the index of the option that `answer` chooses; free text has the index after the last.
    fn choose(&self, answer: &Value, texts: &Texts) -> Result<usize, AnswerError> {
        match answer {
            Value::Object(members) if self.takes_other => match members.as_slice() {
                [(name, Value::String(text))] if name == "other" && !text.trim().is_empty() => {
                    one_line(&members[0].1, texts).map(|_| self.options.len())
                }
                _ => {
                    let message = fill(texts.other_object, &[("example", &r#"{"other": "text"}"#)]);
                    Err(AnswerError::new(Rule::TypeMismatch, message))
                }
            },
            _ => self.options.choose(answer, texts),
        }
    }

    /// Checks each item; stops once there are more errors than are reported, since there may be very many items.
    fn check_items(&self, items: &[Value], texts: &Texts, errors: &mut Vec<AnswerError>) {
        let mut chosen = vec![false; self.options.len() + 1];
        for (index, item) in items.iter().enumerate() {
            if errors.len() > MAX_VIOLATIONS {
                return;
            }
            let error = match self.choose(item, texts) {
                Ok(place) if !replace(&mut chosen[place], true) => continue,
                Ok(_) => AnswerError::new(Rule::DuplicateOption, texts.already_chosen),
                Err(error) => error,
            };
            errors.push(error.within(&index.to_string()));
        }
    }

    fn item_schema(&self) -> Value {
        match self.takes_other {
            true => any_of([self.options.schema(), other_schema()]),
            false => self.options.schema(),
        }
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

impl Rules for Choice {
    fn check(&self, answer: &Value, _: Option<Timestamp>, texts: &Texts) -> Vec<AnswerError> {
        let Some(&ListRules { fewest, most, .. }) = self.list.as_ref() else {
            return self.choose(answer, texts).err().into_iter().collect();
        };
        let Some(items) = answer.as_array() else {
            return vec![AnswerError::wrong_type(texts.type_list, answer, texts)];
        };
        let count = items.len();
        let mut errors = Vec::new();
        if count < fewest {
            let instruction = fill(texts.choose_at_least, &[("min", &fewest)]);
            errors.push(AnswerError::instead_of(Rule::TooFew, &instruction, &count, texts));
        }
        if count > most {
            let instruction = fill(texts.choose_at_most, &[("max", &most)]);
            errors.push(AnswerError::instead_of(Rule::TooMany, &instruction, &count, texts));
        }
        self.check_items(items, texts, &mut errors);
        errors
    }

    fn schema(&self) -> Value {
        let Some(&ListRules { fewest, most, .. }) = self.list.as_ref() else { return self.item_schema() };
        let is_other = object([("type", Some("object".into()))]);
        object([
            ("type", Some("array".into())),
            ("items", Some(self.item_schema())),
            ("uniqueItems", Some(true.into())),
            ("minItems", Some((fewest as i64).into())),
            ("maxItems", Some((most as i64).into())),
            ("contains", self.takes_other.then_some(is_other)),
            ("minContains", self.takes_other.then(|| 0.into())),
            ("maxContains", self.takes_other.then(|| 1.into())),
        ])
    }

    fn control(&self) -> Control<'_> {
        let Self { options, is_dropdown, takes_other, .. } = self;
        let (is_dropdown, takes_other) = (*is_dropdown, *takes_other);
        match self.list {
            None => Control::One { options, is_dropdown, takes_other },
            Some(ListRules { is_ranking: true, .. }) => Control::Ranking(options),
            Some(ListRules { fewest, most, .. }) => Control::Several { options, fewest, most, takes_other },
        }
    }

    fn example(&self) -> Value {
        match &self.list {
            None => self.options.first().into(),
            Some(list) => self.options.values().take(if list.is_ranking { list.most } else { 1 }).collect(),
        }
    }

    fn allowed_values(&self, rule: Rule) -> Vec<&str> {
        if rule == Rule::NotAnOption { self.options.values().collect() } else { Vec::new() }
    }

    fn parse_text(&self, text: &str) -> Value {
        json_or_text(text, |value| match value {
            Value::Array(_) => self.list.is_some(),
            Value::Object(_) => self.list.is_none() && self.takes_other,
            _ => false,
        })
    }

    fn takes_other(&self) -> bool {
        self.takes_other
    }

    fn expects(&self, texts: &Texts) -> String {
        let option = self.options.describe(texts);
        match &self.list {
            None => option,
            Some(ListRules { is_ranking: true, .. }) => fill(texts.expects_ranking, &[("option", &option)]),
            Some(_) => fill(texts.expects_list, &[("option", &option)]),
        }
    }
}
