//! `forms test`: runs the tests in form files, without a server.

mod junit;
mod results;

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::cli::commands::batch::Batch;
use crate::cli::commands::{CliError, Columns, Run, Session, read_input};
use crate::cli::input::document;
use crate::cli::output::Format;
use crate::cli::output::humanize::count_noun;

use results::FormResults;

/// Run the tests of forms, offline
#[derive(Debug, Args)]
#[command(after_long_help = "\
Tests are in the form file, or in NAME.test.yaml beside NAME.yaml: answers, and
what the form should do with them, by the same rules as on a server.

  tests:
    - name: a low score asks for a reason
      answers: { score: 1 }
      errors: { reason: [required] }
      asked: [reason]

Without `errors`, the answers must be accepted. Conditions that were true in no
test, or false in none, are listed. If a test failed, the exit code is 1.

Examples:
  forms test survey.yaml
  forms test forms/*.yaml --require-coverage --junit report.xml
  forms test survey.yaml -o json | jq '.tests[] | select(.passed | not)'")]
pub struct Test {
    /// Form files in YAML or JSON, folders of these, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Also write the results to this file, as JUnit XML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    junit: Option<PathBuf>,
    /// Fail if a condition was true in no test, or false in none
    #[arg(long)]
    require_coverage: bool,
}

impl Run for Test {
    const COLUMNS: Columns = Columns::Fixed(&["file", "passed", "failed", "tests", "conditions"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        // `--junit forms/*.yaml` would replace the first form.
        let is_xml = |path: &PathBuf| path.extension().is_some_and(|name| name.eq_ignore_ascii_case("xml"));
        if let Some(path) = self.junit.as_ref().filter(|path| !is_xml(path)) {
            let message = format!("--junit needs the name of an .xml file, found {}", path.display());
            return Err(CliError::usage(message));
        }
        let mut paths: Vec<PathBuf> = Vec::new();
        for file in document::files(&self.files)? {
            let path = document::tested_form(&file).unwrap_or(file);
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        let (mut batch, mut results) = (Batch::begin(session, paths.len()), Vec::new());
        let mut ended = Ok(());
        for path in paths {
            let tested = self.test(session, &path, &mut results).await;
            ended = batch.record(&path.display().to_string(), tested);
            if ended.is_err() {
                break;
            }
        }
        if let Some(path) = &self.junit {
            let file = session.output.file(path, Format::Json)?;
            file.write(&junit::xml(&results))?;
            file.save()?;
        }
        ended?;
        batch.finish_with_worst()
    }
}

impl Test {
    /// Tests the forms of one file, and adds their `results`.
    async fn test(
        &self,
        session: &Session,
        path: &Path,
        results: &mut Vec<FormResults>,
    ) -> Result<(), CliError> {
        session.announce_stdin(path);
        let file = path.to_owned();
        let forms = read_input(move || document::read_tested(&file)).await?;
        let first = results.len();
        results.extend(forms.iter().filter_map(|(cases, form)| FormResults::of(form, cases, session.now())));
        let tested = &results[first..];
        tested.iter().try_for_each(|form| session.output.object(form, || form.text()))?;
        let sum = |count: fn(&FormResults) -> usize| tested.iter().map(count).sum::<usize>();
        let (failed, uncovered) = (sum(|form| form.failed), sum(|form| form.conditions.len()));
        let summary = match (failed, uncovered) {
            (0, 1..) if self.require_coverage => {
                format!("{} of conditions not covered by tests", count_noun(uncovered, "result"))
            }
            (0, _) => return Ok(()),
            _ => format!("{failed} of {} failed", count_noun(sum(|form| form.tests.len()), "test")),
        };
        Err(CliError::TestFailed { summary })
    }
}
