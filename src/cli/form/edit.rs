//! `forms edit`: by flags, or in the person's editor.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::change::{patch, summary};
use super::set::Setting;
use super::{not_stored, rejected, rounds};
use crate::api::{Code, FormDetail, Problem};
use crate::cli::document;
use crate::cli::editor;
use crate::cli::exit::CliError;
use crate::cli::failure;
use crate::cli::session::Session;
use crate::cli::violations::tell_violations;
use crate::client::{ClientError, Received};
use crate::domain::definition::Definition;
use crate::domain::json::Value;
use crate::domain::limits::Limits;

/// Change a form, by flags or in your editor
#[derive(Debug, Args)]
#[command(
    alias = "update",
    after_long_help = "\
Without flags the form opens in your editor ($VISUAL, $EDITOR or vi) as the
file that `forms show -o yaml` prints. It is the whole form: what you take out
is taken out. If something is wrong with it, or somebody else has changed the
form meanwhile, the editor opens again with that as comments at the top; an
empty file changes nothing. Who gives up finds the text in a file, and is told
the command that sends it later.

PATH is title, description, slug, settings.NAME, or questions.ID.NAME with the
question's id. VALUE is YAML: a number, true, a [list]; where text is asked for
it is the text as typed. An empty value, or null, takes the member out, and
questions.ID= takes out the question.

What somebody else has changed is never overwritten unseen. Prints the form's
id.

Examples:
  forms edit frm_7k2m9q4x1abz
  forms edit lunch --title 'Lunch on Friday' --description ''
  forms edit lunch --set settings.max_responses=100
  forms edit lunch --set questions.email.required=true --dry-run"
)]
pub struct Edit {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// New title
    #[arg(long)]
    title: Option<String>,
    /// New description; empty takes it out
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// New slug; empty takes it out
    #[arg(long)]
    slug: Option<String>,
    #[arg(long, value_name = "PATH=VALUE", value_parser = Setting::parse)]
    #[arg(help = "Change one member, as settings.max_responses=100; several times for more")]
    set: Vec<Setting>,
    /// Let the server check it, store nothing
    #[arg(long)]
    dry_run: bool,
}

impl Edit {
    /// Changes the form and tells what has changed.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        let settings = self.settings();
        if !settings.is_empty() {
            return self.by_flags(session, &settings).await;
        }
        if !session.may_ask() {
            let help = "say what to change: --title, --description, --slug or --set";
            return Err(CliError::usage_with_help("there is no terminal to edit the form at", help));
        }
        editor::until_ended(rounds::edit(session, &self.form, self.dry_run)).await
    }

    fn settings(&self) -> Vec<Setting> {
        let members = [("title", &self.title), ("description", &self.description), ("slug", &self.slug)];
        let named = members.iter().filter_map(|(name, text)| Some(Setting::named(name, text.as_ref()?)));
        named.chain(self.set.iter().cloned()).collect()
    }

    async fn by_flags(&self, session: &Session, settings: &[Setting]) -> Result<(), CliError> {
        let client = session.client().await?;
        let (form, revision) = client.get_revision(&self.form).await?;
        let before = document::authoring(&form)?;
        let after = apply(settings, &before)?;
        let Some(patch) = patch(&before, &after) else { return tell(session, &before, &form, self.dry_run) };
        let id = form.id.to_string();
        let changed = client.update_revision(&id, &patch.to_string(), &revision, self.dry_run).await;
        let changed = changed.map_err(|error| refused(error, &id, &after))?;
        tell(session, &before, &changed, self.dry_run)
    }
}

/// `form` with all `settings`.
///
/// # Errors
/// If the path of one leads nowhere; then what is wrong with the others is told, too.
fn apply(settings: &[Setting], form: &Value) -> Result<Value, CliError> {
    let (mut form, mut astray) = (form.clone(), Vec::new());
    for setting in settings {
        match setting.apply(&form) {
            Ok(changed) => form = changed,
            Err(error) => astray.push(error),
        }
    }
    let violations = Definition::read(&form, &Limits::BOUNDLESS).err().unwrap_or_default();
    if astray.is_empty() || violations.is_empty() {
        return CliError::together(astray).map(|()| form);
    }
    let mut findings: Vec<_> = astray.iter().map(failure::tell).collect();
    findings.extend(tell_violations(&form, &violations));
    Err(not_stored(findings, Problem::new(Code::ValidationFailed)))
}

/// Tells what has become of the form that was as `before`.
pub(super) fn tell(
    session: &Session,
    before: &Value,
    form: &Received<FormDetail>,
    dry_run: bool,
) -> Result<(), CliError> {
    let output = &session.output;
    let lines = summary(before, &document::authoring(form)?);
    output.object(form, || if dry_run { "(dry run)\n".to_owned() } else { format!("{}\n", form.id) })?;
    lines.iter().for_each(|line| output.say(line));
    match (lines.is_empty(), dry_run) {
        (true, _) => output.say("no change"),
        (false, true) => output.say("the server would take it; nothing was stored"),
        (false, false) => {}
    }
    Ok(())
}

/// The server's refusal to make the form `wanted`, which stands in no file.
pub(super) fn refused(error: ClientError, form: &str, wanted: &Value) -> CliError {
    match error {
        ClientError::Problem(problem) if !problem.errors.is_empty() => {
            rejected(wanted, &problem.errors, (*problem).clone())
        }
        error => unchanged(error, form),
    }
}

/// The server's refusal; with what to do if the form has moved on.
fn unchanged(mut error: ClientError, form: &str) -> CliError {
    match &mut error {
        ClientError::Problem(problem) if problem.status == 412 => {
            problem.detail =
                Some("somebody else has changed the form meanwhile; yours is not stored".to_owned());
            CliError::of_client(error, format!("see what it is now: forms show {form}"))
        }
        ClientError::Unsure(_) => CliError::of_client(error, format!("forms show {form}")),
        _ => error.into(),
    }
}
