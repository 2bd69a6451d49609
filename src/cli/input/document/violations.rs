//! Violations of a definition as diagnostics, with locations and help.

use crate::api::Problem;
use crate::cli::input::aliases;
use crate::cli::input::document::Document;
use crate::cli::output::diagnostics::{Diagnostic, Location, Report};
use crate::cli::output::exit::CliError;
use crate::cli::output::wrap;
use crate::client::ClientError;
use crate::domain::integration::secret_members::env;
use crate::domain::json::Value;
use crate::domain::validation::similar::similar;
use crate::domain::validation::violation::{MAX_VIOLATIONS, Rule, Violation};

/// Width of a list of names: with its frame it fits into 80 columns.
const LIST_WIDTH: usize = 68;

/// Converts the violations of a definition to diagnostics in its file.
///
/// A missing member is left out if a misspelt one explains it.
pub(super) fn locate_violations(document: &Document, violations: &[Violation]) -> Vec<Diagnostic> {
    // Locating one takes time proportional to the file: beyond the limit only their number counts.
    let (shown, others) = violations.split_at(violations.len().min(MAX_VIOLATIONS));
    let unexplained = shown.iter().filter(|violation| !is_explained(violation, shown));
    let located = unexplained.map(|violation| Diagnostic {
        location: location(document, violation),
        ..of_violation(&document.value, &with_variable(&document.value, violation))
    });
    located.chain(others.iter().map(Diagnostic::of)).collect()
}

/// Adds to a violation of a secret the variable from which `form` takes it, or that it needs one.
fn with_variable(form: &Value, violation: &Violation) -> Violation {
    let secret = violation.pointer.strip_suffix("/value").unwrap_or(&violation.pointer);
    let secret = form.pointer(secret);
    if violation.code == Rule::SecretRequired && secret.is_some_and(|secret| secret.get("set").is_some()) {
        return violation.clone().help("use { env: NAME }, and set the variable: a file never has the value");
    }
    match secret.and_then(env) {
        Some(name) if violation.code.known() != Some(Rule::SecretRequired) => Violation {
            message: format!("environment variable `{name}`: {}", violation.message),
            ..violation.clone()
        },
        _ => violation.clone(),
    }
}

/// Converts the violations of `form`, which is not in a file, to diagnostics.
pub fn describe_violations(form: &Value, violations: &[Violation]) -> Vec<Diagnostic> {
    let describe = |violation: &Violation| {
        let diagnostic = of_violation(form, violation);
        match container(form, &violation.pointer) {
            Some(container) if !violation.message.starts_with(&container) => diagnostic.about(&container),
            _ => diagnostic,
        }
    };
    violations.iter().map(describe).collect()
}

/// Returns the name of the part of `form` that contains `pointer`; `None` if that is the form itself.
fn container(form: &Value, pointer: &str) -> Option<String> {
    let parent = parent(pointer)?.strip_prefix('/')?;
    let Some(question) = parent.strip_prefix("questions") else {
        return Some(format!("`{}`", parent.replace('/', ".")));
    };
    let index: usize = question.split('/').nth(1)?.parse().ok()?;
    let id = form.pointer(&format!("/questions/{index}/id")).and_then(Value::as_str);
    Some(id.map_or_else(|| format!("question {}", index + 1), |id| format!("question `{id}`")))
}

/// Converts a violation of `form` to a diagnostic with help.
fn of_violation(form: &Value, violation: &Violation) -> Diagnostic {
    let help = help(&invalid_text(form, violation), violation);
    Diagnostic::of(violation).help(help.map(|help| wrap(&help, LIST_WIDTH)))
}

/// Returns help for a violation: the name that `text` resembles, else the server's help, else all allowed
/// names.
pub fn help(text: &str, violation: &Violation) -> Option<String> {
    let label = match violation.code.known() {
        Some(Rule::UnknownField) if is_in_condition(violation) => "an operator with a similar name exists",
        Some(Rule::UnknownField) => "a field with a similar name exists",
        Some(Rule::UnknownReference) => "an earlier question has a similar id",
        Some(Rule::UnknownQuestionType) => "a type with a similar name exists",
        _ => "a similar name exists",
    };
    let suggestion = match nearest(text, violation) {
        Some(name) => Some(format!("{label}: `{name}`")),
        None => aliases::resolve(text, &violation.allowed).map(|(_, hint)| hint),
    };
    // Names such as `,` and `;` are quoted.
    let is_plain = violation.allowed.iter().all(|name| name.starts_with(char::is_alphanumeric));
    let quoted = || violation.allowed.iter().map(|name| format!("`{}`", name.replace('\t', "\\t"))).collect();
    let list: Vec<String> = if is_plain { violation.allowed.clone() } else { quoted() };
    let names = || Some(list.join(", ")).filter(|names| !names.is_empty());
    let allowed = || names().map(|names| format!("expected one of: {names}"));
    suggestion.or_else(|| violation.help.clone()).or_else(allowed)
}

