//! `matrix`: the same columns to choose from in each of some rows.

use super::choice::Offer;
use super::entered::json_or_text;
use super::json::{any_of, nothing, object, present};
use super::options::Options;
use super::{Fault, Rules, is_empty};
use crate::clock::Timestamp;
use crate::domain::fields::Fields;
use crate::domain::json::Value;
use crate::domain::limits::Limits;
use crate::domain::violation::{Rule, Violation, join};

/// One column for each row, or several: an object from rows to columns. A row may be left out or empty.
#[derive(Debug, Clone)]
pub struct Matrix {
    rows: Options,
    columns: Offer,
    multiple: Option<bool>,
    required_rows: Option<Required>,
}

/// The rows that an answer must have.
#[derive(Debug, Clone)]
enum Required {
    All(bool),
    These(Vec<String>),
}

impl Matrix {
    pub(super) fn read(fields: &mut Fields<'_, '_>, limits: &Limits) -> Self {
        let rows = Options::read(fields, "rows", limits);
        let columns = Offer::plain(Options::read(fields, "columns", limits));
        let multiple = fields.flag("multiple");
        let required_rows = read_required(fields, &rows);
        Self { rows, columns, multiple, required_rows }
    }

    fn needs(&self, row: &str) -> bool {
        match &self.required_rows {
            Some(Required::All(all)) => *all,
            Some(Required::These(rows)) => rows.iter().any(|needed| needed == row),
            None => false,
        }
    }

    fn needed(&self) -> impl Iterator<Item = &str> {
        self.rows.values().filter(|row| self.needs(row))
    }

    fn takes_several(&self) -> bool {
        self.multiple == Some(true)
    }

    fn check_row(&self, row: &str, value: &Value) -> Vec<Fault> {
        if self.rows.place(row).is_none() {
            let message = format!("The rows are {}", self.rows.listed());
            return vec![Fault::new(Rule::UnknownRow, message)];
        }
        match self.takes_several() {
            _ if is_empty(value) => Vec::new(),
            true => self.columns.check_list(value, 0, self.columns.len()),
            false => self.columns.choose(value).err().into_iter().collect(),
        }
    }

    /// The schema of a row, which may be empty unless it is needed.
    fn row_schema(&self, row: &str) -> Value {
        let chosen = if self.takes_several() {
            self.columns.list_schema(1, self.columns.len())
        } else {
            self.columns.schema()
        };
        if self.needs(row) { chosen } else { any_of([chosen, nothing()]) }
    }
}

/// Reads `required_rows`: whether all are, or which.
fn read_required(fields: &mut Fields<'_, '_>, rows: &Options) -> Option<Required> {
    if let Some(Value::Bool(all)) = fields.value("required_rows") {
        return Some(Required::All(*all));
    }
    let needed = fields.texts("required_rows", 300)?;
    for (place, row) in needed.iter().enumerate().filter(|(_, row)| rows.place(row).is_none()) {
        let pointer = join(&fields.at("required_rows"), &place.to_string());
        let message = format!("`{row}` is none of the rows");
        fields.report(Violation::new(pointer, Rule::InvalidRange, message));
    }
    Some(Required::These(needed))
}

impl Rules for Matrix {
    fn check(&self, answer: &Value, _: Option<Timestamp>) -> Vec<Fault> {
        let Value::Object(members) = answer else {
            let message = format!("Enter an object from rows to columns, not {}", answer.kind());
            return vec![Fault::new(Rule::TypeMismatch, message)];
        };
        let wrong = members
            .iter()
            .flat_map(|(row, value)| self.check_row(row, value).into_iter().map(|fault| fault.within(row)));
        let missing = self.needed().filter(|row| answer.get(row).is_none_or(is_empty));
        let missing =
            missing.map(|row| Fault::new(Rule::Required, format!("\"{row}\" needs an answer")).within(row));
        wrong.chain(missing).collect()
    }

    /// Also if no row has an answer.
    fn is_empty(&self, answer: &Value) -> bool {
        match answer {
            Value::Object(members) => {
                members.iter().all(|(row, value)| is_empty(value) && self.rows.place(row).is_some())
            }
            other => is_empty(other),
        }
    }

    fn schema(&self) -> Value {
        let rows = self.rows.values().map(|row| (row.to_owned(), self.row_schema(row)));
        let needed: Vec<_> = self.needed().collect();
        object([
            ("type", Some("object".into())),
            ("properties", Some(Value::Object(rows.collect()))),
            ("additionalProperties", Some(false.into())),
            ("required", (!needed.is_empty()).then(|| needed.into_iter().collect())),
        ])
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let required = |required: &Required| match required {
            Required::All(all) => (*all).into(),
            Required::These(rows) => rows.iter().map(String::as_str).collect(),
        };
        present([
            ("rows", Some(self.rows.to_json())),
            ("columns", Some(self.columns.options().to_json())),
            ("multiple", self.multiple.map(Value::from)),
            ("required_rows", self.required_rows.as_ref().map(required)),
        ])
    }

    fn example(&self) -> Value {
        let column = Value::from(self.columns.options().first());
        let column = if self.takes_several() { [column].into_iter().collect() } else { column };
        Value::Object(self.rows.values().map(|row| (row.to_owned(), column.clone())).collect())
    }

    fn entered(&self, text: &str) -> Value {
        json_or_text(text, |_| true)
    }

    fn expects(&self) -> String {
        let several = if self.takes_several() { "a list, each " } else { "" };
        format!("for each row {several}{}", self.columns.options().listed())
    }
}
