//! Every question type: which answers and settings it accepts, and the code and pointer of each violation.
//!
//! Each answer is also validated against the JSON Schema of its question.

mod all_kinds;
mod choice;
mod contact;
mod date_time;
pub(crate) mod json_schema;
mod matrix;
mod number;
mod patterns;
mod scale;
mod text;
mod verbatim;

use forms::clock::Timestamp;
use forms::domain::form::definition::Definition;
use forms::domain::form::settings::UnknownAnswers;
use forms::domain::form::{Form, Version};
use forms::domain::json::{self, Value};
use forms::domain::language::ENGLISH;
use forms::domain::validation::limits::Limits;
use forms::domain::validation::violation::{Rule, Violation};
use forms::id::{FormId, WorkspaceId};

/// The time of every check.
const NOW: &str = "2026-11-20T23:30:00Z";

fn now() -> Timestamp {
    Timestamp::parse(NOW).unwrap()
}

/// The type `name` with only its required settings.
pub(crate) fn required_settings(name: &str) -> String {
    let required = match name {
        "single_choice" | "multiple_choice" | "ranking" => r#","options":["red","green"]"#,
        "matrix" => r#","rows":["taste","price"],"columns":["good","bad"]"#,
        _ => "",
    };
    format!(r#""type":"{name}"{required}"#)
}

fn define(settings: &str) -> Result<Version, Vec<Violation>> {
    let text = format!(r#"{{"title":"F","questions":[{{"title":"How?",{settings}}}]}}"#);
    let definition = Definition::read(&json::parse(&text).unwrap(), &Limits::default())?;
    let (form, workspace) = (FormId::from_bytes([7; 8]), WorkspaceId::from_bytes([9; 8]));
    Ok(Form::create(form, workspace, definition, now()).1)
}

/// The violations of `answer` to `q1`: codes, each with the pointer within the answer.
fn violations(version: &Version, answer: &Value) -> Vec<String> {
    let answers = [("q1".to_owned(), answer.clone())];
    let violations = version.check(&answers, &Limits::default(), now(), ENGLISH).err().unwrap_or_default();
    let describe = |found: &Violation| {
        assert_eq!(found.question.as_deref(), Some("q1"));
        let place = found.pointer.strip_prefix("/answers/q1").unwrap();
        format!("{}{place}", found.code)
    };
    violations.iter().map(describe).collect()
}

/// A question with `settings`.
fn question(settings: &str) -> Question {
    Question(define(settings).unwrap())
}

/// A form with one question.
struct Question(Version);

impl Question {
    /// Checks JSON lists of answers, and the violations that each answer of a list has.
    #[track_caller]
    fn check(&self, cases: &[(&str, &[&str])]) {
        let question = &self.0.questions[0];
        for (list, expected) in cases {
            for answer in json::parse(list).unwrap().as_array().unwrap() {
                let found = violations(&self.0, answer);
                assert_eq!(found, *expected, "{question:?}: {answer}");
                if !question.kind.rules().is_empty(answer) {
                    check_schema_agrees(&self.0, answer, &found);
                }
            }
        }
    }
}

/// Codes of rules that JSON Schema can express; `out_of_range` only for numbers.
const EXPRESSIBLE: [Rule; 13] = [
    Rule::OutOfRange,
    Rule::TypeMismatch,
    Rule::TooShort,
    Rule::TooLong,
    Rule::InvalidCharacter,
    Rule::InvalidTime,
    Rule::NotAnInteger,
    Rule::NotAnOption,
    Rule::DuplicateOption,
    Rule::TooFew,
    Rule::TooMany,
    Rule::UnknownRow,
    Rule::Required,
];

/// Fails unless the schema accepts every valid answer and refuses each violation that it can express.
#[track_caller]
fn check_schema_agrees(version: &Version, answer: &Value, found: &[String]) {
    let whole = version.schema("F", UnknownAnswers::Reject);
    let schema = whole.get("properties").and_then(|properties| properties.get("q1")).unwrap();
    let is_accepted = json_schema::accepts(schema, answer);
    assert!(is_accepted || !found.is_empty(), "{schema} refuses {answer}");
    let is_expressible = |violation: &String| {
        let code = violation.split('/').next().unwrap();
        let is_number = matches!(answer, Value::Number(_));
        EXPRESSIBLE.iter().any(|rule| rule.name() == code && (*rule != Rule::OutOfRange || is_number))
    };
    assert!(!is_accepted || !found.iter().any(is_expressible), "{schema} accepts {answer}: {found:?}");
}

/// Checks the violations of each set of settings: codes, each with the pointer within the question.
#[track_caller]
fn check_settings(cases: &[(&str, &[&str])]) {
    for (settings, expected) in cases {
        let violations = define(settings).err().unwrap_or_default();
        let describe = |found: &Violation| {
            let place = found.pointer.strip_prefix("/questions/0").unwrap();
            format!("{}{place}", found.code.known().unwrap().name())
        };
        assert_eq!(violations.iter().map(describe).collect::<Vec<_>>(), *expected, "{settings}");
    }
}

/// Fails unless the canonical form of a question with `settings` equals `settings`, in whatever order they are written.
#[track_caller]
fn check_canonical(settings: &str) {
    let Value::Object(mut members) = json::parse(&format!("{{{settings}}}")).unwrap() else { unreachable!() };
    members.reverse();
    members.push(("description".to_owned(), Value::Null));
    let reversed = Value::Object(members).to_string();
    let version = define(&reversed[1..reversed.len() - 1]).unwrap();
    let kept = serde_json::to_string(&version.questions[0]).unwrap();
    let (kind, rest) = settings.split_once(',').unwrap();
    assert_eq!(kept, format!(r#"{{"id":"q1",{kind},"title":"How?","required":false,{rest}}}"#));
}
