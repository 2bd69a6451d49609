//! Lists of options: those of a choice, and the rows and columns of a matrix.

use std::collections::HashMap;

use crate::domain::json::Value;
use crate::domain::language::{Texts, fill};
use crate::domain::question::AnswerError;
use crate::domain::question::control::CHOICE;
use crate::domain::question::json::object;
use crate::domain::question::text::one_line;
use crate::domain::validation::fields::{Fields, read_text};
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{Rule, Violation, join};

const MAX_LENGTH: usize = 300;

#[derive(Debug, Clone, Default)]
pub struct OptionList {
    values: Vec<String>,
    /// The label of each value, shown instead of it.
    labels: Vec<Option<String>>,
    /// Indices into `values` in sorted order, for binary search: an answer may choose hundreds out of hundreds.
    sorted: Vec<usize>,
}

impl OptionList {
    /// Parses the required list `name` of texts and of objects with a `value` and a `label`.
    pub(super) fn read(fields: &mut Fields<'_, '_>, name: &'static str, limits: &Limits) -> Self {
        let items = fields.required(name).and_then(|_| fields.list(name, limits.options));
        items.map(|items| Self::read_items(fields, name, items)).unwrap_or_default()
    }

    fn read_items(fields: &mut Fields<'_, '_>, name: &'static str, items: &[Value]) -> Self {
        let (mut values, mut labels, mut canonical) = (Vec::new(), Vec::new(), Vec::new());
        let mut seen = HashMap::<_, usize>::new();
        for (place, item) in items.iter().enumerate() {
            let pointer = join(&fields.pointer_to(name), &place.to_string());
            let Some((value, label)) = read_item(name, item, &pointer, fields.violations) else { continue };
            if let Some(first) = seen.get(&value) {
                let message = format!("`{value}` appears twice in the list");
                let related = format!("{}/{first}", fields.pointer_to(name));
                fields.refuse_item(name, place, Rule::DuplicateOption, message).related = Some(related);
            } else {
                seen.insert(value.clone(), place);
            }
            let written = Value::from(value.as_str());
            canonical.push(match &label {
                Some(label) => object([("value", Some(written)), ("label", Some(label.as_str().into()))]),
                None => written,
            });
            values.push(value);
            labels.push(label);
        }
        fields.normalize(name, Value::Array(canonical));
        let mut sorted: Vec<_> = (0..values.len()).collect();
        sorted.sort_by_key(|place| &values[*place]);
        Self { values, labels, sorted }
    }

    /// The values, each with what is shown for it.
    pub fn labelled(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.values.iter().zip(&self.labels);
        labels.map(|(value, label)| (value.as_str(), label.as_ref().unwrap_or(value).as_str()))
    }

    #[expect(clippy::len_without_is_empty, reason = "a list of options is never empty")]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// About how many bytes of a page its choices take.
    pub(super) fn page_size(&self) -> usize {
        self.labelled().map(|(value, label)| CHOICE + value.len() + label.len()).sum()
    }

    pub(super) fn first(&self) -> &str {
        self.values().next().unwrap_or_default()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(String::as_str)
    }

    pub fn position(&self, value: &str) -> Option<usize> {
        let found = self.sorted.binary_search_by(|place| self.values[*place].as_str().cmp(value));
        found.ok().map(|found| self.sorted[found])
    }

    /// Returns the index of the option that `answer` names.
    pub(super) fn choose(&self, answer: &Value, texts: &Texts) -> Result<usize, AnswerError> {
        if let Value::String(text) = answer
            && let Some(place) = self.position(text)
        {
            return Ok(place);
        }
        one_line(answer, texts)?;
        let message = fill(texts.option, &[("option", &self.describe(texts))]);
        Err(AnswerError::new(Rule::NotAnOption, message))
    }

    /// Describes a choice from the values.
    pub(super) fn describe(&self, texts: &Texts) -> String {
        fill(texts.expects_option, &[("options", &self.list(texts))])
    }

    /// Lists the first few values, for messages.
    pub(super) fn list(&self, texts: &Texts) -> String {
        const MAX_LISTED: usize = 10;
        let named = self.values().take(MAX_LISTED).map(|value| Value::from(value).display_text());
        let rest = (self.len() > MAX_LISTED).then(|| "…".to_owned());
        named.chain(rest).collect::<Vec<_>>().join(texts.comma)
    }

    /// The schema of an answer that is one of the values.
    pub(super) fn schema(&self) -> Value {
        object([("enum", Some(self.values().collect()))])
    }
}

/// Parses an `item` of the list `name`: its value, and the label that is displayed instead. A text is a value without a
/// label.
fn read_item(
    name: &str,
    item: &Value,
    pointer: &str,
    violations: &mut Vec<Violation>,
) -> Option<(String, Option<String>)> {
    if !matches!(item, Value::Object(_)) {
        return Some((read_text(item, pointer, name, MAX_LENGTH, violations)?, None));
    }
    let mut fields = Fields::open(item, pointer, format!("an item of `{name}`"), violations)?;
    let value = fields.required_text("value", MAX_LENGTH);
    let label = fields.text("label", MAX_LENGTH);
    fields.close(&[]);
    Some((value?, label))
}
