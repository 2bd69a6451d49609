//! Commands on form files, which need no server.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::cli::diagnostics::Report;
use crate::cli::document;
use crate::cli::exit::CliError;
use crate::cli::output::{Format, json_line};
use crate::cli::session::Session;
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
        let mut failures = Vec::new();
        let mut fit = Vec::new();
        for path in &self.files {
            match check(session, path) {
                Ok(()) => fit.push(path.display().to_string()),
                Err(failure) => failures.push(failure),
            }
        }
        if let Some(last) = failures.pop() {
            failures.iter().for_each(|failure| session.output.fail(failure));
            return Err(last);
        }
        match session.output.format {
            Format::Table => fit.iter().try_for_each(|file| session.output.line(&format!("{file}: ok"))),
            Format::Jsonl => fit.iter().try_for_each(|file| {
                session.output.write(&json_line(&json!({"file": file, "valid": true}))?)
            }),
            Format::Json | Format::Csv | Format::Yaml => {
                session.output.object(&json!({"files": fit, "valid": true}), String::new)
            }
        }
    }
}

fn check(session: &Session, path: &Path) -> Result<(), CliError> {
    session.warn_of_terminal(path);
    let documents = document::read(path)?;
    let findings: Vec<_> = documents.iter().flat_map(|document| document.check(&Limits::default())).collect();
    match documents.first().filter(|_| !findings.is_empty()) {
        Some(document) => Err(Report::of_file(&document.file, findings).into()),
        None => Ok(()),
    }
}
