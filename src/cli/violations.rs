//! Broken rules of a definition as findings: what is said of each, what to do about it, and where it stands.

use crate::cli::diagnostics::{Finding, Mark};
use crate::cli::document::Document;
use crate::cli::elsewhere;
use crate::cli::output::wrapped;
use crate::cli::similar::similar;
use crate::domain::definition::Definition;
use crate::domain::json::Value;
use crate::domain::limits::Limits;
use crate::domain::violation::{MOST_VIOLATIONS, Rule, Violation};

/// Characters that a line of names has, so that it fits into 80 columns with its frame.
const LIST_WIDTH: usize = 68;

/// Draws the broken rules of a definition in the file it came from.
///
/// A member that is missing is not told where a misspelt one explains it.
pub fn draw_violations(document: &Document, violations: &[Violation]) -> Vec<Finding> {
    // The time to draw one grows with the file: of those that nobody will see only the number counts.
    let (shown, others) = violations.split_at(violations.len().min(MOST_VIOLATIONS));
    let told = shown.iter().filter(|violation| !is_explained(violation, shown));
    let drawn = told.map(|violation| of_violation(document, violation));
    let named = |other: &Violation| Finding::new(other.code.name(), other.message.clone());
    drawn.chain(others.iter().map(named)).collect()
}

/// Tells of the broken rules of `form`, which stands in no file and was refused by a server.
pub fn tell_violations(form: &Value, violations: &[Violation]) -> Vec<Finding> {
    // A server does not send the names that would have been right.
    let here = Definition::read(form, &Limits::BOUNDLESS).err().unwrap_or_default();
    let told = |violation: &Violation| {
        let is_same = |known: &&Violation| known.pointer == violation.pointer && known.code == violation.code;
        let candidates = here.iter().find(is_same).map(|known| known.candidates.clone()).unwrap_or_default();
        let finding = plain_violation(&Violation { candidates, ..violation.clone() });
        match question(form, violation).or_else(|| member(violation)) {
            Some(place) => finding.about(&place),
            None => finding,
        }
    };
    violations.iter().map(told).collect()
}

/// The member that breaks a rule, unless it is a question's or the message names it.
fn member(violation: &Violation) -> Option<String> {
    let path = violation.pointer.strip_prefix('/').filter(|path| !path.starts_with("questions"))?;
    let is_named = path.split('/').any(|name| violation.message.contains(name));
    (!is_named).then(|| format!("`{}`", path.replace('/', ".")))
}

/// What a person calls the question of `form` that breaks a rule, unless the message does.
fn question(form: &Value, violation: &Violation) -> Option<String> {
    let place: usize = violation.pointer.strip_prefix("/questions/")?.split('/').next()?.parse().ok()?;
    let Value::Array(questions) = form.get("questions")? else { return None };
    let number = format!("question {}", place + 1);
    let name = match questions.get(place)?.get("id") {
        Some(Value::String(id)) => format!("question `{id}`"),
        _ => number.clone(),
    };
    Some(name).filter(|_| !violation.message.contains(&number))
}

fn of_violation(document: &Document, violation: &Violation) -> Finding {
    let told = plain_violation(violation);
    let help = told.help.clone().or_else(|| rewritten(document, violation));
    Finding { mark: mark(document, violation), help, ..told }
}

fn plain_violation(violation: &Violation) -> Finding {
    // The drawing shows an earlier place, and a name that is near makes up for all others.
    let message = violation.message.split(", first by ").next().unwrap_or_default();
    let advised = ["; known are ", "; write "].into_iter().find_map(|word| message.find(word));
    let (message, advice) =
        advised.map_or((message, None), |at| (&message[..at], message.get(at + "; ".len()..)));
    let advice = || advice.map(str::to_owned).or_else(|| known(violation));
    let advice = || advice().map(|advice| wrapped(&advice, LIST_WIDTH));
    let help = meant(violation).or_else(|| remedy(violation)).or_else(advice);
    Finding { help, violation: Some(violation.clone()), ..Finding::new(violation.code.name(), message) }
}

/// The name that was meant by one that there is not.
fn meant(violation: &Violation) -> Option<String> {
    let what = match violation.code {
        Rule::UnknownField if is_in_condition(violation) => "an operator with a similar name exists",
        Rule::UnknownField => "a field with a similar name exists",
        Rule::UnknownReference => "an earlier question has a similar id",
        Rule::UnknownQuestionType => "a type with a similar name exists",
        _ => return None,
    };
    let written = written(violation);
    match nearest(&written, violation) {
        Some(name) => Some(format!("{what}: `{name}`")),
        None if violation.code == Rule::UnknownReference => None,
        None => elsewhere::meant(&written, &violation.candidates).and_then(|_| elsewhere::help(&written)),
    }
}

