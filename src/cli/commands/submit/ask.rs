//! Asks for the required answers that `forms submit` was not given.

use crate::api::FormDetail;
use crate::cli::connection::session::Session;
use crate::cli::input::answer_args::{Given, Input};
use crate::cli::input::answer_hints::choices;
use crate::cli::input::answers::{self, Written};
use crate::cli::input::prompt;
use crate::cli::output::exit::CliError;
use crate::cli::output::shell_quote::quoted;
use crate::cli::output::visible;
use crate::domain::json::Value;
use crate::domain::question::Question;
use crate::domain::validation::violation::{Rule, Violation};

/// Asks for the required answers that are missing in `written`, until none is or something else is wrong. Returns them as
/// arguments of the command, also those given before the person cancels.
pub(super) async fn for_missing(
    session: &Session,
    form: &FormDetail,
    written: &mut Written,
    arguments: &mut Vec<String>,
) -> Result<(), CliError> {
    let questions = answers::known(&answers::questions(&form.questions));
    if next(form, written, session, &questions).is_none() {
        return Ok(());
    }
    let asked = ask_all(session, form, &questions, written, arguments);
    prompt::dialogue(&session.output, "cancelled, nothing was sent", asked).await
}

async fn ask_all(
    session: &Session,
    form: &FormDetail,
    questions: &[Question],
    written: &mut Written,
    arguments: &mut Vec<String>,
) -> Result<(), CliError> {
    let mut refused = String::new();
    while let Some(question) = next(form, written, session, questions) {
        let Some(given) = ask(question, &refused).await? else { return Ok(()) };
        refused.clear();
        let before = written.given.len();
        written.given.extend(given);
        let wrong: Vec<_> = violations(form, written, session)
            .into_iter()
            .filter(|violation| violation.question == question.id)
            .collect();
        if wrong.is_empty() {
            arguments.extend(written.given[before..].iter().filter_map(argument));
            continue;
        }
        wrong.iter().for_each(|violation| session.output.say(&format!("{}; try again", violation.message)));
        let texts: Vec<_> = written.given.drain(before..).filter_map(into_text).collect();
        refused = texts.join(", ");
    }
    Ok(())
}

/// Returns the violations of `written` that are about questions.
fn violations(form: &FormDetail, written: &Written, session: &Session) -> Vec<Violation> {
    match answers::fit(form, written, session.now(), &session.again()) {
        Err(CliError::Rejected(report)) => {
            report.findings.into_iter().filter_map(|finding| finding.violation).collect()
        }
        _ => Vec::new(),
    }
}

/// The first required question without an answer, if no answer is wrong.
fn next<'a>(
    form: &FormDetail,
    written: &Written,
    session: &Session,
    questions: &'a [Question],
) -> Option<&'a Question> {
    let violations = violations(form, written, session);
    if violations.iter().any(|violation| violation.code != Rule::Required) {
        return None;
    }
    questions.iter().find(|question| {
        question.id.is_some() && violations.iter().any(|violation| violation.question == question.id)
    })
}

/// Asks for the answer to `question`, `refused` being the last one; `None` if it cannot be typed in a line.
async fn ask(question: &Question, refused: &str) -> Result<Option<Vec<Given>>, CliError> {
    let key = question.id.clone().unwrap_or_default();
    let given = |text: &str| Given { key: key.clone(), value: Input::Text(text.to_owned()) };
    let (title, rules) = (visible(&question.title), question.kind.rules());
    let choices = choices(question);
    if !choices.is_empty() && !question.kind.answer_is_list() && !rules.takes_other() {
        let labels: Vec<_> = choices.iter().map(|choice| visible(&choice.label)).collect();
        let labels: Vec<_> = labels.iter().map(String::as_str).collect();
        let place = prompt::choose(&title, &labels).await?;
        return Ok(Some(vec![given(&choices[place].value)]));
    }
    if matches!(rules.example(), Value::Object(_)) {
        return Ok(None);
    }
    let commas = if question.kind.answer_is_list() { ", with commas between" } else { "" };
    let what = format!("{title} ({}{commas})", visible(&rules.expects()));
    let text = prompt::text(&what, refused, false).await?;
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    Ok(Some(if question.kind.answer_is_list() { items.map(given).collect() } else { vec![given(&text)] }))
}

fn into_text(given: Given) -> Option<String> {
    let Input::Text(text) = given.value else { return None };
    Some(text)
}

/// The answer as an argument of the command.
fn argument(given: &Given) -> Option<String> {
    let Input::Text(text) = &given.value else { return None };
    let escape = if text.starts_with('@') { "\\" } else { "" };
    Some(quoted(&format!("{}={escape}{text}", given.key)))
}
