//! `forms integrations show`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::cli::commands::Run;
use crate::cli::commands::integrations::INTEGRATION;
use crate::cli::commands::integrations::with_list_hint;
use crate::cli::connection::session::Session;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::humanize;
use crate::cli::output::integrations::authoring;
use crate::cli::output::yaml;
use crate::cli::output::{Format, value_of, visible};
use crate::domain::json::Value;

/// Show one integration and its health
#[derive(Debug, Args)]
#[command(after_long_help = "\
Secrets are not shown: only whether they are set, and the environment variable
that a form file takes them from. With -o yaml: the file that `integrations
create -f` takes, and the entry of a form file.

Examples:
  forms integrations show lunch webhook
  forms integrations show lunch webhook -o json | jq .health")]
pub(super) struct Show {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Integration, by name or id
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,
}

impl Run for Show {
    fn columns(&self) -> Columns {
        Columns::Fixed(&INTEGRATION)
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let integration = client.get_integration(&self.form, &self.name).await;
        let integration = integration.map_err(|error| with_list_hint(session, error, &self.form))?;
        let value = value_of(&integration)?;
        if session.output.format == Format::Yaml {
            let entries = authoring(&Value::Array(vec![value]));
            let entry = entries.as_array().and_then(<[_]>::first).cloned();
            return session.output.data(&yaml::yaml(&entry.unwrap_or(Value::Null))?);
        }
        session.output.object(&integration, || summary(&value))
    }
}

/// Minimum width of the column of names.
const MIN_WIDTH: usize = 14;

/// Formats each member on a line; those of `health` below it.
fn summary(integration: &Value) -> String {
    let Value::Object(members) = integration else { return String::new() };
    let widest = members.iter().map(|(name, _)| visible(name).chars().count()).max().unwrap_or_default();
    let width = (widest + 2).max(MIN_WIDTH);
    let line = |(name, value): &(String, Value)| match (name.as_str(), value) {
        ("health" | "headers", Value::Object(members)) => {
            let lines = members.iter().map(|(name, value)| format!("  {name}: {}\n", text(value)));
            format!("{}:\n{}", visible(name), lines.collect::<String>())
        }
        // As --set takes it.
        ("when", _) => format!("{:<width$}{}\n", "when:", visible(&value.to_string())),
        _ => format!("{:<width$}{}\n", format!("{}:", visible(name)), text(value)),
    };
    members.iter().map(line).collect()
}

/// Formats a value; of a secret, what is known of it.
fn text(value: &Value) -> String {
    let member = |name: &str| value.get(name).and_then(Value::as_str);
    if value.get("set") != Some(&Value::Bool(true)) {
        return visible(&humanize(value));
    }
    member("env").map_or_else(|| "set".to_owned(), |name| visible(&format!("set (from {name})")))
}
