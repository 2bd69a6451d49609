//! `forms keys create`.

use std::path::Path;

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};

use crate::api::{KeyDetail, NewKey};
use crate::cli::commands::Run;
use crate::cli::commands::keys::CREATED;
use crate::cli::commands::keys::{SHOWN_ONCE, revealed, scope_names, stored_keys};
use crate::cli::connection::session::Session;
use crate::cli::connection::target::Target;
use crate::cli::input::values::duration;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::visible;
use crate::clock::Timestamp;
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
pub(super) struct Create {
    /// Name, to recognize the key by
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// Permission: read, submit, write, admin, operator
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',', hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(Scope::ALL.map(Scope::name)))]
    scopes: Vec<String>,
    /// Only for this form, by id or slug; can be repeated
    #[arg(long = "form", value_name = "FORM", value_parser = NonEmptyStringValueParser::new())]
    forms: Vec<String>,
    /// When it expires: 90d, 2027-01-31
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    expires: Option<Expiry>,
    /// Workspace of the key, by id; needs the scope operator
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    workspace: Option<String>,
}

/// When a key expires.
#[derive(Debug, Clone, Copy)]
enum Expiry {
    /// After this many milliseconds.
    After(i64),
    At(Timestamp),
}

/// Parses `90d`, a time, or a day, whose end (UTC) is meant.
fn expiry(text: &str) -> Result<Expiry, String> {
    let day = || Timestamp::parse(&format!("{text}T23:59:59.999Z"));
    if let Some(time) = Timestamp::parse(text).or_else(day) {
        return Ok(Expiry::At(time));
    }
    // A bare number would be seconds, which nobody means here.
    let after = text.parse::<u64>().is_err().then(|| duration(text).ok()).flatten();
    let millis = after.and_then(|after| i64::try_from(after.as_millis()).ok());
    millis.map(Expiry::After).ok_or_else(|| "expected a time such as 90d or 2027-01-31".to_owned())
}

impl Expiry {
    fn time(self, now: Timestamp) -> Timestamp {
        match self {
            Self::After(millis) => Timestamp::from_millis(now.millis().saturating_add(millis)),
            Self::At(time) => time,
        }
    }
}

impl Run for Create {
    fn columns(&self) -> Columns {
        CREATED
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        if self.is_bare()
            && let Target::Data(data) = session.target()?
        {
            return replace_operator_key(session, &data.value).await;
        }
        let request = self.into_request(session.now())?;
        create(session, &request).await?;
        session.output.status(SHOWN_ONCE);
        Ok(())
    }
}

impl Create {
    fn is_bare(&self) -> bool {
        let Self { name, scopes, forms, expires, workspace } = self;
        let is_named = name.is_some() || !scopes.is_empty();
        !is_named && forms.is_empty() && expires.is_none() && workspace.is_none()
    }

    fn into_request(self, now: Timestamp) -> Result<NewKey, CliError> {
        let Self { name, scopes, forms, expires, workspace } = self;
        let missing =
            |flag: &str, help: String| CliError::usage_with_help(format!("{flag} is required"), help);
        let names = Scope::ALL.map(Scope::name).join(", ");
        let checks = [
            name.is_none().then(|| missing("--name", "add --name NAME, to recognize the key by".to_owned())),
            scopes.is_empty().then(|| missing("--scope", format!("add --scope, one or more of: {names}"))),
        ];
        CliError::combine(checks.into_iter().flatten().collect())?;
        Ok(NewKey {
            name: name.unwrap_or_default(),
            scopes,
            forms: Some(forms).filter(|forms| !forms.is_empty()),
            expires_at: expires.map(|expires| expires.time(now)),
            workspace,
        })
    }
}

/// Creates an operator key, and writes it into the data directory in place of the one there.
async fn replace_operator_key(session: &Session, data: &Path) -> Result<(), CliError> {
    let scopes = ApiKey::OPERATOR_SCOPES.map(|scope| scope.name().to_owned()).to_vec();
    let request = NewKey { name: ApiKey::OPERATOR_NAME.to_owned(), scopes, ..NewKey::default() };
    let text = create(session, &request).await?;
    stored_keys::write_file(session, data, text.reveal())?;
    if let Some(old) = stored_keys::id_in_use(session) {
        let prefix = session.command_prefix();
        session.output.status(&format!("{old} stays valid; to end it: {prefix} keys revoke {old}"));
    }
    Ok(())
}

/// Creates the key, prints it and returns its text.
async fn create(session: &Session, request: &NewKey) -> Result<Secret<String>, CliError> {
    let created = session.client().await?.create_key(request).await?;
    let prefix = session.command_prefix();
    let help = format!("revoke it and create another: {prefix} keys revoke {}", created.id);
    let text = revealed(created.key.as_ref(), &created.id.to_string(), help)?;
    session.output.object(&created, || format!("{text}\n"))?;
    session.output.success(&format!("created {}", describe(&created)));
    Ok(Secret::new(text.to_owned()))
}

/// Returns id, name and scopes of a key as text.
pub(super) fn describe(key: &KeyDetail) -> String {
    let expires = key.expires_at.map(|end| format!(", expires {end}")).unwrap_or_default();
    format!("{} \"{}\" ({}){expires}", key.id, visible(&key.name), visible(&scope_names(&key.scopes)))
}
