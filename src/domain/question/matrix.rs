//! `matrix`: a choice among the same columns for each row.

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::language::{Texts, fill};
use crate::domain::question::choice::Choice;
use crate::domain::question::control::Control;
use crate::domain::question::json::object_schema;
use crate::domain::question::options::OptionList;
use crate::domain::question::{AnswerError, Rules, is_empty, json_or_text};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::similar::nearest_first;
use crate::domain::validation::violation::{MAX_COMPARED, MAX_VIOLATIONS, Rule, shortened};

/// Rules of `matrix`: an object from rows to one column, or to several. An empty cell counts as missing.
#[derive(Debug, Clone)]
pub(super) struct Matrix {
    rows: OptionList,
    columns: Choice,
    required: Vec<bool>,
}

impl Matrix {
    pub(super) fn read(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let rows = OptionList::read(fields, "rows", limits);
        let columns = Choice::read_columns(fields, limits);
        let required = read_required(fields, &rows);
        Self { rows, columns, required }
    }

    /// Returns an error for each required row that is not `answered`.
    fn missing(&self, answered: &[bool], texts: &Texts) -> impl Iterator<Item = AnswerError> {
        let rows = self.rows.values().zip(self.required.iter().zip(answered));
        rows.filter(|(_, (is_required, is_answered))| **is_required && !**is_answered)
            .map(|(row, _)| AnswerError::required(row, texts).within(row))
    }
}

/// Parses `required_rows`, true or a list of rows; returns for each of the `rows` whether it is required.
fn read_required(fields: &mut Fields<'_, '_>, rows: &OptionList) -> Vec<bool> {
    if let Some(Value::Bool(all)) = fields.value("required_rows") {
        return vec![*all; rows.len()];
    }
    let mut required = vec![false; rows.len()];
    for (index, row) in fields.texts("required_rows", 300).into_iter().flatten().enumerate() {
        if let Some(place) = rows.position(&row) {
            required[place] = true;
            continue;
        }
        let message = format!("`{}` is not one of the rows", shortened(&row));
        let is_compared = fields.violations.len() < MAX_COMPARED;
        let violation = fields.refuse_item("required_rows", index, Rule::InvalidRange, message);
        if is_compared {
            violation.allowed = nearest_first(&row, rows.values());
        }
    }
    required
}

impl Rules for Matrix {
    fn check(&self, answer: &Value, _: Option<Timestamp>, texts: &Texts) -> Vec<AnswerError> {
        let Value::Object(members) = answer else {
            return vec![AnswerError::wrong_type(texts.expects_rows, answer, texts)];
        };
        let (mut errors, mut answered) = (Vec::new(), vec![false; self.rows.len()]);
        for (row, value) in members {
            if errors.len() > MAX_VIOLATIONS {
                return errors;
            }
            let row_errors = match self.rows.position(row) {
                Some(_) if is_empty(value) => continue,
                Some(place) => {
                    answered[place] = true;
                    self.columns.check(value, None, texts)
                }
                None => {
                    let message = fill(texts.rows, &[("rows", &self.rows.list(texts))]);
                    vec![AnswerError::new(Rule::UnknownRow, message)]
                }
            };
            errors.extend(row_errors.into_iter().map(|error| error.within(row)));
        }
        errors.extend(self.missing(&answered, texts));
        errors
    }

    /// Checks required rows as soon as an answer has any row.
    fn check_empty(&self, answer: &Value, texts: &Texts) -> Vec<AnswerError> {
        match answer {
            Value::Object(members) if !members.is_empty() => self.check(answer, None, texts),
            _ => Vec::new(),
        }
    }

    /// An object whose cells are all empty counts as no answer, too.
    fn is_empty(&self, answer: &Value) -> bool {
        match answer {
            Value::Object(members) => {
                members.iter().all(|(row, value)| is_empty(value) && self.rows.position(row).is_some())
            }
            other => is_empty(other),
        }
    }

    fn schema(&self) -> Value {
        let rows = self.rows.values().map(|row| (row.to_owned(), self.columns.schema()));
        let required = self.rows.values().zip(&self.required).filter(|(_, is_required)| **is_required);
        let required: Vec<_> = required.map(|(row, _)| row).collect();
        let mut schema = object_schema(rows.collect(), &required, false);
        schema.push(("minProperties".to_owned(), 1.into()));
        Value::Object(schema)
    }

    fn control(&self) -> Control<'_> {
        let (columns, takes_several) = self.columns.columns();
        Control::Matrix { rows: &self.rows, columns, takes_several }
    }

    fn example(&self) -> Value {
        let column = self.columns.example();
        Value::Object(self.rows.values().map(|row| (row.to_owned(), column.clone())).collect())
    }

    fn allowed_values(&self, rule: Rule) -> Vec<&str> {
        if rule == Rule::UnknownRow {
            self.rows.values().collect()
        } else {
            self.columns.allowed_values(rule)
        }
    }

    fn parse_text(&self, text: &str) -> Value {
        json_or_text(text, |_| true)
    }

    fn expects(&self, texts: &Texts) -> String {
        fill(texts.expects_each_row, &[("column", &self.columns.expects(texts))])
    }
}
