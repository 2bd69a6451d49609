//! `forms edit`: changes a form by flags, or in an editor.

mod edit_loop;

use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;

use crate::api::{Code, FormDetail, Problem};
use crate::cli::commands::create::report_generated_secrets;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::assignment::Setting;
use crate::cli::input::document::violations::{describe_violations, not_stored};
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::columns::FORM;
use crate::cli::output::render_error;
use crate::cli::plan::render::lines;
use crate::cli::plan::{Action, Base, FormPlan, Sent};
use crate::client::{ClientError, ReceivedBody};
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
        let base = Rc::new(Base::read(&session.client().await?, &self.form).await?);
        let definition = apply(settings, &base.definition)?;
        self.send(session, FormPlan::of_definition(definition, base)).await
    }

    /// Shows the changes and sends them, unless the form was changed since it was read; then reports what was done.
    async fn send(&self, session: &Session, mut plan: FormPlan) -> Result<(), CliError> {
        self.confirm(session, &mut plan).await?;
        let sent = self.send_confirmed(session, &plan).await?;
        self.report(session, &plan, sent.as_ref())
    }

    /// Shows the changes, and asks for a confirmation where one is needed and possible: of a file, and of what makes answers
    /// unreadable.
    pub(super) async fn confirm(&self, session: &Session, plan: &mut FormPlan) -> Result<(), CliError> {
        plan.count_answers(&session.client().await?).await;
        lines(&plan.changes, false).iter().for_each(|line| session.output.status(line));
        let is_confirmed = self.yes || self.dry_run || !session.can_prompt() || plan.changes.is_empty();
        let title = plan.base.as_ref().map(|base| base.form.title.clone()).unwrap_or_default();
        if (plan.retypes() || self.file.is_some()) && !is_confirmed {
            session.confirm(&format!("change \"{title}\""), ConfirmBy::Yes).await?;
        }
        Ok(())
    }

    /// Sends the changes; `None` if there are none.
    pub(super) async fn send_confirmed(
        &self,
        session: &Session,
        plan: &FormPlan,
    ) -> Result<Option<ReceivedBody<FormDetail>>, CliError> {
        let (Some(base), Action::Update) = (&plan.base, plan.action()) else { return Ok(None) };
        match plan.send(session, &session.client().await?, self.dry_run).await {
            Ok(Sent::Updated(form)) => Ok(Some(form)),
            Ok(Sent::Created(_)) => Ok(None),
            Err(error) => Err(explain_conflict(session, plan, base, error).await),
        }
    }

    /// Prints the form's id and whether it was changed; `sent` is `None` if there was nothing to send.
    pub(super) fn report(
        &self,
        session: &Session,
        plan: &FormPlan,
        sent: Option<&ReceivedBody<FormDetail>>,
    ) -> Result<(), CliError> {
        let Some(base) = &plan.base else { return Ok(()) };
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

/// Explains that the form was changed after it was read, and shows how, if it can be read again.
async fn explain_conflict(session: &Session, plan: &FormPlan, base: &Base, error: CliError) -> CliError {
    let CliError::Client { error, notes, help } = error else { return error };
    let (prefix, id) = (session.command_prefix(), base.id());
    let look = format!("see what it is now: {prefix} show {id}");
    match error {
        ClientError::Problem(problem) if problem.status == 412 => {
            if plan.document.is_none() {
                return CliError::client_with_help(ClientError::Problem(problem), look);
            }
            show_conflict(session, base).await;
            let help = format!("{prefix} edit {id} -f FILE compares FILE with the form as it is now");
            CliError::client_with_help(ClientError::Problem(problem), help)
        }
        ClientError::MaybeApplied { .. } => CliError::client_with_help(error, look),
        error => CliError::Client { error, notes, help },
    }
}

async fn show_conflict(session: &Session, base: &Base) {
    let Ok(client) = session.client().await else { return };
    let Ok(now) = Base::read(&client, &base.id()).await else { return };
    session.output.status("changed on the server after you read it:");
    let changes = base.changes_to(&now);
    lines(&changes, false).iter().for_each(|line| session.output.status(line));
}
