//! `forms promote`: copies a form from one server to another.

use clap::Args;

use crate::cli::commands::planning::{ApplyOptions, RESULTS, apply_plan, plan_form};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::document::{self, FormState};
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::visible;
use crate::cli::output::yaml;
use crate::cli::plan::Plan;

/// Copy a form to another server
#[derive(Debug, Args)]
#[command(after_long_help = "\
Makes the form with the same slug on the other server equal to this one, as if
`forms show -o yaml` were applied there: shows the changes, asks, and sends
them. Answers are not copied. The state there stays as it is, and a new form is
a draft, unless --publish is given. Secrets of integrations are taken from the
environment variables that the form names.

Contexts are made by `forms login`. Prints the form's id there, its slug, and
created, updated or unchanged.

Examples:
  forms promote lunch --from staging --to production
  forms promote lunch --from staging --to production --publish --yes")]
pub struct Promote {
    /// Form, by slug or id
    form: String,
    /// Context to copy from
    #[arg(long, value_name = "CONTEXT")]
    from: String,
    /// Context to copy to
    #[arg(long, value_name = "CONTEXT")]
    to: String,
    /// Publish it there
    #[arg(long)]
    publish: bool,
    /// Allow other types of questions that have answers
    #[arg(long)]
    allow_breaking: bool,
    /// Do not ask for a confirmation
    #[arg(short, long)]
    yes: bool,
    /// Let the other server check it, store nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for Promote {
    const COLUMNS: Columns = RESULTS;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (from, to) = (session.in_context(&self.from)?, session.in_context(&self.to)?);
        let form = from.client().await?.get_form(&self.form).await?;
        if form.slug.is_none() {
            let message = format!("\"{}\" has no slug, by which to find it on the other server", form.title);
            let help = format!("{} edit {} --slug NAME", from.command_prefix(), form.id);
            return Err(CliError::usage_with_help(visible(&message), help));
        }
        let name = format!("{} of {}", self.form, self.from);
        let documents = document::read_text(&name, &yaml::yaml(&yaml::file(&form)?)?, None)?;
        let mut plan = Plan { forms: Vec::new(), unmanaged: Vec::new(), target: to.target_name()? };
        let state = self.publish.then_some(FormState::Published);
        for document in documents {
            plan.forms.push(plan_form(&to.client().await?, document, state).await?);
        }
        if plan.has_changes() {
            plan.text(false).lines().for_each(|line| to.output.status(line));
            if !self.yes && !self.dry_run {
                to.confirm(&format!("change \"{}\"", form.title), ConfirmBy::Yes).await?;
            }
        }
        let options = ApplyOptions { allow_breaking: self.allow_breaking, dry_run: self.dry_run };
        apply_plan(&to, &plan, options).await
    }
}
