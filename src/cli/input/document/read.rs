//! Reading of form files. Where text is expected, an unquoted `1.10` or `null` is text.

use std::path::Path;
use std::sync::Arc;

use crate::cli::input::document::Document;
use crate::cli::input::document::load::load;
use crate::cli::input::document::mask::find_secrets;
use crate::cli::input::document::tree::{self, Issue, MERGE, Node, TextMode};
use crate::cli::output::diagnostics::{Diagnostic, Location, Report, Source};
use crate::cli::output::exit::CliError;
use crate::domain::json::{self, Value};

/// Maximum size of a form file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Reads the forms of the file at `path`, `-` for standard input; several are separated by `---`.
///
/// # Errors
/// With all problems of the file, if one of its forms is invalid; or if it cannot be read, is too large or contains no
/// form.
pub fn read(path: &Path) -> Result<Vec<Document>, CliError> {
    let (file, text) = text(path)?;
    read_text(&file, &text, None)
}

/// Returns the name and text of the file at `path`, `-` for standard input.
pub fn text(path: &Path) -> Result<(String, String), CliError> {
    load(path, MAX_FILE)
}

/// Reads the forms in `text`, the content of `file`.
///
/// Unknown question types and fields that the edited form, `base`, has too are left for the server to check.
///
/// # Errors
/// With all problems of the text, if one of its forms is invalid or it contains none.
pub fn read_text(file: &str, text: &str, base: Option<&Value>) -> Result<Vec<Document>, CliError> {
    let reader = FileReader::of(file, text);
    let (values, mut diagnostics) = reader.values(TextMode::Named);
    let documents: Vec<_> = values.into_iter().map(|(value, root)| reader.form(value, root)).collect();
    let checked = documents.iter().flat_map(|document| document.check(base));
    // A member may only be missing because the merge key was not applied.
    let has_merge = diagnostics.iter().any(|diagnostic| diagnostic.message == MERGE);
    let is_certain =
        |diagnostic: &Diagnostic| !has_merge || diagnostic.code.as_deref() != Some("missing_field");
    diagnostics.extend(checked.filter(is_certain));
    let numbered = documents.iter().enumerate();
    diagnostics.extend(numbered.filter_map(|(index, document)| document.duplicate_slug(&documents[..index])));
    if documents.is_empty() && diagnostics.is_empty() {
        diagnostics.push(Diagnostic::new("malformed_file", format!("{file} contains no form")));
    }
    if diagnostics.is_empty() { Ok(documents) } else { Err(Report::of_file(file, diagnostics).into()) }
}

/// Reads the file at `path`, `-` for standard input, as one object that is not a form.
///
/// # Errors
/// With all problems of notation, or if it has none or several objects.
pub fn entry(path: &Path) -> Result<Document, CliError> {
    let (file, text) = text(path)?;
    let reader = FileReader::of(&file, &text);
    let (mut values, mut diagnostics) = reader.values(TextMode::Named);
    match (values.pop(), values.is_empty()) {
        (Some((value @ Value::Object(_), root)), true) if diagnostics.is_empty() => {
            return Ok(reader.document(value, root));
        }
        _ if diagnostics.is_empty() => {
            diagnostics.push(Diagnostic::new("malformed_file", format!("{file} must be one object")));
        }
        _ => {}
    }
    Err(Report::of_file(&file, diagnostics).into())
}

/// Parses `text` as YAML; `None` if it is not a single value that JSON can represent.
pub fn read_value(text: &str) -> Option<Value> {
    let (mut values, diagnostics) = FileReader::of("", text).values(TextMode::Named);
    let (value, _) = values.pop()?;
    (values.is_empty() && diagnostics.is_empty()).then_some(value)
}

/// Reads one file.
pub(super) struct FileReader<'a> {
    file: &'a str,
    source: Arc<Source>,
}

impl<'a> FileReader<'a> {
    /// Creates a reader of `text`, the content of `file`.
    pub(super) fn of(file: &'a str, text: &str) -> Self {
        Self { file, source: Arc::new(Source::new(text.strip_prefix('\u{feff}').unwrap_or(text))) }
    }

