//! `forms erase`.

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args};
use serde::Serialize;

use crate::api::ErasedSubmission;
use crate::cli::commands::responses::filter;
use crate::cli::commands::store::compact::compact;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::humanize::count_noun;
use crate::client::{Client, FormQuery, MAX_PAGE, SubmissionQuery};
use crate::clock::Timestamp;
use crate::domain::workspace::Scope;
use crate::id::FormId;

/// Erase what all forms have of someone
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("what").args(["search", "clauses"]).required(true).multiple(true)),
    after_long_help = "\
Searches all forms of the workspace, also those in the trash: answers, metadata,
submissions in the trash, and answers that edits replaced. A submission with a
match is erased as a whole, with its history; its deliveries that wait are
canceled. Shows what it found and asks; without a terminal, --yes is required.

Needs an API key with the scope admin. With the scope operator, too, the store
is compacted, after which no file of it has the text; otherwise it is compacted
within a day. Backups, exports, and what was delivered or mailed keep it.

Prints the ids; -o json is a receipt: ids and numbers, no answers.

Examples:
  forms erase --search ann@example.com
  forms erase --where email=ann@example.com --dry-run
  forms erase --search ann@example.com --yes -o json > receipt.json"
)]
pub struct Erase {
    /// Text in answers or metadata, ignoring case
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    search: Option<String>,
    /// An answer, exactly, such as email=ann@example.com; repeat for more
    #[arg(long = "where", value_name = "QUESTION=VALUE", value_parser = filter::parse)]
    clauses: Vec<filter::WhereClause>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Only show what would be erased
    #[arg(long)]
    dry_run: bool,
}

/// A record of an erasure: ids and numbers, no answers.
#[derive(Debug, Serialize)]
struct Receipt {
    at: Timestamp,
    erased: bool,
    /// Number of forms that were searched.
    forms: usize,
    submissions: Vec<ReceiptEntry>,
    deliveries: u64,
    /// Whether the store was compacted afterwards.
    compacted: bool,
}

#[derive(Debug, Serialize)]
struct ReceiptEntry {
    form_id: FormId,
    #[serde(flatten)]
    submission: ErasedSubmission,
}

impl Run for Erase {
    const COLUMNS: Columns =
        Columns::Fixed(&["at", "erased", "forms", "submissions", "deliveries", "compacted"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let output = &session.output;
        let forms = all_forms(&session.client().await?).await?;
        let mut receipt = self.erase(session, &forms, true).await?;
        let submissions = count_noun(receipt.submissions.len(), "submission");
        if receipt.submissions.is_empty() {
            output.status(&format!("nothing found in {}", count_noun(forms.len(), "form")));
        } else if self.dry_run {
            show(session, &receipt);
            output.status(&format!(
                "would erase {submissions}, with {}",
                count_noun(receipt.deliveries, "delivery record")
            ));
        } else {
            if !self.yes {
                show(session, &receipt);
                session.confirm(&format!("erase {submissions}"), ConfirmBy::Yes).await?;
            }
            receipt = self.erase(session, &forms, false).await?;
            let client = session.client().await?;
            let may_compact = client.whoami().await?.key.scopes.iter().any(|scope| *scope == Scope::Operator);
            if may_compact {
                compact(&client).await?;
            }
            receipt.compacted = may_compact;
            output.success(&format!("Erased {submissions}"));
            output.status(match may_compact {
                true => "the answers are in no file of the store any more",
                false => "the answers leave the store within a day, or by `forms store compact` with an operator's key",
            });
            output.status("backups, exported files, and what was delivered or mailed keep them");
        }
        let ids = || receipt.submissions.iter().map(|one| format!("{}\n", one.submission.id)).collect();
        output.object(&receipt, ids)
    }
}

impl Erase {
    /// Erases the matches in all `forms`, or in a `dry_run` only finds them.
    async fn erase(&self, session: &Session, forms: &[FormId], dry_run: bool) -> Result<Receipt, CliError> {
        let client = session.client().await?;
        let query = SubmissionQuery {
            q: self.search.clone(),
            answers: self.clauses.clone(),
            ..SubmissionQuery::default()
        };
        let (at, erased, submissions) = (session.now(), !dry_run, Vec::new());
        let mut receipt =
            Receipt { at, erased, forms: forms.len(), submissions, deliveries: 0, compacted: false };
        let mut impossible = None;
        for form in forms {
            let erasure = match client.erase_submissions(&form.to_string(), &query, dry_run).await {
                Err(error) if filter::can_never_match(&error) => {
                    impossible = Some(error);
                    receipt.forms -= 1;
                    continue;
                }
                erasure => erasure.map_err(|error| self.explain(error.into()))?,
            };
            receipt.deliveries += erasure.deliveries;
            let entry = |submission| ReceiptEntry { form_id: *form, submission };
            receipt.submissions.extend(erasure.submissions.into_iter().map(entry));
        }
        match impossible {
            // A typo must not look like a person who is not there.
            Some(error) if receipt.forms == 0 => Err(self.explain(error.into())),
            _ => Ok(receipt),
        }
    }

    /// Names the flags in an error.
    fn explain(&self, error: CliError) -> CliError {
        match error {
            CliError::Client { error, .. } if error.status() == Some(422) => {
                let help = "search for a longer text, or use `forms responses delete FORM --where ...`";
                CliError::client_with_help(error, help)
            }
            error => filter::in_flags(error, &self.clauses, &[], "any form"),
        }
    }
}

/// Shows what was found, before the question.
fn show(session: &Session, receipt: &Receipt) {
    for ReceiptEntry { form_id, submission: ErasedSubmission { id, found_in } } in &receipt.submissions {
        let places: Vec<_> = found_in.iter().map(ToString::to_string).collect();
        session.output.status(&format!("{id} of {form_id}: found in {}", places.join(" and ")));
    }
}

/// Returns the ids of all forms, those in the trash included.
async fn all_forms(client: &Client) -> Result<Vec<FormId>, CliError> {
    let trashed = FormQuery { trashed: true, ..FormQuery::default() };
    let mut forms = client.list_forms(&FormQuery::default(), MAX_PAGE).all().await?;
    forms.extend(client.list_forms(&trashed, MAX_PAGE).all().await?);
    Ok(forms.iter().map(|form| form.id).collect())
}
