//! `--where`, `--since` and `--until`: parsing, and errors in terms of these flags.

use crate::api::Code;
use crate::cli::input::answer_hints::similar_option;
use crate::cli::input::answers;
use crate::cli::output::exit::CliError;
use crate::client::ClientError;
use crate::domain::json::Value;
use crate::domain::question::Question;
use crate::domain::validation::violation::{Rule, Violation, unescape};

/// Question, operator and value.
pub(super) type WhereClause = (String, String, String);

/// Parses a `--where`.
pub(super) fn parse(text: &str) -> Result<WhereClause, String> {
    let (name, value) = text.split_once('=').ok_or("expected QUESTION=VALUE")?;
    let (question, operator) = name.split_once('.').unwrap_or((name, "eq"));
    if let Some(operator) = question.chars().last().filter(|last| "<>!".contains(*last)) {
        let word = [('<', "lte"), ('>', "gte"), ('!', "ne")].into_iter().find(|(sign, _)| *sign == operator);
        let (question, word) = (question.trim_end_matches(operator), word.map_or("eq", |(_, word)| word));
        return Err(format!("write {question}.{word}={value}"));
    }
    if question.is_empty() || operator.is_empty() {
        return Err("expected QUESTION=VALUE or QUESTION.OPERATOR=VALUE".to_owned());
    }
    Ok((question.to_owned(), operator.to_owned(), value.to_owned()))
}

/// Rewrites the server's query errors, which name parameters, in terms of the flags. `questions` are those of the form
/// `title` now; it may have had others.
pub(super) fn in_flags(
    error: CliError,
    clauses: &[WhereClause],
    questions: &[Value],
    title: &str,
) -> CliError {
    let CliError::Client { error: ClientError::Problem(mut problem), notes, mut help } = error else {
        return error;
    };
    if problem.code == Code::InvalidQuery && !problem.errors.is_empty() {
        let mut messages = Vec::new();
        for violation in &problem.errors {
            let (name, clause) = parameter(violation, clauses);
            if let (true, Some((id, ..))) = (violation.code == Rule::UnknownQuestion, clause) {
                let message = format!("--where: `{id}` is not a question of \"{title}\"");
                return CliError::usage_with_help(
                    message,
                    answers::suggest_question(&answers::answerable_ids(questions), id),
                );
            }
            let operators = || Some(violation.allowed.join(", ")).filter(|names| !names.is_empty());
            let operators = || operators().map(|names| format!("expected one of: {names}"));
            help = help.or_else(|| instead(clause?, &answers::known_questions(questions))).or_else(operators);
            messages.push(format!("`{name}`: {}", violation.message));
        }
        problem.detail = Some(messages.join("; "));
    }
    CliError::Client { error: ClientError::Problem(problem), notes, help }
}

/// Returns the flag that set the parameter in `violation`, and its clause if it is a `--where`.
fn parameter<'a>(violation: &Violation, clauses: &'a [WhereClause]) -> (String, Option<&'a WhereClause>) {
    let steps: Vec<_> = violation.pointer.split('/').skip(1).map(unescape).collect();
    let is_meant = |(id, operator, _): &&WhereClause| match &steps[..] {
        [_, question, rest @ ..] => question == id && rest.first().is_none_or(|name| name == operator),
        _ => false,
    };
    match steps.first().map(String::as_str) {
        Some("filter") => {
            let clause = clauses.iter().find(is_meant);
            (clause.map_or("--where".to_owned(), |(id, operator, _)| flag(id, operator)), clause)
        }
        name => (format!("--{}", name.unwrap_or_default()), None),
    }
}

fn flag(question: &str, operator: &str) -> String {
    match operator {
        "eq" => format!("--where {question}"),
        _ => format!("--where {question}.{operator}"),
    }
}

/// Suggests the clause that was probably meant: a missing answer, or a similar option.
fn instead((id, operator, value): &WhereClause, questions: &[Question]) -> Option<String> {
    if value.trim().is_empty() && operator != "answered" {
        return Some(format!("{}=false", flag(id, "answered")));
    }
    let question = questions.iter().find(|question| question.id.as_ref() == Some(id))?;
    let is_list = question.kind.answer_is_list();
    let near = similar_option(question, value);
    let meant = match (operator.as_str(), &near) {
        ("eq", _) if is_list => "includes",
        ("in", Some(_)) if is_list => "includes",
        // `in` would split it at the comma.
        ("in", Some(near)) if near.contains(',') => "eq",
        (operator, Some(near)) if near != value => operator,
        _ => return None,
    };
    let is_near = near.as_ref().is_some_and(|near| near != value);
    let clause = format!("{}={}", flag(id, meant), near.as_ref().unwrap_or(value));
    Some(if is_near { format!("a similar option exists: {clause}") } else { clause })
}
