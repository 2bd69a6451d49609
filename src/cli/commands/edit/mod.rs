//! `forms edit`: changes a form by flags, or in an editor.

mod diff;
mod edit_loop;
mod hidden_answers;

use std::path::PathBuf;

use clap::Args;

use crate::api::{Code, FormDetail, Problem};
use crate::cli::commands::create::report_generated_secrets;
use crate::cli::commands::edit::diff::{diff, lines, patch};
use crate::cli::commands::edit::hidden_answers::{HiddenAnswers, find_hidden};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::assignment::Setting;
use crate::cli::input::document::Document;
use crate::cli::input::document::violations::{describe_violations, not_stored, refused};
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::columns::FORM;
use crate::cli::output::render_error;
use crate::cli::output::yaml;
use crate::client::{ClientError, ReceivedBody, Revision, SubmissionQuery};
use crate::domain::form::definition::Definition;
use crate::domain::json::Value;
use crate::domain::validation::limits::Limits;

/// Change a form, by flags or in your editor
#[derive(Debug, Args)]
#[command(
    alias = "update",
    after_long_help = "\
Without flags the form opens in your editor ($VISUAL, $EDITOR or vi) as the
file that `forms show -o yaml` prints. It is the whole form: a field that you
remove is removed from the form. The changes are shown and sent. If the text is
not valid, the editor opens again with the problems as comments at the top; an
empty file changes nothing.

If the text cannot be sent, it is kept in a file, and the command to continue
is shown: `forms edit FORM -f FILE` opens FILE in the editor, compares it with
the current form, asks for confirmation, and sends it. Without a terminal, or
to skip the editor and the confirmation, add --yes: FILE replaces the form.

Removing a question or an option hides its answers and deletes none: with the
same id and type it can come back.

PATH is title, description, slug, settings.NAME, or questions.ID.NAME with the
question's id. VALUE is YAML: a number, true, a [list]; a field that takes text
gets the text as typed. An empty value, or null, removes the field, and
questions.ID= removes the question.

Changes that others made in the meantime are never overwritten. Prints the
form's id.

Examples:
  forms edit frm_7k2m9q4x1abz
  forms edit lunch --title 'Lunch on Friday' --description ''
  forms edit lunch --set settings.max_responses=100
  forms edit lunch --set questions.email.required=true --dry-run
  forms edit lunch -f lunch.yaml --yes"
)]
pub struct Edit {
    /// Form, by id or slug
    pub(super) form: String,
    /// File with the new definition in YAML or JSON, - for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["title", "description", "slug", "set"])]
    pub(super) file: Option<PathBuf>,
    /// New title
    #[arg(long)]
    title: Option<String>,
    /// New description; empty removes it
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// New slug; empty removes it
    #[arg(long)]
    slug: Option<String>,
    #[arg(long, value_name = "PATH=VALUE", value_parser = Setting::parse)]
    #[arg(help = "Change one field, such as settings.max_responses=100; repeat for more")]
    set: Vec<Setting>,
    /// Skip the editor for FILE, and all questions
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Let the server check it, store nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// A form as it was read before editing.
pub(super) struct EditBase {
    pub(super) form: ReceivedBody<FormDetail>,
    pub(super) definition: Value,
    revision: Revision,
}

impl EditBase {
    pub(super) async fn read(session: &Session, name: &str) -> Result<Self, CliError> {
        let (form, revision) = session.client().await?.get_revision(&["forms", name]).await?;
        let definition = yaml::authoring(&form)?;
        Ok(Self { form, definition, revision })
    }

    pub(super) fn id(&self) -> String {
        self.form.id.to_string()
    }

    /// Counts the answers that a change hides; `None` if that is not possible, which does not fail the change.
    async fn count_answers(&self, session: &Session, hidden: &HiddenAnswers) -> Option<u64> {
        let query = SubmissionQuery { answers: vec![hidden.filter.clone()], ..SubmissionQuery::default() };
        session.client().await.ok()?.count_submissions(&self.id(), &query).await.ok()?
    }

    /// Shows what changed on the server since the form was read, if it can be read again.
    async fn show_conflict(&self, session: &Session) {
        let Ok(now) = Self::read(session, &self.id()).await else { return };
        session.output.status("changed on the server after you read it:");
        let with_status = |form: &Self| {
            let mut shown = form.definition.clone();
            shown.set(&["status"], form.form.status.to_string().as_str().into());
            shown
        };
        let changes = diff(&with_status(self), &with_status(&now));
        lines(&changes).iter().for_each(|line| session.output.status(line));
    }
}

/// The form as it is to be.
pub(super) struct Edited {
    /// In authoring form.
    pub(super) definition: Value,
    /// The integrations with their secrets, which are sent if they have changed.
    pub(super) integrations: Option<Value>,
    /// The file it comes from.
    pub(super) document: Option<Document>,
}

impl Run for Edit {
    const COLUMNS: Columns = FORM;

    /// Changes the form and reports what has changed.
    async fn run(self, session: &Session) -> Result<(), CliError> {
        let settings = self.settings();
        match &self.file {
            _ if !settings.is_empty() => self.by_flags(session, &settings).await,
            Some(file) if self.yes || (self.dry_run && !session.can_prompt()) => {
                edit_loop::send_file(session, &self, file).await
            }
            file => match (session.prompt_obstacle(), file) {
                (None, _) => edit_loop::edit(session, &self).await,
                (Some(obstacle), Some(_)) => {
                    let message = format!("sending a file needs a confirmation, and {obstacle}");
                    Err(CliError::usage_with_help(message, "add --yes"))
                }
                (Some(obstacle), None) => {
                    let help =
                        "say what to change: --title, --description, --slug or --set, or -f FILE --yes";
                    let message = format!("cannot open the form in an editor: {obstacle}");
                    Err(CliError::usage_with_help(message, help))
                }
            },
        }
    }
}

impl Edit {
    fn settings(&self) -> Vec<Setting> {
        let members = [("title", &self.title), ("description", &self.description), ("slug", &self.slug)];
        let fields = members.iter().filter_map(|(name, text)| Some(Setting::named(name, text.as_ref()?)));
        fields.chain(self.set.iter().cloned()).collect()
    }

