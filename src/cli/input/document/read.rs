//! Reads form files. Strings are strings: where text is meant, an unquoted `1.10` or `null` is the text as written.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use crate::cli::input::document::Document;
use crate::cli::input::document::convert::{Text, convert};
use crate::cli::input::document::load::load;
use crate::cli::input::document::raw::Raw;
use crate::cli::input::document::spans::{self, Node, Oddity};
use crate::cli::input::document::syntax::{Meaning, meaning};
use crate::cli::output::diagnostics::{Finding, Mark, Report};
use crate::cli::output::exit::CliError;
use crate::domain::json::{self, Object, Value};
use crate::domain::validation::limits::Limits;

/// Bytes a form file may have.
const MAX_FILE: u64 = 1 << 20;

/// What is said of a merge key.
const MERGE: &str = "merge keys are not supported";

/// Members of the file's top level that the API does not have, besides `x-…`.
const FILE_MEMBERS: [&str; 2] = ["version", "tests"];

/// Reads the forms of the file at `path`, `-` being standard input; several stand apart by `---`.
///
/// # Errors
/// With every problem of the file, if one of its forms is unfit; or if it cannot be read, is too large or holds no form.
pub fn read(path: &Path, limits: &Limits) -> Result<Vec<Document>, CliError> {
    let (file, text) = text(path)?;
    read_text(&file, &text, limits)
}

/// The name of the file at `path`, `-` being standard input, and its text.
///
/// # Errors
/// If it cannot be read, or is too large for a form.
pub fn text(path: &Path) -> Result<(String, String), CliError> {
    load(path, MAX_FILE)
}

/// Reads the forms in `text`, which came from `file`.
///
/// # Errors
/// With every problem of the text, if one of its forms is unfit or it holds none.
pub fn read_text(file: &str, text: &str, limits: &Limits) -> Result<Vec<Document>, CliError> {
    read_forms(file, text, limits, None)
}

/// Reads the forms in `text`, which came from `file` and edits the form `base`.
///
/// Types and fields of questions that this version does not know are left to the server, where `base` has them too.
///
/// # Errors
/// With every problem of the text, if one of its forms is unfit or it holds none.
pub fn read_edited(file: &str, text: &str, base: &Value) -> Result<Vec<Document>, CliError> {
    read_forms(file, text, &Limits::UNLIMITED, Some(base))
}

fn read_forms(
    file: &str,
    text: &str,
    limits: &Limits,
    base: Option<&Value>,
) -> Result<Vec<Document>, CliError> {
    let reading = Reading::of(file, text);
    let (values, mut findings) = reading.values(Text::Named);
    let documents: Vec<_> = values.into_iter().map(|(value, root)| reading.form(value, root)).collect();
    let checked = documents.iter().flat_map(|document| document.check(limits, base));
    // What a merge would have brought is not missing.
    let has_merge = findings.iter().any(|finding| finding.message == MERGE);
    let is_told = |finding: &Finding| !has_merge || finding.code.as_deref() != Some("missing_field");
    findings.extend(checked.filter(is_told));
    let numbered = documents.iter().enumerate();
    findings.extend(numbered.filter_map(|(place, document)| document.same_slug(&documents[..place])));
    if documents.is_empty() && findings.is_empty() {
        findings.push(Finding::new("malformed_file", format!("{file} holds no form")));
    }
    if findings.is_empty() { Ok(documents) } else { Err(Report::of_file(file, findings).into()) }
}

/// The value that `text` is in YAML; `None` if it is none that JSON has too.
pub fn read_value(text: &str) -> Option<Value> {
    let (mut values, findings) = Reading::of("", text).values(Text::Named);
    let (value, _) = values.pop()?;
    (values.is_empty() && findings.is_empty()).then_some(value)
}

/// A file that is being read.
pub(super) struct Reading<'a> {
    file: &'a str,
    source: Arc<str>,
    pub(super) is_json: bool,
}

impl<'a> Reading<'a> {
    /// Begins to read `text`, which came from `file`.
    pub(super) fn of(file: &'a str, text: &str) -> Self {
        let source = Arc::from(text.strip_prefix('\u{feff}').unwrap_or(text));
        let is_json =
            Path::new(file).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        Self { file, source, is_json }
    }

    /// The values of the file, as far as it can be read, with where they stand, and what is wrong with how it is
    /// written.
    pub(super) fn values(&self, text: Text) -> (Vec<(Value, Option<Node>)>, Vec<Finding>) {
        let walked = spans::walk(&self.source);
        let mut findings: Vec<_> = walked.oddities.iter().map(|oddity| self.odd(oddity)).collect();
        let mut values = Vec::new();
        let mut roots = walked.roots.into_iter();
        if walked.is_too_deep {
            return (values, findings);
        }
        if self.is_json && findings.is_empty() {
            match json::parse(&self.source) {
                Ok(value) => values.push((value, roots.next())),
                Err(error) => findings.push(self.malformed(error.what, error.line, error.column)),
            }
            return (values, findings);
        }
        for raw in self.raw() {
            match (raw, roots.next()) {
                (Ok(Raw::Null), _) => {}
                (Ok(raw), root) => {
                    let value = convert(self, &raw, root.as_ref(), text, &mut findings);
                    values.push((value, root));
                }
                (Err(finding), _) => findings.push(finding),
            }
        }
        (values, findings)
    }

