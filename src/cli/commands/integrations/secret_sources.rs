//! `--set-secret bearer_token=@FILE`: secrets from files, standard input and the environment.

use std::path::Path;

use crate::cli::environment::Environment;
use crate::cli::input::secret_file;
use crate::cli::output::exit::CliError;
use crate::domain::integration::IntegrationType;
use crate::domain::integration::secret_members::{Secrecy, secrecy, secret_names};
use crate::domain::json::Value;

/// Reads the secret of a `--set-secret` for an integration of a type that may not be known; returns the member, as a path with
/// dots, and the secret as the API takes it.
///
/// # Errors
/// If the flag is not valid, the file cannot be read, or the variable is not set. None quotes the value, which may be the
/// secret itself.
pub(super) fn read<'a>(
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
pub(super) fn visible_secret(member: &str) -> CliError {
    let help = format!("use {}", flag_for(member));
    let message = format!("`{member}` cannot be set in an argument: other users can see arguments");
    CliError::usage_with_help(message, help)
}

/// Returns the forms of the flag that sets the secret `member`.
pub(super) fn flag_for(member: &str) -> String {
    format!("--set-secret {member}=@FILE, {member}=@- or {member}=env:NAME")
}
