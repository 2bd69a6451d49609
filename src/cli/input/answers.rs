//! Answers of a submission: converted by question type, and checked before they are sent.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::api::{Code, FormDetail, Problem};
use crate::cli::input::answer_args::{AnswerArg, ArgValue, collect_all};
use crate::cli::input::answer_hints;
use crate::cli::input::document::Record;
use crate::cli::input::document::violations;
use crate::cli::output::diagnostics::{Diagnostic, Report};
use crate::cli::output::exit::CliError;
use crate::cli::output::form_state::{display_name, not_accepting, with_open_hint};
use crate::client::ClientError;
use crate::clock::Timestamp;
use crate::domain::form::Version;
use crate::domain::form::settings::UnknownAnswers;
use crate::domain::json::{self, Object, Value};
use crate::domain::open_enum::OpenEnum;
use crate::domain::question::{Question, QuestionKind};
use crate::domain::validation::budget::Budget;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::similar::similar;
use crate::domain::validation::violation::{Rule, Violation, join, unescape};

/// Sources of the answers: arguments, and a file whose answers they override.
#[derive(Debug)]
pub struct AnswerSources {
    pub args: Vec<AnswerArg>,
    pub record: Option<Record>,
}

impl AnswerSources {
    /// Builds the request body for `answers`.
    fn body(&self, answers: Object) -> String {
        match &self.record {
            Some(record) => record.body(answers),
            None => format!("{{\"answers\":{}}}", Value::Object(answers)),
        }
    }

    /// Adds locations in the file to diagnostics about answers that were not given as arguments.
    pub fn with_locations(&self, mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let Some(record) = &self.record else { return diagnostics };
        for diagnostic in &mut diagnostics {
            let is_arg = |violation: &&Violation| {
                self.args.iter().any(|arg| violation.pointer.split('/').nth(2) == Some(&arg.key))
            };
            let violation = diagnostic.violation.as_ref().filter(|violation| !is_arg(violation));
            diagnostic.location = violation.and_then(|violation| record.location(violation));
            if diagnostic.location.is_some()
                && diagnostic.code.as_deref() != Some(Rule::UnknownQuestion.name())
            {
                // The help is about arguments, and the message is sufficient.
                diagnostic.help = None;
            }
        }
        diagnostics
    }
}

/// Merges `args` into `answers`, converted by the types of `questions`.
pub fn merge_args(answers: &mut Object, args: &[AnswerArg], questions: &[Question]) -> Result<(), CliError> {
    let answer = |(key, values): (&str, Vec<&ArgValue>)| {
        let question = questions.iter().find(|question| question.id.as_deref() == Some(key));
        let value = convert(key, question.map(|question| &question.kind), &values)?;
        Ok((key.to_owned(), value))
    };
    for (key, value) in collect_all(group_by_key(args).into_iter().map(answer))? {
        match answers.iter_mut().find(|(existing, _)| *existing == key) {
            Some((_, old)) => *old = value,
            None => answers.push((key, value)),
        }
    }
    Ok(())
}

/// Returns a warning for each unknown question, if `form` is set to drop such answers.
pub fn dropped_warnings(form: &FormDetail, sources: &AnswerSources) -> Vec<String> {
    if form.settings.unknown_answers() == UnknownAnswers::Reject {
        return Vec::new();
    }
    let questions = parse_questions(&form.questions);
    let ids = answerable_ids(&questions);
    let is_known = |key: &str| questions.iter().any(|question| question.get("id") == Some(&key.into()));
    let in_file = sources.record.iter().flat_map(|record| &record.answers).map(|(key, _)| key);
    let keys: BTreeSet<_> = in_file.chain(sources.args.iter().map(|arg| &arg.key)).collect();
    let warning = |key: &String| {
        let near = similar_id(key, &ids).map(|id| format!("; a similar id exists: `{id}`"));
        let near = near.unwrap_or_default();
        format!("`{key}` is not a question of \"{}\" and is left out{near}", form.title)
    };
    keys.into_iter().filter(|key| !is_known(key)).map(warning).collect()
}

