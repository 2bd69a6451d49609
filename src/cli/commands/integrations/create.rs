//! `forms integrations create`.

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};

use crate::api::IntegrationDetail;
use crate::cli::commands::Run;
use crate::cli::commands::integrations::INTEGRATION;
use crate::cli::commands::integrations::members::MemberFlags;
use crate::cli::commands::integrations::{SHOWN_ONCE, name};
use crate::cli::connection::session::Session;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::client::ReceivedBody;
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
pub(super) struct Create {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
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
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
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
        let Self { form, webhook, csv_file, email, type_name, name: own_name, members } = self;
        let text = |name: &str, text: String| (name.to_owned(), Value::String(text));
        let own_type = type_name.as_deref().and_then(IntegrationType::parse).map(|kind| (kind, None));
        let with = |kind: IntegrationType, name: &str, value| (kind, Some((name.to_owned(), value)));
        let webhook = webhook.map(|url| with(IntegrationType::Webhook, "url", Value::String(url)));
        let csv_file = csv_file.map(|path| with(IntegrationType::CsvFile, "path", Value::String(path)));
        let email = email.map(|to| with(IntegrationType::Email, "to", Value::Array(vec![Value::String(to)])));
        let (kind, member) = webhook.or(csv_file).or(email).or(own_type).unzip();
        let flags = kind.map(|kind| text("type", kind.name().to_owned())).into_iter();
        let flags = flags.chain(member.flatten()).chain(own_name.map(|name| text("name", name)));
        let body = members.read(session, kind).await?.with(flags);
        if body.sent.get("type").is_none() {
            let help = "add --webhook URL, --csv-file NAME.csv, --email ADDRESS, --type TYPE, or -f FILE with a `type`";
            return Err(CliError::usage_with_help("the type of the integration is missing", help));
        }
        let client = session.client().await?;
        let created = client.create_integration(&form, &body.sent.to_string()).await;
        let created = created.map_err(|error| body.explain(error))?;
        let output = &session.output;
        match secret(session, &form, &created, &body.sent)? {
            Some(secret) => output.object(&created, || format!("{secret}\n"))?,
            None => output.object(&created, || format!("{}\n", created.id))?,
        }
        output.success(&format!("created {}", name(&created)?));
        if created.generated_secret().is_some() {
            output.status(SHOWN_ONCE);
        }
        let prefix = session.command_prefix();
        output.status(&format!("next: {prefix} integrations test {form} {}", created.name));
        Ok(())
    }
}

/// Returns the secret that the server has made, if any. After a lost response the server answers again, without it.
fn secret<'a>(
    session: &Session,
    form: &str,
    created: &'a ReceivedBody<IntegrationDetail>,
    sent: &Value,
) -> Result<Option<&'a str>, CliError> {
    let generated = created.generated_secret().map(|secret| secret.reveal().as_str());
    if generated.is_some() || created.secret.is_none() || sent.get("secret").is_some() {
        return Ok(generated);
    }
    let (name, prefix) = (&created.name, session.command_prefix());
    Err(CliError::Failed {
        message: format!("`{name}` was created, but its secret was lost with the first response"),
        causes: vec![format!("make another: {prefix} integrations rotate-secret {form} {name}")],
    })
}
