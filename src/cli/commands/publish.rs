//! `forms publish`, `unpublish` and `close`: whether a form accepts answers.

use clap::Args;
use serde_json::json;

use crate::api::FormDetail;
use crate::cli::commands::batch::for_each;
use crate::cli::commands::page_links::{is_open, page_links};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::answers;
use crate::cli::output::columns::FORM;
use crate::cli::output::form_state;
use crate::domain::form::FormStatus;
use crate::domain::form::admission::AcceptingReason;
use crate::domain::open_enum::OpenEnum;

/// Open forms for answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the id of each form. A form that is already open is not changed. With
--public, people can answer it in a browser without a key; its settings keep
that, and `forms edit FORM --set settings.public=` takes it back.

Examples:
  forms publish frm_7k2m9q4x1abz
  forms publish customer-feedback --public")]
pub struct Publish {
    #[command(flatten)]
    forms: Forms,
    /// Also let anybody answer on the form's page
    #[arg(long)]
    public: bool,
}

/// Take forms back to draft, so that they accept no answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the id of each form. Answers are kept. A draft is not changed.

Examples:
  forms unpublish frm_7k2m9q4x1abz")]
pub struct Unpublish {
    #[command(flatten)]
    forms: Forms,
}

/// Close published forms, so that they accept no answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the id of each form. A closed form stays published and keeps its
answers; `forms publish` opens it again.

Examples:
  forms close frm_7k2m9q4x1abz")]
pub struct Close {
    #[command(flatten)]
    forms: Forms,
}

/// Arguments of all three commands.
#[derive(Debug, Args)]
struct Forms {
    /// Forms, by id or slug
    #[arg(required = true, value_name = "FORM")]
    forms: Vec<String>,
    /// Let the server check it, change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for Publish {
    const COLUMNS: Columns = FORM;

    /// Publishes the forms, and reopens closed ones.
    async fn run(self, session: &Session) -> Result<(), CliError> {
        let mut patch = json!({"status": FormStatus::Published, "settings": {"closed": null}});
        if self.public {
            patch["settings"]["public"] = true.into();
        }
        change(session, &self.forms, &patch).await
    }
}

impl Run for Unpublish {
    const COLUMNS: Columns = FORM;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        change(session, &self.forms, &json!({"status": FormStatus::Draft})).await
    }
}

impl Run for Close {
    const COLUMNS: Columns = FORM;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        change(session, &self.forms, &json!({"settings": {"closed": true}})).await
    }
}

/// Applies `patch` to each form and reports its state, and the address of its page if people can answer there now.
async fn change(session: &Session, forms: &Forms, patch: &serde_json::Value) -> Result<(), CliError> {
    let client = session.client().await?;
    for_each(session, &forms.forms, async |form| {
        let changed = client.update_form(form, &patch.to_string(), None, forms.dry_run).await?;
        let (output, title) = (&session.output, &changed.title);
        if forms.dry_run {
            output.object(&changed, || "(dry run)\n".to_owned())?;
            output.status(&format!("\"{title}\": the server would accept it; nothing was stored"));
            return Ok(());
        }
        output.object(&changed, || format!("{}\n", changed.id))?;
        output.success(&format!("\"{title}\" {}", form_state::describe(&changed)));
        if changed.accepting_reason.is_none() && is_open(&changed) {
            let links = page_links(session, &client, form).await?;
            output.status(&format!("page: {}", links.url));
        }
        if let Some(next) = next_command(&changed) {
            output.status(&format!("next: {} {next}", session.command_prefix()));
        }
        Ok(())
    })
    .await
}

/// Returns the command a user probably runs after this change.
fn next_command(form: &FormDetail) -> Option<String> {
    use AcceptingReason::{Closed, Draft};
    let ids = answers::answerable_ids(&answers::parse_questions(&form.questions));
    match &form.accepting_reason {
        None if is_open(form) => Some(format!("share {}", form.id)),
        None => ids.first().map(|id| format!("submit {} {id}=VALUE", form.id)),
        Some(OpenEnum::Known(Draft)) => Some(format!("edit {}", form.id)),
        Some(OpenEnum::Known(Closed)) => Some(format!("responses {}", form.id)),
        Some(_) => None,
    }
}