/// Returns the request body for the answers, if `form` accepts them at the time `now`. Sizes are checked by the server. An
/// unknown question is an error unless the form is set to drop it.
///
/// # Errors
/// If the form does not accept answers, or with all violations.
pub fn submission_body(
    form: &FormDetail,
    sources: &AnswerSources,
    now: Timestamp,
    prefix: &str,
) -> Result<String, CliError> {
    if let Some(reason) = form.accepting_reason.as_ref().and_then(OpenEnum::known) {
        return Err(not_accepting(form, reason, prefix));
    }
    let all = parse_questions(&form.questions);
    let (questions, ids) = (known_questions(&all), answerable_ids(&all));
    let mut diagnostics = Vec::new();
    let mut answers = sources.record.as_ref().map(|record| record.answers.clone()).unwrap_or_default();
    merge_args(&mut answers, &sources.args, &questions)?;
    let is_known = |key: &String| questions.iter().any(|question| question.id.as_ref() == Some(key));
    let (mut answers, mut unknown): (Object, Object) =
        answers.into_iter().partition(|(key, _)| is_known(key) || ids.contains(key));
    if form.settings.unknown_answers() == UnknownAnswers::Reject {
        diagnostics.extend(unknown.iter().map(|(key, _)| unknown_question(form, &ids, key)));
    }
    let mut violations = Vec::new();
    // With a question type that this version does not know, only the server can check: visibility may depend on it.
    if questions.len() == all.len() {
        let version = Version::new(form.version, form.created_at, questions.clone());
        violations = version.check(&answers, &Limits::UNLIMITED, now).err().unwrap_or_default();
    }
    for violation in violations {
        let is_misspelt = |diagnostic: &Diagnostic| {
            let unknown = diagnostic.violation.as_ref();
            let near = unknown.and_then(|unknown| similar_id(&answer_key(unknown), &unknown.allowed));
            near.is_some() && near == violation.question.as_deref()
        };
        if violation.code != Rule::Required || !diagnostics.iter().any(is_misspelt) {
            diagnostics.push(answer_diagnostic(&questions, &answers, violation));
        }
    }
    if diagnostics.is_empty() {
        answers.append(&mut unknown);
        return Ok(sources.body(answers));
    }
    let problem = Problem::new(Code::ValidationFailed);
    Err(Report::with_outcome(sources.with_locations(diagnostics), "nothing was sent", problem).into())
}

