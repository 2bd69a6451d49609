//! Asks for the required answers missing in `forms submit`.

use crate::api::FormDetail;
use crate::cli::connection::session::Session;
use crate::cli::input::answer_args::{AnswerArg, ArgValue};
use crate::cli::input::answer_hints::choices;
use crate::cli::input::answers::{self, AnswerSources};
use crate::cli::input::prompt;
use crate::cli::output::exit::CliError;
use crate::cli::output::shell_quote::shell_quote;
use crate::cli::output::visible;
use crate::domain::json::Value;
use crate::domain::question::Question;
use crate::domain::validation::violation::{Rule, Violation};

/// Asks for the required answers missing in `sources`, until none is missing or another answer is invalid. Adds them to
/// `arguments` as they would be typed, including those given before the user cancels.
pub(super) async fn ask_missing(
    session: &Session,
    form: &FormDetail,
    sources: &mut AnswerSources,
    arguments: &mut Vec<String>,
) -> Result<(), CliError> {
    let questions = answers::known_questions(&answers::parse_questions(&form.questions));
    if next(form, sources, session, &questions).is_none() {
        return Ok(());
    }
    let asked = ask_all(session, form, &questions, sources, arguments);
    prompt::dialogue(&session.output, "canceled, nothing was sent", asked).await
}

async fn ask_all(
    session: &Session,
    form: &FormDetail,
    questions: &[Question],
    sources: &mut AnswerSources,
    arguments: &mut Vec<String>,
) -> Result<(), CliError> {
    let mut refused = String::new();
    while let Some(question) = next(form, sources, session, questions) {
        let Some(args) = ask(question, &refused).await? else { return Ok(()) };
        refused.clear();
        let before = sources.args.len();
        sources.args.extend(args);
        let mut wrong = violations(form, sources, session);
        wrong.retain(|violation| violation.question == question.id);
        if wrong.is_empty() {
            arguments.extend(sources.args[before..].iter().filter_map(argument));
            continue;
        }
        for violation in wrong {
            session.output.status(&format!("{}; try again", violation.message));
        }
        let texts: Vec<_> = sources.args[before..].iter().filter_map(text).collect();
        refused = texts.join(", ");
        sources.args.truncate(before);
    }
    Ok(())
}

/// Returns the violations of `sources` that are about questions.
fn violations(form: &FormDetail, sources: &AnswerSources, session: &Session) -> Vec<Violation> {
    match answers::submission_body(form, sources, session.now(), &session.command_prefix()) {
        Err(CliError::Rejected(report)) => {
            report.diagnostics.into_iter().filter_map(|diagnostic| diagnostic.violation).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the first required question without an answer, unless another answer is invalid.
fn next<'a>(
    form: &FormDetail,
    sources: &AnswerSources,
    session: &Session,
    questions: &'a [Question],
) -> Option<&'a Question> {
    let violations = violations(form, sources, session);
    if violations.iter().any(|violation| violation.code != Rule::Required) {
        return None;
    }
    questions.iter().find(|question| {
        question.id.is_some() && violations.iter().any(|violation| violation.question == question.id)
    })
}

/// Asks for the answer to `question`; `refused` is the previous input. Returns `None` if the answer cannot be typed on one
/// line.
async fn ask(question: &Question, refused: &str) -> Result<Option<Vec<AnswerArg>>, CliError> {
    let key = question.id.clone().unwrap_or_default();
    let arg = |text: &str| AnswerArg { key: key.clone(), value: ArgValue::Text(text.to_owned()) };
    let (title, rules) = (visible(&question.title), question.kind.rules());
    let choices = choices(question);
    if !choices.is_empty() && !question.kind.answer_is_list() && !rules.takes_other() {
        let labels: Vec<_> = choices.iter().map(|choice| visible(&choice.label)).collect();
        let labels: Vec<_> = labels.iter().map(String::as_str).collect();
        let place = prompt::choose(&title, &labels).await?;
        return Ok(Some(vec![arg(&choices[place].value)]));
    }
    if matches!(rules.example(), Value::Object(_)) {
        return Ok(None);
    }
    let commas = if question.kind.answer_is_list() { ", with commas between" } else { "" };
    let what = format!("{title} ({}{commas})", visible(&rules.expects()));
    let text = prompt::text(&what, refused, false).await?;
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    Ok(Some(if question.kind.answer_is_list() { items.map(arg).collect() } else { vec![arg(&text)] }))
}

fn text(arg: &AnswerArg) -> Option<&str> {
    let ArgValue::Text(text) = &arg.value else { return None };
    Some(text)
}

/// Formats the answer as a command-line argument.
fn argument(arg: &AnswerArg) -> Option<String> {
    let text = text(arg)?;
    let escape = if text.starts_with('@') { "\\" } else { "" };
    Some(shell_quote(&format!("{}={escape}{text}", arg.key)))
}
