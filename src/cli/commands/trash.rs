//! `forms delete` and `forms restore`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use crate::api::Code;
use crate::cli::commands::Run;
use crate::cli::commands::batch::for_each;
use crate::cli::connection::session::Session;
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::columns::{Columns, DELETED, FORM};
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::count_noun;
use crate::cli::output::shell_quote::shell_quote;
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
    #[arg(required = true, value_name = "FORM", value_parser = NonEmptyStringValueParser::new())]
    forms: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Erase permanently, answers included
    #[arg(long)]
    purge: bool,
    /// Only show what would be deleted
    #[arg(long)]
    dry_run: bool,
}

impl Run for Delete {
    fn columns(&self) -> Columns {
        DELETED
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        for_each(session, &self.forms, async |form| self.delete(session, &client, form).await).await
    }
}

impl Delete {
    async fn delete(&self, session: &Session, client: &Client, form: &str) -> Result<(), CliError> {
        if self.dry_run {
            let DeleteTarget { id, name, .. } = self.find(client, form).await?;
            session.output.object(&json!({"id": id, "deleted": false}), || format!("{id}\n"))?;
            session.output.status(&format!("would {} {name}", if self.purge { "erase" } else { "delete" }));
            return Ok(());
        }
        let id = match form.parse::<FormId>() {
            Ok(id) if self.yes => id,
            _ => {
                let target = self.find(client, form).await?;
                let id = target.id;
                if !self.yes {
                    self.ask(session, target).await?;
                }
                id
            }
        };
        client.delete_form(&id.to_string(), self.purge).await?;
        session.output.object(&json!({"id": id, "deleted": true}), || format!("{id}\n"))?;
        session.output.success(&match self.purge {
            true => "erased".to_owned(),
            false => format!("moved to the trash; {} restore {id} takes it out", session.command_prefix()),
        });
        Ok(())
    }

    /// Finds the form `name`; with `--purge` also in the trash, by its id only.
    async fn find(&self, client: &Client, name: &str) -> Result<DeleteTarget, CliError> {
        let missing = match client.get_form(name).await {
            Ok(form) => {
                return Ok(DeleteTarget::new(
                    form.id,
                    form.slug.as_deref(),
                    &form.title,
                    form.response_count,
                ));
            }
            Err(error) => error,
        };
        if self.purge && missing.problem().is_some_and(|problem| problem.status == 404) {
            let query = FormQuery { trashed: true, ..FormQuery::default() };
            let mut pages = client.list_forms(&query, MAX_PAGE);
            while let Some(page) = pages.next().await? {
                if let Some(form) = page.iter().find(|form| form.id.to_string() == name) {
                    let slug = form.slug.as_deref();
                    return Ok(DeleteTarget::new(form.id, slug, &form.title, form.response_count));
                }
            }
        }
        Err(missing.into())
    }

    /// Asks for confirmation, naming the form and the server.
    async fn ask(
        &self,
        session: &Session,
        DeleteTarget { name, confirm_by, .. }: DeleteTarget,
    ) -> Result<(), CliError> {
        let verb = if self.purge { "Erase" } else { "Delete" };
        let question = format!("{verb} {name} on {}?", session.target_name()?);
        session.confirm(&format!("deleting {name}"), question, confirm_by).await
    }
}

/// A form to delete, in the trash or not.
struct DeleteTarget {
    id: FormId,
    /// Title and number of responses.
    name: String,
    confirm_by: ConfirmBy,
}

impl DeleteTarget {
    /// A form with answers is confirmed by typing its slug or id.
    fn new(id: FormId, slug: Option<&str>, title: &str, response_count: u64) -> Self {
        let confirm_by = match response_count {
            0 => ConfirmBy::Yes,
            _ => ConfirmBy::Typed(slug.map_or_else(|| id.to_string(), str::to_owned)),
        };
        Self { id, name: named(title, response_count), confirm_by }
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
    #[arg(required = true, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    forms: Vec<String>,
}

impl Run for Restore {
    fn columns(&self) -> Columns {
        FORM
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        for_each(session, &self.forms, async |form| {
            let restored = client
                .restore_form(form)
                .await
                .map_err(|error| not_restored(error, form, &session.command_prefix()))?;
            session.output.object(&restored, || format!("{}\n", restored.id))?;
            session.output.success(&format!("{} is back", named(&restored.title, restored.response_count)));
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