    /// The values of the file, up to the first that is malformed.
    fn raw(&self) -> Vec<Result<Raw, Finding>> {
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

    /// The text at `place`.
    pub(super) fn text(&self, place: &Range<usize>) -> Option<&str> {
        self.source.get(place.clone())
    }

    /// `value` as it stands in the file.
    pub(super) fn document(&self, value: Value, root: Option<Node>) -> Document {
        let source = Arc::clone(&self.source);
        Document { file: self.file.to_owned(), source, value, root, format_version: None }
    }

    /// A form without what only the file has.
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

    fn odd(&self, oddity: &Oddity) -> Finding {
        match oddity {
            Oddity::Duplicate { key, place, first } => {
                let earlier = Some((first.clone(), "first given here"));
                let message = format!("field `{key}` is given twice");
                self.finding("duplicate_field", message, place.clone(), earlier)
            }
            Oddity::Deep { place } => {
                let message = format!("more than {} levels of nesting", json::MAX_DEPTH);
                self.finding("malformed_file", message, place.clone(), None)
            }
            Oddity::Merge { place } => {
                let help = "write out the fields that it stands for";
                self.finding("unsupported_yaml", MERGE, place.clone(), None).help(Some(help.to_owned()))
            }
            Oddity::Tag { place } => self.finding(
                "unsupported_yaml",
                format!("unknown tag `{}`", &self.source[place.clone()]),
                place.clone(),
                None,
            ),
        }
    }

    fn syntax(&self, error: &serde_yaml::Error) -> Finding {
        match error.location() {
            Some(at) if self.source[position(&self.source, at.line(), at.column())..].starts_with('\t') => {
                let message = "a tab is not allowed here: YAML is indented with spaces".to_owned();
                self.malformed(message, at.line(), at.column())
            }
            Some(at) => {
                let next = self.source[position(&self.source, at.line(), at.column())..].chars().next();
                let Meaning { message, help } = meaning(&error.to_string(), next);
                self.malformed(message, at.line(), at.column()).help(help.map(str::to_owned))
            }
            None => Finding::new("malformed_file", meaning(&error.to_string(), None).message),
        }
    }

    pub(super) fn malformed(&self, message: String, line: usize, column: usize) -> Finding {
        let start = position(&self.source, line, column);
        self.finding("malformed_file", message, start..start, None)
    }

    pub(super) fn finding(
        &self,
        code: &str,
        message: impl Into<String>,
        place: Range<usize>,
        earlier: Option<(Range<usize>, &'static str)>,
    ) -> Finding {
        let label = earlier.is_some().then_some("given again here");
        let source = Arc::clone(&self.source);
        let mark = Mark { file: self.file.to_owned(), source, place, label, earlier };
        Finding { mark: Some(mark), ..Finding::new(code, message) }
    }
}

/// Whether a member of a question or of the settings is for readers of the file alone.
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

/// The byte at `line` and `column`, both from 1, columns in characters.
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
    use crate::cli::output::diagnostics::Finding;
    use crate::domain::validation::limits::Limits;

    fn read(file: &str, text: &str) -> Vec<Document> {
        read_text(file, text, &Limits::default()).unwrap()
    }

    fn body(text: &str) -> String {
        read("a.yaml", text)[0].body()
    }

    #[track_caller]
    fn findings(file: &str, text: &str) -> Vec<Finding> {
        match read_text(file, text, &Limits::default()) {
            Err(CliError::Rejected(report)) => report.findings,
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
            findings("a.yaml", "version: 2\ntitle: T\n")[0].message,
            "`version` is that of the file format, and only 1 exists"
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
            ("", "a.yaml holds no form"),
            ("a: [1\n", "expected `,` or `]`"),
            ("a: `x`\n", "text cannot begin with ``"),
            ("a: b: c\n", "`:` is not expected here"),
            ("a: !!int x\n", "not valid YAML"),
            ("a: 1\nb: 2\na: 3\n", "field `a` is given twice"),
            ("a: &x {c: 1}\n<<: *x\n", "merge keys are not supported"),
            ("a: !env SECRET\n", "unknown tag `!env`"),
            ("a: .inf\n", "`.inf` is not a valid JSON number"),
            ("? [a]\n: 1\n", "a key must be text"),
        ] {
            let found = findings("a.yaml", text);
            assert!(found.iter().any(|finding| finding.message.contains(message)), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_key_given_twice_hides_nothing_else() {
        let yaml = "titel: A\nquestions:\n  - {type: ratting, title: T, title: U}\n  - {type: email}\n";
        let json = r#"{"titel": "A", "questions": [{"type": "ratting", "title": "T", "title": 5}, {"type": "email"}]}"#;
        for (file, text) in [("a.yaml", yaml), ("a.json", json)] {
            let codes: Vec<_> = findings(file, text).into_iter().filter_map(|finding| finding.code).collect();
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
            let deep = findings(file, &level.repeat(5_000));
            assert_eq!(deep.len(), 1);
            assert_eq!(deep[0].message, "more than 16 levels of nesting");
            assert_eq!(deep[0].code.as_deref(), Some("malformed_file"));
            assert_eq!(deep[0].mark.as_ref().unwrap().place.start, 16 * level.len(), "{level}");
        }
        let by_alias = format!(
            "a: &a {}{}\nb: {}*a{}\n",
            "[".repeat(10),
            "]".repeat(10),
            "[".repeat(10),
            "]".repeat(10)
        );
        assert!(findings("a.yaml", &by_alias).iter().any(|finding| finding.message.contains("16 levels")));
    }

    #[test]
    fn a_file_of_many_problems_shows_the_first() {
        let keys: String = (0..20_000).map(|number| format!("k{number}: 1\n")).collect();
        let Err(CliError::Rejected(report)) = read_text("a.yaml", &keys, &Limits::default()) else {
            panic!()
        };
        assert_eq!(report.findings.len(), 100);
        let summary = "a.yaml: more than 100 problems found, the first 100 are shown";
        assert_eq!(report.summary.as_deref(), Some(summary));
    }
}
