//! Editing a form in the person's editor, again and again until the text is valid, or they give up.

use std::path::Path;

use crate::api::FormDetail;
use crate::cli::commands::create::in_file;
use crate::cli::commands::edit::diff::{diff, lines};
use crate::cli::commands::edit::{Base, Edit, explain_conflict};
use crate::cli::connection::session::Session;
use crate::cli::input::document::{self, Document};
use crate::cli::input::draft::Draft;
use crate::cli::input::editor;
use crate::cli::output::diagnostics::{Finding, Report};
use crate::cli::output::exit::{CliError, Exit};
use crate::cli::output::humanize::counted;
use crate::cli::output::render_error;
use crate::cli::output::visible;
use crate::cli::output::yaml;
use crate::client::{ClientError, Received};
use crate::domain::json::Value;

/// What our own comments begin with: each round's take the place of those before.
const OURS: &str = "#>";

/// Lets the person edit the form, or the file for it, and sends it. A text that is not sent is kept.
pub(super) async fn edit(session: &Session, command: &Edit) -> Result<(), CliError> {
    let base = Base::read(session, &command.form).await?;
    let given = match &command.file {
        Some(file) => {
            session.warn_of_terminal(file);
            without_ours(&document::text(file)?.1)
        }
        None => yaml::yaml(&base.definition)?,
    };
    let mut comments = greeting(session, &base.form)?;
    let id = base.id();
    let continuing = format!("edit {id}{}", if command.dry_run { " --dry-run" } else { "" });
    let text = format!("{comments}{given}");
    let mut draft = match command.file.as_deref() {
        // What was typed is in no other file: as a change of an empty one it is kept.
        Some(file) if file == Path::new("-") => {
            let draft = Draft::create(session, &id, "", &continuing)?;
            draft.write(&text)?;
            draft
        }
        _ => Draft::create(session, &id, &text, &continuing)?,
    };
    if let Some(file) = command.file.as_ref().filter(|file| *file != Path::new("-")) {
        draft.set_origin(file);
    }
    let mut last = None;
    loop {
        // Others may work on the store while the editor is open.
        session.close().await?;
        let edited = editor::edit(session, &draft).await?;
        let own = without_ours(&edited);
        if is_empty(&own) || (own == given && command.file.is_none()) {
            draft.discard();
            return report(session, command, &base, None);
        }
        let error = match attempt(session, command, &base, &draft.name(), &edited).await {
            Ok(form) => {
                if form.is_none() || !command.dry_run {
                    draft.discard();
                }
                return report(session, command, &base, form.as_ref());
            }
            Err(error) => error,
        };
        match problems(&error, &edited) {
            // Closed as it was, with its problems.
            Some(_) if last.as_ref() == Some(&own) => return Err(error),
            Some(problems) => comments = problems,
            None => return Err(error),
        }
        draft.write(&format!("{comments}{own}"))?;
        last = Some(own);
    }
}

/// Sends `file` as the form's new definition.
pub(super) async fn send_file(session: &Session, command: &Edit, file: &Path) -> Result<(), CliError> {
    session.warn_of_terminal(file);
    let (name, text) = document::text(file)?;
    let base = Base::read(session, &command.form).await?;
    let form = attempt(session, command, &base, &name, &text).await?;
    report(session, command, &base, form.as_ref())
}

/// Reports the form as it was `sent`; `None` if there was nothing to send.
fn report(
    session: &Session,
    command: &Edit,
    base: &Base,
    sent: Option<&Received<FormDetail>>,
) -> Result<(), CliError> {
    let Some(form) = sent else { return command.report(session, &base.form, None) };
    let updated = [format!("updated \"{}\"", form.title)];
    command.report(session, form, Some(if command.dry_run { &[] } else { &updated }))
}

