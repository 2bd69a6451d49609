//! Editing a form in the person's editor, round by round until what they wrote is taken, or they give up.

use super::change::{patch, summary};
use super::create::in_file;
use super::edit::{tell, unchanged};
use crate::api::FormDetail;
use crate::cli::diagnostics::{Finding, Report};
use crate::cli::document::{self, Document};
use crate::cli::editor::Draft;
use crate::cli::exit::{CliError, Exit};
use crate::cli::failure;
use crate::cli::output::visible;
use crate::cli::session::Session;
use crate::client::{Client, ClientError, Revision};
use crate::domain::json::Value;
use crate::domain::limits::Limits;

/// What our own comments begin with: each round's take the place of those before.
const OURS: &str = "#>";

/// The form as the person got to see it.
struct Seen<'a> {
    client: &'a Client,
    form: FormDetail,
    revision: Revision,
    before: Value,
    dry_run: bool,
}

/// Lets the person edit the form called `name` until the server takes it.
pub(super) async fn edit(session: &Session, name: &str, dry_run: bool) -> Result<(), CliError> {
    let client = &session.client().await?;
    let (form, revision) = client.get_revision(name).await?;
    let before = document::authoring(&form)?;
    let given = document::yaml(&before)?;
    let mut text = greeting(session, &form)? + &given;
    let draft = Draft::create(session, &form.id.to_string(), &text)?;
    let mut seen = Seen { client, form, revision, before, dry_run };
    let mut conflict: Option<CliError> = None;
    loop {
        let edited = draft.edit(session).await?;
        let own = without_ours(&edited);
        if own == given || is_empty(&own) {
            draft.discard();
            return tell(session, &seen.before, &seen.form, dry_run);
        }
        // Closed as it was, with its problems: the person gives up.
        let is_left = edited == text;
        if let Some(error) = conflict.take().filter(|_| is_left) {
            return Err(error);
        }
        let error = match seen.attempt(&draft.name(), &edited).await {
            Ok(form) => return saved(session, draft, &seen, &form),
            Err(error) => error,
        };
        let is_conflict = is_conflict(&error);
        let comments = if is_conflict { Some(seen.catch_up().await?) } else { problems(&error, &edited) };
        let Some(comments) = comments.filter(|_| !is_left) else { return Err(error) };
        text = comments + &own;
        draft.write(&text)?;
        conflict = Some(error).filter(|_| is_conflict);
    }
}

fn saved(session: &Session, draft: Draft, seen: &Seen<'_>, form: &FormDetail) -> Result<(), CliError> {
    tell(session, &seen.before, form, seen.dry_run)?;
    if !seen.dry_run {
        draft.discard();
    }
    Ok(())
}

impl Seen<'_> {
    /// Sends what `edited`, the text of `file`, makes of the form.
    async fn attempt(&self, file: &str, edited: &str) -> Result<FormDetail, CliError> {
        let documents = document::read_text(file, edited, &Limits::BOUNDLESS)?;
        let [document] = &documents[..] else {
            let message = format!("the file holds {} forms: keep one", documents.len());
            return Err(Report::of_file(file, vec![Finding::plain(message)]).into());
        };
        let Some(patch) = patch(&self.before, &whole(document)) else { return Ok(self.form.clone()) };
        let id = self.form.id.to_string();
        let sent = self.client.update_revision(&id, &patch.to_string(), &self.revision, self.dry_run).await;
        sent.map_err(|error| match error.problem() {
            Some(problem) if !problem.errors.is_empty() => in_file(document, error),
            _ => unchanged(error, &id, overtaken(file, &id)),
        })
    }

    /// Looks at the form again, which somebody else has changed, and tells how, as comments.
    async fn catch_up(&mut self) -> Result<String, CliError> {
        let (form, revision) = self.client.get_revision(&self.form.id.to_string()).await?;
        let now = document::authoring(&form)?;
        let mut changes = summary(&self.before, &now);
        if changes.is_empty() {
            changes.push("whether it is published".to_owned());
        }
        let line = |change: &String| match member(&now, change) {
            Some(value) => format!("{OURS}   {}\n", visible(&format!("{change}: {value}"))),
            None => format!("{OURS}   {}\n", visible(change)),
        };
        let lines: String = changes.iter().map(line).collect();
        (self.form, self.revision, self.before) = (form, revision, now);
        let head = "Not saved yet: somebody else has changed the form meanwhile, as follows.";
        let help = "To save yours in its place, take out this line. To give up, close the file as it is.";
        Ok(format!("{OURS} {head}\n{lines}{OURS} {help}\n"))
    }
}

/// What `form` has now where a line of a [`summary`] says that it has changed.
fn member<'a>(form: &'a Value, change: &str) -> Option<&'a Value> {
    let (_, name) = change.split_once(' ')?;
    let Some(id) = name.strip_prefix("question ") else {
        return name.split('.').try_fold(form, |value, name| value.get(name));
    };
    let Some(Value::Array(questions)) = form.get("questions") else { return None };
    questions.iter().find(|question| question.get("id") == Some(&id.into()))
}

fn is_conflict(error: &CliError) -> bool {
    matches!(error, CliError::Client { error: ClientError::Problem(problem), .. } if problem.status == 412)
}

/// What to do with the text in `file` once somebody else has changed the form `id`.
fn overtaken(file: &str, id: &str) -> String {
    let all_the_same = format!("to put your text in its place: VISUAL='cp {file}' forms edit {id}");
    format!("to see what it is now: forms show {id}\n{all_the_same}")
}

/// The definition with its questions, also if it has none any more.
fn whole(document: &Document) -> Value {
    let mut form = document.value().clone();
    if let Value::Object(members) = &mut form
        && !members.iter().any(|(name, value)| name == "questions" && *value != Value::Null)
    {
        members.retain(|(name, _)| name != "questions");
        members.push(("questions".to_owned(), Value::Array(Vec::new())));
    }
    form
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
            told = [failure::tell(error)];
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
    let problems =
        if findings.len() == 1 { "1 problem".to_owned() } else { format!("{} problems", above - 1) };
    let head = format!("{OURS} Not saved yet, {problems}. To give up, close the file as it is.\n");
    Some(lines.fold(head, |text, line| text + &line))
}

/// The line of `edited` counted without our own comments.
fn own_line(edited: &str, line: usize) -> usize {
    edited.lines().take(line).filter(|line| !line.starts_with(OURS)).count()
}

fn without_ours(edited: &str) -> String {
    edited.split_inclusive('\n').filter(|line| !line.starts_with(OURS)).collect()
}

/// Whether nothing but comments is left.
fn is_empty(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}
