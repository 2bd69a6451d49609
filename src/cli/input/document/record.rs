//! Answers in files: one record in JSON or YAML, or several in JSON, one a line.
//!
//! A record is `{"answers": {…}}`, as the API takes it, or the map of answers alone.

use std::path::Path;

use crate::cli::input::document::Document;
use crate::cli::input::document::convert::Text;
use crate::cli::input::document::load::load;
use crate::cli::input::document::read::Reading;
use crate::cli::output::diagnostics::{Finding, Mark, Report};
use crate::cli::output::exit::CliError;
use crate::domain::json::{self, Object, Value};
use crate::domain::validation::violation::{Rule, Violation};

/// Bytes that a file of answers may have: as many as one batch of them.
const MAX_FILE: u64 = 8 << 20;

/// One set of answers.
#[derive(Debug, Default)]
pub struct Record {
    /// The answers in the order written.
    pub answers: Object,
    /// What stands beside them.
    others: Object,
    is_wrapped: bool,
    document: Option<Document>,
}

/// Reads the one record of the file at `path`, `-` being standard input.
///
/// # Errors
/// If it cannot be read, is malformed, is no object, or holds none or several.
pub fn record(path: &Path) -> Result<Record, CliError> {
    let mut records = records(path)?;
    match records.len() {
        1 => Ok(records.remove(0)),
        count => {
            let message = format!("one record is sent at a time, and {} has {count}", path.display());
            Err(CliError::usage_with_help(
                message,
                "to check several: forms validate FORM.yaml --answers FILE; forms show FORM -o yaml writes FORM.yaml",
            ))
        }
    }
}

/// Reads the records of the file at `path`, `-` being standard input.
///
/// # Errors
/// With every problem of the file, if one of its records is malformed; or if it cannot be read or is too large.
pub fn records(path: &Path) -> Result<Vec<Record>, CliError> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
        let message = format!("{} is CSV, and answers are read from JSON and YAML", path.display());
        return Err(CliError::usage(message));
    }
    let (file, text) = load(path, MAX_FILE)?;
    let reading = Reading::of(&file, &text);
    let (documents, mut findings) = if are_lines(&text) { lines(&reading, &text) } else { whole(&reading) };
    findings.extend(documents.iter().filter_map(no_object));
    if documents.is_empty() && findings.is_empty() {
        findings.push(Finding::new("malformed_file", format!("{file} holds no answers")));
    }
    if findings.is_empty() {
        Ok(documents.into_iter().map(Record::of).collect())
    } else {
        Err(Report::of_file(&file, findings).into())
    }
}

/// Whether each line of `text` is meant as a record: its first is a JSON value, and not the only one.
fn are_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().is_some_and(|line| json::parse(line).is_ok_and(|value| is_object(&value)));
    first && lines.next().is_some()
}

fn whole(reading: &Reading<'_>) -> (Vec<Document>, Vec<Finding>) {
    let (values, findings) = reading.values(Text::Nowhere);
    (values.into_iter().map(|(value, root)| reading.document(value, root)).collect(), findings)
}

fn lines(reading: &Reading<'_>, text: &str) -> (Vec<Document>, Vec<Finding>) {
    let (mut documents, mut findings) = (Vec::new(), Vec::new());
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match json::parse(line) {
            Ok(value) => documents.push(reading.document(value, None)),
            Err(error) => findings.push(reading.malformed(error.what, place + 1, error.column)),
        }
    }
    (documents, findings)
}

fn is_object(value: &Value) -> bool {
    matches!(value, Value::Object(_))
}

fn no_object(document: &Document) -> Option<Finding> {
    let what = document.value.kind();
    (!is_object(&document.value)).then(|| {
        let message = format!("answers are an object such as {{\"q1\": \"hello\"}}, not {what}");
        let mark = document.place("", false).map(|place| document.mark(place, None, None));
        Finding { mark, ..Finding::new(Rule::TypeMismatch.name(), message) }
    })
}

impl Record {
    /// The record that `document`, an object, is.
    fn of(mut document: Document) -> Self {
        let mut members = match std::mem::replace(&mut document.value, Value::Null) {
            Value::Object(members) => members,
            _ => Object::new(),
        };
        let document = Some(document);
        let wrapped = members.iter().position(|(key, value)| key == "answers" && is_object(value));
        match wrapped.map(|place| members.remove(place)) {
            Some((_, Value::Object(answers))) => {
                Self { answers, others: members, is_wrapped: true, document }
            }
            _ => Self { answers: members, others: Object::new(), is_wrapped: false, document },
        }
    }

    /// The body that sends `answers` with what stands beside them in the file.
    pub fn body(&self, answers: Object) -> String {
        let answers = ("answers".to_owned(), Value::Object(answers));
        Value::Object([answers].into_iter().chain(self.others.iter().cloned()).collect()).to_string()
    }

    /// Where the value stands that `violation`, of the body sent, is about; `None` if it is not in the file.
    pub fn mark(&self, violation: &Violation) -> Option<Mark> {
        let mut steps = violation.pointer.split('/').skip(1);
        let (first, second) = (steps.next()?, steps.next());
        let is_here = match second {
            Some(question) if first == "answers" => self.answers.iter().any(|(key, _)| key == question),
            _ => self.others.iter().any(|(key, _)| key == first),
        };
        let pointer = match self.is_wrapped {
            true => &*violation.pointer,
            false => violation.pointer.strip_prefix("/answers")?,
        };
        let at_key = matches!(
            violation.code.known(),
            Some(
                Rule::UnknownQuestion
                    | Rule::UnknownField
                    | Rule::QuestionNotVisible
                    | Rule::NotAnswerable
                    | Rule::UnknownRow
            )
        );
        let document = self.document.as_ref().filter(|_| is_here)?;
        Some(document.mark(document.place(pointer, at_key)?, None, None))
    }
}
