//! `forms keys create`.

use std::path::Path;

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::api::{KeyDetail, NewKey};
use crate::cli::commands::keys::CREATED;
use crate::cli::commands::keys::{SHOWN_ONCE, revealed, scope_names, stored_keys};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::connection::target::Target;
use crate::cli::input::values::duration;
use crate::cli::output::visible;
use crate::client::ReceivedBody;
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::domain::workspace::{ApiKey, Scope};
use crate::secret::Secret;

/// Create an API key
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints only the key, which the server does not show again. The scopes are in
the help of `forms keys`.

With --data, and without --name and --scope, creates an operator key and writes
it to the file operator-key of the data directory: this replaces a lost one.

Examples:
  forms keys create --name website --scope submit --form customer-feedback
  forms keys create --name ci --scope write --expires 90d |
    gh secret set FORMS_API_KEY
  forms keys create --data ./store")]
pub struct Create {
    /// Name, to recognize the key by
    #[arg(long, requires = "scopes")]
    name: Option<String>,
    /// Permission: read, submit, write, admin, operator
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',', hide_possible_values = true)]
    #[arg(requires = "name", value_parser = PossibleValuesParser::new(Scope::ALL.map(Scope::name)))]
    scopes: Vec<String>,
    /// Only for this form, by id or slug; can be repeated
    #[arg(long = "form", value_name = "FORM", requires = "name")]
    forms: Vec<String>,
    /// When it expires: 90d, 2027-01-31
    #[arg(long, value_name = "WHEN", requires = "name", value_parser = expiry)]
    expires: Option<Timestamp>,
    /// Workspace of the key, by id; needs the scope operator
    #[arg(long, value_name = "ID", requires = "name")]
    workspace: Option<String>,
}

/// Parses `90d` from now, a time, or a day, whose end (UTC) is meant.
fn expiry(text: &str) -> Result<Timestamp, String> {
    let day = || Timestamp::parse(&format!("{text}T23:59:59.999Z"));
    let after = || {
        // A bare number would be seconds, which nobody means here.
        let after = text.parse::<u64>().is_err().then(|| duration(text).ok())??;
        let millis = i64::try_from(after.as_millis()).ok()?;
        Some(Timestamp::from_millis(SystemClock.now().millis().saturating_add(millis)))
    };
    let end = Timestamp::parse(text).or_else(day).or_else(after);
    end.ok_or_else(|| "expected a time such as 90d or 2027-01-31".to_owned())
}

impl Run for Create {
    const COLUMNS: Columns = CREATED;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let Self { name, scopes, forms, expires: expires_at, workspace } = self;
        let Some(name) = name else { return replace_operator_key(session).await };
        let forms = Some(forms).filter(|forms| !forms.is_empty());
        create(session, &NewKey { name, scopes, forms, expires_at, workspace }).await?;
        session.output.status(SHOWN_ONCE);
        Ok(())
    }
}

/// Creates an operator key, and writes it into the data directory in place of the one there.
async fn replace_operator_key(session: &Session) -> Result<(), CliError> {
    let Target::Data(data) = session.target()? else {
        let scopes = Scope::ALL.map(Scope::name).join(", ");
        let help = format!("add --name NAME and --scope, one or more of: {scopes}");
        return Err(CliError::usage_with_help("--name and --scope are required", help));
    };
    let text = create(session, &operator_key()).await?;
    stored_keys::write_file(session, &data.value, text.reveal())?;
    if let Some(old) = stored_keys::id_in_use(session) {
        let prefix = session.command_prefix();
        session.output.status(&format!("The key {old} still works. Revoke it: {prefix} keys revoke {old}"));
    }
    Ok(())
}

/// Creates an operator key, writes it into the data directory `data`, and revokes all others of the workspace.
pub(in crate::cli::commands) async fn replace_all_operator_keys(
    session: &Session,
    data: &Path,
) -> Result<(), CliError> {
    let client = session.client().await?;
    let is_operators = |key: &ReceivedBody<KeyDetail>| key.name == ApiKey::OPERATOR_NAME;
    let old = client.list::<KeyDetail>(&["keys"], "keys").await?.into_iter().filter(is_operators);
    let created = client.post::<KeyDetail>(&["keys"], &operator_key()).await?;
    let text = revealed(created.key.as_ref(), &created.id.to_string(), String::new())?;
    stored_keys::write_key(data, text)?;
    for key in old {
        client.delete(&["keys", &key.id.to_string()], false).await?;
    }
    Ok(())
}

fn operator_key() -> NewKey {
    let scopes = ApiKey::OPERATOR_SCOPES.map(|scope| scope.name().to_owned()).to_vec();
    NewKey { name: ApiKey::OPERATOR_NAME.to_owned(), scopes, ..NewKey::default() }
}

/// Creates the key, prints it and returns its text.
async fn create(session: &Session, request: &NewKey) -> Result<Secret<String>, CliError> {
    let created = session.client().await?.post::<KeyDetail>(&["keys"], request).await?;
    let prefix = session.command_prefix();
    let help = format!("revoke it and create another: {prefix} keys revoke {}", created.id);
    let text = revealed(created.key.as_ref(), &created.id.to_string(), help)?;
    let printed = session.output.object(&created, || format!("{text}\n"));
    printed.map_err(|error| error.after(&format!("the key {} exists", created.id)))?;
    session.output.success(&format!("created {}", describe(&created)));
    Ok(Secret::new(text.to_owned()))
}

/// Returns id, name and scopes of a key as text.
pub(super) fn describe(key: &KeyDetail) -> String {
    let expires = key.expires_at.map(|end| format!(", expires {end}")).unwrap_or_default();
    format!("{} \"{}\" ({}){expires}", key.id, visible(&key.name), visible(&scope_names(&key.scopes)))
}