    async fn by_flags(&self, session: &Session, settings: &[Setting]) -> Result<(), CliError> {
        let base = EditBase::read(session, &self.form).await?;
        let definition = apply(settings, &base.definition)?;
        let edited = Edited { definition, integrations: None, document: None };
        let sent = self.send(session, &base, &edited).await?;
        self.report(session, &base, sent.as_ref())
    }

    /// Shows the changes of the form, warns of answers that they hide, and sends them, unless the form was changed since it
    /// was read; `None` if there are none.
    pub(super) async fn send(
        &self,
        session: &Session,
        base: &EditBase,
        edited: &Edited,
    ) -> Result<Option<ReceivedBody<FormDetail>>, CliError> {
        let Some(mut patch) = patch(&base.definition, &edited.definition) else { return Ok(None) };
        let changes = diff(&base.definition, &edited.definition);
        if changes.is_empty() {
            return Ok(None);
        }
        lines(&changes).iter().for_each(|line| session.output.status(line));
        let is_retyped = self.warn_of_hidden(session, base, &edited.definition).await;
        let is_confirmed = self.yes || self.dry_run || !session.can_prompt();
        if (is_retyped || self.file.is_some()) && !is_confirmed {
            session.confirm(&format!("change \"{}\"", base.form.title), ConfirmBy::Yes).await?;
        }
        if let (Some(list), Some(with_secrets)) = (patch.get_mut("integrations"), &edited.integrations) {
            with_secrets.clone_into(list);
        }
        let (client, revision) = (session.client().await?, Some(&base.revision));
        match client.update_form(&base.id(), &patch.to_string(), revision, self.dry_run).await {
            Ok(form) => Ok(Some(form)),
            Err(error) => Err(explain_refusal(session, base, edited, error).await),
        }
    }

    /// Prints the form's id and whether it was changed; `sent` is `None` if there was nothing to send.
    pub(super) fn report(
        &self,
        session: &Session,
        base: &EditBase,
        sent: Option<&ReceivedBody<FormDetail>>,
    ) -> Result<(), CliError> {
        let (output, form) = (&session.output, sent.unwrap_or(&base.form));
        let text = || if self.dry_run { "(dry run)\n".to_owned() } else { format!("{}\n", form.id) };
        output.object(form, text)?;
        match sent {
            None => output.status("no change"),
            Some(_) if self.dry_run => output.status("the server would accept it; nothing was stored"),
            Some(form) => {
                output.success(&format!("updated \"{}\"", form.title));
                report_generated_secrets(session, &base.id(), &form.integrations);
            }
        }
        Ok(())
    }

    /// Warns of answers that the change to `new` hides; returns whether some cannot be read because of their type.
    async fn warn_of_hidden(&self, session: &Session, base: &EditBase, new: &Value) -> bool {
        let mut is_retyped = false;
        let hidden =
            if base.form.response_count == 0 { Vec::new() } else { find_hidden(&base.definition, new) };
        for hidden in hidden {
            let count = base.count_answers(session, &hidden).await;
            if count != Some(0) {
                session.output.warn(&hidden.warning(count));
                is_retyped |= hidden.is_retyped;
            }
        }
        is_retyped
    }
}

/// Applies all `settings` to `form`.
///
/// # Errors
/// If a path does not exist; the violations of the others are reported too.
fn apply(settings: &[Setting], form: &Value) -> Result<Value, CliError> {
    let (mut form, mut errors) = (form.clone(), Vec::new());
    for setting in settings {
        match setting.apply(&form) {
            Ok(changed) => form = changed,
            Err(error) => errors.push(error),
        }
    }
    let violations = Definition::read(&form, &Limits::UNLIMITED).err().unwrap_or_default();
    if errors.is_empty() || violations.is_empty() {
        return CliError::combine(errors).map(|()| form);
    }
    let mut diagnostics: Vec<_> = errors.iter().map(render_error::to_diagnostic).collect();
    diagnostics.extend(describe_violations(&form, &violations));
    Err(not_stored(diagnostics, Problem::new(Code::ValidationFailed)))
}

/// Explains why the server did not change the form: it is not valid, or was changed after it was read.
async fn explain_refusal(
    session: &Session,
    base: &EditBase,
    edited: &Edited,
    error: ClientError,
) -> CliError {
    let (prefix, id) = (session.command_prefix(), base.id());
    let help = match (error.status(), &edited.document) {
        (Some(412), Some(_)) => {
            base.show_conflict(session).await;
            format!("{prefix} edit {id} -f FILE compares FILE with the form as it is now")
        }
        _ => format!("see what it is now: {prefix} show {id}"),
    };
    match error {
        ClientError::Problem(mut problem) if problem.status == 412 => {
            let detail = "the form was changed after you read it; your change was not stored";
            problem.detail = Some(detail.to_owned());
            CliError::client_with_help(ClientError::Problem(problem), help)
        }
        ClientError::MaybeApplied { .. } => CliError::client_with_help(error, help),
        error => refused(edited.document.as_ref(), &edited.definition, error),
    }
}
