//! Reading of form files. Where text is expected, an unquoted `1.10` or `null` is text.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use crate::cli::input::document::Document;
use crate::cli::input::document::convert::{Converter, TextMode};
use crate::cli::input::document::load::load;
use crate::cli::input::document::mask::find_secrets;
use crate::cli::input::document::raw::Raw;
use crate::cli::input::document::spans::{self, Node, Span, YamlIssue};
use crate::cli::input::document::syntax::explain;
use crate::cli::output::diagnostics::{Diagnostic, Location, Report, Source};
use crate::cli::output::exit::CliError;
use crate::domain::json::{self, Value};

/// Maximum size of a form file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Message about a merge key.
const MERGE: &str = "merge keys are not supported";

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
    pub(super) source: Arc<Source>,
    pub(super) is_json: bool,
}

impl<'a> FileReader<'a> {
    /// Creates a reader of `text`, the content of `file`.
    pub(super) fn of(file: &'a str, text: &str) -> Self {
        let source = Arc::new(Source::new(text.strip_prefix('\u{feff}').unwrap_or(text)));
        let is_json =
            Path::new(file).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        Self { file, source, is_json }
    }

    /// Returns the values of the file, up to the first syntax error, with their positions and all problems of notation.
    pub(super) fn values(&self, text: TextMode) -> (Vec<(Value, Option<Node>)>, Vec<Diagnostic>) {
        let walked = spans::walk(&self.source);
        if text == TextMode::Named {
            self.source.secrets.get_or_init(|| find_secrets(&self.source, &walked));
        }
        let mut diagnostics: Vec<_> =
            walked.issues.iter().map(|issue| self.issue_diagnostic(issue)).collect();
        let mut values = Vec::new();
        let mut roots = walked.roots.into_iter();
        if walked.is_too_costly {
            return (values, diagnostics);
        }
        if self.is_json && diagnostics.is_empty() {
            match json::parse(&self.source) {
                Ok(value) => values.push((value, roots.next())),
                Err(error) => diagnostics.push(self.malformed(error.message, error.line, error.column)),
            }
            return (values, diagnostics);
        }
        for raw in self.raw() {
            match (raw, roots.next()) {
                (Ok(Raw::Null), _) => {}
                (Ok(raw), root) => {
                    let mut converter = Converter { reader: self, diagnostics: &mut diagnostics };
                    values.push((converter.value(&raw, root.as_ref(), text, 0), root));
                }
                (Err(diagnostic), _) => diagnostics.push(diagnostic),
            }
        }
        (values, diagnostics)
    }

    /// Returns the parsed values, up to the first syntax error.
    fn raw(&self) -> Vec<Result<Raw, Diagnostic>> {
        if self.is_json {
            let raw = serde_json::from_str(&self.source)
                .map_err(|error| self.malformed("not valid JSON".to_owned(), error.line(), error.column()));
            return vec![raw];
        }
        let mut values = Vec::new();
        for document in serde_yaml::Deserializer::from_str(&self.source) {
            let raw = Raw::deserialize(document).map_err(|error| self.syntax(&error));
            let is_malformed = raw.is_err();
            values.push(raw);
            if is_malformed {
                break;
            }
        }
        values
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

    fn issue_diagnostic(&self, issue: &YamlIssue) -> Diagnostic {
        match issue {
            YamlIssue::Duplicate { key, span, first } => {
                let earlier = Some((first.clone(), "first given here"));
                let message = format!("field `{key}` given more than once");
                self.diagnostic("duplicate_field", message, span, earlier)
            }
            YamlIssue::Deep { span } => {
                let message = format!("more than {} levels of nesting", json::MAX_DEPTH);
                self.diagnostic("malformed_file", message, span, None)
            }
            YamlIssue::Expanded { span } => {
                let message = format!("aliases expand to more than {} MiB", spans::MAX_EXPANDED >> 20);
                self.diagnostic("file_too_large", message, span, None)
            }
            YamlIssue::Merge { span } => self
                .diagnostic("unsupported_yaml", MERGE, span, None)
                .help(Some("write out the merged fields".to_owned())),
            YamlIssue::Tag { span } => {
                let message = format!("unknown tag `{}`", &self.source[span.clone()]);
                self.diagnostic("unsupported_yaml", message, span, None)
            }
        }
    }

    fn syntax(&self, error: &serde_yaml::Error) -> Diagnostic {
        let text = error.to_string();
        let Some(at) = error.location() else {
            return Diagnostic::new("malformed_file", explain(&text, None).0);
        };
        let next = self.source[position(&self.source, at.line(), at.column())..].chars().next();
        let (message, help) = explain(&text, next);
        self.malformed(message, at.line(), at.column()).help(help.map(str::to_owned))
    }

    pub(super) fn malformed(&self, message: String, line: usize, column: usize) -> Diagnostic {
        let start = position(&self.source, line, column);
        self.diagnostic("malformed_file", message, &(start..start), None)
    }

    pub(super) fn diagnostic(
        &self,
        code: &str,
        message: impl Into<String>,
        span: &Span,
        earlier: Option<(Span, &'static str)>,
    ) -> Diagnostic {
        let label = earlier.is_some().then_some("given again here");
        let (file, source) = (self.file.to_owned(), Arc::clone(&self.source));
        let location = Location { file, source, span: span.clone(), label, earlier };
        Diagnostic { location: Some(location), ..Diagnostic::new(code, message) }
    }
}

/// Whether a member is only for readers of the file.
fn is_file_only(key: &str) -> bool {
    key == "tests" || key.starts_with("x-")
}

/// Converts settings of the file to those of the API: `confirmation` may be plain text, and members `x-…` are removed.
fn convert_settings(settings: &mut Value) {
    let Value::Object(members) = settings else { return };
    members.retain(|(key, _)| !is_file_only(key));
    for (_, value) in members.iter_mut().filter(|(key, _)| key == "confirmation") {
        if let Value::String(_) = value {
            let message = std::mem::replace(value, Value::Null);
            *value = Value::Object(vec![("message".to_owned(), message)]);
        }
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
