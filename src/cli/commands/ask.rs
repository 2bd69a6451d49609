//! `forms ask`: the questions of a form file as the prompt of a script.

use std::path::PathBuf;

use clap::Args;

use crate::cli::commands::submit::read_sources;
use crate::cli::commands::{CliError, Columns, Run, Session, read_input};
use crate::cli::input::dialogue::Dialogue;
use crate::cli::input::document::{self, Document};
use crate::domain::form::Version;
use crate::domain::json::Value;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Rule;

/// Ask the questions of a form file, print the answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Asks on the terminal, without a server, and prints the answers as one JSON
object, as the server would store them. KEY=VALUE answers a question in advance,
as in `forms submit`; if none is left that is required, no terminal is needed.
If you cancel, prints nothing and exits with code 1, after Ctrl-C with 130.

Examples:
  answers=$(forms ask deploy-approval.yaml) || exit
  forms ask deploy-approval.yaml environment=staging | jq -r .version")]
pub struct Ask {
    /// Form file in YAML or JSON
    file: PathBuf,
    /// Answers that are not asked for
    #[arg(value_name = "KEY=VALUE")]
    answers: Vec<String>,
}

impl Run for Ask {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let path = self.file.clone();
        let forms = read_input(move || document::read(&path)).await?;
        let definition = forms.first().and_then(Document::definition).filter(|_| forms.len() == 1);
        let message = format!("expected one form in {}, found {}", self.file.display(), forms.len());
        let definition = definition.ok_or_else(|| CliError::usage(message))?;
        let (title, texts) = (&*definition.title, definition.settings.language().texts());
        let version = Version::new(1, session.now(), definition.questions);
        let dialogue = Dialogue { session, title, version, texts };
        let mut sources = read_sources(session, None, &self.answers).await?;
        if let Some(obstacle) = session.prompt_obstacle() {
            let missing = dialogue.violations(&sources.answers(&dialogue.version.questions)?);
            let missing = missing.into_iter().find(|violation| violation.code == Rule::Required);
            if let Some(id) = missing.and_then(|violation| violation.question) {
                let help = format!("give the answer as an argument: {id}=...");
                return Err(CliError::usage_with_help(format!("cannot ask for `{id}`: {obstacle}"), help));
            }
        } else {
            dialogue.complete(&mut sources, "Done", "canceled").await?;
        }
        dialogue.check(&sources, &[])?;
        let mut answers = sources.answers(&dialogue.version.questions)?;
        let defaults = dialogue.version.check(&answers, &Limits::UNLIMITED, session.now(), texts);
        let defaults = defaults.unwrap_or_default().into_iter();
        answers.extend(defaults.map(|(id, value)| (id.to_owned(), value.clone())));
        let answers = Value::Object(answers);
        session.output.object(&answers, || format!("{answers}\n"))
    }
}
