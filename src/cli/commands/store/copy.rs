//! `forms store copy`.

use std::path::Path;

use clap::{Args, ValueHint};

use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::connection::local_store::{expect_store, open_error};
use crate::cli::output::humanize::count_noun;
use crate::config::StoreLocation;
use crate::server::copy_store;
use crate::store::CopiedKind;

/// Copy a store into another, into or out of a database
#[derive(Debug, Args)]
#[command(after_long_help = "\
A store is a data directory, whose server must be stopped, or a database. Both
are compared, and what differs is written, until nothing differs. So a copy
that was interrupted is continued by the same command; while servers of a
database are running, repeat it once they are stopped.

The new store must be empty, or an earlier copy of the same one. Keys of the
API go on; secrets of integrations need the same master key: copy the file
master-key, or set FORMS_MASTER_KEY to what is in it.

Prints a line for each kind of record: its name, number, and checksum, which
are the same in both stores; exit code 1 if something still differs.

Examples:
  forms store copy --from ./store --to postgres://forms@db.example.com/forms
  forms store copy --from postgres://forms@db.example.com/forms --to ./store")]
pub struct Copy {
    /// Data directory or database to read
    #[arg(long, value_name = "STORE", value_hint = ValueHint::DirPath)]
    from: StoreLocation,
    /// Data directory or database to write
    #[arg(long, value_name = "STORE", value_hint = ValueHint::DirPath)]
    to: StoreLocation,
}

impl Run for Copy {
    const COLUMNS: Columns = Columns::Fixed(&["kinds", "changes", "is_equal"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let Self { from, to } = self;
        for folder in [from.folder(), to.folder()].into_iter().flatten() {
            session.refuse_if_served(folder, IF_IN_USE)?;
        }
        if let Some(folder) = from.folder() {
            expect_store(folder)?;
        }
        if from == to {
            return Err(CliError::usage_with_help("both stores are the same", "name another one with --to"));
        }
        let bar = session.output.progress_of(0, "records");
        let progress = |total: Option<u64>, compared: u64| {
            if let Some(total) = total {
                bar.set_position(0);
                bar.set_length(total);
            }
            bar.inc(compared);
        };
        let copied = copy_store(&from, &to, progress).await;
        bar.finish_and_clear();
        let names = format!("{from} or {to}");
        let copied = copied.map_err(|error| open_error(Path::new(&names), error, IF_IN_USE))?;
        let line = |kind: &CopiedKind| format!("{}\t{}\t{:016x}\n", kind.kind, kind.count, kind.checksum);
        session.output.object(&copied, || copied.kinds.iter().map(line).collect())?;
        let records = count_noun(copied.kinds.iter().map(|kind| kind.count).sum::<u64>(), "record");
        match copied.is_equal {
            true => session.output.success(&format!("both have the same {records}")),
            false => return Err(CliError::Differs { from: from.to_string() }),
        }
        Ok(())
    }
}

/// Help if a server has the data directory.
const IF_IN_USE: &str = "stop it first";
