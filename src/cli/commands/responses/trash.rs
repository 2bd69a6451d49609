//! `forms responses delete` and `restore`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use crate::api::Code;
use crate::cli::commands::Run;
use crate::cli::commands::batch::Batch;
use crate::cli::connection::session::Session;
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::columns::Columns;
use crate::cli::output::columns::DELETED;
use crate::cli::output::columns::SUBMISSION;
use crate::cli::output::exit::CliError;
use crate::cli::output::form_state::with_open_hint;
use crate::cli::output::humanize::count_noun;
use crate::cli::output::shell_quote::shell_quote;
use crate::cli::output::visible;
use crate::client::{Client, ClientError, MAX_PAGE, SubmissionQuery};

/// Move submissions to the trash, or erase them
#[derive(Debug, Args)]
#[command(after_long_help = "\
Asks for confirmation; without a terminal, --yes is required. Prints the id of
each submission.

Examples:
  forms responses delete frm_7k2m9q4x1abz sub_01k3v8m2f4q6s8t0w2y4z6a8bc
  forms responses delete --yes --purge frm_7k2m9q4x1abz \\
    sub_01k3v8m2f4q6s8t0w2y4z6a8bc")]
pub(super) struct Delete {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Submission ids
    #[arg(required = true, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    submissions: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Erase permanently
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

    /// Deletes the submissions, after confirming all of them at once.
    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        if !self.yes && !self.dry_run {
            for id in &self.submissions {
                self.find(&client, id).await?;
            }
            self.ask(session, &client).await?;
        }
        let mut batch = Batch::begin(session, self.submissions.len());
        let mut deleted = Vec::new();
        for id in &self.submissions {
            let ended = self.delete(session, &client, id).await;
            deleted.extend(ended.is_ok().then_some(&**id));
            batch.record(id, ended)?;
        }
        self.report(session, &deleted);
        batch.finish()
    }
}

impl Delete {
    /// Reports the deleted submissions in one line.
    fn report(&self, session: &Session, deleted: &[&str]) {
        let (which, pronoun) = match deleted {
            [] => return,
            [_] => (String::new(), "it"),
            several => (format!("{} ", count_noun(several.len(), "response")), "them"),
        };
        let output = &session.output;
        match (self.dry_run, self.purge) {
            (true, true) => output.status(&format!("{which}would be erased")),
            (true, false) => output.status(&format!("{which}would be deleted")),
            (false, true) => output.success(&format!("{which}erased")),
            (false, false) => {
                let restore = format!(
                    "{} responses restore {} {}",
                    session.command_prefix(),
                    self.form,
                    deleted.join(" ")
                );
                output.success(&format!("{which}moved to the trash; {restore} takes {pronoun} out"));
            }
        }
    }

    async fn delete(&self, session: &Session, client: &Client, id: &str) -> Result<(), CliError> {
        let (output, text) = (&session.output, || format!("{}\n", visible(id)));
        if self.dry_run {
            self.find(client, id).await?;
            return output.object(&json!({"id": id, "deleted": false}), text);
        }
        client.delete_submission(&self.form, id, self.purge).await?;
        output.object(&json!({"id": id, "deleted": true}), text)
    }

    /// Checks that the submission exists; with `--purge` it may be in the trash.
    async fn find(&self, client: &Client, id: &str) -> Result<(), CliError> {
        let Err(missing) = client.get_submission(&self.form, id).await else { return Ok(()) };
        if !self.purge || missing.problem().is_none_or(|problem| problem.status != 404) {
            return Err(missing.into());
        }
        let query = SubmissionQuery { trashed: true, ..SubmissionQuery::default() };
        let mut pages = client.list_submissions(&self.form, &query, MAX_PAGE)?;
        while let Some(page) = pages.next().await? {
            if page.iter().any(|submission| submission.id.to_string() == id) {
                return Ok(());
            }
        }
        Err(missing.into())
    }

    /// Asks for confirmation, naming the form and the target.
    async fn ask(&self, session: &Session, client: &Client) -> Result<(), CliError> {
        let form = client.get_form(&self.form).await?;
        let responses = count_noun(self.submissions.len(), "response");
        let verb = if self.purge { "Erase" } else { "Delete" };
        let question = format!("{verb} {responses} to \"{}\" on {}?", form.title, session.target_name()?);
        let what = format!("deleting {responses} to \"{}\"", form.title);
        session.confirm(&what, question, ConfirmBy::Yes).await
    }
}

/// Take submissions out of the trash
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the id of each submission. `forms responses FORM --trashed` shows what
can be restored.

Examples:
  forms responses restore frm_7k2m9q4x1abz sub_01k3v8m2f4q6s8t0w2y4z6a8bc")]
pub(super) struct Restore {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Submission ids
    #[arg(required = true, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    submissions: Vec<String>,
}

impl Run for Restore {
    fn columns(&self) -> Columns {
        SUBMISSION
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let mut batch = Batch::begin(session, self.submissions.len());
        for id in &self.submissions {
            batch.record(id, self.restore(session, &client, id).await)?;
        }
        batch.finish()
    }
}

impl Restore {
    async fn restore(&self, session: &Session, client: &Client, id: &str) -> Result<(), CliError> {
        let restored = client.restore_submission(&self.form, id).await;
        let restored = restored.map_err(|error| self.refused(error, id, &session.command_prefix()))?;
        session.output.object(&restored, || format!("{}\n", restored.id))?;
        session.output.success(&format!("{} is back", restored.id));
        Ok(())
    }

    fn refused(&self, error: ClientError, id: &str, prefix: &str) -> CliError {
        match error.problem().and_then(|problem| problem.code.known()) {
            Some(Code::NotInTrash) => {
                let help = format!("{prefix} responses show {} {id}", shell_quote(&self.form));
                CliError::client_with_help(error, help)
            }
            _ => with_open_hint(error, &self.form, prefix),
        }
    }
}
