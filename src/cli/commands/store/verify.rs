//! `forms store verify`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::commands::{CliError, Columns, Run, Session, read_input};
use crate::cli::connection::local_store::expect_store;
use crate::cli::connection::target::Target;
use crate::cli::output::humanize::count_noun;
use crate::store::{Damage, OpenError, check_journal};

/// Check the files of the store
#[derive(Debug, Args)]
#[command(after_long_help = "\
Reads all of the journal, compares every checksum, and looks for missing files
and writes. Nothing is changed, and a server may go on meanwhile: it verifies
its index itself, and rebuilds a wrong one from the journal.

Without --data, checks the data directory of your running server. Prints a line
for each damage: file, offset, and what it is; exit code 1 if there is any.

Examples:
  forms store verify
  forms store verify --data ./store")]
pub struct Verify {}

impl Run for Verify {
    const COLUMNS: Columns = Columns::Fixed(&["files", "writes", "rows", "damage"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let data = folder(session)?;
        expect_store(&data)?;
        let name = data.display().to_string();
        let check = read_input(move || Ok(check_journal(&data))).await?;
        let check = check.map_err(|error| unreadable(&name, error))?;
        let line = |damage: &Damage| format!("{}\t{}\t{}\n", damage.file, damage.offset, damage.what);
        session.output.object(&check, || check.damage.iter().map(line).collect())?;
        let parts = [(check.files, "file"), (check.writes, "write"), (check.rows, "compacted row")];
        let read = parts.map(|(count, noun)| count_noun(count, noun)).join(", ");
        match check.damage.len() {
            0 => session.output.success(&format!("no damage: {read}")),
            places => return Err(CliError::Damaged { data: name, places }),
        }
        Ok(())
    }
}

/// Returns the data directory: that of `--data`, or of the running server that commands use.
fn folder(session: &Session) -> Result<PathBuf, CliError> {
    match session.target()? {
        Target::Data(data) => Ok(data.value.clone()),
        Target::Server { url, .. } => {
            let servers = session.running_servers();
            let server = servers.into_iter().find(|server| server.is_at(&url.value));
            let missing =
                || CliError::usage_with_help("the files of the store are not known", "add --data DIR");
            server.map(|server| server.data).ok_or_else(missing)
        }
    }
}

fn unreadable(name: &str, error: OpenError) -> CliError {
    match error {
        OpenError::Io { doing, source } => CliError::io(format!("cannot {doing} in {name}"), source),
        error => CliError::usage(format!("cannot check {name}: {error}")),
    }
}
