//! Files of answers: one record in JSON or YAML, or several in JSON lines.
//!
//! A record is `{"answers": {…}}`, as the API accepts it, or the inner map alone.

use std::mem;
use std::path::Path;

use crate::cli::input::document::Document;
use crate::cli::input::document::load::load;
use crate::cli::input::document::read::FileReader;
use crate::cli::input::document::tree::{Node, TextMode};
use crate::cli::output::diagnostics::{Diagnostic, Location, Report};
use crate::cli::output::exit::CliError;
use crate::domain::json::{self, Object, Value};
use crate::domain::validation::violation::{Rule, Violation};

/// Maximum size of a file of answers, in bytes.
const MAX_FILE: u64 = 8 << 20;

/// One set of answers.
#[derive(Debug, Default)]
pub struct Record {
    /// The answers, in source order.
    pub answers: Object,
    /// Members beside `answers`.
    others: Object,
    is_wrapped: bool,
    document: Option<Document>,
}

/// Reads the only record of the file at `path`, `-` for standard input.
///
/// # Errors
/// If it cannot be read, is malformed, is not an object, or has none or several records.
pub fn record(path: &Path) -> Result<Record, CliError> {
    let mut records = records(path)?;
    match records.len() {
        1 => Ok(records.remove(0)),
        count => {
            let message = format!("expected one record, found {count} in {}", path.display());
            Err(CliError::usage_with_help(
                message,
                "to check several: forms validate FORM.yaml --answers FILE; forms show FORM -o yaml writes FORM.yaml",
            ))
        }
    }
}

/// Reads the records of the file at `path`, `-` for standard input.
///
/// # Errors
/// With all problems of the file, if one of its records is malformed; or if it cannot be read or is too large.
pub fn records(path: &Path) -> Result<Vec<Record>, CliError> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
        let message = format!("{} is CSV; answers must be JSON or YAML", path.display());
        return Err(CliError::usage(message));
    }
    let (file, text) = load(path, MAX_FILE)?;
    let reader = FileReader::of(&file, &text);
    let (values, mut diagnostics) =
        if are_lines(&text) { parse_lines(&reader, &text) } else { reader.values(TextMode::Nowhere) };
    let documents: Vec<_> = values.into_iter().map(|(value, root)| reader.document(value, root)).collect();
    diagnostics.extend(documents.iter().filter_map(not_an_object));
    if documents.is_empty() && diagnostics.is_empty() {
        diagnostics.push(Diagnostic::new("malformed_file", format!("{file} contains no answers")));
    }
    if diagnostics.is_empty() {
        Ok(documents.into_iter().map(Record::from_document).collect())
    } else {
        Err(Report::of_file(&file, diagnostics).into())
    }
}

/// Whether `text` is JSON lines: its first line is a JSON object, and others follow.
fn are_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().is_some_and(|line| json::parse(line).is_ok_and(|value| is_object(&value)));
    first && lines.next().is_some()
}

fn parse_lines(reader: &FileReader<'_>, text: &str) -> (Vec<(Value, Option<Node>)>, Vec<Diagnostic>) {
    let (mut values, mut diagnostics) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match json::parse(line) {
            Ok(value) => values.push((value, None)),
            Err(error) => diagnostics.push(reader.malformed(error.message, index + 1, error.column)),
        }
    }
    (values, diagnostics)
}

fn is_object(value: &Value) -> bool {
    matches!(value, Value::Object(_))
}

fn not_an_object(document: &Document) -> Option<Diagnostic> {
    if is_object(&document.value) {
        return None;
    }
    let message =
        format!("answers are an object such as {{\"q1\": \"hello\"}}, not {}", document.value.kind());
    let location = document.span("", false).map(|span| document.location(span, None, None));
    Some(Diagnostic { location, ..Diagnostic::new(Rule::TypeMismatch.name(), message) })
}

impl Record {
    /// Converts `document`, an object, to a record.
    fn from_document(mut document: Document) -> Self {
        let Value::Object(mut members) = mem::replace(&mut document.value, Value::Null) else {
            return Self::default();
        };
        let document = Some(document);
        let wrapped = members.iter().position(|(key, value)| key == "answers" && is_object(value));
        match wrapped.map(|index| members.remove(index)) {
            Some((_, Value::Object(answers))) => {
                Self { answers, others: members, is_wrapped: true, document }
            }
            _ => Self { answers: members, others: Object::new(), is_wrapped: false, document },
        }
    }

    /// Builds the request body for `answers`, with the record's other members.
    pub fn body(&self, answers: Object) -> String {
        let answers = ("answers".to_owned(), Value::Object(answers));
        Value::Object([answers].into_iter().chain(self.others.iter().cloned()).collect()).to_string()
    }

    /// Returns the location of the value that `violation` is about; `None` if it is not in the file.
    pub fn location(&self, violation: &Violation) -> Option<Location> {
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
        let rules = [
            Rule::UnknownQuestion,
            Rule::UnknownField,
            Rule::UnknownRow,
            Rule::QuestionNotVisible,
            Rule::NotAnswerable,
        ];
        let is_at_key = rules.iter().any(|rule| violation.code == *rule);
        let document = self.document.as_ref().filter(|_| is_here)?;
        Some(document.location(document.span(pointer, is_at_key)?, None, None))
    }
}
