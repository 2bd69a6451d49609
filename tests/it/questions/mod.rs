//! Every kind of question: which answers and settings it takes, and with which code and place it refuses others.
//!
//! Each answer of a table is held against the JSON Schema of its question too.

mod calendar;
mod choice;
mod contact;
mod everything;
mod matrix;
mod number;
mod patterns;
mod scale;
pub(crate) mod schema;
mod text;
mod verbatim;

use forms::clock::Timestamp;
use forms::domain::form::definition::Definition;
use forms::domain::form::{Form, Version};
use forms::domain::json::{self, Value};
use forms::domain::validation::limits::Limits;
use forms::domain::validation::violation::{Rule, Violation};
use forms::id::{FormId, WorkspaceId};

/// When the answers are checked.
const NOW: &str = "2026-11-20T23:30:00Z";

fn now() -> Timestamp {
    Timestamp::parse(NOW).unwrap()
}

/// The kind `name` with only the settings it must have.
pub(crate) fn least_settings(name: &str) -> String {
    let needed = match name {
        "single_choice" | "multiple_choice" | "ranking" => r#","options":["red","green"]"#,
        "matrix" => r#","rows":["taste","price"],"columns":["good","bad"]"#,
        _ => "",
    };
    format!(r#""type":"{name}"{needed}"#)
}

fn define(settings: &str) -> Result<Version, Vec<Violation>> {
    let text = format!(r#"{{"title":"F","questions":[{{"title":"How?",{settings}}}]}}"#);
    let definition = Definition::read(&json::parse(&text).unwrap(), &Limits::default())?;
    let (form, workspace) = (FormId::from_bytes([7; 8]), WorkspaceId::from_bytes([9; 8]));
    Ok(Form::create(form, workspace, definition, now()).1)
}

/// What `version` has against `answer` to `q1`: codes, each with its place within the answer.
fn faults(version: &Version, answer: &Value) -> Vec<String> {
    let answers = [("q1".to_owned(), answer.clone())];
    let violations = version.check(&answers, &Limits::default(), now()).err().unwrap_or_default();
    let fault = |found: &Violation| {
        assert_eq!(found.question.as_deref(), Some("q1"));
        let place = found.pointer.strip_prefix("/answers/q1").unwrap();
        format!("{}{place}", found.code.name())
    };
    violations.iter().map(fault).collect()
}

/// Holds the question with `settings` to a table of answers and the faults of each.
#[track_caller]
fn holds(settings: &str, cases: &[(&str, &[&str])]) {
    let version = define(settings).unwrap();
    for (text, expected) in cases {
        let answer = json::parse(text).unwrap();
        let found = faults(&version, &answer);
        assert_eq!(found, *expected, "{settings}: {text}");
        if !version.questions[0].kind.rules().is_empty(&answer) {
            agrees(&version, &answer, &found);
        }
    }
}

/// Codes whose rules JSON Schema can say; `out_of_range` only of numbers.
const EXACT: [Rule; 13] = [
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

/// The schema takes whatever we take, and refuses what it can.
#[track_caller]
fn agrees(version: &Version, answer: &Value, found: &[String]) {
    let schema = version.questions[0].kind.rules().schema();
    let takes = schema::takes(&schema, answer);
    assert!(takes || !found.is_empty(), "{schema} refuses {answer}");
    let can_say = |fault: &String| {
        let code = fault.split('/').next().unwrap();
        let is_number = matches!(answer, Value::Number(_));
        EXACT.iter().any(|rule| rule.name() == code && (*rule != Rule::OutOfRange || is_number))
    };
    assert!(!takes || !found.iter().any(can_say), "{schema} takes {answer}: {found:?}");
}

/// Holds tables of settings to what is wrong with them: codes, each with its place within the question.
#[track_caller]
fn refuses(cases: &[(&str, &[&str])]) {
    for (settings, expected) in cases {
        let violations = define(settings).err().unwrap_or_default();
        let fault = |found: &Violation| {
            format!("{}{}", found.code.name(), found.pointer.strip_prefix("/questions/0").unwrap())
        };
        assert_eq!(violations.iter().map(fault).collect::<Vec<_>>(), *expected, "{settings}");
    }
}

/// The question with `settings`, in canonical form, is `settings` again.
#[track_caller]
fn keeps(settings: &str) {
    let version = define(settings).unwrap();
    let kept = serde_json::to_string(&version.questions[0]).unwrap();
    let (kind, rest) = settings.split_once(',').unwrap();
    assert_eq!(kept, format!(r#"{{"id":"q1",{kind},"title":"How?","required":false,{rest}}}"#));
}
