//! `forms create`: a form from a file.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::api::FormCreated;
use crate::cli::answers;
use crate::cli::diagnostics::{Report, draw_violations};
use crate::cli::document::{self, Document};
use crate::cli::exit::CliError;
use crate::cli::session::Session;
use crate::cli::several::Several;
use crate::client::{Client, ClientError};
use crate::domain::limits::Limits;

/// Create a form from a file
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the new form's id. The form is a draft until it is published. A file
may hold several forms, set apart by lines of ---.

Examples:
  forms create -f survey.yaml
  id=$(forms create -f survey.yaml)
  forms create -f survey.yaml --publish
  forms show frm_7k2m9q4x1abz -o yaml | forms create -f -")]
pub struct Create {
    /// File in YAML or JSON, - for standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Publish it at once
    #[arg(long)]
    publish: bool,
    /// Let the server check it, store nothing
    #[arg(long, conflicts_with = "publish")]
    dry_run: bool,
}

impl Create {
    /// Creates each form of the file. Nothing is sent unless all of them are fit; sizes are for the server to say.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        session.warn_of_terminal(&self.file);
        let documents = document::read(&self.file, &Limits::BOUNDLESS)?;
        let client = if self.dry_run { session.client().await } else { session.connect().await }?;
        let mut several = Several::begin(session, documents.len());
        for document in &documents {
            several.note(&document.file, self.create(session, &client, document).await)?;
            if several.has_failed() {
                break;
            }
        }
        several.end()
    }

    async fn create(&self, session: &Session, client: &Client, document: &Document) -> Result<(), CliError> {
        let output = &session.output;
        if self.dry_run {
            let tried = client.try_form(&document.body()).await.map_err(|error| in_file(document, error))?;
            output.object(&tried, || "(dry run)\n".to_owned())?;
            output.say("the server would take it; nothing was stored");
            return Ok(());
        }
        let created = client.create_form(&document.body()).await.map_err(|error| in_file(document, error))?;
        let id = created.id.to_string();
        if self.publish {
            let published =
                client.update_form(&id, &json!({"status": "published"})).await.map_err(|error| {
                    let notes = vec![format!("{id} was created and stays a draft")];
                    CliError::Client { error, notes, help: Some(format!("forms publish {id}")) }
                })?;
            output.object(&published, || format!("{id}\n"))?;
            output.say(&format!("created and published \"{}\"", published.title));
            return Ok(());
        }
        output.object(&created, || format!("{id}\n"))?;
        output.say(&format!("created \"{}\" (draft, {})", created.title, questions(&created)));
        output.say(&format!("next: forms publish {id}"));
        Ok(())
    }
}

/// The server's problems, drawn in the file they are about.
pub(super) fn in_file(document: &Document, error: ClientError) -> CliError {
    match error {
        ClientError::Problem(problem) if !problem.errors.is_empty() => {
            let findings = draw_violations(document, &problem.errors);
            Report { code: problem.code, ..Report::of_file(&document.file, findings) }.into()
        }
        ClientError::Unsure(_) => CliError::of_client(error, "forms list"),
        other => other.into(),
    }
}

fn questions(form: &FormCreated) -> String {
    match answers::questions(&form.questions).len() {
        1 => "1 question".to_owned(),
        count => format!("{count} questions"),
    }
}
