//! `--where`, `--since` and `--until`: which submissions a list is to have, and what is wrong with that in the words
//! of the command line.

use crate::api::Code;
use crate::cli::input::answer_hints::similar_option;
use crate::cli::input::answers;
use crate::cli::output::exit::CliError;
use crate::client::ClientError;
use crate::domain::json::Value;
use crate::domain::question::Question;
use crate::domain::validation::violation::{Rule, Violation, unescape};

/// Question, operator and value.
pub(super) type Test = (String, String, String);

/// Reads a `--where`.
pub(super) fn parse(text: &str) -> Result<Test, String> {
    let (name, value) = text.split_once('=').ok_or("it has no `=`; write QUESTION=VALUE")?;
    let (question, operator) = name.split_once('.').unwrap_or((name, "eq"));
    if let Some(operator) = question.chars().last().filter(|last| "<>!".contains(*last)) {
        let word = [('<', "lte"), ('>', "gte"), ('!', "ne")].into_iter().find(|(sign, _)| *sign == operator);
        let (question, word) = (question.trim_end_matches(operator), word.map_or("eq", |(_, word)| word));
        return Err(format!("write {question}.{word}={value}"));
    }
    if question.is_empty() || operator.is_empty() {
        return Err("write QUESTION=VALUE or QUESTION.OPERATOR=VALUE".to_owned());
    }
    Ok((question.to_owned(), operator.to_owned(), value.to_owned()))
}

/// The failure of a list in terms of the flags that were given: the server names parameters. The form is called `title`
/// and has these `questions`; it may have had others.
pub(super) fn in_flags(error: CliError, tests: &[Test], questions: &[Value], title: &str) -> CliError {
    let CliError::Client { error: ClientError::Problem(mut problem), notes, mut help } = error else {
        return error;
    };
    if problem.code == Code::InvalidQuery && !problem.errors.is_empty() {
        let mut told = Vec::new();
        for violation in &problem.errors {
            let (name, test) = parameter(violation, tests);
            if let (true, Some((id, ..))) = (violation.code == Rule::UnknownQuestion, test) {
                let message = format!("--where: `{id}` is not a question of \"{title}\"");
                return CliError::usage_with_help(message, answers::instead(&answers::ids(questions), id));
            }
            let operators = || Some(violation.allowed.join(", ")).filter(|names| !names.is_empty());
            let operators = || operators().map(|names| format!("expected one of: {names}"));
            help = help.or_else(|| instead(test?, &answers::known(questions))).or_else(operators);
            told.push(format!("`{name}`: {}", violation.message));
        }
        problem.detail = Some(told.join("; "));
    }
    CliError::Client { error: ClientError::Problem(problem), notes, help }
}

/// The flag that gave the parameter which `violation` points to, and its test if it is one.
fn parameter<'a>(violation: &Violation, tests: &'a [Test]) -> (String, Option<&'a Test>) {
    let steps: Vec<_> = violation.pointer.split('/').skip(1).map(unescape).collect();
    let is_meant = |(id, operator, _): &&Test| match &steps[..] {
        [_, question, rest @ ..] => question == id && rest.first().is_none_or(|name| name == operator),
        _ => false,
    };
    match steps.first().map(String::as_str) {
        Some("filter") => {
            let test = tests.iter().find(is_meant);
            (test.map_or("--where".to_owned(), |(id, operator, _)| flag(id, operator)), test)
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

/// What may have been meant by a test: that there is no answer, or a test of an option.
fn instead((id, operator, value): &Test, questions: &[Question]) -> Option<String> {
    if value.trim().is_empty() && operator != "answered" {
        return Some(format!("{}=false", flag(id, "answered")));
    }
    let question = questions.iter().find(|question| question.id.as_ref() == Some(id))?;
    let is_list = question.kind.answer_is_list();
    let near = similar_option(question, value);
    let meant = match (operator.as_str(), &near) {
        ("eq", _) if is_list => "includes",
        ("in", Some(_)) if is_list => "includes",
        // `in` takes it for several.
        ("in", Some(near)) if near.contains(',') => "eq",
        (operator, Some(near)) if near != value => operator,
        _ => return None,
    };
    let is_near = near.as_ref().is_some_and(|near| near != value);
    let test = format!("{}={}", flag(id, meant), near.as_ref().unwrap_or(value));
    Some(if is_near { format!("a similar option exists: {test}") } else { test })
}
