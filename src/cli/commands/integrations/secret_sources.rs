//! `--set-secret bearer_token=@FILE`: secrets from files, standard input and the environment.

use std::path::{Path, PathBuf};

use crate::cli::environment::Environment;
use crate::cli::input::secret_file;
use crate::cli::input::secret_members::{can_be_secret, secrets_of};
use crate::cli::output::exit::CliError;
use crate::domain::integration::IntegrationType;
use crate::domain::json::Value;

/// A secret member and where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SecretArg {
    /// The member as a path with dots.
    pub(super) member: String,
    source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// A file, `-` for standard input.
    File(PathBuf),
    Variable(String),
}

/// Parses a `--set-secret` of an integration of a type that may not be known. No error quotes the value, which may be the secret
/// itself.
pub(super) fn parse(kind: Option<IntegrationType>, text: &str) -> Result<SecretArg, CliError> {
    let invalid = || {
        let message = "invalid --set-secret: expected MEMBER=@FILE, MEMBER=@- or MEMBER=env:NAME";
        CliError::usage(message)
    };
    let (member, source) = text.split_once('=').ok_or_else(invalid)?;
    if !can_be_secret(kind, &member.split('.').collect::<Vec<_>>()) {
        return Err(not_a_secret(kind, member));
    }
    let source = match (source.strip_prefix('@'), source.strip_prefix("env:")) {
        (Some(file), _) if !file.is_empty() => Source::File(file.into()),
        (_, Some(name)) if !name.is_empty() => Source::Variable(name.to_owned()),
        _ if source.is_empty() => return Err(invalid()),
        _ => return Err(visible_secret(member)),
    };
    Ok(SecretArg { member: member.to_owned(), source })
}

fn not_a_secret(kind: Option<IntegrationType>, member: &str) -> CliError {
    let mut names = secrets_of(kind);
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
    let shown = member.strip_suffix(".value").unwrap_or(member);
    let help = format!("use {}", flag_for(shown));
    let message = format!("`{member}` cannot be set in an argument: other users can see arguments");
    CliError::usage_with_help(message, help)
}

/// Returns the forms of the flag that sets the secret `member`.
pub(super) fn flag_for(member: &str) -> String {
    format!("--set-secret {member}=@FILE, {member}=@- or {member}=env:NAME")
}

impl SecretArg {
    /// Returns the file to read, `-` for standard input.
    pub(super) fn file(&self) -> Option<&Path> {
        match &self.source {
            Source::File(path) => Some(path),
            Source::Variable(_) => None,
        }
    }

    /// Returns the secret as the API takes it.
    ///
    /// # Errors
    /// If the file cannot be read, or the variable is not set.
    pub(super) fn value(&self, environment: &Environment) -> Result<Value, CliError> {
        let (value, name) = match &self.source {
            Source::File(path) => (secret_file::read(path)?, None),
            Source::Variable(name) => {
                let unset = || CliError::usage(format!("environment variable `{name}` is not set"));
                (environment.get(name).ok_or_else(unset)?.to_owned(), Some(name))
            }
        };
        let value = ("value".to_owned(), Value::String(value));
        let name = name.map(|name| ("env".to_owned(), Value::String(name.clone())));
        Ok(Value::Object([value].into_iter().chain(name).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_secret_is_never_in_the_argument() {
        for text in ["secret", "secret=", "secret=whsec_abc", "secret=@", "secret=env:", "path=@file"] {
            assert!(parse(None, text).is_err(), "{text}");
        }
        for text in ["secret=@file", "secret=@-", "headers.X-Key=env:KEY"] {
            assert!(parse(None, text).is_ok(), "{text}");
        }
    }
}