    /// Returns the values of the file, up to the first syntax error, with their positions and all problems of notation.
    pub(super) fn values(&self, text: TextMode) -> (Vec<(Value, Option<Node>)>, Vec<Diagnostic>) {
        let parsed = tree::parse(&self.source);
        if text == TextMode::Named {
            self.source.secrets.get_or_init(|| find_secrets(&self.source, &parsed));
        }
        let is_json = self.source.trim_start().starts_with(['{', '[']);
        let has_json_name =
            Path::new(self.file).extension().is_some_and(|name| name.eq_ignore_ascii_case("json"));
        if is_json || has_json_name {
            match json::parse(&self.source) {
                Ok(value) => return (vec![(value, parsed.roots.into_iter().next())], Vec::new()),
                // Only the walk of the file goes on after a duplicate key.
                Err(error) if has_json_name && parsed.issues.iter().all(|issue| issue.first.is_none()) => {
                    return (Vec::new(), vec![self.malformed(error.message, error.line, error.column)]);
                }
                // YAML may begin with a bracket, too.
                Err(_) => {}
            }
        }
        let values = parsed.roots.into_iter().map(|root| (root.value(text), Some(root)));
        let diagnostics = parsed.issues.into_iter().map(|issue| self.diagnostic(issue)).collect();
        (values.filter(|(value, _)| *value != Value::Null).collect(), diagnostics)
    }

    /// Creates a document from `value` unchanged.
    pub(super) fn document(&self, value: Value, root: Option<Node>) -> Document {
        let source = Arc::clone(&self.source);
        Document { file: self.file.to_owned(), source, value, root, format_version: None }
    }

    /// Creates a form's document, without members that only files have.
    fn form(&self, mut value: Value, root: Option<Node>) -> Document {
        let mut format_version = None;
        if let Value::Object(members) = &mut value {
            let version = members.iter().position(|(key, _)| key == "version");
            format_version = version.map(|index| members.remove(index).1);
            members.retain(|(key, _)| !is_file_only(key));
            for (key, value) in members {
                match key.as_str() {
                    "questions" => convert_questions(value),
                    "settings" => convert_settings(value),
                    _ => {}
                }
            }
        }
        Document { format_version, ..self.document(value, root) }
    }

    pub(super) fn malformed(&self, message: String, line: usize, column: usize) -> Diagnostic {
        let at = position(&self.source, line, column);
        self.diagnostic(Issue::new("malformed_file", message, at..at))
    }

    fn diagnostic(&self, issue: Issue) -> Diagnostic {
        let Issue { code, message, span, first, help } = issue;
        let label = first.is_some().then_some("given again here");
        let earlier = first.map(|first| (first, "first given here"));
        let (file, source) = (self.file.to_owned(), Arc::clone(&self.source));
        let location = Some(Location { file, source, span, label, earlier });
        Diagnostic { location, ..Diagnostic::new(code, message) }.help(help.map(str::to_owned))
    }
}

/// Whether a member is only for readers of the file.
fn is_file_only(key: &str) -> bool {
    key == "tests" || key.starts_with("x-")
}

/// Converts settings of the file to those of the API: `confirmation` may be plain text, and members `x-…` are removed.
fn convert_settings(settings: &mut Value) {
    if let Value::Object(members) = settings {
        members.retain(|(key, _)| !is_file_only(key));
    }
    if let Some(message @ Value::String(_)) = settings.get_mut("confirmation") {
        *message = Value::Object(vec![("message".to_owned(), message.clone())]);
    }
}

/// Converts questions of the file to those of the API: `was` and members `x-…` are removed.
fn convert_questions(questions: &mut Value) {
    let Value::Array(items) = questions else { return };
    for item in items {
        if let Value::Object(members) = item {
            members.retain(|(key, _)| key != "was" && !is_file_only(key));
        }
    }
}

/// Returns the byte offset of `line` and `column`, both from 1, columns in characters.
fn position(source: &str, line: usize, column: usize) -> usize {
    let start: usize = source.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let into = source[start..]
        .char_indices()
        .nth(column.saturating_sub(1))
        .map_or(source.len() - start, |(at, _)| at);
    start + into
}
