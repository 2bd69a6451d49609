//! `q1=hello` on the command line: answers read by the type of the question they are for.

use serde_json::value::RawValue;

use crate::api::{Code, FormDetail, Problem};
use crate::cli::diagnostics::{Finding, Report, similar};
use crate::cli::exit::{CliError, Exit};
use crate::client::ClientError;
use crate::domain::form::{Status, Version};
use crate::domain::json::{self, Object, Value};
use crate::domain::limits::Limits;
use crate::domain::question::{Question, QuestionDraft};
use crate::domain::violation::{Rule, Violation, join};

/// `KEY=VALUE`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    key: String,
    text: String,
}

/// Takes the arguments apart.
pub fn parse(arguments: &[String]) -> Result<Vec<Given>, CliError> {
    let mut given: Vec<Given> = Vec::new();
    for argument in arguments {
        let Some((key, text)) = argument.split_once('=') else {
            let help = "answers are KEY=VALUE, such as q1=hello";
            return Err(CliError::usage_with_help(format!("`{argument}` has no `=`"), help));
        };
        if key.ends_with(':') {
            let message = format!("`{argument}`: raw JSON with `:=` does not exist in this version");
            return Err(CliError::usage(message));
        }
        if text.starts_with('@') {
            let message = format!("`{argument}`: answers from files do not exist in this version");
            let help = format!("to send a text that begins with @: '{key}=\\{text}'");
            return Err(CliError::usage_with_help(message, help));
        }
        if given.iter().any(|earlier| earlier.key == key) {
            return Err(CliError::usage(format!("`{key}` is answered twice")));
        }
        let text = if text.starts_with("\\@") { &text[1..] } else { text };
        given.push(Given { key: key.to_owned(), text: text.to_owned() });
    }
    Ok(given)
}

/// The answers as a JSON object for `form`, if it takes them; sizes are for the server to say.
pub fn fit(form: &FormDetail, given: &[Given]) -> Result<String, CliError> {
    if form.status == Status::Draft {
        return Err(draft(form));
    }
    let listed = questions(&form.questions);
    let (questions, ids) = (known(&listed), ids(&listed));
    let mut findings = Vec::new();
    let mut answers = Object::new();
    for Given { key, text } in given {
        match questions.iter().find(|question| question.id.as_deref() == Some(key)) {
            Some(question) => answers.push((key.clone(), convert(question, text))),
            // Of a type that this version does not know: the server does.
            None if ids.contains(key) => answers.push((key.clone(), Value::String(text.clone()))),
            None => findings.push(unknown(form, &ids, key)),
        }
    }
    // Where there is a type that this version does not know, the server checks: what is asked may depend on it.
    let violations =
        if questions.len() == listed.len() { check(form, questions.clone(), &answers) } else { Vec::new() };
    for violation in violations {
        let id = violation.question.as_deref().unwrap_or_default();
        let near_miss = |finding: &Finding| finding.help.as_deref() == Some(&similar_help(id));
        if violation.code == Rule::Required && findings.iter().any(near_miss) {
            continue;
        }
        findings.push(wrong(&questions, violation));
    }
    if findings.is_empty() { Ok(Value::Object(answers).to_string()) } else { Err(not_sent(findings).into()) }
}

/// Everything about `answers` that the form's rules refuse.
fn check(form: &FormDetail, questions: Vec<Question>, answers: &Object) -> Vec<Violation> {
    let version = Version { number: form.version, created_at: form.created_at, questions };
    version.check(answers, &Limits::BOUNDLESS).err().unwrap_or_default()
}

/// The server's refusal of the answers, in the same shape as our own.
pub fn refused(form: &FormDetail, error: ClientError) -> CliError {
    match error {
        ClientError::Problem(problem) if !problem.errors.is_empty() => {
            let findings = problem.errors.iter().map(|violation| Finding {
                violation: Some(violation.clone()),
                ..Finding::new(violation.code.name(), violation.message.clone())
            });
            not_sent(findings.collect()).into()
        }
        ClientError::Problem(problem) if problem.code == Code::FormNotPublished => draft(form),
        ClientError::Unsure(_) => CliError::of_client(error, format!("forms responses {}", form.id)),
        other => other.into(),
    }
}

/// The questions of a form, as the API gave them.
pub fn questions(list: &RawValue) -> Vec<Value> {
    match json::parse(list.get()) {
        Ok(Value::Array(questions)) => questions,
        _ => Vec::new(),
    }
}

