//! Broken rules of a definition as findings: what is wrong, what to do about it, and where it is.

use crate::api::Problem;
use crate::cli::input::aliases;
use crate::cli::input::document::Document;
use crate::cli::output::diagnostics::{Finding, Mark, Report};
use crate::cli::output::exit::CliError;
use crate::cli::output::wrapped;
use crate::domain::json::Value;
use crate::domain::validation::similar::similar;
use crate::domain::validation::violation::{MAX_VIOLATIONS, Rule, Violation};

/// Characters that a line of names has, so that it fits into 80 columns with its frame.
const LIST_WIDTH: usize = 68;

/// Draws the broken rules of a definition in the file it came from.
///
/// A missing member is left out where a misspelt one explains it.
pub fn draw_violations(document: &Document, violations: &[Violation]) -> Vec<Finding> {
    // The time to draw one grows with the file: of those that nobody will see only the number counts.
    let (shown, others) = violations.split_at(violations.len().min(MAX_VIOLATIONS));
    let told = shown.iter().filter(|violation| !is_explained(violation, shown));
    let drawn = told.map(|violation| Finding {
        mark: mark(document, violation),
        ..of_violation(document.value(), violation)
    });
    drawn.chain(others.iter().map(Finding::of)).collect()
}

/// Reports the broken rules of `form`, which is in no file.
pub fn tell_violations(form: &Value, violations: &[Violation]) -> Vec<Finding> {
    let told = |violation: &Violation| {
        let finding = of_violation(form, violation);
        match container(form, &violation.pointer) {
            Some(place) => finding.about(&place),
            None => finding,
        }
    };
    violations.iter().map(told).collect()
}

/// What a person calls the part of `form` that has the member that `pointer` names; `None` if that is the form itself.
fn container(form: &Value, pointer: &str) -> Option<String> {
    let parent = parent(pointer)?.strip_prefix('/')?;
    let Some(place) = parent.strip_prefix("questions") else {
        return Some(format!("`{}`", parent.replace('/', ".")));
    };
    let place: usize = place.split('/').nth(1)?.parse().ok()?;
    Some(match form.pointer(&format!("/questions/{place}/id")) {
        Some(Value::String(id)) => format!("question `{id}`"),
        _ => format!("question {}", place + 1),
    })
}

/// A broken rule of `form` with what to do about it.
fn of_violation(form: &Value, violation: &Violation) -> Finding {
    let help = help(&written(form, violation), violation);
    Finding::of(violation).help(help.map(|help| wrapped(&help, LIST_WIDTH)))
}

/// What to do about a broken rule: the name that was meant by the `written` one, else the command or the server's words that
/// help, else all that is allowed.
pub fn help(written: &str, violation: &Violation) -> Option<String> {
    meant(written, violation).or_else(|| violation.help.clone()).or_else(|| allowed(violation))
}

/// The name that was meant by the `written` one.
fn meant(written: &str, violation: &Violation) -> Option<String> {
    let what = match violation.code.known() {
        Some(Rule::UnknownField) if is_in_condition(violation) => "an operator with a similar name exists",
        Some(Rule::UnknownField) => "a field with a similar name exists",
        Some(Rule::UnknownReference) => "an earlier question has a similar id",
        Some(Rule::UnknownQuestionType) => "a type with a similar name exists",
        _ => "a similar name exists",
    };
    match nearest(written, violation) {
        Some(name) => Some(format!("{what}: `{name}`")),
        None => aliases::meant(written, &violation.allowed).and_then(|_| aliases::help(written)),
    }
}

/// The names that are right.
fn allowed(violation: &Violation) -> Option<String> {
    let names = violation.allowed.join(", ");
    (!names.is_empty()).then(|| format!("expected one of: {names}"))
}

fn mark(document: &Document, violation: &Violation) -> Option<Mark> {
    let mut place = document.place(&violation.pointer, is_of_name(violation))?;
    let earlier = violation.related.as_ref().and_then(|related| document.place(related, false));
    if earlier.as_ref() == Some(&place) {
        // Both are one anchor: the later place is where an alias names it.
        place = document.place(parent(&violation.pointer)?, false)?;
    }
    let earlier = earlier.map(|earlier| match violation.code.known() {
        Some(Rule::DuplicateQuestionId | Rule::DuplicateOption) => (earlier, "first used here"),
        _ => (earlier, "see here"),
    });
    Some(document.mark(place, label(violation), earlier))
}

/// Whether a name breaks the rule, and not the value behind it.
fn is_of_name(violation: &Violation) -> bool {
    match violation.code.known() {
        Some(Rule::UnknownField | Rule::ReadOnlyField | Rule::UnknownReference) => true,
        Some(Rule::InvalidRange) => violation.pointer.split('/').nth(3) == Some("labels"),
        _ => false,
    }
}

fn label(violation: &Violation) -> Option<&'static str> {
    let in_question = violation.pointer.starts_with("/questions/");
    Some(match violation.code.known()? {
        Rule::UnknownField if is_in_condition(violation) => "not an operator",
        Rule::UnknownField if in_question => "not a field of this question",
        Rule::UnknownField if violation.pointer.starts_with("/settings/") => "not a setting",
        Rule::UnknownField => "not a form field",
        Rule::UnknownQuestionType => "not a question type",
        Rule::UnknownReference => "not an earlier question",
        Rule::ImpossibleCondition => "never true",
        Rule::DuplicateQuestionId | Rule::DuplicateOption => "used again here",
        Rule::ReadOnlyField => "set by the server",
        Rule::SlugTaken => "in use",
        _ => return None,
    })
}

fn is_in_condition(violation: &Violation) -> bool {
    let member = violation.pointer.split('/').nth(3);
    member.is_some_and(|member| member == "show_if" || member == "required_if")
}

/// Whether a missing member is one that a misspelt member beside it was meant to be.
fn is_explained(missing: &Violation, all: &[Violation]) -> bool {
    let name = missing.last_step();
    missing.code == Rule::MissingField
        && all.iter().any(|other| {
            let beside = parent(&other.pointer) == parent(&missing.pointer);
            let written = other.last_step();
            let meant = || nearest(&written, other).or_else(|| aliases::meant(&written, &other.allowed));
            other.code == Rule::UnknownField && beside && meant() == Some(&*name)
        })
}

/// The pointer to what holds the member that `pointer` names.
fn parent(pointer: &str) -> Option<&str> {
    pointer.rsplit_once('/').map(|(parent, _)| parent)
}

/// The name or text that breaks a rule.
fn written(form: &Value, violation: &Violation) -> String {
    match form.pointer(&violation.pointer) {
        Some(Value::String(text)) if !is_of_name(violation) => text.clone(),
        _ => violation.last_step(),
    }
}

/// The allowed name that is most like what is `written`.
fn nearest<'a>(written: &str, violation: &'a Violation) -> Option<&'a str> {
    similar(written, violation.allowed.iter().map(String::as_str))
}

/// All that is wrong with `form`, which stands in no file.
pub fn rejected(form: &Value, violations: &[Violation], problem: Problem) -> CliError {
    not_stored(tell_violations(form, violations), problem)
}

pub fn not_stored(findings: Vec<Finding>, problem: Problem) -> CliError {
    Report::with_outcome(findings, "nothing was stored", problem).into()
}
