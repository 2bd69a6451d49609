//! `forms delete` and `forms restore`.

use clap::Args;
use serde_json::json;

use crate::api::{Code, FormDetail};
use crate::cli::commands::batch::for_each;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::columns::{DELETED, FORM};
use crate::cli::output::humanize::count_noun;
use crate::cli::output::shell_quote::shell_quote;
use crate::cli::output::visible;
use crate::client::{Client, ClientError, FormQuery, MAX_PAGE};
use crate::id::FormId;

/// Move forms and their answers to the trash, or erase them
#[derive(Debug, Args)]
#[command(
    visible_alias = "rm",
    after_long_help = "\
Asks for confirmation; without a terminal, --yes is required. Prints the id of
each form.

Examples:
  forms delete frm_7k2m9q4x1abz
  forms delete --yes frm_7k2m9q4x1abz
  forms delete --purge frm_7k2m9q4x1abz"
)]
pub struct Delete {
    /// Forms, by id or slug
    #[arg(required = true, value_name = "FORM")]
    forms: Vec<String>,
    #[command(flatten)]
    how: Deletion,
}

/// How to delete forms or submissions.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct Deletion {
    /// Do not ask
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Erase permanently, answers included
    #[arg(long)]
    pub(super) purge: bool,
    /// Only show what would be deleted
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl Deletion {
    /// Returns what is done to `name`, as words.
    pub(super) fn what(self, name: &str) -> String {
        if self.purge { format!("erase {name}") } else { format!("move {name} to the trash") }
    }

    /// Prints the id of what was deleted, or with `--dry-run` of what would be.
    pub(super) fn print(self, session: &Session, id: &str) -> Result<(), CliError> {
        let deleted = json!({"id": id, "deleted": !self.dry_run});
        session.output.object(&deleted, || format!("{}\n", visible(id)))
    }

    /// Reports that `name` was deleted, or would be; `undo` is the command that restores it.
    pub(super) fn report(self, session: &Session, name: &str, undo: &str) {
        let (output, prefix) = (&session.output, session.command_prefix());
        match (self.dry_run, self.purge) {
            (true, _) => output.status(&format!("would {}", self.what(name))),
            (false, true) => {
                output.success("Erased");
                if !output.is_batch() {
                    let now = format!("{prefix} store compact");
                    output.status(&format!(
                        "its text leaves the store within a day, or now: {now}; backups keep it"
                    ));
                }
            }
            (false, false) => output.success(&format!("In the trash for 30 days. Undo: {prefix} {undo}")),
        }
    }
}

impl Run for Delete {
    const COLUMNS: Columns = DELETED;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        for_each(session, &self.forms, async |form| self.delete(session, form).await).await
    }
}

impl Delete {
    async fn delete(&self, session: &Session, form: &str) -> Result<(), CliError> {
        let Deletion { yes, purge, dry_run } = self.how;
        let (id, name) = match form.parse::<FormId>() {
            Ok(id) if yes && !dry_run => (id, String::new()),
            _ => {
                let (id, name, confirm_by) = self.find(&session.client().await?, form).await?;
                if !yes && !dry_run {
                    session.confirm(&self.how.what(&name), confirm_by).await?;
                }
                (id, name)
            }
        };
        let id = id.to_string();
        if !dry_run {
            session.client().await?.delete(&["forms", &id], purge).await?;
        }
        self.how.print(session, &id)?;
        self.how.report(session, &name, &format!("restore {id}"));
        Ok(())
    }

    /// Finds the form `form`, with `--purge` also in the trash, by its id only. Returns its id, its name, and how to confirm:
    /// one with answers by typing its slug or id.
    async fn find(&self, client: &Client, form: &str) -> Result<(FormId, String, ConfirmBy), CliError> {
        let target = |id: FormId, slug: Option<&str>, title: &str, responses: u64| {
            let typed = || ConfirmBy::Typed(slug.map_or_else(|| id.to_string(), str::to_owned));
            (id, named(title, responses), if responses == 0 { ConfirmBy::Yes } else { typed() })
        };
        let missing = match client.get_form(form).await {
            Ok(form) => return Ok(target(form.id, form.slug.as_deref(), &form.title, form.response_count)),
            Err(error) => error,
        };
        if !self.how.purge || missing.status() != Some(404) {
            return Err(missing.into());
        }
        let query = FormQuery { trashed: true, ..FormQuery::default() };
        let found =
            client.list_forms(&query, MAX_PAGE).find(|trashed| trashed.id.to_string() == form).await?;
        let form = found.ok_or(missing)?;
        Ok(target(form.id, form.slug.as_deref(), &form.title, form.response_count))
    }
}

/// Take forms and their answers out of the trash
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the id of each form. In the trash a form is found by its id only: its
slug is free for another form. `forms list --trashed` shows the ids. Forms are
erased after the number of days that the server is set to keep them.

Examples:
  forms restore frm_7k2m9q4x1abz
  forms list --trashed -o jsonl | jq -r .id | xargs forms restore")]
pub struct Restore {
    /// Forms, by id: `forms list --trashed` shows it
    #[arg(required = true, value_name = "ID")]
    forms: Vec<String>,
}

impl Run for Restore {
    const COLUMNS: Columns = FORM;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        for_each(session, &self.forms, async |form| {
            let restored = client.act::<FormDetail>(&["forms", form, "restore"]).await;
            let restored = restored.map_err(|error| not_restored(error, form, &session.command_prefix()))?;
            session.output.object(&restored, || format!("{}\n", restored.id))?;
            session.output.success(&format!("Restored {}", named(&restored.title, restored.response_count)));
            Ok(())
        })
        .await
    }
}

fn not_restored(error: ClientError, form: &str, prefix: &str) -> CliError {
    let Some(problem) = error.problem() else { return error.into() };
    let help = match problem.code.known() {
        Some(Code::NotInTrash) => format!("{prefix} show {}", shell_quote(form)),
        Some(Code::SlugTaken) => problem.form_id.as_ref().map_or_else(
            || "forms explain slug_taken".to_owned(),
            |holder| format!("to take the slug from the form that has it: {prefix} edit {holder} --slug ''"),
        ),
        Some(Code::FormNotFound) => {
            format!("in the trash a form is known by its id: {prefix} list --trashed")
        }
        _ => return error.into(),
    };
    CliError::client_with_help(error, help)
}

fn named(title: &str, response_count: u64) -> String {
    format!("\"{title}\" ({})", count_noun(response_count, "response"))
}
