//! Submissions go to the trash, come back from it, or are erased.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use crate::api::Code;
use crate::cli::commands::batch::Several;
use crate::cli::connection::session::Session;
use crate::cli::input::prompt::Confirmation;
use crate::cli::output::exit::CliError;
use crate::cli::output::form_state::or_opened;
use crate::cli::output::humanize::counted;
use crate::cli::output::shell_quote::quoted;
use crate::cli::output::visible;
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
            for id in &self.submissions {
                self.find(&client, id).await?;
            }
            self.ask(session, &client).await?;
        }
        let mut several = Several::begin(session, self.submissions.len());
        let mut done = Vec::new();
        for id in &self.submissions {
            let ended = self.delete(session, &client, id).await;
            done.extend(ended.is_ok().then_some(&**id));
            several.note(id, ended)?;
        }
        self.say_done(session, &done);
        several.end()
    }

    /// Says in one line what has become of the submissions `done`.
    fn say_done(&self, session: &Session, done: &[&str]) {
        let which = match done {
            [] => return,
            [_] => String::new(),
            several => format!("{} ", counted(several.len(), "response")),
        };
        match (self.dry_run, self.purge) {
            (true, true) => session.output.say(&format!("{which}would be erased")),
            (true, false) => session.output.say(&format!("{which}would be deleted")),
            (false, true) => session.output.done(&format!("{which}erased")),
            (false, false) => {
                let (again, form) = (session.again(), visible(&self.form));
                let (ids, verb) =
                    (visible(&done.join(" ")), if done.len() == 1 { "takes it" } else { "takes them" });
                session.output.done(&format!(
                    "{which}moved to the trash; {again} responses restore {form} {ids} {verb} out"
                ));
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
        let responses = counted(self.submissions.len(), "response");
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
        let restored = client
            .restore_submission(&self.form, id)
            .await
            .map_err(|error| self.refused(error, id, &session.again()))?;
        session.output.object(&restored, || format!("{}\n", restored.id))?;
        session.output.done(&format!("{} is back", restored.id));
        Ok(())
    }

    fn refused(&self, error: ClientError, id: &str, again: &str) -> CliError {
        match error.problem().and_then(|problem| problem.code.known()) {
            Some(Code::NotInTrash) => {
                CliError::of_client(error, format!("{again} responses show {} {id}", quoted(&self.form)))
            }
            _ => or_opened(error, &self.form, again),
        }
    }
}
