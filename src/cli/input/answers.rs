//! Answers of a submission: converted by question type, and checked before they are sent.

use serde_json::value::RawValue;

use crate::api::{Code, FormDetail, Problem};
use crate::cli::input::answer_args::{AnswerArg, ArgValue, collect_all};
use crate::cli::input::answer_hints;
use crate::cli::input::document::Record;
use crate::cli::input::document::violations;
use crate::cli::output::diagnostics::{Diagnostic, Report};
use crate::cli::output::exit::CliError;
use crate::cli::output::form_state::{display_name, not_accepting, with_open_hint};
use crate::cli::output::{Format, Output};
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
use crate::domain::validation::violation::{Rule, Violation, unescape};

/// Sources of the answers: arguments, and a file whose answers they override.
#[derive(Debug)]
pub struct AnswerSources {
    pub args: Vec<AnswerArg>,
    pub record: Record,
}

impl AnswerSources {
    /// Returns the answers, those given as arguments converted by the types of `questions`.
    ///
    /// # Errors
    /// If the arguments for one question cannot be combined into an answer.
    pub fn answers(&self, questions: &[Question]) -> Result<Object, CliError> {
        let is_first =
            |(place, arg): &(usize, &AnswerArg)| self.args[..*place].iter().all(|other| other.key != arg.key);
        let answer = |(_, AnswerArg { key, .. }): (usize, &AnswerArg)| {
            let values: Vec<_> =
                self.args.iter().filter(|arg| arg.key == *key).map(|arg| &arg.value).collect();
            let question = questions.iter().find(|question| question.id.as_ref() == Some(key));
            Ok((key.clone(), convert(key, question.map(|question| &question.kind), &values)?))
        };
        let mut answers = self.record.answers.clone();
        for (key, value) in collect_all(self.args.iter().enumerate().filter(is_first).map(answer))? {
            match answers.iter_mut().find(|(existing, _)| *existing == key) {
                Some((_, old)) => *old = value,
                None => answers.push((key, value)),
            }
        }
        Ok(answers)
    }

