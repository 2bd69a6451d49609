//! The members of an integration, from flags and from a file.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::commands::integrations::secret_sources::{self, SecretArg};
use crate::cli::commands::read_input;
use crate::cli::connection::session::Session;
use crate::cli::input::document::violations::rejected;
use crate::cli::input::document::{self, Document, read_value};
use crate::cli::input::secret_members::{find_secret, is_secret_member, type_of};
use crate::cli::output::exit::CliError;
use crate::client::ClientError;
use crate::domain::integration::IntegrationType;
use crate::domain::integration::settings::SIGNING_SECRET;
use crate::domain::json::{Object, Value};
use crate::domain::validation::violation::Rule;

/// Members of all types that are lists, whose items can be separated by commas.
const LISTS: [&str; 4] = ["events", "retry", "fields.only", "fields.except"];

/// Whether the member is text, whatever its value looks like.
fn is_text(path: &str) -> bool {
    let mut own = IntegrationType::all_members().filter(|member| member.name == path);
    path == "name" || path.starts_with("headers.") || own.any(|member| member.is_text())
}

fn is_list(path: &str) -> bool {
    let mut own = IntegrationType::all_members().filter(|member| member.name == path);
    LISTS.contains(&path) || own.any(|member| member.is_list())
}

#[derive(Debug, Args)]
pub(super) struct MemberFlags {
    /// Set a member (payload=thin) or remove it (subject=); repeat for more
    // Parsed after the command line: its errors quote the value, which may be a secret.
    #[arg(long, value_name = "MEMBER=VALUE")]
    set: Vec<String>,
    #[arg(long, value_name = "MEMBER=SOURCE")]
    #[arg(help = "Set a secret from a file, stdin or a variable: bearer_token=@FILE, @-, env:NAME")]
    set_secret: Vec<String>,
    /// All members in YAML or JSON, - for standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// A member as a path with dots, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    path: String,
    value: Value,
}

/// Parses a `--set` of an integration of a type that may not be known. No error quotes the value.
fn parse_setting(kind: Option<IntegrationType>, text: &str) -> Result<Member, CliError> {
    let invalid = |expected: &str| CliError::usage(format!("invalid --set: expected {expected}"));
    let (path, value) = text.split_once('=').ok_or_else(|| invalid("MEMBER=VALUE"))?;
    let names: Vec<_> = path.split('.').collect();
    if names.contains(&"") {
        return Err(invalid("a name before the `=`"));
    }
    let value = setting_value(path, value);
    match find_secret(kind, &names, &value) {
        Some(secret) => Err(secret_sources::visible_secret(&secret)),
        None => Ok(Member { path: path.to_owned(), value }),
    }
}

/// Returns `text` as the value of a member: YAML, except for members that are text or lists; nothing removes the member.
fn setting_value(path: &str, text: &str) -> Value {
    let as_text = || Value::String(text.to_owned());
    if text.is_empty() {
        return Value::Null;
    }
    if is_text(path) {
        return as_text();
    }
    match read_value(text) {
        Some(Value::String(_)) | None if is_list(path) => {
            Value::Array(text.split(',').map(|item| Value::String(item.trim().to_owned())).collect())
        }
        value => value.unwrap_or_else(as_text),
    }
}

/// The members of an integration as given.
pub(super) struct Input {
    /// The members to send, with secrets.
    pub(super) sent: Value,
    document: Option<Document>,
}

impl MemberFlags {
    /// Whether no flag is given.
    pub(super) fn is_empty(&self) -> bool {
        self.file.is_none() && self.set.is_empty() && self.set_secret.is_empty()
    }

    /// Reads the file and the secrets of an integration of the type `kind`, if that is known.
    ///
    /// # Errors
    /// If a flag is not valid or has a secret, one of them cannot be read, or standard input is named more than once.
    pub(super) async fn read(
        &self,
        session: &Session,
        kind: Option<IntegrationType>,
    ) -> Result<Input, CliError> {
        let settings =
            self.set.iter().map(|text| parse_setting(kind, text)).collect::<Result<Vec<_>, _>>()?;
        let secrets = self.set_secret.iter().map(|text| secret_sources::parse(kind, text));
        let secrets = secrets.collect::<Result<Vec<_>, _>>()?;
        self.check_inputs(session, &secrets)?;
        let file = self.file.clone();
        let environment = session.environment.clone();
        let (document, secrets) = read_input(move || {
            let document = file.as_deref().map(document::entry).transpose()?;
            let value = |secret: SecretArg| {
                let value = secret.value(&environment)?;
                Ok(Member { path: secret.member, value })
            };
            Ok((document, secrets.into_iter().map(value).collect::<Result<Vec<_>, CliError>>()?))
        })
        .await?;
        let mut sent = match &document {
            Some(document) => document.entry_with_secrets(&session.environment)?,
            None => Value::Object(Object::new()),
        };
        for Member { path, value } in settings.into_iter().chain(secrets) {
            set(&mut sent, &path.split('.').collect::<Vec<_>>(), value);
        }
        Ok(Input { sent, document })
    }