/// What to do about a rule that is broken by no name.
fn remedy(violation: &Violation) -> Option<String> {
    match violation.code {
        Rule::DuplicateQuestionId => {
            Some("every question needs its own id: answers are stored under it".to_owned())
        }
        Rule::SlugTaken => {
            violation.message.split('`').nth(1).map(|slug| format!("to change that form: forms edit {slug}"))
        }
        _ => None,
    }
}

/// All the names that there are.
fn known(violation: &Violation) -> Option<String> {
    let is_field = violation.code == Rule::UnknownField && !violation.candidates.is_empty();
    is_field.then(|| format!("known are {}", violation.candidates.join(", ")))
}

/// How what was meant is written, where YAML takes it for something else.
fn rewritten(document: &Document, violation: &Violation) -> Option<String> {
    let written = document.unquoted(&violation.pointer)?;
    let is_meant_as = |what: &str| violation.message.contains(&format!("{what}, not "));
    match written.to_lowercase().as_str() {
        "yes" | "on" if is_meant_as("true or false") => Some("write `true`".to_owned()),
        "no" | "off" if is_meant_as("true or false") => Some("write `false`".to_owned()),
        _ if is_meant_as("text") && !violation.pointer.ends_with("/id") => {
            Some(format!("quote it: \"{written}\""))
        }
        _ => None,
    }
}

fn mark(document: &Document, violation: &Violation) -> Option<Mark> {
    let is_label = || violation.pointer.split('/').nth(3) == Some("labels");
    let at_key = match violation.code {
        Rule::UnknownField | Rule::ReadOnlyField | Rule::UnknownReference => true,
        Rule::InvalidRange => is_label(),
        _ => false,
    };
    let mut place = document.place(&violation.pointer, at_key)?;
    let mut earlier = None;
    if violation.code == Rule::DuplicateQuestionId {
        let first = document.place_of_id(violation.question.as_deref().unwrap_or_default());
        if first.as_ref() == Some(&place) {
            // The question is named by an alias.
            place = document.place(violation.pointer.trim_end_matches("/id"), false)?;
        }
        earlier = first.map(|first| (first, "first used here"));
    }
    Some(document.mark(place, label(violation), earlier))
}

fn label(violation: &Violation) -> Option<&'static str> {
    let in_question = violation.pointer.starts_with("/questions/");
    Some(match violation.code {
        Rule::UnknownField if is_in_condition(violation) => "not an operator",
        Rule::UnknownField if in_question => "not a field of this question",
        Rule::UnknownField if violation.pointer.starts_with("/settings/") => "not a setting",
        Rule::UnknownField => "not a form field",
        Rule::UnknownQuestionType => "not a question type",
        Rule::UnknownReference => "not an earlier question",
        Rule::ImpossibleCondition => "never true",
        Rule::DuplicateQuestionId => "used again here",
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
    missing.code == Rule::MissingField
        && all.iter().any(|other| {
            let beside = parent(&other.pointer) == parent(&missing.pointer);
            let written = written(other);
            let meant = nearest(&written, other).or_else(|| elsewhere::meant(&written, &other.candidates));
            other.code == Rule::UnknownField
                && beside
                && meant.is_some_and(|name| missing.candidates.iter().any(|missing| missing == name))
        })
}

/// The pointer to what holds the member that `pointer` names.
fn parent(pointer: &str) -> Option<&str> {
    pointer.rsplit_once('/').map(|(parent, _)| parent)
}

/// The name that breaks a rule: the last of the pointer, or that which the message quotes.
fn written(violation: &Violation) -> String {
    match violation.code {
        Rule::UnknownField | Rule::UnknownQuestion | Rule::UnknownReference => {
            let name = violation.pointer.rsplit('/').next().unwrap_or_default();
            name.replace("~1", "/").replace("~0", "~")
        }
        _ => violation.message.split('`').nth(1).unwrap_or_default().to_owned(),
    }
}

/// The candidate that is most like what is `written`.
fn nearest<'a>(written: &str, violation: &'a Violation) -> Option<&'a str> {
    similar(written, violation.candidates.iter().map(String::as_str))
}