/// Groups the arguments by key, in order of first appearance.
fn group_by_key(args: &[AnswerArg]) -> Vec<(&str, Vec<&ArgValue>)> {
    let mut groups: Vec<(&str, Vec<&ArgValue>)> = Vec::new();
    for AnswerArg { key, value } in args {
        match groups.iter_mut().find(|(existing, _)| existing == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Converts the server's refusal to the same shape as local errors.
pub fn explain_refusal(
    form: &FormDetail,
    sources: &AnswerSources,
    error: ClientError,
    prefix: &str,
) -> CliError {
    match error {
        ClientError::Problem(problem) if !problem.errors.is_empty() => {
            let diagnostic = |violation: &Violation| {
                Diagnostic::of(violation).help(violations::help(&violation.last_step(), violation))
            };
            let diagnostics = sources.with_locations(problem.errors.iter().map(diagnostic).collect());
            Report::with_outcome(diagnostics, "nothing was sent", *problem).into()
        }
        other => with_open_hint(other, &display_name(form), prefix),
    }
}

/// Parses the questions of a form as the API returned them.
pub fn parse_questions(list: &RawValue) -> Vec<Value> {
    match json::parse(list.get()) {
        Ok(Value::Array(questions)) => questions,
        _ => Vec::new(),
    }
}

/// Returns the ids of the answerable questions: only those have `required`.
pub fn answerable_ids(questions: &[Value]) -> Vec<String> {
    let answerable = questions.iter().filter(|question| question.get("required").is_some());
    answerable.filter_map(|question| Some(question.get("id")?.as_str()?.to_owned())).collect()
}

/// Returns the questions of types that this version knows; the server checks the others.
pub fn known_questions(questions: &[Value]) -> Vec<Question> {
    let mut budget = Budget::new(&Limits::UNLIMITED);
    let read = |(index, question)| Question::read(question, "", index, &mut budget, &mut Vec::new());
    questions.iter().enumerate().filter_map(read).collect()
}

/// Converts `values` to the answer for a question of this kind; `None` if this version does not know the kind.
fn convert(key: &str, kind: Option<&QuestionKind>, values: &[&ArgValue]) -> Result<Value, CliError> {
    let is_list = kind.is_some_and(QuestionKind::answer_is_list);
    match values {
        [ArgValue::Json(value)] => Ok(value.clone()),
        [ArgValue::Text(text)] if !is_list => {
            Ok(kind.map_or_else(|| text.as_str().into(), |kind| kind.rules().parse_text(text)))
        }
        values if is_list => {
            let item = |value: &&ArgValue| match value {
                // `KEY=` is an empty list, just as it is an empty text.
                ArgValue::Text(text) if text.is_empty() => None,
                ArgValue::Text(text) => Some(Ok(text.as_str().into())),
                ArgValue::Json(_) => Some(Err(CliError::usage(format!(
                    "`{key}` is given more than once, and once as JSON; put everything into the JSON"
                )))),
            };
            Ok(Value::Array(values.iter().filter_map(item).collect::<Result<_, _>>()?))
        }
        _ => Err(CliError::usage(format!("`{key}` given more than once"))),
    }
}

fn unknown_question(form: &FormDetail, ids: &[String], key: &str) -> Diagnostic {
    let message = format!("`{key}` is not a question of \"{}\"", form.title);
    let violation = Violation::new(join("/answers", key), Rule::UnknownQuestion, message);
    let violation = violation.question(key).allowed(key, ids.iter().map(String::as_str));
    Diagnostic::of(&violation).help(Some(suggest_question(ids, key)))
}

/// Suggests the question in `ids` that `key` was probably meant to be.
pub fn suggest_question(ids: &[String], key: &str) -> String {
    const MAX_LISTED: usize = 10;
    if let Some(id) = similar_id(key, ids) {
        return format!("a question with a similar id exists: `{id}`");
    }
    let rest = if ids.len() > MAX_LISTED { ", …" } else { "" };
    format!("its questions are {}{rest}", ids[..ids.len().min(MAX_LISTED)].join(", "))
}

fn similar_id<'a>(key: &str, ids: &'a [String]) -> Option<&'a str> {
    similar(key, ids.iter().map(String::as_str))
}

/// Builds the diagnostic for a violation, naming the question and how to write its answer as an argument.
pub fn answer_diagnostic(questions: &[Question], answers: &Object, mut violation: Violation) -> Diagnostic {
    let (position, value) = answer_hints::resolve_pointer(answers, &violation.pointer);
    let question =
        questions.iter().find(|question| question.id.is_some() && question.id == violation.question);
    let help = match (violation.code.known(), question, &violation.help) {
        (Some(Rule::UnknownQuestion), ..) => {
            let answerable = questions.iter().filter(|question| question.kind.rules().takes_answer());
            let ids: Vec<_> = answerable.filter_map(|question| question.id.clone()).collect();
            Some(suggest_question(&ids, &answer_key(&violation)))
        }
        (Some(rule), Some(question), None) if rule != Rule::QuestionNotVisible => {
            let id = question.id.as_deref().unwrap_or_default();
            Some(answer_hints::help(question, id, rule, value))
        }
        (.., help) => help.clone(),
    };
    let names_question = position.is_empty()
        && matches!(violation.code.known(), Some(Rule::Required | Rule::QuestionNotVisible));
    if let (Some(question), false) = (question, names_question) {
        violation.message = format!("\"{}\"{position}: {}", question.title, violation.message);
    }
    Diagnostic::of(&violation).help(help)
}

/// Returns the key of the answer in a violation's pointer.
pub fn answer_key(violation: &Violation) -> String {
    unescape(violation.pointer.split('/').nth(2).unwrap_or_default())
}
