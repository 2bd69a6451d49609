//! Reads form files. Strings are strings: where text is meant, an unquoted `1.10` or `null` is the text as written.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_yaml::Value as Yaml;

use super::Document;
use super::spans::{self, Node, Oddity};
use crate::cli::diagnostics::{Finding, Mark, Report};
use crate::cli::exit::CliError;
use crate::domain::json::{self, Object, Value};

/// Bytes a form file may have.
const MAX_FILE: u64 = 1 << 20;

/// Members of the file's top level that the API does not have, besides `x-…`.
const FILE_MEMBERS: [&str; 2] = ["version", "tests"];

/// Members whose value is text, whatever it looks like.
const TEXTS: [&str; 5] = ["title", "description", "placeholder", "pattern", "pattern_message"];

/// Reads the forms of the file at `path`, `-` being standard input; several stand apart by `---`.
///
/// Fails with every problem of syntax, or if the file cannot be read, is too large or holds no form.
pub fn read(path: &Path) -> Result<Vec<Document>, CliError> {
    let file = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let got = if path == Path::new("-") {
        io::stdin().lock().take(MAX_FILE + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|opened| opened.take(MAX_FILE + 1).read_to_end(&mut bytes))
    };
    got.map_err(|error| CliError::usage(format!("cannot read {file}: {}", reason(&error))))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(refuse(
            &file,
            vec![Finding::new("file_too_large", format!("{file} has more than 1 MiB"))],
        ));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let message = format!("{file} is not UTF-8 after byte {}", error.utf8_error().valid_up_to());
        refuse(&file, vec![Finding::new("malformed_file", message)])
    })?;
    read_text(&file, &text)
}

/// Reads the forms in `text`, which came from `file`.
fn read_text(file: &str, text: &str) -> Result<Vec<Document>, CliError> {
    let source = text.strip_prefix('\u{feff}').unwrap_or(text);
    let reading = Reading { file, source: Arc::from(source) };
    let is_json = Path::new(file).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let documents = if is_json { reading.json() } else { reading.yaml() };
    documents.map_err(|findings| refuse(file, findings)).and_then(|documents| {
        if documents.is_empty() {
            return Err(refuse(file, vec![Finding::new("malformed_file", format!("{file} holds no form"))]));
        }
        Ok(documents)
    })
}

fn refuse(file: &str, findings: Vec<Finding>) -> CliError {
    Report::of_file(file, findings).into()
}

/// The reason alone: the name of the file stands beside it already.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

struct Reading<'a> {
    file: &'a str,
    source: Arc<str>,
}