    /// Adds locations in the file to diagnostics about answers that were not given as arguments.
    pub fn with_locations(&self, mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        for diagnostic in &mut diagnostics {
            let is_arg = |violation: &&Violation| {
                self.args.iter().any(|arg| violation.pointer.split('/').nth(2) == Some(&arg.key))
            };
            let violation = diagnostic.violation.as_ref().filter(|violation| !is_arg(violation));
            diagnostic.location = violation.and_then(|violation| self.record.location(violation));
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

/// Returns the request body for the answers, if `form` accepts them at the time `now`; warns of those that it drops. Sizes
/// are checked by the server.
///
/// # Errors
/// If the form does not accept answers, or with all violations.
pub fn submission_body(
    form: &FormDetail,
    sources: &AnswerSources,
    now: Timestamp,
    prefix: &str,
    output: &Output,
) -> Result<String, CliError> {
    if let Some(reason) = form.accepting_reason.as_ref().and_then(OpenEnum::known) {
        return Err(not_accepting(form, reason, prefix));
    }
    let all = parse_questions(&form.questions);
    let questions = known_questions(&all);
    let answers = sources.answers(&questions)?;
    // With a question type that this version does not know, only the server can check: visibility may depend on it.
    if questions.len() < all.len() {
        return Ok(sources.record.body(answers));
    }
    let version = Version::new(form.version, form.created_at, questions);
    let texts = form.settings.language().texts();
    let violations = version.check(&answers, &Limits::UNLIMITED, now, texts).err().unwrap_or_default();
    let (dropped, wrong) = split_dropped(violations, form.settings.unknown_answers());
    // With a machine-readable format, stderr has only the error document.
    if wrong.is_empty() || output.format == Format::Table {
        for unknown in dropped {
            let (key, near) = (answer_key(&unknown), similar_id_hint(&unknown));
            output.warn(&format!("`{key}` is not a question of \"{}\" and is left out{near}", form.title));
        }
    }
    match wrong.is_empty() {
        true => Ok(sources.record.body(answers)),
        false => {
            let problem = Problem::new(Code::ValidationFailed);
            Err(refused(&form.title, &version.questions, sources, wrong, problem))
        }
    }
}

/// Splits violations into those of answers that the form drops, and all others.
pub fn split_dropped(
    violations: Vec<Violation>,
    unknown: UnknownAnswers,
) -> (Vec<Violation>, Vec<Violation>) {
    let is_dropped = |one: &Violation| one.code == Rule::UnknownQuestion && unknown == UnknownAnswers::Drop;
    violations.into_iter().partition(is_dropped)
}

/// Returns the error for answers that the form called `title` refuses, found here or by the server, which sent `problem`.
pub fn refused(
    title: &str,
    questions: &[Question],
    sources: &AnswerSources,
    mut violations: Vec<Violation>,
    problem: Problem,
) -> CliError {
    let answers = sources.answers(questions).unwrap_or_default();
    // A misspelt id explains why an answer is missing.
    violations.sort_by_key(|violation| violation.code != Rule::UnknownQuestion);
    let is_misspelt = |missing: &Violation| {
        let unknown = violations.iter().filter(|other| other.code == Rule::UnknownQuestion);
        let mut near = unknown.filter_map(|other| similar_id(&answer_key(other), &other.allowed));
        missing.code == Rule::Required && near.any(|id| Some(id) == missing.question.as_deref())
    };
    let diagnostic = |violation: &Violation| {
        let mut violation = violation.clone();
        if violation.code == Rule::UnknownQuestion {
            violation.message = format!("`{}` is not a question of \"{title}\"", answer_key(&violation));
        }
        answer_diagnostic(questions, &answers, violation)
    };
    let shown = violations.iter().filter(|violation| !is_misspelt(violation)).map(diagnostic).collect();
    Report::with_outcome(sources.with_locations(shown), "nothing was sent", problem).into()
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
            let questions = known_questions(&parse_questions(&form.questions));
            refused(&form.title, &questions, sources, problem.errors.clone(), *problem)
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

/// Returns the keys of the answers to each answerable question: its id, then those that it had before.
pub fn answer_keys(questions: &[Value]) -> Vec<Vec<String>> {
    let was = |question: &Value| match question.get("was") {
        Some(Value::Array(ids)) => ids.clone(),
        id => id.cloned().into_iter().collect(),
    };
    let keys = |question: &Value| {
        let ids = question.get("id").cloned().into_iter().chain(was(question));
        ids.filter_map(|id| Some(id.as_str()?.to_owned())).collect()
    };
    questions.iter().filter(|question| question.get("required").is_some()).map(keys).collect()
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

/// Suggests the question in `ids` that `key` was probably meant to be.
pub fn suggest_question(ids: &[String], key: &str) -> String {
    const MAX_LISTED: usize = 10;
    if let Some(id) = similar_id(key, ids) {
        return format!("a question with a similar id exists: `{id}`");
    }
    let rest = if ids.len() > MAX_LISTED { ", …" } else { "" };
    format!("its questions are {}{rest}", ids[..ids.len().min(MAX_LISTED)].join(", "))
}

/// Returns the end of a message on an unknown id: the similar one that exists.
pub fn similar_id_hint(unknown: &Violation) -> String {
    let near = similar_id(&answer_key(unknown), &unknown.allowed);
    near.map(|id| format!("; a similar id exists: `{id}`")).unwrap_or_default()
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
        _ => violations::help(&violation.last_step(), &violation),
    };
    let names_question = match violation.code.known() {
        Some(Rule::Required | Rule::QuestionNotVisible) => position.is_empty(),
        Some(_) => false,
        // The server's own message.
        None => true,
    };
    if let (Some(question), false) = (question, names_question) {
        violation.message = format!("\"{}\"{position}: {}", question.title, violation.message);
    }
    Diagnostic::of(&violation).help(help)
}

/// Returns the key of the answer in a violation's pointer.
pub fn answer_key(violation: &Violation) -> String {
    unescape(violation.pointer.split('/').nth(2).unwrap_or_default())
}
