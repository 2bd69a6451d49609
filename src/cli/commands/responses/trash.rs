//! `forms responses delete` and `restore`.

use std::cell::RefCell;

use clap::Args;

use crate::api::{Code, SubmissionDetail};
use crate::cli::commands::batch::for_each;
use crate::cli::commands::responses::filter;
use crate::cli::commands::trash::Deletion;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::answers;
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::input::values::moment;
use crate::cli::output::columns::{DELETED, SUBMISSION};
use crate::cli::output::form_state::with_open_hint;
use crate::cli::output::humanize::count_noun;
use crate::cli::output::shell_quote::shell_quote;
use crate::client::{Client, ClientError, MAX_PAGE, SubmissionQuery};

/// Move submissions to the trash, or erase them
#[derive(Debug, Args)]
#[command(after_long_help = "\
Asks for confirmation; without a terminal, --yes is required. Prints the id of
each submission.

Examples:
  forms responses delete frm_7k2m9q4x1abz sub_01k3v8m2f4q6s8t0w2y4z6a8bc
  forms responses delete frm_7k2m9q4x1abz --where email=ann@example.com --purge
  forms responses delete frm_7k2m9q4x1abz --until 365d --yes")]
pub(super) struct Delete {
    /// Form, by id or slug
    form: String,
    /// Submission ids
    #[arg(value_name = "ID", required_unless_present_any = ["clauses", "search", "until"], conflicts_with_all = ["clauses", "search", "until"])]
    submissions: Vec<String>,
    /// Those with this answer, such as colour=red or score.gte=4; repeat for more
    #[arg(long = "where", value_name = "QUESTION=VALUE", value_parser = filter::parse)]
    clauses: Vec<filter::WhereClause>,
    /// Those with this text in an answer, ignoring case
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Those before this time: 2026-11-20, 2026-11-20T09:00:00Z, or 30d
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<String>,
    #[command(flatten)]
    how: Deletion,
}

impl Run for Delete {
    const COLUMNS: Columns = DELETED;

    /// Deletes the submissions, after confirming all of them at once.
    async fn run(mut self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let is_search = self.submissions.is_empty();
        if is_search {
            self.submissions = self.search(&client).await?;
            if self.submissions.is_empty() {
                session.output.status("no responses match");
                return Ok(());
            }
        }
        let Self { form, submissions, how, .. } = &self;
        let responses = |count: usize| count_noun(count, "response");
        if !how.yes && !how.dry_run {
            for id in submissions.iter().filter(|_| !is_search) {
                self.find(&client, id).await?;
            }
            let title = &client.get_form(form).await?.title;
            let name = format!("{} to \"{title}\"", responses(submissions.len()));
            session.confirm(&how.what(&name), ConfirmBy::Yes).await?;
        }
        let (client, deleted) = (session.client().await?, RefCell::new(Vec::new()));
        let ended = for_each(session, submissions, async |id| {
            match how.dry_run {
                true => self.find(&client, id).await?,
                false => client.delete(&["forms", form, "submissions", id], how.purge).await?,
            }
            deleted.borrow_mut().push(id.to_owned());
            how.print(session, id)
        })
        .await;
        let deleted = deleted.into_inner();
        if !deleted.is_empty() {
            let undo = format!("responses restore {} {}", shell_quote(form), short_list(&deleted));
            how.report(session, &responses(deleted.len()), &undo);
        }
        ended
    }
}

impl Delete {
    /// Returns the ids of the submissions that match.
    async fn search(&self, client: &Client) -> Result<Vec<String>, CliError> {
        let Self { form, clauses, search, until, .. } = self;
        let query = SubmissionQuery {
            q: search.clone(),
            until: until.clone(),
            answers: clauses.clone(),
            ..SubmissionQuery::default()
        };
        match client.list_submissions(form, &query, MAX_PAGE)?.all().await {
            Ok(found) => Ok(found.iter().map(|one| one.id.to_string()).collect()),
            Err(error) => {
                let form = client.get_form(form).await?;
                let asked = answers::parse_questions(&form.questions);
                Err(filter::in_flags(error.into(), clauses, &asked, &form.title))
            }
        }
    }

    /// Checks that the submission exists; with `--purge` it may be in the trash.
    async fn find(&self, client: &Client, id: &str) -> Result<(), CliError> {
        let Err(missing) = client.get::<SubmissionDetail>(&["forms", &self.form, "submissions", id]).await
        else {
            return Ok(());
        };
        if !self.how.purge || missing.status() != Some(404) {
            return Err(missing.into());
        }
        let query = SubmissionQuery { trashed: true, ..SubmissionQuery::default() };
        let trashed = client.list_submissions(&self.form, &query, MAX_PAGE)?;
        let found = trashed.find(|submission| submission.id.to_string() == id).await?;
        Ok(found.map(drop).ok_or(missing)?)
    }
}

/// Joins ids for a command to paste; of many, an example.
fn short_list(ids: &[String]) -> String {
    if ids.len() > 20 { "ID...".to_owned() } else { ids.join(" ") }
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
    form: String,
    /// Submission ids
    #[arg(required = true, value_name = "ID")]
    submissions: Vec<String>,
}

impl Run for Restore {
    const COLUMNS: Columns = SUBMISSION;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        act_on_each(session, &self.form, &self.submissions, ("restore", "Restored")).await
    }
}

/// Carries out `action` on submissions to `form`, and prints each as `done`.
pub(in crate::cli::commands) async fn act_on_each(
    session: &Session,
    form: &str,
    submissions: &[String],
    (action, done): (&str, &str),
) -> Result<(), CliError> {
    let client = session.client().await?;
    for_each(session, submissions, async |id| {
        let changed = client.act::<SubmissionDetail>(&["forms", form, "submissions", id, action]).await;
        let changed = changed.map_err(|error| refused(error, form, id, &session.command_prefix()))?;
        session.output.object(&changed, || format!("{}\n", changed.id))?;
        session.output.success(&format!("{done} {}", changed.id));
        Ok(())
    })
    .await
}

/// Adds the help to the refusal of an action on the submission `id`.
pub(in crate::cli::commands) fn refused(error: ClientError, form: &str, id: &str, prefix: &str) -> CliError {
    match error.problem().and_then(|problem| problem.code.known()) {
        Some(Code::NotInTrash | Code::NotQuarantined) => {
            let help = format!("{prefix} responses show {} {id}", shell_quote(form));
            CliError::client_with_help(error, help)
        }
        _ => with_open_hint(error, form, prefix),
    }
}
