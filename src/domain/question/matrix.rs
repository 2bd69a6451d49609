//! `matrix`: the same columns to choose from in each of some rows.

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::question::choice::ChoiceSet;
use crate::domain::question::json::object_schema;
use crate::domain::question::options::OptionList;
use crate::domain::question::typed_text::json_or_text;
use crate::domain::question::{AnswerError, Rules, is_empty};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{MAX_COMPARED, MAX_VIOLATIONS, Rule, Violation, join, shortened};

/// One column for each row, or several: an object from rows to columns. An empty cell counts as a missing one.
#[derive(Debug, Clone)]
pub(super) struct Matrix {
    rows: OptionList,
    columns: ChoiceSet,
    takes_several: bool,
    /// Whether an answer must have each of the `rows`.
    needed: Vec<bool>,
}

impl Matrix {
    pub(super) fn read(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let rows = OptionList::read(fields, "rows", limits);
        let columns = ChoiceSet::without_other(OptionList::read(fields, "columns", limits));
        let takes_several = fields.flag("multiple").unwrap_or(false);
        let needed = read_required(fields, &rows);
        Self { rows, columns, takes_several, needed }
    }

    fn check_cell(&self, value: &Value) -> Vec<AnswerError> {
        match self.takes_several {
            true => self.columns.check_list(value, 0, self.columns.len()),
            false => self.columns.choose(value).err().into_iter().collect(),
        }
    }

    /// The rows that must have an answer and are not among the `answered`.
    fn missing<'a>(&'a self, answered: &'a [bool]) -> impl Iterator<Item = AnswerError> + 'a {
        let rows = self.rows.values().zip(self.needed.iter().zip(answered));
        rows.filter(|(_, (is_needed, is_answered))| **is_needed && !**is_answered).map(|(row, _)| {
            AnswerError::new(Rule::Required, format!("\"{row}\" needs an answer")).within(row)
        })
    }

    fn cell_schema(&self) -> Value {
        match self.takes_several {
            true => self.columns.list_schema(1, self.columns.len()),
            false => self.columns.schema(),
        }
    }
}

/// Reads `required_rows`, true for all or a list of some: whether each of the `rows` is.
fn read_required(fields: &mut Fields<'_, '_>, rows: &OptionList) -> Vec<bool> {
    if let Some(Value::Bool(all)) = fields.value("required_rows") {
        return vec![*all; rows.len()];
    }
    let mut needed = vec![false; rows.len()];
    for (index, row) in fields.texts("required_rows", 300).into_iter().flatten().enumerate() {
        if let Some(place) = rows.position(&row) {
            needed[place] = true;
            continue;
        }
        let pointer = join(&fields.pointer_to("required_rows"), &index.to_string());
        let message = format!("`{}` is not one of the rows", shortened(&row));
        let violation = Violation::new(pointer, Rule::InvalidRange, message);
        let is_compared = fields.violations().len() < MAX_COMPARED;
        fields.report(if is_compared { violation.allowed(&row, rows.values()) } else { violation });
    }
    needed
}

impl Rules for Matrix {
    fn check(&self, answer: &Value, _: Option<Timestamp>) -> Vec<AnswerError> {
        let Value::Object(members) = answer else {
            let message = format!("Enter an object from rows to columns, not {}", answer.kind());
            return vec![AnswerError::new(Rule::TypeMismatch, message)];
        };
        let (mut errors, mut answered) = (Vec::new(), vec![false; self.rows.len()]);
        for (row, value) in members {
            if errors.len() > MAX_VIOLATIONS {
                return errors;
            }
            let found = match self.rows.position(row) {
                Some(_) if is_empty(value) => continue,
                Some(place) => {
                    answered[place] = true;
                    self.check_cell(value)
                }
                None => {
                    vec![AnswerError::new(Rule::UnknownRow, format!("The rows are {}", self.rows.describe()))]
                }
            };
            errors.extend(found.into_iter().map(|error| error.within(row)));
        }
        errors.extend(self.missing(&answered));
        errors
    }

    /// Once anything is sent, the rows that are needed are.
    fn check_empty(&self, answer: &Value) -> Vec<AnswerError> {
        match answer {
            Value::Object(members) if !members.is_empty() => self.check(answer, None),
            _ => Vec::new(),
        }
    }

    /// Also if no row has an answer.
    fn is_empty(&self, answer: &Value) -> bool {
        match answer {
            Value::Object(members) => {
                members.iter().all(|(row, value)| is_empty(value) && self.rows.position(row).is_some())
            }
            other => is_empty(other),
        }
    }

    fn schema(&self) -> Value {
        let rows = self.rows.values().map(|row| (row.to_owned(), self.cell_schema()));
        let needed = self.rows.values().zip(&self.needed).filter(|(_, is_needed)| **is_needed);
        let needed: Vec<_> = needed.map(|(row, _)| row).collect();
        let mut schema = object_schema(rows.collect(), &needed, false);
        schema.push(("minProperties".to_owned(), 1.into()));
        Value::Object(schema)
    }

    fn example(&self) -> Value {
        let column = Value::from(self.columns.options().first());
        let column = if self.takes_several { [column].into_iter().collect() } else { column };
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

    fn expects(&self) -> String {
        let several = if self.takes_several { "a list, each " } else { "" };
        format!("for each row {several}{}", self.columns.options().describe())
    }
}
