//! `forms submit`.

mod ask;
mod bulk;
mod fill;
mod template;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::api::FormDetail;
use crate::cli::commands::{CliError, Columns, Run, Session, read_input};
use crate::cli::connection::target::Target;
use crate::cli::input::answer_args;
use crate::cli::input::answers::{self, AnswerSources};
use crate::cli::input::document;
use crate::cli::input::rows::RowFile;
use crate::cli::output::columns::SUBMISSION;
use crate::cli::output::shell_quote::shell_quote;
use crate::cli::output::{Output, visible};
use crate::client::Client;
use crate::domain::delivery::DeliveryStatus;
use crate::domain::form::settings::Confirmation;
use crate::domain::integration::MAX_INTEGRATIONS;

pub use fill::Fill;

/// Send answers to a form
#[derive(Debug, Default, Args)]
#[command(after_long_help = "\
Each answer is KEY=VALUE, where KEY is the question's id: `forms show FORM`
lists them. VALUE is everything after the first `=`, converted by the
question's type: a number; true, false, yes or no; JSON for a matrix; otherwise
text. For a list, repeat the key. KEY=@FILE reads the text from a file, @- from
standard input; for a text that begins with @, write KEY=\\@text. KEY:=JSON is
sent unchanged. Prints the submission's id.

