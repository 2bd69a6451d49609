//! `forms test`: runs the tests in form files, without a server.

mod junit;
mod results;

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::api::{Code, Problem};
use crate::cli::commands::{CliError, Columns, Run, Session, read_input};
use crate::cli::input::document::{self, Case, Document};
use crate::cli::output::Format;
use crate::cli::output::diagnostics::Report;
use crate::cli::output::humanize::count_noun;

use results::FormResults;

/// Run the tests of forms, offline
#[derive(Debug, Args)]
#[command(after_long_help = "\
A form file can have `tests`: answers, and what the form should do with them.
They can also be in NAME.test.yaml beside NAME.yaml. The answers are checked as
the server checks them, one test by itself, and nothing is stored.

  tests:
    - name: a low score asks for a reason
      answers: { score: 1 }
      errors: { reason: [required] }
      asked: [reason]
    - name: a high score does not
      answers: { score: 5 }
      not_asked: [reason]

`errors` has the codes of all errors by question, without it the answers must be
accepted; `accepted: false` is any error. `now: 2027-01-31T12:00:00Z` sets the
time for bounds such as `today`.

Conditions that were true in no test, or false in none, are listed at the end.
Exits with code 1 if a test failed, and 6 if a file is not valid.

Examples:
  forms test survey.yaml
  forms test forms/*.yaml --require-coverage
  forms test forms/*.yaml --junit report.xml
  forms test survey.yaml -o json | jq '.tests[] | select(.passed | not)'")]
pub struct Test {
    /// Form files in YAML or JSON, - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the results to this file, too, as JUnit XML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    junit: Option<PathBuf>,
    /// Fail if a condition was true in no test, or false in none
    #[arg(long)]
    require_coverage: bool,
}

impl Run for Test {
    const COLUMNS: Columns = Columns::Fixed(&["file", "passed", "failed", "tests", "conditions"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (forms, now, output) = (read_all(session, &self.files).await?, session.now(), &session.output);
        let results: Vec<_> =
            forms.iter().filter_map(|(form, cases)| FormResults::of(form, cases, now)).collect();
        if let Some(path) = &self.junit {
            let file = output.file(path, Format::Json)?;
            file.write(&junit::xml(&results))?;
            file.save()?;
        }
        if results.len() > 1 {
            output.begin_batch();
        }
        results.iter().try_for_each(|form| output.object(form, || form.text()))?;
        let (tests, failed) = results
            .iter()
            .fold((0, 0), |(tests, failed), form| (tests + form.tests.len(), failed + form.failed));
        let uncovered = results.iter().map(|form| form.conditions.len()).sum::<usize>();
        let summary = match () {
            () if failed > 0 => format!("{failed} of {} failed", count_noun(tests, "test")),
            () if self.require_coverage && uncovered > 0 => {
                format!("{uncovered} results of conditions are not covered by tests")
            }
            () => {
                output.success(&format!("{} passed", count_noun(tests, "test")));
                return Ok(());
            }
        };
        Err(CliError::TestsFailed { summary })
    }
}

/// Reads the forms of all files, each once, with their tests.
///
/// # Errors
/// With the problems of all files, if one is not valid.
async fn read_all(session: &Session, files: &[PathBuf]) -> Result<Vec<(Document, Vec<Case>)>, CliError> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in files.iter().map(|file| document::tested_form(file).unwrap_or_else(|| file.clone())) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let (mut forms, mut diagnostics, mut summaries) = (Vec::new(), Vec::new(), Vec::new());
    for path in paths {
        match read(session, &path).await {
            Ok(read) => forms.extend(read),
            Err(CliError::Rejected(report)) => {
                diagnostics.extend(report.diagnostics);
                summaries.push(report.summary);
            }
            Err(error) => return Err(error),
        }
    }
    if summaries.is_empty() {
        return Ok(forms);
    }
    let (summary, problem) = (summaries.join("; "), Problem::new(Code::ValidationFailed));
    Err(Report { diagnostics, summary, problem }.into())
}

async fn read(session: &Session, path: &Path) -> Result<Vec<(Document, Vec<Case>)>, CliError> {
    session.announce_stdin(path);
    let path = path.to_owned();
    read_input(move || document::read_tested(&path)).await
}
