//! The members of an integration, from flags and from a file; secrets from files, standard input and the environment.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::commands::{CliError, Session, read_input};
use crate::cli::environment::Environment;
use crate::cli::input::document::violations::refused;
use crate::cli::input::document::{self, Document, read_value};
use crate::cli::input::secret_file;
use crate::client::ClientError;
use crate::domain::integration::IntegrationType;
use crate::domain::integration::secret_members::{Secrecy, secrecy, secret_names, type_of, visit_secrets};
use crate::domain::integration::settings::SIGNING_SECRET;
use crate::domain::integration::spec::Member;
use crate::domain::json::{Object, Value};
use crate::domain::validation::violation::Rule;

/// Members of all types that are lists, whose items can be separated by commas.
const LISTS: [&str; 4] = ["events", "retry", "fields.only", "fields.except"];

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

/// Parses a `--set` into a path of names and a value: YAML, except for members that are text or lists; nothing removes the
/// member. No error quotes the value.
fn parse_setting(text: &str) -> Result<(Vec<&str>, Value), CliError> {
    let invalid = |expected: &str| CliError::usage(format!("invalid --set: expected {expected}"));
    let (path, value) = text.split_once('=').ok_or_else(|| invalid("MEMBER=VALUE"))?;
    let names: Vec<_> = path.split('.').collect();
    if names.contains(&"") {
        return Err(invalid("a name before the `=`"));
    }
    let of_types = || IntegrationType::all_members().filter(|member| member.name == path);
    let is_text = path == "name" || path.starts_with("headers.") || of_types().any(Member::is_text);
    let is_list = LISTS.contains(&path) || of_types().any(Member::is_list);
    let value = match read_value(value) {
        _ if value.is_empty() => Value::Null,
        Some(Value::String(_)) | None if is_list => value.split(',').map(str::trim).collect(),
        Some(parsed) if !is_text => parsed,
        _ => value.into(),
    };
    Ok((names, value))
}

/// Refuses settings that are secrets of an integration of a type that may not be known: other users can see arguments.
fn refuse_visible_secrets(
    kind: Option<IntegrationType>,
    settings: &[(Vec<&str>, Value)],
) -> Result<(), CliError> {
    let mut members = Value::Object(Object::new());
    settings.iter().for_each(|(names, value)| members.set(names, value.clone()));
    if let Some(kind) = kind {
        members.set(&["type"], kind.name().into());
    }
    let mut secret = None;
    visit_secrets(&mut members, |member| {
        secret = secret.take().or_else(|| member.is_literal().then_some(member.pointer));
    });
    secret.map_or(Ok(()), |pointer| Err(visible_secret(&pointer[1..].replace('/', "."))))
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
        self,
        session: &Session,
        kind: Option<IntegrationType>,
    ) -> Result<Input, CliError> {
        let settings = self.set.iter().map(|text| parse_setting(text)).collect::<Result<Vec<_>, _>>()?;
        refuse_visible_secrets(kind, &settings)?;
        self.check_inputs(session)?;
        let (file, secrets, environment) = (self.file, self.set_secret, session.environment.clone());
        let (document, mut sent) = read_input(move || {
            let document = file.as_deref().map(document::entry).transpose()?;
            let mut sent = match &document {
                Some(document) => document.entry_with_secrets(&environment)?,
                None => Value::Object(Object::new()),
            };
            for text in &secrets {
                let (path, secret) = read_secret(kind, text, &environment)?;
                sent.set(&path.split('.').collect::<Vec<_>>(), secret);
            }
            Ok((document, sent))
        })
        .await?;
        settings.into_iter().for_each(|(names, value)| sent.set(&names, value));
        Ok(Input { sent, document })
    }

    /// Refuses to read standard input twice.
    fn check_inputs(&self, session: &Session) -> Result<(), CliError> {
        let stdin = Path::new("-");
        let secrets = self.set_secret.iter().filter(|text| text.ends_with("=@-"));
        match secrets.count() + usize::from(self.file.as_deref() == Some(stdin)) {
            0 => {}
            1 => session.announce_stdin(stdin),
            _ => return Err(CliError::usage("standard input can be read only once")),
        }
        Ok(())
    }
}

