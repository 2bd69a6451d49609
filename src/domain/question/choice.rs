//! `single_choice`, `multiple_choice` and `ranking`: one of some options, several of them, and an order of them.

use std::mem::replace;

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::question::entered::json_or_text;
use crate::domain::question::json::{any_of, object, patterns};
use crate::domain::question::options::Options;
use crate::domain::question::text::{Lines, NOT_BLANK, one_line};
use crate::domain::question::{Fault, Rules};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{MOST_VIOLATIONS, Rule, Violation, shortened};

/// Options, and perhaps an answer in one's own words, `{"other":"text"}`.
#[derive(Debug, Clone)]
pub(super) struct Offer {
    options: Options,
    takes_other: bool,
}

impl Offer {
    fn read(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let options = Options::read(fields, "options", limits);
        Self { options, takes_other: fields.flag("allow_other").unwrap_or(false) }
    }

    /// Options alone.
    pub(super) fn plain(options: Options) -> Self {
        Self { options, takes_other: false }
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// The values of the options, if `rule` is that an answer must be one of them.
    pub(super) fn names(&self, rule: Rule) -> Vec<&str> {
        if rule == Rule::NotAnOption { self.options.values().collect() } else { Vec::new() }
    }

    /// How many can be chosen at once.
    pub(super) fn len(&self) -> usize {
        self.options.len() + usize::from(self.takes_other)
    }

    /// The place of the option that `answer` chooses; other words come after all.
    pub(super) fn choose(&self, answer: &Value) -> Result<usize, Fault> {
        match answer {
            Value::Object(members) if self.takes_other => match members.as_slice() {
                [(name, Value::String(text))] if name == "other" && !text.trim().is_empty() => {
                    one_line(&members[0].1).map(|_| self.options.len())
                }
                _ => Err(Fault::new(Rule::TypeMismatch, "Enter other words as {\"other\": \"text\"}")),
            },
            _ => self.options.choose(answer),
        }
    }

    /// Reports what is wrong with a list of some of them, of which none may come twice.
    pub(super) fn check_list(&self, answer: &Value, fewest: usize, most: usize) -> Vec<Fault> {
        let Some(items) = answer.as_array() else {
            return vec![Fault::new(Rule::TypeMismatch, format!("Enter a list, not {}", answer.kind()))];
        };
        let count = items.len();
        let mut faults = Vec::new();
        if count < fewest {
            faults.push(Fault::new(Rule::TooFew, format!("Choose {fewest} at least, not {count}")));
        }
        if count > most {
            faults.push(Fault::new(Rule::TooMany, format!("Choose {most} at most, not {count}")));
        }
        self.check_items(items, &mut faults);
        faults
    }

    /// Ends as soon as there are more faults than are listed: there may be very many items.
    fn check_items(&self, items: &[Value], faults: &mut Vec<Fault>) {
        let mut chosen = vec![false; self.options.len() + 1];
        for (index, item) in items.iter().enumerate() {
            if faults.len() > MOST_VIOLATIONS {
                return;
            }
            let fault = match self.choose(item) {
                Ok(place) if !replace(&mut chosen[place], true) => continue,
                Ok(_) => Fault::new(Rule::DuplicateOption, "This is chosen already"),
                Err(fault) => fault,
            };
            faults.push(fault.within(&index.to_string()));
        }
    }

    pub(super) fn schema(&self) -> Value {
        match self.takes_other {
            true => any_of([self.options.schema(), other_schema()]),
            false => self.options.schema(),
        }
    }

    /// The schema of a list of some of them.
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

/// One of the options.
#[derive(Debug, Clone)]
pub(super) struct SingleChoice {
    offer: Offer,
}

impl SingleChoice {
    pub(super) fn read(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let offer = Offer::read(fields, limits);
        let display = fields.text("display", 40);
        if let Some(display) = display.as_deref().filter(|display| !["radio", "dropdown"].contains(display)) {
            let message = format!("`{}` is not a valid `display`", shortened(display));
            let violation = Violation::new(fields.at("display"), Rule::InvalidRange, message);
            fields.report(violation.allowing(display, ["radio", "dropdown"]));
        }
        Self { offer }
    }
}

impl Rules for SingleChoice {
    fn check(&self, answer: &Value, _: Option<Timestamp>) -> Vec<Fault> {
        self.offer.choose(answer).err().into_iter().collect()
    }

    fn schema(&self) -> Value {
        self.offer.schema()
    }

    fn example(&self) -> Value {
        self.offer.options.first().into()
    }

    fn names(&self, rule: Rule) -> Vec<&str> {
        self.offer.names(rule)
    }

    fn entered(&self, text: &str) -> Value {
        json_or_text(text, |value| self.offer.takes_other && matches!(value, Value::Object(_)))
    }

    fn takes_other(&self) -> bool {
        self.offer.takes_other
    }

    fn expects(&self) -> String {
        self.offer.options.listed()
    }
}

/// Several of the options, none twice; of a ranking in order, the most preferred first.
#[derive(Debug, Clone)]
pub(super) struct MultipleChoice {
    offer: Offer,
    fewest: usize,
    most: usize,
    is_ranking: bool,
}

impl MultipleChoice {
    pub(super) fn read(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let offer = Offer::read(fields, limits);
        // If the options have a fault of their own, nobody can say how many there are.
        let most = if offer.options.len() == 0 { limits.options } else { offer.len() };
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let min_selected = fields.integer("min_selected", 0..=most);
        let max_selected = fields.integer("max_selected", 1..=most);
        if let (Some(min), Some(max)) = (min_selected, max_selected)
            && min > max
        {
            let message = format!("`min_selected` ({min}) must not be above `max_selected` ({max})");
            fields.refuse("min_selected", Rule::InvalidRange, message);
        }
        let count = |set: Option<i64>| set.and_then(|set| usize::try_from(set).ok());
        let (fewest, most) = (count(min_selected).unwrap_or(0), count(max_selected).unwrap_or(offer.len()));
        Self { offer, fewest, most, is_ranking: false }
    }

    pub(super) fn read_ranking(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let offer = Offer::plain(Options::read(fields, "options", limits));
        let most = offer.len();
        let fewest = if fields.flag("rank_all") == Some(true) { most } else { 0 };
        Self { offer, fewest, most, is_ranking: true }
    }
}

impl Rules for MultipleChoice {
    fn check(&self, answer: &Value, _: Option<Timestamp>) -> Vec<Fault> {
        self.offer.check_list(answer, self.fewest, self.most)
    }

    fn schema(&self) -> Value {
        self.offer.list_schema(self.fewest, self.most)
    }

    fn example(&self) -> Value {
        let count = if self.is_ranking { self.most } else { 1 };
        self.offer.options.values().take(count).collect()
    }

    fn names(&self, rule: Rule) -> Vec<&str> {
        self.offer.names(rule)
    }

    fn entered(&self, text: &str) -> Value {
        json_or_text(text, |value| matches!(value, Value::Array(_)))
    }

    fn expects(&self) -> String {
        let order = if self.is_ranking { " in order of preference" } else { "" };
        format!("a list{order}, each {}", self.offer.options.listed())
    }

    fn takes_other(&self) -> bool {
        self.offer.takes_other
    }
}
