//! Commands on form files, which need no server.

mod evaluation;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::cli::commands::batch::Several;
use crate::cli::commands::validate::evaluation::Trial;
use crate::cli::commands::{Group, Run};
use crate::cli::connection::session::Session;
use crate::cli::input::answer_args;
use crate::cli::input::document::{self, Document, Record};
use crate::cli::output::columns::Columns;
use crate::cli::output::diagnostics::Report;
use crate::cli::output::exit::CliError;
use crate::cli::output::github;
use crate::cli::output::{Format, visible};
use crate::domain::validation::limits::Limits;

/// Check form files, and what they make of answers, offline
#[derive(Debug, Args)]
#[command(after_long_help = "\
Every problem of every file is shown at once, with its place. Exit code 6 if
there is one. What is only larger than a server allows by default is a warning:
a server can be started with larger limits.

An argument with a `=` is an answer, as `forms submit` takes it, unless a `/`
stands before the `=`: ./a=b.yaml is a file. With answers, or --answers, the
result is a line for each question of the one form: asked, hidden or refused,
and why; dropped is what is no question, where the form leaves that out. Exit
code 6 if one is refused; the lines are shown all the same.

--answers takes {\"answers\": {\"q1\": \"hello\"}} or the inner map alone, in JSON or
YAML, or several in JSON, one a line, as `forms responses -o jsonl` prints
them: -o jsonl then gives a result a line. KEY=VALUE goes before what they have.

--format json is -o json; --format github writes the problems as commands that
show them beside the lines of a pull request.

Examples:
  forms validate survey.yaml
  forms validate --format github forms/*.yaml
  forms validate survey.yaml score=2 email=ann@example.com
  forms validate survey.yaml --answers answers.jsonl -o jsonl
  forms show frm_7k2m9q4x1abz -o yaml | forms validate -")]
pub struct Validate {
    /// Files in YAML or JSON, - for standard input; KEY=VALUE: answers to try
    #[arg(required = true, value_name = "FILE")]
    arguments: Vec<PathBuf>,
    /// Answers to try, - for standard input
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// How problems are told: text, json, github
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    format: Option<Told>,
}

/// How problems are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Told {
    /// Drawn in the file
    Text,
    /// As -o json
    Json,
    /// As workflow commands of GitHub
    Github,
}

impl Run for Validate {
    const GROUP: Group = Group::Write;
    const SUMMARY: &'static str = "check files, offline";

    fn format(&self) -> Option<Format> {
        (self.format == Some(Told::Json)).then_some(Format::Json)
    }

    fn columns(&self) -> Columns {
        Columns::Of(if self.has_answers() { &evaluation::COLUMNS } else { &["file", "valid"] })
    }

    fn run(self, session: &Session) -> Result<(), CliError> {
        self.execute(session)
    }
}

impl Validate {
    /// Checks the files and says of each whether it is fit, or what the one form makes of answers.
    fn execute(self, session: &Session) -> Result<(), CliError> {
        // The flag belongs to all commands: clap cannot hold it against this one's own.
        if self.format.is_some() && session.global.output.is_some() {
            return Err(CliError::usage("--format and --output exclude each other"));
        }
        if self.has_answers() {
            let trials = self.try_answers(session).map_err(|error| self.told(session, error))?;
            return self.tell_trials(session, &trials);
        }
        let mut several = Several::begin(session, self.arguments.len());
        for path in &self.arguments {
            let file = path.display().to_string();
            let checked = read(session, path).and_then(|_| self.tell_fit(session, &file));
            several.note(&file, checked.map_err(|error| self.told(session, error)))?;
        }
        several.end_as_worst()
    }

    fn has_answers(&self) -> bool {
        self.answers.is_some() || self.arguments.iter().any(|argument| answer(argument).is_some())
    }

    fn tell_fit(&self, session: &Session, file: &str) -> Result<(), CliError> {
        let text = || format!("{}: ok\n", visible(file));
        if self.format == Some(Told::Github) {
            session.output.say(text().trim_end());
            return Ok(());
        }
        session.output.object(&json!({"file": file, "valid": true}), text)
    }

    /// What remains to be told of `error` once its problems are.
    fn told(&self, session: &Session, error: CliError) -> CliError {
        if self.format != Some(Told::Github) {
            return error;
        }
        match (session.output.data(&github::commands(&error)), error) {
            (Err(unwritten), _) => unwritten,
            (Ok(()), CliError::Rejected(report)) => Report { findings: Vec::new(), ..*report }.into(),
            (Ok(()), other) => other,
        }
    }

    fn tell_trials(&self, session: &Session, trials: &[Trial]) -> Result<(), CliError> {
        let refusal = evaluation::refusal(trials);
        if self.format != Some(Told::Github) {
            evaluation::show(&session.output, trials)?;
        }
        match refusal {
            None => session.output.say("the answers would be taken"),
            Some(report) if self.format == Some(Told::Github) => {
                return Err(self.told(session, report.into()));
            }
            // The lines have told why, whole.
            Some(report) if session.output.format == Format::Table && !session.output.cuts_rows() => {
                return Err(Report { findings: Vec::new(), ..report }.into());
            }
            Some(report) => return Err(report.into()),
        }
        Ok(())
    }

    fn try_answers(&self, session: &Session) -> Result<Vec<Trial>, CliError> {
        let given: Vec<_> = self.arguments.iter().filter_map(|argument| answer(argument)).collect();
        let files: Vec<_> = self.arguments.iter().filter(|argument| answer(argument).is_none()).collect();
        let [file] = &files[..] else {
            return Err(CliError::usage(format!(
                "answers are tried on one form, and {} are named",
                files.len()
            )));
        };
        let inputs: Vec<_> =
            [Some(*file), self.answers.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
        let given = answer_args::parse(&given, &inputs, |key, path| {
            session.warn_of_terminal(path);
            answer_args::read_file(key, path)
        })?;
        let form = one(read(session, file)?)?;
        let records = match &self.answers {
            Some(path) => {
                session.warn_of_terminal(path);
                document::records(path)?
            }
            None => vec![Record::default()],
        };
        Trial::of_each(&form, records, &given, session.now())
    }
}

/// `argument`, if it is an answer.
fn answer(argument: &Path) -> Option<String> {
    let text = argument.to_str()?;
    text.split_once('=').filter(|(key, _)| !key.contains('/')).map(|_| text.to_owned())
}

fn read(session: &Session, path: &Path) -> Result<Vec<Document>, CliError> {
    session.warn_of_terminal(path);
    let documents = document::read(path, &Limits::UNLIMITED)?;
    let warnings = documents.iter().flat_map(Document::over_default_limits);
    warnings.for_each(|warning| session.output.warn(&warning));
    Ok(documents)
}

fn one(mut forms: Vec<Document>) -> Result<Document, CliError> {
    match forms.len() {
        1 => Ok(forms.remove(0)),
        count => {
            let file = &forms[0].file;
            Err(CliError::usage(format!("answers are tried on one form, and {file} has {count}")))
        }
    }
}
