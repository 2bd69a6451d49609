//! Files of answers: one record in JSON or YAML, or several in JSON lines.
//!
//! A record is `{"answers": {…}}`, as the API accepts it, or the inner map alone.

use std::path::Path;

use crate::cli::input::document::Document;
use crate::cli::input::document::read::{FileReader, load};
use crate::cli::input::document::tree::TextMode;
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
    /// Whether they are the member `answers` of the file's object.
    is_wrapped: bool,
    /// The file; `None` if there is none.
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
    let (documents, mut diagnostics) =
        if are_lines(&text) { parse_lines(&reader, &text) } else { reader.documents(TextMode::Nowhere) };
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

fn parse_lines(reader: &FileReader<'_>, text: &str) -> (Vec<Document>, Vec<Diagnostic>) {
    let (mut documents, mut diagnostics) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match json::parse(line) {
            Ok(value) => documents.push(reader.document(value, None)),
            Err(error) => diagnostics.push(reader.malformed(error.message, index + 1, error.column)),
        }
    }
    (documents, diagnostics)
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
    Some(document.problem("", Rule::TypeMismatch.name(), message))
}

impl Record {
    /// Converts `document`, an object, to a record.
    fn from_document(document: Document) -> Self {
        let wrapped = document.value.get("answers").filter(|answers| is_object(answers));
        let is_wrapped = wrapped.is_some();
        let Value::Object(answers) = wrapped.unwrap_or(&document.value).clone() else {
            return Self::default();
        };
        Self { answers, is_wrapped, document: Some(document) }
    }

    /// Whether it comes from a file.
    pub fn is_given(&self) -> bool {
        self.document.is_some()
    }

    /// Builds the request body for `answers`, with the other members of the file's object.
    pub fn body(&self, answers: Object) -> String {
        let whole = self.document.as_ref().filter(|_| self.is_wrapped);
        let mut body = whole.map_or(Value::Null, |document| document.value.clone());
        body.set(&["answers"], Value::Object(answers));
        body.to_string()
    }

    /// Returns the location of the value that `violation` is about; `None` if it is not in the file.
    pub fn location(&self, violation: &Violation) -> Option<Location> {
        let document = self.document.as_ref()?;
        let pointer = match self.is_wrapped {
            true => &*violation.pointer,
            false => violation.pointer.strip_prefix("/answers")?,
        };
        let depth = if self.is_wrapped && pointer.starts_with("/answers/") { 3 } else { 2 };
        let member: Vec<_> = pointer.split('/').take(depth).collect();
        document.value.pointer(&member.join("/"))?;
        let is_at_key = matches!(
            violation.code.known(),
            Some(
                Rule::UnknownQuestion
                    | Rule::UnknownField
                    | Rule::UnknownRow
                    | Rule::QuestionNotVisible
                    | Rule::NotAnswerable
            )
        );
        Some(document.location(document.span(pointer, is_at_key)?))
    }
}