/// The ids of those that take an answer: they alone have `required`.
pub fn ids(questions: &[Value]) -> Vec<String> {
    let id = |question: &Value| match (question.get("id"), question.get("required")) {
        (Some(Value::String(id)), Some(_)) => Some(id.clone()),
        _ => None,
    };
    questions.iter().filter_map(id).collect()
}

/// Those of a type that this version knows: the server checks the rest.
fn known(questions: &[Value]) -> Vec<Question> {
    let read = |(place, question): (usize, &Value)| {
        QuestionDraft::read(question, "", place, &Limits::BOUNDLESS, &mut Vec::new())?.kept()
    };
    questions.iter().enumerate().filter_map(read).collect()
}

/// Text that is a number becomes one where the question asks for a number.
fn convert(question: &Question, text: &str) -> Value {
    let asks_for_number = matches!(question.kind.rules().example(), Value::Number(_));
    let number = || json::parse(text.trim()).ok().filter(|value| matches!(value, Value::Number(_)));
    match asks_for_number.then(number).flatten() {
        Some(number) => number,
        None => Value::String(text.to_owned()),
    }
}

fn unknown(form: &FormDetail, ids: &[String], key: &str) -> Finding {
    let near = similar(key, ids.iter().map(String::as_str));
    let message = format!("`{key}` is not a question of \"{}\"", form.title);
    let help = near.map_or_else(|| format!("its questions are {}", ids.join(", ")), similar_help);
    about(Rule::UnknownQuestion, key, message, Some(help))
}

fn similar_help(id: &str) -> String {
    format!("a question with a similar id exists: `{id}`")
}

fn wrong(questions: &[Question], mut violation: Violation) -> Finding {
    let asked = questions.iter().find(|question| question.id.is_some() && question.id == violation.question);
    let help = match (violation.code, asked.zip(violation.question.as_deref())) {
        (Rule::QuestionNotVisible, _) | (_, None) => None,
        (_, Some((question, id))) => Some(format!("{id}=… expects {}", question.kind.rules().expects())),
    };
    if let (Some(question), false) =
        (asked, matches!(violation.code, Rule::Required | Rule::QuestionNotVisible))
    {
        violation.message = format!("\"{}\": {}", question.title, violation.message);
    }
    let finding = Finding::new(violation.code.name(), violation.message.clone());
    Finding { violation: Some(violation), ..finding.help(help) }
}

fn about(rule: Rule, id: &str, message: String, help: Option<String>) -> Finding {
    let pointer = join("/answers", id);
    let violation = Violation::new(pointer, rule, message.clone()).about(id);
    Finding { violation: Some(violation), help, ..Finding::new(rule.name(), message) }
}

fn not_sent(findings: Vec<Finding>) -> Report {
    let problems = if findings.len() == 1 { "problem" } else { "problems" };
    let summary = Some(format!("{} {problems}, nothing was sent", findings.len()));
    Report { findings, summary, exit: Exit::Rejected }
}

fn draft(form: &FormDetail) -> CliError {
    let title = format!("\"{}\" ({}) is a draft and takes no answers", form.title, form.id);
    let problem = Problem::new(Code::FormNotPublished).detail(title);
    let error = ClientError::Problem(Box::new(problem));
    CliError::of_client(error, format!("forms publish {}", form.id))
}

#[cfg(test)]
mod tests {
    use super::{CliError, Given, parse};

    fn one(argument: &str) -> Result<Given, CliError> {
        parse(&[argument.to_owned()]).map(|mut given| given.remove(0))
    }

    #[test]
    fn the_value_is_all_after_the_first_equals_sign() {
        for (argument, key, text) in [
            ("q1=hello", "q1", "hello"),
            ("q1=", "q1", ""),
            ("q1==x", "q1", "=x"),
            ("q1=a=b", "q1", "a=b"),
            ("q1=\\@x", "q1", "@x"),
            ("q1=\\x", "q1", "\\x"),
            ("q1=01234", "q1", "01234"),
        ] {
            assert_eq!(one(argument).unwrap(), Given { key: key.to_owned(), text: text.to_owned() });
        }
    }

    #[test]
    fn what_does_not_exist_yet_is_refused_and_not_sent_as_text() {
        for argument in ["q1", "q3:=4", "q1=@file", "q1=@-"] {
            assert!(matches!(one(argument), Err(CliError::Usage { .. })), "{argument}");
        }
        let twice = ["q1=a", "q1=b"].map(str::to_owned);
        assert!(parse(&twice).is_err());
    }
}
