//! Reading of form files. Where text is expected, an unquoted `1.10` or `null` is text.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use crate::cli::input::document::Document;
use crate::cli::input::document::convert::{TextMode, convert};
use crate::cli::input::document::load::load;
use crate::cli::input::document::raw::Raw;
use crate::cli::input::document::spans::{self, Node, YamlIssue};
use crate::cli::input::document::syntax::{SyntaxHelp, explain};
use crate::cli::output::diagnostics::{Diagnostic, Location, Report};
use crate::cli::output::exit::CliError;
use crate::domain::json::{self, Object, Value};
use crate::domain::validation::limits::Limits;

/// Maximum size of a form file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Message about a merge key.
const MERGE: &str = "merge keys are not supported";

/// Top-level members that only files have, besides `x-…`.
const FILE_MEMBERS: [&str; 2] = ["version", "tests"];

/// Reads the forms of the file at `path`, `-` for standard input; several are separated by `---`.
///
/// # Errors
/// With all problems of the file, if one of its forms is invalid; or if it cannot be read, is too large or contains no
/// form.
pub fn read(path: &Path, limits: &Limits) -> Result<Vec<Document>, CliError> {
    let (file, text) = text(path)?;
    read_text(&file, &text, limits)
}

/// Returns the name and text of the file at `path`, `-` for standard input.
///
/// # Errors
/// If it cannot be read, or is too large for a form.
pub fn text(path: &Path) -> Result<(String, String), CliError> {
    load(path, MAX_FILE)
}

/// Reads the forms in `text`, the content of `file`.
///
/// # Errors
/// With all problems of the text, if one of its forms is invalid or it contains none.
pub fn read_text(file: &str, text: &str, limits: &Limits) -> Result<Vec<Document>, CliError> {
    read_forms(file, text, limits, None)
}

/// Reads the forms in `text`, the content of `file`, edited from the form `base`.
///
/// Unknown question types and fields that `base` has too are left for the server to check.
///
/// # Errors
/// With all problems of the text, if one of its forms is invalid or it contains none.
pub fn read_edited(file: &str, text: &str, base: &Value) -> Result<Vec<Document>, CliError> {
    read_forms(file, text, &Limits::UNLIMITED, Some(base))
}

fn read_forms(
    file: &str,
    text: &str,
    limits: &Limits,
    base: Option<&Value>,
) -> Result<Vec<Document>, CliError> {
    let reader = FileReader::of(file, text);
    let (values, mut diagnostics) = reader.values(TextMode::Named);
    let documents: Vec<_> = values.into_iter().map(|(value, root)| reader.form(value, root)).collect();
    let checked = documents.iter().flat_map(|document| document.check(limits, base));
    // A member may only be missing because the merge key was not applied.
    let has_merge = diagnostics.iter().any(|diagnostic| diagnostic.message == MERGE);
    let is_told = |diagnostic: &Diagnostic| !has_merge || diagnostic.code.as_deref() != Some("missing_field");
    diagnostics.extend(checked.filter(is_told));
    let numbered = documents.iter().enumerate();
    diagnostics.extend(numbered.filter_map(|(place, document)| document.duplicate_slug(&documents[..place])));
    if documents.is_empty() && diagnostics.is_empty() {
        diagnostics.push(Diagnostic::new("malformed_file", format!("{file} contains no form")));
    }
    if diagnostics.is_empty() { Ok(documents) } else { Err(Report::of_file(file, diagnostics).into()) }
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
    source: Arc<str>,
    pub(super) is_json: bool,
}

impl<'a> FileReader<'a> {
    /// Creates a reader of `text`, the content of `file`.
    pub(super) fn of(file: &'a str, text: &str) -> Self {
        let source = Arc::from(text.strip_prefix('\u{feff}').unwrap_or(text));
        let is_json =
            Path::new(file).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        Self { file, source, is_json }
    }

