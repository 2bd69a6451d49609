//! `forms spam`: submissions that are quarantined.

use std::cell::Cell;
use std::cmp::Reverse;

use clap::Args;

use crate::api::{Code, Problem, SubmissionDetail};
use crate::cli::commands::batch::for_each;
use crate::cli::commands::responses::list::{OF_FORMS, show_of_forms};
use crate::cli::commands::responses::trash::{act_on_each, refused};
use crate::cli::commands::trash::Deletion;
use crate::cli::commands::{CliError, Columns, Run, Session, subcommands};
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::columns::{DELETED, SUBMISSION};
use crate::cli::output::humanize::count_noun;
use crate::cli::output::listing::ListLimit;
use crate::client::{Client, ClientError, FormQuery, MAX_PAGE, ReceivedBody, SubmissionQuery};
use crate::domain::submission::SubmissionStatus;

subcommands! {
    /// List, release and erase quarantined submissions
    #[command(after_long_help = "\
A submission to a form's page that looks like spam is quarantined: it does not
count, nothing is sent to integrations, and no other list, export or file has
it. It is erased after as many days as the trash is kept, unless it is released.

Examples:
  forms spam list
  forms spam release lunch sub_01k3v8m2f4q6s8t0w2y4z6a8bc
  forms spam purge lunch")]
    pub enum Spam {
        List(List),
        Release(Release),
        Purge(Purge),
    }
}

/// List quarantined submissions, newest first
#[derive(Debug, Args)]
#[command(after_long_help = "\
The columns are form_id, id, submitted_at and answers.

Examples:
  forms spam list
  forms spam list lunch
  forms spam list lunch -o jsonl | jq -r .id | xargs forms spam release lunch")]
pub struct List {
    /// Form, by id or slug; default: all forms
    form: Option<String>,
    #[command(flatten)]
    limit: ListLimit,
}

impl Run for List {
    const COLUMNS: Columns = Columns::Fixed(&OF_FORMS);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (client, mut found) = (session.client().await?, Vec::new());
        let forms = match self.form {
            Some(form) => vec![form],
            None => {
                let forms = client.list_forms(&FormQuery::default(), MAX_PAGE).all().await?;
                forms.iter().map(|form| form.id.to_string()).collect()
            }
        };
        for form in forms {
            found.extend(quarantined(&client, &form).await?);
        }
        found.sort_unstable_by_key(|submission| Reverse(submission.id));
        show_of_forms(session, found, self.limit, false, "no quarantined responses")
    }
}

/// Take submissions out of quarantine
#[derive(Debug, Args)]
#[command(after_long_help = "\
A released submission is listed, counts, and is delivered to integrations as if
it had just arrived. Prints the id of each submission.

Examples:
  forms spam release lunch sub_01k3v8m2f4q6s8t0w2y4z6a8bc")]
pub struct Release {
    /// Form, by id or slug
    form: String,
    /// Submission ids
    #[arg(required = true, value_name = "ID")]
    submissions: Vec<String>,
}

impl Run for Release {
    const COLUMNS: Columns = SUBMISSION;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        act_on_each(session, &self.form, &self.submissions, ("release", "Released")).await
    }
}

/// Erase quarantined submissions
#[derive(Debug, Args)]
#[command(after_long_help = "\
Asks for confirmation; without a terminal, --yes is required. Needs an API key
with the scope admin. Prints the id of each submission.

Examples:
  forms spam purge lunch
  forms spam purge lunch sub_01k3v8m2f4q6s8t0w2y4z6a8bc --yes")]
pub struct Purge {
    /// Form, by id or slug
    form: String,
    /// Submission ids; default: all quarantined ones
    #[arg(value_name = "ID")]
    submissions: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl Run for Purge {
    const COLUMNS: Columns = DELETED;

    async fn run(mut self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        if self.submissions.is_empty() {
            let found = quarantined(&client, &self.form).await?;
            self.submissions = found.iter().map(|submission| submission.id.to_string()).collect();
        }
        let Self { form, submissions, yes } = &self;
        if submissions.is_empty() {
            session.output.status("no quarantined responses");
            return Ok(());
        }
        let how = Deletion { yes: *yes, purge: true, dry_run: false };
        let responses = |count: usize| count_noun(count, "quarantined response");
        if !yes {
            let title = &client.get_form(form).await?.title;
            let name = format!("{} to \"{title}\"", responses(submissions.len()));
            session.confirm(&how.what(&name), ConfirmBy::Yes).await?;
        }
        let (client, erased) = (session.client().await?, Cell::new(0));
        let ended = for_each(session, submissions, async |id| {
            let purged = purge(&client, form, id).await;
            purged.map_err(|error| refused(error, form, id, &session.command_prefix()))?;
            erased.set(erased.get() + 1);
            how.print(session, id)
        })
        .await;
        if erased.get() > 0 {
            how.report(session, &responses(erased.get()), "");
        }
        ended
    }
}

/// Returns the quarantined submissions to `form`.
async fn quarantined(
    client: &Client,
    form: &str,
) -> Result<Vec<ReceivedBody<SubmissionDetail>>, ClientError> {
    let status = Some(SubmissionStatus::Quarantined.name());
    let query = SubmissionQuery { status, ..SubmissionQuery::default() };
    client.list_submissions(form, &query, MAX_PAGE)?.all().await
}

/// Erases a submission if it is quarantined: it may have been released since it was listed.
async fn purge(client: &Client, form: &str, id: &str) -> Result<(), ClientError> {
    let path = ["forms", form, "submissions", id];
    let found = client.get::<SubmissionDetail>(&path).await?;
    if found.status != SubmissionStatus::Quarantined {
        let problem = Problem::new(Code::NotQuarantined).detail("the submission is not quarantined");
        return Err(ClientError::Problem(Box::new(problem)));
    }
    client.delete(&path, true).await
}
