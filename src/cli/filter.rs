//! `--where`, `--since` and `--until`: which submissions a list is to have, and what is wrong with that in the words
//! of the command line.

use crate::api::Code;
use crate::cli::answers;
use crate::cli::exit::CliError;
use crate::cli::spelling::similar_option;
use crate::client::ClientError;
use crate::domain::question::{Kind, Question};

/// Question, operator and value.
pub type Test = (String, String, String);

/// Reads a `--where`.
pub fn parse(text: &str) -> Result<Test, String> {
    let (name, value) = text.split_once('=').ok_or("it has no `=`; write QUESTION=VALUE")?;
    let (question, operator) = name.split_once('.').unwrap_or((name, "eq"));
    if let Some(operator) = question.chars().last().filter(|last| "<>!".contains(*last)) {
        let word = [('<', "lte"), ('>', "gte"), ('!', "ne")].into_iter().find(|(sign, _)| *sign == operator);
        let (question, word) = (question.trim_end_matches(operator), word.map_or("eq", |(_, word)| word));
        return Err(format!("write {question}.{word}={value}"));
    }
    Ok((question.to_owned(), operator.to_owned(), value.to_owned()))
}

/// Refuses the first of `tests` that is about none of the questions with these `ids`, of the form called `title`.
pub fn expect(tests: &[Test], ids: &[String], title: &str) -> Result<(), CliError> {
    let Some((unknown, ..)) = tests.iter().find(|(question, ..)| !ids.contains(question)) else {
        return Ok(());
    };
    let message = format!("--where: `{unknown}` is not a question of \"{title}\"");
    Err(CliError::usage_with_help(message, answers::instead(ids, unknown)))
}

/// The failure of a list in terms of the flags that were given: the server names parameters.
pub fn in_flags(error: CliError, tests: &[Test], questions: &[Question]) -> CliError {
    let CliError::Client { error: ClientError::Problem(mut problem), notes, mut help } = error else {
        return error;
    };
    if let Some(detail) = problem.detail.as_mut().filter(|_| problem.code == Code::InvalidQuery) {
        for test in tests {
            let (parameter, flag) =
                (format!("`filter[{}][{}]`", test.0, test.1), format!("`{}`", flag(test)));
            if detail.contains(&parameter) {
                *detail = detail.replace(&parameter, &flag);
                help = help.or_else(|| instead(test, questions));
            }
        }
        for name in ["since", "until"] {
            *detail = detail.replace(&format!("`{name}`"), &format!("`--{name}`"));
        }
    }
    CliError::Client { error: ClientError::Problem(problem), notes, help }
}

fn flag((question, operator, _): &Test) -> String {
    match operator.as_str() {
        "eq" => format!("--where {question}"),
        _ => format!("--where {question}.{operator}"),
    }
}

/// What may have been meant by a test of an option.
fn instead(test: &Test, questions: &[Question]) -> Option<String> {
    let question = questions.iter().find(|question| question.id.as_ref() == Some(&test.0))?;
    if let (Kind::MultipleChoice(_), "eq") = (&question.kind, test.1.as_str()) {
        return Some(format!("--where {}.includes={}", test.0, test.2));
    }
    let near = similar_option(question, &test.2)?;
    Some(format!("a similar option exists: {}={near}", flag(test)))
}
