//! Submissions go to the trash, come back from it, or are erased.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use crate::api::Code;
use crate::cli::exit::CliError;
use crate::cli::form::or_opened;
use crate::cli::output::visible;
use crate::cli::prompt::Confirmation;
use crate::cli::session::Session;
use crate::cli::several::Several;
use crate::client::{Client, ClientError, MAX_PAGE, SubmissionQuery};

/// Move submissions to the trash, or erase them
#[derive(Debug, Args)]
#[command(after_long_help = "\
Asks first; where nobody can be asked, --yes is needed. Prints the id of each
submission.

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
    /// Erase at once and for ever
    #[arg(long)]
    purge: bool,
    /// Only say what would be deleted
    #[arg(long)]
    dry_run: bool,
}

impl Delete {
    /// Deletes the submissions, once that was confirmed for all of them.
    pub(super) async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        if !self.yes && !self.dry_run {
            self.ask(session, &client).await?;
        }
        let mut several = Several::begin(session, self.submissions.len());
        for id in &self.submissions {
            several.note(id, self.delete(session, &client, id).await)?;
        }
        several.end()
    }

    async fn delete(&self, session: &Session, client: &Client, id: &str) -> Result<(), CliError> {
        let (output, text) = (&session.output, || format!("{}\n", visible(id)));
        if self.dry_run {
            self.find(client, id).await?;
            output.object(&json!({"id": id, "deleted": false}), text)?;
            output.say(if self.purge { "would be erased" } else { "would be deleted" });
            return Ok(());
        }
        client.delete_submission(&self.form, id, self.purge).await?;
        output.object(&json!({"id": id, "deleted": true}), text)?;
        if self.purge {
            output.say("erased");
        } else {
            let (again, form) = (session.again(), visible(&self.form));
            let restore = format!("{again} responses restore {form} {}", visible(id));
            output.say(&format!("moved to the trash; {restore} takes it out"));
        }
        Ok(())
    }

    /// Fails if there is no such submission. One that is to be erased may be in the trash.
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

    /// The question names the form and the target.
    async fn ask(&self, session: &Session, client: &Client) -> Result<(), CliError> {
        let form = client.get_form(&self.form).await?;
        let responses = match self.submissions.len() {
            1 => "1 response".to_owned(),
            count => format!("{count} responses"),
        };
        let verb = if self.purge { "Erase" } else { "Delete" };
        let question = format!("{verb} {responses} to \"{}\" on {}?", form.title, session.target_name()?);
        let what = format!("deleting {responses} to \"{}\"", form.title);
        session.confirm(&what, question, Confirmation::Yes).await
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

impl Restore {
    /// Restores the submissions.
    pub(super) async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let mut several = Several::begin(session, self.submissions.len());
        for id in &self.submissions {
            several.note(id, self.restore(session, &client, id).await)?;
        }
        several.end()
    }

    async fn restore(&self, session: &Session, client: &Client, id: &str) -> Result<(), CliError> {
        let restored =
            client.restore_submission(&self.form, id).await.map_err(|error| self.refused(error, id))?;
        session.output.object(&restored, || format!("{}\n", restored.id))?;
        session.output.say(&format!("{} is back", restored.id));
        Ok(())
    }

    fn refused(&self, error: ClientError, id: &str) -> CliError {
        match error.problem().and_then(|problem| problem.code.known()) {
            Some(Code::NotInTrash) => {
                CliError::of_client(error, format!("forms responses show {} {id}", self.form))
            }
            _ => or_opened(error, &self.form),
        }
    }
}
