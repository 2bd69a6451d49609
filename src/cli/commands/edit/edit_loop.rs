//! The loop of `forms edit`: opens the editor until the text is valid or the user gives up.

use std::path::Path;
use std::rc::Rc;

use crate::api::FormDetail;
use crate::cli::commands::edit::Edit;
use crate::cli::commands::{Session, read_input};
use crate::cli::input::document::{self, Document};
use crate::cli::input::draft::Draft;
use crate::cli::input::editor;
use crate::cli::output::diagnostics::{Diagnostic, Report};
use crate::cli::output::exit::{CliError, Exit};
use crate::cli::output::humanize::count_noun;
use crate::cli::output::render_error;
use crate::cli::output::visible;
use crate::cli::output::yaml;
use crate::cli::plan::{Base, FormPlan};
use crate::client::{ClientError, ReceivedBody};
use crate::domain::json::Value;

/// Prefix of our own comments, which are replaced each time the editor opens.
const COMMENT_PREFIX: &str = "#>";

/// Edits the form, or the given file for it, and sends the result. A text that is not sent is kept.
pub(super) async fn edit(session: &Session, command: &Edit) -> Result<(), CliError> {
    let base = Rc::new(Base::read(&session.client().await?, &command.form).await?);
    let initial = match &command.file {
        Some(file) => strip_comments(&read_text(session, file).await?.1),
        None => yaml::yaml(&yaml::file(&base.form)?)?,
    };
    let mut comments = header(session, &base.form)?;
    let id = base.id();
    let resume_command = format!("edit {id}{}", if command.dry_run { " --dry-run" } else { "" });
    let text = format!("{comments}{initial}");
    // Input from stdin is in no file: with an empty initial text the draft is kept.
    let is_stdin = command.file.as_deref() == Some(Path::new("-"));
    let mut draft = Draft::create(session, &id, if is_stdin { "" } else { &text }, &resume_command)?;
    draft.write(&text)?;
    if let (Some(file), false) = (&command.file, is_stdin) {
        draft.set_origin(file);
    }
    let mut last = None;
    loop {
        // The store must not stay locked while the editor is open.
        session.close().await?;
        let edited = editor::edit(session, &draft).await?;
        let own = strip_comments(&edited);
        if is_empty(&own) || (own == initial && command.file.is_none()) {
            draft.discard();
            return command.report(session, &FormPlan::unchanged(base), None);
        }
        match send_text(session, command, &base, &draft.name(), &edited).await {
            Ok((plan, form)) => {
                if form.is_none() || !command.dry_run {
                    draft.discard();
                }
                return command.report(session, &plan, form.as_ref());
            }
            Err(error) => match problems(&error, &edited) {
                Some(problems) if last.as_ref() != Some(&own) => comments = problems,
                // Editing cannot solve them, or the user closed the editor without a change.
                _ => return Err(error),
            },
        }
        draft.write(&format!("{comments}{own}"))?;
        last = Some(own);
    }
}

/// Returns the name and text of `file`.
async fn read_text(session: &Session, file: &Path) -> Result<(String, String), CliError> {
    session.announce_stdin(file);
    let path = file.to_owned();
    read_input(move || document::text(&path)).await
}

/// Sends `file` as the form's new definition.
pub(super) async fn send_file(session: &Session, command: &Edit, file: &Path) -> Result<(), CliError> {
    let (name, text) = read_text(session, file).await?;
    let base = Rc::new(Base::read(&session.client().await?, &command.form).await?);
    let (plan, form) = send_text(session, command, &base, &name, &text).await?;
    command.report(session, &plan, form.as_ref())
}

/// Shows the changes in `text`, the content of `file`, and sends them; without a form if there are none.
async fn send_text(
    session: &Session,
    command: &Edit,
    base: &Rc<Base>,
    file: &str,
    text: &str,
) -> Result<(FormPlan, Option<ReceivedBody<FormDetail>>), CliError> {
    let document = parse_single(file, text, &base.definition)?;
    let mut plan = FormPlan::of_document(document, Some(Rc::clone(base)), None)?;
    // Variables that are not set are reported before a question is asked.
    plan.body(session)?;
    command.confirm(session, &mut plan).await?;
    let form = command.send_confirmed(session, &plan).await?;
    Ok((plan, form))
}

/// Parses `text`, which must contain one form, edited from `base`.
fn parse_single(file: &str, text: &str, base: &Value) -> Result<Document, CliError> {
    let mut documents = document::read_text(file, text, Some(base))?;
    match (documents.pop(), documents.len()) {
        (Some(document), 0) => Ok(document),
        (_, others) => {
            let message = format!("expected one form, found {}", others + 1);
            Err(Report::of_file(file, vec![Diagnostic::plain(message)]).into())
        }
    }
}

fn header(session: &Session, form: &FormDetail) -> Result<String, CliError> {
    let (title, target) = (visible(&form.title), session.target_name()?);
    let subject = format!("\"{title}\" ({}) on {}", form.id, visible(&target));
    let how = "Change it, save, and close the editor. An empty file changes nothing.";
    Ok(format!("{COMMENT_PREFIX} {subject}\n{COMMENT_PREFIX} {how}\n"))
}

/// Formats the problems of `edited` as comments; `None` if editing the text cannot solve them.
fn problems(error: &CliError, edited: &str) -> Option<String> {
    let diagnostics = match error {
        CliError::Rejected(report) => report.diagnostics.clone(),
        CliError::Client { error: ClientError::Problem(_), .. } if error.exit() == Exit::Rejected => {
            vec![render_error::to_diagnostic(error)]
        }
        _ => return None,
    };
    // Lines are counted with the comments that replace the old ones.
    let old = edited.lines().take_while(|line| line.starts_with(COMMENT_PREFIX)).count();
    let above = diagnostics.len() + 1;
    let lines = diagnostics.iter().map(|diagnostic| {
        let line = diagnostic.location.as_ref().map(|location| location.line_and_column().0);
        let line =
            line.map(|line| format!("line {}: ", above + line.saturating_sub(old))).unwrap_or_default();
        let help = diagnostic.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{COMMENT_PREFIX} {}\n", visible(&format!("{line}{}{help}", diagnostic.message)))
    });
    let problems = count_noun(diagnostics.len(), "problem");
    let head = format!("{COMMENT_PREFIX} Not saved yet, {problems}. To give up, close the file as it is.\n");
    Some(lines.fold(head, |text, line| text + &line))
}

/// Removes our comments from the top of `edited`. Later lines belong to the user.
fn strip_comments(edited: &str) -> String {
    edited.split_inclusive('\n').skip_while(|line| line.starts_with(COMMENT_PREFIX)).collect()
}

/// Whether `text` has only comments and blank lines.
fn is_empty(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}
