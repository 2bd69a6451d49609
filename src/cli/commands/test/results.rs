//! Results of tests: which failed and why, and which conditions they did not cover.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::cli::input::answers::{answer_key, split_dropped};
use crate::cli::input::document::{Case, Document};
use crate::cli::output::diagnostics::Location;
use crate::cli::output::visible_lines;
use crate::clock::Timestamp;
use crate::domain::form::Version;
use crate::domain::form::definition::Definition;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Violation;

/// Results for one form.
#[derive(Debug, Serialize)]
pub(super) struct FormResults {
    pub(super) file: String,
    passed: usize,
    pub(super) failed: usize,
    pub(super) tests: Vec<TestResult>,
    pub(super) conditions: Vec<Uncovered>,
}

#[derive(Debug, Serialize)]
pub(super) struct TestResult {
    pub(super) name: String,
    pub(super) passed: bool,
    #[serde(flatten)]
    pub(super) place: Place,
    /// What was expected of a question and what was found, for people.
    pub(super) failures: Vec<String>,
}

/// A condition with a result that it had in no test.
#[derive(Debug, Serialize)]
pub(super) struct Uncovered {
    /// The id of the question, or the title of a page without one.
    question: String,
    /// `show_if` or `required_if`.
    condition: &'static str,
    never: bool,
    #[serde(flatten)]
    place: Place,
}

/// A place in a file; line and column are from 1.
#[derive(Debug, Serialize)]
pub(super) struct Place {
    pub(super) file: String,
    pub(super) line: usize,
    column: usize,
}

impl FormResults {
    /// Runs the tests of a form; one that does not set the time runs at `now`.
    pub(super) fn of(form: &Document, cases: &[Case], now: Timestamp) -> Option<Self> {
        let definition = form.definition()?;
        let version = Version::new(1, now, definition.questions.clone());
        let tests: Vec<_> = cases.iter().map(|case| run(form, &definition, &version, case, now)).collect();
        let passed = tests.iter().filter(|test| test.passed).count();
        let conditions = if cases.is_empty() { Vec::new() } else { uncovered(form, &version, cases) };
        Some(Self { file: form.file.clone(), passed, failed: tests.len() - passed, tests, conditions })
    }

    /// Returns the report for people: the counts, then what failed, then what is not covered.
    pub(super) fn text(&self) -> String {
        let counts = match self.tests.is_empty() {
            true => "no tests".to_owned(),
            false => format!("{} passed, {} failed", self.passed, self.failed),
        };
        let mut text = format!("{}: {counts}\n", self.file);
        for TestResult { name, place, failures, .. } in self.tests.iter().filter(|test| !test.passed) {
            text += &format!("  {}: failed: {name}\n      {}\n", place.text(), failures.join("\n      "));
        }
        for Uncovered { place, question, condition, never } in &self.conditions {
            text += &format!("  {}: `{condition}` of `{question}` was {never} in no test\n", place.text());
        }
        visible_lines(&text)
    }
}

impl Place {
    fn of(form: &Document, location: Option<&Location>) -> Self {
        let (line, column) = location.map_or((1, 1), Location::line_and_column);
        Self { file: location.map_or(&form.file, |location| &location.file).clone(), line, column }
    }

    pub(super) fn text(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }
}

fn run(
    form: &Document,
    definition: &Definition,
    version: &Version,
    case: &Case,
    now: Timestamp,
) -> TestResult {
    let (now, settings) = (case.now.unwrap_or(now), &definition.settings);
    let checked = version.check(&case.answers, &Limits::default(), now, settings.language().texts());
    let (_, errors) = split_dropped(checked.err().unwrap_or_default(), settings.unknown_answers());
    let mut failures = compare_errors(case, &errors);
    let shown: Vec<_> = version.questions.iter().zip(version.shown(&case.answers)).collect();
    for (ids, expected, [wanted, found]) in
        [(&case.asked, true, ["asked", "not asked"]), (&case.not_asked, false, ["not asked", "asked"])]
    {
        let is_shown = |id: &String| shown.iter().any(|(one, shown)| one.id.as_ref() == Some(id) && *shown);
        let wrong = ids.iter().filter(|id| is_shown(id) != expected);
        failures.extend(wrong.map(|id| format!("`{id}`: expected {wanted}, found {found}")));
    }
    let place = Place::of(form, case.location.as_ref());
    TestResult { name: case.name.clone(), passed: failures.is_empty(), place, failures }
}

/// Compares the codes of each question; returns the differences.
fn compare_errors(case: &Case, errors: &[Violation]) -> Vec<String> {
    let mut found: BTreeMap<String, BTreeMap<String, &str>> = BTreeMap::new();
    for error in errors {
        let question = error.question.clone().unwrap_or_else(|| answer_key(error));
        found.entry(question).or_default().insert(error.code.to_string(), &error.message);
    }
    let questions: BTreeSet<_> = case.errors.keys().chain(found.keys()).collect();
    let compare = |id: &String| {
        let expected: Vec<_> = case.errors.get(id).into_iter().flatten().cloned().collect();
        let found: Vec<_> = found.get(id).into_iter().flatten().collect();
        let is_same = expected.iter().eq(found.iter().map(|(code, _)| *code));
        let found: Vec<_> = found.iter().map(|(code, message)| format!("{code} ({message})")).collect();
        let list =
            |codes: Vec<String>| if codes.is_empty() { "no error".to_owned() } else { codes.join(", ") };
        (!is_same).then(|| format!("`{id}`: expected {}, found {}", list(expected), list(found)))
    };
    questions.into_iter().filter_map(compare).collect()
}

/// Returns the conditions of the form that were true in none of the `cases`, and those that were false in none.
fn uncovered(form: &Document, version: &Version, cases: &[Case]) -> Vec<Uncovered> {
    let held: Vec<_> = cases.iter().map(|case| version.conditions_held(&case.answers)).collect();
    let mut uncovered = Vec::new();
    for (index, question) in version.questions.iter().enumerate() {
        for (condition, _) in question.conditions() {
            let member = usize::from(condition != "show_if");
            let was = |result| held.iter().any(|held| held[index][member] == Some(result));
            for never in [true, false].into_iter().filter(|result| !was(*result)) {
                let location = form.member(&format!("/questions/{index}/{condition}"));
                let question = question.id.clone().unwrap_or_else(|| question.title.clone());
                uncovered.push(Uncovered {
                    question,
                    condition,
                    never,
                    place: Place::of(form, location.as_ref()),
                });
            }
        }
    }
    uncovered
}
