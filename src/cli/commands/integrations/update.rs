//! `forms integrations update`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::cli::commands::Run;
use crate::cli::commands::integrations::INTEGRATION;
use crate::cli::commands::integrations::members::MemberFlags;
use crate::cli::commands::integrations::{SHOWN_ONCE, name, with_list_hint};
use crate::cli::connection::session::Session;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;

/// Change an integration
#[derive(Debug, Args)]
#[command(after_long_help = "\
Changes only the members that are given, as in `forms integrations create`; an
empty value removes one, or has a new signing secret made. A webhook that is
moved to another host needs its secrets again: they were meant for the old one.
Prints the integration's id, or the new secret.

Examples:
  forms integrations update lunch webhook --set url=https://example.com/v2/hooks
  forms integrations update lunch webhook --set payload=thin --set when=
  forms integrations update lunch webhook --set-secret bearer_token=@token")]
pub(super) struct Update {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Integration, by name or id
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    integration: String,
    #[command(flatten)]
    members: MemberFlags,
}

impl Run for Update {
    fn columns(&self) -> Columns {
        Columns::Fixed(&INTEGRATION)
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let Self { form, integration, members } = self;
        if members.is_empty() {
            let help = "say what to change: --set or --set-secret, or -f FILE";
            return Err(CliError::usage_with_help("there is nothing to change", help));
        }
        let patch = members.read(session, None).await?;
        let client = session.client().await?;
        let updated = client.update_integration(&form, &integration, &patch.sent.to_string(), None).await;
        let updated = updated.map_err(|error| match error.problem() {
            Some(problem) if !problem.errors.is_empty() => patch.explain(error),
            _ => with_list_hint(session, error, &form),
        })?;
        let output = &session.output;
        match updated.generated_secret() {
            Some(secret) => output.object(&updated, || format!("{}\n", secret.reveal()))?,
            None => output.object(&updated, || format!("{}\n", updated.id))?,
        }
        output.success(&format!("updated {}", name(&updated)?));
        if updated.generated_secret().is_some() {
            output.status(SHOWN_ONCE);
        }
        Ok(())
    }
}
