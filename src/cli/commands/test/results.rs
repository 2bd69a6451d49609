//! Results of tests: which failed and why, and which conditions they did not cover.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::cli::input::answers::{answer_key, split_dropped};
use crate::cli::input::document::{Case, Document};
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
    /// Conditions that no test made true, or none false, with their places, for people.
    pub(super) conditions: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct TestResult {
    pub(super) name: String,
    pub(super) passed: bool,
    pub(super) file: String,
    pub(super) line: usize,
    column: usize,
    /// A line for each question that failed: the expected and the actual result.
    pub(super) failures: Vec<String>,
}

impl FormResults {
    /// Runs the tests of a form; one that does not set the time runs at `now`.
    pub(super) fn of(form: &Document, cases: &[Case], now: Timestamp) -> Option<Self> {
        let definition = form.definition()?;
        let version = Version::new(1, now, definition.questions.clone());
        let tests: Vec<_> = cases.iter().map(|case| run(&definition, &version, case, now)).collect();
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
        for TestResult { name, file, line, column, failures, .. } in
            self.tests.iter().filter(|test| !test.passed)
        {
            let failures = failures.join("\n      ");
            text += &format!("  {file}:{line}:{column}: failed: {name}\n      {failures}\n");
        }
        text.extend(self.conditions.iter().map(|condition| format!("  {condition}\n")));
        visible_lines(&text)
    }
}

fn run(definition: &Definition, version: &Version, case: &Case, now: Timestamp) -> TestResult {
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
    let (name, file, (line, column)) =
        (case.name.clone(), case.location.file.clone(), case.location.line_and_column());
    TestResult { name, passed: failures.is_empty(), file, line, column, failures }
}

/// Compares the codes of each question; returns the differences.
fn compare_errors(case: &Case, errors: &[Violation]) -> Vec<String> {
    let mut found: BTreeMap<String, BTreeMap<String, &str>> = BTreeMap::new();
    for error in errors {
        let question = error.question.clone().unwrap_or_else(|| answer_key(error));
        found.entry(question).or_default().insert(error.code.to_string(), &error.message);
    }
    let none = || "no error".to_owned();
    let compare = |id: &String| {
        let (expected, found) = (case.errors.get(id), found.get(id));
        let is_same = expected.into_iter().flatten().eq(found.into_iter().flat_map(BTreeMap::keys));
        let expected = expected.map(|codes| codes.iter().cloned().collect::<Vec<_>>().join(", "));
        let found =
            found.map(|found| found.iter().map(|(code, why)| format!("{code} ({why})")).collect::<Vec<_>>());
        let found = found.map_or_else(none, |found| found.join(", "));
        (!is_same).then(|| format!("`{id}`: expected {}, found {found}", expected.unwrap_or_else(none)))
    };
    let questions: BTreeSet<_> = case.errors.keys().chain(found.keys()).collect();
    questions.into_iter().filter_map(compare).collect()
}

/// Returns the conditions of the form that were true in none of the `cases`, and those that were false in none.
fn uncovered(form: &Document, version: &Version, cases: &[Case]) -> Vec<String> {
    let held: Vec<_> = cases.iter().map(|case| version.conditions_held(&case.answers)).collect();
    let mut uncovered = Vec::new();
    for (index, question) in version.questions.iter().enumerate() {
        for (condition, _) in question.conditions() {
            let member = usize::from(condition != "show_if");
            let was = |result| held.iter().any(|held| held[index][member] == Some(result));
            for never in [true, false].into_iter().filter(|result| !was(*result)) {
                let name = question.id.as_ref().unwrap_or(&question.title);
                let location = form.location_of(&format!("/questions/{index}/{condition}"), true);
                let (file, (line, column)) = (&location.file, location.line_and_column());
                uncovered.push(format!(
                    "{file}:{line}:{column}: `{condition}` of `{name}` was {never} in no test"
                ));
            }
        }
    }
    uncovered
}
