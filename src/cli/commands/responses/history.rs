//! `forms responses history`: what edits of a submission have replaced.

use clap::Args;
use serde_json::value::RawValue;

use crate::api::ReplacedView;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::output::listing::{Column, ListLimit, Listing};
use crate::cli::output::table::Cell;
use crate::client::ReceivedBody;
use crate::domain::json::{self, Value};

/// List what edits of a submission have replaced, newest first
#[derive(Debug, Args)]
#[command(after_long_help = "\
The columns are replaced_at, answers and metadata, as they were until then.
`forms responses show` has the present state.

Examples:
  forms responses history lunch sub_01k3v8m2f4q6s8t0w2y4z6a8bc
  forms responses history lunch sub_01k3v8m2f4q6s8t0w2y4z6a8bc -o jsonl")]
pub(super) struct History {
    /// Form, by id or slug
    form: String,
    /// Submission id
    submission: String,
    #[command(flatten)]
    limit: ListLimit,
}

type State = ReceivedBody<ReplacedView>;

impl Run for History {
    const COLUMNS: Columns = Columns::Fixed(&["replaced_at", "answers", "metadata"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (client, now, output) = (session.client().await?, session.now(), &*session.output);
        let mut pages =
            client.list_history(&self.form, &self.submission, self.limit.page_size(output.format))?;
        let columns = vec![
            Column::new("replaced_at", move |state: &State| Cell::time(state.replaced_at, now)),
            Column::new("answers", |state: &State| cell(Some(&*state.answers))),
            Column::new("metadata", |state: &State| cell(state.metadata.as_deref())),
        ];
        Listing::new(output, "history", "never edited", columns).limit(self.limit).show(&mut pages).await
    }
}

fn cell(json: Option<&RawValue>) -> Cell {
    let value = json.and_then(|json| json::parse(json.get()).ok());
    Cell::value(&value.unwrap_or(Value::Null))
}
