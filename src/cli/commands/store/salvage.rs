//! `forms store salvage`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::cli::commands::store::restore::{UNFINISHED, clear, expect_empty, write};
use crate::cli::commands::store::{complete, data_directory};
use crate::cli::commands::{CliError, Columns, Run, Session, read_input};
use crate::cli::connection::local_store::{expect_store, open_error};
use crate::cli::output::humanize::count_noun;
use crate::secret::SystemRandomness;
use crate::server::ServerError;
use crate::store::{self, Damage};

/// Write a new store from all that can be read of a damaged one
#[derive(Debug, Args)]
#[command(after_long_help = "\
--data names the damaged data directory, which is not changed, and --to the new
one, which must be empty or missing. Restore a backup instead if it is recent.

What is lost is counted where the rest shows it. Writes that cannot be read may
have changed more than that: what they changed is as it was before, and what
they deleted is there again. Answers whose form is lost are in lost/FORM.jsonl
in the new directory. A new operator key is written, as by restore.

Prints a line for each damage: file, offset, and what it is; exit code 1 if
anything is lost.

Examples:
  forms store salvage --data ./store --to ./salvaged
  forms store salvage --data ./store --to ./salvaged -o json > report.json")]
pub struct Salvage {
    /// New data directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    to: PathBuf,
}

impl Run for Salvage {
    const COLUMNS: Columns = Columns::Fixed(&["forms", "submissions", "damage"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (data, to) = (data_directory(session, "add --data DIR, the damaged store")?, self.to);
        expect_store(&data)?;
        expect_empty(&to)?;
        if is_within(&to, &data) {
            let message = format!("{} lies in {}, which must not change", to.display(), data.display());
            return Err(CliError::usage_with_help(message, "name a folder elsewhere"));
        }
        session.refuse_if_served(&data, IF_IN_USE)?;
        let unfinished = to.join(UNFINISHED);
        let (from, into) = (data.clone(), unfinished.clone());
        let salvaged = read_input(move || salvage(&from, &into)).await?;
        complete(session, &unfinished, &to).await?;
        let line = |damage: &Damage| format!("{}\t{}\t{}\n", damage.file, damage.offset, damage.what);
        session.output.object(&salvaged, || salvaged.damage.iter().map(line).collect())?;
        let (forms, submissions) = (salvaged.forms, salvaged.submissions);
        let counted = |forms: u64, submissions: u64| {
            format!("{}, {}", count_noun(forms, "form"), count_noun(submissions, "submission"))
        };
        session.output.success(&format!("read: {}", counted(forms.read, submissions.read)));
        if salvaged.is_complete && forms.lost + submissions.lost == 0 && forms.read > 0 {
            return Ok(());
        }
        let (counted, is_complete) = (counted(forms.lost, submissions.lost), salvaged.is_complete);
        Err(CliError::Lost { counted, is_complete })
    }
}

/// Whether the folder `inner`, which may be missing, would lie in `outer`.
fn is_within(inner: &Path, outer: &Path) -> bool {
    let Ok(outer) = outer.canonicalize() else { return false };
    let absolute = std::path::absolute(inner).unwrap_or_default();
    absolute.ancestors().filter_map(|folder| folder.canonicalize().ok()).any(|folder| folder == outer)
}

/// Help if another process holds the damaged store.
const IF_IN_USE: &str = "stop it first";

fn salvage(data: &Path, into: &Path) -> Result<store::Salvage, CliError> {
    clear(into)?;
    let failed = |error| open_error(data, ServerError::Open(error), IF_IN_USE);
    let (salvaged, files) = store::salvage(data, into, &SystemRandomness).map_err(failed)?;
    for mut file in files {
        let unwritable = |error| CliError::io(format!("cannot copy {}", file.path), error);
        write(&into.join(&file.path), &mut file.content).map_err(unwritable)?;
    }
    Ok(salvaged)
}
