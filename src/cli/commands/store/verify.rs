//! `forms store verify`.

use std::path::Path;

use clap::Args;

use crate::api::{DamageView, StoreView, VerificationView};
use crate::cli::commands::store::act_and_wait;
use crate::cli::commands::{CliError, Columns, Run, Session, read_input};
use crate::cli::connection::local_store::{expect_store, open_error};
use crate::cli::connection::target;
use crate::cli::output::humanize::count_noun;
use crate::config::StoreLocation;
use crate::server::{ServerError, verify_database};
use crate::store::check_journal;

/// Check the files of the store
#[derive(Debug, Args)]
#[command(after_long_help = "\
Reads all of the journal, compares every checksum, and looks for missing files
and writes. A server does so while it goes on, also compares every row of the
index with the journal, and rebuilds a wrong index at once. With --data nothing
is changed, and the index is not read: a server compares it after each start.
If a running server of yours has the directory, the server is asked.

Of a database, every row is read, and counters and references are compared
with what they are about. With --store nothing is changed.

Prints a line for each damage: file or table, offset, and what it is; exit code
1 if there is any.

Examples:
  forms store verify
  forms store verify --data ./store
  forms store verify --store postgres://forms@db.example.com/forms")]
pub struct Verify {
    #[arg(long, value_name = "URL", help = "Database to verify without a server [env: FORMS_STORE]")]
    store: Option<StoreLocation>,
}

impl Run for Verify {
    const COLUMNS: Columns = Columns::Fixed(&["files", "writes", "rows", "damage"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let location = target::store(&session.global, &session.environment, self.store)?;
        let name = location.as_ref().map(ToString::to_string);
        let server = |data: &Path| session.running_servers().into_iter().find(|one| one.holds(data));
        let (check, name) = match location {
            Some(StoreLocation::Database(url)) => {
                let name = name.unwrap_or_default();
                let check = verify_database(url.reveal()).await;
                (check.map_err(|error| open_error(Path::new(&name), error, ""))?.into(), name)
            }
            Some(StoreLocation::Folder(data)) if server(&data).is_none() => {
                expect_store(&data)?;
                let name = data.display().to_string();
                let check = move || {
                    let help = "stop it, or ask it: forms store verify";
                    check_journal(&data).map_err(|error| open_error(&data, ServerError::Open(error), help))
                };
                (read_input(check).await?.into(), name)
            }
            location => {
                let data = location.as_ref().and_then(StoreLocation::folder);
                if let Some(server) = data.and_then(server) {
                    session.use_target(target::running(server)?);
                }
                (ask(session).await?, session.target_name()?)
            }
        };
        let line = |damage: &DamageView| format!("{}\t{}\t{}\n", damage.file, damage.offset, damage.what);
        session.output.object(&check, || check.damage.iter().map(line).collect())?;
        let parts = [(check.files, "file"), (check.writes, "write"), (check.rows, "compacted row")];
        let read = match check.files {
            0 => count_noun(check.rows, "row"),
            _ => parts.map(|(count, noun)| count_noun(count, noun)).join(", "),
        };
        match check.damage.len() {
            0 => session.output.success(&format!("no damage: {read}")),
            places => return Err(CliError::Damaged { data: name, places }),
        }
        Ok(())
    }
}

/// Has a server verify its store, and waits for the result.
async fn ask(session: &Session) -> Result<VerificationView, CliError> {
    let client = session.client().await?;
    let before = client.get::<StoreView>(&["store"]).await?.verified_at;
    let now = act_and_wait(&client, "verify", |now| now.verifying).await?;
    now.verification.clone().filter(|_| now.verified_at != before).ok_or_else(|| CliError::Failed {
        message: "the store could not be verified".to_owned(),
        causes: vec!["the log of the server has the cause".to_owned()],
    })
}
