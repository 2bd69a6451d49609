//! Asks for answers in `forms submit`: by prompts, or for a long form in the editor.

use crate::api::FormDetail;
use crate::cli::commands::submit::template::template;
use crate::cli::commands::{CliError, Session};
use crate::cli::input::answers::AnswerSources;
use crate::cli::input::dialogue::{Dialogue, is_asked};
use crate::cli::input::draft::Draft;
use crate::cli::input::{document, editor, prompt};
use crate::domain::question::Question;
use crate::domain::validation::violation::Rule;

/// Maximum number of questions that are asked by prompts.
const MAX_PROMPTS: usize = 20;

/// Asks for answers and adds them to `sources`: for all questions if it has no answers, else for the required ones that are
/// missing. Asks nothing if an answer is invalid, or if the form has a question that only the server knows. Returns the
/// edited file of a long form.
pub(super) async fn ask(
    session: &Session,
    form: &FormDetail,
    resume: &str,
    sources: &mut AnswerSources,
) -> Result<Option<Draft>, CliError> {
    let Some(dialogue) = Dialogue::of_form(session, form) else { return Ok(None) };
    let questions = &dialogue.version.questions;
    let is_long = questions.iter().filter(|question| is_asked(question)).count() > MAX_PROMPTS;
    let asks_all = sources.args.is_empty() && !sources.record.is_given();
    let violations = dialogue.violations(&sources.answers(questions)?);
    if violations.iter().any(|violation| violation.code != Rule::Required) {
        return Ok(None);
    }
    if asks_all && is_long {
        return edit(session, form, resume, questions, sources).await.map(Some);
    }
    if asks_all || !violations.is_empty() {
        let mut done = Vec::new();
        let asked = dialogue.ask_all(sources, asks_all, &mut done);
        prompt::dialogue(&session.output, "canceled, nothing was sent", asked).await?;
    }
    Ok(None)
}

/// Opens a template of the answers in the editor, and reads what was entered.
async fn edit(
    session: &Session,
    form: &FormDetail,
    resume: &str,
    questions: &[Question],
    sources: &mut AnswerSources,
) -> Result<Draft, CliError> {
    let template = template(form, questions);
    let draft = Draft::create(session, "answers", &template, resume)?;
    session.output.status(&format!("{} questions: opening your editor", questions.len()));
    if editor::edit(session, &draft).await? == template {
        return Err(CliError::Declined);
    }
    sources.record = document::record(draft.path())?;
    Ok(draft)
}
