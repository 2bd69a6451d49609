//! `forms validate`: checks form files, and answers to them, without a server.

mod evaluation;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::cli::commands::batch::Batch;
use crate::cli::commands::report_format::ReportFormat;
use crate::cli::commands::validate::evaluation::Evaluation;
use crate::cli::commands::{CliError, Columns, Run, Session, read_input};
use crate::cli::input::answer_args;
use crate::cli::input::document::{self, Document, Record};
use crate::cli::output::diagnostics::Report;
use crate::cli::output::github;
use crate::cli::output::{Format, visible};

/// Check form files, and answers to them, offline
#[derive(Debug, Args)]
#[command(after_long_help = "\
Shows all problems of all files, with their locations, and exits with code 6 if
there are any. A size above a server's default limit is only a warning: a server
can be started with larger limits.

An argument with a `=` is an answer, as in `forms submit`, unless it has a `/`
before the `=`: ./a=b.yaml is a file. With answers, or --answers, the result is
a line for each question of the one form: asked, hidden or refused, and why;
dropped is an unknown question that the form is set to leave out. If an answer
is refused, the lines are still shown, and the exit code is 6.

--answers takes {\"answers\": {\"q1\": \"hello\"}} or the inner map alone, in JSON or
YAML, or several in JSON, one per line, as `forms responses -o jsonl` prints
them; -o jsonl then prints one result per line. KEY=VALUE overrides the file.

With -o json (or --format json), the problems are part of the result: {\"file\",
\"valid\", \"errors\"}. --format github writes workflow commands, which show the
problems beside the lines of a pull request.

Examples:
  forms validate survey.yaml
  forms validate --format github forms/*.yaml
  forms validate survey.yaml score=2 email=ann@example.com
  forms validate survey.yaml --answers answers.jsonl -o jsonl
  forms show frm_7k2m9q4x1abz -o yaml | forms validate -")]
pub struct Validate {
    /// Files in YAML or JSON, folders, - for standard input; KEY=VALUE: answers
    #[arg(required = true, value_name = "FILE")]
    arguments: Vec<PathBuf>,
    /// Answers to check, - for standard input
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Format of problems: text, json, github
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    format: Option<ReportFormat>,
}

impl Run for Validate {
    fn columns(&self) -> Columns {
        Columns::Fixed(if self.has_answers() { &evaluation::COLUMNS } else { &["file", "valid"] })
    }

    fn format(&self) -> Option<Format> {
        ReportFormat::output(self.format)
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        ReportFormat::refuse_output(self.format, session)?;
        if self.has_answers() {
            let evaluations = self.evaluate(session).await;
            let evaluations = evaluations.map_err(|error| self.report_github(session, error))?;
            return self.report_evaluations(session, &evaluations);
        }
        let paths = document::files(&self.arguments)?;
        let (mut batch, mut documents) = (Batch::begin(session, paths.len()), Vec::new());
        for path in &paths {
            let file = path.display().to_string();
            let checked = async {
                let read = read(session, path).await?;
                document::refuse_shared_slugs(&documents, &read)?;
                documents.extend(read);
                self.report_valid(session, &file)
            };
            batch.record(&file, checked.await.map_err(|error| self.report_invalid(session, &file, error)))?;
        }
        batch.finish_with_worst()
    }
}

impl Validate {
    fn has_answers(&self) -> bool {
        self.answers.is_some() || self.arguments.iter().any(|argument| answer(argument).is_some())
    }

    fn report_valid(&self, session: &Session, file: &str) -> Result<(), CliError> {
        let text = || format!("{}: ok\n", visible(file));
        if self.format == Some(ReportFormat::Github) {
            session.output.status(text().trim_end());
            return Ok(());
        }
        session.output.object(&json!({"file": file, "valid": true}), text)
    }

    /// Prints the problems of `error` as the result of `file`, in formats for programs; returns what remains to be reported.
    fn report_invalid(&self, session: &Session, file: &str, error: CliError) -> CliError {
        let report = match self.report_github(session, error) {
            CliError::Rejected(report) if session.output.format != Format::Table => report,
            other => return other,
        };
        let result = json!({"file": file, "valid": false, "errors": report.errors()});
        match session.output.object(&result, String::new) {
            Ok(()) => Report { diagnostics: Vec::new(), ..*report }.into(),
            Err(unwritten) => unwritten,
        }
    }

    /// Prints the problems of `error` as workflow commands if asked to; returns what remains to be reported.
    fn report_github(&self, session: &Session, error: CliError) -> CliError {
        if self.format != Some(ReportFormat::Github) {
            return error;
        }
        match (session.output.data(&github::commands(&error)), error) {
            (Err(unwritten), _) => unwritten,
            (Ok(()), CliError::Rejected(report)) => Report { diagnostics: Vec::new(), ..*report }.into(),
            (Ok(()), other) => other,
        }
    }

    fn report_evaluations(&self, session: &Session, evaluations: &[Evaluation]) -> Result<(), CliError> {
        let (output, is_github) = (&session.output, self.format == Some(ReportFormat::Github));
        if !is_github {
            evaluation::show(output, evaluations)?;
        }
        let Some(mut report) = evaluation::refusal(evaluations) else {
            output.status("the answers would be accepted");
            return Ok(());
        };
        // The table has shown the reasons in full.
        if !is_github && output.format == Format::Table && !output.truncates_rows() {
            report.diagnostics.clear();
        }
        Err(self.report_github(session, report.into()))
    }

    async fn evaluate(&self, session: &Session) -> Result<Vec<Evaluation>, CliError> {
        let args: Vec<_> = self.arguments.iter().filter_map(|argument| answer(argument)).collect();
        let files: Vec<_> = self.arguments.iter().filter(|argument| answer(argument).is_none()).collect();
        let [file] = &files[..] else {
            return Err(CliError::usage(format!(
                "answers are checked against one form, found {} files",
                files.len()
            )));
        };
        let (path, answers) = ((*file).clone(), self.answers.clone());
        if args.iter().any(|arg| arg.ends_with("=@-")) {
            session.announce_stdin(Path::new("-"));
        }
        let args = read_input(move || {
            let inputs: Vec<_> = std::iter::once(&path).chain(&answers).map(PathBuf::as_path).collect();
            answer_args::parse(&args, &inputs, answer_args::read_file)
        })
        .await?;
        let form = one(read(session, file).await?)?;
        let records = match self.answers.clone() {
            Some(path) => {
                session.announce_stdin(&path);
                read_input(move || document::records(&path)).await?
            }
            None => vec![Record::default()],
        };
        Evaluation::of_each(&form, records, &args, session.now())
    }
}

/// Returns `argument` if it is an answer.
fn answer(argument: &Path) -> Option<String> {
    let text = argument.to_str()?;
    text.split_once('=').filter(|(key, _)| !key.contains('/')).map(|_| text.to_owned())
}

async fn read(session: &Session, path: &Path) -> Result<Vec<Document>, CliError> {
    session.announce_stdin(path);
    let path = path.to_owned();
    let read = move || match document::tested_form(&path) {
        Some(form) => document::read_tested(&form).map(|_| Vec::new()),
        None => document::read(&path),
    };
    let documents = read_input(read).await?;
    let secrets = |document: &Document| document.secret_warnings(&session.environment);
    let warnings =
        documents.iter().flat_map(|document| [document.default_limit_warnings(), secrets(document)].concat());
    warnings.for_each(|warning| session.output.warn(&warning));
    Ok(documents)
}

fn one(mut forms: Vec<Document>) -> Result<Document, CliError> {
    match forms.len() {
        1 => Ok(forms.remove(0)),
        count => {
            let file = forms.first().map(|form| format!(" in {}", form.file)).unwrap_or_default();
            Err(CliError::usage(format!("answers are checked against one form, found {count}{file}")))
        }
    }
}
