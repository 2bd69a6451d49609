//! Editing a form in the person's editor, round by round until what they wrote is taken, or they give up.

use std::ops::ControlFlow;

use super::change::{patch, same, summary};
use super::create::in_file;
use super::edit::{refused, tell};
use super::known::Known;
use super::merge::merge;
use crate::api::FormDetail;
use crate::cli::diagnostics::{Finding, Report};
use crate::cli::document;
use crate::cli::editor::Draft;
use crate::cli::exit::{CliError, Exit};
use crate::cli::failure;
use crate::cli::output::visible;
use crate::cli::session::Session;
use crate::client::{Client, ClientError, Received};
use crate::domain::json::Value;
use crate::domain::limits::Limits;

/// What our own comments begin with: each round's take the place of those before.
const OURS: &str = "#>";

/// The comment that a person takes out who wants to save what is in conflict.
const CONSENT: &str = "#> To save yours in its place, take out this line: what you left alone stays theirs.";

/// What the comments above the text ask for.
enum Round {
    /// A text that may be sent.
    Write { comments: String },
    /// Consent to overwrite what somebody else has changed, which the server has refused with `error`: until then
    /// nothing is sent.
    Agree { comments: String, error: CliError },
}

/// A form in the person's hands.
struct Editing<'a> {
    client: &'a Client,
    known: Known,
    form: Received<FormDetail>,
    dry_run: bool,
}

/// Lets the person edit the form called `name` until the server takes it.
pub(super) async fn edit(session: &Session, name: &str, dry_run: bool) -> Result<(), CliError> {
    let client = &session.client().await?;
    let mut editing = Editing::begin(client, name, dry_run).await?;
    let given = document::yaml(&editing.known.base)?;
    let mut round = Round::Write { comments: greeting(session, &editing.form)? };
    let mut draft = Draft::create(session, &editing.id(), &round.above(&given))?;
    let mut last = given.clone();
    loop {
        draft.end_with(editing.known.line(&editing.id()));
        let edited = draft.edit(session).await?;
        let own = without_ours(&edited);
        let next = if own == given || is_empty(&own) {
            ControlFlow::Break(None)
        } else {
            editing.next(round, &draft.name(), &edited, own == last).await?
        };
        round = match next {
            ControlFlow::Break(Some(form)) => return saved(session, draft, &editing, &form),
            ControlFlow::Break(None) => return unsent(session, draft, &editing),
            ControlFlow::Continue(round) => round,
        };
        draft.write(&round.above(&own))?;
        last = own;
    }
}

fn saved(
    session: &Session,
    draft: Draft,
    editing: &Editing<'_>,
    form: &Received<FormDetail>,
) -> Result<(), CliError> {
    tell(session, &editing.known.now, form, editing.dry_run)?;
    if !editing.dry_run {
        draft.discard();
    }
    Ok(())
}

/// There was nothing to send: the form is as others have made it.
fn unsent(session: &Session, draft: Draft, editing: &Editing<'_>) -> Result<(), CliError> {
    draft.discard();
    tell(session, &document::authoring(&editing.form)?, &editing.form, editing.dry_run)
}

impl Round {
    /// `text` with the comments above it.
    fn above(&self, text: &str) -> String {
        let (Self::Write { comments } | Self::Agree { comments, .. }) = self;
        format!("{comments}{text}")
    }
}

impl<'a> Editing<'a> {
    async fn begin(client: &'a Client, name: &str, dry_run: bool) -> Result<Self, CliError> {
        let (form, revision) = client.get_revision(name).await?;
        let base = document::authoring(&form)?;
        Ok(Self { client, known: Known { now: base.clone(), base, revision }, form, dry_run })
    }

    fn id(&self) -> String {
        self.form.id.to_string()
    }

    /// What comes of `edited`, the text of `file`, in this `round`: the form that it has become, none if nothing was to
    /// be sent, or another round. It `is_last` if it is that of the round before.
    async fn next(
        &mut self,
        round: Round,
        file: &str,
        edited: &str,
        is_last: bool,
    ) -> Result<ControlFlow<Option<Received<FormDetail>>, Round>, CliError> {
        let (edited, kept) = Known::split(edited, &self.id());
        // Who sends a text that was kept has not read the comments of now.
        let agrees = matches!(round, Round::Agree { .. }) && kept.is_none() && !edited.contains(CONSENT);
        // Closed as it was, with its problems.
        let gives_up = is_last && !agrees;
        match round {
            Round::Agree { error, .. } if gives_up => return Err(error),
            Round::Agree { .. } if !agrees => return Ok(ControlFlow::Continue(round)),
            _ => {}
        }
        if let Some(kept) = kept {
            self.known = kept;
        }
        match self.attempt(file, &edited).await {
            Ok(form) => Ok(ControlFlow::Break(form)),
            Err(error) => self.after(error, &edited, gives_up).await.map(ControlFlow::Continue),
        }
    }

    /// Sends what the person has changed in `edited`, the text of `file`, if anything.
    async fn attempt(&self, file: &str, edited: &str) -> Result<Option<Received<FormDetail>>, CliError> {
        let documents = document::read_text(file, edited, &Limits::BOUNDLESS)?;
        let [document] = &documents[..] else {
            let message = format!("the file holds {} forms: keep one", documents.len());
            return Err(Report::of_file(file, vec![Finding::plain(message)]).into());
        };
        let Known { base, now, revision } = &self.known;
        let merged = merge(base, document.value(), now);
        let Some(patch) = patch(now, &merged) else { return Ok(None) };
        let id = self.id();
        let sent = self.client.update_revision(&id, &patch.to_string(), revision, self.dry_run).await;
        sent.map(Some).map_err(|error| match error.problem() {
            // The places that the server names are those of what it got.
            Some(problem) if !problem.errors.is_empty() && same(&merged, document.value()) => {
                in_file(document, error)
            }
            _ => refused(error, &id, &merged),
        })
    }

    /// The round after `edited` was refused with `error`.
    async fn after(&mut self, error: CliError, edited: &str, gives_up: bool) -> Result<Round, CliError> {
        if is_conflict(&error) {
            return Ok(Round::Agree { comments: self.catch_up().await?, error });
        }
        match problems(&error, edited) {
            Some(comments) if !gives_up => Ok(Round::Write { comments }),
            _ => Err(error),
        }
    }

    /// Looks at the form again, which somebody else has changed, and tells how, as comments.
    async fn catch_up(&mut self) -> Result<String, CliError> {
        let (form, revision) = self.client.get_revision(&self.id()).await?;
        let now = document::authoring(&form)?;
        let mut changes = summary(&self.known.now, &now);
        if changes.is_empty() {
            changes.push("whether it is published".to_owned());
        }
        let line = |change: &String| match member(&now, change) {
            Some(value) => format!("{OURS}   {}\n", visible(&format!("{change}: {value}"))),
            None => format!("{OURS}   {}\n", visible(change)),
        };
        let lines: String = changes.iter().map(line).collect();
        (self.form, self.known.revision, self.known.now) = (form, revision, now);
        let head = "Not saved yet: somebody else has changed the form meanwhile, as follows.";
        Ok(format!("{OURS} {head}\n{lines}{CONSENT}\n{OURS} To give up, close the file as it is.\n"))
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
