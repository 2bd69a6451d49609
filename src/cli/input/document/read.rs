//! Reading of form files. Where text is expected, an unquoted `1.10` or `null` is text.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use crate::cli::input::document::Document;
use crate::cli::input::document::mask::find_secrets;
use crate::cli::input::document::tree::{self, MERGE, Node, Span, TextMode};
use crate::cli::output::diagnostics::{Diagnostic, Location, Report, Source};
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;
use crate::domain::json::{self, Value};

/// Code of the problem that a key is given twice.
const DUPLICATE: &str = "duplicate_field";

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
    let (documents, mut diagnostics) = reader.documents(TextMode::Named);
    let mut documents: Vec<_> = documents.into_iter().map(Document::into_form).collect();
    diagnostics.extend(documents.iter_mut().filter_map(Document::inline_logo));
    let checked = documents.iter().flat_map(|document| document.check(base));
    // A member may only be missing because the merge key was not applied.
    let has_merge = diagnostics.iter().any(|diagnostic| diagnostic.message == MERGE);
    let is_certain =
        |diagnostic: &Diagnostic| !has_merge || diagnostic.code.as_deref() != Some("missing_field");
    diagnostics.extend(checked.filter(is_certain));
    let numbered = documents.iter().enumerate();
    diagnostics
        .extend(numbered.filter_map(|(index, document)| document.shared_slug(documents[..index].iter())));
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
    single(path, "one object", |value| matches!(value, Value::Object(_)))
}

/// Reads the file at `path` as one document that `is_wanted`, called `wanted`.
pub(super) fn single(path: &Path, wanted: &str, is_wanted: fn(&Value) -> bool) -> Result<Document, CliError> {
    let (file, text) = text(path)?;
    let reader = FileReader::of(&file, &text);
    let (mut documents, mut diagnostics) = reader.documents(TextMode::Named);
    if diagnostics.is_empty() && !matches!(&documents[..], [document] if is_wanted(&document.value)) {
        diagnostics.push(Diagnostic::new("malformed_file", format!("{file} must be {wanted}")));
    }
    match documents.pop() {
        Some(document) if diagnostics.is_empty() => Ok(document),
        _ => Err(Report::of_file(&file, diagnostics).into()),
    }
}

/// Returns the name and text of the file at `path`, `-` for standard input, of at most `max` bytes.
pub(super) fn load(path: &Path, max: u64) -> Result<(String, String), CliError> {
    let file = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    open(path)
        .and_then(|opened| opened.take(max + 1).read_to_end(&mut bytes))
        .map_err(|error| CliError::usage(format!("cannot read {file}: {}", reason(&error))))?;
    if bytes.len() as u64 > max {
        let message = format!("{file} is larger than {} MiB", max >> 20);
        let diagnostic = Diagnostic::new("file_too_large", message);
        return Err(Report::of_file(&file, vec![diagnostic]).into());
    }
    let text = decode(&file, bytes)?;
    Ok((file, text))
}

/// Opens the file at `path`, `-` for standard input.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new("-") { Ok(Box::new(io::stdin().lock())) } else { Ok(Box::new(File::open(path)?)) }
}

/// Decodes `bytes`, the content of `file`, as UTF-8.
pub fn decode(file: &str, bytes: Vec<u8>) -> Result<String, CliError> {
    String::from_utf8(bytes).map_err(|error| {
        let message = format!("{file} is not valid UTF-8 after byte {}", error.utf8_error().valid_up_to());
        Report::of_file(file, vec![Diagnostic::new("malformed_file", message)]).into()
    })
}

/// Parses `text` as YAML; `None` if it is not a single value that JSON can represent.
pub fn read_value(text: &str) -> Option<Value> {
    let (mut documents, diagnostics) = FileReader::of("", text).documents(TextMode::Named);
    let value = documents.pop()?.value;
    (documents.is_empty() && diagnostics.is_empty()).then_some(value)
}

/// Reads one file.
pub(super) struct FileReader<'a> {
    file: &'a str,
    pub(super) source: Arc<Source>,
}

impl<'a> FileReader<'a> {
    /// Creates a reader of `text`, the content of `file`.
    pub(super) fn of(file: &'a str, text: &str) -> Self {
        Self { file, source: Arc::new(Source::new(text.strip_prefix('\u{feff}').unwrap_or(text))) }
    }

    /// Returns the documents of the file, up to the first syntax error, and all problems of notation.
    pub(super) fn documents(&self, text: TextMode) -> (Vec<Document>, Vec<Diagnostic>) {
        let parsed = tree::parse(self);
        if text == TextMode::Named {
            self.source.secrets.get_or_init(|| find_secrets(&self.source, &parsed));
        }
        let is_json = self.source.trim_start().starts_with(['{', '[']);
        let has_json_name =
            Path::new(self.file).extension().is_some_and(|name| name.eq_ignore_ascii_case("json"));
        if is_json || has_json_name {
            match json::parse(&self.source) {
                Ok(value) => {
                    return (vec![self.document(value, parsed.roots.into_iter().next())], Vec::new());
                }
                // Only the walk of the file goes on after a duplicate key.
                Err(error)
                    if has_json_name
                        && parsed
                            .problems
                            .iter()
                            .all(|problem| problem.code.as_deref() != Some(DUPLICATE)) =>
                {
                    return (Vec::new(), vec![self.malformed(error.message, error.line, error.column)]);
                }
                // YAML may begin with a bracket, too.
                Err(_) => {}
            }
        }
        let documents = parsed.roots.into_iter().map(|root| self.document(root.value(text), Some(root)));
        (documents.filter(|document| document.value != Value::Null).collect(), parsed.problems)
    }

    /// Creates a document from `value` unchanged.
    pub(super) fn document(&self, value: Value, root: Option<Node>) -> Document {
        let (file, source) = (self.file.to_owned(), Arc::clone(&self.source));
        let (format_version, status, tests) = (None, None, None);
        Document { file, source, value, root, format_version, status, tests }
    }

    pub(super) fn malformed(&self, message: String, line: usize, column: usize) -> Diagnostic {
        let at = position(&self.source, line, column);
        self.problem("malformed_file", message, at..at)
    }

    pub(super) fn problem(&self, code: &str, message: impl Into<String>, span: Span) -> Diagnostic {
        let (file, source) = (self.file.to_owned(), Arc::clone(&self.source));
        let location = Some(Location { file, source, span, label: None, earlier: None });
        Diagnostic { location, ..Diagnostic::new(code, message) }
    }

    /// Reports that the key `text` is also at `first`.
    pub(super) fn duplicate(&self, text: &str, span: Span, first: Span) -> Diagnostic {
        let mut problem = self.problem(DUPLICATE, format!("field `{text}` given more than once"), span);
        if let Some(location) = &mut problem.location {
            location.label = Some("given again here");
            location.earlier = Some((first, "first given here"));
        }
        problem
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
