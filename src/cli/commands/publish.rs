//! `forms publish`, `unpublish` and `close`: whether a form accepts answers.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use crate::cli::commands::batch::for_each;
use crate::cli::commands::{Group, Run, block_on};
use crate::cli::connection::session::Session;
use crate::cli::input::answers;
use crate::cli::output::columns::{Columns, FORM};
use crate::cli::output::exit::CliError;
use crate::cli::output::form_state;
use crate::domain::form::FormStatus;

/// Open forms for answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the id of each form. A form that is already open is not changed.

Examples:
  forms publish frm_7k2m9q4x1abz")]
pub struct Publish {
    /// Forms, by id or slug
    #[arg(required = true, value_name = "FORM", value_parser = NonEmptyStringValueParser::new())]
    forms: Vec<String>,
    /// Let the server check it, change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Take forms back to draft, so that they accept no answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the id of each form. Answers are kept. A draft is not changed.

Examples:
  forms unpublish frm_7k2m9q4x1abz")]
pub struct Unpublish {
    /// Forms, by id or slug
    #[arg(required = true, value_name = "FORM", value_parser = NonEmptyStringValueParser::new())]
    forms: Vec<String>,
    /// Let the server check it, change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Close published forms, so that they accept no answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the id of each form. A closed form stays published and keeps its
answers; `forms publish` opens it again.

Examples:
  forms close frm_7k2m9q4x1abz")]
pub struct Close {
    /// Forms, by id or slug
    #[arg(required = true, value_name = "FORM", value_parser = NonEmptyStringValueParser::new())]
    forms: Vec<String>,
    /// Let the server check it, change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for Publish {
    const GROUP: Group = Group::Run;
    const SUMMARY: &'static str = "open a form for answers";

    fn columns(&self) -> Columns {
        FORM
    }

    fn run(self, session: &Session) -> Result<(), CliError> {
        block_on(session, self.execute(session))
    }
}

impl Publish {
    /// Publishes the forms, and reopens closed ones.
    async fn execute(self, session: &Session) -> Result<(), CliError> {
        let patch = json!({"status": FormStatus::Published, "settings": {"closed": null}});
        change(session, &self.forms, &patch, self.dry_run).await
    }
}

impl Run for Unpublish {
    const GROUP: Group = Group::Run;
    const SUMMARY: &'static str = "back to draft";

    fn columns(&self) -> Columns {
        FORM
    }

    fn run(self, session: &Session) -> Result<(), CliError> {
        block_on(session, self.execute(session))
    }
}

impl Unpublish {
    /// Takes the forms back to draft.
    async fn execute(self, session: &Session) -> Result<(), CliError> {
        change(session, &self.forms, &json!({"status": FormStatus::Draft}), self.dry_run).await
    }
}

impl Run for Close {
    const GROUP: Group = Group::Run;
    const SUMMARY: &'static str = "take no more answers";

    fn columns(&self) -> Columns {
        FORM
    }

    fn run(self, session: &Session) -> Result<(), CliError> {
        block_on(session, self.execute(session))
    }
}

impl Close {
    /// Closes the forms.
    async fn execute(self, session: &Session) -> Result<(), CliError> {
        change(session, &self.forms, &json!({"settings": {"closed": true}}), self.dry_run).await
    }
}

/// Applies `patch` to each form and reports its state.
async fn change(
    session: &Session,
    forms: &[String],
    patch: &serde_json::Value,
    dry_run: bool,
) -> Result<(), CliError> {
    let client = session.client().await?;
    for_each(session, forms, async |form| {
        let changed = client.update_form(form, &patch.to_string(), None, dry_run).await?;
        if dry_run {
            session.output.object(&changed, || "(dry run)\n".to_owned())?;
            session
                .output
                .status(&format!("\"{}\": the server would accept it; nothing was stored", changed.title));
            return Ok(());
        }
        session.output.object(&changed, || format!("{}\n", changed.id))?;
        session.output.success(&format!("\"{}\" {}", changed.title, form_state::describe(&changed)));
        let ids = answers::answerable_ids(&answers::parse_questions(&changed.questions));
        if let (None, Some(id)) = (&changed.accepting_reason, ids.first()) {
            session.output.status(&format!(
                "next: {} submit {} {id}=VALUE",
                session.command_prefix(),
                changed.id
            ));
        }
        Ok(())
    })
    .await
}
