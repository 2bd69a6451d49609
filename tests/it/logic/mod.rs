//! Conditions, pages, statements and hidden questions: which questions are shown and required.

mod definitions;
mod entry_points;
mod hidden_and_display;
mod kinds;
pub(crate) mod random;
mod schema;
mod visibility;

use forms::clock::Timestamp;
use forms::domain::form::definition::Definition;
use forms::domain::form::{Form, Version};
use forms::domain::json::{self, Object, Value};
use forms::domain::language::ENGLISH;
use forms::domain::validation::limits::Limits;
use forms::domain::validation::violation::Violation;
use forms::id::{FormId, WorkspaceId};

/// The time of every check; no rule here depends on it.
fn now() -> Timestamp {
    Timestamp::from_millis(1_000)
}

fn read(questions: &str) -> Result<Definition, Vec<Violation>> {
    let text = format!(r#"{{"title":"F","questions":[{questions}]}}"#);
    Definition::read(&json::parse(&text).unwrap(), &Limits::default())
}

fn form(questions: &str) -> (Form, Version) {
    let definition = read(questions).unwrap_or_else(|violations| panic!("{questions}: {violations:?}"));
    let (id, workspace) = (FormId::from_bytes([1; 8]), WorkspaceId::from_bytes([2; 8]));
    Form::create(id, workspace, definition, now())
}

fn version(questions: &str) -> Version {
    form(questions).1
}

fn object(text: &str) -> Object {
    match json::parse(text).unwrap() {
        Value::Object(members) => members,
        other => panic!("{other} is not an object"),
    }
}

/// The violations of `answers`: questions and codes.
fn check(version: &Version, answers: &str) -> Vec<(String, &'static str)> {
    let found = version.check(&object(answers), &Limits::default(), now(), ENGLISH).err().unwrap_or_default();
    let pair = |found: Violation| {
        let id = found.pointer.strip_prefix("/answers/").unwrap();
        assert!(found.question.is_none_or(|question| question == id), "{}", found.pointer);
        (id.to_owned(), found.code.known().unwrap().name())
    };
    found.into_iter().map(pair).collect()
}

/// Pointers and codes, sorted by pointer.
fn pointers(violations: &[Violation]) -> Vec<(&str, &str)> {
    let mut pointers: Vec<_> =
        violations.iter().map(|found| (found.pointer.as_str(), found.code.known().unwrap().name())).collect();
    pointers.sort_unstable();
    pointers
}
