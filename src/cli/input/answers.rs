//! The answers of a submission: read by the type of the question they are for, and checked before they are sent.

use serde_json::value::RawValue;

use crate::api::{Code, FormDetail, Problem};
use crate::cli::input::answer_args::{Given, Input, all};
use crate::cli::input::answer_hints;
use crate::cli::input::document::Record;
use crate::cli::input::document::violations;
use crate::cli::output::diagnostics::{Finding, Report};
use crate::cli::output::exit::CliError;
use crate::cli::output::form_state::{name, or_opened, shut};
use crate::client::ClientError;
use crate::clock::Timestamp;
use crate::domain::form::Version;
use crate::domain::form::settings::UnknownAnswers;
use crate::domain::json::{self, Object, Value};
use crate::domain::open_enum::OpenEnum;
use crate::domain::question::{Question, QuestionDraft, QuestionKind};
use crate::domain::validation::budget::Budget;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::similar::similar;
use crate::domain::validation::violation::{Rule, Violation, join, unescape};

/// What a submission is made of: arguments, and the file they go before.
#[derive(Debug)]
pub struct Written {
    pub given: Vec<Given>,
    pub record: Option<Record>,
}

impl Written {
    /// The body that sends `answers`.
    fn body(&self, answers: Object) -> String {
        match &self.record {
            Some(record) => record.body(answers),
            None => format!("{{\"answers\":{}}}", Value::Object(answers)),
        }
    }

    /// The findings with the place in the file of what stands there, and was not given as an argument.
    pub fn marked(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        for finding in &mut findings {
            let violation = finding.violation.as_ref().filter(|violation| {
                let key = violation.pointer.split('/').nth(2).unwrap_or_default();
                !self.given.iter().any(|given| given.key == key)
            });
            finding.mark = violation.and_then(|violation| self.record.as_ref()?.mark(violation));
            if finding.mark.is_some() && finding.code.as_deref() != Some(Rule::UnknownQuestion.name()) {
                // It tells how an argument is written, and the message what is asked for.
                finding.help = None;
            }
        }
        findings
    }
}

/// Puts what was `given` into `answers`, in place of what they have, read by the types of `questions`.
///
/// # Errors
/// If what was given for one question cannot be one answer.
pub fn add(answers: &mut Object, given: &[Given], questions: &[Question]) -> Result<(), CliError> {
    let read = |(key, values): (&str, Vec<&Input>)| {
        let question = questions.iter().find(|question| question.id.as_deref() == Some(key));
        let value = convert(key, question.map(|question| &question.kind), &values)?;
        Ok((key.to_owned(), value))
    };
    for (key, value) in all(by_key(given).into_iter().map(read))? {
        match answers.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value,
            None => answers.push((key, value)),
        }
    }
    Ok(())
}

/// A warning for each key that is no question of `form`, where it is set to leave such answers out.
pub fn left_out(form: &FormDetail, written: &Written) -> Vec<String> {
    if form.settings.unknown_answers() == UnknownAnswers::Reject {
        return Vec::new();
    }
    let listed = questions(&form.questions);
    let is_here = |key: &str| listed.iter().any(|question| question.get("id") == Some(&key.into()));
    let in_file = written.record.iter().flat_map(|record| &record.answers).map(|(key, _)| key);
    let mut keys: Vec<_> = in_file.chain(written.given.iter().map(|given| &given.key)).collect();
    keys.sort_unstable();
    keys.dedup();
    let (unknown, ids) = (keys.into_iter().filter(|key| !is_here(key)), ids(&listed));
    let warning = |key: &String| {
        let near = similar(key, ids.iter().map(String::as_str));
        let near = near.map(|id| format!("; a similar id exists: `{id}`")).unwrap_or_default();
        format!("`{key}` is not a question of \"{}\" and is left out{near}", form.title)
    };
    unknown.map(warning).collect()
}

/// The body that sends the answers to `form`, if it takes them at the time `now`; sizes are for the server to say. A key
/// that is no question is a slip, and an error, unless the form is set to drop it.
///
/// # Errors
/// If the form takes no answers at all; or with everything about them that it refuses.
pub fn fit(form: &FormDetail, written: &Written, now: Timestamp, again: &str) -> Result<String, CliError> {
    if let Some(why) = form.accepting_reason.as_ref().and_then(OpenEnum::known) {
        return Err(shut(form, why, again));
    }
    let listed = questions(&form.questions);
    let (questions, ids) = (known(&listed), ids(&listed));
    let mut findings = Vec::new();
    let mut answers = written.record.as_ref().map(|record| record.answers.clone()).unwrap_or_default();
    add(&mut answers, &written.given, &questions)?;
    let is_here = |key: &String| questions.iter().any(|question| question.id.as_ref() == Some(key));
    let (mut answers, mut unknown_ones): (Object, Object) =
        answers.into_iter().partition(|(key, _)| is_here(key) || ids.contains(key));
    if form.settings.unknown_answers() == UnknownAnswers::Reject {
        findings.extend(unknown_ones.iter().map(|(key, _)| unknown(form, &ids, key)));
    }
    // Where there is a type that this version does not know, the server checks: what is asked may depend on it.
    let violations = if questions.len() == listed.len() {
        check(form, questions.clone(), &answers, now)
    } else {
        Vec::new()
    };
    for violation in violations {
        let near_miss = |finding: &Finding| {
            let meant =
                finding.violation.as_ref().and_then(|unknown| similar_id(&key(unknown), &unknown.allowed));
            meant.is_some() && meant == violation.question.as_deref()
        };
        if violation.code == Rule::Required && findings.iter().any(near_miss) {
            continue;
        }
        findings.push(wrong(&questions, &answers, violation));
    }
    if !findings.is_empty() {
        let problem = Problem::new(Code::ValidationFailed);
        return Err(Report::with_outcome(written.marked(findings), "nothing was sent", problem).into());
    }
    answers.append(&mut unknown_ones);
    Ok(written.body(answers))
}