--file takes one record, {\"answers\": {\"q1\": \"hello\"}} or the inner map alone,
with values as in the API; KEY=VALUE overrides the file. A .csv, .xlsx or .jsonl
file, or a list in .json, has many: columns named by the ids or titles of
questions, with values or labels of options, several joined by `; `. All rows
are checked first, then sent in batches. Stopped and run again within 24 hours,
the same command adds what is missing; a changed file is another import.

Other users of this machine can see arguments while the command runs, but not
the content of files.
On a terminal, without answers all questions are asked, in an editor if there
are more than 20; otherwise only the required ones that are missing. --no-input
asks nothing.

Examples:
  forms submit frm_7k2m9q4x1abz q1=hello
  forms submit frm_7k2m9q4x1abz name=\"Ann Lee\" email=ann@example.com score=5
  forms submit frm_7k2m9q4x1abz colour=red colour=blue comment=@comment.txt
  forms submit frm_7k2m9q4x1abz 'other:={\"other\":\"purple\"}'
  forms submit frm_7k2m9q4x1abz --file answers.json
  forms submit frm_7k2m9q4x1abz --file old.csv --metadata date --no-notify
  forms submit frm_7k2m9q4x1abz --dry-run q1=hello")]
pub struct Submit {
    /// Form, by id or slug
    form: String,
    /// Answers
    #[arg(value_name = "KEY=VALUE")]
    answers: Vec<String>,
    /// Answers in JSON or YAML, - for standard input; or a table of many
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Keep a column of the file as metadata; repeatable
    #[arg(long, value_name = "COLUMN", requires = "file")]
    metadata: Vec<String>,
    /// Do not send the submission to the form's integrations
    #[arg(long)]
    no_notify: bool,
    /// Check the answers, store nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for Submit {
    fn columns(&self) -> Columns {
        if self.rows().is_some() { bulk::COLUMNS } else { SUBMISSION }
    }

    /// Sends the answers, after checking all of them.
    async fn run(self, session: &Session) -> Result<(), CliError> {
        if let Some(file) = self.rows() {
            if let Some(answer) = self.answers.first() {
                let message = format!("`{answer}` cannot be added to the rows of {}", file.name());
                return Err(CliError::usage_with_help(
                    message,
                    "give answers as arguments, or many in a file",
                ));
            }
            return bulk::run(&self, &file, session).await;
        }
        if let Some(column) = self.metadata.first() {
            let message = format!("--metadata {column} needs a file with many rows");
            return Err(CliError::usage_with_help(message, "name it .csv, .xlsx or .jsonl"));
        }
        let sources = read_sources(session, self.file.as_deref(), &self.answers).await?;
        let form = session.client().await?.get_form(&self.form).await?;
        let (command, given) = (self.retry_command(session), sources.args.len());
        let mut unsent = Unsent { command, sources, given, output: &session.output };
        let mut draft = None;
        if session.can_prompt() && form.accepting_reason.is_none() {
            // The store must not stay locked while asking.
            session.close().await?;
            let resume = format!("submit{} {}", self.flags(), shell_quote(&self.form));
            draft = ask::ask(session, &form, &resume, &mut unsent.sources).await?;
        }
        self.send(session, &form, &unsent.sources).await?;
        unsent.given = unsent.sources.args.len();
        if let Some(draft) = draft {
            draft.discard();
        }
        Ok(())
    }
}

impl Submit {
    /// Returns the file, if it has many submissions.
    fn rows(&self) -> Option<RowFile> {
        self.file.as_deref().and_then(RowFile::detect)
    }

    async fn send(
        &self,
        session: &Session,
        form: &FormDetail,
        sources: &AnswerSources,
    ) -> Result<(), CliError> {
        let client = session.client().await?;
        let (output, prefix) = (&session.output, &session.command_prefix());
        let body = answers::submission_body(form, sources, session.now(), prefix, output)?;
        let refused = |error| answers::explain_refusal(form, sources, error, prefix);
        let made = client
            .create_submission(&self.form, &body, self.dry_run, !self.no_notify)
            .await
            .map_err(refused)?;
        if self.dry_run {
            output.object(&made, || "(dry run)\n".to_owned())?;
            output.status("the answers would be accepted; nothing was stored");
            return Ok(());
        }
        let printed = output.object(&made, || format!("{}\n", made.id));
        printed.map_err(|error| error.after(&format!("the answers are stored as {}", made.id)))?;
        output.success(&format!("submitted to \"{}\"", form.title));
        match &form.settings.confirmation {
            Some(Confirmation::Message(message)) => message.lines().for_each(|line| output.status(line)),
            Some(Confirmation::RedirectUrl(url)) => output.status(url),
            None => {}
        }
        if matches!(session.target()?, Target::Data(_)) && !form.integrations.is_empty() {
            match count_waiting(&client, made.id.to_string()).await {
                0 => {}
                1 => output.status("1 delivery waits for a server"),
                count => output.status(&format!("{count} deliveries wait for a server")),
            }
        }
        output.status(&format!("next: {prefix} responses {}", visible(&self.form)));
        Ok(())
    }

    /// Returns the command as it was typed.
    fn retry_command(&self, session: &Session) -> String {
        let file =
            self.file.iter().map(|file| format!("--file {}", shell_quote(&file.display().to_string())));
        let args = self.answers.iter().map(|answer| shell_quote(answer));
        let form = shell_quote(&self.form);
        let words: Vec<_> = std::iter::once(form).chain(file).chain(args).collect();
        format!("{} submit{} {}", session.command_prefix(), self.flags(), words.join(" "))
    }

    /// Returns the flags about sending as they were typed.
    fn flags(&self) -> String {
        let flags = [(self.no_notify, " --no-notify"), (self.dry_run, " --dry-run")];
        flags.into_iter().filter(|(is_given, _)| *is_given).map(|(_, flag)| flag).collect()
    }
}

/// Reads the answers given as arguments and in `file`.
pub(super) async fn read_sources(
    session: &Session,
    file: Option<&Path>,
    answers: &[String],
) -> Result<AnswerSources, CliError> {
    let (file, answers) = (file.map(Path::to_owned), answers.to_owned());
    let stdin = Path::new("-");
    if file.as_deref() == Some(stdin) || answers.iter().any(|answer| answer.ends_with("=@-")) {
        session.announce_stdin(stdin);
    }
    read_input(move || {
        let file = file.as_deref();
        let args = answer_args::parse(&answers, file.as_slice(), answer_args::read_file)?;
        let record = file.map(document::record).transpose()?.unwrap_or_default();
        Ok(AnswerSources { args, record })
    })
    .await
}

/// Returns the number of deliveries of a submission that wait; 0 if they cannot be listed, since it was stored.
async fn count_waiting(client: &Client, submission: String) -> usize {
    let waiting = [DeliveryStatus::Pending, DeliveryStatus::InFlight, DeliveryStatus::Paused];
    let query = json!({"submission": submission, "status": waiting.map(DeliveryStatus::name)});
    let first = client.list_deliveries(&query, MAX_INTEGRATIONS).next().await;
    first.ok().flatten().map_or(0, |deliveries| deliveries.len())
}

/// Answers that are not sent yet. When dropped, prints the command that sends them, also after a signal.
struct Unsent<'a> {
    command: String,
    sources: AnswerSources,
    /// Number of arguments in the command: those after them were asked for.
    given: usize,
    output: &'a Output,
}

impl Unsent<'_> {
    /// Returns the command that sends the answers; `None` if it has no others than those that were typed.
    fn command_line(&self) -> Option<String> {
        let asked = self.sources.args[self.given..].iter().filter(|arg| !arg.is_empty());
        let asked: Vec<_> = asked.map(|arg| shell_quote(&arg.to_string())).collect();
        (!asked.is_empty()).then(|| format!("{} {}", self.command, asked.join(" ")))
    }
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        if let Some(command) = self.command_line() {
            self.output.warn(&format!("to send your answers later: {command}"));
        }
    }
}