impl Input {
    /// Locates the server's violations in the file, if they are about it.
    pub(super) fn explain(&self, mut error: ClientError) -> CliError {
        if let ClientError::Problem(problem) = &mut error {
            let kind = type_of(&self.sent);
            for violation in &mut problem.errors {
                let name = violation.last_step();
                match violation.code.known() {
                    Some(Rule::SecretRequired) => violation.help = Some(secret_help(&violation.pointer)),
                    Some(Rule::MissingField) if secrecy(kind, &name) == Secrecy::Secret => {
                        violation.help = Some(format!("add {}", flag_for(&name)));
                    }
                    _ => {}
                }
            }
        }
        refused(self.document.as_ref(), &self.sent, error)
    }
}

/// Returns the flags that send the secret at `pointer` again.
fn secret_help(pointer: &str) -> String {
    let member = pointer.trim_start_matches('/').replace('/', ".");
    let without = if member == SIGNING_SECRET { "for a new one" } else { "to remove it" };
    format!("add --set-secret {member}=@FILE, or --set {member}= {without}")
}

/// Reads the secret of a `--set-secret` for an integration of a type that may not be known; returns the member, as a path with
/// dots, and the secret as the API takes it.
///
/// # Errors
/// If the flag is not valid, the file cannot be read, or the variable is not set. None quotes the value, which may be the
/// secret itself.
fn read_secret<'a>(
    kind: Option<IntegrationType>,
    text: &'a str,
    environment: &Environment,
) -> Result<(&'a str, Value), CliError> {
    let invalid = || {
        let message = "invalid --set-secret: expected MEMBER=@FILE, MEMBER=@- or MEMBER=env:NAME";
        CliError::usage(message)
    };
    let (member, source) = text.split_once('=').ok_or_else(invalid)?;
    let is_header = member.strip_prefix("headers.").is_some_and(|header| !header.contains('.'));
    if !is_header && secrecy(kind, member) == Secrecy::Open {
        return Err(not_a_secret(kind, member));
    }
    let mut secret = Value::Object(Vec::new());
    match (source.strip_prefix('@'), source.strip_prefix("env:")) {
        (Some(file), _) if !file.is_empty() => {
            secret.set(&["value"], Value::String(secret_file::read(Path::new(file))?));
        }
        (_, Some(name)) if !name.is_empty() => {
            let unset = || CliError::usage(format!("environment variable `{name}` is not set"));
            secret.set(&["value"], environment.get(name).ok_or_else(unset)?.into());
            secret.set(&["env"], name.into());
        }
        _ if source.is_empty() => return Err(invalid()),
        _ => return Err(visible_secret(member)),
    }
    Ok((member, secret))
}

fn not_a_secret(kind: Option<IntegrationType>, member: &str) -> CliError {
    let mut names = secret_names(kind);
    if kind.is_none_or(|kind| kind == IntegrationType::Webhook) {
        names.insert("headers.NAME");
    }
    let names: Vec<_> = names.into_iter().collect();
    let known = if names.is_empty() { "this type has none".to_owned() } else { names.join(", ") };
    let help = format!("secrets: {known}; --set sets other members");
    CliError::usage_with_help(format!("`{member}` is not a secret"), help)
}

/// Creates the error about a secret in an argument.
fn visible_secret(member: &str) -> CliError {
    let help = format!("use {}", flag_for(member));
    let message = format!("`{member}` cannot be set in an argument: other users can see arguments");
    CliError::usage_with_help(message, help)
}

/// Returns the forms of the flag that sets the secret `member`.
fn flag_for(member: &str) -> String {
    format!("--set-secret {member}=@FILE, {member}=@- or {member}=env:NAME")
}