/// Everything about `answers` that the form's rules refuse.
fn check(form: &FormDetail, questions: Vec<Question>, answers: &Object, now: Timestamp) -> Vec<Violation> {
    let version = Version::new(form.version, form.created_at, questions);
    version.check(answers, &Limits::UNLIMITED, now).err().unwrap_or_default()
}

/// What was given, together for each key, in the order of the first.
fn by_key(given: &[Given]) -> Vec<(&str, Vec<&Input>)> {
    let mut together: Vec<(&str, Vec<&Input>)> = Vec::new();
    for Given { key, value } in given {
        match together.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) => values.push(value),
            None => together.push((key, vec![value])),
        }
    }
    together
}

/// The server's refusal of the answers, in the same shape as our own.
pub fn refused(form: &FormDetail, written: &Written, error: ClientError, again: &str) -> CliError {
    match error {
        ClientError::Problem(problem) if !problem.errors.is_empty() => {
            let finding = |violation: &Violation| {
                Finding::of(violation).help(violations::help(&violation.last_step(), violation))
            };
            let findings = written.marked(problem.errors.iter().map(finding).collect());
            Report::with_outcome(findings, "nothing was sent", *problem).into()
        }
        other => or_opened(other, &name(form), again),
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
pub fn known(questions: &[Value]) -> Vec<Question> {
    let mut budget = Budget::new(&Limits::UNLIMITED);
    let read = |(place, question): (usize, &Value)| {
        QuestionDraft::read(question, "", place, &mut budget, &mut Vec::new())?.into_question()
    };
    questions.iter().enumerate().filter_map(read).collect()
}

/// The answer that `values` make for a question of this kind; `None` is one that this version does not know.
fn convert(key: &str, kind: Option<&QuestionKind>, values: &[&Input]) -> Result<Value, CliError> {
    let several = kind.is_some_and(QuestionKind::answer_is_list);
    match values {
        [Input::Json(value)] => Ok(value.clone()),
        [Input::Text(text)] if !several => {
            Ok(kind.map_or_else(|| text.as_str().into(), |kind| kind.rules().parse_text(text)))
        }
        values if several => {
            let text = |value: &&Input| match value {
                Input::Text(text) => Ok(text.as_str().into()),
                Input::Json(_) => Err(CliError::usage(format!(
                    "`{key}` is given as JSON and once more: put all into the JSON"
                ))),
            };
            // `KEY=` is no answer, as it is of a text.
            let is_filled = |value: &&&Input| **value != &Input::Text(String::new());
            Ok(Value::Array(values.iter().filter(is_filled).map(text).collect::<Result<_, _>>()?))
        }
        _ => Err(CliError::usage(format!("`{key}` is answered twice"))),
    }
}

fn unknown(form: &FormDetail, ids: &[String], key: &str) -> Finding {
    let message = format!("`{key}` is not a question of \"{}\"", form.title);
    let violation = Violation::new(join("/answers", key), Rule::UnknownQuestion, message);
    let violation = violation.question(key).allowed(key, ids.iter().map(String::as_str));
    Finding::of(&violation).help(Some(instead(ids, key)))
}

/// Which of the questions with these `ids` may have been meant by `key`.
pub fn instead(ids: &[String], key: &str) -> String {
    const FEW: usize = 10;
    let few = || {
        let rest = if ids.len() > FEW { ", …" } else { "" };
        format!("its questions are {}{rest}", ids[..ids.len().min(FEW)].join(", "))
    };
    similar_id(key, ids).map_or_else(few, |id| format!("a question with a similar id exists: `{id}`"))
}

fn similar_id<'a>(key: &str, ids: &'a [String]) -> Option<&'a str> {
    similar(key, ids.iter().map(String::as_str))
}

/// What is wrong with one of `answers`: which question it is about, and how its answer is written as an argument.
pub fn wrong(questions: &[Question], answers: &Object, mut violation: Violation) -> Finding {
    let (place, value) = answer_hints::follow(answers, &violation.pointer);
    let asked = questions.iter().find(|question| question.id.is_some() && question.id == violation.question);
    let help = match (violation.code.known(), asked.zip(violation.question.as_deref())) {
        (Some(Rule::UnknownQuestion), _) => Some(instead(&answerable(questions), &key(&violation))),
        (Some(code), Some((question, id)))
            if code != Rule::QuestionNotVisible && violation.help.is_none() =>
        {
            Some(answer_hints::help(question, id, code, value))
        }
        _ => violation.help.clone(),
    };
    let says_which =
        place.is_empty() && matches!(violation.code.known(), Some(Rule::Required | Rule::QuestionNotVisible));
    if let (Some(question), false) = (asked, says_which) {
        violation.message = format!("\"{}\"{place}: {}", question.title, violation.message);
    }
    Finding::of(&violation).help(help)
}

/// The ids of the questions that take an answer.
fn answerable(questions: &[Question]) -> Vec<String> {
    let asked = questions.iter().filter(|question| question.kind.rules().takes_answer());
    asked.filter_map(|question| question.id.clone()).collect()
}

/// The key of the answer that breaks a rule.
pub fn key(violation: &Violation) -> String {
    unescape(violation.pointer.split('/').nth(2).unwrap_or_default())
}
