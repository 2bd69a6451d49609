//! `forms list`.

use clap::Args;

use crate::api::FormEntry;
use crate::cli::args::count;
use crate::cli::exit::CliError;
use crate::cli::failure;
use crate::cli::listing::{Listing, Want};
use crate::cli::session::Session;
use crate::cli::table::Cell;
use crate::client::{FormQuery, Received};
use crate::clock::Timestamp;
use crate::domain::json::Value;

/// List forms
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_long_help = "\
Newest first. The columns are id, status, response_count, updated_at and title;
--columns can choose slug, created_at and accepting_reason too: why a published
form takes no answers now. On a terminal that stands in place of its status. Of
forms in the trash the time is deleted_at.

Examples:
  forms list
  forms list --status published
  forms list --columns slug,accepting_reason
  forms list --trashed
  forms list -o jsonl | jq -r .title"
)]
pub struct List {
    /// Show so many at most
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "all")]
    limit: Option<usize>,
    /// Show all of them
    #[arg(long)]
    all: bool,
    /// Only drafts, or only published ones
    #[arg(long, value_name = "STATUS", value_parser = ["draft", "published"])]
    status: Option<String>,
    /// Those in the trash
    #[arg(long)]
    trashed: bool,
}

impl List {
    /// Lists the forms.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let output = &*session.output;
        let want = Want::of(self.limit, self.all);
        let status = self.status.as_deref();
        let query = FormQuery { status, trashed: self.trashed, count: want.may_be_cut(output.format) };
        let mut pages = client.list_forms(&query, want.page(output.format));
        let now = session.now();
        // The others are only for those who choose them.
        let count = if output.columns.is_empty() { USUAL } else { COLUMNS.len() };
        let row = |form: &Received<FormEntry>| cells(form, now).into_iter().take(count).collect();
        let moment = if self.trashed { "deleted_at" } else { "updated_at" };
        let name = |name: &&str| if *name == "updated_at" { moment } else { name }.to_owned();
        let headers = COLUMNS.iter().take(count).map(name).collect();
        let body = |forms| Value::Object(vec![("forms".to_owned(), Value::Array(forms))]);
        let listing = Listing { output, want, raw: false, headers, row: &row, body: &body };
        if let Some(shown) = listing.show(&mut pages).await? {
            let of = pages.total().map(|total| format!(" of {}", failure::grouped(total)));
            let of = of.unwrap_or_default();
            output.say(&format!("showing {shown}{of} — use --all or --limit N"));
        }
        Ok(())
    }
}

/// The columns there are, by the names that the API has for them.
const COLUMNS: [&str; 8] =
    ["id", "status", "response_count", "updated_at", "title", "slug", "created_at", "accepting_reason"];

/// How many of them are shown unless others are chosen.
const USUAL: usize = 5;

/// A cell for each of the columns.
fn cells(form: &FormEntry, now: Timestamp) -> [Cell; COLUMNS.len()] {
    let shut = form.accepting_reason.as_ref().map(ToString::to_string);
    let status = form.status.to_string();
    [
        Cell::text(form.id.to_string()),
        Cell::text(&*status).shown(shut.as_ref().unwrap_or(&status).replace('_', " ")),
        Cell::number(form.response_count),
        Cell::time(form.deleted_at.unwrap_or(form.updated_at), now),
        Cell::text(&*form.title),
        Cell::text(form.slug.as_deref().unwrap_or_default()),
        Cell::time(form.created_at, now),
        Cell::text(shut.unwrap_or_default()),
    ]
}