    /// Returns the values of the file, up to the first syntax error, with their positions and all problems of notation.
    pub(super) fn values(&self, text: TextMode) -> (Vec<(Value, Option<Node>)>, Vec<Diagnostic>) {
        let walked = spans::walk(&self.source);
        let mut diagnostics: Vec<_> =
            walked.issues.iter().map(|issue| self.issue_diagnostic(issue)).collect();
        let mut values = Vec::new();
        let mut roots = walked.roots.into_iter();
        if walked.is_too_deep {
            return (values, diagnostics);
        }
        if self.is_json && diagnostics.is_empty() {
            match json::parse(&self.source) {
                Ok(value) => values.push((value, roots.next())),
                Err(error) => diagnostics.push(self.malformed(error.what, error.line, error.column)),
            }
            return (values, diagnostics);
        }
        for raw in self.raw() {
            match (raw, roots.next()) {
                (Ok(Raw::Null), _) => {}
                (Ok(raw), root) => {
                    let value = convert(self, &raw, root.as_ref(), text, &mut diagnostics);
                    values.push((value, root));
                }
                (Err(diagnostic), _) => diagnostics.push(diagnostic),
            }
        }
        (values, diagnostics)
    }

    /// Returns the parsed values, up to the first syntax error.
    fn raw(&self) -> Vec<Result<Raw, Diagnostic>> {
        if self.is_json {
            let raw = serde_json::from_str(&self.source);
            return vec![
                raw.map_err(|error| {
                    self.malformed("not valid JSON".to_owned(), error.line(), error.column())
                }),
            ];
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

    /// Returns the source text at `place`.
    pub(super) fn text(&self, place: &Range<usize>) -> Option<&str> {
        self.source.get(place.clone())
    }

    /// Creates a document from `value` unchanged.
    pub(super) fn document(&self, value: Value, root: Option<Node>) -> Document {
        let source = Arc::clone(&self.source);
        Document { file: self.file.to_owned(), source, value, root, format_version: None }
    }

    /// Creates a form's document, without members that only files have.
    fn form(&self, value: Value, root: Option<Node>) -> Document {
        let mut format_version = None;
        let value = match value {
            Value::Object(members) => {
                let mut kept = Object::new();
                for (key, value) in members {
                    match key.as_str() {
                        "version" => format_version = Some(value),
                        "questions" => kept.push((key, questions_for_api(value))),
                        "settings" => kept.push((key, settings_for_api(value))),
                        _ if FILE_MEMBERS.contains(&key.as_str()) || key.starts_with("x-") => {}
                        _ => kept.push((key, value)),
                    }
                }
                Value::Object(kept)
            }
            other => other,
        };
        Document { format_version, ..self.document(value, root) }
    }

    fn issue_diagnostic(&self, issue: &YamlIssue) -> Diagnostic {
        match issue {
            YamlIssue::Duplicate { key, place, first } => {
                let earlier = Some((first.clone(), "first given here"));
                let message = format!("field `{key}` given more than once");
                self.diagnostic("duplicate_field", message, place.clone(), earlier)
            }
            YamlIssue::Deep { place } => {
                let message = format!("more than {} levels of nesting", json::MAX_DEPTH);
                self.diagnostic("malformed_file", message, place.clone(), None)
            }
            YamlIssue::Merge { place } => {
                let help = "write out the merged fields";
                self.diagnostic("unsupported_yaml", MERGE, place.clone(), None).help(Some(help.to_owned()))
            }
            YamlIssue::Tag { place } => self.diagnostic(
                "unsupported_yaml",
                format!("unknown tag `{}`", &self.source[place.clone()]),
                place.clone(),
                None,
            ),
        }
    }

    fn syntax(&self, error: &serde_yaml::Error) -> Diagnostic {
        match error.location() {
            Some(at) if self.source[position(&self.source, at.line(), at.column())..].starts_with('\t') => {
                let message = "a tab is not allowed here: YAML is indented with spaces".to_owned();
                self.malformed(message, at.line(), at.column())
            }
            Some(at) => {
                let next = self.source[position(&self.source, at.line(), at.column())..].chars().next();
                let SyntaxHelp { message, help } = explain(&error.to_string(), next);
                self.malformed(message, at.line(), at.column()).help(help.map(str::to_owned))
            }
            None => Diagnostic::new("malformed_file", explain(&error.to_string(), None).message),
        }
    }

    pub(super) fn malformed(&self, message: String, line: usize, column: usize) -> Diagnostic {
        let start = position(&self.source, line, column);
        self.diagnostic("malformed_file", message, start..start, None)
    }

    pub(super) fn diagnostic(
        &self,
        code: &str,
        message: impl Into<String>,
        place: Range<usize>,
        earlier: Option<(Range<usize>, &'static str)>,
    ) -> Diagnostic {
        let label = earlier.is_some().then_some("given again here");
        let source = Arc::clone(&self.source);
        let location = Location { file: self.file.to_owned(), source, place, label, earlier };
        Diagnostic { location: Some(location), ..Diagnostic::new(code, message) }
    }
}

/// Whether a member of a question or of the settings is only for readers of the file.
fn is_for_the_file(key: &str) -> bool {
    key == "tests" || key.starts_with("x-")
}

/// Converts settings of the file to those of the API: `confirmation` may be plain text, and members `x-…` are removed.
fn settings_for_api(mut settings: Value) -> Value {
    if let Value::Object(members) = &mut settings {
        members.retain(|(key, _)| !is_for_the_file(key));
        for (_, value) in members.iter_mut().filter(|(key, _)| key == "confirmation") {
            if let Value::String(_) = value {
                let message = std::mem::replace(value, Value::Null);
                *value = Value::Object(vec![("message".to_owned(), message)]);
            }
        }
    }
    settings
}

/// Converts questions of the file to those of the API: `was` and members `x-…` are removed.
fn questions_for_api(questions: Value) -> Value {
    let Value::Array(items) = questions else { return questions };
    let items = items.into_iter().map(|item| match item {
        Value::Object(mut members) => {
            members.retain(|(key, _)| key != "was" && !is_for_the_file(key));
            Value::Object(members)
        }
        other => other,
    });
    Value::Array(items.collect())
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

#[cfg(test)]
mod tests {
    use super::{CliError, Document, read_text};
    use crate::cli::output::diagnostics::Diagnostic;
    use crate::domain::validation::limits::Limits;

    fn read(file: &str, text: &str) -> Vec<Document> {
        read_text(file, text, &Limits::default()).unwrap()
    }

    fn body(text: &str) -> String {
        read("a.yaml", text)[0].body()
    }

    #[track_caller]
    fn diagnostics(file: &str, text: &str) -> Vec<Diagnostic> {
        match read_text(file, text, &Limits::default()) {
            Err(CliError::Rejected(report)) => report.diagnostics,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn text_stays_the_text_that_was_written() {
        for written in ["1.10", "007", "yes", "null", "~", "2024-01-01", "true", "0x1F", "1e3"] {
            assert_eq!(body(&format!("title: {written}\n")), format!("{{\"title\":\"{written}\"}}"));
        }
        assert_eq!(body("title: T\ndescription:\n"), r#"{"title":"T","description":null}"#);
        assert_eq!(
            body("title: T\nquestions: [{type: rating, title: T, labels: {1: 2, 5: no}}]"),
            r#"{"title":"T","questions":[{"type":"rating","title":"T","labels":{"1":"2","5":"no"}}]}"#
        );
    }

    #[test]
    fn in_a_condition_a_number_is_one_whatever_the_question_is_called() {
        let title = "{id: title, type: rating, title: 1}";
        let text =
            format!("title: T\nquestions: [{title}, {{type: rating, title: 2, show_if: {{title: [3, 4]}}}}]");
        assert!(body(&text).contains(r#""title":"2","show_if":{"title":[3,4]}"#), "{text}");
    }

    #[test]
    fn what_only_the_file_has_is_taken_off() {
        let text = "version: 1\ntitle: T\nx-anchors: {a: 1}\ntests: []\nquestions:\n  - {was: old, type: email, title: E, x-note: a, tests: []}\n\
            settings: {closed: true, x-b: {c: 1}}\n";
        assert_eq!(
            body(text),
            r#"{"title":"T","questions":[{"type":"email","title":"E"}],"settings":{"closed":true}}"#
        );
        assert_eq!(
            diagnostics("a.yaml", "version: 2\ntitle: T\n")[0].message,
            "unknown file format `version`, expected 1"
        );
    }

    #[test]
    fn json_and_yaml_are_one_model() {
        let text = r#"{"title": "T", "questions": [{"type": "rating", "title": "T", "max": 7}]}"#;
        let json = read("a.json", text);
        assert_eq!(json[0].body(), body(text));
        assert_eq!(json[0].place("/questions/0/max", false), Some(69..70));
    }

    #[test]
    fn one_file_may_hold_several_forms() {
        let forms = read("a.yaml", "# two\n---\ntitle: A\n---\ntitle: B\n---\n");
        assert_eq!(
            forms.iter().map(Document::body).collect::<Vec<_>>(),
            [r#"{"title":"A"}"#, r#"{"title":"B"}"#]
        );
        assert_eq!(forms[1].place("/title", false), Some(30..31));
    }

    #[test]
    fn what_is_no_form_file_is_refused() {
        for (text, message) in [
            ("", "a.yaml contains no form"),
            ("a: [1\n", "expected `,` or `]`"),
            ("a: `x`\n", "text cannot begin with ``"),
            ("a: b: c\n", "`:` is not expected here"),
            ("a: !!int x\n", "not valid YAML"),
            ("a: 1\nb: 2\na: 3\n", "field `a` given more than once"),
            ("a: &x {c: 1}\n<<: *x\n", "merge keys are not supported"),
            ("a: !env SECRET\n", "unknown tag `!env`"),
            ("a: .inf\n", "`.inf` is not a valid JSON number"),
            ("? [a]\n: 1\n", "a key must be text"),
        ] {
            let found = diagnostics("a.yaml", text);
            assert!(found.iter().any(|diagnostic| diagnostic.message.contains(message)), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_key_given_twice_hides_nothing_else() {
        let yaml = "titel: A\nquestions:\n  - {type: ratting, title: T, title: U}\n  - {type: email}\n";
        let json = r#"{"titel": "A", "questions": [{"type": "ratting", "title": "T", "title": 5}, {"type": "email"}]}"#;
        for (file, text) in [("a.yaml", yaml), ("a.json", json)] {
            let codes: Vec<_> =
                diagnostics(file, text).into_iter().filter_map(|diagnostic| diagnostic.code).collect();
            assert_eq!(
                codes,
                ["unknown_field", "unknown_question_type", "duplicate_field", "missing_field"],
                "{file}"
            );
        }
    }

    #[test]
    fn what_is_nested_too_deep_costs_nothing() {
        for (file, level) in [("a.yaml", "{a: "), ("a.json", "["), ("a.yaml", "- "), ("a.yaml", "? ")] {
            let deep = diagnostics(file, &level.repeat(5_000));
            assert_eq!(deep.len(), 1);
            assert_eq!(deep[0].message, "more than 16 levels of nesting");
            assert_eq!(deep[0].code.as_deref(), Some("malformed_file"));
            assert_eq!(deep[0].location.as_ref().unwrap().place.start, 16 * level.len(), "{level}");
        }
        let by_alias = format!(
            "a: &a {}{}\nb: {}*a{}\n",
            "[".repeat(10),
            "]".repeat(10),
            "[".repeat(10),
            "]".repeat(10)
        );
        assert!(
            diagnostics("a.yaml", &by_alias)
                .iter()
                .any(|diagnostic| diagnostic.message.contains("16 levels"))
        );
    }

    #[test]
    fn a_file_of_many_problems_shows_the_first() {
        let keys: String = (0..20_000).map(|number| format!("k{number}: 1\n")).collect();
        let Err(CliError::Rejected(report)) = read_text("a.yaml", &keys, &Limits::default()) else {
            panic!()
        };
        assert_eq!(report.diagnostics.len(), 100);
        let summary = "a.yaml: more than 100 problems found, the first 100 are shown";
        assert_eq!(report.summary.as_deref(), Some(summary));
    }
}