/// Shows the changes that `text`, the content of `file`, makes, and sends them; `None` if there are none.
async fn attempt(
    session: &Session,
    command: &Edit,
    base: &Base,
    file: &str,
    text: &str,
) -> Result<Option<Received<FormDetail>>, CliError> {
    let document = one(file, text, &base.definition)?;
    let changes = diff(&base.definition, document.value());
    if changes.is_empty() {
        return Ok(None);
    }
    lines(&changes).iter().for_each(|line| session.output.say(line));
    let is_lossy = command.warn_of_losses(session, base, document.value()).await?;
    if is_lossy || command.file.is_some() {
        command.confirm(session, base).await?;
    }
    match base.send(session, document.value(), command.dry_run).await {
        Ok(form) => Ok(Some(form)),
        Err(error) if is_conflict(&error) => {
            show_conflict(session, base).await;
            let again = session.again();
            let help = format!("{again} edit {} -f FILE compares FILE with the form as it is now", base.id());
            Err(explain_conflict(error, help))
        }
        Err(CliError::Client { error, .. }) if has_places(&error) => Err(in_file(&document, error)),
        Err(error) => Err(explain_conflict(
            error,
            format!("see what it is now: {} show {}", session.again(), base.id()),
        )),
    }
}

/// The one form in `text`, an edited `base`.
fn one(file: &str, text: &str, base: &Value) -> Result<Document, CliError> {
    let mut documents = document::read_edited(file, text, base)?;
    match (documents.pop(), documents.len()) {
        (Some(document), 0) => Ok(document),
        (_, others) => {
            let message = format!("the file has {} forms: keep one", others + 1);
            Err(Report::of_file(file, vec![Finding::plain(message)]).into())
        }
    }
}

/// Shows what somebody else has changed in the form since it was read, if it can be read again.
async fn show_conflict(session: &Session, base: &Base) {
    let Ok(now) = Base::read(session, &base.id()).await else { return };
    session.output.say("changed on the server after you read it:");
    let changes = diff(&with_status(base), &with_status(&now));
    lines(&changes).iter().for_each(|line| session.output.say(line));
}

/// The definition, with the form's status, which others may change too.
fn with_status(base: &Base) -> Value {
    let mut members = vec![("status".to_owned(), base.form.status.to_string().as_str().into())];
    if let Value::Object(definition) = &base.definition {
        members.extend(definition.iter().cloned());
    }
    Value::Object(members)
}

fn is_conflict(error: &CliError) -> bool {
    matches!(error, CliError::Client { error: ClientError::Problem(problem), .. } if problem.status == 412)
}

fn has_places(error: &ClientError) -> bool {
    error.problem().is_some_and(|problem| !problem.errors.is_empty())
}

fn greeting(session: &Session, form: &FormDetail) -> Result<String, CliError> {
    let (title, target) = (visible(&form.title), session.target_name()?);
    let what = format!("\"{title}\" ({}) on {}", form.id, visible(&target));
    let how = "Change it, save, and close the editor. An empty file changes nothing.";
    Ok(format!("{OURS} {what}\n{OURS} {how}\n"))
}

/// What is wrong with `edited`, as comments above it; `None` if mending the text would not help.
fn problems(error: &CliError, edited: &str) -> Option<String> {
    let told;
    let findings = match error {
        CliError::Rejected(report) => &report.findings[..],
        CliError::Client { error: ClientError::Problem(problem), .. }
            if Exit::of_status(problem.status) == Exit::Rejected =>
        {
            told = [render_error::tell(error)];
            &told
        }
        _ => return None,
    };
    let above = findings.len() + 1;
    let lines = findings.iter().map(|finding| {
        let place = finding.mark.as_ref().map(|mark| mark.line_and_column().0);
        let place = place.map(|line| format!("line {}: ", above + own_line(edited, line)));
        let help = finding.help.as_ref().map(|help| format!(" ({help})"));
        let told = [place.unwrap_or_default(), finding.message.clone(), help.unwrap_or_default()];
        format!("{OURS} {}\n", visible(&told.concat()))
    });
    let problems = counted(findings.len(), "problem");
    let head = format!("{OURS} Not saved yet, {problems}. To give up, close the file as it is.\n");
    Some(lines.fold(head, |text, line| text + &line))
}

/// The line of `edited` counted without our own comments.
fn own_line(edited: &str, line: usize) -> usize {
    line.saturating_sub(edited.lines().take_while(|line| line.starts_with(OURS)).count())
}

/// `edited` without the comments that we have put above it. Lines further down are the person's own.
fn without_ours(edited: &str) -> String {
    edited.split_inclusive('\n').skip_while(|line| line.starts_with(OURS)).collect()
}

/// Whether nothing but comments is left.
fn is_empty(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}
