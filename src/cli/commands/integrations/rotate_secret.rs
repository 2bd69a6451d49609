//! `forms integrations rotate-secret`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::api;
use crate::cli::commands::Run;
use crate::cli::commands::integrations::{SHOWN_ONCE, with_list_hint};
use crate::cli::connection::session::Session;
use crate::cli::input::values::duration;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;

/// Replace the signing secret of a webhook
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints only the new secret, which the server does not show again. For --grace
the old one signs too, so that the receiver can be changed in the meantime.

Examples:
  forms integrations rotate-secret lunch webhook > secret
  forms integrations rotate-secret lunch webhook --grace 7d > secret")]
pub(super) struct RotateSecret {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Integration, by name or id
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// How long the old secret signs too, 0 for not at all
    #[arg(long, value_name = "TIME", value_parser = grace, default_value = "24h")]
    grace: String,
}

/// Checks a duration, which is sent as text; a bare number is seconds.
fn grace(text: &str) -> Result<String, String> {
    match text {
        "0" | "0s" => Ok("0s".to_owned()),
        text => Ok(format!("{}ms", duration(text)?.as_millis())),
    }
}

impl Run for RotateSecret {
    fn columns(&self) -> Columns {
        Columns::Fixed(&["secret", "previous_valid_until"])
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let Self { form, name, grace } = self;
        let ends_at_once = ["0s", "0ms"].contains(&grace.as_str());
        let request = api::Rotate { grace: Some(grace) };
        let rotated = session.client().await?.rotate_secret(&form, &name, &request).await;
        let rotated = rotated.map_err(|error| with_list_hint(session, error, &form))?;
        let Some(secret) = &rotated.secret else {
            let prefix = session.command_prefix();
            return Err(CliError::Failed {
                message: "the new secret was lost with the first response".to_owned(),
                causes: vec![format!("make another: {prefix} integrations rotate-secret {form} {name}")],
            });
        };
        session.output.object(&rotated, || format!("{}\n", secret.reveal()))?;
        session.output.success(&match ends_at_once {
            true => "earlier secrets sign no more".to_owned(),
            false => format!("the old secret signs too until {}", rotated.previous_valid_until),
        });
        session.output.status(SHOWN_ONCE);
        Ok(())
    }
}