impl Reading<'_> {
    fn json(&self) -> Result<Vec<Document>, Vec<Finding>> {
        let value = json::parse(&self.source).map_err(|error| {
            let start = position(&self.source, error.line, error.column);
            vec![self.finding("malformed_file", error.what, start..start, None)]
        })?;
        let root = spans::walk(&self.source).ok().and_then(|mut documents| documents.roots.pop());
        Ok(vec![self.document(value, root)])
    }

    fn yaml(&self) -> Result<Vec<Document>, Vec<Finding>> {
        let walked = spans::walk(&self.source);
        if let Ok(documents) = &walked
            && !documents.oddities.is_empty()
        {
            return Err(documents.oddities.iter().map(|oddity| self.odd(oddity)).collect());
        }
        let mut roots =
            walked.as_ref().map(|documents| documents.roots.clone()).unwrap_or_default().into_iter();
        let mut documents = Vec::new();
        for document in serde_yaml::Deserializer::from_str(&self.source) {
            let value = Yaml::deserialize(document).map_err(|error| vec![self.syntax(&error)])?;
            let root = roots.next();
            if value.is_null() {
                continue;
            }
            let mut conversion = Conversion { reading: self, findings: Vec::new() };
            let value = conversion.value(&value, root.as_ref(), false, 0);
            if !conversion.findings.is_empty() {
                return Err(conversion.findings);
            }
            documents.push(self.document(value, root));
        }
        Ok(documents)
    }

    /// Takes off what only the file has.
    fn document(&self, value: Value, root: Option<Node>) -> Document {
        let mut format_version = None;
        let value = match value {
            Value::Object(members) => {
                let mut kept = Object::new();
                for (key, value) in members {
                    match key.as_str() {
                        "version" => format_version = Some(value),
                        "questions" => kept.push((key, without_was(value))),
                        _ if FILE_MEMBERS.contains(&key.as_str()) || key.starts_with("x-") => {}
                        _ => kept.push((key, value)),
                    }
                }
                Value::Object(kept)
            }
            other => other,
        };
        let source = Arc::clone(&self.source);
        Document { file: self.file.to_owned(), source, value, root, format_version }
    }

    fn odd(&self, oddity: &Oddity) -> Finding {
        match oddity {
            Oddity::Duplicate { key, place, first } => {
                let earlier = Some((first.clone(), "first given here"));
                let message = format!("field `{key}` is given twice");
                self.finding("duplicate_field", message, place.clone(), earlier)
            }
            Oddity::Merge { place } => {
                self.finding("unsupported_yaml", "merge keys are not supported", place.clone(), None)
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
        let message = error.to_string();
        // The place is drawn; in the text it would stand twice.
        let message = message.split(" at line ").next().unwrap_or(&message).to_owned();
        match error.location() {
            Some(at) => {
                let start = at.index().min(self.source.len());
                self.finding("malformed_file", message, start..start, None)
            }
            None => Finding::new("malformed_file", message),
        }
    }

    fn finding(
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

fn without_was(questions: Value) -> Value {
    let Value::Array(items) = questions else { return questions };
    let items = items.into_iter().map(|item| match item {
        Value::Object(mut members) => {
            members.retain(|(key, _)| key != "was");
            Value::Object(members)
        }
        other => other,
    });
    Value::Array(items.collect())
}

/// The byte at `line` and `column`, both from 1, columns in characters.
fn position(source: &str, line: usize, column: usize) -> usize {
    let start: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let into = source[start..].char_indices().nth(column - 1).map_or(source.len() - start, |(at, _)| at);
    start + into
}

/// Turns YAML values into JSON ones, with the text of the file at hand.
struct Conversion<'a> {
    reading: &'a Reading<'a>,
    findings: Vec<Finding>,
}

impl Conversion<'_> {
    /// `is_text`: whether text is meant here, whatever the value looks like.
    fn value(&mut self, yaml: &Yaml, node: Option<&Node>, is_text: bool, depth: usize) -> Value {
        if depth > json::MAX_DEPTH {
            self.refuse(node, format!("more than {} levels of nesting", json::MAX_DEPTH));
            return Value::Null;
        }
        let written = node
            .filter(|node| node.plain)
            .and_then(|node| self.reading.source.get(node.place.clone()))
            .filter(|text| !text.is_empty() && !text.starts_with('*'));
        match (yaml, written) {
            (Yaml::Null | Yaml::Bool(_) | Yaml::Number(_), Some(text)) if is_text => {
                Value::String(text.to_owned())
            }
            (Yaml::Null, _) => Value::Null,
            (Yaml::Bool(value), _) => Value::Bool(*value),
            (Yaml::Number(number), written) => self.number(number, written, node),
            (Yaml::String(text), _) => Value::String(text.clone()),
            (Yaml::Sequence(items), _) => {
                let item = |(place, item): (usize, &Yaml)| {
                    self.value(item, node.and_then(|node| node.item(place)), false, depth + 1)
                };
                Value::Array(items.iter().enumerate().map(item).collect())
            }
            (Yaml::Mapping(members), _) => Value::Object(self.members(members, node, is_text, depth)),
            (Yaml::Tagged(tagged), _) => self.value(&tagged.value, node, is_text, depth),
        }
    }

    fn members(
        &mut self,
        members: &serde_yaml::Mapping,
        node: Option<&Node>,
        is_labels: bool,
        depth: usize,
    ) -> Object {
        let mut object = Object::new();
        for (place, (key, value)) in members.iter().enumerate() {
            let member = node.and_then(|node| node.member(place));
            let Some(name) = key_text(key) else {
                self.refuse(node, "a key must be text".to_owned());
                continue;
            };
            let is_text = is_labels || name == "labels" || TEXTS.contains(&name.as_str());
            object.push((name, self.value(value, member.map(|member| &member.value), is_text, depth + 1)));
        }
        object
    }

    /// A number keeps the text it was written as, if JSON writes numbers like that.
    fn number(&mut self, number: &serde_yaml::Number, written: Option<&str>, node: Option<&Node>) -> Value {
        let text = number.to_string();
        let read = |text: &str| json::parse(text).ok().filter(|value| matches!(value, Value::Number(_)));
        match written.and_then(read).or_else(|| read(&text)) {
            Some(value) => value,
            None => {
                self.refuse(node, format!("`{text}` is no number in JSON"));
                Value::Null
            }
        }
    }

    fn refuse(&mut self, node: Option<&Node>, message: String) {
        let finding = match node {
            Some(node) => self.reading.finding("unsupported_yaml", message, node.place.clone(), None),
            None => Finding::new("unsupported_yaml", message),
        };
        self.findings.push(finding);
    }
}

fn key_text(key: &Yaml) -> Option<String> {
    match key {
        Yaml::String(text) => Some(text.clone()),
        Yaml::Number(number) => Some(number.to_string()),
        Yaml::Bool(value) => Some(value.to_string()),
        Yaml::Null | Yaml::Sequence(_) | Yaml::Mapping(_) | Yaml::Tagged(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::read_text;
    use crate::domain::limits::Limits;

    fn body(text: &str) -> String {
        read_text("a.yaml", text).unwrap()[0].body()
    }

    #[test]
    fn text_stays_the_text_that_was_written() {
        for written in ["1.10", "007", "yes", "null", "~", "2024-01-01", "true", "0x1F", "1e3"] {
            assert_eq!(body(&format!("title: {written}\n")), format!("{{\"title\":\"{written}\"}}"));
        }
        assert_eq!(body("title:\n"), r#"{"title":null}"#);
        assert_eq!(
            body("questions: [{labels: {1: 2, 5: no}}]"),
            r#"{"questions":[{"labels":{"1":"2","5":"no"}}]}"#
        );
    }

    #[test]
    fn what_only_the_file_has_is_taken_off() {
        let text =
            "version: 1\ntitle: T\nx-anchors: {a: 1}\ntests: []\nquestions:\n  - {was: old, type: email}\n";
        assert_eq!(body(text), r#"{"title":"T","questions":[{"type":"email"}]}"#);
        let other = &read_text("a.yaml", "version: 2\ntitle: T\n").unwrap()[0];
        assert_eq!(
            other.check(&Limits::default())[0].message,
            "`version` is that of the file format, and only 1 exists"
        );
    }

    #[test]
    fn json_and_yaml_are_one_model() {
        let text = r#"{"title": "T", "questions": [{"type": "rating", "max": 7}]}"#;
        let json = read_text("a.json", text).unwrap();
        assert_eq!(json[0].body(), body(text));
        assert_eq!(json[0].place("/questions/0/max", false), Some(55..56));
    }

    #[test]
    fn one_file_may_hold_several_forms() {
        let forms = read_text("a.yaml", "# two\n---\ntitle: A\n---\ntitle: B\n---\n").unwrap();
        assert_eq!(
            forms.iter().map(super::Document::body).collect::<Vec<_>>(),
            [r#"{"title":"A"}"#, r#"{"title":"B"}"#]
        );
        assert_eq!(forms[1].place("/title", false), Some(30..31));
    }

    #[test]
    fn what_is_no_form_file_is_refused() {
        for (text, message) in [
            ("", "a.yaml holds no form"),
            ("a: [1\n", "did not find expected ',' or ']'"),
            ("a: 1\nb: 2\na: 3\n", "field `a` is given twice"),
            ("a: &x {c: 1}\n<<: *x\n", "merge keys are not supported"),
            ("a: !env SECRET\n", "unknown tag `!env`"),
            ("a: .inf\n", "`.inf` is no number in JSON"),
            ("? [a]\n: 1\n", "a key must be text"),
        ] {
            let Err(super::CliError::Rejected(report)) = read_text("a.yaml", text) else { panic!("{text}") };
            assert!(report.findings[0].message.contains(message), "{:?}", report.findings[0].message);
        }
    }
}
