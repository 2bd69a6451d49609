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
pub(in crate::cli::commands) type WhereClause = (String, String, String);

const EXPECTED: &str = "expected QUESTION=VALUE or QUESTION.OPERATOR=VALUE";

/// Parses a `--where`.
pub(in crate::cli::commands) fn parse(text: &str) -> Result<WhereClause, String> {
    let (name, value) = text.split_once('=').ok_or(EXPECTED)?;
    let (question, operator) = name.split_once('.').unwrap_or((name, "eq"));
    for (sign, operator) in [('<', "lte"), ('>', "gte"), ('!', "ne")] {
        if question.ends_with(sign) {
            return Err(format!("write {}.{operator}={value}", question.trim_end_matches(sign)));
        }
    }
    if question.is_empty() || operator.is_empty() {
        return Err(EXPECTED.to_owned());
    }
    Ok((question.to_owned(), operator.to_owned(), value.to_owned()))
}

/// Whether no answer to the form can satisfy the conditions: they are about the questions of another.
pub(in crate::cli::commands) fn can_never_match(error: &ClientError) -> bool {
    let errors = error.problem().map(|problem| &*problem.errors).unwrap_or_default();
    errors.iter().any(|one| one.code == Rule::UnknownQuestion || one.code == Rule::ImpossibleCondition)
}

/// Rewrites the server's query errors, which name parameters, in terms of the flags. `questions` are those of the form
/// `title` now; it may have had others.
pub(in crate::cli::commands) fn in_flags(
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
                let help = answers::suggest_question(&answers::answerable_ids(questions), id);
                return CliError::usage_with_help(message, help);
            }
            let allowed = violation.allowed.join(", ");
            let operators = (!allowed.is_empty()).then(|| format!("expected one of: {allowed}"));
            help = help.or_else(|| suggest(clause?, &answers::known_questions(questions))).or(operators);
            messages.push(format!("`{name}`: {}", violation.message));
        }
        problem.detail = Some(messages.join("; "));
    }
    CliError::Client { error: ClientError::Problem(problem), notes, help }
}

/// Returns the flag that set the parameter in `violation`, and its clause if it is a `--where`.
fn parameter<'a>(violation: &Violation, clauses: &'a [WhereClause]) -> (String, Option<&'a WhereClause>) {
    let steps: Vec<_> = violation.pointer.split('/').skip(1).map(unescape).collect();
    let is_match = |(id, operator, _): &&WhereClause| match &steps[..] {
        [_, question, rest @ ..] => question == id && rest.first().is_none_or(|name| name == operator),
        _ => false,
    };
    match steps.first().map(String::as_str) {
        Some("filter") => {
            let clause = clauses.iter().find(is_match);
            (clause.map_or("--where".to_owned(), |(id, operator, _)| flag(id, operator)), clause)
        }
        Some("q") => ("--search".to_owned(), None),
        name => (format!("--{}", name.unwrap_or_default()), None),
    }
}

fn flag(question: &str, operator: &str) -> String {
    match operator {
        "eq" => format!("--where {question}"),
        _ => format!("--where {question}.{operator}"),
    }
}

/// Suggests an option that is similar to the value, with an operator that can find it.
fn suggest((id, operator, value): &WhereClause, questions: &[Question]) -> Option<String> {
    let question = questions.iter().find(|question| question.id.as_ref() == Some(id))?;
    let option = similar_option(question, value)?;
    let meant = match operator.as_str() {
        "eq" | "in" if question.kind.answer_is_list() => "includes",
        other => other,
    };
    let clause = format!("{}={option}", flag(id, meant));
    match option == *value {
        false => Some(format!("a similar option exists: {clause}")),
        true => (meant != operator).then_some(clause),
    }
}