fn location(document: &Document, violation: &Violation) -> Option<Location> {
    let mut span = document.span(&violation.pointer, is_of_name(violation))?;
    let earlier = violation.related.as_ref().and_then(|related| document.span(related, false));
    if earlier.as_ref() == Some(&span) {
        // Both are the same anchor: point to the alias instead.
        span = document.span(parent(&violation.pointer)?, false)?;
    }
    let earlier = earlier.map(|earlier| match violation.code.known() {
        Some(Rule::DuplicateQuestionId | Rule::DuplicateOption) => (earlier, "first used here"),
        _ => (earlier, "see here"),
    });
    Some(Location { label: label(violation), earlier, ..document.location(span) })
}

/// Whether the violation is about a name rather than its value.
fn is_of_name(violation: &Violation) -> bool {
    match violation.code.known() {
        Some(Rule::UnknownField | Rule::ReadOnlyField | Rule::UnknownReference | Rule::UnknownQuestion) => {
            true
        }
        Some(Rule::InvalidRange) => violation.pointer.split('/').nth(3) == Some("labels"),
        _ => false,
    }
}

fn label(violation: &Violation) -> Option<&'static str> {
    Some(match violation.code.known()? {
        Rule::UnknownField if is_in_condition(violation) => "not an operator",
        Rule::UnknownField => "not a field here",
        Rule::UnknownQuestionType => "not a question type",
        Rule::UnknownReference => "not an earlier question",
        Rule::UnknownQuestion => "not a question",
        Rule::ImpossibleCondition => "never true",
        Rule::DuplicateQuestionId | Rule::DuplicateOption => "used again here",
        Rule::ReadOnlyField => "set by the server",
        Rule::SlugTaken => "in use",
        _ => return None,
    })
}

fn is_in_condition(violation: &Violation) -> bool {
    let member = violation.pointer.split('/').nth(3);
    member.is_some_and(|member| ["show_if", "required_if", "when"].contains(&member))
}

/// Whether a missing member is explained by a misspelt one beside it.
fn is_explained(missing: &Violation, all: &[Violation]) -> bool {
    let member = missing.last_step();
    let is_misspelling = |other: &Violation| {
        let name = other.last_step();
        let alias = || aliases::resolve(&name, &other.allowed).map(|(name, _)| name);
        other.code == Rule::UnknownField
            && parent(&other.pointer) == parent(&missing.pointer)
            && nearest(&name, other).or_else(alias) == Some(&*member)
    };
    missing.code == Rule::MissingField && all.iter().any(is_misspelling)
}

fn parent(pointer: &str) -> Option<&str> {
    pointer.rsplit_once('/').map(|(parent, _)| parent)
}

/// Returns the name or text that violates the rule.
fn invalid_text(form: &Value, violation: &Violation) -> String {
    match form.pointer(&violation.pointer) {
        Some(Value::String(text)) if !is_of_name(violation) => text.clone(),
        _ => violation.last_step(),
    }
}

/// Returns the allowed name most similar to `text`.
fn nearest<'a>(text: &str, violation: &'a Violation) -> Option<&'a str> {
    similar(text, violation.allowed.iter().map(String::as_str))
}

/// Creates the error for a `form` that the server refuses, with its violations located in the form's file if it has one.
pub fn refused(document: Option<&Document>, form: &Value, error: ClientError) -> CliError {
    match (error, document) {
        (ClientError::Problem(problem), Some(document)) if !problem.errors.is_empty() => {
            let diagnostics = locate_violations(document, &problem.errors);
            Report { problem: *problem, ..Report::of_file(&document.file, diagnostics) }.into()
        }
        (ClientError::Problem(problem), None) if !problem.errors.is_empty() => {
            not_stored(describe_violations(form, &problem.errors), *problem)
        }
        (error, _) => error.into(),
    }
}

/// Creates the error for a form that is not in a file.
pub fn not_stored(diagnostics: Vec<Diagnostic>, problem: Problem) -> CliError {
    Report::with_outcome(diagnostics, "nothing was stored", problem).into()
}
