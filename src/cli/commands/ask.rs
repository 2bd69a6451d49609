//! `forms ask`: the questions of a form file as the prompt of a script.

use std::path::PathBuf;

use clap::Args;

use crate::cli::commands::submit::read_sources;
use crate::cli::commands::{CliError, Run, Session, read_input};
use crate::cli::input::dialogue::Dialogue;
use crate::cli::input::document;
use crate::cli::output::Format;
use crate::domain::form::Version;
use crate::domain::json::Value;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Rule;

/// Ask the questions of a form file, print the answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Asks on the terminal, without a server, and prints the answers as one JSON
object on stdout, as the server would store them; everything else is on stderr.
KEY=VALUE answers a question in advance, as in `forms submit`. If that answers
all that are required, no terminal is needed.

Exits with code 1 if you choose to cancel and 130 after Ctrl-C, and then prints
nothing on stdout.

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
    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (file, path) = (self.file.display().to_string(), self.file);
        let forms = read_input(move || document::read(&path)).await?;
        let definition = match &forms[..] {
            [form] => form.definition(),
            _ => None,
        };
        let Some(definition) = definition else {
            return Err(CliError::usage(format!("expected one form in {file}, found {}", forms.len())));
        };
        let (title, texts) = (&*definition.title, definition.settings.language().texts());
        let version = Version::new(1, session.now(), definition.questions);
        let dialogue = Dialogue { session, title, version, texts };
        let mut sources = read_sources(session, None, &self.answers).await?;
        match session.prompt_obstacle() {
            None => dialogue.complete(&mut sources, "Done", "canceled").await?,
            Some(obstacle) => {
                dialogue.check(&sources, &[Rule::Required])?;
                let missing = dialogue.violations(&sources.answers(&dialogue.version.questions)?);
                let missing: Vec<_> = missing.into_iter().filter_map(|one| one.question).collect();
                if let [first, ..] = &missing[..] {
                    let message = format!("cannot ask for {}: {obstacle}", missing.join(", "));
                    return Err(CliError::usage_with_help(
                        message,
                        format!("give it as an argument: {first}=..."),
                    ));
                }
            }
        }
        let mut answers = sources.answers(&dialogue.version.questions)?;
        let defaults = dialogue.version.check(&answers, &Limits::UNLIMITED, session.now(), texts);
        let defaults = defaults.unwrap_or_default().into_iter();
        answers.extend(defaults.map(|(id, value)| (id.to_owned(), value.clone())));
        let answers = Value::Object(answers);
        match session.output.format {
            Format::Table => session.output.json(&answers),
            _ => session.output.object(&answers, String::new),
        }
    }
}