    /// Refuses to read standard input twice.
    fn check_inputs(&self, session: &Session, secrets: &[SecretArg]) -> Result<(), CliError> {
        let stdin = Path::new("-");
        let files = secrets.iter().filter_map(SecretArg::file).chain(self.file.as_deref());
        let inputs = files.filter(|file| *file == stdin).count();
        if inputs > 1 {
            return Err(CliError::usage("standard input can be read only once"));
        }
        if inputs == 1 {
            session.announce_stdin(stdin);
        }
        Ok(())
    }
}

/// Sets the member at the path `names` in `object`.
fn set(object: &mut Value, names: &[&str], value: Value) {
    let ([name, rest @ ..], Value::Object(members)) = (names, object) else { return };
    let index = members.iter().position(|(key, _)| key == name).unwrap_or_else(|| {
        members.push(((*name).to_owned(), Value::Null));
        members.len() - 1
    });
    let member = &mut members[index].1;
    if rest.is_empty() {
        *member = value;
        return;
    }
    if !matches!(member, Value::Object(_)) {
        *member = Value::Object(Object::new());
    }
    set(member, rest, value);
}

impl Input {
    /// Adds `members`; of two with a name, the later one counts.
    pub(super) fn with(mut self, members: impl IntoIterator<Item = (String, Value)>) -> Self {
        members.into_iter().for_each(|(name, value)| set(&mut self.sent, &[&name], value));
        self
    }

    /// Locates the server's violations in the file, if they are about it.
    pub(super) fn explain(&self, mut error: ClientError) -> CliError {
        if let ClientError::Problem(problem) = &mut error {
            let kind = type_of(&self.sent);
            for violation in &mut problem.errors {
                let name = violation.last_step();
                match violation.code.known() {
                    Some(Rule::SecretRequired) => violation.help = Some(secret_help(&violation.pointer)),
                    Some(Rule::MissingField) if is_secret_member(kind, &name) => {
                        violation.help = Some(format!("add {}", secret_sources::flag_for(&name)));
                    }
                    _ => {}
                }
            }
        }
        match (error, &self.document) {
            (ClientError::Problem(problem), _) if problem.errors.is_empty() => {
                ClientError::Problem(problem).into()
            }
            (error @ ClientError::Problem(_), Some(document)) => {
                crate::cli::commands::create::locate_in_file(document, error)
            }
            (ClientError::Problem(problem), None) => rejected(&self.sent, &problem.errors.clone(), *problem),
            (error, _) => error.into(),
        }
    }
}

/// Returns the flags that send the secret at `pointer` again.
fn secret_help(pointer: &str) -> String {
    let member = pointer.trim_start_matches('/').replace('/', ".");
    let without = if member == SIGNING_SECRET { "for a new one" } else { "to remove it" };
    format!("add --set-secret {member}=@FILE, or --set {member}= {without}")
}

#[cfg(test)]
mod tests {
    use super::{Value, parse_setting, set};

    #[track_caller]
    fn assert_set(texts: &[&str], expected: &str) {
        let mut object = Value::Object(Vec::new());
        for text in texts {
            let member = parse_setting(None, text).unwrap();
            set(&mut object, &member.path.split('.').collect::<Vec<_>>(), member.value);
        }
        assert_eq!(object.to_string(), expected);
    }

    #[test]
    fn a_value_is_yaml_text_or_a_list_as_the_member_is() {
        assert_set(&["enabled=false", "payload=thin"], r#"{"enabled":false,"payload":"thin"}"#);
        assert_set(&["headers.X-A=1.10", "headers.X-B=yes"], r#"{"headers":{"X-A":"1.10","X-B":"yes"}}"#);
        assert_set(&["retry=5s, 5m", "fields.only=q1"], r#"{"retry":["5s","5m"],"fields":{"only":["q1"]}}"#);
        assert_set(&["events=[form.published]"], r#"{"events":["form.published"]}"#);
        assert_set(
            &["when.score.lte=2", "when.colour=red"],
            r#"{"when":{"score":{"lte":2},"colour":"red"}}"#,
        );
        assert_set(&["when={score: {lte: 2}}", "when=", "secret="], r#"{"when":null,"secret":null}"#);
    }

    #[test]
    fn a_secret_is_refused() {
        for text in ["secret=whsec_x", "bearer_token.value=x", "headers.COOKIE=x", "payload", "=x", "a..b=x"]
        {
            assert!(parse_setting(None, text).is_err(), "{text}");
        }
    }
}
