//! Commands on form files, which need no server.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::cli::document;
use crate::cli::exit::CliError;
use crate::cli::session::Session;
use crate::cli::several::Several;
use crate::domain::limits::Limits;

/// Check form files, offline
#[derive(Debug, Args)]
#[command(after_long_help = "\
Every problem of every file is shown at once, with its place. Exit code 6 if
there is one.

Examples:
  forms validate survey.yaml
  forms validate forms/*.yaml
  forms show frm_7k2m9q4x1abz -o yaml | forms validate -")]
pub struct Validate {
    /// Files in YAML or JSON, - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Validate {
    /// Checks the files and says of each whether it is fit.
    pub fn run(self, session: &Session) -> Result<(), CliError> {
        let mut several = Several::begin(session, self.files.len());
        for path in &self.files {
            let file = path.display().to_string();
            let checked = check(session, path).and_then(|()| {
                session.output.object(&json!({"file": file, "valid": true}), || format!("{file}: ok\n"))
            });
            several.note(&file, checked)?;
        }
        several.end_as_worst()
    }
}

fn check(session: &Session, path: &Path) -> Result<(), CliError> {
    session.warn_of_terminal(path);
    document::read(path, &Limits::default()).map(drop)
}
