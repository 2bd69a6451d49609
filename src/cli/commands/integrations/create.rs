//! `forms integrations create`.

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::api::IntegrationDetail;
use crate::cli::commands::integrations::members::MemberFlags;
use crate::cli::commands::integrations::{INTEGRATION, report};
use crate::cli::commands::keys::revealed;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::domain::integration::IntegrationType;
use crate::domain::json::Value;

/// Create an integration
#[derive(Debug, Args)]
#[command(after_long_help = "\
If the server makes the signing secret of a webhook, prints only that secret,
which is not shown again; otherwise prints the integration's id. The members of
each type are in `forms help integrations`.

--set takes MEMBER=VALUE; a dot leads into an object, as in headers.X-Team=blue
or when.score.lte=2, and commas separate the items of a list. Other users of
this machine can see arguments, so secrets come from elsewhere: --set-secret
takes MEMBER=@FILE, MEMBER=@- for standard input, or MEMBER=env:NAME for an
environment variable. -f takes all members from a file, as in the list
`integrations` of a form file; flags override it.

Examples:
  forms integrations create lunch --webhook https://example.com/hooks > secret
  forms integrations create lunch --csv-file lunch.csv
  forms integrations create lunch --email team@example.com
  forms integrations create lunch --webhook https://example.com/hooks \\
    --name crm --set payload=thin --set when.score.lte=2
  forms integrations create lunch --webhook https://example.com/hooks \\
    --set-secret secret=@secret --set-secret bearer_token=env:CRM_TOKEN
  forms integrations create lunch --type slack --set-secret url=env:SLACK_URL
  forms integrations create lunch -f webhook.yaml")]
pub struct Create {
    /// Form, by id or slug
    form: String,
    /// Make a webhook that is sent to this URL
    #[arg(long, value_name = "URL", group = "kind")]
    webhook: Option<String>,
    /// Make a CSV file with this name, in the server's data directory
    #[arg(long, value_name = "NAME.csv", group = "kind")]
    csv_file: Option<String>,
    /// Make mail to this address
    #[arg(long, value_name = "ADDRESS", group = "kind")]
    email: Option<String>,
    /// Type, such as slack; all are in `forms help integrations`
    #[arg(long = "type", value_name = "TYPE", group = "kind", value_parser = types(), hide_possible_values = true)]
    type_name: Option<String>,
    /// Name, unique in the form; by default the type's
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    members: MemberFlags,
}

fn types() -> PossibleValuesParser {
    PossibleValuesParser::new(IntegrationType::ALL.map(IntegrationType::name))
}

impl Run for Create {
    fn columns(&self) -> Columns {
        Columns::Fixed(&INTEGRATION)
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let Self { form, webhook, csv_file, email, type_name, name, members } = self;
        let target = webhook.map(|url| ("webhook", "url", Value::String(url)));
        let target = target.or(csv_file.map(|path| ("csv_file", "path", Value::String(path))));
        let target = target.or(email.map(|to| ("email", "to", [to.as_str()].into_iter().collect())));
        let kind = target.as_ref().map(|(kind, ..)| *kind).or(type_name.as_deref());
        let mut body = members.read(session, kind.and_then(IntegrationType::parse)).await?;
        let flags = [
            kind.map(|kind| ("type", kind.into())),
            target.map(|(_, member, value)| (member, value)),
            name.map(|name| ("name", Value::String(name))),
        ];
        flags.into_iter().flatten().for_each(|(name, value)| body.sent.set(&[name], value));
        if body.sent.get("type").is_none() {
            let help = "add --webhook URL, --csv-file NAME.csv, --email ADDRESS, --type TYPE, or -f FILE with a `type`";
            return Err(CliError::usage_with_help("the type of the integration is missing", help));
        }
        let client = session.client().await?;
        let created = client.post::<IntegrationDetail>(&["forms", &form, "integrations"], &body.sent).await;
        let created = created.map_err(|error| body.explain(error))?;
        let (name, prefix) = (&created.name, session.command_prefix());
        if created.secret.is_some() && body.sent.get("secret").is_none() {
            let help = format!("make another secret: {prefix} integrations rotate-secret {form} {name}");
            revealed(created.generated_secret(), &format!("`{name}`"), help)?;
        }
        report(session, &created, "created")?;
        session.output.status(&format!("next: {prefix} integrations test {form} {name}"));
        Ok(())
    }
}
