//! `forms list`.

use clap::Args;

use crate::api::FormEntry;
use crate::cli::exit::CliError;
use crate::cli::failure;
use crate::cli::listing::{Listing, Want};
use crate::cli::session::Session;
use crate::cli::table::Cell;
use crate::client::FormQuery;
use crate::domain::json::Value;

/// List forms
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_long_help = "\
Newest first: id, status, responses, updated, title. Of forms in the trash the
time is that of their deletion. --columns can choose slug too.

Examples:
  forms list
  forms list --status published
  forms list --trashed
  forms list -o jsonl | jq -r .title"
)]
pub struct List {
    /// Show so many at most
    #[arg(long, value_name = "N", conflicts_with = "all")]
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
        let want = Want::of(self.limit, self.all);
        let format = session.output.format;
        let status = self.status.as_deref();
        let query = FormQuery { status, trashed: self.trashed, count: want.may_be_cut(format) };
        let mut pages = client.list_forms(&query, want.page(format));
        let now = session.now();
        // The last is only for those who choose it.
        let count = if session.output.columns.is_empty() { 5 } else { 6 };
        let row = |form: &FormEntry| {
            let cells = [
                Cell::text(form.id.to_string()),
                Cell::text(form.status.name()),
                Cell::number(form.response_count),
                Cell::time(form.deleted_at.unwrap_or(form.updated_at), now),
                Cell::text(&*form.title),
                Cell::text(form.slug.as_deref().unwrap_or_default()),
            ];
            cells.into_iter().take(count).collect()
        };
        let body = |forms| Value::Object(vec![("forms".to_owned(), Value::Array(forms))]);
        let moment = if self.trashed { "deleted" } else { "updated" };
        let names = ["id", "status", "responses", moment, "title", "slug"];
        let headers = names.iter().take(count).map(|name| (*name).to_owned()).collect();
        let listing = Listing { output: &session.output, want, raw: false, headers, row: &row, body: &body };
        if let Some(shown) = listing.show(&mut pages).await? {
            let of = pages.total().map(|total| format!(" of {}", failure::grouped(total)));
            let of = of.unwrap_or_default();
            session.output.say(&format!("showing {shown}{of} — use --all or --limit N"));
        }
        Ok(())
    }
}
