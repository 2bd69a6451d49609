//! `forms store compact`.

use clap::Args;

use crate::api::StoreView;
use crate::cli::commands::store::act_and_wait;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::output::humanize::bytes;
use crate::client::{Client, ReceivedBody};

/// Free the space of what was deleted
#[derive(Debug, Args)]
#[command(after_long_help = "\
What was overwritten and deleted leaves the journal, and what was erased is in
no file of journal and index afterwards. A server compacts by itself when the
journal has doubled, and within a day after an erasure.

Waits until it is done, and prints the size of the journal in bytes.

Examples:
  forms store compact
  forms responses delete lunch sub_01m7zrnhzxdyw0mjm2m1msxnrf --purge --yes &&
    forms store compact")]
pub struct Compact {}

impl Run for Compact {
    const COLUMNS: Columns =
        Columns::Fixed(&["journal_bytes", "index_bytes", "free_bytes", "compacting", "version"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let before = client.get::<StoreView>(&["store"]).await?;
        let now = compact(&client).await?;
        session.output.object(&now, || format!("{}\n", now.journal_bytes))?;
        if now.free_bytes.is_none() {
            session.output.success("the database frees the space of what was erased by itself");
            return Ok(());
        }
        let (before, after) = (bytes(before.journal_bytes), bytes(now.journal_bytes));
        session.output.success(&format!("compacted: {before} before, {after} now"));
        Ok(())
    }
}

/// Compacts the store, and returns it as it is once that is done.
pub(in crate::cli::commands) async fn compact(client: &Client) -> Result<ReceivedBody<StoreView>, CliError> {
    act_and_wait(client, "compact", |now| now.compacting).await
}
